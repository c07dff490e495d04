"""What a cell shows whose parts are formatted differently: raised, lowered, small and struck-out runs.

A raised mark after a number or a word is a footnote's and no part of the value; a raised digit of a unit or a formula
(m², R²) belongs to the text; small digits after a price are its cents; a struck-out part is gone. Whatever is not
simply the joined text is noted, with the cell, for a finding.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, Self, TypeVar

from runner.engine.common.patterns import LazyPattern
from runner.engine.reading.books import Block, Remark, Row, Value

RunStyle = Literal["", "raised", "lowered", "small", "struck"]
Note = Literal["footnote", "power", "cents", "struck_part", "struck", "encoded_twice", "cell_twice", "form", "image"]


class _NoteTexts(NamedTuple):
    """How a kind of note is reported."""

    code: str  # of the finding
    message: str
    remedy: str | None


_REMARKS: Final[dict[Note, _NoteTexts]] = {
    "footnote": _NoteTexts(
        "raised_text",
        "a raised mark after the value is read as a footnote's and left out",
        "write footnote marks in a column of their own",
    ),
    "power": _NoteTexts(
        "raised_text",
        "a raised number follows a number, as in a power of ten; read as text with ^ before it",
        "write the number itself",
    ),
    "cents": _NoteTexts(
        "raised_text",
        "raised or small digits follow a number; read as its decimals",
        "write the number with a decimal point",
    ),
    "struck_part": _NoteTexts(
        "struck_text",
        "a part of the text is struck out and left out; the rest is read",
        "delete what is struck out",
    ),
    "struck": _NoteTexts(
        "struck_text",
        "the whole cell is struck out and read like the others",
        "delete what no longer counts",
    ),
    "encoded_twice": _NoteTexts(
        "encoded_twice",
        "letters look as if UTF-8 had been read as Windows-1252 before it was saved, or are lost; kept as they are",
        "send the file as it was before that",
    ),
    "cell_twice": _NoteTexts("cell_twice", "the file stores two values for this cell; the later one is read", None),
    "form": _NoteTexts(
        "form_input",
        "the cell holds several form controls; read as what they show, separated by blanks",
        "export the values as text",
    ),
    "image": _NoteTexts(
        "image_text", "the cell holds only a picture; read as its alternative text", "export the values as text"
    ),
}
_LISTED_CELLS: Final = 1_000


class Noted(str):
    """A text with something to report about its cell; a plain text once it is noted."""

    __slots__ = ("note",)
    note: Note

    def __new__(cls, text: str, note: Note) -> Self:
        """Make a text that remembers what to report."""
        value = super().__new__(cls, text)
        value.note = note
        return value


class CellNotes:
    """What was noted about cells: how many of each kind, and the first ones."""

    def __init__(self) -> None:
        """Begin without notes."""
        self._counts: dict[Note, int] = {}
        self._cells: dict[Note, list[tuple[int, int]]] = {}

    def add(self, note: Note, row: int, column: int) -> None:
        """Remember something about a cell; only the first ones of each kind are listed."""
        self._counts[note] = self._counts.get(note, 0) + 1
        cells = self._cells.setdefault(note, [])
        if len(cells) < _LISTED_CELLS:
            cells.append((row, column))

    def add_twice(self, row: int, column: int) -> None:
        """Note that a cell has two values."""
        self.add("cell_twice", row, column)

    def plain_blocks(self, blocks: Iterable[Block], *, are_expected: Callable[[], bool]) -> Iterator[Block]:
        """Yield the same blocks with plain texts, changed in place, and remember what is to be reported about them."""
        for block in blocks:
            if are_expected():
                for number, column in enumerate(block.columns, 1):
                    if Noted in set(map(type, column)):
                        self._make_column_plain(block.numbers, number, column)
            yield block

    def plain_rows(self, rows: Iterable[Row], *, are_expected: Callable[[], bool]) -> Iterator[Row]:
        """Yield the same rows with plain texts, changed in place, and remember what is to be reported about them."""
        for number, values in rows:
            if are_expected() and Noted in set(map(type, values)):
                for index, value in enumerate(values):
                    if isinstance(value, Noted):
                        self.add(value.note, number, index + 1)
                        values[index] = str(value)
            yield number, values

    def _make_column_plain(self, numbers: Sequence[int], column_number: int, column: list[Value]) -> None:
        """Remember what is to be reported about a column's cells, and make them plain texts in place."""
        for index, value in enumerate(column):
            if isinstance(value, Noted):
                self.add(value.note, numbers[index], column_number)
                column[index] = str(value)

    def remarks(self) -> list[Remark]:
        """Return what was remembered so far, as remarks for findings: one for each kind."""
        return [
            Remark(
                code=_REMARKS[note].code,
                message=_REMARKS[note].message,
                rows=tuple(row for row, _ in cells),
                columns=tuple(column for _, column in cells),
                count=self._counts[note],
                settle=_REMARKS[note].remedy,
            )
            for note, cells in self._cells.items()
        ]


