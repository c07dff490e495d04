"""What the column of a split's field holds in one of the split files."""

from collections.abc import Collection
from typing import Final, NamedTuple

WRONG_FILE: Final = "normalized has a row that belongs to another file of the split"


class SplitColumn(NamedTuple):
    """The column of the field that the rows are split by, in the files of one label."""

    at: int  # the index of the column
    values: frozenset[str]  # all that the manifest declares
    value: str | None  # that every row has; None: the rows have none of `values`

    def holds(self, texts: Collection[str | None]) -> bool:
        """Whether all of these cells may be in the file; None: a blank, or something else than a text."""
        if self.value is None:
            return self.values.isdisjoint(texts)
        return all(text == self.value for text in texts)
