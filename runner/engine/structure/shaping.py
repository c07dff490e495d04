"""Drops drafts that are not tables and finishes the others: range, column names, left-out rows, confidence."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from runner.engine.common.a1 import CellRange
from runner.engine.structure import captions, header_rows, remarks, suspects
from runner.engine.structure.bands import Draft
from runner.engine.structure.facts import CellKind, Mark, Row
from runner.engine.structure.header_rows import Hints, behead, settle
from runner.engine.structure.tables import Label, LeftRow, Proof, RowKind, Table

SURE = 0.8  # probability of a header above which its table is never a form
SHARE = 0.5  # cells that a body without a header needs, relative to the largest table with one
LOW, TALL = 2, 4  # body rows: at most so many beside a table of at least so many is not a table
LABELS = 0.9  # share of a form's rows that start with a distinct text
MIXED = 0.65  # the largest share of a form's values with the usual kind of their column


def prune(found: Sequence[Draft], hints: Hints, known: Sequence[Draft] = ()) -> list[Draft]:
    """The drafts worth keeping, next to the `known` tables that the file declares."""
    for draft in found:
        draft.form = _is_form(draft)
        if draft.form:
            behead(draft)
        settle(draft, hints)
    every = [*found, *known]
    headed = max((_cells(one) for one in every if one.band.head and one.band.body), default=0)
    tall = max((len(one.band.body) for one in every), default=0)
    return [draft for draft in found if _is_table(draft, headed, tall)]


def _is_table(draft: Draft, headed: int, tall: int) -> bool:
    """Whether the draft counts as a table next to the largest and the tallest of its sheet."""
    if not draft.band.body:
        return not tall
    if not draft.band.head:
        return _cells(draft) >= SHARE * headed
    return not draft.beside or len(draft.band.body) >= LOW or tall < TALL


def _is_form(draft: Draft) -> bool:
    """Whether it has labels on the left and values of mixed kinds beside them: one record, no header."""
    if len(draft.band.head) > 1 or not draft.band.body or _over_values(draft) > 1:
        return False
    if any(draft.chances[at][Label.HEADER] >= SURE for at in draft.band.head):
        return False  # a rule, a declared name or strong evidence makes it a header
    rows = [draft.rows[at] for at in draft.band.all]
    names = [row.values[row.filled[0]] for row in rows if row.kinds[row.filled[0]] == CellKind.TEXT]
    if len(names) < LABELS * len(rows) or len(set(names)) < len(names):
        return False
    columns: dict[int, Counter[int]] = {}
    for row in rows:
        for at in row.filled[1:]:
            columns.setdefault(at, Counter())[row.kinds[at]] += 1
    usual = sum(max(kinds.values()) for kinds in columns.values())
    return 0 < usual <= MIXED * sum(kinds.total() for kinds in columns.values())


def _over_values(draft: Draft) -> int:
    """Columns in which the last header row has a text and the body mostly values."""
    leaf = draft.rows[draft.band.head[-1]] if draft.band.head else None
    if leaf is None:
        return 0
    body = [draft.rows[at] for at in draft.band.body]
    return sum(1 for at in leaf.filled if leaf.kinds[at] == CellKind.TEXT and _valued(body, at))


def _valued(body: Sequence[Row], column: int) -> bool:
    kinds = [row.kinds[column] for row in body if column < len(row.kinds) and row.kinds[column]]
    return sum(1 for kind in kinds if kind != CellKind.TEXT) * 2 > len(kinds)


def _cells(draft: Draft) -> int:
    own = (draft.rows[at] for at in draft.band.body)
    return sum(1 + row.skipped for row in own) * (draft.right - draft.left + 1)


EDGE = 5
_LINE = re.compile(r"[\s:+|]*[-=_]{2,}[\s:+|]*").fullmatch
REPEATED = LeftRow(RowKind.REPEATED_HEADER, Proof.REPEATS)
LINE = LeftRow(RowKind.NOTE, Proof.LINE)


def shape(draft: Draft, hints: Hints) -> Table:
    """The table of a draft."""
    rows, band = draft.rows, draft.band
    head = [rows[at] for at in band.head]
    left, right = draft.left + 1, draft.right + 1
    columns = header_rows.columns(head, draft.left, draft.right, hints.layout.merged)
    away = draft.left_out | {rows[at].number: REPEATED for at in band.again}
    away |= {rows[at].number: LINE for at in band.body if _is_rule(rows[at])}
    beside, doubts = captions.beside_records(draft, hints, frozenset(away))
    away |= dict.fromkeys(beside, LeftRow(RowKind.NOTE, Proof.DESCRIBES))
    without = [at for at in band.body if rows[at].number not in away]
    plain = replace(draft, band=replace(band, body=without)) if len(without) < len(band.body) else draft
    lone = captions.captions(plain, hints.ruled, hints.keys(columns))
    away |= dict.fromkeys(lone.sure, LeftRow(RowKind.GROUP, Proof.HEADS))
    away |= dict.fromkeys(lone.likely, LeftRow(RowKind.GROUP, None if hints.captions == "drop" else Proof.ASKED))
    doubts += remarks.lone_records(plain, hints, frozenset(away) | frozenset(lone.doubtful))
    if hints.captions == "fill":
        away |= dict.fromkeys(lone.doubtful, LeftRow(RowKind.GROUP, Proof.ASKED))
    said = [rows[at].number for at in without if _spoken_total(draft, at, hints.ruled) and rows[at].number not in away]
    away |= dict.fromkeys(said, LeftRow(RowKind.TOTAL, Proof.DECLARED if draft.declared else Proof.ASKED))
    body = [at for at in band.body if rows[at].number not in away]
    first, last = rows[band.all[0]], rows[band.all[-1]]
    return Table(
        range=CellRange(first.number, left, last.number, right),
        header_rows=tuple(row.number for row in head),
        data_range=CellRange(_top(rows, body[0]), left, rows[body[-1]].number, right) if body else None,
        columns=columns,
        confidence=_confidence(draft),
        why=tuple(_why(draft, away)),
        left_out=away,
        choices=(*draft.choices, *doubts, *(captions.choices(lone) if hints.captions == "drop" else ())),
        suspected={} if draft.declared else suspects.found(plain, hints.ruled | away.keys()),
    )


def _top(rows: Sequence[Row], at: int) -> int:
    """The first data row: rows that were only counted are right above the first kept one."""
    return rows[at - 1].number + 1 if at and rows[at].skipped else rows[at].number


def _spoken_total(draft: Draft, at: int, ruled: frozenset[int]) -> bool:
    """Whether a rule, or the file itself, labels the row as a total."""
    return (draft.rows[at].number in ruled or draft.declared) and draft.labels[at] is Label.TOTAL


def _is_rule(row: Row) -> bool:
    """Whether every cell is a line drawn with characters: ----, or | --- | :-- | under a header."""
    if all(row.marks[at] & Mark.RULE for at in row.filled):
        return True
    texts = [str(row.values[at]) for at in row.filled]
    return all(map(_LINE, texts)) and any("---" in text for text in texts)


def _confidence(draft: Draft) -> float:
    """The classifier's confidence in the header rows and in the two ends of the body."""
    band = draft.band
    edges = band.body[:EDGE] + band.body[-EDGE:]
    inside = [sum(draft.chances[at][label] for label in (1, 2, 3)) for at in edges]
    head = [draft.chances[at][Label.HEADER] for at in band.head]
    parts = [sum(some) / len(some) for some in (inside, head) if some]
    return min(0.99, sum(parts) / len(parts) * (1.0 if head else 0.8))


