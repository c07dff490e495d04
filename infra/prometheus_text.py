"""The text format of Prometheus (docs/explanation/decisions/own-prometheus-text.md says why no library writes it)."""

from collections.abc import Mapping, Sequence

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def family(name: str, kind: str, about: str) -> list[str]:
    """The lines above the samples of a metric."""
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def sample(name: str, labels: Mapping[str, str], value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    # Every digit: a rounded counter would not advance.
    number = repr(int(value) if float(value).is_integer() else value)
    return f"{name}{{{shown}}} {number}" if shown else f"{name} {number}"


def histogram(
    name: str, labels: Mapping[str, str], bounds: Sequence[float], counts: Sequence[int], total: float
) -> list[str]:
    """The samples of a histogram. `counts`: by bucket, each without those below it, the last above all bounds.

    `total`: the sum of what was measured.
    """
    lines, count = [], 0
    for bound, n in zip((*(f"{bound:g}" for bound in bounds), "+Inf"), counts, strict=False):
        count += n
        lines.append(sample(f"{name}_bucket", {**labels, "le": bound}, count))
    return [*lines, sample(f"{name}_sum", labels, total), sample(f"{name}_count", labels, count)]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
