"""A blank workbook for senders: headers, notes, drop-downs and checks while they type, all from a manifest."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from openpyxl import Workbook
from openpyxl.comments import Comment
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.worksheet import Worksheet

from core.errors import UsageError
from core.fields import NUMERIC, FieldSpec, FieldType, FromColumns
from core.manifests import Manifest

ROWS: Final = 10_000  # rows that are checked while people type
LISTS: Final = "Lists"  # the hidden sheet of drop-downs that are too long for a cell's own
_INLINE: Final = 255  # characters of a drop-down that Excel keeps in the cell
_MOST_LISTED: Final = 30_000
_FORMATS: Final = {
    FieldType.INTEGER: "0",
    FieldType.DECIMAL: "General",
    FieldType.MONEY: "#,##0.00",
    FieldType.PERCENT: "0.00%",
    FieldType.DATE: "yyyy-mm-dd",
    FieldType.DATETIME: "yyyy-mm-dd hh:mm:ss",
    FieldType.TIME: "hh:mm:ss",
    FieldType.BOOLEAN: "General",
}
_TEXT: Final = "@"  # keeps leading zeros
_WORDS: Final = {
    FieldType.TEXT: "text",
    FieldType.INTEGER: "a whole number",
    FieldType.DECIMAL: "a number",
    FieldType.MONEY: "an amount of money",
    FieldType.PERCENT: "a percentage",
    FieldType.DATE: "a date",
    FieldType.DATETIME: "a date and time",
    FieldType.TIME: "a time of day",
    FieldType.BOOLEAN: "yes or no",
    FieldType.EMAIL: "an email address",
    FieldType.PHONE: "a phone number",
    FieldType.URL: "a web address",
    FieldType.ENUM: "one of the listed values",
}
_REQUIRED: Final = PatternFill("solid", fgColor="FFE699")
_OTHER: Final = PatternFill("solid", fgColor="DDEBF7")
_YES_NO: Final = ("yes", "no")
_DAY_ZERO: Final = "DATE(1900,1,1)"
# What a draft puts behind a description is for the author of the manifest.
_EVIDENCE: Final = re.compile(r"(?:^|; )\d+ samples?, [\d,]+ values?\b.*$", re.DOTALL)
_MOST_ERROR: Final = 255
_WIDTHS: Final = (12, 40)


def write_template(manifest: Manifest, to: Path) -> int:
    """Write the workbook; returns how many columns it has."""
    columns = list(_columns(manifest))
    if not columns:
        raise UsageError(f"manifest {manifest.name} declares no field that comes from a column")
    book = Workbook()
    sheet = book.active
    if not isinstance(sheet, Worksheet):
        raise TypeError("a new workbook has a sheet")
    sheet.title = _title(manifest)
    lists = _Lists(book)
    for number, (header, spec) in enumerate(columns, 1):
        letters = get_column_letter(number)
        cell = sheet.cell(1, number, header)
        cell.font = Font(bold=True)
        cell.fill = _REQUIRED if spec.required else _OTHER
        cell.alignment = Alignment(wrap_text=True, vertical="top")
        note = Comment("\n".join(_note(spec)), "ade-drop")
        note.width, note.height = 320, 160
        cell.comment = note
        column = sheet.column_dimensions[letters]
        column.number_format = _FORMATS.get(spec.type, _TEXT) if spec.map is None else _TEXT
        column.width = min(max(len(header) + 4, _WIDTHS[0]), _WIDTHS[1])
        if (check := _check(spec, f"{letters}2", lists)) is not None:
            check.add(f"{letters}2:{letters}{ROWS + 1}")
            sheet.add_data_validation(check)
    sheet.freeze_panes = "A2"
    book.save(to)
    return len(columns)


def _title(manifest: Manifest) -> str:
    """A sheet that the manifest reads: the first plain name that it asks for."""
    named = [name for name in manifest.reading.sheets if not set(name) & set("*?[]:/\\")]
    return named[0][:31] if named else "Data"


def _columns(manifest: Manifest) -> Iterator[tuple[str, FieldSpec]]:
    """The columns that senders fill, each with the field that it is for: under its label, or its name if the label
    would be another's. A field of several columns has them all, with no checks of their own."""
    fields = [spec for spec in manifest.fields if spec.constant is None]
    uses = Counter(name for spec in fields for name in {spec.name.casefold(), (spec.label or spec.name).casefold()})
    for spec in fields:
        if isinstance(spec.source, FromColumns):
            part = FieldSpec(name=spec.name, description=spec.description)
            yield from ((header, part) for header in spec.source.columns)
        elif spec.source is None:
            yield (spec.label if spec.label and uses[spec.label.casefold()] == 1 else spec.name), spec


