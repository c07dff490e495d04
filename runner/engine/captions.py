"""Captions between the rows of a table as values of a column (`reading.group_rows: fill`)."""

from collections.abc import Sequence
from typing import Final, NamedTuple

JOIN: Final = " / "


class Caption(NamedTuple):
    row: int
    column: int  # among the table's own columns; a caption further left is of a higher level
    text: str


class Captions:
    """The captions that hold at the row reached so far.

    A caption holds until the next one of its level. Captions that stand right below each other are levels of one
    another: the next block of captions replaces as many levels, from the innermost, as it has captions. Where captions
    stand in different columns, the column is the level.
    """

    def __init__(self) -> None:
        self._levels: list[Caption] = []
        self._fresh: list[Caption] = []  # captions with no data below them so far
        self._value: str | None = None

    def fill(self, numbers: Sequence[int], captions: Sequence[Caption]) -> list[str | None]:
        """One value for each row; the captions stand between them."""
        out: list[str | None] = []
        for caption in captions:
            while len(out) < len(numbers) and numbers[len(out)] < caption.row:
                out.append(self._settled())
            self._fresh.append(caption)
        if len(out) < len(numbers):
            out += [self._settled()] * (len(numbers) - len(out))
        return out

    def _settled(self) -> str | None:
        if self._fresh:
            self._levels = _replaced(self._levels, self._fresh)
            self._fresh = []
            self._value = JOIN.join(c.text.strip() for c in self._levels)
        return self._value


def _replaced(levels: list[Caption], fresh: list[Caption]) -> list[Caption]:
    if len({c.column for c in (*levels, *fresh)}) > 1:
        for caption in fresh:
            levels = [*(c for c in levels if c.column < caption.column), caption]
        return levels
    return [*levels[: max(0, len(levels) - len(fresh))], *fresh]
