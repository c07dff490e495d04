"""Gives tables the values of labels and captions around them, and reports those that are missing or doubtful."""

from collections.abc import Sequence
from typing import Final

from runner.engine.common import a1
from runner.engine.common.fields import Field
from runner.engine.common.findings import Findings
from runner.engine.common.spelling import normalized
from runner.engine.mapping.table_mapping import MappedTable
from runner.engine.options import GROUP, UnpivotOptions
from runner.engine.tables.around import AroundTables, FoundLabel
from runner.engine.tables.sources import SourceTable
from runner.engine.tables.supplied import Supplied

_NAMED: Final = 5  # columns that a message names


def supply(
    tables: Sequence[MappedTable], fields: Sequence[Field], supplied: Supplied, findings: Findings, *, heads: bool
) -> None:
    """Give the tables of one input, after mapping, the values of labels around them and, with `heads`, of captions
    above them.

    Changes `supplied`, `samples` and the sources of these tables, and adds findings for labels and captions that are
    missing or doubtful.
    """
    by_sheet: dict[int, list[MappedTable]] = {}
    for table in tables:
        by_sheet.setdefault(table.source.sheet.index, []).append(table)
    wanted = {f.name: f for f in fields if f.name in supplied.fields}
    for tables_of_sheet in by_sheet.values():
        around = AroundTables([table.source for table in tables_of_sheet])
        for table in tables_of_sheet:
            for name in [name for name, what in supplied.fields.items() if what in supplied.labels]:
                label = supplied.labels[supplied.fields[name]]
                found_label = around.value_of(table.source, label, supplied.labels)
                _apply_label(table, wanted[name], supplied.fields[name], found_label, findings)
            if heads:
                _apply_caption(table, around, supplied, findings)


def note_surroundings(tables: Sequence[MappedTable], supplied: Supplied, *, heads: bool) -> None:
    """Set `surroundings` of the tables of one input: the values of labels and captions that tell their rows from those
    of other tables on the sheet."""
    by_sheet: dict[int, list[SourceTable]] = {}
    for table in tables:
        by_sheet.setdefault(table.source.sheet.index, []).append(table.source)
    for of_sheet in by_sheet.values():
        around = AroundTables(of_sheet)
        for source in of_sheet if len(of_sheet) > 1 else ():
            cells = [around.value_of(source, label, supplied.labels).cell for label in supplied.labels.values()]
            cells += [around.caption(source, supplied.labels)] if heads else []
            source.surroundings = tuple(None if cell is None else normalized(str(cell.value)) for cell in cells)


def _apply_label(
    table: MappedTable, field: Field, added_column: str, found_label: FoundLabel, findings: Findings
) -> None:
    """Store the value of a label around a table as its field's value, or remove the field from `supplied` if there is
    none; adds findings for a label that is missing, repeated or unclear."""
    source, label = table.source, field.source.options["label"] if field.source else ""
    if found_label.cell is None:
        del table.supplied[field.name]
        if field.optional:
            return
        where = "" if found_label.label is None else f" is in {a1.cell(*found_label.label)}, and"
        beside = "is around the table" if found_label.label is None else "no value is beside it"
        message = f"the label “{label}”{where} {beside}" if where else f"no label “{label}” {beside}"
        findings.add(
            "label_missing", "error" if field.required else "warning",
            f'{message}; the field {field.name} has no value; to settle it: mend the file, or '
            f'"optional": true on field {field.name}',
            place=source.place, field=field.name, rule="from", row=found_label.label and found_label.label[0],
            column=found_label.label and found_label.label[1],
        )  # fmt: skip
        return
    cell = found_label.cell
    source.labelled[added_column] = cell
    table.samples[source.place_of(added_column)] = [cell.value]
    if found_label.other is not None:
        side = "below" if found_label.label is not None and cell.row > found_label.label[0] else "right"
        findings.chose(
            "label", side, evidence={"right": 1, "below": 1}, sure=False,
            message=f"{a1.cell(cell.row, cell.column)} was taken as the value of the label “{label}”; "
            f"{a1.cell(*found_label.other)} could be it, too",
            settle=f'"from": {{"label": "{label}", "side": "{side}"}} on field {field.name}',
            place=source.place, row=cell.row, column=cell.column, field=field.name,
        )  # fmt: skip
    if found_label.differing is not None:
        findings.add(
            "label_repeated", "warning",
            f"the label “{label}” is around the table twice with different values; {a1.cell(cell.row, cell.column)} "
            f"was taken, and not the one of {a1.cell(*found_label.differing)}",
            place=source.place, row=cell.row, column=cell.column, field=field.name, rule="from",
        )  # fmt: skip


