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
from typing import Final, Literal

from runner.engine.reading import errors
from runner.engine.reading.runs import TWICE, may_be_twice

MAX_LINE: Final = 16 * 1024 * 1024
MAX_FIELD: Final = 4 * 1024 * 1024  # characters in a quoted field of several lines; beyond that its quote never closed
_CHUNK: Final = 256 * 1024
_KEPT: Final = 1_000
_FITTED_CHARS: Final = 20_000  # a line with more of any of the three is not tried in all ways
_FITTED_FIELDS: Final = 500
_FITTED_QUOTES: Final = 60
_PATIENCE: Final = 2_000_000  # characters searched per file for the ends of fields with undoubled quotes
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
        rows = self.rows.setdefault(kind, [])
        if rows and rows[-1] == row:
            return
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if len(rows) < _KEPT:
            rows.append(row)


def line_blocks(text: io.TextIOBase) -> Iterator[list[str]]:
    """The text as blocks of whole lines, with their line ends."""
    rest = ""
    while chunk := text.read(_CHUNK):
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
        self.troubles = Troubles()
        self._blocks = iter(blocks)
        self._dialect = dialect
        self._fields = _Fields(dialect)
        self._spoiled = spoiled  # characters that replace undecodable bytes
        self._is_cut = is_cut  # the text continues after the last line: an open quote there is not a problem
        self._lines: deque[str] = deque()
        self._row = 0
        self._patience = _PATIENCE

    def batches(self) -> Iterator[list[list[str]]]:
        """The records in order; a blank line is a record without fields."""
        for lines in self._blocks:
            text = "".join(lines)
            if "\ufeff" in text:
                lines = [line.lstrip("\ufeff") for line in lines]  # noqa: PLW2901  # marks of files that were joined
                text = "".join(lines)
            records: list[list[str]] = []
            done = 0
            if self._spoiled is None or not self._spoiled.search(text):
                done = self._regular(lines, text, records)
                self._row += len(records)
            if done < len(lines):
                self._lines.extend(lines[done:])
                records += self._one_by_one()
            if may_be_twice(text):
                self._note("encoded_twice", TWICE, records)
            if "&" in text and _ENTITY.search(text):
                self._note("entities", _ENTITY, records)
            yield _unwrapped(records) if '="' in text else records

    def _note(self, trouble: Trouble, pattern: re.Pattern[str], records: list[list[str]]) -> None:
        known = frozenset(self.troubles.rows.get("undecodable", ()))
        for row, record in enumerate(records, self._row - len(records) + 1):
            if row not in known and any(map(pattern.search, record)):
                self.troubles.add(trouble, row)

    def _regular(self, lines: list[str], text: str, records: list[list[str]]) -> int:
        """Take records while all quotes are regular; returns the number of lines taken."""
        dialect = self._dialect
        is_quoted = bool(dialect.quote) and dialect.quote in text
        if is_quoted and ((dialect.escape and dialect.escape in text) or self._fields.has_padding(text)):
            return 0
        with contextlib.suppress(csv.Error):
            records.extend(self._reader(lines, is_quoted=is_quoted))
        if len(records) == len(lines):
            return len(lines)
        records.clear()
        return self._up_to_trouble(lines, records) if is_quoted else 0

    def _up_to_trouble(self, lines: list[str], records: list[list[str]]) -> int:
        """Like `_regular`, for blocks in which records may span several lines."""
        reader = self._reader(lines, is_quoted=True)
        done = 0
        with contextlib.suppress(csv.Error):
            for record in reader:
                if reader.line_num > done + 1 and not self._is_one(lines[done : reader.line_num], record):
                    break
                records.append(record)
                done = reader.line_num
        return done

    def _reader(self, lines: list[str], *, is_quoted: bool) -> "_csv.Reader":
        return csv.reader(
            lines,
            delimiter=self._dialect.delimiter,
            quotechar=self._dialect.quote if is_quoted else None,
            quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE,
            skipinitialspace=self._dialect.skip_blanks,
            strict=True,
        )

    def _one_by_one(self) -> Iterator[list[str]]:
        while self._lines:
            line = self._lines.popleft()
            self._row += 1
            if self._spoiled is not None and self._spoiled.search(line):
                self.troubles.add("undecodable", self._row)
                line = _as_windows(line)
            yield self._record(line)

    def _record(self, line: str) -> list[str]:
        fields = self._fields
        if not fields.quote or fields.quote not in line:
            return fields.plain(line)
        found = fields.strict(line)
        if found.open:
            if (record := self._run_on(line, found)) is not None:
                return record
        elif not found.bad:
            return found.fields
        width = self._dialect.width
        loose, literal = fields.lenient(line, width), fields.literal(line)
        if loose is not None and (len(loose) == width or len(literal) != width):
            if len(loose) == width or (record := self._lenient_over_lines(line)) is None:
                record = loose
            if not fields.is_apostrophe(line):
                self.troubles.add("stray_quote", self._row)
            return record
        if len(literal) != width and (record := self._lenient_over_lines(line)) is not None:
            self.troubles.add("stray_quote", self._row)
            return record
        self.troubles.add("open_quote" if found.open or loose is None else "stray_quote", self._row)
        return literal

    def _run_on(self, line: str, found: "_Found") -> list[str] | None:
        """The record of a quoted field that spans lines; None if its quote is a plain character."""
        fields = self._fields
        taken = [line]
        size = len(line)
        while found.open:
            if not self._fill(len(taken)) or size > MAX_FIELD:
                if self._is_cut:
                    self._lines.clear()
                return found.fields if self._is_cut else None
            following = self._lines[len(taken) - 1]
            taken.append(following)
            size += len(following)
            found = fields.go_on(following, found)
        if found.bad or not self._is_one(taken, found.fields):
            return None
        for _ in taken[1:]:
            self._lines.popleft()
        return self._mended(found.fields)

    def _fill(self, wanted: int) -> bool:
        """Buffer at least this many lines; False at the end of the text."""
        while len(self._lines) < wanted:
            block = next(self._blocks, None)
            if block is None:
                return False
            self._lines.extend(block)
        return True

    def _is_one(self, lines: list[str], record: list[str]) -> bool:
        """Whether these lines are one record rather than one record each."""
        width = self._dialect.width
        if width < 2:  # a single column: no other evidence
            return True
        first, fields = lines[0], self._fields
        if len(record) == width and first.count(fields.quote) == 1 and first.count(fields.delimiter) + 1 != width:
            return True  # the usual case: the line that opens the quote is not a complete record
        alone = [len(fields.literal(line)) == width for line in lines]
        if all(alone):
            return width == 2 and len(lines) < 4  # an address: "Main Street\nSpringfield, IL"
        return len(record) == width or sum(alone) < 0.8 * len(lines)

    def _lenient_over_lines(self, line: str) -> list[str] | None:
        text = line
        for count in range(1, _RETRIED_LINES):
            if not self._fill(count):
                return None
            text += self._lines[count - 1]
            self._patience -= len(text)
            if self._patience < 0:
                return None
            record = self._fields.lenient(text, self._dialect.width)
            if record is not None and len(record) == self._dialect.width:
                for _ in range(count):
                    self._lines.popleft()
                return self._mended(record)
        return None

    def _mended(self, record: list[str]) -> list[str]:
        if self._spoiled is not None and any(map(self._spoiled.search, record)):
            self.troubles.add("undecodable", self._row)
            return list(map(_as_windows, record))
        return record


