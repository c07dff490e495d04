"""Splits lines of text into records by a dialect, with quotes that are irregular.

Theory of operation. The standard library's `csv`, in strict mode, splits whole blocks of lines; a block of regular
records costs no more than that. A block that it refuses, or in which a record spans several lines, is read again here,
record by record. A quoted field closes at a quote that is followed by a delimiter or the end of the line; quotes inside
it are doubled. Anything else has two readings, the quote as a quote or as a plain character, and the reading that gives
the record the table's width wins:

- a field that spans several lines is read as one, unless each of its lines is a complete record by itself;
- a quote that never closes is a plain character and affects only its own line;
- quotes that are not doubled stay in their field, if it closes on its line.

The last two are reported with the record's number. Lines are buffered while a quote is open, up to `MAX_FIELD`.
"""

import _csv  # for the type of its readers, which csv does not name
import contextlib
import csv
import io
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from runner.engine.reading import errors
from runner.engine.reading.runs import TWICE, may_be_twice

MAX_LINE: Final = 16 * 1024 * 1024
MAX_FIELD: Final = 4 * 1024 * 1024  # characters in a quoted field of several lines; beyond that its quote never closed
_CHUNK_CHARACTERS: Final = 256 * 1024
_LISTED_ROWS: Final = 1_000
_MOST_FITTED_CHARACTERS: Final = 20_000  # a line with more of any of the three is not tried in all ways
_MOST_FITTED_FIELDS: Final = 500
_MOST_FITTED_QUOTES: Final = 60
_CHARACTERS_SEARCHED: Final = 2_000_000  # characters searched per file for the ends of fields with undoubled quotes
_RETRIED_LINES: Final = 20  # lines that a field with undoubled quotes may span

Trouble = Literal[
    "open_quote", "stray_quote", "undecodable", "encoded_twice", "entities", "line_quoted", "line_joined", "short_row",
    "delimiter_mixed",
]  # fmt: skip

_ENTITY: Final = re.compile(
    "&(?:amp|lt|gt|quot|apos|nbsp|euro|pound|(?:[aeiouAEIOU](?:grave|acute|circ|uml)|[anoANO]tilde|[aA]ring|[cC]cedil"
    "|[oO]slash|szlig|[aA][eE]lig|[nm]dash|[lr][sd]quo|hellip|#[0-9]{2,6}|#x[0-9a-fA-F]{2,5}));"
)

csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))  # a field is bounded by its line and by MAX_FIELD


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How the records of a text file are written."""

    delimiter: str
    quote: str = '"'  # empty: the file has no quotes
    escape: str | None = None  # the character before a quote inside a quoted field
    undo_backslashes: bool = True  # two escapes in a quoted field mean one
    skip_blanks: bool = False  # blanks between a delimiter and a value are not part of it
    skip_lines: int = 0  # a leading "sep=;" is not a row
    width: int = 1  # fields in most records
    sure: bool = True  # False: another delimiter fits as well
    evidence: Mapping[str, int] = field(default_factory=dict)  # delimiter -> records of the usual width
    rival: str = ""
    in_quotes: bool = False  # each line as a whole is in quotes


@dataclass
class Troubles:
    """Ambiguous records: how many of each kind, and the numbers of the first ones."""

    counts: dict[Trouble, int] = field(default_factory=dict)
    rows: dict[Trouble, list[int]] = field(default_factory=dict)

    def add(self, kind: Trouble, row: int) -> None:
        """Count a record; one that is counted several times in a row counts once."""
        rows = self.rows.setdefault(kind, [])
        if rows and rows[-1] == row:
            return
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if len(rows) < _LISTED_ROWS:
            rows.append(row)


def line_blocks(text: io.TextIOBase) -> Iterator[list[str]]:
    """Yield the text as blocks of whole lines, with their line ends."""
    rest = ""
    while chunk := text.read(_CHUNK_CHARACTERS):
        if chunk[-1] == "\r":
            chunk += text.read(1)  # keep the two halves of a line end together
        lines = io.StringIO(rest + chunk, newline="").readlines()
        rest = "" if lines[-1][-1] in "\r\n" else lines.pop()
        if len(rest) >= MAX_LINE:
            raise errors.too_large(f"a line has over {MAX_LINE} characters")
        if lines:
            yield lines
    if rest:
        yield [rest]


class Records:
    """Splits lines into records by a dialect, block by block."""

    def __init__(
        self,
        blocks: Iterable[list[str]],
        dialect: Dialect,
        *,
        spoiled: re.Pattern[str] | None = None,
        is_cut: bool = False,
    ) -> None:
        """Prepare to split blocks of lines. `spoiled`: what stands for undecodable bytes. `is_cut`: the text continues
        after the last line, so an open quote there is no trouble."""
        self.troubles = Troubles()
        self._blocks = iter(blocks)
        self._dialect = dialect
        self._fields = _Fields(dialect)
        self._spoiled = spoiled
        self._is_cut = is_cut
        self._lines: deque[str] = deque()
        self._row = 0
        self._characters_left = _CHARACTERS_SEARCHED

    def batches(self) -> Iterator[list[list[str]]]:
        """Yield the records in order; a blank line is a record without fields."""
        for lines in self._blocks:
            text = "".join(lines)
            if "\ufeff" in text:
                lines = [line.lstrip("\ufeff") for line in lines]  # noqa: PLW2901  # marks of files that were joined
                text = "".join(lines)
            records: list[list[str]] = []
            regular_lines = 0
            if self._spoiled is None or not self._spoiled.search(text):
                regular_lines = self._append_regular(lines, text, records)
                self._row += len(records)
            if regular_lines < len(lines):
                self._lines.extend(lines[regular_lines:])
                records += self._each_record()
            if may_be_twice(text):
                self._count_trouble("encoded_twice", TWICE, records)
            if "&" in text and _ENTITY.search(text):
                self._count_trouble("entities", _ENTITY, records)
            yield _unwrap_formulas(records) if '="' in text else records

    def _count_trouble(self, trouble: Trouble, pattern: re.Pattern[str], records: list[list[str]]) -> None:
        """Count the records of the last batch in which a pattern occurs."""
        undecodable_rows = frozenset(self.troubles.rows.get("undecodable", ()))
        for row, record in enumerate(records, self._row - len(records) + 1):
            if row not in undecodable_rows and any(map(pattern.search, record)):
                self.troubles.add(trouble, row)

    def _append_regular(self, lines: list[str], text: str, records: list[list[str]]) -> int:
        """Append records while all quotes are regular; returns the number of lines that they are made of."""
        dialect = self._dialect
        is_quoted = bool(dialect.quote) and dialect.quote in text
        if is_quoted and ((dialect.escape and dialect.escape in text) or self._fields.has_padding(text)):
            return 0
        with contextlib.suppress(csv.Error):
            records.extend(self._csv_reader(lines, is_quoted=is_quoted))
        if len(records) == len(lines):
            return len(lines)
        records.clear()
        return self._append_until_trouble(lines, records) if is_quoted else 0

    def _append_until_trouble(self, lines: list[str], records: list[list[str]]) -> int:
        """Append records up to the first irregular quote, in blocks whose records may span several lines; returns the
        number of lines."""
        reader = self._csv_reader(lines, is_quoted=True)
        lines_read = 0
        with contextlib.suppress(csv.Error):
            for record in reader:
                if reader.line_num > lines_read + 1 and not self._is_one_record(
                    lines[lines_read : reader.line_num], record
                ):
                    break
                records.append(record)
                lines_read = reader.line_num
        return lines_read

    def _csv_reader(self, lines: list[str], *, is_quoted: bool) -> "_csv.Reader":
        """Make the standard library's reader for this dialect."""
        return csv.reader(
            lines,
            delimiter=self._dialect.delimiter,
            quotechar=self._dialect.quote if is_quoted else None,
            quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE,
            skipinitialspace=self._dialect.skip_blanks,
            strict=True,
        )

    def _each_record(self) -> Iterator[list[str]]:
        """Yield the records of the buffered lines, read one by one; counts their troubles."""
        while self._lines:
            line = self._lines.popleft()
            self._row += 1
            if self._spoiled is not None and self._spoiled.search(line):
                self.troubles.add("undecodable", self._row)
                line = _as_windows(line)
            yield self._read_record(line)

    def _read_record(self, line: str) -> list[str]:
        """Read the record that starts with a line, in the reading that fits the table's width; counts its trouble."""
        fields = self._fields
        if not fields.quote or fields.quote not in line:
            return fields.plain(line)
        split = fields.strict(line)
        if split.open:
            if (record := self._read_over_lines(line, split)) is not None:
                return record
        elif not split.bad:
            return split.fields
        width = self._dialect.width
        lenient, literal = fields.lenient(line, width), fields.literal(line)
        if lenient is not None and (len(lenient) == width or len(literal) != width):
            if len(lenient) == width or (record := self._read_leniently_over_lines(line)) is None:
                record = lenient
            if not fields.is_apostrophe(line):
                self.troubles.add("stray_quote", self._row)
            return record
        if len(literal) != width and (record := self._read_leniently_over_lines(line)) is not None:
            self.troubles.add("stray_quote", self._row)
            return record
        self.troubles.add("open_quote" if split.open or lenient is None else "stray_quote", self._row)
        return literal

    def _read_over_lines(self, line: str, split: "_SplitLine") -> list[str] | None:
        """Read the record of a quoted field that spans lines; None if its quote is a plain character."""
        fields = self._fields
        lines = [line]
        size = len(line)
        while split.open:
            if not self._buffer_lines(len(lines)) or size > MAX_FIELD:
                if self._is_cut:
                    self._lines.clear()
                return split.fields if self._is_cut else None
            following = self._lines[len(lines) - 1]
            lines.append(following)
            size += len(following)
            split = fields.continue_record(following, split)
        if split.bad or not self._is_one_record(lines, split.fields):
            return None
        for _ in lines[1:]:
            self._lines.popleft()
        return self._repair_spoiled(split.fields)

    def _buffer_lines(self, count: int) -> bool:
        """Buffer at least this many lines; False at the end of the text."""
        while len(self._lines) < count:
            block = next(self._blocks, None)
            if block is None:
                return False
            self._lines.extend(block)
        return True

    def _is_one_record(self, lines: list[str], record: list[str]) -> bool:
        """Whether these lines are one record rather than one record each."""
        width = self._dialect.width
        if width < 2:  # a single column: no other evidence
            return True
        first, fields = lines[0], self._fields
        if len(record) == width and first.count(fields.quote) == 1 and first.count(fields.delimiter) + 1 != width:
            return True  # the usual case: the line that opens the quote is not a complete record
        is_complete = [len(fields.literal(line)) == width for line in lines]
        if all(is_complete):
            return width == 2 and len(lines) < 4  # an address: "Main Street\nSpringfield, IL"
        return len(record) == width or sum(is_complete) < 0.8 * len(lines)

    def _read_leniently_over_lines(self, line: str) -> list[str] | None:
        """Read the record of a field with undoubled quotes that spans lines; None if no few lines give the table's
        width."""
        text = line
        for count in range(1, _RETRIED_LINES):
            if not self._buffer_lines(count):
                return None
            text += self._lines[count - 1]
            self._characters_left -= len(text)
            if self._characters_left < 0:
                return None
            record = self._fields.lenient(text, self._dialect.width)
            if record is not None and len(record) == self._dialect.width:
                for _ in range(count):
                    self._lines.popleft()
                return self._repair_spoiled(record)
        return None

    def _repair_spoiled(self, record: list[str]) -> list[str]:
        """Return the record with undecodable bytes read as Windows-1252, and count it."""
        if self._spoiled is not None and any(map(self._spoiled.search, record)):
            self.troubles.add("undecodable", self._row)
            return list(map(_as_windows, record))
        return record


