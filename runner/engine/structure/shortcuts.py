"""Sheets that need no classifier: declared or plain tables, headers that the manifest sets, and single columns."""

from collections.abc import Sequence

from runner.engine.reading import DeclaredTable
from runner.engine.structure import header_rows
from runner.engine.structure.bands import Band, Classify, Draft, cut
from runner.engine.structure.facts import CellKind, Mark, Profile, Row
from runner.engine.structure.header_rows import DECISIVE, Hints, note
from runner.engine.structure.tables import Choice, Label


def declared_drafts(rows: Sequence[Row], tables: Sequence[DeclaredTable]) -> tuple[list[Draft], list[Row]]:
    """Make drafts of the declared tables; return also the rows with what is beside and below them."""
    drafts: list[Draft] = []
    rest = list(rows)
    for table in tables:
        draft = _declared_draft(rest, table)
        if draft is not None:
            drafts.append(draft)
            rest = [remaining for row in rest if (remaining := _without(row, table)) is not None]
    return drafts, rest


def _declared_draft(rows: Sequence[Row], table: DeclaredTable) -> Draft | None:
    """Make the draft of a declared table; None if all of its rows are blank."""
    top, left, bottom, right = table.area
    inside = [part for row in rows if top <= row.number <= bottom and (part := cut(row, left - 1, right - 1))]
    if not inside:
        return None
    labels = [_label(row.number, table) for row in inside]
    head = [at for at, label in enumerate(labels) if label is Label.HEADER]
    body = [at for at, label in enumerate(labels) if label is not Label.HEADER]
    return Draft(inside, labels, _chances(labels), Band(head, body), left - 1, right - 1, declared=True)


def _label(number: int, table: DeclaredTable) -> Label:
    """Label a row of a declared table by its number."""
    if number < table.area[0] + table.header_rows:
        return Label.HEADER
    return Label.TOTAL if number > table.area[2] - table.totals_rows else Label.DATA


def _without(row: Row, table: DeclaredTable) -> Row | None:
    """Return a row without the table's cells; None if nothing else is in it."""
    top, left, bottom, right = table.area
    if not top <= row.number <= bottom:
        return row
    beside = [at for at in row.filled if not left - 1 <= at <= right - 1]
    if not beside:
        return None
    rest = cut(row, 0, len(row.kinds) - 1)
    if rest is None:
        return None
    span = slice(left - 1, min(right, len(row.kinds)))
    count = len(row.kinds[span])
    rest.kinds = row.kinds[: span.start] + bytes(count) + row.kinds[span.start + count :]
    rest.values = row.values[: span.start] + (None,) * count + row.values[span.start + count :]
    rest.filled = tuple(beside)
    rest.width = len(beside)
    rest.last = beside[-1] + 1
    return rest


def fixed_draft(rows: Sequence[Row], header: Sequence[int], classify: Classify) -> Draft | None:
    """Make one table of all rows below the header rows that the manifest sets (of all rows if there are none).

    None if a header row is blank.
    """
    if not rows:
        return None
    head = [at for at, row in enumerate(rows) if row.number in header]
    if len(head) < len(header):
        return None
    labels, chances = classify(rows)
    is_wide = max(row.last for row in rows) - min(row.filled[0] for row in rows) > 1
    first = head[-1] + 1 if head else _skip_titles(rows, labels) if is_wide else 0
    last = _skip_notes(rows, labels, first) if is_wide else len(rows)
    top = head[0] if head else first
    again = [] if len(head) != 1 else [at for at in range(first, last) if _is_repeated(rows[at], rows[head[0]])]
    body = [at for at in range(first, last) if at not in again]
    inside = [rows[at] for at in (*head, *body)]
    fixed = [
        Label.TITLE if at < top else Label.HEADER if at in head else Label.NOTE if at >= last else _body_label(label)
        for at, label in enumerate(labels)
    ]
    left, right = min(row.filled[0] for row in inside), max(row.last for row in inside) - 1
    return Draft(list(rows), fixed, list(chances), Band(head, body, again), left, right, is_fixed=True)


def header_missing(header: Sequence[int]) -> Choice:
    """Report a header row of the manifest that is blank in a sheet."""
    rows = ", ".join(map(str, header))
    message = f"reading.header_rows lists row {rows}, which is blank in this sheet; the header was detected instead"
    return Choice("header", "looked for", {"rows": len(header)}, False, message, header[0])


def _body_label(label: Label) -> Label:
    """Return the label of a row below the header: data if it is neither a total nor a caption."""
    return label if label in (Label.TOTAL, Label.GROUP) else Label.DATA


def _skip_titles(rows: Sequence[Row], labels: Sequence[Label]) -> int:
    """Return the index of the first row that is not a single text above the others, a title."""
    at = 0
    while at < len(rows) - 1 and rows[at].width == 1 and labels[at] is Label.TITLE:
        at += 1
    return at


