"""What the memories know about a sender's sheets, as evidence for finding the tables of the next one.

A remembered shape is the header of a table that a person has confirmed. A row that has the same texts is a header row,
however poor its sheet is. Whatever does not fit the sheet at hand is ignored: a shape never adds a row, and a row that
is not there cannot be a header. `Table.shape` names the shape that was used; artifact.json says from which memory.

What helps whom: the texts of a header row help every sender. That a table has no header row, that everything below the
header is one table, and that a sheet is left out, count only for the sender of whom it was said.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, NamedTuple

from runner.engine.common.instants import instant
from runner.engine.memory.confirmed import StoredShape
from runner.engine.structure.facts import Row
from runner.engine.structure.header_rows import JOIN, MAX_NAME, Area, Hints, cell_text, columns
from runner.engine.structure.tables import RememberedShape, Table

HEADER: Final = {"header": 20.0}  # as much as a header row that the manifest names
NO_HEADER: Final = {"header": -20.0}  # the row above a header of as many rows as were confirmed
BELOW: Final = {"data": 4.0}
MOST_COMPARED: Final = 1_000  # kept rows that are compared with headers
MOST_STACKED: Final = 5  # rows of a header
_TEXT_SEPARATOR: Final = "\x1f"
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)

Detect = Callable[[Hints], list[Table]]


class HeaderMatch(NamedTuple):
    """Rows of a sheet that are a confirmed header."""

    rows: tuple[int, ...]  # their numbers
    shape: RememberedShape
    is_whole: bool  # nothing else is in these rows


class SenderShapes:
    """The shapes of all memories, seen from one sender."""

    def __init__(self, entries: Iterable[StoredShape], sender: str | None) -> None:
        """Sort the shapes of all memories, the most specific last; only those of this sender are read in full."""
        self._sender = sender
        self._header_shapes: dict[
            tuple[int, str], RememberedShape | StoredShape
        ] = {}  # header rows and their texts -> whose
        self._headless_shapes: dict[str, list[RememberedShape]] = {}  # shapes of this sender that have no header
        self.known: set[str] = set()  # headers of this sender's tables
        own_shapes = []
        for source in entries:
            entry = source.entry
            if entry["sender"] == sender:
                own_shapes.append(_parse_shape(source))
            elif (rows := len(entry.get("header_rows", ()))) and _TEXT_SEPARATOR in (
                key := header_key(entry.get("headers", ()))
            ):
                self._header_shapes[rows, key] = source  # one text would say nothing about another sender's sheets
        for shape in sorted(own_shapes, key=lambda shape: (shape.by_person, shape.moment)):
            key = header_key(shape.headers)
            if shape.header_rows and key:
                self.known.add(key)
                self._header_shapes[len(shape.header_rows), key] = shape
            else:
                self._headless_shapes.setdefault(shape.sheet.casefold(), []).append(shape)
        # What the last row of a header may start with: the first text, or of stacked rows any of the lowest.
        self._first_texts = {key.partition(_TEXT_SEPARATOR)[0] for rows, key in self._header_shapes if rows == 1}
        for rows, key in self._header_shapes:
            if rows > 1:
                self._first_texts.update(name.rpartition(JOIN)[2] for name in key.split(_TEXT_SEPARATOR))
        self._stacked_sizes = sorted(
            {rows for rows, _ in self._header_shapes if 1 < rows <= MOST_STACKED}, reverse=True
        )

    def __bool__(self) -> bool:
        return bool(self._header_shapes or self._headless_shapes)

    def left_out(self, sheet: str) -> RememberedShape | None:
        """Return the shape of this sender that leaves a sheet out, by its name; None if it is not left out."""
        shapes = [shape for shape in self._headless_shapes.get(sheet.casefold(), ()) if not shape.headers]
        return shapes[-1] if shapes and shapes[-1].left_out else None

    def cut(self, sheet: str) -> RememberedShape | None:
        """Return the shape that says how a sheet is cut into tables where that is in doubt; None if none does."""
        shapes = [s for s in self._headless_shapes.get(sheet.casefold(), ()) if not s.headers]
        return shapes[-1] if shapes and shapes[-1].cut else None

    def read(self, sheet: str, file: str, rows: Sequence[Row], hints: Hints, detect: Detect) -> list[Table]:
        """Find the tables of a sheet with what is remembered about it. `file`: the letters of its file's name."""
        matches = list(self._match_headers(rows, hints.layout.merged))
        if not matches:
            return self._read_without_header(sheet, file, hints, detect)
        own_matches = [match for match in matches if match.is_whole and self._is_own(match.shape)]
        named = next(
            (match for match in own_matches if match.shape.named and match.shape.sheet.casefold() == sheet.casefold()),
            None,
        )
        if named is not None:
            return [self._attach_confirmed_shape(table) for table in detect(replace(hints, fixed=named.rows))]
        tables = detect(hints)
        missing = [match for match in matches if not any(self._is_found(match, table) for table in tables)]
        if missing:
            tables = detect(replace(hints, scores={**hints.scores, **self._score_rows(rows, missing)}))
        if (
            missing
            and own_matches
            and not any(match.rows == table.header_rows for match in own_matches for table in tables)
        ):
            tables = detect(replace(hints, fixed=own_matches[0].rows))
        return [self._attach_confirmed_shape(table) for table in tables]

    def _is_found(self, match: HeaderMatch, table: Table) -> bool:
        """Whether a table has the header without a doubt; another sender's may have rows above it."""
        is_whole_own = match.is_whole and self._is_own(match.shape)
        is_same = (
            table.header_rows == match.rows if is_whole_own else table.header_rows[-len(match.rows) :] == match.rows
        )
        return is_same and all(choice.sure for choice in table.choices if choice.kind == "header")

    def _is_own(self, shape: RememberedShape) -> bool:
        """Whether a shape is this sender's."""
        return shape.sender == self._sender

    def _attach_confirmed_shape(self, table: Table) -> Table:
        """Attach the shape that was confirmed for a table's header; returns the table as it is if none was."""
        key = table_key(table)
        shape = self._shape_of_header(len(table.header_rows), key)
        return table if shape is None else _attach_shape(table, shape, f"its header was confirmed{_by_whom(shape)}")

    def _shape_of_header(self, rows: int, key: str) -> RememberedShape | None:
        """Return the shape that was confirmed for so many header rows and these headers; None if none was.

        One of another sender is made of its entry when it is first asked for.
        """
        remembered = self._header_shapes.get((rows, key)) if rows and key else None
        if remembered is None or isinstance(remembered, RememberedShape):
            return remembered
        shape = self._header_shapes[rows, key] = _parse_shape(remembered)
        return shape

    def _read_without_header(self, sheet: str, file: str, hints: Hints, detect: Detect) -> list[Table]:
        """Find the tables, without a header row where one table was confirmed to have none and no header is plainly
        there."""
        tables = detect(hints)
        for shape in self._headless_shapes.get(sheet.casefold(), ()):
            if not shape.headers or shape.file != file:
                continue
            if len(tables) != 1 or len(tables[0].columns) != len(shape.headers):
                continue
            if tables[0].header_rows and not any(
                choice.kind == "header" and not choice.sure for choice in tables[0].choices
            ):
                continue
            headless = detect(replace(hints, fixed=()))
            if len(headless) == 1 and len(headless[0].columns) == len(shape.headers):
                return [_attach_shape(headless[0], shape, f"it was confirmed to have no header row{_by_whom(shape)}")]
        return tables

    def _match_headers(self, rows: Sequence[Row], merged: Sequence[Area]) -> Iterator[HeaderMatch]:
        """Yield each confirmed header once, with the first rows that are it."""
        shapes_seen: set[int] = set()
        for index, row in enumerate(rows[:MOST_COMPARED] if self._header_shapes else ()):
            for column in row.filled:
                text = cell_text(row.values[column])
                if (column and column - 1 in row.filled) or text.casefold() not in self._first_texts:
                    continue
                for match in self._match_ending_at(rows, index, column, merged):
                    if id(match.shape) not in shapes_seen:
                        shapes_seen.add(id(match.shape))
                        yield match

    def _match_ending_at(
        self, rows: Sequence[Row], index: int, first_column: int, merged: Sequence[Area]
    ) -> Iterator[HeaderMatch]:
        """Yield the confirmed header whose last row is the one at `index` and starts in this column, if there is one:
        of stacked rows the most, else the row alone, else its texts up to the next blank."""
        row = rows[index]
        if first_column == row.filled[0]:
            for row_count in (*self._stacked_sizes, 1):
                head = rows[index + 1 - row_count : index + 1]
                left = min(header_row.filled[0] for header_row in head or [row])
                right = max(header_row.last for header_row in head or [row]) - 1
                names = [] if len(head) < row_count else columns(head, left, right, merged)
                key = header_key("" if column.generated else column.name for column in names)
                if (shape := self._shape_of_header(row_count, key)) is not None:
                    yield HeaderMatch(tuple(header_row.number for header_row in head), shape, is_whole=True)
                    return
        last_column = first_column
        while last_column + 1 in row.filled:
            last_column += 1
        if last_column == first_column:
            return
        texts = (cell_text(value)[:MAX_NAME] for value in row.values[first_column : last_column + 1])
        if (shape := self._shape_of_header(1, header_key(texts))) is not None:
            yield HeaderMatch((row.number,), shape, is_whole=False)

    def _score_rows(self, rows: Sequence[Row], matches: Sequence[HeaderMatch]) -> dict[int, Mapping[str, float]]:
        """Return scores that make these matches header rows, by row number; marks their rows as not plain."""
        numbers = [row.number for row in rows]
        points: dict[int, Mapping[str, float]] = {}
        for match in matches:
            top, bottom = numbers.index(match.rows[0]), numbers.index(match.rows[-1])
            if top and match.is_whole:
                points.setdefault(numbers[top - 1], NO_HEADER)
            if bottom + 1 < len(numbers):
                points.setdefault(numbers[bottom + 1], BELOW)
        points |= dict.fromkeys((number for match in matches for number in match.rows), HEADER)
        for row in rows:
            if row.number in points:
                row.plain = False
        return points