def _unwrap_formulas(records: list[list[str]]) -> list[list[str]]:
    """Unwrap fields written as ="007", which keeps a spreadsheet program from reading numbers."""
    return [
        [cell[2:-1] if cell[:2] == '="' and cell[-1:] == '"' and '"' not in cell[2:-1] else cell for cell in record]
        for record in records
    ]


def _as_windows(text: str) -> str:
    """Decode bytes that are not UTF-8 as Windows-1252; undefined ones become U+FFFD."""
    return re.sub(
        "[\udc80-\udcff]+",
        lambda bad_bytes: bad_bytes[0].encode("ascii", "surrogateescape").decode("cp1252", "replace"),
        text,
    )


@dataclass
class _SplitLine:
    """The fields of a record as far as they were split."""

    fields: list[str]
    open: bool = False  # a quoted field continues on the next line
    bad: bool = False  # a misplaced quote
    parts: list[str] = field(default_factory=list)  # of the open field


class _ReadField(NamedTuple):
    """A field of a line."""

    value: str
    is_last: bool  # of its line
    end: int  # the position behind it and its delimiter


class _Fields:
    """Splits a line by a dialect, in each of its readings."""

    def __init__(self, dialect: Dialect) -> None:
        """Make the expressions for fields of the dialect: what begins, fills and ends them."""
        self.delimiter, self.quote, self.escape = dialect.delimiter, dialect.quote, dialect.escape
        self._skip_blanks = dialect.skip_blanks
        self._undoes_backslashes = dialect.undo_backslashes
        delimiter, quote = re.escape(self.delimiter), re.escape(self.quote or "\0")
        blanks = f"[{' '.replace(self.delimiter, '')}{chr(9).replace(self.delimiter, '')}]*"
        escape = re.escape(self.escape) if self.escape else ""
        pairs = f"(?:{quote}{quote}|{escape}.)" if escape else quote * 2
        inside = f"[^{quote}{escape}]*+(?:{pairs}[^{quote}{escape}]*+)*+"
        end = r"(?=[\r\n]*\Z)"
        self._opens = re.compile(f"{blanks}{quote}")
        self._inside = re.compile(inside, re.DOTALL)
        # Each matches a delimiter behind the field, or the end of the line without one.
        stop = f"(?:(?P<delimiter>{delimiter})|{end})"
        self._closes = re.compile(f"{quote}{blanks}{stop}")
        self._bare = re.compile(f"(?P<value>[^{delimiter}\r\n]*){stop}")
        self._unbroken = re.compile(f"(?P<value>[^{delimiter}]*?){stop}", re.DOTALL)
        self._lenient = [
            re.compile(f"{blanks}{quote}(?P<value>{within}){quote}{blanks}{stop}", re.DOTALL)
            for within in (
                f"(?:{quote}{quote}|.)*?",
                ".*?",
            )  # two quotes at the end: a pair, or a character and the close
        ]
        padding = f" *\t{blanks}" if dialect.skip_blanks else blanks.replace("*", "+")  # `csv` skips these itself
        self._padded = re.compile(f"[\r\n{delimiter}]{padding}{quote}")
        self._apostrophes = re.compile(r"(?<=[^\W\d_])'(?=[^\W\d_]|\s)|(?<!\w)'(?=\w\w?\b)")

    def has_padding(self, text: str) -> bool:
        """Whether there are blanks between a delimiter and a quote that `csv` does not skip."""
        if f" {self.quote}" not in text and f"\t{self.quote}" not in text:
            return False
        return self._padded.search(text) is not None or text[:1] in (" ", "\t")

    def plain(self, line: str) -> list[str]:
        """Split a line without quotes."""
        body = line.rstrip("\r\n")
        if not body:
            return []
        fields = body.split(self.delimiter)
        return [cell.lstrip(" ") for cell in fields] if self._skip_blanks else fields

    def strict(self, line: str) -> _SplitLine:
        """Split a line by regular quotes; the last field may stay open."""
        return self._split_from(line, 0, _SplitLine([]))

    def continue_record(self, line: str, split: _SplitLine) -> _SplitLine:
        """Continue a record whose last field is quoted and still open with its next line; changes and returns it."""
        inside = self._inside.match(line)
        end = inside.end() if inside else 0
        split.parts.append(line[:end])
        if end == len(line):
            return split
        return self._close_field(line, end, split)

    def _split_from(self, line: str, start: int, split: _SplitLine) -> _SplitLine:
        """Split fields up to the end of the line, or until one stays open or is misquoted; changes `split` and returns
        it."""
        while True:
            opened = self._opens.match(line, start)
            if opened:
                inside = self._inside.match(line, opened.end())
                stop = inside.end() if inside else opened.end()
                split.parts = [line[opened.end() : stop]]
                if stop == len(line):
                    split.open = True
                    return split
                return self._close_field(line, stop, split)
            bare = self._bare.match(line, start) or self._unbroken.match(line, start)
            if bare is None:
                split.bad = True
                return split
            value = bare["value"]
            split.fields.append(value.lstrip(" ") if self._skip_blanks else value)
            if bare["delimiter"] is None:
                return split
            start = bare.end()

    def _close_field(self, line: str, position: int, split: _SplitLine) -> _SplitLine:
        """Close a quoted field at its quote and go on behind it; changes `split` and returns it."""
        closed = self._closes.match(line, position)
        split.open = False
        if closed is None:
            split.bad = True
            return split
        split.fields.append(self._undoubled("".join(split.parts)))
        if closed["delimiter"] is None:
            return split
        return self._split_from(line, closed.end(), split)

    def _undoubled(self, text: str) -> str:
        """Return the content of a quoted field, without the marks that stand before its quotes."""
        if self.escape and self.escape in text:
            text = text.replace(self.escape + self.quote, self.quote * 2)
            if self._undoes_backslashes:
                text = text.replace(self.escape * 2, self.escape)
        return text.replace(self.quote * 2, self.quote)

    def lenient(self, text: str, width: int) -> list[str] | None:
        """Split a line in which a quote closes only before a delimiter or the end; others are characters.

        Prefers a reading with `width` fields to any other; None if a quote stays open in all.
        """
        readings = [self._split_leniently(text, expression) for expression in self._lenient]
        complete = [reading for reading in readings if reading is not None]
        fit = next((reading for reading in complete if len(reading) == width), None) or self._fit_to_width(text, width)
        return fit or (complete[0] if complete else None)

    def _fit_to_width(self, text: str, width: int) -> list[str] | None:
        """Return the first way to close quoted fields that gives this many fields; None if there is none."""
        if width < 2 or len(text) > _MOST_FITTED_CHARACTERS or text.count(self.quote) > _MOST_FITTED_QUOTES:
            return None
        dead_ends: set[tuple[int, int]] = set()

        def fields_from(start: int, count: int) -> list[str] | None:
            """Return the fields of the text from a position on, if there are just `count` of them; None if not."""
            if (start, count) in dead_ends or not count:
                return None
            opened = self._opens.match(text, start)
            for closed in self._closes.finditer(text, opened.end()) if opened else ():
                value = self._undoubled(text[opened.end() : closed.start()]) if opened else ""
                following = fields_after(closed.end(), count, is_last=closed["delimiter"] is None)
                if following is not None:
                    return [value, *following]
            bare = None if opened else self._unbroken.match(text, start)
            if bare is not None:
                following = fields_after(bare.end(), count, is_last=bare["delimiter"] is None)
                if following is not None:
                    return [bare["value"], *following]
            dead_ends.add((start, count))
            return None

        def fields_after(end: int, count: int, *, is_last: bool) -> list[str] | None:
            """Return what follows a field that ends there, the first of `count`; None if those are not just as many."""
            if is_last:
                return [] if count == 1 else None
            return fields_from(end, count - 1)

        return fields_from(0, width) if text.count(self.delimiter) < _MOST_FITTED_FIELDS else None

    def _split_leniently(self, text: str, quoted: re.Pattern[str]) -> list[str] | None:
        """Split by one expression for quoted fields; None if a quote stays open."""
        fields: list[str] = []
        position = 0
        while True:
            match = quoted.match(text, position)
            if match is None and self._opens.match(text, position):
                return None
            if match is not None:
                value = self._undoubled(match["value"])
                wrapped = len(value) > 1 and value[0] == value[-1] == self.quote and self.quote not in value[1:-1]
                fields.append(value[1:-1] if wrapped else value)  # ""1,069.5"": quoted twice
            else:
                match = self._unbroken.match(text, position)
                if match is None:
                    return None
                fields.append(match["value"])
            if match["delimiter"] is None:
                return fields
            position = match.end()

    def literal(self, line: str) -> list[str]:
        """Split a line, with fields of irregular quotes as they are written; the others are read as usual."""
        fields: list[str] = []
        position = 0
        while True:
            quoted = self._regular_quoted(line, position)
            if quoted is None:
                match = self._unbroken.match(line, position)
                if match is None:
                    return fields
                quoted = _ReadField(match["value"], match["delimiter"] is None, match.end())
            fields.append(quoted.value)
            if quoted.is_last:
                return fields
            position = quoted.end

    def _regular_quoted(self, line: str, position: int) -> "_ReadField | None":
        """Read the field with regular quotes at a position; None if there is none."""
        opened = self._opens.match(line, position)
        if opened is None:
            return None
        inside = self._inside.match(line, opened.end())
        stop = inside.end() if inside else opened.end()
        closed = self._closes.match(line, stop)
        if closed is None:
            return None
        return _ReadField(self._undoubled(line[opened.end() : stop]), closed["delimiter"] is None, closed.end())

    def is_apostrophe(self, line: str) -> bool:
        """Whether all quotes inside this line's fields are apostrophes: O'Brien, dogs', 'n'."""
        if self.quote != "'":
            return False
        delimiter = re.escape(self.delimiter)
        inner = re.sub(rf"(?:^|(?<={delimiter}))[ \t]*'|'[ \t]*(?=[\r\n]*$|{delimiter})|''", "", line)
        return "'" not in self._apostrophes.sub("", inner)
