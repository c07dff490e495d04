"""Drops drafts that are not tables and finishes the others: range, column names, left-out rows, confidence."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from runner.engine.common.a1 import CellRange
from runner.engine.structure import captions, certainty, header_rows, remarks, suspects
from runner.engine.structure.bands import Draft
from runner.engine.structure.facts import CellKind, Mark, Row
from runner.engine.structure.header_rows import Hints, behead, decide_header
from runner.engine.structure.tables import Label, LeftRow, Proof, RowKind, Table

SURE = 0.8  # probability of a header above which its table is never a form
SHARE = 0.5  # cells that a body without a header needs, relative to the largest table with one
LOW, TALL = 2, 4  # body rows: at most so many beside a table of at least so many is not a table
LABELS = 0.9  # share of a form's rows that start with a distinct text
MIXED = 0.65  # the largest share of a form's values with the usual kind of their column


def without_fragments(candidates: Sequence[Draft], hints: Hints, known: Sequence[Draft] = ()) -> list[Draft]:
    """Return the drafts that count as tables, next to the `known` ones that the file declares.

    Changes the drafts as `mark_forms_and_headers` does.
    """
    mark_forms_and_headers(candidates, hints)
    every = [*candidates, *known]
    largest = max((_count_cells(draft) for draft in every if draft.band.head and draft.band.body), default=0)
    tallest = max((len(draft.band.body) for draft in every), default=0)
    return [draft for draft in candidates if _is_table(draft, largest, tallest)]


def mark_forms_and_headers(candidates: Sequence[Draft], hints: Hints) -> None:
    """Decide of each draft whether it is a form, and whether it has a header; changes the drafts."""
    for draft in candidates:
        draft.form = _is_form(draft)
        if draft.form:
            behead(draft)
        decide_header(draft, hints)


def _is_table(draft: Draft, largest: int, tallest: int) -> bool:
    """Whether the draft counts as a table next to the largest with a header and the tallest of its sheet."""
    if not draft.band.body:
        return not tallest
    if not draft.band.head:
        return _count_cells(draft) >= SHARE * largest
    return not draft.beside or len(draft.band.body) >= LOW or tallest < TALL


def _is_form(draft: Draft) -> bool:
    """Whether it has labels on the left and values of mixed kinds beside them: one record, no header."""
    if len(draft.band.head) > 1 or not draft.band.body or _count_texts_over_values(draft) > 1:
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


def _count_texts_over_values(draft: Draft) -> int:
    """Count the columns in which the last header row has a text and the body mostly values."""
    leaf = draft.rows[draft.band.head[-1]] if draft.band.head else None
    if leaf is None:
        return 0
    body = [draft.rows[at] for at in draft.band.body]
    return sum(1 for at in leaf.filled if leaf.kinds[at] == CellKind.TEXT and _has_mostly_values(body, at))


def _has_mostly_values(body: Sequence[Row], column: int) -> bool:
    """Whether most cells of a column are numbers, dates or the like, and no texts."""
    kinds = [row.kinds[column] for row in body if column < len(row.kinds) and row.kinds[column]]
    return sum(1 for kind in kinds if kind != CellKind.TEXT) * 2 > len(kinds)


def _count_cells(draft: Draft) -> int:
    """Count the cells of a draft's body, those of rows that were only counted included."""
    rows = (draft.rows[at] for at in draft.band.body)
    return sum(1 + row.skipped for row in rows) * (draft.right - draft.left + 1)


_LINE = re.compile(r"[\s:+|]*[-=_]{2,}[\s:+|]*").fullmatch
REPEATED = LeftRow(RowKind.REPEATED_HEADER, Proof.REPEATS)
LINE = LeftRow(RowKind.NOTE, Proof.LINE)


