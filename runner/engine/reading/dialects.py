"""Detects a text's delimiter, quote and escape: every combination is tried, and the most table-like one wins."""

import csv
import math
import re
from collections import Counter
from dataclasses import replace
from typing import Final

from runner.engine.reading.records import Dialect, Records
from runner.engine.reading.reshaping import whole_lines

_DELIMITERS: Final = {",": 1.0, ";": 1.0, "\t": 1.0, "|": 1.0, " ": 0.4}  # how common each is
_RARE_DELIMITERS: Final = dict.fromkeys("#^~:¦§\x1f\x1e\x01", 0.5)  # only if every line agrees
_ROWS_SCORED: Final = 400
_HEAD_LINES: Final = 10
_LONGEST_QUOTED: Final = 300  # characters in quotes that are looked for
_WEIGHT_INSIDE_VALUES: Final = 0.1  # weight of a delimiter that the first line lacks while another splits every line
_CLOSE_SHARE: Final = 0.9  # a rival with this share of the best score makes the choice a guess
_DATA_LIKE = re.compile(
    r"""\s*(?:
        [-+(]?\s?[$€£¥]?\s?\d[\d.,'\u00a0 ]*(?:[eE][-+]?\d+)?\s?[%€$£]?\)?   # numbers and money
      | \d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z?)?   # dates
      | \d{1,2}:\d{2}(?::\d{2})?(?:\s?[aApP][mM])?                                     # times
      | [\w.+-]+@[\w.-]+ | https?://\S+
      | [\w#$%&()'*+./<>=?@\[\]{}°\u2013-]+(?:,?[ ][\w#$%&()'*+./<>=?@\[\]{}°\u2013-]+){0,5}   # a few words
    )?\s*""",
    re.VERBOSE,
)
_QUOTE_TROUBLES: Final = ("open_quote", "stray_quote", "undecodable")
_SEP_LINE = re.compile(r'\ufeff?"?sep=(?P<delimiter>.)"?[\r\n]*$', re.IGNORECASE)


def detect(
    lines: list[str], *, name: str, is_cut: bool = False, delimiter: str | None = None, quote: str | None = None
) -> Dialect:
    """Detect the delimiter, the quote and the width of records.

    ``lines`` are whole lines from the start of the file, all of them unless it ``is_cut``. Declared options are not
    detected.
    """
    sep_line = _SEP_LINE.match(lines[0]) if lines else None
    skip = 1 if sep_line and (delimiter is None or delimiter == sep_line["delimiter"]) else 0
    sample = [line.lstrip("\ufeff") for line in lines[skip:] if line.strip("\ufeff \t\r\n")]
    if sep_line and delimiter is None:
        delimiter = sep_line["delimiter"]
    if quote is None and (bare := whole_lines(sample)) is not None:
        inner = detect(bare, name=name, is_cut=is_cut, delimiter=delimiter)
        return replace(inner, skip_lines=skip, in_quotes=True)
    best, attempts, is_guess = _choose_attempt(sample, name, delimiter, quote)
    dialect = Dialect(
        delimiter=best.delimiter,
        quote=best.quote,
        skip_lines=skip,
        skip_blanks=_has_blanks_before_quotes(sample, best.delimiter, best.quote),
        width=best.width,
    )
    dialect = _with_escapes(sample, dialect, is_cut=is_cut)
    is_detected = delimiter is None and best.score > 0
    return _with_evidence(dialect, best, attempts, is_guess=is_guess) if is_detected else dialect


def _choose_attempt(
    sample: list[str], name: str, delimiter: str | None, quote: str | None
) -> tuple["_Attempt", list["_Attempt"], bool]:
    """Choose the most table-like way to read the sample; return it, all ways that were tried, and whether only the
    sample's head is a table.

    A few records above many lines of text: the end of a report, or an unbalanced quote.
    """
    may_use_head = delimiter is None and len(sample) > _HEAD_LINES
    for lines in (sample, sample[:_HEAD_LINES]) if may_use_head else (sample,):
        attempts = _try_all(lines, name, delimiter, quote)
        best = max(attempts, key=lambda attempt: attempt.score, default=None)
        if best is not None and (best.score > 0 or delimiter is not None):
            return best, attempts, lines is not sample
    return _Attempt(sample, delimiter or _by_name(name), '"' if quote is None else quote, 0), [], False


def _with_evidence(dialect: Dialect, best: "_Attempt", attempts: list["_Attempt"], *, is_guess: bool) -> Dialect:
    """Copy the dialect with what speaks for its delimiter and for the next best, and whether the choice is sure."""
    if best.is_single_headed:
        return replace(dialect, sure=False, evidence={best.delimiter: best.agreeing})
    others = [attempt for attempt in attempts if attempt.delimiter != best.delimiter and attempt.score > 0]
    rival = max(others, key=lambda attempt: attempt.score, default=None)
    if rival is None:
        return replace(dialect, sure=False, evidence={best.delimiter: best.agreeing}) if is_guess else dialect
    return replace(
        dialect,
        sure=not is_guess and rival.score < _CLOSE_SHARE * best.score,
        evidence={attempt.delimiter: attempt.agreeing for attempt in (best, rival)},
        rival=rival.delimiter,
    )


