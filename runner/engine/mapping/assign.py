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


# Asked before a group is settled, with what was chosen so far: whether the pair still holds.
StillHolds = Callable[[int, int, Mapping[int, int]], bool]


def assign(ranks: Mapping[Pair, Rank], still_holds: StillHolds = lambda *_: True) -> dict[int, int]:
    """column -> field. Equal evidence goes to the column further left, then to the field declared earlier."""
    groups: dict[tuple[float, ...], list[tuple[float, int, int]]] = {}
    for (column, field), rank in ranks.items():
        groups.setdefault(rank.group, []).append((-rank.weight, column, field))
    chosen: dict[int, int] = {}
    for group in sorted(groups):
        taken = set(chosen.values())
        options: dict[int, list[int]] = {}
        for _, column, field in sorted(groups[group]):
            if column not in chosen and field not in taken and still_holds(column, field, chosen):
                options.setdefault(column, []).append(field)
        chosen |= _matched(options)
    return chosen


def _matched(options: Mapping[int, list[int]]) -> dict[int, int]:
    """As many columns as possible, each with one of its fields; earlier columns never lose theirs to later ones."""
    owner: dict[int, int] = {}
    mine: dict[int, int] = {}
    for column in options:
        came: dict[int, int] = {}  # field -> the column that could move to it
        todo = [column]
        for current in todo:
            free = None
            for field in options[current]:
                if field in came:
                    continue
                came[field] = current
                if field not in owner:
                    free = field
                    break
                todo.append(owner[field])
            if free is not None:
                _move(free, column, came, owner, mine)
                break
    return mine


def _move(free: int, start: int, came: Mapping[int, int], owner: dict[int, int], mine: dict[int, int]) -> None:
    """Let each column on the way move to the field that was found for it."""
    field: int | None = free
    while field is not None:
        column = came[field]
        left = mine.get(column)
        owner[field], mine[column] = column, field
        field = None if column == start else left