def shape(draft: Draft, hints: Hints) -> Table:
    """Make the table of a draft: its ranges, columns, left-out rows with their proofs, choices and reasons."""
    rows, band = draft.rows, draft.band
    head = [rows[at] for at in band.head]
    left, right = draft.left + 1, draft.right + 1
    columns = header_rows.columns(head, draft.left, draft.right, hints.layout.merged)
    away = draft.left_out | {rows[at].number: REPEATED for at in band.repeated_headers}
    away |= {rows[at].number: LINE for at in band.body if _is_rule(rows[at])}
    descriptions, doubts = captions.rows_about_columns(draft, hints, frozenset(away))
    away |= dict.fromkeys(descriptions, LeftRow(RowKind.NOTE, Proof.DESCRIBES))
    without = [at for at in band.body if rows[at].number not in away]
    plain = replace(draft, band=replace(band, body=without)) if len(without) < len(band.body) else draft
    groups = captions.captions(plain, hints.ruled, hints.keys(columns))
    away |= dict.fromkeys(groups.sure, LeftRow(RowKind.GROUP, Proof.HEADS))
    away |= dict.fromkeys(groups.likely, LeftRow(RowKind.GROUP, None if hints.captions == "drop" else Proof.ASKED))
    doubts += remarks.single_cell_records(plain, hints, frozenset(away) | frozenset(groups.doubtful))
    if hints.captions == "fill":
        away |= dict.fromkeys(groups.doubtful, LeftRow(RowKind.GROUP, Proof.ASKED))
    totals = [rows[at].number for at in without if _is_labelled_total(draft, at, hints.ruled)]
    totals = [number for number in totals if number not in away]
    away |= dict.fromkeys(totals, LeftRow(RowKind.TOTAL, Proof.DECLARED if draft.declared else Proof.ASKED))
    body = [at for at in band.body if rows[at].number not in away]
    first, last = rows[band.all[0]], rows[band.all[-1]]
    return Table(
        range=CellRange(first.number, left, last.number, right),
        header_rows=tuple(row.number for row in head),
        data_range=CellRange(_first_data_row(rows, body[0]), left, rows[body[-1]].number, right) if body else None,
        columns=columns,
        confidence=certainty.of(draft),
        why=tuple(_reasons(draft, away)),
        left_out=away,
        choices=(*draft.choices, *doubts, *(captions.caption_choices(groups) if hints.captions == "drop" else ())),
        suspected={} if draft.declared else suspects.find_suspects(plain, hints.ruled | away.keys()),
    )


def _first_data_row(rows: Sequence[Row], at: int) -> int:
    """Return the number of the first data row: rows that were only counted are right above the first stored one."""
    return rows[at - 1].number + 1 if at and rows[at].skipped else rows[at].number


def _is_labelled_total(draft: Draft, at: int, ruled: frozenset[int]) -> bool:
    """Whether a rule, or the file itself, labels the row as a total."""
    return (draft.rows[at].number in ruled or draft.declared) and draft.labels[at] is Label.TOTAL


def _is_rule(row: Row) -> bool:
    """Whether every cell is a line drawn with characters: ----, or | --- | :-- | under a header."""
    if all(row.marks[at] & Mark.RULE for at in row.filled):
        return True
    texts = [str(row.values[at]) for at in row.filled]
    return all(map(_LINE, texts)) and any("---" in text for text in texts)


def _reasons(draft: Draft, away: Mapping[int, LeftRow]) -> list[str]:
    """Say in words, without cell values, why a draft is a table of this shape; `away`: the rows that it leaves out."""
    rows, band = draft.rows, draft.band
    kinds = Counter(row.kind for row in away.values())
    notes = [n for n, row in away.items() if row.kind is RowKind.NOTE and n > rows[band.all[-1]].number]
    reasons: list[str] = []
    if draft.declared:
        reasons.append("the file declares it as a table")
    elif band.head:
        reasons.append(_header_reason([rows[at] for at in band.head], [rows[at] for at in band.body[:8]]))
    else:
        reasons.append("no row above the data looks like a header; columns are named by their letters")
    if titles := kinds[RowKind.TITLE]:
        reasons.append(f"{_count(titles, 'title row')} above")
    if notes:
        reasons.append(f"ends before a note in row {min(notes)}")
    if totals := kinds[RowKind.TOTAL]:
        reasons.append(f"{_count(totals, 'row')} declared a total, left out")
    if groups := kinds[RowKind.GROUP]:
        reasons.append(f"{_count(groups, 'group row')} left out")
    if draft.form:
        reasons.append("labels with values of mixed kinds beside them: a form without a header")
    if draft.beside:
        reasons.append("separated from a table beside it")
    if draft.strays:
        reasons.append(f"stray cells without a header beside it left out in {_count(draft.strays, 'place')}")
    return reasons


def _header_reason(head: Sequence[Row], below: Sequence[Row]) -> str:
    """Say why header rows are taken for one; `below`: the first rows of the body."""
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
