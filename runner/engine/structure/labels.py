"""What a row is for: the closed set of labels that detectors, rules and the decoder share."""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum


class Label(IntEnum):
    """A rule in `row_types/` names a label in lower case: `{"scores": {"total": 1.5}}`."""

    HEADER = 0
    DATA = 1
    TOTAL = 2  # a sum, a mean: derived from other rows
    GROUP = 3  # a caption over the data rows that follow
    TITLE = 4  # above a table and no part of it
    NOTE = 5  # below or beside a table and no part of it


BODY = frozenset({Label.DATA, Label.TOTAL, Label.GROUP})
NAMES: Mapping[str, Label] = {label.name.lower(): label for label in Label}

# Row number (1-based) and values, to what rules add to a label's score. One point multiplies odds by e.
RowScores = Callable[[int, Sequence[object]], Mapping[str, float]]
