"""Lays out the output's columns: those of the fields, and what becomes of columns that are no field."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from runner.engine.common.fields import Field


class OutColumn(NamedTuple):
    """A column of the output."""

    header: str
    field: Field | None  # None: an unmapped column that was kept
    renamed: bool = False  # its own header would have met a field's name or another column's
    certain: bool = True  # its header is one, for all we know, and no cell
    added: str | None = None  # what it says, where the source has no such column: group, source_row and the like


class UnmappedColumn(NamedTuple):
    """An unmapped column of one table."""

    position: int  # in the table
    header: str
    after: str | None  # the field that is before it; None: it comes before all fields
    certain: bool = True  # its header is one, for all we know, and no cell


class TablePlan(NamedTuple):
    """Where each output column comes from in one table."""

    sources: tuple[int | None, ...]  # for each output column the position of a column in the table, or None


def lay_out(
    fields: Sequence[Field],
    tables: Sequence[tuple[dict[str, int], Sequence[UnmappedColumn]]],
    *,
    policy: str,
    use_labels: bool = False,
    added: Mapping[str, tuple[str, Sequence[int]]] | None = None,
) -> tuple[list[OutColumn], list[TablePlan]]:
    """Decide the output's columns, the union of all tables' columns, and for each of `tables` where each output column
    comes from.

    `tables`: per table the position of each field's column, and the unmapped columns; unmapped columns of one name
    share one output column. By `policy` they come after the field that they followed (`keep`), last as `raw_<header>`
    (`prefix`) or not at all (`drop`). `added` columns come last: kind -> its header and its position in each table.
    """
    names = [(f.label or f.name) if use_labels else f.name for f in fields]
    headers = _Headers([*names, *(f.name for f in fields)])
    unmapped_columns = _UnmappedColumns(policy, headers)
    positions_by_table = [unmapped_columns.add(columns) for _, columns in tables]
    keyed_columns = unmapped_columns.among(list(zip(fields, names, strict=True)))
    added_columns = [
        (OutColumn(headers.claim(name), None, added=kind), places) for kind, (name, places) in (added or {}).items()
    ]
    plans = [
        TablePlan(
            tuple(mapped.get(key) if isinstance(key, str) else positions.get(key) for _, key in keyed_columns)
            + tuple(places[n] for _, places in added_columns)
        )
        for n, ((mapped, _), positions) in enumerate(zip(tables, positions_by_table, strict=True))
    ]
    return [column for column, _ in (*keyed_columns, *added_columns)], plans


# An unmapped column: its header in lower case, and its place among those of its table that share the header.
_Key = tuple[str, int]


class _Headers:
    """Hands out the headers of the output and remembers them: none twice, whatever their case."""

    def __init__(self, used: Iterable[str]) -> None:
        """Reserve the headers that are in use already."""
        self._used = {header.casefold() for header in used}

    def claim(self, wanted: str) -> str:
        """Return `wanted`, or the first of `wanted_2`, `wanted_3` … that is free, and reserve it."""
        free, n = wanted, 1
        while free.casefold() in self._used:
            n += 1
            free = f"{wanted}_{n}"
        self._used.add(free.casefold())
        return free


class _UnmappedColumns:
    """Collects the output columns of unmapped columns, table by table."""

    def __init__(self, policy: str, headers: _Headers) -> None:
        """Start without columns; `headers` hands out the names that they get."""
        self._policy = policy
        self._headers = headers
        self.columns: dict[_Key, OutColumn] = {}
        self._after: dict[_Key, str | None] = {}  # the field that each follows

    def add(self, columns: Sequence[UnmappedColumn]) -> dict[_Key, int]:
        """Add one table's unmapped columns to the output, with headers claimed for new ones; return where each is in
        that table, by key."""
        positions: dict[_Key, int] = {}
        for column in columns if self._policy != "drop" else ():
            wanted = f"raw_{column.header}" if self._policy == "prefix" else column.header
            nth = 0
            while (wanted.casefold(), nth) in positions:
                nth += 1
            key = (wanted.casefold(), nth)
            positions[key] = column.position
            if key not in self.columns:
                header = self._headers.claim(wanted)
                self.columns[key] = OutColumn(header, None, header != wanted, column.certain)
                self._after[key] = column.after
            elif column.certain:
                self.columns[key] = self.columns[key]._replace(certain=True)
        return positions

    def among(self, fields: Sequence[tuple[Field, str]]) -> list[tuple[OutColumn, str | _Key]]:
        """List all output columns in order, each with its field's name or the key of its unmapped column.

        `fields`: each with its header. Unmapped columns come after their fields, or all at the end.
        """
        following: dict[str | None, list[tuple[OutColumn, str | _Key]]] = {}
        for key, column in self.columns.items():
            following.setdefault(self._after[key], []).append((column, key))
        if self._policy == "prefix":
            field_columns: list[tuple[OutColumn, str | _Key]] = [
                (OutColumn(h, field), field.name) for field, h in fields
            ]
            return [*field_columns, *((column, key) for key, column in self.columns.items())]
        out = following.get(None, [])
        for field, header in fields:
            out += [(OutColumn(header, field), field.name), *following.get(field.name, [])]
        return out
