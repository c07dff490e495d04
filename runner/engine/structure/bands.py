"""From labelled rows to bands: a header and the body below it, across all columns."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from runner.engine.structure.labels import BODY, Label


@dataclass(slots=True)
class Band:
    """Indexes into the rows it was cut from."""

    head: list[int] = field(default_factory=list)
    body: list[int] = field(default_factory=list)
    split: bool = False  # cut from a neighbour beside it

    @property
    def all(self) -> list[int]:
        return self.head + self.body


def bands(labels: Sequence[Label]) -> list[Band]:
    found: list[Band] = []
    now: Band | None = None
    for at, label in enumerate(labels):
        if label is Label.HEADER:
            if now is None or now.body:
                now = Band()
                found.append(now)
            now.head.append(at)
        elif label in BODY:
            if now is None:
                now = Band()
                found.append(now)
            now.body.append(at)
        else:
            now = None
    for band in found:
        _trim(band, labels)
    found = [band for band in found if band.all]
    return [band for band in found if band.body] or found


def _trim(band: Band, labels: Sequence[Label]) -> None:
    """A caption with nothing under it, or over a headless body, is no part of the table."""
    while band.body and labels[band.body[-1]] is Label.GROUP:
        band.body.pop()
    while band.body and not band.head and labels[band.body[0]] is Label.GROUP:
        band.body.pop(0)
