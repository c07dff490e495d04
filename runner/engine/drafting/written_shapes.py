"""How texts are built: a regular expression for codes, and the format of dates."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, islice
from typing import Final, NamedTuple

from runner.engine.values.date_formats import make_format_reader

_LEAST_DIFFERENT: Final = 15  # different values that a pattern needs
_MOST_RUNS: Final = 9
_PLAIN_SIGNS: Final = " -_/,:;#%&@'\""
_LEAST_FILLER_COUNT: Final = 5  # how often a word occurs that may stand for a missing value
_LETTERS: Final = ("upper", "lower")
_CLASSES: Final = {"digit": "[0-9]", "upper": "[A-Z]", "lower": "[a-z]"}
_DAYS: Final = (
    "%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%y",
    "%d/%m/%y", "%m/%d/%y", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%d-%b-%y", "%d. %b %Y", "%Y%m%d", "%b %d %Y",
)  # fmt: skip
_CLOCKS: Final = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")


class _Run(NamedTuple):
    """Characters of one class, or one other sign."""

    kind: str  # a class, or the sign itself
    text: str


def _class_of(char: str) -> str:
    """Return the class of a character in a shape: a digit, a capital, a small letter, or itself."""
    if "0" <= char <= "9":
        return "digit"
    if char.isascii() and char.isalpha():
        return "upper" if char.isupper() else "lower"
    return char


def _split_in_runs(text: str) -> tuple[_Run, ...]:
    """Split a text where the class of its characters changes: `AB-12` into `AB`, `-` and `12`."""
    return tuple(_Run(kind, "".join(chars)) for kind, chars in groupby(text, _class_of))


def pattern_of(counts: Mapping[str, int], *, counted: bool = True, most_fillers: int = 2) -> str | None:
    """Return a regular expression for texts that are all built alike and are codes rather than words; None if they are
    not.

    Up to `most_fillers` words that stand for a missing value (`empty`) may occur beside them. `counts`: the texts, each
    with how often it occurs. `counted`: whether numbers may be counted up, and so get longer.
    """
    shapes: dict[tuple[str, ...], list[tuple[_Run, ...]]] = {}
    for text in counts:
        runs = _split_in_runs(text)
        if len(runs) > _MOST_RUNS or len(shapes) > 1 + most_fillers:
            return None
        shapes.setdefault(tuple(run.kind for run in runs), []).append(runs)
    rare = (
        "".join(run.text for run in runs)
        for alike in shapes.values()
        if len(alike) < _LEAST_DIFFERENT
        for runs in alike
    )
    fillers = list(islice(rare, most_fillers + 1))
    usual = [alike for alike in shapes.values() if len(alike) >= _LEAST_DIFFERENT]
    if len(usual) != 1 or len(fillers) > most_fillers:
        return None
    if any(counts[text] < _LEAST_FILLER_COUNT or not text.replace(" ", "").isalpha() for text in fillers):
        return None
    expression = _expression_of_runs(usual[0], counted=counted)
    return None if expression is None else "|".join([expression, *map(_escape_text, sorted(fillers))])


def _expression_of_runs(alike: Sequence[tuple[_Run, ...]], *, counted: bool) -> str | None:
    """Return the expression of texts whose runs have the same classes in the same order; None if they may be words or
    just numbers."""
    fixed = len({sum(len(run.text) for run in runs) for runs in alike}) == 1
    kinds = [run.kind for run in alike[0]]
    if "digit" not in kinds and not (fixed and kinds == ["upper"]):
        return None
    if len(kinds) == 1 and kinds[0] == "digit" and not fixed:
        return None  # any number
    if any(
        left in _LETTERS and blank == " " and right in _LETTERS
        for left, blank, right in zip(kinds, kinds[1:], kinds[2:], strict=False)
    ):
        return None  # two words, such as a name
    return "".join(
        _expression_of_run([runs[n].text for runs in alike], kind, counted=counted) for n, kind in enumerate(kinds)
    )


def _expression_of_run(texts: Sequence[str], kind: str, *, counted: bool) -> str:
    """Return the expression of one run, from its text in each value; `kind`: its class, or the sign that it is made
    of."""
    if kind not in _CLASSES:
        longest = max(map(len, texts))
        return _escape_text(kind) + (f"{{1,{longest}}}" if longest > 1 else "")
    if kind != "digit" and len(set(texts)) == 1:
        return _escape_text(texts[0])
    lengths = set(map(len, texts))
    if len(lengths) > 1:
        return f"{_CLASSES[kind]}+"
    (length,) = lengths
    may_get_longer = counted and kind == "digit" and not any(text[0] == "0" for text in texts)
    if length == 1:
        return f"{_CLASSES[kind]}{'+' if may_get_longer else ''}"
    return f"{_CLASSES[kind]}{{{length}{',' if may_get_longer else ''}}}"


def _escape_text(text: str) -> str:
    """Escape a text so that a regular expression matches it, with as few backslashes as possible."""
    return "".join(char if char.isalnum() or char in _PLAIN_SIGNS else re.escape(char) for char in text)


class WrittenDates(NamedTuple):
    """How the texts of a column of dates are written."""

    formats: tuple[str, ...]  # one that fits all texts; two if the order of day and month is open


def formats_of(texts: Sequence[str], kind: str) -> WrittenDates:
    """Return the formats that fit every text; empty if none of the usual ones does. `kind`: date, datetime or time."""
    formats: Iterable[str] = _DAYS
    if kind == "time":
        formats = _CLOCKS
    elif kind == "datetime":
        formats = (f"{day}{between}{clock}" for day in _DAYS for between in (" ", "T") for clock in _CLOCKS)
    fitting = [form for form in formats if _fits_all(form, texts)]
    if len(fitting) > 1 and any("%Y" in form for form in fitting):
        fitting = [form for form in fitting if "%y" not in form]
    return WrittenDates(tuple(fitting))


def _fits_all(form: str, texts: Sequence[str]) -> bool:
    """Whether there are texts, and all are dates or times of a format."""
    read = make_format_reader(form)
    return bool(texts) and all(read(text) is not None for text in texts)
