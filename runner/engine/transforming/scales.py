"""Reports numbers that count in another scale, unit or currency than their field: the output has the bare numbers.

A scale ("in thousands", `TEUR`, `$mm`) may be in a column's header, in a line above or below the table, in the sheet's
name or in the number formats of the cells. A field whose own name, label or synonym says the same needs no report.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from runner.engine.common.fields import NUMERIC, Field
from runner.engine.common.findings import Findings
from runner.engine.common.patterns import LazyPattern
from runner.engine.mapping.measures import NOTHING, Measure, is_unit, measure, measure_of
from runner.engine.mapping.table_mapping import MappedTable
from runner.engine.mapping.target import concepts_by_field, field_classes
from runner.engine.structure import Column
from runner.engine.tables.sources import SourceTable

_SCALED_TYPES: Final = NUMERIC - {"percent"}
_MAX_TITLE_CHARACTERS: Final = 120
_MAX_TITLE_WORDS: Final = 6  # of a line that states a scale and nothing around it
_LEAST_SHARE: Final = 0.5  # of a column's numbers that show a unit
_SCALE_OF_SUFFIX: Final = {"k": 3, "K": 3, "M": 6, "MM": 6, "Mn": 6, "B": 9}  # a power of ten
# Numbers that a line such as "in thousands of euros" is not about.
_NO_AMOUNTS: Final = frozenset({
    "identifier", "year", "postcode", "phone", "latitude", "longitude", "house_number", "row_number", "small_number",
    "date", "category", "time",
})  # fmt: skip
_STATES_SCALE: Final = LazyPattern(
    r"[(\[]|\b(?:in|en|em|i|w|v|tal|figures?|amounts?|values?|all|betr[aä]ge|angaben|werte|zahlen|montants?|valeurs?|chiffres|"
    r"cifras|importes?|valores|importi|valori|dati|bedragen|cijfers|belopp|bel[øo]b|kwoty|dane|hodnoty|luvut|units?|"
    r"currency|w[äa]hrung|einheit|unidad|unità)\b|\uff1a",
    re.IGNORECASE,
)
_BRACKETS: Final = re.compile(r"[(\[]([^()\[\]]{1,24})[)\]]\s*$")
_MESSAGES: Final = {
    "header": "the header counts in thousands, millions, cents or the like, the field does not",
    "title": "a line beside the table says that its numbers are in thousands, millions or the like, the field does not",
    "format": "the number format shows thousands, millions or the like, the field does not",
    "divided": "the number format leaves out thousands or millions that the stored numbers have",
    "plain": "the field counts in thousands, millions or the like, the header does not say so",
}
_REMEDY: Final = (
    "; the numbers are kept as they are; to settle it: say so in the name, the label or a synonym of the field"
)
_OTHER_UNIT: Final = (
    "{} another {} than the field or the header; the numbers are kept, the {} is not; to settle it: make it a field of "
    "its own"
)
_UNIT_MIXED: Final = (
    "the header states another unit for this field than another table does; the numbers are kept, the units are not; "
    "to settle it: make it a field of its own"
)


class _PlacedColumn(NamedTuple):
    """A field's column in one table."""

    table: MappedTable
    at: int  # its position in the table
    column: Column

    @property
    def source(self) -> SourceTable:
        return self.table.source

    @property
    def header(self) -> str:
        """The header that the sheet has; empty if it has none."""
        return "" if self.column.generated else self.column.name


class _ScaleLine(NamedTuple):
    """A line beside a table, or the name of its sheet, that states a scale."""

    row: int | None  # None: the name of the sheet
    column: int | None
    measure: Measure


def report_scales(tables: Sequence[MappedTable], fields: Sequence[Field], findings: Findings) -> None:
    """Report the scales, units and currencies that the output drops and the fields do not say."""
    lines = {id(table): _find_line(table) for table in tables}
    for field in (f for f in fields if f.type in _SCALED_TYPES):
        placed_columns = [
            _PlacedColumn(table, at, table.source.columns[at])
            for table in tables
            if (at := table.fields.get(field.name, len(table.source.columns))) < len(table.source.columns)
        ]
        for placed_column in placed_columns:
            _report_scale(placed_column, field, lines[id(placed_column.table)], findings)
            _report_unit(placed_column, field, findings)
        _report_different_units(placed_columns, field, findings)


def _report_scale(placed: _PlacedColumn, field: Field, line: _ScaleLine | None, findings: Findings) -> None:
    """Report a scale that the header, the number formats or a line beside the table states and the field does not."""
    field_scales = {scale for name, _ in field.names if (scale := measure(name).scale) is not None} or {0}
    shown_scale, thousands = _scale_in_formats(placed)
    stated = _find_stated_scale(placed, field, line, shown=shown_scale, thousands=thousands, field_scales=field_scales)
    if stated is None:
        return
    is_stated_by_field = stated.where != "divided" and stated.scale - 3 * thousands in field_scales
    if is_stated_by_field:
        return
    findings.add(
        "scale_ignored", "warning", _MESSAGES[stated.where] + _REMEDY, place=placed.source.place, row=stated.row,
        column=stated.column, field=field.name, rule="reading",
    )  # fmt: skip


class _StatedScale(NamedTuple):
    """A scale, and where it is stated: a key of _MESSAGES and a cell."""

    where: str
    scale: int  # a power of ten
    row: int | None
    column: int | None