def _apply_caption(table: MappedTable, around: AroundTables, supplied: Supplied, findings: Findings) -> None:
    """Store the caption above a table as its first group, or add a finding that there is none."""
    source = table.source
    cell = source.caption = around.caption(source, supplied.labels)
    at = source.place_of(GROUP)
    if cell is not None:
        table.samples[at] = [cell.value, *table.samples[at]]
    elif not any(row < source.top for row in source.table.groups):
        names = [name for name, what in supplied.fields.items() if what == GROUP]
        findings.add(
            "caption_missing", "warning", "no caption is above the table; its first rows have none",
            place=source.place, field=names[0] if names else None, rule="captions", row=source.top,
        )  # fmt: skip


def report_unmapped(unmapped: Sequence[MappedTable], used: Sequence[MappedTable], findings: Findings) -> None:
    """Add a finding for each table without a field; for a form whose values are fields of other tables it is only
    information."""
    for table in unmapped:
        place, box = table.source.place, table.source.table.range
        beside = [t.source for t in used if (t.source.place.input, t.source.place.sheet) == (place.input, place.sheet)]
        cells = [cell for source in beside for cell in source.labelled.values()]
        is_form = any(box.top <= c.row <= box.bottom and box.left <= c.column <= box.right for c in cells)
        message = "no column of this table matches a declared field; it is left out"
        message += ", but for values of labels" if is_form else ""
        severity = "info" if is_form else "warning"
        findings.add("table_unmapped", severity, message, place=place, rule="mapping")


def report_spread(tables: Sequence[MappedTable], options: UnpivotOptions, findings: Findings) -> None:
    """Add findings for tables without a column that unpivot makes rows of, and for columns between those that stayed
    columns."""
    for table in tables:
        source = table.source
        spread = [spread_column.index for spread_column in source.spread]
        if not spread:
            findings.add(
                "unpivot_missing", "warning",
                f"no column is one of rows.unpivot.columns; {options.name_to} and {options.value_to} have no values",
                place=source.place, rule="unpivot",
            )  # fmt: skip
            continue
        between = [c.index for c in source.columns if spread[0] < c.index < spread[-1] and not c.generated]
        if between:
            letters = ", ".join(map(a1.letters, between[:_NAMED])) + (" and others" if len(between) > _NAMED else "")
            findings.chose(
                "unpivot", "column", evidence={"rows": len(spread), "columns": len(between)}, sure=False,
                message=f"column {letters} is between columns that became rows and stayed a column",
                settle='its header in "rows": {"unpivot": {"columns": [...]}} if it is one of them',
                place=source.place, column=between[0],
                row=source.table.header_rows[-1] if source.table.header_rows else None,
            )  # fmt: skip


def list_supplied_cells(table: MappedTable) -> list[dict[str, str]]:
    """List for the artifact which cells outside a table (labels' values, captions) are values of its fields."""
    source = table.source
    out = [
        {"field": name, "from": "label", "cell": a1.cell(cell.row, cell.column)}
        for name, what in table.supplied.items()
        if (cell := source.labelled.get(what)) is not None
    ]
    if source.caption is not None:
        cell = source.caption
        names = [name for name, what in table.supplied.items() if what == GROUP]
        out += [{"field": name, "from": "caption", "cell": a1.cell(cell.row, cell.column)} for name in names]
    return out
