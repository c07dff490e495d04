"""Cell addresses and ranges in A1 notation."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_BEYOND_ALL_SHEETS: Final = 1_000_000  # columns


@lru_cache(maxsize=4096)
def letters(column: int) -> str:
    """Return the letters of a 1-based column: 1 is A, 27 is AA."""
    name = ""
    while column:
        column, digit = divmod(column - 1, 26)
        name = chr(65 + digit) + name
    return name


@lru_cache(maxsize=20_000)
def column_number(name: str) -> int:
    """Return the 1-based column of letters, in any case: A is 1; 0 for a text that is not a column."""
    number = 0
    for letter in name.upper():
        if not "A" <= letter <= "Z":
            return 0
        number = number * 26 + ord(letter) - 64
        if number > _BEYOND_ALL_SHEETS:
            return 0
    return number


def cell(row: int, column: int) -> str:
    """Return the address of a cell: B7."""
    return f"{letters(column)}{row}"


def area(first_row: int, first_column: int, last_row: int, last_column: int) -> str:
    """Return the address of an area: A1:C5."""
    return f"{cell(first_row, first_column)}:{cell(last_row, last_column)}"


@dataclass(frozen=True, slots=True)
class CellRange:
    """A rectangle of cells, 1-based, both ends included."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def a1(self) -> str:
        """The address of the range: A1:C5."""
        return area(self.top, self.left, self.bottom, self.right)