def _find_stated_scale(
    placed: _PlacedColumn,
    field: Field,
    line: _ScaleLine | None,
    *,
    shown: int | None,
    thousands: int,
    field_scales: set[int],
) -> _StatedScale | None:
    """Find the scale that is stated for a column's numbers; None if nothing states one.

    `line`: one beside the table that states a scale. `shown`, `thousands`: the scale that number formats show, and how
    often they divide by a thousand. `field_scales`: those that the field's names state, 0 if they state none.
    """
    row, column = max(placed.source.table.header_rows, default=None), placed.column.index
    header = _measure_of_header(placed, field)
    if header.scale is not None:
        return _StatedScale("header", header.scale, row, column)
    if shown is not None and not thousands:
        return _StatedScale("format", shown, row, column)
    if line is not None and _is_about(line, placed, field) and line.measure.scale is not None:
        return _StatedScale("title", line.measure.scale, line.row, line.column)
    if thousands:
        return _StatedScale("divided", 0, row, column)
    if field_scales != {0} and (header.currencies or header.units):
        return _StatedScale("plain", 0, row, column)
    return None


def _measure_of_header(placed: _PlacedColumn, field: Field) -> Measure:
    """Return what a header says about scale, unit and currency; the rows of a header of several each for itself."""
    parts = placed.column.parts
    stated = measure_of(parts) if len(parts) > 1 else measure(placed.header) if placed.header else NOTHING
    if field.type == "money" and stated.scale is None and stated.units.get("length") == frozenset({"mile"}):
        return stated._replace(scale=3)  # miles are thousands in Spanish
    return stated


def _scale_in_formats(placed: _PlacedColumn) -> tuple[int | None, int]:
    """Return the scale that most number formats of a column state (None: none), and how often they divide by a
    thousand."""
    units = placed.table.units.get(placed.at)
    if not units:
        return None, 0
    unit, count = max(units.items(), key=lambda item: (item[1], item[0]))
    if count < _LEAST_SHARE * units.total():
        return None, 0
    name = unit.lstrip(",")
    return (_SCALE_OF_SUFFIX.get(name, measure(name).scale) if name else None), len(unit) - len(name)


def _report_unit(placed: _PlacedColumn, field: Field, findings: Findings) -> None:
    """Report the first unit or currency in a row of units or in number formats that contradicts the field's names, or
    for formats the header."""
    names = [name for name, _ in field.names]
    parts = placed.column.parts
    if len(parts) > 1 and is_unit(parts[-1]) and (conflict := measure(parts[-1]).contradicts(measure_of(names))):
        _report_conflict(placed, field, conflict, "the header states", findings)
        return
    stated = measure_of(names + ([placed.header] if placed.header else []))
    if not (stated.units or stated.currencies):
        return
    for unit in placed.table.units.get(placed.at, ()):
        name = unit.lstrip(",")
        conflict = measure(f"in {name}").contradicts(stated) if name and name != "%" else ""  # unit, currency or none
        if conflict:
            subject = "the numbers show" if conflict == "unit" else "the amounts show"
            _report_conflict(placed, field, conflict, subject, findings)
            return


def _report_conflict(placed: _PlacedColumn, field: Field, conflict: str, subject: str, findings: Findings) -> None:
    """Report another unit or currency than the field has; `subject`: what states it."""
    findings.add(
        f"{conflict}_mixed", "warning", _OTHER_UNIT.format(subject, conflict, conflict), place=placed.source.place,
        row=max(placed.source.table.header_rows, default=None), column=placed.column.index, field=field.name,
        rule="reading",
    )  # fmt: skip


def _report_different_units(columns: Sequence[_PlacedColumn], field: Field, findings: Findings) -> None:
    """Report headers that state another unit for a field than the first table that states one."""
    units: dict[str, _PlacedColumn] = {}
    for placed in columns:
        if (unit := unit_in(placed.column.name)) is not None:
            units.setdefault(unit, placed)
    for placed in list(units.values())[1:]:
        findings.add(
            "unit_mixed", "warning", _UNIT_MIXED, place=placed.source.place,
            row=max(placed.source.table.header_rows, default=None), column=placed.column.index, field=field.name,
            rule="reading",
        )  # fmt: skip


def unit_in(header: str) -> str | None:
    """Return the unit that a header states, in lower case: `kg` in `Weight (kg)`; else its currencies (`EUR` in `Amount
    EUR`); None if it states neither."""
    if brackets := _BRACKETS.search(header):
        return brackets[1].strip().casefold()
    currencies = measure(header).currencies
    return " ".join(sorted(currencies)) or None


def _is_about(line: _ScaleLine, placed: _PlacedColumn, field: Field) -> bool:
    """Whether a line's scale is that of a field's numbers, as far as its name tells."""
    if field.type == "money":
        return True
    if measure_of([placed.header, *(name for name, _ in field.names)]).units:
        return False
    (concepts,) = concepts_by_field([field])
    classes = field_classes(field, concepts)
    if classes & _NO_AMOUNTS:
        return False
    return field.type == "decimal" or "money" in classes or not (line.measure.currencies or "quantity" in classes)


def _find_line(table: MappedTable) -> _ScaleLine | None:
    """Find a line above or below a table, or the name of its sheet, that states a scale for all of it; None without
    one."""
    for row, column, text in table.beside:
        stated = measure(text) if len(text) <= _MAX_TITLE_CHARACTERS else NOTHING
        if stated.scale is not None and (len(text.split()) <= _MAX_TITLE_WORDS or _STATES_SCALE.search(text)):
            return _ScaleLine(row, column, stated)
    stated = measure(table.source.place.sheet or "")
    return _ScaleLine(None, None, stated) if stated.scale is not None and stated.currencies else None
