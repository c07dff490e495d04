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
CENT = 0.005
_HUGE = 1e300  # larger numbers are not part of a sum


def heads(draft: Draft, body: Sequence[int]) -> list[int]:
    """The rows of the body that are sums of the others of their groups; none if not all rows are in such groups."""
    skip = next((n for n, at in enumerate(body) if n and draft.rows[at].skipped), len(body))
    some = body[:skip]
    for column in range(draft.left, draft.right + 1):
        kinds = [draft.rows[at].kinds[column : column + 1] for at in some]
        if len(some) <= LONE or any(kind != _NUMBER for kind in kinds):
            continue
        for choose in (min, max):
            values = [number_of(draft.rows[at].values[column], choose) for at in some]
            numbers = [value for value in values if value is not None]
            if len(numbers) < len(values):
                continue
            if places := _outline(numbers, is_open=skip < len(body)):
                return [some[n] for n in places]
            if skip == len(body) and len(places := _outline(numbers[::-1], is_open=False)) > 1:
                return [some[len(some) - 1 - n] for n in places]
    return []


_NUMBER = bytes([CellKind.NUMBER])


def running_sums(draft: Draft, body: Sequence[int]) -> list[int]:
    """Rows with a number that is the sum of all above it, or of those since the last such row, and no chance."""
    skip = next((n for n, at in enumerate(body) if n and draft.rows[at].skipped), len(body))
    some = [draft.rows[at] for at in body[:skip]]
    found: list[int] = []
    for column in range(draft.left, draft.right + 1):
        whole, since, count, least = 0.0, 0.0, 0, LONE
        for n, row in enumerate(some):
            value = number_of(row.values[column], max) if row.kinds[column : column + 1] == _NUMBER else None
            if value is None:
                continue
            if count >= least and abs(value) >= LARGE and (_is_sum(value, whole) or _is_sum(value, since)):
                found.append(body[n])
                since, count, least = 0.0, 0, GROUPS
            else:
                whole, since, count = whole + value, since + value, count + 1
    return found


def _outline(numbers: Sequence[float], *, is_open: bool) -> list[int]:
    """The places of the sums, each above its parts, with the sum of all of them above the first."""
    found = _groups(numbers, 0, is_open=is_open)
    if found:
        return found
    below = _groups(numbers, 1, is_open=is_open)
    whole = sum(numbers[n] for n in below)
    return [0, *below] if below and not is_open and _is_sum(numbers[0], whole) else []


def _groups(numbers: Sequence[float], start: int, *, is_open: bool) -> list[int]:
    found: list[int] = []
    several = 0
    at = start
    while at < len(numbers):
        end = _end(numbers, at)
        if end is None:
            return found if is_open and several >= OPEN else []
        several += end - at > GROUPS
        found.append(at)
        at = end
    is_enough = several >= GROUPS or (len(found) == 1 and len(numbers) > LONE and start == 0)
    return found if is_enough and all(abs(numbers[n]) >= LARGE for n in found) else []


def _end(numbers: Sequence[float], head: int) -> int | None:
    """The place after the rows that add up to this one."""
    whole = 0.0
    for at in range(head + 1, len(numbers)):
        whole += numbers[at]
        if _is_sum(numbers[head], whole) and whole:
            return at + 1
    return None


def _is_sum(head: float, whole: float) -> bool:
    return abs(head - whole) <= max(EXACT * abs(whole), CENT)


def number_of(value: object, choose: Callable[[tuple[float, float]], float]) -> float | None:
    """A cell's number; `choose` picks one if the text can be read in two ways."""
    if isinstance(value, int | float):
        return float(value) if -_HUGE < value < _HUGE else None
    pair = read_number(value) if isinstance(value, str) else None
    return None if pair is None else choose(pair)
