"""Charts as inline SVG, drawn by the server. Attributes only: pages forbid inline styles; axes are text around them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from markupsafe import Markup, escape

from core.ends import DAY, DELAYS, EndCounts, added_up

_WIDTH, _HEIGHT = 600, 120
_LINE_WIDTH, _LINE_HEIGHT = 120, 28
RANGES = {"hour": (300.0, 12), "day": (3600.0, 24), "week": (6 * 3600.0, 28)}  # seconds of a bar, and how many
OF_DAYS = (DAY, 28)


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing and the texts of its axes."""

    title: str
    note: str  # the whole of it in words
    svg: Markup
    top: str  # the greatest value of the upright axis
    begin: str  # of the time axis, as `middle` and `end`
    middle: str
    end: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """One bar: what ended within it; None: nothing did."""

    begin: float
    counts: EndCounts | None

    def number(self, name: str) -> int:
        return 0 if self.counts is None else self.counts[name]


def stretches(counts: Sequence[EndCounts], now: float, seconds: float, bars: int) -> list[Stretch]:
    """The counters of the last `bars` stretches, added up; the last one is still going on."""
    first = (now // seconds - bars + 1) * seconds
    found: dict[int, list[EndCounts]] = {}
    for one in counts:
        n = int((one.at - first) // seconds)
        if 0 <= n < bars:
            found.setdefault(n, []).append(one)
    return [Stretch(first + n * seconds, added_up(found[n]) if n in found else None) for n in range(bars)]


def all_charts(bars: Sequence[Stretch], seconds: float) -> list[Chart]:
    """Files, rows, the share of rows with errors, and how long files took."""
    return [files(bars, seconds), rows(bars, seconds), error_rate(bars, seconds), delays(bars, seconds)]


def files(bars: Sequence[Stretch], seconds: float) -> Chart:
    values = [(one.number("files") - one.number("failed"), one.number("failed")) for one in bars]
    total, failed = sum(a + b for a, b in values), sum(b for _, b in values)
    words = [f"{_count(a + b, 'file')}{f', {b:,} failed' if b else ''}" for a, b in values]
    return _bars("Files", f"{_count(total, 'file')}, {failed:,} failed", values, words, bars, seconds)


def rows(bars: Sequence[Stretch], seconds: float) -> Chart:
    wrong = [min(one.number("wrong"), one.number("rows")) for one in bars]
    values = [(one.number("rows") - bad, bad) for one, bad in zip(bars, wrong, strict=True)]
    total, bad = sum(a + b for a, b in values), sum(wrong)
    words = [f"{_count(a + b, 'row')}{f', {b:,} with errors' if b else ''}" for a, b in values]
    return _bars("Rows", f"{_count(total, 'row')}, {bad:,} with errors", values, words, bars, seconds)


def error_rate(bars: Sequence[Stretch], seconds: float) -> Chart:
    values = [None if one.counts is None else one.counts.error_rate for one in bars]
    total, wrong = sum(one.number("rows") for one in bars), sum(one.number("wrong") for one in bars)
    note = f"{min(1.0, wrong / total):.1%} of {_count(total, 'row')}" if total else "no rows"
    words = ["no rows" if value is None else f"{value:.1%} of rows with errors" for value in values]
    most = max((value for value in values if value is not None), default=0.0)
    top = next((step for step in (0.01, 0.05, 0.1, 0.25, 0.5, 1.0) if most <= step), 1.0)
    return _lines("Rows with errors", note, [("bad", values)], words, (top, f"{top:.0%}"), bars, seconds)


def delays(bars: Sequence[Stretch], seconds: float) -> Chart:
    """From a file's arrival in the queue to its end: half of them, and nearly all."""
    halves = [None if one.counts is None else within(one.counts.delays, 0.5) for one in bars]
    nearly = [None if one.counts is None else within(one.counts.delays, 0.95) for one in bars]
    together = [sum(n) for n in zip(*(one.counts.delays for one in bars if one.counts is not None), strict=True)]
    half, most = (within(together, 0.5), within(together, 0.95)) if together else (None, None)
    note = f"half within {_delay(half)}, 95 % within {_delay(most)}" if half is not None else "no files"
    words = [
        "no files" if a is None else f"half within {_delay(a)}, 95 % within {_delay(b)}"
        for a, b in zip(halves, nearly, strict=True)
    ]
    scale = [*DELAYS, 2 * DELAYS[-1]]
    steps = len(scale)

    def placed(values: Sequence[float | None]) -> list[float | None]:
        return [None if value is None else (scale.index(value) + 1) / steps for value in values]

    series = [("bad", placed(nearly)), ("mark", placed(halves))]
    return _lines("Time to result", note, series, words, (1.0, f"over {_delay(DELAYS[-1])}"), bars, seconds)


def within(counts: Sequence[int], share: float) -> float | None:
    """The time within which this share of files ended, as exactly as they are counted; twice the last: longer."""
    total, seen = sum(counts), 0
    for n, count in enumerate(counts):
        seen += count
        if total and seen >= share * total:
            return DELAYS[n] if n < len(DELAYS) else 2 * DELAYS[-1]
    return None


def _delay(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds > DELAYS[-1]:
        return f"more than {DELAYS[-1] / 60:.0f} min"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _bars(  # noqa: PLR0917 - as it is drawn
    title: str,
    note: str,
    values: Sequence[tuple[int, int]],
    words: Sequence[str],
    bars: Sequence[Stretch],
    seconds: float,
) -> Chart:
    """Good below, bad above."""
    most = _round_up(max(a + b for a, b in values))
    wide = _WIDTH / len(values)
    drawn = []
    for n, (well, badly) in enumerate(values):
        low, high = well / most * _HEIGHT, badly / most * _HEIGHT
        at = n * wide + 1
        parts = _rect("good", at, _HEIGHT - low, wide - 2, low) if well else ""
        parts += _rect("bad", at, _HEIGHT - low - high, wide - 2, high) if badly else ""
        drawn.append(_tip(parts, n, wide, _moment(bars[n].begin, seconds), words[n]))
    return _chart(title, note, "".join(drawn), f"{most:,}", bars, seconds)


def _lines(  # noqa: PLR0917 - as it is drawn
    title: str,
    note: str,
    series: Sequence[tuple[str, Sequence[float | None]]],
    words: Sequence[str],
    top: tuple[float, str],
    bars: Sequence[Stretch],
    seconds: float,
) -> Chart:
    """Lines over the middle of each stretch, with gaps where nothing is known."""
    most, label = top
    wide = _WIDTH / len(bars)
    drawn = ""
    for kind, values in series:
        dots = [
            (n, (n + 0.5) * wide, _HEIGHT - 2 - min(value / most, 1.0) * (_HEIGHT - 6))
            for n, value in enumerate(values)
            if value is not None
        ]
        for (n, x, y), (m, x2, y2) in pairwise(dots):
            if m - n <= 2:
                drawn += f'<line class="{kind}" x1="{x:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
        drawn += "".join(
            f'<rect class="{kind}" x="{x - 3:.1f}" y="{y - 2:.1f}" width="6" height="4"/>' for _, x, y in dots
        )
    tips = "".join(_tip("", n, wide, _moment(bars[n].begin, seconds), words[n]) for n in range(len(bars)))
    return _chart(title, note, drawn + tips, label, bars, seconds)


def _chart(  # noqa: PLR0917 - private
    title: str, note: str, drawn: str, top: str, bars: Sequence[Stretch], seconds: float
) -> Chart:
    label = escape(f"{title}: {note}")
    lines = "".join(
        f'<line class="rule" x1="0" x2="{_WIDTH}" y1="{y}" y2="{y}"/>' for y in (0.5, _HEIGHT / 2, _HEIGHT - 0.5)
    )
    svg = Markup(  # noqa: S704 - numbers, and labels that are escaped
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{label}">{lines}{drawn}</svg>'
    )
    middle = bars[len(bars) // 2].begin
    end = "now" if seconds < DAY else "today"
    return Chart(title, note, svg, top, _tick(bars[0].begin, seconds), _tick(middle, seconds), end)


def _tip(parts: str, n: int, wide: float, *words: str) -> str:
    """A bar with the whole of its height to point at."""
    over = f'<rect class="over" x="{n * wide:.1f}" y="0" width="{wide:.1f}" height="{_HEIGHT}"/>'
    return f"<g>{over}{parts}<title>{escape(': '.join(words))}</title></g>"


def _tick(at: float, seconds: float) -> str:
    moment = datetime.fromtimestamp(at, UTC)
    return moment.strftime("%H:%M" if seconds <= 3600 else "%d %b")


def _moment(at: float, seconds: float) -> str:
    begin, end = datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(at + seconds, UTC)
    if seconds >= DAY:
        return begin.strftime("%a %d %b")
    return f"{begin:%a %d %b %H:%M} to {end:%H:%M} UTC"


def _round_up(most: int) -> int:
    """A number that reads well and is not less."""
    size = 1
    while size * 10 < most:
        size *= 10
    return next(n for n in (1, 2, 3, 4, 5, 6, 8, 10) if n * size >= most) * size


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


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
