"""Explains an artifact in plain sentences: what was found, what each column became, and why."""

from typing import Final

from runner.engine.document_types import (
    ArtifactDocument,
    MappingPart,
    OutputPart,
    ReadingPart,
    RowRun,
    SheetFacts,
    TransformPart,
    ValidationPart,
)

_PLACES: Final = 12  # runs of rows of one kind listed in a sentence
_IN_OUTPUT: Final = ("header", "title", "data")


def explain(artifact: ArtifactDocument) -> list[str]:
    """The decisions of a job, one sentence per line, in the order they were made."""
    lines: list[str] = []
    columns: dict[str, list[str]] = {}
    for m in artifact["mapping"]:
        columns.setdefault(m["table"], []).append(column_words(m))
    for sheet in artifact["sheets"]:
        lines += _sheet(sheet)
        for table in sheet["tables"]:
            lines += columns.get(table["id"], ())
        lines += [f"  {line}" for line in left_out(sheet)]
    lines += [f"Reading: {line}" for line in map(reading, artifact["readings"])]
    lines += [transform_words(t) for t in artifact["transforms"] if t["changed"] or t["rule"] in _SOURCES]
    lines += _validation(artifact["validation"])
    output = artifact["output"]
    lines.append(f"Written: {output['rows']} rows in {len(output['columns'])} columns{_sheets(output)}.")
    return lines


def _sheets(output: OutputPart) -> str:
    """The sheets of the output in words; empty if it has one."""
    if len(output["sheets"]) < 2:
        return ""
    parts = [f"{name} {rows}" for name, rows in zip(output["sheets"], output["sheet_rows"], strict=True)]
    return f" on {len(parts)} sheets: {', '.join(parts[:_PLACES])}" + (" and more" if len(parts) > _PLACES else "")


def left_out(sheet: SheetFacts) -> list[str]:
    """What of a sheet is left out, in sentences with addresses and reasons; long lists are shortened."""
    kinds: dict[str, list[str]] = {}
    for run in sheet["rows"]:
        if run["as"] not in _IN_OUTPUT:
            kinds.setdefault(run["as"], []).append(span(run))
    lines = []
    if kinds:
        parts = [f"{_rows(places)}: {kind.replace('_', ' ')}" for kind, places in kinds.items()]
        lines.append(f"left out: {'; '.join(parts)}.")
    if sheet["beside"]:
        areas = [stray["range"] for stray in sheet["beside"]]
        lines.append(f"left out, beside the tables: {_some(areas)}.")
    columns = [
        f"{column['column']} ({column['why']})" for table in sheet["tables"] for column in table["left_out_columns"]
    ]
    if columns:
        lines.append(f"columns left out: {_some(columns)}.")
    return lines


def span(run: RowRun) -> str:
    """The rows of a run: 3, or 3-7."""
    return str(run["from"]) if run["from"] == run["to"] else f"{run['from']}-{run['to']}"


def _rows(places: list[str]) -> str:
    """The spans of rows in words."""
    return f"row {places[0]}" if len(places) == 1 and places[0].isdecimal() else f"rows {_some(places)}"


def _some(places: list[str]) -> str:
    """The first places, and how many more there are."""
    more = len(places) - _PLACES
    return ", ".join(places[:_PLACES]) + (f" and {more} more (see artifact.json)" if more > 0 else "")


def reading(made: ReadingPart) -> str:
    """A choice between readings in words: the one chosen, its place, the evidence for each and how to settle it."""
    line = f"{made['kind'].replace('_', ' ')}: {made['chosen']}"
    if place := where(made):
        line += f", {place}"
    line += f" ({evidence(made)}{'' if made['sure'] else '; a guess'})"
    return line + (f"; to settle it: {made['settle']}." if made.get("settle") else ".")