def _try_all(sample: list[str], name: str, delimiter: str | None, quote: str | None) -> list["_Attempt"]:
    """Try every possible combination of delimiter and quote on the sample."""
    tried = [
        _Attempt(sample, sign, quote_sign, weight * (1.001 if sign == _by_name(name) else 1))
        for sign, weight in ({**_DELIMITERS, **_RARE_DELIMITERS} if delimiter is None else {delimiter: 1.0}).items()
        if delimiter is not None or _is_possible(sample, sign)
        for quote_sign in (_possible_quotes(sample, sign) if quote is None else [quote])
        if quote_sign != sign
    ]
    # A character that splits every line is a delimiter; one that is absent from the first line is part of values.
    if any(sign.splits_all and sign.delimiter in _DELIMITERS for sign in tried):
        for sign in tried:
            sign.score *= 1.0 if sign.splits_first else _WEIGHT_INSIDE_VALUES
    return tried


def _by_name(name: str) -> str:
    """Return the delimiter that a file's name suggests."""
    return "\t" if name.lower().endswith((".tsv", ".tab")) else ","


def _is_possible(sample: list[str], delimiter: str) -> bool:
    """Whether a rare delimiter is possible: it is in the first line, and not part of times and addresses."""
    if delimiter not in _RARE_DELIMITERS:
        return True
    if not sample or delimiter not in sample[0] or len(sample) < 2:
        return False
    return delimiter != ":" or not re.search(r"https?://|\d:\d\d|: ", "".join(sample[:_ROWS_SCORED]))


def _possible_quotes(sample: list[str], delimiter: str) -> list[str]:
    """Return the possible quotes; single quotes count only if they enclose whole fields."""
    text = "".join(sample)
    if "'" not in text:
        return ['"']
    escaped = re.escape(delimiter)
    # A run of blanks is searched once, and not from each of them.
    before = r"(?:^|(?<=[ \t]))" if delimiter in " \t" else rf"(?:^|{escaped})[ \t]*"
    doubles = len(re.findall(rf'{before}"', text, re.MULTILINE))
    opened = len(re.findall(rf"{before}'", text, re.MULTILINE))
    closed = len(re.findall(rf"'[ \t]*(?=[\r\n]|$|{escaped})", text))
    if not opened or not closed or doubles >= opened:
        return ['"']
    limit = f"{{0,{_LONGEST_QUOTED}}}"
    wrapped = len(re.findall(rf"{before}'[^\r\n]{limit}?'[ \t]*(?=[\r\n]|$|{escaped})", text, re.MULTILINE))
    doubled = re.search(rf"{before}'[^'\r\n]+''(?:[^']|''){limit}'[ \t]*(?=[\r\n]|$|{escaped})", text, re.MULTILINE)
    if wrapped >= 0.9 * opened and (wrapped > len(sample) / 2 or doubled):
        return ["'"]
    return ['"', "'"]


def _has_blanks_before_quotes(sample: list[str], delimiter: str, quote: str) -> bool:
    """Whether blanks before a quote belong to the delimiter: `1, "Lee, Ann", x`."""
    if not quote or delimiter in " \t":
        return False
    escaped, escaped_quote = re.escape(delimiter), re.escape(quote)
    padded = re.compile(
        rf"(?:^|{escaped})[ \t]+{escaped_quote}[^{escaped_quote}]*{escaped_quote}[ \t]*(?={escaped}|[\r\n]*$)"
    )
    return any(padded.search(line) for line in sample)


def _with_escapes(sample: list[str], dialect: Dialect, *, is_cut: bool) -> Dialect:
    """Copy the dialect with the width of regular records, and with backslash escapes if that leaves fewer irregular
    ones."""
    if not dialect.quote or not any(dialect.quote in line for line in sample):
        return dialect
    irregular, plain = _count_irregular(sample, dialect, is_cut=is_cut)
    if not any("\\" + dialect.quote in line for line in sample):
        return plain
    # A writer that escapes backslashes leaves no single one: a single one means that pairs are literal.
    lone_backslash = re.search(rf'(?<!\\)(?:\\\\)*\\[^\\{re.escape(dialect.quote)}nrt0"]', "".join(sample))
    irregular_escaped, escaped = _count_irregular(
        sample, replace(dialect, escape="\\", undo_backslashes=lone_backslash is None), is_cut=is_cut
    )
    return escaped if irregular_escaped < irregular else plain


