"""The round trip against an oracle: break cells of a good file, correct them in rejects.xlsx, and the result must be
that of the good file, whatever its format and layout, and however the sender saves the corrected rows."""

import csv
import io
import random
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import xlwt
from openpyxl.styles import Font, PatternFill

from tests.support.engine_jobs import run_job
from tests.unit.engine.test_rejects import mended

FIELDS = [
    {"name": "member_id", "required": True, "unique": True},
    {"name": "email", "type": "email"},
    {"name": "start_date", "type": "date"},
    {"name": "amount", "type": "decimal"},
    {"name": "quantity", "type": "integer"},
    {"name": "plan", "type": "enum", "allowed": ["gold", "silver"]},
    {"name": "zip"},
    {"name": "active", "type": "boolean"},
]
WRONG: dict[str, list[Any]] = {
    "member_id": [None],
    "email": ["nobody", "a@"],
    "start_date": ["31.02.2026", "soon"],
    "amount": ["n/k", "lots"],
    "quantity": ["x", 3.5],
    "plan": ["tin"],
    "active": ["perhaps"],
}
NOTES = [None, "x", "a, b; c", 'say "hi"', "two\nlines", "=1+1", "007", " pad ", "ünï 漢", "12/13"]
MANIFEST = {"output": {"rejects": True}, "on_error": "split"}
MENDED = ["as it is", "sorted", "moved", "inserted", "no to-do", "renamed", "no titles", "two files", ",", ";", "\t"]
ENCODINGS = {",": "utf-8", ";": "utf-8-sig", "\t": "utf-16"}
Rows = list[list[tuple[Any, str]]]  # value and number format


