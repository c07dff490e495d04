"""Metrics in the format of Prometheus. Job metrics come from the table and the queue."""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping

from console.facade import Facade
from core.jobs import State

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0)


class HttpCounts:
    """Requests of this process by operation and status, and how long they took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: Counter[tuple[str, float]] = Counter()
        self._sums: Counter[str] = Counter()

    def add(self, operation: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[operation, status] += 1
            self._sums[operation] += seconds  # type: ignore[assignment]
            for bound in _BUCKETS:
                if seconds <= bound:
                    self._seconds[operation, bound] += 1

    def lines(self) -> list[str]:
        with self._lock:
            requests, seconds, sums = dict(self._requests), dict(self._seconds), dict(self._sums)
        totals: Counter[str] = Counter()
        for (name, _), n in requests.items():
            totals[name] += n
        lines = _family("ade_http_requests_total", "counter", "requests by operation and status")
        lines += [
            _line("ade_http_requests_total", {"operation": o, "status": str(s)}, n) for (o, s), n in requests.items()
        ]
        lines += _family("ade_http_request_seconds", "histogram", "how long requests took; streams are left out")
        for name, total in totals.items():
            lines += [
                _line(
                    "ade_http_request_seconds_bucket",
                    {"operation": name, "le": f"{bound:g}"},
                    seconds.get((name, bound), 0),
                )
                for bound in _BUCKETS
            ]
            lines.append(_line("ade_http_request_seconds_bucket", {"operation": name, "le": "+Inf"}, total))
            lines.append(_line("ade_http_request_seconds_sum", {"operation": name}, sums[name]))
            lines.append(_line("ade_http_request_seconds_count", {"operation": name}, total))
        return lines


def gauges(facade: Facade, tenant: str | None) -> list[str]:
    """Gauges of everything, or of one tenant."""
    facts = facade.overview(tenant)
    lines = _family("ade_jobs", "gauge", "jobs by tenant and state; of a large DynamoDB table the newest")
    for name, states in facts.tenants.items():
        lines += [_line("ade_jobs", {"tenant": name, "state": state}, n) for state, n in states.items()]
    lines += _family("ade_pauses", "gauge", "pauses in force")
    lines.append(_line("ade_pauses", {}, len(facts.pauses)))
    lines += _family("ade_review_waiting", "gauge", "jobs that wait for a person's answer")
    lines.append(_line("ade_review_waiting", {}, facts.states.get("REVIEW", 0)))
    lines += _family("ade_recent_jobs", "gauge", "of the newest jobs that ended, how many by state")
    ends = Counter(state for _, state in facts.recent.ends)
    lines += [
        _line("ade_recent_jobs", {"state": str(state)}, ends.get(str(state), 0)) for state in State if state in ends
    ]
    lines += _family("ade_recent_failures", "gauge", "of the newest jobs that ended, how many failed, by whose fault")
    lines += [_line("ade_recent_failures", {"fault": fault}, n) for fault, n in facts.recent.faults.items()]
    if facts.queue is not None:
        queue = facts.queue
        depths = {"ready": queue.ready, "in_flight": queue.in_flight, "delayed": queue.delayed, "dead": queue.dead}
        lines += _family("ade_queue_messages", "gauge", "messages in the work queue")
        lines += [_line("ade_queue_messages", {"kind": kind}, n) for kind, n in depths.items()]
        lines += _family("ade_queue_oldest_seconds", "gauge", "age of the oldest message that is ready")
        lines.append(_line("ade_queue_oldest_seconds", {}, queue.oldest_seconds or 0.0))
    return lines


def exposition(parts: Iterable[list[str]]) -> str:
    return "\n".join(line for part in parts for line in part) + "\n"


def _family(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    # Every digit: a rounded counter would not advance.
    lines = repr(int(value) if float(value).is_integer() else value)
    return f"{name}{{{shown}}} {lines}" if shown else f"{name} {lines}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
