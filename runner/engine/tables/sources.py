"""Source tables: their places in the inputs, and their rows as column-wise chunks."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from runner.engine.common.a1 import CellRange
from runner.engine.common.findings import FindingPlace
from runner.engine.common.rowsets import RowSet
from runner.engine.options import DUPLICATE, FILTERED, GROUP, UnpivotOptions
from runner.engine.reading import Area, Block, Sheet, blocks_of
from runner.engine.reading.spool import SpooledSheet
from runner.engine.structure import Column, Table
from runner.engine.tables import filling
from runner.engine.tables.filling import Caption, CaptionColumn, FilledDown
from runner.engine.tables.supplied import NAME, PROVENANCE, VALUE
from runner.engine.tables.unpivoting import SpreadColumn, choose_spread_columns, make_rows

SAMPLED: Final = 200
_SPACES: Final = frozenset(c * n for c in " \t\xa0\u3000" for n in range(9))  # the usual cells of only spaces
SAMPLED_ROWS: Final = 10_000  # rows searched for a sample
_ROWS_ABOVE, _ROWS_BELOW = 12, 4  # rows around a table whose texts may be about it
_FEW_CELLS: Final = 3  # of such a row


class Rows(NamedTuple):
    """A chunk of a table: the numbers of its rows in the sheet, their values by column, and the captions between
    them."""

    numbers: list[int]
    columns: list[list[Any]]
    hidden: Sequence[int] = ()  # rows with values in the table's columns, left out because they are hidden
    captions: Sequence[Caption] = ()
    value_columns: Sequence[int] = ()  # of rows made of columns: for each the column of the sheet that its value is in
    filled: Mapping[int, FilledDown] = {}  # by column: blank cells that took the value above
    unmade: Sequence[int] = ()  # data rows of which no row is made: all those columns are blank


class SuppliedCell(NamedTuple):
    """A cell outside a table whose value is a column of it."""

    row: int
    column: int
    value: Any


class Leaving(NamedTuple):
    """What the manifest asks for rows and columns that are not plain data."""

    groups: str = "drop"  # or keep, fill
    totals: str = "auto"  # or drop, keep
    hidden_rows: frozenset[int] = frozenset()
    hidden_columns: frozenset[int] = frozenset()
    added: tuple[str, ...] = ()  # columns added to every table (supplied.py)


class SourceTable:
    """A table and the sheet it streams from.

    Pass 1 makes it; passes 2 to 4 then note what they decide about it and which of its rows go where, for the ledger.
    """

    def __init__(
        self,
        place: FindingPlace,
        sheet: Sheet,
        table: Table,
        leaving: Leaving | None = None,
        *,
        epoch_1904: bool = False,
        merged: Sequence[Area] = (),
    ) -> None:
        """Place a table that pass 1 found in its sheet; `merged` are the sheet's merged areas, `leaving` what the
        manifest leaves out."""
        leaving = leaving or Leaving()
        self.place = place
        self.epoch_1904 = epoch_1904  # the epoch of this book's day numbers
        self.sheet = sheet
        self.table = table
        self.columns = [c for c in table.columns if c.index not in leaving.hidden_columns]
        self.hidden_columns = [c for c in table.columns if c.index in leaving.hidden_columns]
        self.added = leaving.added
        self.left_out = _rows_left_out(table, leaving)  # rows that are not data, by kind
        self._hidden = leaving.hidden_rows
        self._caption_rows = self.left_out["group"] if GROUP in self.added else frozenset()  # rows whose captions count
        self.rows_left_out = leaving.hidden_rows.union(*self.left_out.values())  # all rows that are left out
        written_anyway = (table.groups | table.totals) - self.rows_left_out
        self.top, self.bottom = _data_span(table, written_anyway)
        self._first = (
            min(self.top, *self._caption_rows) if self._caption_rows else self.top
        )  # a caption may be above the data
        self.data_rows = RowSet()  # data rows, in the output unless the table is skipped
        self.rejected = RowSet()  # data rows with errors
        self.lacks_required = False  # a required field has no column, so all of its rows lack a value
        self.removed = {FILTERED: RowSet(), DUPLICATE: RowSet()}  # data rows that the manifest's `rows` leaves out
        self.split_off = RowSet()  # those of them that are not written
        self.skipped = ""  # why it is not used though it has rows
        self.is_confirmed = False  # a person has said which rows are its header
        self.is_turned = False  # its first column has the names of the fields, so its header may be a record
        self.altered: frozenset[int] = frozenset()  # positions of headers that differ from the header that is repeated
        self.dittos: frozenset[int] = frozenset()  # positions of columns with ditto marks that mean the value above
        self.hidden = RowSet()  # data rows that are left out because they are hidden
        self.fill_down: frozenset[int] = frozenset()  # positions of columns whose blank cells take the value above
        self.unmade = RowSet()  # data rows that are left out because no row is made of them
        self.spread: list[SpreadColumn] = []  # columns that become rows, and are none of its columns
        self.blanks = "drop"  # whether blank cells of them become rows
        self.caption: SuppliedCell | None = None  # the caption above it, where that counts
        self.surroundings: tuple[str | None, ...] = ()  # caption and labelled values that tell its rows from others
        self.labelled: dict[str, SuppliedCell] = {}  # added column -> its value in every row
        span = CellRange(self.top, table.range.left, self.bottom, table.range.right)
        self.merged = filling.within(merged, span)

    @property
    def id(self) -> str:
        """What findings and documents call the table."""
        return self.place.table

    @property
    def rows_with_errors(self) -> int:
        """Count the data rows with errors; what the manifest's `rows` leaves out is none of them."""
        if self.lacks_required:
            return self.data_rows.count - sum(removed.count for removed in self.removed.values())
        return self.rejected.count

    @property
    def has_data(self) -> bool:
        """Whether it has rows of data, and columns that are not all hidden."""
        return self.top <= self.bottom and bool(self.columns or self.spread)

    def unpivot(self, options: UnpivotOptions) -> None:
        """Set that the columns which the options name become rows; they are no longer among `columns`."""
        self.spread = choose_spread_columns(self.columns, options)
        self.blanks = "drop" if options.drops_blanks else "keep"
        indexes = {spread_column.index for spread_column in self.spread}
        self.columns = [c for c in self.columns if c.index not in indexes]

    def place_of(self, added: str) -> int:
        """Return the position of an added column among the columns of a chunk."""
        return len(self.columns) + self.added.index(added)

    @property
    def place_of_values(self) -> int | None:
        """Return the position in a chunk of the values of columns that became rows; None if none did."""
        return self.place_of(VALUE) if self.spread else None

    def holds(self, column: int) -> bool:
        """Whether a column of the sheet (1-based) has a value in the data rows; also True for a sheet too long to scan
        again."""
        sheet = self.sheet
        if not isinstance(sheet, SpooledSheet):
            return True  # too long to scan again
        bit = 1 << column
        blocks = sheet.some_blocks(lambda e: e.columns & bit and e.first <= self.bottom and self.top <= e.last)
        return any(
            value is not None for block in blocks for value in block.within(self.top, self.bottom).columns[column - 1]
        )

    def samples(self, count: int = SAMPLED) -> list[list[Any]]:
        """Return the first values of each column, without blanks.

        A column that begins with blanks is searched further down; one without a header to its end, because it becomes
        part of the output only if it has values.
        """
        samples: list[list[Any]] = [[] for _ in (*self.columns, *self.added)]
        seen = 0
        for _, rows in chunks([self]):
            for sample, column in zip(samples, rows.columns, strict=True):
                if len(sample) < count:
                    sample.extend(islice((v for v in column if v is not None), count - len(sample)))
            seen += len(rows.numbers)
            full = all(len(sample) >= count for sample in samples)
            unknown = any(c.generated and not s for c, s in zip(self.columns, samples, strict=False))
            if full or (seen >= SAMPLED_ROWS and not unknown):
                break
        return samples

    def texts_beside(self) -> list[tuple[int, int, str]]:
        """Return the texts of rows with few cells right above and below the table: row, column, text."""
        top = min(self.table.header_rows, default=self.top)
        near = ((top - _ROWS_ABOVE, top - 1), (self.bottom + 1, self.bottom + _ROWS_BELOW))
        sheet = self.sheet
        blocks = (
            sheet.some_blocks(lambda e: any(e.first <= last and first <= e.last for first, last in near))
            if isinstance(sheet, SpooledSheet) and sheet.complete
            else islice(blocks_of(sheet), 1)  # too long to read again
        )
        texts: list[tuple[int, int, str]] = []
        for block in blocks:
            for rows_near in (block.within(first, last) for first, last in near):
                for index, row in enumerate(rows_near.numbers):
                    cells = [
                        (number, column[index])
                        for number, column in enumerate(rows_near.columns, 1)
                        if column[index] is not None
                    ]
                    if len(cells) <= _FEW_CELLS:
                        texts += [(row, number, value) for number, value in cells if isinstance(value, str)]
        return texts

    def cells(self, column: int, rows: frozenset[int]) -> dict[int, Any]:
        """Map each of these rows to its value in a column of the sheet (1-based); rows that the sheet lacks are
        absent."""
        sheet = self.sheet
        wanted = RowSet.of(rows)
        blocks = (
            sheet.some_blocks(lambda e: wanted.meets(e.first, e.last))
            if isinstance(sheet, SpooledSheet)
            else blocks_of(sheet)
        )
        return {
            row: block.columns[column - 1][at]
            for block in blocks
            if column <= len(block.columns)
            for at, row in enumerate(block.numbers)
            if row in rows
        }

    def rows_in(self, block: Block) -> Rows | None:
        """Cut this table's data rows out of a block of the sheet, with captions and hidden rows; None if it has no row
        there."""
        first, last = bisect_left(block.numbers, self._first), bisect_right(block.numbers, self.bottom)
        if first >= last:
            return None
        numbers = block.numbers[first:last]
        width = len(block.columns)
        wanted: list[Column | SpreadColumn] = [*self.columns, *self.spread]
        columns = [
            block.columns[c.index - 1][first:last] if c.index <= width else [None] * len(numbers) for c in wanted
        ]
        blank = list(map(_is_blank, zip(*columns, strict=True))) if all(map(_has_gaps, columns)) else []
        if not any(blank) and self.rows_left_out.isdisjoint(numbers):
            return Rows(numbers, columns)
        filled_rows = [at for at in range(len(numbers)) if not (blank and blank[at])]
        data_rows = [at for at in filled_rows if numbers[at] not in self.rows_left_out]
        hidden = [numbers[at] for at in filled_rows if self._is_hidden(numbers[at])] if self._hidden else []
        captions = [
            _caption_in_row(numbers[at], at, columns) for at in filled_rows if numbers[at] in self._caption_rows
        ]
        if not data_rows and not hidden and not captions:
            return None
        numbers, columns = [numbers[at] for at in data_rows], [[column[at] for at in data_rows] for column in columns]
        return Rows(numbers, columns, hidden, captions)

    def _is_hidden(self, row: int) -> bool:
        """Whether a row is left out only because it is hidden."""
        return row in self._hidden and not any(row in rows for rows in self.left_out.values())

    def fill(self, rows: Rows, above: dict[tuple[str, int], Any]) -> dict[int, FilledDown]:
        """Fill the blank cells of the `fill_down` columns with the values above: changes `rows.columns` in place.

        Returns how many cells were filled, by column. `above` has the last value of each table and column, and is
        updated.
        """
        filled: dict[int, FilledDown] = {}
        for at in self.fill_down:
            column, filled_cells = filling.fill_down(rows.columns[at], above.get((self.id, at)), rows.numbers)
            rows.columns[at], above[self.id, at] = column, column[-1]
            if filled_cells is not None:
                filled[at] = filled_cells
        return filled

    def add_columns(self, rows: Rows, captions: CaptionColumn) -> Iterator[Rows]:
        """Yield these rows with the added columns; if columns become rows, yield those rows in chunks instead."""
        if not self.spread:
            yield rows._replace(
                columns=rows.columns + [self._added_column(what, rows, captions) for what in self.added]
            )
            return
        own_columns, spread = rows.columns[: len(self.columns)], rows.columns[len(self.columns) :]
        added = {what: self._added_column(what, rows, captions) for what in self.added if what not in (NAME, VALUE)}
        hidden, filled = rows.hidden, rows.filled
        for made in make_rows(self.spread, spread, drop=self.blanks == "drop"):
            repeated = {what: [column[at] for at in made.at] for what, column in added.items()}
            repeated |= {NAME: made.names, VALUE: made.values}
            columns = [[column[at] for at in made.at] for column in own_columns] + [
                repeated[what] for what in self.added
            ]
            unmade = [rows.numbers[at] for at in made.unmade]
            numbers = [rows.numbers[at] for at in made.at]
            yield Rows(numbers, columns, hidden, (), made.value_columns, filled, unmade)
            hidden, filled = (), {}

    def _added_column(self, content: str, rows: Rows, captions: CaptionColumn) -> list[Any]:
        """Make the values of an added column, one for each row; `content` names its content: a caption, the row number,
        …"""
        if content == GROUP:
            return [*captions.fill(rows.numbers, rows.captions)]
        file, sheet, row = PROVENANCE
        if content == row:
            return [*rows.numbers]
        if content in self.labelled:
            value = self.labelled[content].value
        else:
            value = {file: self.place.input, sheet: self.place.sheet}.get(content)
        return [value] * len(rows.numbers)