def where(made: ReadingPart) -> str:
    """Where a choice between readings was made, in words; empty if it names no place."""
    at = made.get("table") or "/".join(part for part in (made.get("input"), made.get("sheet")) if part)
    parts = [f"field {made['field']}" if made.get("field") else "", at]
    parts += [
        f"{name} {place}" if place else "" for name, place in (("column", made.get("column")), ("row", made.get("row")))
    ]
    return ", ".join(part for part in parts if part)


def evidence(made: ReadingPart) -> str:
    """How many values support each reading, in words."""
    return ", ".join(f"{name} {count}" for name, count in made["evidence"].items()) or "no evidence"


def _sheet(sheet: SheetFacts) -> list[str]:
    """What was read of a sheet, in sentences."""
    name = f"{sheet['input']}, sheet {sheet['name']}"
    if sheet.get("skipped"):
        return [f"{name}: not read, {sheet['skipped']}."]
    if not sheet["tables"]:
        return [f"{name}: no table found."]
    lines = []
    for table in sheet["tables"]:
        head = ", ".join(map(str, table["header_rows"])) or "none"
        why = "; ".join(table["why"])
        line = f"{name}: table {table['range']}, header row {head}, confidence {table['confidence']:.2f} ({why})."
        if table.get("skipped"):
            line += f" Left out: {table['skipped']}."
        lines.append(line)
    return lines


def column_words(m: MappingPart) -> str:
    """What a column became, and why, as an indented sentence."""
    name = f"  column {m['column']}" + (f" “{m['header']}”" if m["header"] else "")
    if m["target"] is None:
        return f"{name} is not mapped: {m['note'] or 'it matches no declared field'}."
    parts = ", ".join(f"{c['rule']} {c['weight']:+.1f}" for c in m["contributors"])
    line = f"{name} is {m['target']} ({_percent(m['probability'])}: {parts})"
    if m["runners_up"]:
        line += "; next: " + ", ".join(f"{r['field']} {_percent(r['probability'])}" for r in m["runners_up"])
    return line + (f"; {m['note']}." if m["note"] else ".")


def _percent(probability: float) -> str:
    """Rounded down: only what is certain is called certain."""
    return f"{int(100 * probability)} %"


# What gives a field its values instead of a column, in words.
_SOURCES: Final = {
    "from:expression": "computed by its expression",
    "from:lookup": "looked up in an auxiliary input",
    "from:columns": "made of several columns",
}


def transform_words(t: TransformPart) -> str:
    """How the values of a field were converted, in a sentence."""
    how = [f"as {t['type']}"]
    if t["rule"] in _SOURCES:
        return f"{t['field']}: {_SOURCES[t['rule']]} ({how[0]})."
    if t["decimal"]:
        how.append(f"decimal sign {t['decimal']}")
    if t["day_first"] is not None:
        how.append("day first" if t["day_first"] else "month first")
    if "dots_day_first" in t:
        how.append(f"dates with points {'day' if t['dots_day_first'] else 'month'} first")
    if t["rule"]:
        how.append(f"with {t['rule']}")
    return f"{t['field']}: {t['changed']} of {t['total']} values rewritten ({', '.join(how)})."


def _validation(validation: ValidationPart) -> list[str]:
    """How many findings there are, in sentences: in all, then of each code and field with the first of them."""
    if not validation["total"]:
        return ["No findings."]
    counts = ", ".join(f"{n} {s}" for s, n in validation["by_severity"].items() if n)
    lines = [f"Findings: {counts}."]
    for total in validation["totals"]:
        first = next(
            (
                f
                for f in validation["findings"]
                if f["code"] == total["code"]
                and f.get("field") == total["field"]
                and f["severity"] == total["severity"]
            ),
            None,
        )
        what = f"  {total['severity']} {total['code']}" + (f", {total['field']}" if total["field"] else "")
        line = f"{what}: {total['count']}"
        if first is not None:
            at = f" at {first['sheet']}!{first['cell']}" if first.get("cell") else ""
            line += f", first{at}: {first['message']}"
        lines.append(line + ".")
    return lines
