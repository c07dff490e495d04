"""Settles a table's header: a row that names columns, or the first of the data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from runner.engine.reading import Layout
from runner.engine.structure import detectors, features, headers, naming
from runner.engine.structure.bands import Band
from runner.engine.structure.cells import Kind, Mark
from runner.engine.structure.drafts import Draft
from runner.engine.structure.labels import Label
from runner.engine.structure.layouts import falls, rises
from runner.engine.structure.rows import Row
from runner.engine.structure.tables import Choice, Column

Spelled = Callable[[Sequence[object]], int]  # how many of these values are declared names

TOLD = 4.0  # points of a rule or of declared names that settle it
STYLED = 0.7  # points for bold, colour, a filter or frozen rows that settle it
BELIEF = 0.4  # weight of the line classifier's odds against what the values say
MOST = 4.0  # of these odds, as a logarithm
CLEAR = 1.0  # points from which nobody needs to be asked
ABOVE = 3  # rows above a body among which its header may have been taken for a title
WIDE = 0.6  # of a table's columns that such a row names
BELIEVED = 0.7  # chance of a header row among others that its values cannot talk down
MANY = 6  # numbers that do not rise from left to right by chance
RISING = 0.9  # of its numbers or dates that rise from left to right: years, hours, classes


_REMARK = int(Mark.NOTE | Mark.FOOTNOTE | Mark.SENTENCE)


@dataclass(frozen=True, slots=True)
class Asked:
    """What others say of rows: rules, declared names, the layout."""

    told: Mapping[int, Mapping[str, float]]  # points of rules and of declared names, by row
    layout: Layout
    ruled: frozenset[int] = frozenset()  # rows that a rule speaks for
    spelled: Spelled | None = None
    captions: str = "drop"  # what becomes of captions: drop, keep or fill
    fixed: tuple[int, ...] | None = None  # header rows that the manifest names, none at all where it is empty
    key: Callable[[str], bool] | None = None  # whether a column's name is that of a required or unique field

    def keys(self, columns: Sequence[Column]) -> frozenset[int]:
        """Columns (0-based) whose values are wanted in every row or differ in each."""
        if self.key is None:
            return frozenset()
        return frozenset(one.index - 1 for one in columns if any(map(self.key, (one.name, *one.parts[-1:]))))

    def header(self, number: int) -> float:
        return self.told.get(number, {}).get("header", 0.0)


def settle(draft: Draft, asked: Asked) -> None:
    """Take the first row for what it is, and note where it could have been the other."""
    if draft.declared or draft.form or not draft.band.body:
        return
    if not draft.band.head:
        _promote(draft, asked)
        return
    leaf = draft.band.head[-1]
    row = draft.rows[leaf]
    if _settled(draft, leaf, asked):
        return
    body = [draft.rows[at] for at in draft.band.body]
    vote = naming.votes(row, body)
    points = vote.points + BELIEF * _odds(draft, leaf)
    alone = len(draft.band.head) == 1
    if not alone:
        if _lone_key(draft, row, body) or (
            vote.points <= -naming.CLEAR and draft.chances[leaf][Label.HEADER] < BELIEVED
        ):
            _lower(draft)
            settle(draft, asked)
        return
    if points <= 0:
        behead(draft)
        if points > -CLEAR:
            note(draft, row.number, vote, header=False)
    elif points < CLEAR:
        note(draft, row.number, vote, header=True)


def _promote(draft: Draft, asked: Asked) -> None:
    """Make the first row of a body, or a row right above it, a header where it reads like one."""
    if _raise(draft):
        return
    first = draft.band.body[0]
    row = draft.rows[first]
    rest = [draft.rows[at] for at in draft.band.body[1:]]
    if not rest or (row.number in asked.told and asked.header(row.number) < TOLD):
        return
    vote = naming.votes(row, rest)
    points = vote.points + BELIEF * _odds(draft, first)
    if asked.spelled is not None and asked.spelled(row.values):
        points += TOLD
    if points >= CLEAR and (not vote.values or points >= TOLD):
        draft.labels[first] = Label.HEADER
        draft.band = Band([first], draft.band.body[1:], draft.band.again)
    elif points > 0 and vote.names:
        note(draft, row.number, vote, header=False)


def _raise(draft: Draft) -> bool:
    """Take rows right above a body for what they are, and not for titles: its header, or more of its rows."""
    first = draft.band.body[0]
    body = [draft.rows[at] for at in draft.band.body]
    for at in range(first - 1, max(-1, first - 1 - ABOVE), -1):
        row, below = draft.rows[at], draft.rows[at + 1]
        if below.gap or below.skipped or draft.labels[at] not in (Label.TITLE, Label.NOTE, Label.GROUP):
            return False
        wide = sum(1 for one in row.filled if draft.left <= one <= draft.right)
        if wide < 2 or wide < WIDE * (draft.right - draft.left + 1) or wide != row.width:
            continue
        points = naming.votes(row, body).points
        between = list(range(at + 1, draft.band.body[0]))
        if points >= naming.CLEAR:
            _relabel(draft, at, between, Label.HEADER)
            draft.band = Band([at], between + draft.band.body, draft.band.again)
            return True
        if points >= (CLEAR if wide == draft.right - draft.left + 1 else 0.0):
            return False
        _relabel(draft, at, between, Label.DATA)
        draft.band = Band([], [at, *between, *draft.band.body], draft.band.again)
    return False


def _relabel(draft: Draft, at: int, between: Sequence[int], label: Label) -> None:
    draft.labels[at] = label
    for one in between:
        draft.labels[one] = Label.GROUP


def _lone_key(draft: Draft, row: Row, body: Sequence[Row]) -> bool:
    """Whether a row under a header is a lone text where that has a name and the rows have texts: a key or a caption."""
    column = row.filled[0]
    above = draft.rows[draft.band.head[-2]]
    if row.width > 1 or above.width < 2 or column not in above.filled:
        return False
    kinds = [one.kinds[column] for one in body if column < len(one.kinds) and one.kinds[column]]
    return kinds.count(Kind.TEXT) * 2 > len(kinds)


def _settled(draft: Draft, at: int, asked: Asked) -> bool:
    """Whether the row is a header beyond doubt."""
    row = draft.rows[at]
    if asked.header(row.number) >= TOLD or (asked.spelled is not None and asked.spelled(row.values)):
        return True
    if _counts_up(row):
        return True
    near = draft.rows[max(0, at - 1) : at + 2]
    return detectors.styled(near, asked.layout, row.number) >= STYLED


def _counts_up(row: Row) -> bool:
    """Whether a row names its columns by years, months, hours or classes."""
    if rises(row) < RISING:
        return falls(row) >= RISING and row.width >= 2 * MANY
    kinds = {row.kinds[at] for at in row.filled if row.kinds[at] in (Kind.NUMBER, Kind.DATE)}
    values = [row.values[at] for at in row.filled if row.kinds[at] in kinds]
    years = all(row.marks[at] & Mark.YEAR for at in row.filled if row.kinds[at] == Kind.NUMBER)
    return len(kinds) == 1 and (kinds == {Kind.DATE} or years or len(values) >= MANY or features.steady(row))


def extend(draft: Draft, asked: Asked) -> None:
    """Take rows right below that give a key, and nothing that reads like a note, into the body."""
    if asked.key is None or not draft.band.head or not draft.band.body:
        return
    head = [draft.rows[at] for at in draft.band.head]
    keys = asked.keys(headers.columns(head, draft.left, draft.right, asked.layout.merged))
    for at in range(draft.band.body[-1] + 1, len(draft.rows)):
        row = draft.rows[at]
        inside = all(draft.left <= one <= draft.right for one in row.filled)
        if row.gap or not inside or keys.isdisjoint(row.filled) or draft.labels[at] is Label.HEADER:
            return
        if row.number in asked.ruled or any(row.marks[one] & _REMARK for one in row.filled):
            return
        draft.labels[at] = Label.DATA
        draft.band.body.append(at)


def _odds(draft: Draft, at: int) -> float:
    """The line classifier's odds of a header, as a logarithm."""
    chance = draft.chances[at][Label.HEADER]
    other = max(1e-9, 1.0 - chance)
    return max(-MOST, min(MOST, log(max(chance, 1e-9) / other)))


def note(draft: Draft, number: int, vote: naming.Votes, *, header: bool) -> None:
    evidence = {"header": vote.names, "none": vote.values}
    if header:
        message = f"row {number} was taken for the header, but it is much like the rows below it"
        settle = '"reading": {"header": "none"}'
    else:
        message = f"row {number} was taken for data and the table has no header, but it could be one"
        settle = f'"reading": {{"header_rows": [{number}]}}'
    chosen = f"row {number}" if header else "none"
    draft.choices.append(Choice("header", chosen, evidence, False, message, number, settle))


def behead(draft: Draft) -> None:
    """Take the header rows for data."""
    draft.labels = [Label.DATA if at in draft.band.head else label for at, label in enumerate(draft.labels)]
    draft.band = Band(body=draft.band.all, again=draft.band.again)


def _lower(draft: Draft) -> None:
    """Take the last header row for data."""
    *head, leaf = draft.band.head
    draft.labels[leaf] = Label.DATA
    draft.band = Band(head, [leaf, *draft.band.body], draft.band.again)