class GoodFile:
    """A made-up file, the cells of it that are broken, and where they are."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = random.Random(seed)
        self.format = dice.choice(["xlsx", "xlsx", "csv", "xls"])
        names = [*(str(field["name"]) for field in FIELDS), "note", "due"]
        self.names = [n for n in names if n in ("member_id", "email", "start_date") or dice.random() < 0.8]
        dice.shuffle(self.names)
        self.titles, self.left = dice.choice([0, 0, 1, 2]), dice.choice([0, 0, 1])
        self.day = dice.choice(["yyyy-mm-dd", "dd.mm.yyyy", "m/d/yyyy", "dd/mm/yy"])
        self.number = dice.choice(["General", "#,##0.00", "0.00", "0.0"])
        self.stacked = self.format == "xlsx" and dice.random() < 0.3
        self.sheets = 2 if self.format == "xlsx" and dice.random() < 0.3 else 1
        tables = range(2 if self.stacked else 1)
        self.tables = [(sheet, self._rows(f"S{sheet}T{t}")) for sheet in range(self.sheets) for t in tables]
        able = [name for name in WRONG if name in self.names]
        self.broken: dict[tuple[int, int, str], Any] = {}
        for number, (_, rows) in enumerate(self.tables):
            for _ in range(dice.randrange(1, 2 + len(rows) // 4)):
                name = dice.choice(able)
                self.broken[number, dice.randrange(len(rows)), name] = dice.choice(WRONG[name])

    def _rows(self, prefix: str) -> list[dict[str, Any]]:
        dice = self.dice
        return [
            {
                "member_id": f"{prefix}-{n:05}",
                "email": f"m{n}@b.com",
                "start_date": date(2024, 1, 1) + timedelta(days=dice.randrange(900)),
                "amount": round(dice.uniform(0, 99_999), 3) if dice.random() < 0.8 else dice.randrange(10**9),
                "quantity": dice.randrange(1_000),
                "plan": dice.choice(["gold", "silver"]),
                "zip": f"{dice.randrange(99_999):05}",
                "active": dice.random() < 0.5,
                "note": dice.choice(NOTES),
                "due": datetime(2026, 1, 1) + timedelta(seconds=dice.randrange(10**7)),
            }
            for n in range(dice.randrange(8, 40))
        ]

    def of_row(self, sheet: int, row: int) -> tuple[int, int]:
        """The table and the place in it of a row of a sheet."""
        line = 0
        for number, (on, rows) in enumerate(self.tables):
            if on == sheet:
                line += (4 if line else self.titles) + 1
                if line < row <= line + len(rows):
                    return number, row - line - 1
                line += len(rows)
        raise LookupError(row)

    def corrected(self, table: int, row: int, header: Any) -> tuple[Any] | None:
        name = str(header).lower().replace(" ", "_")
        if (table, row, name) not in self.broken:
            return None
        value = self.tables[table][1][row][name]
        return (shown(value, self.day),) if self.format == "csv" and isinstance(value, date) else (value,)

    def write(self, folder: Path, *, broken: bool) -> Path:
        folder.mkdir(parents=True)
        sheets: dict[int, Rows] = {}
        formats = {"start_date": self.day, "due": "yyyy-mm-dd hh:mm:ss", "amount": self.number}
        for number, (sheet, rows) in enumerate(self.tables):
            lines = sheets.setdefault(sheet, [])
            lines += (
                [[], [], [("Second part", "")], []] if lines else [[(f"Title {n}", "")] for n in range(self.titles)]
            )
            lines.append([(name.replace("_", " ").title(), "") for name in self.names])
            for n, row in enumerate(rows):
                values = row | {k: v for (t, at, k), v in self.broken.items() if broken and (t, at) == (number, n)}
                lines.append([(values[name], formats.get(name, "General")) for name in self.names])
        {"csv": self._csv, "xls": self._xls, "xlsx": self._xlsx}[self.format](folder / "in.xlsx", sheets)
        return folder

    def _csv(self, path: Path, sheets: dict[int, Rows]) -> None:
        text = io.StringIO(newline="")
        for line in sheets[0]:
            csv.writer(text, delimiter=";").writerow(
                [*[""] * self.left, *(shown(v, f if isinstance(v, date) else "") for v, f in line)]
            )
        path.write_bytes(text.getvalue().encode())

    def _xls(self, path: Path, sheets: dict[int, Rows]) -> None:
        book = xlwt.Workbook()
        sheet = book.add_sheet("S0")
        for r, line in enumerate(sheets[0]):
            for c, (value, code) in enumerate(line, self.left):
                plain = value is None or isinstance(value, str) or not code
                sheet.write(r, c, value, xlwt.Style.default_style if plain else xlwt.easyxf(num_format_str=code))
        book.save(str(path))

    def _xlsx(self, path: Path, sheets: dict[int, Rows]) -> None:
        book = openpyxl.Workbook()
        book.remove(book.worksheets[0])
        for number, lines in sheets.items():
            sheet = book.create_sheet(f"S{number}")
            for r, line in enumerate(lines, 1):
                for c, (value, code) in enumerate(line, 1 + self.left):
                    cell = sheet.cell(r, c, value)
                    if isinstance(value, str):
                        cell.data_type = "s"
                    if isinstance(value, date) or r % 3:  # some cells of a column have no format of their own
                        cell.number_format = code or "General"
                    if not code:
                        cell.font = Font(bold=True)
                    elif r % 2:
                        cell.fill = PatternFill("solid", fgColor="FFEEEEFF")
        book.save(path)


def shown(value: Any, code: str) -> str:
    """What a spreadsheet program writes of a cell into a text file."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, date):
        plain = {"m/d/yyyy": f"{value.month}/{value.day}/{value.year}"}
        ways = {"yyyy-mm-dd": "%Y-%m-%d", "dd.mm.yyyy": "%d.%m.%Y", "dd/mm/yy": "%d/%m/%y"}
        return plain.get(code) or f"{value:{ways.get(code, '%Y-%m-%d %H:%M:%S')}}"
    return {"#,##0.00": f"{value:,.2f}", "0.00": f"{value:.2f}", "0.0": f"{value:.1f}"}.get(code, f"{value:.11g}")


def key_of(row: list[tuple[Any, str]]) -> str:
    return next((str(v) for v, _ in row if str(v).startswith(("ade: key", "ade: row", "ade: top"))), "")


def save(path: Path, sheets: dict[str, Rows]) -> Path:
    if path.suffix == ".csv":
        delimiter = path.stem[-1]
        text = io.StringIO(newline="")
        for (rows,) in [sheets.values()]:
            csv.writer(text, delimiter=delimiter).writerows([shown(v, code) for v, code in row] for row in rows)
        path.write_bytes(text.getvalue().encode(ENCODINGS[delimiter]))
        return path
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for r, row in enumerate(rows, 1):
            for c, (value, code) in enumerate(row, 1):
                cell = sheet.cell(r, c, value)
                if isinstance(value, str):
                    cell.data_type = "s"
                cell.number_format = code
    book.save(path)
    return path