def _unwrapped(records: list[list[str]]) -> list[list[str]]:
    """Fields written as ="007", which keeps a spreadsheet program from reading numbers, as 007."""
    return [
        [one[2:-1] if one[:2] == '="' and one[-1:] == '"' and '"' not in one[2:-1] else one for one in record]
        for record in records
    ]


def _as_windows(text: str) -> str:
    """Decode bytes that are not UTF-8 as Windows-1252; undefined ones become U+FFFD."""
    return re.sub(
        "[\udc80-\udcff]+", lambda run: run[0].encode("ascii", "surrogateescape").decode("cp1252", "replace"), text
    )


@dataclass
class _Found:
    """The part of a record found so far."""

    fields: list[str]
    open: bool = False  # a quoted field continues on the next line
    bad: bool = False  # a misplaced quote
    parts: list[str] = field(default_factory=list)  # of the open field


class _Fields:
    """Splits a line by a dialect, in each of its readings."""

    def __init__(self, dialect: Dialect) -> None:
        self.delimiter, self.quote, self.escape = dialect.delimiter, dialect.quote, dialect.escape
        self._skip_blanks = dialect.skip_blanks
        self._undo = dialect.undo_backslashes
        d, q = re.escape(self.delimiter), re.escape(self.quote or "\0")
        blanks = f"[{' '.replace(self.delimiter, '')}{chr(9).replace(self.delimiter, '')}]*"
        e = re.escape(self.escape) if self.escape else ""
        pairs = f"(?:{q}{q}|{e}.)" if e else q * 2
        inside = f"[^{q}{e}]*+(?:{pairs}[^{q}{e}]*+)*+"
        end = r"(?=[\r\n]*\Z)"
        self._opens = re.compile(f"{blanks}{q}")
        self._inside = re.compile(inside, re.DOTALL)
        self._closes = re.compile(f"{q}{blanks}(?:({d})|{end})")
        self._bare = re.compile(f"([^{d}\r\n]*)(?:({d})|{end})")
        self._unbroken = re.compile(f"([^{d}]*?)(?:({d})|{end})", re.DOTALL)
        self._lenient = [
            re.compile(f"{blanks}{q}({within}){q}{blanks}(?:({d})|{end})", re.DOTALL)
            for within in (f"(?:{q}{q}|.)*?", ".*?")  # two quotes at the end: a pair, or a character and the close
        ]
        padding = f" *\t{blanks}" if dialect.skip_blanks else blanks.replace("*", "+")  # `csv` skips these itself
        self._padded = re.compile(f"[\r\n{d}]{padding}{q}")
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
        return [one.lstrip(" ") for one in fields] if self._skip_blanks else fields

    def strict(self, line: str) -> _Found:
        return self._from(line, 0, _Found([]))

    def go_on(self, line: str, found: _Found) -> _Found:
        """Continue the record with its next line."""
        inside = self._inside.match(line)
        at = inside.end() if inside else 0
        found.parts.append(line[:at])
        if at == len(line):
            return found
        return self._close(line, at, found)

    def _from(self, line: str, at: int, found: _Found) -> _Found:
        """Fields from here to the end of the line, or until one stays open or has a misplaced quote."""
        while True:
            opened = self._opens.match(line, at)
            if opened:
                inside = self._inside.match(line, opened.end())
                stop = inside.end() if inside else opened.end()
                found.parts = [line[opened.end() : stop]]
                if stop == len(line):
                    found.open = True
                    return found
                return self._close(line, stop, found)
            bare = self._bare.match(line, at) or self._unbroken.match(line, at)
            if bare is None:
                found.bad = True
                return found
            found.fields.append(bare[1].lstrip(" ") if self._skip_blanks else bare[1])
            if bare[2] is None:
                return found
            at = bare.end()

    def _close(self, line: str, at: int, found: _Found) -> _Found:
        closed = self._closes.match(line, at)
        found.open = False
        if closed is None:
            found.bad = True
            return found
        found.fields.append(self._undoubled("".join(found.parts)))
        if closed[1] is None:
            return found
        return self._from(line, closed.end(), found)

    def _undoubled(self, text: str) -> str:
        if self.escape and self.escape in text:
            text = text.replace(self.escape + self.quote, self.quote * 2)
            if self._undo:
                text = text.replace(self.escape * 2, self.escape)
        return text.replace(self.quote * 2, self.quote)

    def lenient(self, text: str, width: int) -> list[str] | None:
        """A quote closes only before a delimiter or the end; others are characters. None if one stays open."""
        readings = [self._leniently(text, expression) for expression in self._lenient]
        found = [one for one in readings if one is not None]
        fit = next((one for one in found if len(one) == width), None) or self._fitted(text, width)
        return fit or (found[0] if found else None)

    def _fitted(self, text: str, width: int) -> list[str] | None:
        """The first way to close quoted fields that gives this many fields; None if there is none."""
        if width < 2 or len(text) > _FITTED_CHARS or text.count(self.quote) > _FITTED_QUOTES:
            return None
        dead: set[tuple[int, int]] = set()

        def fields_from(at: int, left: int) -> list[str] | None:
            if (at, left) in dead or not left:
                return None
            opened = self._opens.match(text, at)
            for closed in self._closes.finditer(text, opened.end()) if opened else ():
                value = self._undoubled(text[opened.end() : closed.start()]) if opened else ""
                rest = fields_from(closed.end(), left - 1) if closed[1] is not None else [] if left == 1 else None
                if rest is not None:
                    return [value, *rest]
            bare = None if opened else self._unbroken.match(text, at)
            if bare is not None:
                rest = fields_from(bare.end(), left - 1) if bare[2] is not None else [] if left == 1 else None
                if rest is not None:
                    return [bare[1], *rest]
            dead.add((at, left))
            return None

        return fields_from(0, width) if text.count(self.delimiter) < _FITTED_FIELDS else None

    def _leniently(self, text: str, quoted: re.Pattern[str]) -> list[str] | None:
        fields: list[str] = []
        at = 0
        while True:
            match = quoted.match(text, at)
            if match is None and self._opens.match(text, at):
                return None
            if match is not None:
                value = self._undoubled(match[1])
                wrapped = len(value) > 1 and value[0] == value[-1] == self.quote and self.quote not in value[1:-1]
                fields.append(value[1:-1] if wrapped else value)  # ""1,069.5"": quoted twice
            else:
                match = self._unbroken.match(text, at)
                if match is None:
                    return None
                fields.append(match[1])
            if match[2] is None:
                return fields
            at = match.end()

    def literal(self, line: str) -> list[str]:
        """Take a field with irregular quotes literally; read the others as usual."""
        found = _Found([])
        at = 0
        while True:
            self_standing = self._one(line, at)
            if self_standing is not None:
                value, more, at = self_standing
            else:
                match = self._unbroken.match(line, at)
                if match is None:
                    return found.fields
                value, more, at = match[1], match[2] is not None, match.end()
            found.fields.append(value)
            if not more:
                return found.fields

    def _one(self, line: str, at: int) -> tuple[str, bool, int] | None:
        """A quoted field with regular quotes."""
        opened = self._opens.match(line, at)
        if opened is None:
            return None
        inside = self._inside.match(line, opened.end())
        stop = inside.end() if inside else opened.end()
        closed = self._closes.match(line, stop)
        if closed is None:
            return None
        return self._undoubled(line[opened.end() : stop]), closed[1] is not None, closed.end()

    def is_apostrophe(self, line: str) -> bool:
        """Whether all quotes inside this line's fields are apostrophes: O'Brien, dogs', 'n'."""
        if self.quote != "'":
            return False
        d = re.escape(self.delimiter)
        inner = re.sub(rf"(?:^|(?<={d}))[ \t]*'|'[ \t]*(?=[\r\n]*$|{d})|''", "", line)
        return "'" not in self._apostrophes.sub("", inner)
