"""Give every column at most one field and every field at most one column: the best evidence first.

Better evidence is never traded for a greater total. Pairs are ranked in groups; a group is settled before the next one
is considered, and inside a group, where the evidence is of one kind, as many columns as possible get a field.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

Pair = tuple[int, int]  # column, field


class Rank(NamedTuple):
    """How good the evidence for a pair is: groups in ascending order, inside a group the greater weight first."""

    group: tuple[float, ...]
    weight: float


# Takes a column, a field and what was chosen so far (column -> field), just before the pair's group is decided: whether
# the pair still holds.
StillHolds = Callable[[int, int, Mapping[int, int]], bool]


def assign(ranks: Mapping[Pair, Rank], still_holds: StillHolds = lambda *_: True) -> dict[int, int]:
    """Choose a field for each column, and return column -> field, for the pairs that were chosen.

    Equal evidence goes to the column further left, then to the field declared earlier.
    """
    groups: dict[tuple[float, ...], list[tuple[float, int, int]]] = {}
    for (column, field), rank in ranks.items():
        groups.setdefault(rank.group, []).append((-rank.weight, column, field))
    chosen: dict[int, int] = {}
    for group in sorted(groups):
        owned = set(chosen.values())
        options: dict[int, list[int]] = {}
        for _, column, field in sorted(groups[group]):
            if column not in chosen and field not in owned and still_holds(column, field, chosen):
                options.setdefault(column, []).append(field)
        chosen |= _match_columns(options)
    return chosen


def _match_columns(options: Mapping[int, list[int]]) -> dict[int, int]:
    """Match as many columns as possible with one of the fields that each may have; returns column -> field.

    A column may have to move to another of its fields for a later one, but never loses all.
    """
    fields_by_column: dict[int, int] = {}  # column -> its field
    columns_by_field: dict[int, int] = {}  # field -> its column
    for column in options:
        moves = _find_moves(column, options, fields_by_column, columns_by_field)
        fields_by_column |= moves
        columns_by_field |= {field: mover for mover, field in moves.items()}
    return fields_by_column


def _find_moves(
    start: int,
    options: Mapping[int, list[int]],
    fields_by_column: Mapping[int, int],
    columns_by_field: Mapping[int, int],
) -> dict[int, int]:
    """Find for `_match_columns` which columns move to which fields so that column `start` gets one: each owner moves on
    until a field is free; empty if none is."""
    movers: dict[int, int] = {}  # field -> the column that could move to it
    todo = [start]
    for column in todo:
        for field in options[column]:
            if field in movers:
                continue
            movers[field] = column
            if field not in columns_by_field:
                return _moves_along(field, start, movers, fields_by_column)
            todo.append(columns_by_field[field])
    return {}


def _moves_along(
    free_field: int, start: int, movers: Mapping[int, int], fields_by_column: Mapping[int, int]
) -> dict[int, int]:
    """Follow `movers` back from the free field to column `start`; return for each column on the way the field that it
    moves to."""
    moves: dict[int, int] = {}
    next_field = free_field
    while (column := movers[next_field]) != start:
        moves[column] = next_field
        next_field = fields_by_column[column]
    return {**moves, start: next_field}