def corrected(good: GoodFile, folder: Path, how: str) -> list[Path]:
    """Correct what is wrong as a sender might, and save it."""
    book = openpyxl.load_workbook(folder / "untouched.xlsx")
    files: list[dict[str, Rows]] = [{}, {}] if how == "two files" else [{}]
    for sheet in book.worksheets:
        for part, made in enumerate(files):
            rows = [[(cell.value, cell.number_format) for cell in row] for row in sheet.iter_rows()]
            header: list[tuple[Any, str]] = []
            for n, row in enumerate(rows):
                kind, _, place = key_of(row).partition(" ")[2].partition(" ")
                header = row if kind == "key" else header
                if kind == "row" and (len(files) == 1 or n % 2 == part):
                    at = good.of_row(*map(int, place.split("/")[-2:]))
                    for c, (name, _) in enumerate(header):
                        if (right := good.corrected(*at, name)) is not None:
                            row[c] = right[0], good.day if isinstance(right[0], date) else row[c][1]
            made[f"Mine {sheet.title}" if how == "renamed" else sheet.title] = changed(rows, how, good)
    if how in ENCODINGS:
        return [save(folder / f"mended{how}.csv", files[0])] if len(files[0]) == 1 else []
    return [save(folder / f"mended{n}.xlsx", made) for n, made in enumerate(files)]


def changed(rows: Rows, how: str, good: GoodFile) -> Rows:
    width = len(rows[0])
    if how == "sorted" and not good.stacked:
        heads = [row for row in rows if not key_of(row).startswith("ade: row")]
        rows = heads + sorted(rows[len(heads) :], key=key_of, reverse=True)
    elif how == "moved":
        order = good.dice.sample(range(width), width)
        rows = [[row[n] for n in order] for row in rows]
    elif how == "inserted":
        rows = [[*row[:2], ("mine", "General"), *row[2:]] for row in rows]
    elif how == "no to-do":
        rows = [[*row[: width - 2], row[-1]] for row in rows]
    elif how == "no titles":
        rows = [row for row in rows if not key_of(row).startswith("ade: top")]
    return rows


def check(folder: Path, seed: int, how: str) -> None:
    good = GoodFile(seed)
    whole = run_job(good.write(folder / "good", broken=False), fields=FIELDS, **MANIFEST)
    if whole.end["summary"]["rows_with_errors"]:
        return  # two tables of this layout are not told apart; other tests are about that
    first = run_job(good.write(folder / "bad", broken=True), fields=FIELDS, **MANIFEST)
    assert first.end["summary"]["rows_with_errors"] == len({place[:2] for place in good.broken})
    untouched = (first.folder / "rejects.xlsx").rename(first.folder / "untouched.xlsx")
    again = mended(first.folder, untouched, fields=FIELDS, **MANIFEST)
    assert again.artifact["mends"]["rows"] == 0, "what nobody touched changes nothing"
    if files := corrected(good, first.folder, how):
        done = mended(first.folder, *files, keys=tuple(file.name for file in files), fields=FIELDS, **MANIFEST)
        if how in ENCODINGS and "date_order_assumed" in done.artifact["validation"]["by_code"]:
            return  # a date of a text file that nothing explains: a guess, and reported as one
        assert rounded(done.rows(), good, how) == rounded(whole.rows(), good, how)


def rounded(rows: list[list[Any]], good: GoodFile, how: str) -> list[list[Any]]:
    """Rows as far as a text file tells: a corrected amount has the decimals that its cell shows."""
    places = {"#,##0.00": 2, "0.00": 2, "0.0": 1}.get(good.number)
    if how not in ENCODINGS or places is None or "amount" not in rows[0]:
        return rows
    at, name = rows[0].index("amount"), rows[0].index("member_id")
    fixed = {good.tables[t][1][n]["member_id"] for t, n, field in good.broken if field == "amount"}
    return [[*r[:at], round(r[at], places) if r[name] in fixed else r[at], *r[at + 1 :]] for r in rows]


@pytest.mark.slow
@pytest.mark.parametrize("how", MENDED)
def test_a_corrected_file_gives_what_the_good_file_gives(tmp_path, how):
    check(tmp_path, 1 + MENDED.index(how), how)


@pytest.mark.long
@pytest.mark.parametrize("how", MENDED)
def test_many_corrected_files_give_what_good_ones_give(tmp_path, how):
    for seed in range(100, 160):
        check(tmp_path / str(seed), seed, how)
