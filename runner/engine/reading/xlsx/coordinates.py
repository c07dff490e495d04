"""A1 references to numbers and back."""

from functools import lru_cache

from runner.engine.reading.books import Area


@lru_cache(maxsize=20_000)
def column_number(letters: str) -> int:
    """A is 1. Zero for what is no column."""
    number = 0
    for letter in letters.upper():
        if not "A" <= letter <= "Z":
            return 0
        number = number * 26 + ord(letter) - 64
        if number > 1_000_000:
            return 0
    return number


def cell(reference: str) -> tuple[int, int]:
    """(row, column) of a reference such as ``$B$7``; 0 for the part that is missing or wrong."""
    reference = reference.replace("$", "").strip()
    letters = reference.rstrip("0123456789")
    digits = reference[len(letters) :]
    row = int(digits) if digits and len(digits) < 10 else 0
    return row, column_number(letters)


def area(reference: str) -> Area | None:
    """The area of ``A1:C5`` or ``A1``; None where it is none."""
    first, _, last = reference.partition(":")
    row, column = cell(first)
    last_row, last_column = cell(last or first)
    if min(row, column, last_row, last_column) < 1:
        return None
    return min(row, last_row), min(column, last_column), max(row, last_row), max(column, last_column)
