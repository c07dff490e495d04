"""What one cell looks like to someone who skims a sheet: its kind, length and a few tell-tale marks."""

from datetime import date, time, timedelta
from enum import IntEnum, IntFlag
from functools import lru_cache

from runner.engine.structure import patterns


class Kind(IntEnum):
    BLANK = 0
    TEXT = 1
    NUMBER = 2
    DATE = 3
    BOOL = 4
    ERROR = 5
    FILLER = 6  # stands where a value is missing: "-", "..", "n/a"


class Mark(IntFlag):
    YEAR = 1  # 1999, "1999-2000", "FY 2001"
    PERIOD = 2  # a month, a weekday, a quarter
    TOTAL = 4  # speaks of a total, a mean, a sum
    NOTE = 8  # opens a note, a source, a legend
    TITLE = 16  # "Table 3", "Figure 2", "Sheet 1 of 3"
    COLON = 32  # ends with a colon
    SENTENCE = 64  # ends with a full stop or is long
    CAPS = 128  # letters, all of them upper-case
    CAPITAL = 256  # starts with an upper-case letter
    FOOTNOTE = 512  # starts like "1 Includes", "(a) Not", "* Less", "[3] see"
    UNIT = 1024  # in brackets, a percent sign, a currency: what a unit row holds
    INDENT = 2048  # starts with blanks
    RULE = 4096  # a line drawn with characters: "-----"
    CODE = 8192  # letters joined by underscores or humps, or a word without blanks
    DIGITS = 16384  # text that has a digit in it
    NAME = 32768  # has a word that people head columns with: "Start date", "Qty"


Look = tuple[int, int, int, int]  # kind, length, marks, number of words

LONG = 60
SHORT, FEW = 40, 5  # characters and words of a text that may name a column
BLANK: Look = (0, 0, 0, 0)
# Plain integers: enum members cost a multiple in the loops over cells.
_TEXT = int(Kind.TEXT)
_NUMBER: Look = (int(Kind.NUMBER), 8, 0, 1)
_YEAR: Look = (int(Kind.NUMBER), 8, int(Mark.YEAR), 1)
_DATE: Look = (int(Kind.DATE), 10, 0, 1)
_BOOL: Look = (int(Kind.BOOL), 5, 0, 1)
_ERROR: Look = (int(Kind.ERROR), 8, 0, 1)

_SHAPES = (
    (24, patterns.YEAR, Kind.NUMBER, Mark.YEAR),
    (30, patterns.NUMBER, Kind.NUMBER, Mark(0)),
    (32, patterns.DATE, Kind.DATE, Mark(0)),
    (16, patterns.FILLER, Kind.FILLER, Mark(0)),
    (200, patterns.RULE, Kind.TEXT, Mark.RULE),
)
_WHOLE = ((24, patterns.PERIOD, Mark.PERIOD), (40, patterns.UNIT, Mark.UNIT), (40, patterns.CODE, Mark.CODE))
_OPENING = ((patterns.NOTE, Mark.NOTE), (patterns.TITLE, Mark.TITLE), (patterns.FOOTNOTE, Mark.FOOTNOTE))


@lru_cache(maxsize=20_000)
def _look_at_text(text: str) -> Look:
    bare = text.strip()
    if not bare:
        return BLANK
    length = len(bare)
    for longest, pattern, kind, mark in _SHAPES:
        if length <= longest and pattern.fullmatch(bare):
            return (int(kind), length, int(mark), 1)
    words = bare[:80].count(" ") + 1
    return (_TEXT, length, _marks(text, bare, words), words)


def _marks(text: str, bare: str, words: int) -> int:
    head = bare[:80]
    length = len(bare)
    marks = Mark(0)
    for longest, pattern, mark in _WHOLE:
        if length <= longest and pattern.fullmatch(bare):
            marks |= mark
    for pattern, mark in _OPENING:
        if pattern.match(head):
            marks |= mark
    digits = any(map(str.isdigit, head))
    short = length <= SHORT and words <= FEW and not digits
    told = (
        (patterns.TOTAL.search(head) is not None, Mark.TOTAL),
        (bare[-1] == ":", Mark.COLON),
        ((bare[-1] in ".;" and words > 3) or length > LONG, Mark.SENTENCE),
        (head.upper() == head and head.lower() != head, Mark.CAPS),
        (head[0].isupper(), Mark.CAPITAL),
        (text[0] in " \t\u00a0", Mark.INDENT),
        (digits, Mark.DIGITS),
        (short and patterns.NAME.search(head.replace("_", " ")) is not None, Mark.NAME),
    )
    for holds, mark in told:
        if holds:
            marks |= mark
    return int(marks)


def look(value: object) -> Look:
    """Kind, length, marks and words of a value; text that reads as a number or a date counts as one."""
    if value is None:
        return BLANK
    if type(value) is str:
        return _look_at_text(value if len(value) <= 200 else value[:200])
    if isinstance(value, bool):
        return _BOOL
    if isinstance(value, int | float):
        year = 1600 <= value < 2100 and value == int(value)
        return _YEAR if year else _NUMBER
    if isinstance(value, date | time | timedelta):
        return _DATE
    return _ERROR  # an error cell, or a formula nobody has calculated yet