def _skip_notes(rows: Sequence[Row], labels: Sequence[Label], first: int) -> int:
    """Return the index after the last row that is not a single text below the others, a note."""
    at = len(rows)
    while at > first + 1 and rows[at - 1].width == 1 and labels[at - 1] is Label.NOTE:
        at -= 1
    return at


def _is_repeated(row: Row, head: Row) -> bool:
    """Whether a row of several cells repeats the header row."""
    return len(row.filled) > 1 and row.filled == head.filled and row.values[: row.last] == head.values[: head.last]


MOST_PLAIN = 1_000  # rows
LEAST_PLAIN = 4  # rows below the header
NAMED = 0.5  # share of a plain table's columns that are called as declared names are
FULL = 0.6  # share of a plain table's columns that each of its records fills
# What texts of rows show that may be totals, notes, captions or lines.
_NO_RECORD = int(Mark.TOTAL | Mark.NOTE | Mark.TITLE | Mark.COLON | Mark.FOOTNOTE | Mark.RULE)
_FILLER = int(CellKind.FILLER)
_BLANKS = frozenset({int(CellKind.BLANK), _FILLER})


def plain_draft(rows: Sequence[Row], hints: Hints) -> Draft | None:
    """Make the draft of a sheet that is one plain table; None unless nothing in it needs to be judged.

    Proof: the header is a row of distinct texts, at least half of them declared names, over columns of one kind each;
    the rows below follow without a gap, fill most columns and show no sign of a total, a note or a caption; above are
    at most single texts and then a blank row; no rule, style or layout speaks for another reading.
    """
    at = next((at for at, row in enumerate(rows[: TITLES + 1]) if hints.header(row.number) >= DECISIVE), -1)
    if at < 0 or not LEAST_PLAIN < len(rows) - at <= MOST_PLAIN:
        return None
    head, body = rows[at], rows[at + 1 :]
    is_alone = not hints.ruled and hints.scores.keys() <= {head.number, head.number + 1}
    if not is_alone or not _has_plain_layout(rows, head, hints) or not _names_columns(head, rows[:at], hints):
        return None
    if not all(_is_record(row, head) for row in body) or not _are_of_one_kind(body, head):
        return None
    labels = [Label.TITLE] * at + [Label.HEADER] + [Label.DATA] * len(body)
    band = Band([at], list(range(at + 1, len(rows))))
    return Draft(list(rows), labels, _chances(labels), band, head.filled[0], head.filled[-1])


def _has_plain_layout(rows: Sequence[Row], head: Row, hints: Hints) -> bool:
    """Whether the layout says nothing about rows other than the header: no merges, no bold records, no filter below."""
    layout = hints.layout
    hinted = max(layout.frozen_rows, (layout.print_title_rows or (0, 0))[1], (layout.autofilter or (0,))[0])
    return not layout.merged and hinted <= head.number and not any(row.bold > 0 for row in rows if row is not head)


def _names_columns(head: Row, above: Sequence[Row], hints: Hints) -> bool:
    """Whether a row of distinct texts without a blank between them names columns, with only single texts above."""
    count = len(head.filled)
    names = {str(value).strip().casefold() for value in head.values[head.filled[0] :]}
    is_full = head.filled[-1] - head.filled[0] + 1 == count == head.width == len(names) > 1
    if not is_full or any(head.kinds[at] != _TEXT for at in head.filled):
        return False
    if any(row.width > 1 or row.kinds[row.filled[0]] != _TEXT for row in above) or (above and not head.gap):
        return False
    return hints.spelled is not None and hints.spelled(head.values) >= NAMED * count


def _is_record(row: Row, head: Row) -> bool:
    """Whether a row right below the others fills most columns of the header, and none of its texts is doubtful."""
    first, last = head.filled[0], head.filled[-1]
    if row.gap or row.skipped or row.filled[0] != first or row.last > last + 1 or row.width < FULL * len(head.filled):
        return False
    return not any(row.marks[at] & _NO_RECORD for at in row.filled if row.kinds[at] == _TEXT)


def _are_of_one_kind(body: Sequence[Row], head: Row) -> bool:
    """Whether each column has values of one kind, and none that the header has, too."""
    for at in head.filled:
        column = [row for row in body if at < len(row.kinds)]
        if len({row.kinds[at] for row in column} - _BLANKS) != 1 or any(
            row.values[at] == head.values[at] for row in column
        ):
            return False
    return True


def _chances(labels: Sequence[Label]) -> list[Sequence[float]]:
    """Return chances by which each label is certain."""
    return [[0.99 if other is label else 0.002 for other in Label] for label in labels]


LEAST = 3  # rows of a list without a header
PROSE = 0.2  # share of long or sentence-like cells above which a column is prose
TITLES = 3  # rows above a header or a list that may name it
NOTES = 4  # rows below a list that may comment on it
UNSURE = 0.5
DOUBT = 1.0  # points for or against a header below which it is unsure
_PROSE = int(Mark.SENTENCE | Mark.NOTE)
_TEXT = int(CellKind.TEXT)


