"""Source tables: their places in the inputs, and their rows as column-wise chunks."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from runner.engine.common.findings import FindingPlace
from runner.engine.common.rowsets import RowSet
from runner.engine.options import GROUP
from runner.engine.reading import Area, Block, Sheet, blocks_of
from runner.engine.reading.spool import SpooledSheet
from runner.engine.structure import Table
from runner.engine.tables import filling
from runner.engine.tables.filling import Caption, CaptionColumn

SAMPLED: Final = 200
_SPACES: Final = frozenset(c * n for c in " \t\xa0\u3000" for n in range(9))  # the usual cells of only spaces
PROVENANCE: Final = ("source_file", "source_sheet", "source_row")
SAMPLED_ROWS: Final = 10_000  # rows searched for a sample
_ABOVE, _BELOW = 12, 4  # rows around a table whose texts may be about it
_FEW_CELLS: Final = 3  # of such a row


class Rows(NamedTuple):
    """Some rows of a table: their numbers, a list of values per column, and the captions between them."""

    numbers: list[int]
    columns: list[list[Any]]
    hidden: Sequence[int] = ()  # rows with values in the table's columns, left out because they are hidden
    captions: Sequence[Caption] = ()


class Leaving(NamedTuple):
    """What the manifest asks for rows and columns that are not plain data."""

    groups: str = "drop"  # or keep, fill
    totals: str = "auto"  # or drop, keep
    hidden_rows: frozenset[int] = frozenset()
    hidden_columns: frozenset[int] = frozenset()
    added: tuple[str, ...] = ()  # columns added to every table: GROUP, those of PROVENANCE


class SourceTable:
    """A table and the sheet it streams from."""

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
        leaving = leaving or Leaving()
        self.place = place
        self.epoch_1904 = epoch_1904  # the epoch of this book's day numbers
        self.sheet = sheet
        self.table = table
        self.columns = [c for c in table.columns if c.index not in leaving.hidden_columns]
        self.hidden_columns = [c for c in table.columns if c.index in leaving.hidden_columns]
        self.added = leaving.added
        self.left_out = _left_out(table, leaving)
        self._hidden = leaving.hidden_rows
        self._groups = self.left_out["group"] if GROUP in self.added else frozenset()
        self.without = leaving.hidden_rows.union(*self.left_out.values())
        written_anyway = (table.groups | table.totals) - self.without
        self.top, self.bottom = _span(table, written_anyway)
        self._first = min(self.top, *self._groups) if self._groups else self.top  # a caption may be above the data
        self.data_rows = RowSet()  # data rows, in the output unless the table is skipped
        self.rejected = RowSet()  # data rows with errors
        self.split = False  # rows with errors are not written
        self.skipped = ""  # why it is not used though it has rows
        self.is_confirmed = False  # a person has said which rows are its header
        self.is_turned = False  # its first column has the names of the fields, so its header may be a record
        self.altered: frozenset[int] = frozenset()  # positions of headers that differ from the header that is repeated
        self.dittos: frozenset[int] = frozenset()  # positions of columns with ditto marks that mean the value above
        self.hidden = RowSet()  # data rows that are left out because they are hidden
        self.merged = filling.within(merged, self.top, self.bottom)

    @property
    def id(self) -> str:
        return self.place.table

    @property
    def has_data(self) -> bool:
        return self.top <= self.bottom and bool(self.columns)

    def place_of(self, added: str) -> int:
        """The position in the chunks of an added column."""
        return len(self.columns) + self.added.index(added)

    def holds(self, column: int) -> bool:
        """Whether a column of the sheet (1-based) has a value in the data rows."""
        sheet = self.sheet
        if not isinstance(sheet, SpooledSheet):
            return True  # too long to scan again
        bit = 1 << column
        blocks = sheet.some_blocks(lambda e: e.columns & bit and e.first <= self.bottom and self.top <= e.last)
        return any(
            value is not None for block in blocks for value in block.within(self.top, self.bottom).columns[column - 1]
        )

    def samples(self, count: int = SAMPLED) -> list[list[Any]]:
        """The first values of each column, without blanks.

        A column that begins with blanks is searched further down; one without a header to its end, because it is kept
        only if it has values.
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
        """The texts of rows with few cells right above and below the table: row, column, text."""
        top = min(self.table.header_rows, default=self.top)
        near = ((top - _ABOVE, top - 1), (self.bottom + 1, self.bottom + _BELOW))
        sheet = self.sheet
        blocks = (
            sheet.some_blocks(lambda e: any(e.first <= last and first <= e.last for first, last in near))
            if isinstance(sheet, SpooledSheet) and sheet.complete
            else islice(blocks_of(sheet), 1)  # too long to read again
        )
        texts: list[tuple[int, int, str]] = []
        for block in blocks:
            for cut in (block.within(first, last) for first, last in near):
                for index, row in enumerate(cut.numbers):
                    cells = [
                        (number, column[index])
                        for number, column in enumerate(cut.columns, 1)
                        if column[index] is not None
                    ]
                    if len(cells) <= _FEW_CELLS:
                        texts += [(row, number, value) for number, value in cells if isinstance(value, str)]
        return texts

    def cut(self, block: Block) -> Rows | None:
        """This table's part of a block of the sheet's rows; None if it has none."""
        first, last = bisect_left(block.numbers, self._first), bisect_right(block.numbers, self.bottom)
        if first >= last:
            return None
        numbers = block.numbers[first:last]
        width = len(block.columns)
        columns = [
            block.columns[c.index - 1][first:last] if c.index <= width else [None] * len(numbers) for c in self.columns
        ]
        blank = list(map(_is_blank, zip(*columns, strict=True))) if all(map(_has_gaps, columns)) else []
        if not any(blank) and self.without.isdisjoint(numbers):
            return Rows(numbers, columns)
        filled_rows = [at for at in range(len(numbers)) if not (blank and blank[at])]
        data_rows = [at for at in filled_rows if numbers[at] not in self.without]
        hidden = [numbers[at] for at in filled_rows if self._is_hidden(numbers[at])] if self._hidden else []
        captions = [_caption(numbers[at], at, columns) for at in filled_rows if numbers[at] in self._groups]
        if not data_rows and not hidden and not captions:
            return None
        numbers, columns = [numbers[at] for at in data_rows], [[column[at] for at in data_rows] for column in columns]
        return Rows(numbers, columns, hidden, captions)

    def _is_hidden(self, row: int) -> bool:
        """Whether a row is left out only because it is hidden."""
        return row in self._hidden and not any(row in rows for rows in self.left_out.values())

    def added_columns(self, rows: Rows, captions: CaptionColumn) -> list[list[Any]]:
        """The values of the added columns."""
        count = len(rows.numbers)
        values_of: dict[str, list[Any]] = {}
        if GROUP in self.added:
            values_of[GROUP] = captions.fill(rows.numbers, rows.captions)
        if PROVENANCE[0] in self.added:
            origin = ([self.place.input] * count, [self.place.sheet] * count, rows.numbers)
            values_of |= dict(zip(PROVENANCE, origin, strict=True))
        return [values_of[name] for name in self.added]