def _has_gaps(column: list[Any]) -> bool:
    """Whether a column may have blank cells."""
    return None in column or not _SPACES.isdisjoint(column)


def _is_blank(values: Iterable[Any]) -> bool:
    """Whether a row has no values, or only spaces."""
    return all(value is None or (value.__class__ is str and not value.strip()) for value in values)


def _rows_left_out(table: Table, leaving: Leaving) -> dict[str, frozenset[int]]:
    """Return the rows inside the table that are not data, by kind, as the manifest asks; each row has one kind."""
    return {
        "header": frozenset(table.header_rows),
        "repeated_header": table.repeated,
        "group": table.groups if leaving.groups != "keep" else frozenset(),
        "total": table.totals if leaving.totals != "keep" else frozenset(),
        "note": table.asides,
    }


def _data_span(table: Table, written_anyway: frozenset[int]) -> tuple[int, int]:
    """Return the first and last row of the data, 0 and -1 if there is none; captions and totals that are written, too,
    may be above or below the rest."""
    data = table.data_range
    ends = [*written_anyway, data.top, data.bottom] if data else [*written_anyway]
    return (min(ends), max(ends)) if ends else (0, -1)


def _caption_in_row(row: int, index: int, columns: Sequence[Sequence[Any]]) -> Caption:
    """Make the caption of a row: its first cell that has a value."""
    column, value = next(
        (position, values[index]) for position, values in enumerate(columns) if values[index] is not None
    )
    return Caption(row, column, value if isinstance(value, str) else str(value))


