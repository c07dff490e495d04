"""Whether two workbooks hold the same cells: values and their types, in their places."""

from datetime import date, datetime
from itertools import zip_longest
from pathlib import Path

import python_calamine


def rows_of(path: Path) -> list[list[object]]:
    """The first sheet, each value as what it means: 5 and 5.0 are one number, midnight is a day."""
    sheet = python_calamine.CalamineWorkbook.from_path(path).get_sheet_by_index(0)
    return [[_plain(cell) for cell in row] for row in sheet.to_python(skip_empty_area=False)]


def differences(ours: Path, theirs: Path, most: int = 5) -> tuple[int, list[str]]:
    """How many cells were compared, and the first that differ."""
    compared, found = 0, []
    for number, (left, right) in enumerate(zip_longest(rows_of(ours), rows_of(theirs), fillvalue=[]), 1):
        for column, (a, b) in enumerate(zip_longest(left, right), 1):
            compared += 1
            if (a != b or type(a) is not type(b)) and len(found) < most:
                found.append(f"row {number}, column {column}: {a!r} and {b!r}")
    return compared, found


def assert_equal(ours: Path, theirs: Path, way: str) -> int:
    compared, found = differences(ours, theirs)
    if found:
        raise SystemExit(f"{way} does not do the same work, so it is not timed: " + "; ".join(found))
    return compared


def _plain(cell: object) -> object:
    if cell == "":
        return None
    if isinstance(cell, datetime):
        return cell.date() if (cell.hour, cell.minute, cell.second) == (0, 0, 0) else cell
    if isinstance(cell, bool | date):
        return cell
    return float(cell) if isinstance(cell, int) else cell