def _count_irregular(sample: list[str], dialect: Dialect, *, is_cut: bool) -> tuple[int, Dialect]:
    """Count the records that are irregular, and return the dialect with the width of most others."""
    records = Records([list(sample)], dialect, is_cut=is_cut)
    widths = [len(record) for batch in records.batches() for record in batch]
    troubled = {row for kind, rows in records.troubles.rows.items() if kind in _QUOTE_TROUBLES for row in rows}
    regular = Counter(width for row, width in enumerate(widths, 1) if row not in troubled)
    if not regular:
        return len(troubled), dialect
    width, agreeing = max(regular.items(), key=lambda item: (item[1], item[0]))
    return len(widths) - agreeing, replace(dialect, width=width)


class _Attempt:
    """A delimiter and a quote, tried on the sample."""

    def __init__(self, sample: list[str], delimiter: str, quote: str, weight: float) -> None:
        """Split the sample and score it; `weight`: how common the delimiter is."""
        self.delimiter = delimiter
        self.quote = quote
        self.width = 1  # fields of most rows
        self.agreeing = 0  # rows of that width
        self.splits_first = self.splits_all = False  # splits the first line; splits every line into equally many fields
        self.is_single_headed = False  # one field over lines of two: a title, or the header of a single column
        self.score = weight * self._score_rows(sample)

    def _split_sample(self, sample: list[str]) -> list[list[str]]:
        """Split the first rows of the sample, by this delimiter and quote."""
        reader = csv.reader(
            sample,
            delimiter=self.delimiter,
            quotechar=self.quote or None,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            skipinitialspace=self.delimiter != " ",
        )
        rows: list[list[str]] = []
        for row in reader:
            rows.append(row)
            if len(rows) == _ROWS_SCORED:
                return rows
        if len(rows) > 3 and self.quote and "\n" in rows[-1][-1] + (rows[-1][-2] if len(rows[-1]) > 1 else ""):
            rows.pop()  # incomplete: the sample ends, or a quote never closes
        return rows

    def _score_rows(self, sample: list[str]) -> float:
        """Score the rows, and set what is known of their widths: higher if they have one width, several columns, and
        cells that look like data; 0 if these rows are not separated this way."""
        try:
            rows = self._split_sample(sample)
        except csv.Error:
            return 0.0
        if not rows:
            return 0.0
        widths = Counter(len(row) for row in rows)
        self.width, self.agreeing = max(widths.items(), key=lambda item: (item[1], item[0]))
        self.splits_first = len(rows[0]) > 1
        self.splits_all = self.agreeing == len(rows) > 2 and self.width > 1
        self.is_single_headed = self.width == 2 and not self.splits_first and self.agreeing == len(rows) - 1
        cells = [cell for row in rows if len(row) > 1 for cell in row]
        if len(rows) - widths[1] <= len(rows) / 10:
            return 0.0  # rare: punctuation in a sentence
        if self.delimiter == " " and not self._is_spaced(rows, sample[:_ROWS_SCORED]):
            return 0.0
        if self.delimiter in _RARE_DELIMITERS and not self._separates_all(rows, sample):
            return 0.0
        alike = math.hypot(*widths.values()) / len(rows)  # 1 if all rows agree; one large group beats many small ones
        spread = sum(count * (width - 1) / width for width, count in widths.items()) / len(rows)
        known = sum(_DATA_LIKE.fullmatch(cell[:200]) is not None for cell in cells) / len(cells)
        return alike * spread * (0.1 + known)

    def _separates_all(self, rows: list[list[str]], sample: list[str]) -> bool:
        """Whether a rare delimiter separates all rows: it gives each one width; a single one has no blanks beside it
        and no common rival."""
        if self.agreeing < len(rows) or self.width < 2 or len(rows) < 2:
            return False
        if self.width > 2:
            return True
        text = "".join(sample[:_ROWS_SCORED])
        escaped = re.escape(self.delimiter)
        return (
            self.delimiter != ":"
            and not any(usual in text for usual in ",;\t|")
            and not re.search(rf"\s{escaped}|{escaped}\s|^{escaped}", text, re.MULTILINE)
        )

    def _is_spaced(self, rows: list[list[str]], sample: list[str]) -> bool:
        """Whether blanks delimit fields: they occur in any text, so they do only between quotes, or where lines of
        numbers agree."""
        if len(sample) < 5:
            return False
        if sum('" "' in line for line in sample) > 0.5 * len(sample):
            return True
        if self.agreeing <= 0.8 * len(rows) or len(rows[0]) != self.width:
            return False
        columns = list(zip(*(row for row in rows[1:] if len(row) == self.width), strict=True))
        numeric = sum(
            sum(any(char.isdigit() for char in cell) for cell in column) > 0.8 * len(column) for column in columns
        )
        return numeric * 2 >= self.width