def unpivot(tables: Iterable[SourceTable], options: UnpivotOptions) -> None:
    """Turn the columns of these tables that the options name into rows."""
    for table in tables:
        table.unpivot(options)


def chunks(tables: Sequence[SourceTable]) -> Iterator[tuple[SourceTable, Rows]]:
    """Stream the data rows of tables of one sheet that are below each other, in one reading of it.

    Ditto marks and `fill_down` columns are filled with the value above, and added columns are there.
    """
    todo = sorted((t for t in tables if t.has_data), key=lambda t: t.top)
    if not todo:
        return
    captions = {t.id: CaptionColumn(t.caption and t.caption.value) for t in todo if t.added}
    above: dict[tuple[str, int], Any] = {}  # the last value of columns with ditto marks, or that are filled down
    for block in blocks_of(todo[0].sheet):
        if block.numbers[0] > todo[-1].bottom:
            return
        for table in todo:
            if (rows := table.rows_in(block)) is not None:
                for at in table.dittos if rows.numbers else ():
                    rows.columns[at] = filling.replace_dittos(rows.columns[at], above.get((table.id, at)))
                    above[table.id, at] = rows.columns[at][-1]
                if table.fill_down and rows.numbers:
                    rows = rows._replace(filled=table.fill(rows, above))
                if table.added:
                    yield from ((table, made) for made in table.add_columns(rows, captions[table.id]))
                else:
                    yield table, rows


def group_by_reading(tables: Sequence[SourceTable]) -> list[list[SourceTable]]:
    """Group the tables of a sheet so that tables of one group share no row: each group takes one reading of the
    sheet."""
    groups: list[list[SourceTable]] = []
    for table in sorted((t for t in tables if t.has_data), key=lambda t: (t.top, t.table.range.left)):
        for group in groups:
            if group[-1].bottom < table.top:
                group.append(table)
                break
        else:
            groups.append([table])
    return groups