def list_draft(rows: Sequence[Row], hints: Hints) -> Draft | None:
    """Make the draft of a list; None unless all rows are in one column and look like entries."""
    columns = {at for row in rows for at in row.filled}
    if len(columns) != 1 or any(row.last > row.filled[0] + 1 for row in rows):
        return None
    (column,) = columns
    head = next((at for at, row in enumerate(rows[: TITLES + 1]) if _is_known_header(row, hints)), -1)
    first = head + 1 if head >= 0 else 0
    is_known = head >= 0
    if not is_known:
        if _is_prose(rows, column) and not _texts_under_a_name(rows, column):
            return None
        first, head = _list_start(rows, column)
    last = _list_end(rows, first, column)
    if last - first < (1 if head >= 0 else LEAST):
        return None
    draft = _draft_of_list(rows, head, first, last, column)
    if not is_known:
        _note_doubt(draft)
    return draft


def _note_doubt(draft: Draft) -> None:
    """Note a header that could be an entry, or an entry that could be a header."""
    top, *rest = [draft.rows[at] for at in draft.band.all]
    vote = header_rows.votes(top, rest)
    has_header = bool(draft.band.head)
    if abs(vote.points) < DOUBT and (has_header or vote.points > 0):
        note(draft, top.number, vote, header=has_header)


def _is_known_header(row: Row, hints: Hints) -> bool:
    """Whether a rule, the manifest or a declared name makes a row the header."""
    return hints.header(row.number) >= DECISIVE or (hints.spelled is not None and hints.spelled(row.values) > 0)


def _draft_of_list(rows: Sequence[Row], head: int, first: int, last: int, column: int) -> Draft:
    """Make the draft of a list in one column; `head`: the index of its header, -1 if it has none."""
    top = head if head >= 0 else first
    labels = [
        Label.TITLE if at < top else Label.HEADER if at == head else Label.DATA if at < last else Label.NOTE
        for at in range(len(rows))
    ]
    chances: list[Sequence[float]] = [[UNSURE if other is label else UNSURE / 5 for other in Label] for label in labels]
    band = Band([head] if head >= 0 else [], list(range(first, last)))
    return Draft(list(rows), labels, chances, band, column, column)


def _is_prose(rows: Sequence[Row], column: int) -> bool:
    """Whether the column is prose."""
    prose = sum(1 for row in rows if row.marks[column] & _PROSE or row.words[column] > 8)
    return prose > PROSE * len(rows)


def _texts_under_a_name(rows: Sequence[Row], column: int) -> bool:
    """Whether the column is prose under a one-word header without a blank row: an export of comments."""
    name = rows[0]
    is_word = name.kinds[column] == _TEXT and name.words[column] == 1 and not name.marks[column] & _PROSE
    if not is_word or any(row.gap for row in rows[1:]) or len(rows) <= LEAST:
        return False
    return sum(1 for row in rows[1:] if row.words[column] <= 2) * 5 < len(rows)


def _list_start(rows: Sequence[Row], column: int) -> tuple[int, int]:
    """Return the index of the first entry, and of the header or -1."""
    for head in range(min(TITLES, len(rows) - 1), 0, -1):
        # A title may be above the header, but only with good evidence for both.
        rest = rows[head + 1 :]
        if len(rest) > head and _is_clear_header(rows[head], rest) and _are_titles(rows[:head], rest, column):
            return head + 1, head
    if len(rows) > 1 and header_rows.votes(rows[0], rows[1:]).points > 0:
        return 1, 0
    start = next((at for at, row in enumerate(rows[1 : TITLES + 1], 1) if row.gap), 0)
    if start and len(rows) - start > LEAST and _are_titles(rows[:start], rows[start:], column):
        return start, -1
    return 0, -1


def _is_clear_header(row: Row, below: Sequence[Row]) -> bool:
    """Whether a row is the header of those below it by a clear vote of its columns."""
    return header_rows.votes(row, below).points >= header_rows.CLEAR_VOTE


def _are_titles(above: Sequence[Row], below: Sequence[Row], column: int) -> bool:
    """Whether texts above a list are unlike its entries."""
    profile = Profile(str(row.values[column]) for row in below if row.kinds[column] == _TEXT)
    return all(row.kinds[column] == _TEXT and not profile.like(str(row.values[column])) for row in above)


def _list_end(rows: Sequence[Row], first: int, column: int) -> int:
    """Return the index after the last entry: comments below a blank row are not entries."""
    for last in range(len(rows) - 1, max(first, len(rows) - 1 - NOTES), -1):
        if not rows[last].gap:
            continue
        profile = Profile(str(row.values[column]) for row in rows[first:last] if row.kinds[column] == _TEXT)
        if all(
            row.kinds[column] == _TEXT and row.words[column] > 2 and not profile.like(str(row.values[column]))
            for row in rows[last:]
        ):
            return last
    return len(rows)