class _Lists:
    """The hidden sheet with drop-downs that are too long for a cell's own; made when the first one needs it."""

    def __init__(self, book: Workbook) -> None:
        self._book = book
        self._columns = 0

    def add(self, values: list[str]) -> str:
        """The formula of a drop-down with these values."""
        if LISTS not in self._book.sheetnames:
            self._book.create_sheet(LISTS).sheet_state = "hidden"
        sheet = self._book[LISTS]
        self._columns += 1
        for row, value in enumerate(values, 1):
            sheet.cell(row, self._columns, value).number_format = _TEXT
        letters = get_column_letter(self._columns)
        return f"={LISTS}!${letters}$1:${letters}${len(values)}"


def _listed(spec: FieldSpec) -> list[str]:
    """The values of a field's drop-down: what senders write, which `map` turns into others."""
    if spec.map is not None:
        return list(spec.map) if spec.otherwise in (None, "finding") else []
    if spec.type is FieldType.BOOLEAN:
        return list(_YES_NO)
    values = spec.allowed if isinstance(spec.allowed, tuple) else ()
    return [str(value) for value in values] if len(values) <= _MOST_LISTED else []


def _check(spec: FieldSpec, cell: str, lists: _Lists) -> DataValidation | None:
    """What Excel checks while a person types; None if there is nothing to check."""
    if values := _listed(spec):
        joined = ",".join(values)
        is_short = len(joined) <= _INLINE and not any("," in value or '"' in value for value in values)
        check = DataValidation(type="list", formula1=f'"{joined}"' if is_short else lists.add(values))
    elif spec.map is not None:
        return None
    elif (bounded := _bounded(spec)) is not None:
        check = bounded
    elif spec.min_length is not None or spec.max_length is not None:
        check = _between("textLength", spec.min_length, spec.max_length)
    elif spec.unique:
        column = cell[:-1]
        check = DataValidation(type="custom", formula1=f"COUNTIF(${column}$2:${column}${ROWS + 1},{cell})=1")
    else:
        return None
    check.allow_blank = not spec.required
    check.showErrorMessage = True
    check.errorStyle = "stop" if spec.severity == "error" else "warning"
    check.errorTitle = (spec.label or spec.name)[:32]
    check.error = "; ".join(_rules(spec))[:_MOST_ERROR]
    return check


def _bounded(spec: FieldSpec) -> DataValidation | None:
    if spec.type in NUMERIC:
        if spec.type is FieldType.INTEGER:
            return _between("whole", spec.min, spec.max, least=-(10**14), most=10**14)
        return _between("decimal", spec.min, spec.max, least=-1e300, most=1e300)
    if spec.type in (FieldType.DATE, FieldType.DATETIME):
        low, high = (None if bound is None else _day(str(bound)) for bound in (spec.min, spec.max))
        return _between("date", low, high, least=_DAY_ZERO, most="DATE(9999,12,31)")
    if spec.type is FieldType.TIME:
        return _between("time", None, None, least=0, most=0.999999)
    return None


def _between(
    kind: Literal["whole", "decimal", "date", "time", "textLength"],
    low: str | float | None,
    high: str | float | None,
    *,
    least: str | float = 0,
    most: str | float = 32_767,
) -> DataValidation:
    bounds = (least if low is None else low, most if high is None else high)
    return DataValidation(type=kind, operator="between", formula1=str(bounds[0]), formula2=str(bounds[1]))


def _day(iso: str) -> str:
    year, month, day = (int(part) for part in iso[:10].split("-"))
    return f"DATE({year},{month},{day})" if year >= 1900 else _DAY_ZERO


def _rules(spec: FieldSpec) -> Iterator[str]:
    """What a value has to be, in words."""
    yield _WORDS[spec.type]
    if spec.required:
        yield "never blank"
    if spec.unique:
        yield "each value once"
    if isinstance(spec.allowed, tuple) and len(spec.allowed) <= 12:
        yield "one of " + ", ".join(map(str, spec.allowed))
    if spec.min is not None:
        yield f"at least {spec.min}"
    if spec.max is not None:
        yield f"at most {spec.max}"
    if spec.min_length is not None:
        yield f"at least {spec.min_length} characters"
    if spec.max_length is not None:
        yield f"at most {spec.max_length} characters"
    if spec.pattern is not None:
        yield f"matches {spec.pattern}"


def _note(spec: FieldSpec) -> Iterator[str]:
    """The note on a header."""
    yield from filter(None, [_EVIDENCE.sub("", spec.description or "")])
    yield "; ".join(_rules(spec))
    if spec.examples:
        yield "for example " + ", ".join(map(str, spec.examples[:3]))
