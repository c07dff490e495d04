"""Our readers against calamine, openpyxl and xlrd: every difference belongs to a class with a reason.

By default the small files are compared, in well under a minute. ``ADE_DIFFERENTIAL=all`` compares every file and
prints how many cells fell into each class.
"""

import io
import os
import random
import re
import warnings
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from pathlib import Path

import openpyxl
import pytest
import xlrd
import xlsxwriter
import xlwt
from python_calamine import CalamineWorkbook, SheetTypeEnum

from runner.engine.reading import NO_CACHED_VALUE, CellError, InputUnreadable, open_book

SHARED = Path(__file__).parents[3] / "shared"
EVERYTHING = os.environ.get("ADE_DIFFERENTIAL") == "all"
CALAMINE_BYTES, OPENPYXL_BYTES = (10**12, 10**12) if EVERYTHING else (60_000, 14_000)
XML_BLANKS = " \t\r\n"
DAY_ZERO = datetime(1899, 12, 30)
LAST_SERIAL = 2_958_466

# Why a cell may differ. The reason says who is right, and by what.
CLASSES = {
    "errors_lost": "calamine gives a blank for an error cell; we give the error",
    "never_calculated": "a formula without a stored result: we say so, the others give a blank or the formula's text",
    "blanks_at_ends": "text without xml:space=preserve: Excel drops blanks around it, openpyxl keeps them",
    "raised_or_struck": "footnote marks that are raised, and parts that are struck out, are no part of what a cell says to us",
    "escapes": "_x000D_ stands for a character; some readers leave some of these escapes as they stand",
    "link_target": "openpyxl gives a blank cell with a link the link's target; the cell shows nothing",
    "under_a_merge": "openpyxl drops what a file stores in cells covered by a merge; we give what is stored",
    "no_such_day": "a number in a date format that no calendar has (0, negative, past 9999): we keep the number",
    "rounding": "a day number in a double is exact to a millisecond: we round to it, the others show 13:59:59.999999",
    "epoch_1904": "calamine counts the days of a 1904 book from 1900 in some files",
    "date_format": "openpyxl and calamine do not know some date formats (East Asian ones, A/P) and give the number",
    "iso_dates": "calamine gives an ISO date cell as its text; we give the moment",
    "part_twice": "the zip holds two parts of one name: which is read is anyone's guess",
    "leap_day_1900": "days before March 1900: Excel counts a 29 February 1900, the readers differ in what they make of it",
    "clock": "a time of day: the others add a day of 1899 or 1900 to it",
    "durations": "a format of elapsed hours: we give a duration, the others a time or a moment",
    "continued_text": "calamine cuts a formula's text where its first record ends; we read those after it",
    "code_page": "a book of Excel 5 that names no code page: xlrd takes Latin-1, we what its fonts are made for",
    "xlrd_dates": "xlrd gives the number of a date; it is the same day number",
}
FILE_CLASSES = {
    "both_refuse": "neither reads it",
    "only_ours": "the other reader fails on it",
    "checksum": "a part's checksum is wrong: we refuse, calamine and openpyxl do not look at all parts",
    "broken_part": "a part that we need is not well-formed XML",
    "no_cells": "a chart, dialog or macro sheet, or one that the other gives no cell of",
    "embedded": "calamine reads a workbook that is embedded in the book",
    "strict": "openpyxl sees no sheets in a strict OOXML workbook",
}


def normal(value):
    """One type for what readers type differently and mean alike."""
    if value == "":
        return None
    if isinstance(value, CellError):
        return str(value)
    if isinstance(value, bool) or value is NO_CACHED_VALUE:
        return value
    if isinstance(value, int | float):
        return float(value)
    if type(value) is date:
        return datetime(value.year, value.month, value.day)
    return value


def serial(value):
    if isinstance(value, time):
        return (datetime.combine(DAY_ZERO, value) - DAY_ZERO) / timedelta(days=1)
    if isinstance(value, timedelta):
        return value / timedelta(days=1)
    return (value - DAY_ZERO) / timedelta(days=1)


def unescaped(text):
    return re.sub("_x([0-9A-Fa-f]{4})_", lambda found: chr(int(found[1], 16)), text)