def _parse_shape(source: StoredShape) -> RememberedShape:
    """Make a remembered shape of its entry in a memory."""
    entry, memory, version = source
    confirmed_at = instant(entry.get("said_at"))
    return RememberedShape(
        sender=entry["sender"],
        sheet=entry["sheet"],
        header_rows=tuple(entry.get("header_rows", ())),
        headers=tuple(entry.get("headers", ())),
        file=entry.get("file", ""),
        fields=tuple(entry.get("fields", ())),
        named=entry.get("named") is True,
        left_out=entry.get("left_out") is True,
        cut=entry.get("cut") or "",
        by=entry.get("by", ""),
        by_person=confirmed_at is not None,
        moment=confirmed_at or instant(entry.get("at")) or _LONG_AGO,
        memory=memory,
        version=version,
    )


def table_key(table: Table) -> str:
    """Return the headers of a table in the form in which they are compared."""
    return header_key("" if column.generated else column.name for column in table.columns)


def header_key(texts: Iterable[str]) -> str:
    """Return the texts of a header in the form in which they are compared: without case, and without blanks at both
    ends."""
    return _TEXT_SEPARATOR.join(texts).strip(_TEXT_SEPARATOR).casefold()


def _by_whom(shape: RememberedShape) -> str:
    """Say who confirmed a shape, for a message; empty if that is not known."""
    return f" by {shape.by}" if shape.by else ""


def _attach_shape(table: Table, shape: RememberedShape, why: str) -> Table:
    """Copy a table with a shape, and add why it has it to its reasons."""
    return replace(table, shape=shape, why=(*table.why, why))
