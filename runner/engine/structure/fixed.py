"""Sheets whose header the manifest settles, by `reading.header_rows` or `reading.header: none`."""

from collections.abc import Sequence

from runner.engine.structure.bands import Band
from runner.engine.structure.drafts import Classify, Draft
from runner.engine.structure.labels import Label
from runner.engine.structure.rows import Row
from runner.engine.structure.tables import Choice


def draft(rows: Sequence[Row], header: Sequence[int], classify: Classify) -> Draft | None:
    """One table of all rows below the header rows, or without any of all rows; None where a header row is blank."""
    if not rows:
        return None
    head = [at for at, row in enumerate(rows) if row.number in header]
    if len(head) < len(header):
        return None
    labels, chances = classify(rows)
    wide = max(row.last for row in rows) - min(row.filled[0] for row in rows) > 1
    first = head[-1] + 1 if head else _start(rows, labels) if wide else 0
    last = _end(rows, labels, first) if wide else len(rows)
    top = head[0] if head else first
    again = [] if len(head) != 1 else [at for at in range(first, last) if _same(rows[at], rows[head[0]])]
    body = [at for at in range(first, last) if at not in again]
    own = [rows[at] for at in (*head, *body)]
    settled = [
        Label.TITLE if at < top else Label.HEADER if at in head else Label.NOTE if at >= last else _body(label)
        for at, label in enumerate(labels)
    ]
    left, right = min(row.filled[0] for row in own), max(row.last for row in own) - 1
    return Draft(list(rows), settled, list(chances), Band(head, body, again), left, right, settled=True)


def missing(header: Sequence[int]) -> Choice:
    """What to say where a sheet has nothing in a row that the manifest names."""
    rows = ", ".join(map(str, header))
    message = f"reading.header_rows names row {rows}, which is blank in this sheet; the header was looked for"
    return Choice("header", "looked for", {"rows": len(header)}, False, message, header[0])


def _body(label: Label) -> Label:
    return label if label in (Label.TOTAL, Label.GROUP) else Label.DATA


def _start(rows: Sequence[Row], labels: Sequence[Label]) -> int:
    """Lone texts above the first rows are titles."""
    at = 0
    while at < len(rows) - 1 and rows[at].width == 1 and labels[at] is Label.TITLE:
        at += 1
    return at


def _end(rows: Sequence[Row], labels: Sequence[Label], first: int) -> int:
    """Lone texts below the last rows are notes."""
    at = len(rows)
    while at > first + 1 and rows[at - 1].width == 1 and labels[at - 1] is Label.NOTE:
        at -= 1
    return at


def _same(row: Row, head: Row) -> bool:
    return len(row.filled) > 1 and row.filled == head.filled and row.values[: row.last] == head.values[: head.last]
