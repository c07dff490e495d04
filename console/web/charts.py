"""Small charts as inline SVG, drawn by the server. Attributes only: pages forbid inline styles."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

_WIDTH, _HEIGHT = 600, 120
_BUCKETS = 40
_LINE_WIDTH, _LINE_HEIGHT = 120, 28


@dataclass(frozen=True, slots=True)
class Throughput:
    svg: Markup
    per_minute: float
    most: int  # jobs of the highest bar
    step: str  # how long a bar is, and all of them, in words
    whole: str


def throughput(ends: Sequence[tuple[float, str]], now: float, good: str) -> Throughput | None:
    """Jobs that ended, over time: successes below, the rest above. None where there is nothing to draw."""
    if not ends:
        return None
    since = min(at for at, _ in ends)
    step = _step(max(now - since, 60.0) / _BUCKETS)
    first = now - step * _BUCKETS
    counts = [[0, 0] for _ in range(_BUCKETS)]
    for at, state in ends:
        n = int((at - first) / step)
        if 0 <= n < _BUCKETS:
            counts[n][0 if state == good else 1] += 1
    most = max(a + b for a, b in counts) or 1
    wide = _WIDTH / _BUCKETS
    bars = []
    for n, (well, badly) in enumerate(counts):
        low, high = well / most * _HEIGHT, badly / most * _HEIGHT
        at = n * wide + 1
        if well:
            bars.append(_rect("good", at, _HEIGHT - low, wide - 2, low))
        if badly:
            bars.append(_rect("bad", at, _HEIGHT - low - high, wide - 2, high))
    label = (
        f"{len(ends)} jobs ended, at most {most} in {_words(step)}; the newest {_BUCKETS} bars of {_words(step)} each"
    )
    svg = (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{label}"><title>{label}</title><line x1="0" x2="{_WIDTH}" y1="{_HEIGHT}" y2="{_HEIGHT}"/>'
        f"{''.join(bars)}</svg>"
    )
    spread = max(now - since, 60.0)
    return Throughput(Markup(svg), len(ends) * 60 / spread, most, _words(step), _words(step * _BUCKETS))  # noqa: S704 - numbers only


def _step(seconds: float) -> float:
    for step in (5, 15, 60, 300, 900, 3600, 6 * 3600, 86400, 7 * 86400):
        if seconds <= step:
            return float(step)
    return 30 * 86400.0


def _words(seconds: float) -> str:
    for size, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            n = int(seconds // size)
            return f"{n} {word}{'' if n == 1 else 's'}"
    return f"{seconds:.0f} seconds"


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def shares(values: Sequence[float | None], label: str) -> Markup:
    """A line of shares between 0 and 1, oldest first; gaps where nothing is known."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return Markup("")  # one dot is no line
    most = max(*known, 0.05)
    step = _LINE_WIDTH / max(len(values) - 1, 1)
    dots = [
        (n * step, _LINE_HEIGHT - 2 - min(value, 1.0) / most * (_LINE_HEIGHT - 4))
        for n, value in enumerate(values)
        if value is not None
    ]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in dots)
    x, y = dots[-1]
    return Markup(  # noqa: S704 - numbers, and a label that is escaped
        f'<svg class="spark" viewBox="-4 -2 {_LINE_WIDTH + 8} {_LINE_HEIGHT + 4}" role="img" '
        f'aria-label="{escape(label)}"><title>{escape(label)}</title><polyline points="{points}"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/></svg>'
    )
