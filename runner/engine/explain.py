"""Say in plain sentences what an artifact holds: what was found, what became what, and why."""

from typing import Any


def explain(artifact: dict[str, Any]) -> list[str]:
    """The decisions of a job, one sentence a line, in the order they were made."""
    lines: list[str] = []
    for sheet in artifact["sheets"]:
        lines += _sheet(sheet)
        for table in sheet["tables"]:
            mine = [m for m in artifact["mapping"] if m["table"] == table["id"]]
            lines += [_column(m) for m in mine]
    lines += [_transform(t) for t in artifact["transforms"] if t["changed"]]
    lines += _validation(artifact["validation"])
    output = artifact["output"]
    lines.append(f"Written: {output['rows']} rows in {len(output['columns'])} columns.")
    return lines


def _sheet(sheet: dict[str, Any]) -> list[str]:
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


def _column(m: dict[str, Any]) -> str:
    name = f"  column {m['column']}" + (f" “{m['header']}”" if m["header"] else "")
    if m["target"] is None:
        return f"{name} is no declared field: {m['note'] or 'nothing speaks for one'}."
    parts = ", ".join(f"{c['rule']} {c['delta']:+.2f}" for c in m["contributors"])
    line = f"{name} is {m['target']} (score {m['score']:.2f}: {parts})"
    if m["runners_up"]:
        line += "; next: " + ", ".join(f"{r['field']} {r['score']:.2f}" for r in m["runners_up"])
    return line + (f"; {m['note']}." if m["note"] else ".")


def _transform(t: dict[str, Any]) -> str:
    how = [f"as {t['type']}"]
    if t["decimal"]:
        how.append(f"decimal sign {t['decimal']}")
    if t["day_first"] is not None:
        how.append("day first" if t["day_first"] else "month first")
    if t["rule"]:
        how.append(f"with {t['rule']}")
    return f"{t['field']}: {t['changed']} of {t['total']} values rewritten ({', '.join(how)})."


def _validation(validation: dict[str, Any]) -> list[str]:
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
