"""What a benchmark found, and how it is written: JSON for programs, Markdown and SVG for people, all in docs/bench/.

A figure is the median of its repeats with the lowest and the highest. A ratio compares a peer with us in the same run,
so it says more than a figure about another machine; `--quick` compares the ratios of today with the stored ones.
"""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.harness.machine import described, stamp

FOLDER = Path(__file__).parents[3] / "docs" / "bench"
QUICK_FACTOR = 2.0


class Figure(NamedTuple):
    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Figure":
        return cls(*(round(v, 4) for v in (statistics.median(values), min(values), max(values))))

    def __str__(self) -> str:
        spread = "" if self.low == self.high else f" ({shown(self.low)} to {shown(self.high)})"
        return shown(self.median) + spread


def shown(value: float) -> str:
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


@dataclass(frozen=True, kw_only=True)
class Section:
    """One table: ways to do the same work, each with the same figures."""

    title: str
    command: str
    ways: dict[str, dict[str, Figure]]  # way: unit or name of a figure: the figure
    repeats: int
    note: str = ""
    ours: str = ""  # the way that the others are compared with
    ratio_of: str = ""  # the figure that is compared
    compared: str = ""  # what was found equal before anything was timed

    def ratios(self) -> dict[str, float]:
        """By how much each other way needs more of what is compared."""
        if self.ours not in self.ways:
            return {}
        base = self.ways[self.ours][self.ratio_of].median or 1e-9
        return {
            way: round(found[self.ratio_of].median / base, 2)
            for way, found in self.ways.items()
            if way != self.ours and self.ratio_of in found
        }


@dataclass(frozen=True, kw_only=True)
class Report:
    """All sections of one benchmark."""

    name: str
    title: str
    sections: list[Section]
    versions: dict[str, str]
    whole: bool = True  # whether it is what the page shows
    machine: dict[str, object] = field(default_factory=described)
    origin: dict[str, str] = field(default_factory=stamp)

    def as_json(self) -> dict[str, Any]:
        return {
            "bench": self.name,
            **self.origin,
            "machine": self.machine,
            "versions": self.versions,
            "sections": [
                {
                    "title": s.title,
                    "command": s.command,
                    "repeats": s.repeats,
                    "compared": s.compared,
                    "figures": {way: {k: f._asdict() for k, f in found.items()} for way, found in s.ways.items()},
                    "ratio_of": s.ratio_of,
                    "ratios": s.ratios(),
                }
                for s in self.sections
            ],
        }

    def as_markdown(self) -> str:
        where = ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in self.machine.items())
        used = ", ".join(f"{k} {v}" for k, v in self.versions.items())
        lines = [
            f"# {self.title}",
            "",
            f"Made on {self.origin['made']} from commit {self.origin['commit']} by `make bench`.",
        ]
        lines += [f"Machine: {where}. Versions: {used}.", "How to read it: [README.md](README.md).", ""]
        for n, section in enumerate(self.sections):
            lines += [f"## {section.title}", "", f"`{section.command}`", ""]
            lines += [text for text in (section.compared, section.note) if text] + [""]
            lines += _table(section)
            if section.ours:
                lines += ["", f"![{section.title}]({self.name}-{n + 1}.svg)"]
            lines.append("")
        return "\n".join(lines).rstrip() + "\n"

    def write(self, folder: Path = FOLDER) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.json").write_text(json.dumps(self.as_json(), indent=1) + "\n")
        (folder / f"{self.name}.md").write_text(self.as_markdown())
        for n, section in enumerate(self.sections):
            if section.ours:
                (folder / f"{self.name}-{n + 1}.svg").write_text(bars(section))

    def print(self) -> None:
        for section in self.sections:
            print(f"\n{section.title}\n{section.compared}", flush=True)
            print("\n".join(_table(section)), flush=True)


def _table(section: Section) -> list[str]:
    names = list(dict.fromkeys(name for found in section.ways.values() for name in found))
    ratios = section.ratios()
    head = ["way", *names] + ([f"times {section.ours}: {section.ratio_of}"] if ratios else [])
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for way, found in section.ways.items():
        cells = [str(found[name]) if name in found else "" for name in names]
        if ratios:
            cells.append(f"{ratios[way]:g}" if way in ratios else "1")
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return lines


def bars(section: Section) -> str:
    """A bar for each way, of the figure that is compared; the line at its end is the spread."""
    found = {way: figures[section.ratio_of] for way, figures in section.ways.items() if section.ratio_of in figures}
    most = max(f.high for f in found.values()) or 1.0
    left, width, row = 300, 420, 26
    lines = []
    for n, (way, figure) in enumerate(found.items()):
        y = 44 + n * row
        long, low, high = (v / most * width for v in figure)
        colour = "#1f6f54" if way == section.ours else "#8a94a6"
        lines += [
            f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(way)}</text>',
            f'<rect x="{left}" y="{y}" width="{long:.1f}" height="18" fill="{colour}"/>',
            f'<path d="M{left + low:.1f} {y + 9}H{left + high:.1f}" stroke="#222"/>',
            f'<text x="{left + max(high, long) + 6:.1f}" y="{y + 13}">{shown(figure.median)}</text>',
        ]
    height = 54 + len(found) * row
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {height}" font-family="sans-serif" font-size="12">\n'
        f'<rect width="800" height="{height}" fill="#fff"/>\n'
        f'<text x="10" y="22" font-size="14">{escape(section.title)}: {escape(section.ratio_of)}</text>\n'
        + "\n".join(lines)
        + "\n</svg>\n"
    )


def stored_ratios(name: str, title: str) -> Mapping[str, float]:
    """The ratios of a section as they were last written."""
    path = FOLDER / f"{name}.json"
    sections = json.loads(path.read_text())["sections"] if path.exists() else ()
    return next((s["ratios"] for s in sections if s["title"] == title), {})


def drifted(name: str, section: Section) -> list[str]:
    """Ratios that are more than twice as good or bad for us as the stored ones."""
    stored, now = stored_ratios(name, section.title), section.ratios()
    return [
        f"{section.title}, {way}: {now[way]:g} times ours, {ratio:g} in docs/bench/{name}.json"
        for way, ratio in stored.items()
        if way in now and now[way] < ratio / QUICK_FACTOR
    ]
