"""Sum up what speaks for each pair of column and field, then choose."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from runner.engine.fields import Field
from runner.engine.mapping.assign import assign
from runner.engine.mapping.evidence import Sample, allowed_delta, pattern_delta, type_delta
from runner.engine.mapping.headers import likeness

LEAST_LIKENESS: Final = 0.2
RUNNERS_UP: Final = 3
PART: Final = 0.95  # the last part of a stacked header says a little less than the whole
TIE: Final = 0.02
MOST_COMPARISONS: Final = 200_000


class Contribution(NamedTuple):
    rule: str
    delta: float


class ColumnIn(NamedTuple):
    """A column of a source table as mapping sees it."""

    position: int  # 0-based within the table
    headers: tuple[str, ...]  # the whole name, then its last part where headers are stacked; none if generated
    sample: Sample


class Choice(NamedTuple):
    """What was decided for one column."""

    position: int
    field: str | None
    score: float
    contributors: tuple[Contribution, ...]
    runners_up: tuple[tuple[str, float], ...]
    note: str | None


Detected = Mapping[int, Mapping[str, Sequence[Contribution]]]  # column index -> field -> what rules said
Allowed = Callable[[Field], frozenset[Any] | None]


def choose(
    columns: Sequence[ColumnIn],
    fields: Sequence[Field],
    *,
    threshold: float,
    detected: Detected,
    allowed: Allowed,
) -> list[Choice]:
    """Decide every column's field."""
    table = _table(columns, fields, detected, allowed)
    totals = {pair: round(sum(c.delta for c in parts), 4) for pair, parts in table.items()}
    chosen = assign({pair: s for pair, s in totals.items() if s >= threshold and s > 0})
    return [_choice(c, fields, table=table, totals=totals, chosen=chosen, threshold=threshold) for c in columns]


def _table(
    columns: Sequence[ColumnIn], fields: Sequence[Field], detected: Detected, allowed: Allowed
) -> dict[tuple[int, int], list[Contribution]]:
    table: dict[tuple[int, int], list[Contribution]] = {}
    wide = len(columns) * sum(len(f.names) for f in fields) > MOST_COMPARISONS
    allowed_by_field = [allowed(f) for f in fields]
    for column in columns:
        said = detected.get(column.position, {})
        for n, field in enumerate(fields):
            parts = _header(column.headers, field, exact_only=wide)
            for rule, delta in (
                (f"type:{field.type}", type_delta(column.sample, field)),
                ("pattern", pattern_delta(column.sample, field)),
                ("allowed", allowed_delta(column.sample, allowed_by_field[n])),
            ):
                if delta:
                    parts.append(Contribution(rule, delta))
            parts += said.get(field.name, ())
            if parts:
                table[column.position, n] = parts
    return table


def _header(headers: tuple[str, ...], field: Field, *, exact_only: bool) -> list[Contribution]:
    best, how = 0.0, ""
    for n, header in enumerate(headers):
        for name, word in field.names:
            if exact_only and header.casefold() != name.casefold():
                continue
            alike = likeness(header, name) * (PART if n else 1.0)
            if alike > best:
                best, how = round(alike, 4), word
    if best < LEAST_LIKENESS:
        return []
    return [Contribution(f"header:{how}" if best >= 0.95 else f"header:{how}~", best)]


def _choice(
    column: ColumnIn,
    fields: Sequence[Field],
    *,
    table: Mapping[tuple[int, int], list[Contribution]],
    totals: Mapping[tuple[int, int], float],
    chosen: Mapping[int, int],
    threshold: float,
) -> Choice:
    mine = chosen.get(column.position)
    ranked = sorted(
        ((totals[column.position, n], f.name, n) for n, f in enumerate(fields) if (column.position, n) in totals),
        key=lambda r: (-r[0], r[2]),
    )
    others = tuple((name, score) for score, name, n in ranked if n != mine and score > 0)[:RUNNERS_UP]
    if mine is None:
        best = ranked[0] if ranked and ranked[0][0] > 0 else None
        return Choice(column.position, None, best[0] if best else 0.0, (), others, _why_not(best, chosen, threshold))
    score = totals[column.position, mine]
    note = None
    rivals = [i for (i, n), s in totals.items() if n == mine and i != column.position and abs(s - score) <= TIE]
    if rivals:
        note = f"tie: {len(rivals)} other column(s) score the same; the assignment with the best total was taken"
    elif ranked and ranked[0][2] != mine:
        note = f"first choice {ranked[0][1]} went to another column"
    return Choice(column.position, fields[mine].name, score, tuple(table[column.position, mine]), others, note)


def _why_not(best: tuple[float, str, int] | None, chosen: Mapping[int, int], threshold: float) -> str | None:
    if best is None:
        return "no field is like it"
    score, name, n = best
    if score >= threshold and n in chosen.values():
        return f"{name} went to a column that fits better overall"
    return f"best is {name} with {score:.2f}, below the threshold {threshold:.2f}"