def _why(draft: Draft, away: Mapping[int, LeftRow]) -> list[str]:
    rows, band = draft.rows, draft.band
    kinds = Counter(row.kind for row in away.values())
    notes = [n for n, row in away.items() if row.kind is RowKind.NOTE and n > rows[band.all[-1]].number]
    out: list[str] = []
    if draft.declared:
        out.append("the file declares it as a table")
    elif band.head:
        out.append(_header_reason([rows[at] for at in band.head], [rows[at] for at in band.body[:8]]))
    else:
        out.append("no row above the data looks like a header; columns are named by their letters")
    if titles := kinds[RowKind.TITLE]:
        out.append(f"{_count(titles, 'title row')} above")
    if notes:
        out.append(f"ends before a note in row {min(notes)}")
    if totals := kinds[RowKind.TOTAL]:
        out.append(f"{_count(totals, 'row')} declared a total, left out")
    if groups := kinds[RowKind.GROUP]:
        out.append(f"{_count(groups, 'group row')} left out")
    if draft.form:
        out.append("labels with values of mixed kinds beside them: a form without a header")
    if draft.beside:
        out.append("separated from a table beside it")
    if draft.strays:
        out.append(f"stray cells without a header beside it left out in {_count(draft.strays, 'place')}")
    return out


def _header_reason(head: Sequence[Row], below: Sequence[Row]) -> str:
    numbers = ", ".join(str(row.number) for row in head)
    leaf = head[-1]
    over = 0
    for at in leaf.filled:
        kinds = [row.kinds[at] for row in below if at < len(row.kinds) and row.kinds[at]]
        values = sum(1 for kind in kinds if kind != CellKind.TEXT)
        over += leaf.kinds[at] == CellKind.TEXT and values * 2 > len(kinds)
    what = f"text over values in {over} of {_count(len(leaf.filled), 'column')}" if over else "unlike the rows below"
    return f"header in {_plural(len(head), 'row')} {numbers}: {what}"


def _plural(n: int, noun: str) -> str:
    return noun if n == 1 else f"{noun}s"


def _count(n: int, noun: str) -> str:
    return f"{n} {_plural(n, noun)}"