def why(reader, ours, theirs, *, merged=False, twice=False):
    """The class of a difference; None where there is no reason for it. Both values are normal ones."""
    stamps = (datetime, time, timedelta)
    if twice:
        return "part_twice"
    if ours is NO_CACHED_VALUE:
        return "never_calculated"
    if theirs is None:
        if reader == "calamine" and isinstance(ours, str) and ours.startswith("#"):
            return "errors_lost"
        return "under_a_merge" if merged else None
    if ours is None and isinstance(theirs, str):
        linked = reader == "openpyxl" and theirs.startswith(("mailto:", "http:", "https:"))
        return "link_target" if linked else "blanks_at_ends" if not theirs.strip(XML_BLANKS) else None
    if isinstance(ours, str) and isinstance(theirs, str):
        if reader == "calamine" and len(theirs) > 4_000 and ours.startswith(theirs):
            return "continued_text"
        if reader == "xlrd" and any(same_bytes(ours, theirs, page) for page in ("cp1251", "cp1250", "cp1253")):
            return "code_page"
        if "".join(ours.split()) == "".join(theirs.split()) and ours == ours.strip(XML_BLANKS):
            return "blanks_at_ends"
        if ours == unescaped(theirs):
            return "escapes"
        return "raised_or_struck" if is_part_of("".join(ours.split()), theirs) else None
    if isinstance(ours, float):
        outside = not 1 <= ours < LAST_SERIAL
        return "no_such_day" if outside and (isinstance(theirs, stamps) or theirs == "#VALUE!") else None
    if isinstance(ours, stamps) and isinstance(theirs, float):
        early = isinstance(ours, datetime) and ours < datetime(1900, 3, 1)
        if abs(serial(ours) - early - theirs) > 1e-8:
            return None
        return "xlrd_dates" if reader == "xlrd" else "date_format"
    if isinstance(ours, datetime) and isinstance(theirs, str):
        return "iso_dates" if datetime.fromisoformat(theirs).replace(tzinfo=None) == ours else None
    return between_stamps(ours, theirs) if isinstance(ours, stamps) and isinstance(theirs, stamps) else None


def is_part_of(ours, theirs):
    """Whether our text is theirs with something left out."""
    rest = iter(theirs)
    return bool(ours) and all(char in rest for char in ours)


def same_bytes(ours, theirs, page):
    try:
        return ours.encode(page) == theirs.encode("latin-1")
    except UnicodeEncodeError:
        return False


def between_stamps(ours, theirs):
    gap = serial(ours) - serial(theirs)
    if abs(gap) * 86_400 < 0.002:
        return (
            "rounding"
            if type(ours) is type(theirs)
            else "durations"
            if timedelta in map(type, (ours, theirs))
            else "clock"
        )
    if abs(gap - 1462) * 86_400 < 0.002:
        return "epoch_1904"
    if type(ours) is type(theirs) is datetime and ours < datetime(1900, 3, 2) and abs(gap) <= 1:
        return "leap_day_1900"
    if isinstance(ours, time) and isinstance(theirs, datetime) and abs(gap + round(-gap)) * 86_400 < 0.002:
        return "clock"
    return "durations" if timedelta in map(type, (ours, theirs)) else None


@dataclass
class Reading:
    """What a reader made of a file."""

    failed: str = ""
    sheets: dict = field(default_factory=dict)  # name -> {(row, column): value}
    merged: dict = field(default_factory=dict)  # name -> {(row, column)} covered by a merge
    no_cells: set = field(default_factory=set)  # sheets that can hold none


def by_us(path):
    try:
        with open_book(path, name=path.name) as book:
            cells = {
                sheet.name: {
                    (row, column): value for row, values in sheet.rows() for column, value in enumerate(values, 1)
                }
                for sheet in book.sheets
            }
        return Reading(sheets={name: present(one) for name, one in cells.items()})
    except InputUnreadable as error:
        return Reading(failed=error.code)


def present(cells):
    return {place: value for place, raw in cells.items() if (value := normal(raw)) is not None}


def by_calamine(path):
    try:
        book = CalamineWorkbook.from_path(str(path))
        found = Reading()
        for one in book.sheets_metadata:
            if one.typ != SheetTypeEnum.WorkSheet:
                found.no_cells.add(one.name)
            try:
                rows = book.get_sheet_by_name(one.name).to_python(skip_empty_area=False)
            except Exception:  # noqa: BLE001  # a sheet that it cannot read
                found.no_cells.add(one.name)
                rows = []
            found.sheets[one.name] = present(
                {(row, column): value for row, values in enumerate(rows, 1) for column, value in enumerate(values, 1)}
            )
        return found
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return Reading(failed=type(error).__name__)


def by_openpyxl(path):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(
                io.BytesIO(path.read_bytes()), data_only=True
            )  # it closes no file that it fails on
        found = Reading()
        for sheet in book.worksheets:
            cells = {(cell.row, cell.column): cell.value for row in sheet.iter_rows() for cell in row}
            found.sheets[sheet.title] = present(cells)
            found.merged[sheet.title] = {
                (row, column)
                for area in sheet.merged_cells.ranges
                for row in range(area.min_row, area.max_row + 1)
                for column in range(area.min_col, area.max_col + 1)
            }
        return found
    except Exception as error:  # noqa: BLE001  # whatever it fails with
        return Reading(failed=type(error).__name__)