def _has_gaps(column: list[Any]) -> bool:
    """Whether a column may have blank cells."""
    return None in column or not _SPACES.isdisjoint(column)


def _is_blank(values: Iterable[Any]) -> bool:
    """Whether a row has no values, or only spaces."""
    return all(value is None or (value.__class__ is str and not value.strip()) for value in values)


def _left_out(table: Table, leaving: Leaving) -> dict[str, frozenset[int]]:
    """Rows inside the table that are not data, by kind; each row has one kind."""
    return {
        "header": frozenset(table.header_rows),
        "repeated_header": table.repeated,
        "group": table.groups if leaving.groups != "keep" else frozenset(),
        "total": table.totals if leaving.totals != "keep" else frozenset(),
        "note": table.asides,
    }


def _span(table: Table, written_anyway: frozenset[int]) -> tuple[int, int]:
    """First and last row of the data; captions and totals that are kept may be above or below the rest."""
    data = table.data_range
    ends = [*written_anyway, data.top, data.bottom] if data else [*written_anyway]
    return (min(ends), max(ends)) if ends else (0, -1)


def _caption(row: int, index: int, columns: Sequence[Sequence[Any]]) -> Caption:
    """The caption in a row: the first cell that has a value."""
    column, value = next(
        (position, values[index]) for position, values in enumerate(columns) if values[index] is not None
    )
    return Caption(row, column, value if isinstance(value, str) else str(value))


def chunks(tables: Sequence[SourceTable]) -> Iterator[tuple[SourceTable, Rows]]:
    """Stream the data rows of tables that are below each other, in one reading of their sheet."""
    todo = sorted((t for t in tables if t.has_data), key=lambda t: t.top)
    if not todo:
        return
    captions = {t.id: CaptionColumn() for t in todo if t.added}
    above: dict[tuple[str, int], Any] = {}  # the last value of columns with ditto marks
    for block in blocks_of(todo[0].sheet):
        if block.numbers[0] > todo[-1].bottom:
            return
        for table in todo:
            if (rows := table.cut(block)) is not None:
                for at in table.dittos if rows.numbers else ():
                    rows.columns[at] = filling.without_dittos(rows.columns[at], above.get((table.id, at)))
                    above[table.id, at] = rows.columns[at][-1]
                yield (
                    table,
                    rows._replace(columns=rows.columns + table.added_columns(rows, captions[table.id]))
                    if table.added
                    else rows,
                )


def strands(tables: Sequence[SourceTable]) -> list[list[SourceTable]]:
    """Group the tables of a sheet so that tables of one group share no row: each group takes one reading."""
    groups: list[list[SourceTable]] = []
    for table in sorted((t for t in tables if t.has_data), key=lambda t: (t.top, t.columns[0].index)):
        for group in groups:
            if group[-1].bottom < table.top:
                group.append(table)
                break
        else:
            groups.append([table])
    return groups
