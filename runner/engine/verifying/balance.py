"""Checks the ledger of an artifact: every row read is in exactly one run, and all counts add up."""

from collections import Counter
from collections.abc import Sequence

from runner.engine.document_types import ArtifactDocument, RowRun, SharedRows, SheetFacts, TablePart
from runner.engine.protocol import BadOutput


def balance(artifact: ArtifactDocument) -> None:
    """Check the counts of every sheet and table and of the summary; raises BadOutput if they do not balance."""
    left_out: Counter[str] = Counter()
    used = rows_out = 0  # rows of the inputs, and what they made of the output
    for sheet in artifact["sheets"]:
        runs = _runs_by_table(sheet)
        _check_sheet(sheet, runs)
        for table in sheet["tables"]:
            used += _check_table(table, _count_by_kind(runs[table["ref"]]))
            rows_out += _count_made_rows(table)
            left_out.update(table["left_out"])
        left_out.update(_count_by_kind(runs[None]))
    summary, output = artifact["summary"], artifact["output"]
    _require_equal("the rows of its tables and its output", rows_out, output["rows"])
    _require_equal("the rows of its summary and its output", summary["rows_out"], output["rows"])
    _require_equal("what was left out, in its sheets and its summary", left_out, summary["left_out"])
    _require_equal("the rows in and out of its summary", summary["rows_in"], used + sum(left_out.values()))
    _require_equal("the rows of its inputs and its summary", summary.get("rows_used", rows_out), used)
    _require_equal("the sheets of its summary and its output", summary["sheets_out"], len(output["sheets"]))


def _runs_by_table(sheet: SheetFacts) -> dict[str | None, list[RowRun]]:
    """Sort the runs by table; under None those of no table. Raises BadOutput if a run names no table of the sheet."""
    owners: dict[str | None, list[RowRun]] = {None: []}
    owners |= {table["ref"]: [] for table in sheet["tables"]}
    if len(owners) != len(sheet["tables"]) + 1:
        raise BadOutput("artifact.json gives two tables of a sheet one name")
    for run in sheet["rows"]:
        if run.get("table") not in owners:
            raise BadOutput("artifact.json lists rows of a table that it does not have")
        if (run["as"] == "outside") != ("table" not in run):
            raise BadOutput("artifact.json lists rows outside of all tables as a table's, or a table's as nobody's")
        owners[run.get("table")].append(run)
    return owners


def _check_sheet(sheet: SheetFacts, owners: dict[str | None, list[RowRun]]) -> None:
    """Check that each row read is in one run, or in one run of each table that shares it; raises BadOutput.

    `owners`: the runs of each table by its id, and by None those of no table.
    """
    for runs in owners.values():
        _check_order(runs)
    _check_order(sheet["shared"])
    _check_apart(sheet["rows"])
    _check_shared(sheet)
    rows_listed = sum(run["rows"] for run in sheet["rows"])
    counted_again = sum((shared["tables"] - 1) * shared["rows"] for shared in sheet["shared"])
    _require_equal("the rows that were read and those listed", sheet["rows_read"], rows_listed - counted_again)
    if sheet.get("skipped") and (sheet["rows_read"] or sheet["tables"]):
        raise BadOutput("artifact.json lists rows of a sheet that was not read")


def _check_order(runs: Sequence[RowRun | SharedRows]) -> None:
    """Check that runs ascend without overlap and have no more rows than their range."""
    end = 0
    for run in runs:
        if not end < run["from"] <= run["to"]:
            raise BadOutput("artifact.json lists runs of rows that overlap or are out of order")
        if run["rows"] > run["to"] - run["from"] + 1:
            raise BadOutput("artifact.json lists a run with more rows than its range")
        end = run["to"]


def _check_apart(runs: list[RowRun]) -> None:
    """Check that rows of no table are in no table's run; tables side by side may share rows."""
    inside = outside = 0
    for run in sorted(runs, key=lambda run: int(run["from"])):
        if run["from"] <= (outside if "table" in run else max(inside, outside)):
            raise BadOutput("artifact.json lists rows as a table's and as nobody's")
        if "table" in run:
            inside = max(inside, run["to"])
        else:
            outside = run["to"]


def _check_shared(sheet: SheetFacts) -> None:
    """Check that rows declared as shared are in the runs of as many tables."""
    steps: dict[int, int] = {}
    for run in sheet["rows"] if sheet["shared"] else ():
        steps[run["from"]] = steps.get(run["from"], 0) + 1
        steps[run["to"] + 1] = steps.get(run["to"] + 1, 0) - 1
    rows = sorted(steps)
    next_step = depth = 0
    for shared in sheet["shared"]:
        while next_step < len(rows) and rows[next_step] <= shared["from"]:
            depth += steps[rows[next_step]]
            next_step += 1
        most = depth
        while next_step < len(rows) and rows[next_step] <= shared["to"]:
            depth += steps[rows[next_step]]
            most = max(most, depth)
            next_step += 1
        if most < shared["tables"]:
            raise BadOutput("artifact.json lists shared rows that the tables do not have")


def _check_table(table: TablePart, rows_by_kind: dict[str, int]) -> int:
    """Check the counts of a table; returns its rows in the output."""
    rows_out = rows_by_kind.pop("data", 0)
    left_out = {kind: rows for kind, rows in rows_by_kind.items() if kind not in ("header", "title")}
    _require_equal("the rows of a table and its runs", table["rows_out"], rows_out)
    _require_equal("what a table left out and its runs", table["left_out"], left_out)
    _require_equal("the rows in and out of a table", table["rows_in"], rows_out + sum(left_out.values()))
    if rows_out and table.get("skipped"):
        raise BadOutput("artifact.json counts rows of a table that was left out")
    return rows_out


def _count_made_rows(table: TablePart) -> int:
    """Count the rows of the output that a table's rows became; each became one, or one for each of some columns."""
    rows, unpivot = table["rows_out"], table.get("unpivot")
    if unpivot is None:
        return rows
    most = rows * unpivot["columns"]
    least = most if unpivot["blanks"] == "keep" else rows
    if not least <= unpivot["rows"] + unpivot.get("left_out", 0) <= most:
        raise BadOutput("the books do not balance: artifact.json has other rows than a table's columns became")
    return unpivot["rows"]


def _count_by_kind(runs: list[RowRun]) -> Counter[str]:
    """Count the rows of each kind in some runs."""
    counts: Counter[str] = Counter()
    for run in runs:
        counts[run["as"]] += run["rows"]
    return counts


def _require_equal(what: str, counted: object, stated: object) -> None:
    """Raise BadOutput if two counts of one thing differ."""
    if counted != stated:
        raise BadOutput(f"the books do not balance: artifact.json differs in {what}")