def by_xlrd(path):
    try:
        book = xlrd.open_workbook(path, logfile=io.StringIO())
        found = Reading()
        for sheet in book.sheets():
            cells = {}
            for row in range(sheet.nrows):
                for column in range(sheet.ncols):
                    kind, value = sheet.cell_type(row, column), sheet.cell_value(row, column)
                    if kind == xlrd.XL_CELL_BOOLEAN:
                        value = bool(value)
                    elif kind == xlrd.XL_CELL_ERROR:
                        value = xlrd.error_text_from_code.get(value, "#VALUE!")
                    cells[row + 1, column + 1] = value
            found.sheets[sheet.name] = present(cells)
        return found
    except Exception as error:  # noqa: BLE001  # whatever it fails with
        return Reading(failed=type(error).__name__)


READERS = {"calamine": by_calamine, "openpyxl": by_openpyxl, "xlrd": by_xlrd}


def compare(path, reader, ours, theirs, counts):
    """Count the differences by class; those that have none, as lines that name the place and the types alone."""
    if ours.failed or theirs.failed:
        kind = file_class(path, ours, theirs)
        counts[kind] += 1
        return [] if kind else [f"{path.name}: {reader} {theirs.failed or 'reads it'}, we {ours.failed or 'read it'}"]
    unexplained = []
    twice = holds_twice(path)
    for name in ours.sheets.keys() | theirs.sheets.keys():
        if name not in ours.sheets or name not in theirs.sheets or name in theirs.no_cells:
            kind = sheet_class(path, reader, name, ours, theirs)
            counts[kind] += 1
            if kind is None:
                unexplained.append(f"{path.name}: sheet {name!r} is read by one of us and {reader} only")
            continue
        one, other = ours.sheets[name], theirs.sheets[name]
        merged = theirs.merged.get(name, ())
        for place in one.keys() | other.keys():
            a, b = one.get(place), other.get(place)
            counts["cells"] += 1
            if a == b and (isinstance(a, bool) == isinstance(b, bool)):
                continue
            kind = why(reader, a, b, merged=place in merged, twice=twice)
            counts[kind] += 1
            if kind is None:
                unexplained.append(
                    f"{path.name} {name!r} R{place[0]}C{place[1]}: {type(a).__name__}, {reader} {type(b).__name__}"
                )
    return unexplained


def file_class(path, ours, theirs):
    if ours.failed and theirs.failed:
        return "both_refuse"
    if theirs.failed:
        return "only_ours"
    with zipfile.ZipFile(path) as archive:
        if archive.testzip() is not None:
            return "checksum"
        for name in archive.namelist():
            if name.endswith((".rels", "workbook.xml", "sharedStrings.xml")) or "/worksheets/sheet" in name:
                try:
                    openpyxl.xml.functions.fromstring(archive.read(name))
                except Exception:  # noqa: BLE001  # lxml and the standard library differ
                    return "broken_part"
    return None


def sheet_class(path, reader, name, ours, theirs):
    if name in theirs.no_cells or not theirs.sheets.get(name, {"not": "there"}):
        return "no_cells"
    if reader == "calamine" and path.suffix == ".xls":
        raw = path.read_bytes()
        books = raw.count("\0Workbook\0".encode("utf-16-le")[1:]) + raw.count("Book\0".encode("utf-16-le"))
        return "embedded" if books > 1 else None
    if reader == "openpyxl" and not theirs.sheets:
        with zipfile.ZipFile(path) as archive:
            if b"purl.oclc.org" in archive.read("xl/workbook.xml"):
                return "strict"
    return None


def holds_twice(path):
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        names = [name.lower() for name in archive.namelist()]
    return len(set(names)) != len(names)


def corpus_files(most_bytes):
    kinds = (".xlsx", ".xlsm", ".xltx", ".xltm")
    found = (path for path in (SHARED / "corpus").rglob("*") if path.suffix.lower() in kinds)
    return sorted(path for path in found if path.stat().st_size <= most_bytes)


def report(counts):
    assert set(counts) <= {"cells", *CLASSES, *FILE_CLASSES}
    if EVERYTHING:
        for name, count in counts.most_common():
            print(f"{count:>9} {name:<18} {CLASSES.get(name) or FILE_CLASSES.get(name, '')}")


@pytest.mark.corpus
@pytest.mark.skipif(not (SHARED / "corpus").exists(), reason="the shared corpus is not here")
@pytest.mark.parametrize(("reader", "most"), [("calamine", CALAMINE_BYTES), ("openpyxl", OPENPYXL_BYTES)])
@pytest.mark.timeout(3600 if EVERYTHING else 300)
def test_real_workbooks_read_as_other_readers_read_them(reader, most):
    counts, unexplained = Counter(), []
    for path in corpus_files(most):
        unexplained += compare(path, reader, by_us(path), READERS[reader](path), counts)
    assert unexplained == []
    assert counts["cells"] > 5_000
    report(counts)


