"""Finds unlabelled sums in an outline: each group has a row that is the sum of its others, above or below them.

A single row may equal the sum of its neighbours by chance. Groups that cover the whole table, one after the other, do
not.
"""

from collections.abc import Callable, Sequence

from runner.engine.structure.bands import Draft
from runner.engine.structure.column_sums import EXACT, read_number
from runner.engine.structure.facts import CellKind

GROUPS = 2  # groups of several rows from which they are no chance
LONE = 3  # rows of the only group
OPEN = 3  # groups, where the table goes on below the rows that were kept
LARGE = 100.0  # smaller sums occur by chance
PRECISE = 4  # significant digits of smaller ones that do not
CENT = 0.005
_HUGE = 1e300  # larger numbers are not part of a sum


def heads(draft: Draft, body: Sequence[int]) -> list[int]:
    """Find the rows of the body that are sums of the others of their groups; none if not all rows are in groups."""
    skip = next((n for n, at in enumerate(body) if n and draft.rows[at].skipped), len(body))
    adjacent = body[:skip]  # the rows above those that were only counted
    for column in range(draft.left, draft.right + 1):
        kinds = [draft.rows[at].kinds[column : column + 1] for at in adjacent]
        if len(adjacent) <= LONE or any(kind != _NUMBER for kind in kinds):
            continue
        for choose in (min, max):
            values = [number_of(draft.rows[at].values[column], choose) for at in adjacent]
            numbers = [value for value in values if value is not None]
            if len(numbers) < len(values):
                continue
            if places := _outline(numbers, is_open=skip < len(body)):
                return [adjacent[n] for n in places]
            if skip == len(body) and len(places := _outline(numbers[::-1], is_open=False)) > 1:
                return [adjacent[len(adjacent) - 1 - n] for n in places]
    return []


_NUMBER = bytes([CellKind.NUMBER])


def running_sums(draft: Draft, body: Sequence[int]) -> list[int]:
    """Find the rows with a number that is the sum of all above it, or of those since the last such row."""
    skip = next((n for n, at in enumerate(body) if n and draft.rows[at].skipped), len(body))
    adjacent = [draft.rows[at] for at in body[:skip]]
    sums: list[int] = []
    for column in range(draft.left, draft.right + 1):
        whole, since, count, least = 0.0, 0.0, 0, LONE
        for n, row in enumerate(adjacent):
            value = number_of(row.values[column], max) if row.kinds[column : column + 1] == _NUMBER else None
            if value is None:
                continue
            if count >= least and _is_no_chance(value) and (_is_sum(value, whole) or _is_sum(value, since)):
                sums.append(body[n])
                since, count, least = 0.0, 0, GROUPS
            else:
                whole, since, count = whole + value, since + value, count + 1
    return sums


def _outline(numbers: Sequence[float], *, is_open: bool) -> list[int]:
    """Return the places of the sums, each above its parts, with the sum of all of them above the first.

    `is_open`: more rows follow that were only counted.
    """
    if places := _heads_of_groups(numbers, 0, is_open=is_open):
        return places
    below = _heads_of_groups(numbers, 1, is_open=is_open)
    whole = sum(numbers[n] for n in below)
    return [0, *below] if below and not is_open and _is_sum(numbers[0], whole) else []


def _heads_of_groups(numbers: Sequence[float], start: int, *, is_open: bool) -> list[int]:
    """Divide numbers into groups, each a sum above its parts, and return the places of the sums.

    Empty if the groups do not cover all numbers from `start` on, or are so few or small that they may be chance.
    """
    heads: list[int] = []
    several = 0
    at = start
    while at < len(numbers):
        end = _end_of_group(numbers, at)
        if end is None:
            return heads if is_open and several >= OPEN else []
        several += end - at > GROUPS
        heads.append(at)
        at = end
    is_enough = several >= GROUPS or (len(heads) == 1 and len(numbers) > LONE and start == 0)
    return heads if is_enough and all(abs(numbers[n]) >= LARGE for n in heads) else []


def _end_of_group(numbers: Sequence[float], head: int) -> int | None:
    """Return the place after the rows that add up to this one; None if those below never do."""
    whole = 0.0
    for at in range(head + 1, len(numbers)):
        whole += numbers[at]
        if _is_sum(numbers[head], whole) and whole:
            return at + 1
    return None


def _is_no_chance(value: float) -> bool:
    """Whether a number is so large, or has so many digits, that it does not equal a sum by chance."""
    return abs(value) >= LARGE or len(f"{abs(value):.6f}".replace(".", "").strip("0")) >= PRECISE


def _is_sum(head: float, whole: float) -> bool:
    return abs(head - whole) <= max(EXACT * abs(whole), CENT)


def number_of(value: object, choose: Callable[[tuple[float, float]], float]) -> float | None:
    """Return a cell's number, None if it has none; `choose` picks one if the text can be read in two ways."""
    if isinstance(value, int | float):
        return float(value) if -_HUGE < value < _HUGE else None
    pair = read_number(value) if isinstance(value, str) else None
    return None if pair is None else choose(pair)
