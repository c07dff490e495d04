"""The columns of the output: fields in their declared order, unmapped columns by policy."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runner.engine.fields import Field


class OutColumn(NamedTuple):
    header: str
    field: Field | None  # None: an unmapped column that was kept
    renamed: bool = False  # its own header would have met a field's name or another column's
    certain: bool = True  # its header is one, for all we know, and no cell
    added: str | None = None  # what it says, where the source has no such column: group, source_row and the like


class Kept(NamedTuple):
    """An unmapped column of one table: where it stands, what it is called, which field stands before it."""

    position: int
    header: str
    after: str | None
    certain: bool = True


class TablePlan(NamedTuple):
    """Where each output column comes from in one table: a column's index, or None."""

    sources: tuple[int | None, ...]


def lay_out(
    fields: Sequence[Field],
    tables: Sequence[tuple[dict[str, int], Sequence[Kept]]],
    *,
    policy: str,
    use_labels: bool = False,
    added: Mapping[str, tuple[str, Sequence[int]]] | None = None,
) -> tuple[list[OutColumn], list[TablePlan]]:
    """The union of all tables' columns. Unmapped columns of one name share one output column.

    With `keep` an unmapped column stands behind the field it stood behind in its source; with `prefix` all of
    them stand at the end as `raw_<header>`; with `drop` they are left out. `added` columns come last: what each says,
    to the header it is to have and its index in each table.
    """
    names = [(f.label or f.name) if use_labels else f.name for f in fields]
    taken = {n.casefold() for n in names} | {f.name.casefold() for f in fields}
    extras: dict[tuple[str, int], tuple[OutColumn, str | None]] = {}
    keyed: list[dict[tuple[str, int], int]] = []
    for _, kept in tables:
        mine: dict[tuple[str, int], int] = {}
        for column in kept if policy != "drop" else ():
            wanted = f"raw_{column.header}" if policy == "prefix" else column.header
            nth = 0
            while (wanted.casefold(), nth) in mine:
                nth += 1
            key = (wanted.casefold(), nth)
            mine[key] = column.position
            if key not in extras:
                header = _free(wanted, taken)
                extras[key] = (OutColumn(header, None, header != wanted, column.certain), column.after)
            elif column.certain:
                extras[key] = (extras[key][0]._replace(certain=True), extras[key][1])
        keyed.append(mine)
    out: list[tuple[OutColumn, str | tuple[str, int]]] = []
    at_end = policy == "prefix"
    out += [(c, key) for key, (c, after) in extras.items() if after is None and not at_end]
    for field, header in zip(fields, names, strict=True):
        out.append((OutColumn(header, field), field.name))
        if not at_end:
            out += [(c, key) for key, (c, after) in extras.items() if after == field.name]
    if at_end:
        out += [(c, key) for key, (c, _) in extras.items()]
    last = [(OutColumn(_free(name, taken), None, added=what), places) for what, (name, places) in (added or {}).items()]
    plans = [
        TablePlan(
            tuple(mapped.get(key) if isinstance(key, str) else mine.get(key) for _, key in out)
            + tuple(places[n] for _, places in last)
        )
        for n, ((mapped, _), mine) in enumerate(zip(tables, keyed, strict=True))
    ]
    return [c for c, _ in (*out, *last)], plans


def _free(wanted: str, taken: set[str]) -> str:
    """`wanted`, or the first of `wanted_2`, `wanted_3` … that nothing else is called."""
    free, n = wanted, 1
    while free.casefold() in taken:
        n += 1
        free = f"{wanted}_{n}"
    taken.add(free.casefold())
    return free