# UTF-8 that was read as Windows-1252: a letter beyond ASCII or a typographic sign became two or three characters. What
# Windows-1252 lacks became U+FFFD, which says of itself that something is lost.
_CONTINUING_SIGNS: Final = (
    "\u00a1-\u00aa\u00ac-\u00ba\u00bc-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u201a\u201e\u2020-\u2022"
    "\u2030\u2039\u203a\u20ac\u2122"
)
_LEADING_SIGNS: Final = "\u00c3\u00c4\u00c5\u00ce\u00cf\u00d0\u00d1\u00e2\ufffd"
TWICE: Final = re.compile(
    f"[{_LEADING_SIGNS}](?:"  # what all start with comes first: so most of a long text is passed over quickly
    "(?<=\u00c3)[\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u2018\u201a-\u201c\u201e-\u203a\u20ac\u2122]"
    "|(?<=\u00e2)\u20ac[\u0080-\u00ff\u0152\u0153\u02dc\u2018-\u2122]"
    f"|(?<=[\u00c4\u00c5])[{_CONTINUING_SIGNS}]"
    f"|(?<=[\u00ce-\u00d1])[\u0080-\u00a0{_CONTINUING_SIGNS}][\u00ce-\u00d1][\u0080-\u00a0{_CONTINUING_SIGNS}]"
    "|(?<=\ufffd))"
)


def may_be_twice(text: str) -> bool:
    """Whether letters of these texts look as if they had been encoded twice."""
    return not text.isascii() and any(lead in text for lead in _LEADING_SIGNS) and TWICE.search(text) is not None


_T = TypeVar("_T")


def noted_twice(texts: list[_T]) -> list[_T | Noted]:
    """Return the texts, those that were encoded twice with a note."""
    return [Noted(text, "encoded_twice") if isinstance(text, str) and may_be_twice(text) else text for text in texts]


class Run(NamedTuple):
    """A part of a cell's text."""

    text: str
    style: RunStyle = ""


def runs_of(text: str, starts: Sequence[tuple[int, RunStyle]]) -> list[Run]:
    """Split a text into runs, each from the place where its style starts; the first, maybe empty, has no style.

    `starts`: at least one.
    """
    ends = [start for start, _ in starts[1:]]
    parts = [Run(text[start:end], style) for (start, style), end in zip(starts, [*ends, len(text)], strict=True)]
    return [Run(text[: starts[0][0]]), *parts]


_FOOTNOTE_NUMBER = LazyPattern(r"[(\[]?\d{1,2}(?:\s*[,;]\s*\d{1,2})*[)\]]?\.?")
_FOOTNOTE_SIGNS = LazyPattern(r"[*†‡§¶#]+")
_FOOTNOTE_LETTER = LazyPattern(r"[(\[]?[a-z][)\]]?|[(\[][A-Z][)\]]")
_ORDINAL_LETTERS: Final = frozenset("aeohnrt")  # 5ᵉ, 1º, 2ª, 8ʰ
_NUMBER_END = LazyPattern(r"\d[\s\u00a0]*[%€$£]?\)?\Z")
_TEN = LazyPattern(r"(?:\A|[x\u00d7*\u00b7\u22c5.e]\s*)10\Z", re.IGNORECASE)
_WORD_END = LazyPattern(r"([^\W\d_]{3,}|[\d.%)\]\"'\u201d\u2019])[.,:;]?\Z")
_UNIT_END = LazyPattern(
    r"(?:\A|[^^\W_]|\d|\b)(?:[cdkmnµp]?m|ft|yd|mi|mile|mtr|mol|sec|met(?:er|re)s?)\Z", re.IGNORECASE
)
_WHOLE_PRICE = LazyPattern(r"(?:\A|[^\d.,])\d{1,6}\Z")


