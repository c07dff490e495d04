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

_MOST_PLACES: Final = 12  # runs of rows of one kind listed in a sentence
_KINDS_IN_OUTPUT: Final = ("header", "title", "data")


def explain(artifact: ArtifactDocument) -> list[str]:
    """Explain the decisions of a job, one sentence per line, in the order they were made."""
    lines: list[str] = []
    columns: dict[str, list[str]] = {}
    for m in artifact["mapping"]:
        columns.setdefault(m["table"], []).append(column_words(m))
    for sheet in artifact["sheets"]:
        lines += _describe_sheet(sheet)
        for table in sheet["tables"]:
            lines += columns.get(table["id"], ())
        lines += [f"  {line}" for line in left_out(sheet)]
    lines += [f"Reading: {line}" for line in map(reading, artifact["readings"])]
    lines += [transform_words(t) for t in artifact["transforms"] if t["changed"] or t["rule"] in _SOURCES]
    lines += _describe_findings(artifact["validation"])
    output = artifact["output"]
    lines.append(f"Written: {output['rows']} rows in {len(output['columns'])} columns{_describe_sheets(output)}.")
    return lines


def _describe_sheets(output: OutputPart) -> str:
    """Describe the sheets of the output in words; empty if it has one."""
    if len(output["sheets"]) < 2:
        return ""
    parts = [f"{name} {rows}" for name, rows in zip(output["sheets"], output["sheet_rows"], strict=True)]
    return f" on {len(parts)} sheets: {', '.join(parts[:_MOST_PLACES])}" + (
        " and more" if len(parts) > _MOST_PLACES else ""
    )


def left_out(sheet: SheetFacts) -> list[str]:
    """Describe what of a sheet is left out, in sentences with addresses and reasons; long lists are shortened."""
    kinds: dict[str, list[str]] = {}
    for run in sheet["rows"]:
        if run["as"] not in _KINDS_IN_OUTPUT:
            kinds.setdefault(run["as"], []).append(span(run))
    lines = []
    if kinds:
        parts = [f"{_describe_rows(places)}: {kind.replace('_', ' ')}" for kind, places in kinds.items()]
        lines.append(f"left out: {'; '.join(parts)}.")
    if sheet["beside"]:
        areas = [stray["range"] for stray in sheet["beside"]]
        lines.append(f"left out, beside the tables: {_list_first(areas)}.")
    columns = [
        f"{column['column']} ({column['why']})" for table in sheet["tables"] for column in table["left_out_columns"]
    ]
    if columns:
        lines.append(f"columns left out: {_list_first(columns)}.")
    return lines


def span(run: RowRun) -> str:
    """Write the rows of a run: 3, or 3-7."""
    return str(run["from"]) if run["from"] == run["to"] else f"{run['from']}-{run['to']}"


def _describe_rows(places: list[str]) -> str:
    """Write the spans of rows in words: `row 3`, `rows 3-7, 9`."""
    return f"row {places[0]}" if len(places) == 1 and places[0].isdecimal() else f"rows {_list_first(places)}"


def _list_first(places: list[str]) -> str:
    """List the first places, and how many more there are."""
    more = len(places) - _MOST_PLACES
    return ", ".join(places[:_MOST_PLACES]) + (f" and {more} more (see artifact.json)" if more > 0 else "")


def reading(part: ReadingPart) -> str:
    """Describe a choice between readings: the one chosen, its place, the evidence for each and how to settle it."""
    line = f"{part['kind'].replace('_', ' ')}: {part['chosen']}"
    if place := where(part):
        line += f", {place}"
    line += f" ({evidence(part)}{'' if part['sure'] else '; a guess'})"
    return line + (f"; to settle it: {part['settle']}." if part.get("settle") else ".")


def where(part: ReadingPart) -> str:
    """Write where a choice between readings was made, in words; empty if it names no place."""
    at = part.get("table") or "/".join(part for part in (part.get("input"), part.get("sheet")) if part)
    parts = [f"field {part['field']}" if part.get("field") else "", at]
    parts += [
        f"{name} {place}" if place else "" for name, place in (("column", part.get("column")), ("row", part.get("row")))
    ]
    return ", ".join(part for part in parts if part)


def evidence(part: ReadingPart) -> str:
    """Write how many values support each reading, in words."""
    return ", ".join(f"{name} {count}" for name, count in part["evidence"].items()) or "no evidence"


def _describe_sheet(sheet: SheetFacts) -> list[str]:
    """Describe what was read of a sheet, in sentences."""
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


def column_words(mapped: MappingPart) -> str:
    """Describe what a column became, and why, as an indented sentence."""
    name = f"  column {mapped['column']}" + (f" “{mapped['header']}”" if mapped["header"] else "")
    if mapped["target"] is None:
        return f"{name} is not mapped: {mapped['note'] or 'it matches no declared field'}."
    parts = ", ".join(f"{c['rule']} {c['weight']:+.1f}" for c in mapped["contributors"])
    line = f"{name} is {mapped['target']} ({_percent_text(mapped['probability'])}: {parts})"
    if mapped["runners_up"]:
        line += "; next: " + ", ".join(f"{r['field']} {_percent_text(r['probability'])}" for r in mapped["runners_up"])
    return line + (f"; {mapped['note']}." if mapped["note"] else ".")


def _percent_text(probability: float) -> str:
    """Write a probability as percent, rounded down: only what is certain is called certain."""
    return f"{int(100 * probability)} %"


# What gives a field its values instead of a column, in words.
_SOURCES: Final = {
    "from:expression": "computed by its expression",
    "from:lookup": "looked up in an auxiliary input",
    "from:columns": "made of several columns",
}


def transform_words(transform: TransformPart) -> str:
    """Describe how the values of a field were converted, in a sentence."""
    how = [f"as {transform['type']}"]
    if transform["rule"] in _SOURCES:
        return f"{transform['field']}: {_SOURCES[transform['rule']]} ({how[0]})."
    if transform["decimal"]:
        how.append(f"decimal sign {transform['decimal']}")
    if transform["day_first"] is not None:
        how.append("day first" if transform["day_first"] else "month first")
    if "dots_day_first" in transform:
        how.append(f"dates with points {'day' if transform['dots_day_first'] else 'month'} first")
    if transform["rule"]:
        how.append(f"with {transform['rule']}")
    return f"{transform['field']}: {transform['changed']} of {transform['total']} values rewritten ({', '.join(how)})."


def _describe_findings(validation: ValidationPart) -> list[str]:
    """Count the findings in sentences: in all, then of each code and field with the first of them."""
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
