"""Second thoughts about drafts: headers that are data, forms, and what a person would not take for a table at all."""

from collections import Counter
from collections.abc import Sequence

from runner.engine.structure.cells import Kind
from runner.engine.structure.drafts import Draft
from runner.engine.structure.heads import Asked, behead, extend, settle
from runner.engine.structure.labels import Label
from runner.engine.structure.rows import Row

SURE = 0.8  # chance of a header above which nothing below it makes a form of its table
SHARE = 0.5  # of the cells of the biggest table with a header that a body without one needs beside it
LOW, TALL = 2, 4  # body rows of what is no table beside one
LABELS = 0.9  # of a form's rows that start with a text, no text twice
MIXED = 0.65  # of a form's values, at most, that have the kind usual in their column


def prune(found: Sequence[Draft], asked: Asked, known: Sequence[Draft] = ()) -> list[Draft]:
    """The drafts worth keeping; `known` tables, which the file declares, stand beside them."""
    for draft in found:
        draft.form = _is_form(draft)
        if draft.form:
            behead(draft)
        settle(draft, asked)
        extend(draft, asked)
    every = [*found, *known]
    headed = max((_cells(one) for one in every if one.band.head and one.band.body), default=0)
    tall = max((len(one.band.body) for one in every), default=0)
    return [draft for draft in found if _stands(draft, headed, tall)]


def _stands(draft: Draft, headed: int, tall: int) -> bool:
    """Whether the draft is worth calling a table beside the biggest and the tallest of its sheet."""
    if not draft.band.body:
        return not tall
    if not draft.band.head:
        return _cells(draft) >= SHARE * headed
    return not draft.beside or len(draft.band.body) >= LOW or tall < TALL


def _is_form(draft: Draft) -> bool:
    """Labels on the left and values of all kinds right of them: one record, no header."""
    if len(draft.band.head) > 1 or not draft.band.body or _over_values(draft) > 1:
        return False
    if any(draft.chances[at][Label.HEADER] >= SURE for at in draft.band.head):
        return False  # a rule or a declared name says so, or all the looks of it do
    rows = [draft.rows[at] for at in draft.band.all]
    names = [row.values[row.filled[0]] for row in rows if row.kinds[row.filled[0]] == Kind.TEXT]
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
    return sum(1 for at in leaf.filled if leaf.kinds[at] == Kind.TEXT and _valued(body, at))


def _valued(body: Sequence[Row], column: int) -> bool:
    kinds = [row.kinds[column] for row in body if column < len(row.kinds) and row.kinds[column]]
    return sum(1 for kind in kinds if kind != Kind.TEXT) * 2 > len(kinds)


def _cells(draft: Draft) -> int:
    own = (draft.rows[at] for at in draft.band.body)
    return sum(1 + row.skipped for row in own) * (draft.right - draft.left + 1)