def shown(runs: Sequence[Run]) -> str:
    """Return the text as a person reads it; `Noted` if that is not simply all of it."""
    note: Note | None = None
    if any(run.style == "struck" and run.text.strip() for run in runs):
        others = [run for run in runs if run.style != "struck"]
        if any(run.text.strip() for run in others):
            runs, note = _without_struck(runs), "struck_part"
        else:
            note = "struck"
    text = ""
    for index, run in enumerate(runs):
        mark = run.text.strip()
        if run.style in ("raised", "small") and mark:
            text_after = "".join(following.text for following in runs[index + 1 :])
            if run.style == "raised":
                reading = _read_raised(text.rstrip(), mark, text_after)
            else:
                reading = _read_small(text, mark)
            text = text + run.text if reading.text is None else text.rstrip() + reading.text
            note = note or reading.note
        else:
            text += run.text
    return text if note is None else Noted(text, note)


def _without_struck(runs: Sequence[Run]) -> list[Run]:
    """Return the runs without those that are struck out, and without the blanks around them doubled."""
    shown_runs: list[Run] = []
    for run in runs:
        if run.style == "struck":
            continue
        text = run.text
        if not shown_runs or shown_runs[-1].text[-1:].isspace():
            text = text.lstrip()
        if text:
            shown_runs.append(Run(text, run.style))
    if shown_runs:
        shown_runs[-1] = Run(shown_runs[-1].text.rstrip(), shown_runs[-1].style)
    return shown_runs


class RunReading(NamedTuple):
    """How a run is read after the text before it."""

    text: str | None  # what is read for it; None: its own text
    note: Note | None


_FOOTNOTE: Final = RunReading("", "footnote")
_AS_WRITTEN: Final = RunReading(None, None)


def _read_raised(before: str, mark: str, after: str) -> RunReading:
    """Decide how a raised run is read between two texts: as a footnote, a power, or as it is written."""
    if not before:  # "¹ Serbia", but ½ written as a raised 1, a slash and a 2
        is_mark = (_FOOTNOTE_NUMBER.fullmatch(mark) or _FOOTNOTE_SIGNS.fullmatch(mark)) and after.lstrip()[:1].isalpha()
        return _FOOTNOTE if is_mark else _AS_WRITTEN
    if _FOOTNOTE_SIGNS.fullmatch(mark):
        return _FOOTNOTE
    after_number = _NUMBER_END.search(before) is not None
    if _FOOTNOTE_LETTER.fullmatch(mark):
        is_mark = mark not in _ORDINAL_LETTERS if after_number else _WORD_END.search(before) is not None
        return _FOOTNOTE if is_mark else _AS_WRITTEN
    if _TEN.search(before) and _is_exponent(mark):
        return RunReading(f"^{mark}", "power")
    return _read_raised_after_number(before, mark, after) if after_number else _read_raised_after_word(before, mark)


def _is_exponent(mark: str) -> bool:
    """Whether a raised mark is a whole number with or without a sign."""
    return mark.lstrip("-+\u2212").isdecimal()


def _read_raised_after_number(before: str, mark: str, after: str) -> RunReading:
    """Decide how a raised run is read after a number: a fraction, a power, cents or a footnote's mark."""
    if after.lstrip()[:1] in ("/", "\u2044"):
        return RunReading(f" {mark}", "power")  # 1 ½ written with a raised 1
    if not _FOOTNOTE_NUMBER.fullmatch(mark):
        return RunReading(f"^{mark}", "power") if _is_exponent(mark) else _AS_WRITTEN
    if len(mark) == 2 and mark.isdecimal() and _WHOLE_PRICE.search(before):
        return RunReading(f".{mark}", "cents")
    return _FOOTNOTE


def _read_raised_after_word(before: str, mark: str) -> RunReading:
    """Decide how a raised run is read after a word: a footnote's mark, unless it belongs to a unit such as m²."""
    is_unit = mark in ("2", "3") and _UNIT_END.search(before) is not None
    is_mark = _FOOTNOTE_NUMBER.fullmatch(mark) and not is_unit and _WORD_END.search(before)
    return _FOOTNOTE if is_mark else _AS_WRITTEN


def _read_small(before: str, mark: str) -> RunReading:
    """Decide how a run in small print is read after this text."""
    if not (mark.isdecimal() and before[-1:].isdecimal()):
        return _AS_WRITTEN
    if len(mark) == 2 and _WHOLE_PRICE.search(before):
        return RunReading(f".{mark}", "cents")
    return RunReading(f" {mark}", "power")