@pytest.mark.corpus
@pytest.mark.skipif(not (SHARED / "eval" / "repro" / "files").exists(), reason="the shared files are not here")
@pytest.mark.parametrize("reader", ["xlrd", "calamine"])
def test_real_xls_files_read_as_other_readers_read_them(reader):
    counts, unexplained = Counter(), []
    for path in sorted((SHARED / "eval" / "repro" / "files").glob("*.xls")):
        unexplained += compare(path, reader, by_us(path), READERS[reader](path), counts)
    assert unexplained == []
    assert counts["cells"] > 5_000
    report(counts)


def made_rows(seed):
    """Rows of every kind of value that the writers take."""
    dice = random.Random(seed)
    makers = [
        lambda: dice.randrange(-(10**9), 10**9),
        lambda: round(dice.uniform(-1e6, 1e6), dice.randrange(6)),
        lambda: dice.choice(
            ["", "Ann", "O'Hara", "é東😀", " blank ", "two\nlines", "<&>", "_x0041_", "=1+1", "x" * 300]
        ),
        lambda: dice.random() < 0.5,
        lambda: datetime(1950, 1, 1) + timedelta(days=dice.randrange(40_000)),
        lambda: datetime(2020, 1, 1) + timedelta(seconds=dice.randrange(10**8)),
        lambda: time(dice.randrange(24), dice.randrange(60)),
        lambda: None,
    ]
    return [[dice.choice(makers)() for _ in range(12)] for _ in range(60)]


def with_xlwt(path, rows, formats):
    book = xlwt.Workbook()
    sheet = book.add_sheet("Data")
    for row, values in enumerate(rows):
        for column, value in enumerate(values):
            if value is not None:
                code = formats.get(type(value), "General")
                sheet.write(
                    row,
                    column,
                    value,
                    xlwt.easyxf(num_format_str=code) if code != "General" else xlwt.Style.default_style,
                )
    book.save(str(path))


def with_openpyxl(path, rows, formats):
    book = openpyxl.Workbook()
    for row, values in enumerate(rows, 1):
        for column, value in enumerate(values, 1):
            cell = book.active.cell(row, column, value)
            if isinstance(value, str):
                cell.data_type = "s"
            if value is not None and type(value) in formats:
                cell.number_format = formats[type(value)]
    book.save(path)


def with_xlsxwriter(path, rows, formats):
    book = xlsxwriter.Workbook(str(path), {"strings_to_formulas": False, "strings_to_urls": False})
    sheet = book.add_worksheet("Data")
    styles = {kind: book.add_format({"num_format": code}) for kind, code in formats.items()}
    for row, values in enumerate(rows):
        for column, value in enumerate(values):
            if value is not None:
                sheet.write(row, column, value, styles.get(type(value)))
    book.close()


FORMATS = [
    {datetime: "yyyy-mm-dd hh:mm:ss", time: "hh:mm:ss"},
    {datetime: "dd/mm/yy", time: "h:mm AM/PM", int: "00000", float: "0.00"},
    {datetime: "d. mmmm yyyy", time: "[h]:mm", int: '"INV-"0000', float: "#,##0.00"},
]


@pytest.mark.parametrize("formats", FORMATS, ids=["iso", "short", "long"])
@pytest.mark.parametrize(
    ("writer", "kind", "readers"),
    [
        (with_xlwt, "xls", ("xlrd", "calamine")),
        (with_openpyxl, "xlsx", ("openpyxl", "calamine")),
        (with_xlsxwriter, "xlsx", ("openpyxl", "calamine")),
    ],
    ids=["xlwt", "openpyxl", "xlsxwriter"],
)
def test_made_workbooks_read_as_other_readers_read_them(tmp_path, writer, kind, readers, formats):
    counts, unexplained = Counter(), []
    for seed in range(4):
        path = tmp_path / f"{seed}.{kind}"
        writer(path, made_rows(seed), formats)
        ours = by_us(path)
        for reader in readers:
            unexplained += compare(path, reader, ours, READERS[reader](path), counts)
    assert unexplained == []
    assert counts["cells"] > 4_000


def test_a_difference_without_a_reason_is_none_of_the_classes():
    assert why("calamine", 1.0, 2.0) is None
    assert why("calamine", "a", None) is None
    assert why("openpyxl", None, "a") is None
    assert why("openpyxl", datetime(2020, 1, 1), datetime(2020, 1, 2)) is None
    assert why("xlrd", datetime(2020, 1, 1), 5.0) is None
    assert why("openpyxl", "a b", "a  c") is None
