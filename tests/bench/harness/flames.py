"""Flame graphs: where the CPU time of one process goes. A sample for every 2 ms of CPU, of the main thread's stack."""

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from types import FrameType
from zlib import crc32

_EVERY = 0.002
_WIDTH, _ROW = 1200, 17
_LEAST = 0.002  # of all samples; what is narrower is left out
_COLOURS = ("#d9694a", "#e08a4f", "#e3a857", "#cf7a5b", "#dd9b6c")
ROOT = Path(__file__).parents[3]
Stacks = Counter[tuple[str, ...]]


@contextmanager
def sampled() -> Iterator[Stacks]:
    """Count the stacks of the main thread while the context lasts."""
    stacks: Stacks = Counter()
    here = len(list(_frames(None)))

    def sample(_: int, frame: FrameType | None) -> None:
        stacks[tuple(reversed(list(_frames(frame))))[here:]] += 1

    before = signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)
    try:
        yield stacks
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _frames(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else Path(path.name)
        if "site-packages" in place.parts:
            place = Path(path.name)
        yield f"{place}: {frame.f_code.co_qualname}"
        frame = frame.f_back


def draw(title: str, stacks: Stacks) -> str:
    """Boxes as wide as their share of the samples, callers below what they call; pointing at one shows its name."""
    whole = sum(stacks.values()) or 1
    boxes: list[tuple[int, float, float, str]] = []
    _place(stacks, whole, 0, 0.0, boxes)
    depth = max((box[0] for box in boxes), default=0) + 1
    height = depth * _ROW + 40
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="monospace" font-size="11">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="8" y="18" font-size="14">{escape(title)}: {whole:,} samples, one for each 2 ms of CPU</text>',
    ]
    for level, left, share, name in boxes:
        x, y, width = left * _WIDTH, height - (level + 1) * _ROW - 4, share * _WIDTH
        shown = name.rpartition(": ")[2].rpartition(".<locals>.")[2][: int(width / 7)]
        text = f'<text x="{x + 2:.1f}" y="{y + 12}">{escape(shown)}</text>' if len(shown) > 2 else ""
        lines.append(
            f'<g><title>{escape(name)} {share:.1%}</title><rect x="{x:.1f}" y="{y}" width="{max(width - 0.5, 0.5):.1f}" '
            f'height="{_ROW - 1}" fill="{_COLOURS[crc32(name.encode()) % len(_COLOURS)]}"/>{text}</g>'
        )
    return "\n".join([*lines, "</svg>\n"])


def _place(stacks: Stacks, whole: int, level: int, left: float, boxes: list[tuple[int, float, float, str]]) -> None:
    by_name: dict[str, Stacks] = {}
    for stack, count in stacks.items():
        if stack:
            by_name.setdefault(stack[0], Counter())[stack[1:]] += count
    for name, rest in sorted(by_name.items()):
        share = sum(rest.values()) / whole
        if share >= _LEAST:
            boxes.append((level, left, share, name))
            _place(rest, whole, level + 1, left, boxes)
        left += share
