"""Metrics in the format of Prometheus. Job metrics come from the table and the queue."""

import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable

from console.facade import Facade
from core.jobs import State
from infra.prometheus_text import family, histogram, sample

_BOUNDS = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0)  # seconds


class HttpCounts:
    """Requests of this process by operation and status, and how long they took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}  # by operation, as `histogram` takes them
        self._sums: defaultdict[str, float] = defaultdict(float)

    def add(self, operation: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[operation, status] += 1
            self._sums[operation] += seconds
            self._buckets.setdefault(operation, [0] * (len(_BOUNDS) + 1))[bisect_left(_BOUNDS, seconds)] += 1

    def lines(self) -> list[str]:
        with self._lock:
            requests, sums = dict(self._requests), dict(self._sums)
            buckets = {operation: tuple(counts) for operation, counts in self._buckets.items()}
        lines = family("ade_http_requests_total", "counter", "requests by operation and status")
        lines += [
            sample("ade_http_requests_total", {"operation": o, "status": str(s)}, n) for (o, s), n in requests.items()
        ]
        lines += family("ade_http_request_seconds", "histogram", "how long requests took; streams are left out")
        for operation, counts in buckets.items():
            lines += histogram("ade_http_request_seconds", {"operation": operation}, _BOUNDS, counts, sums[operation])
        return lines


def gauges(facade: Facade, tenant: str | None) -> list[str]:
    """Gauges of everything, or of one tenant."""
    facts, recent = facade.overview(tenant), facade.recent(tenant)
    lines = family("ade_jobs", "gauge", "jobs by tenant and state; of a large DynamoDB table the newest")
    for name, states in facts.tenants.items():
        lines += [sample("ade_jobs", {"tenant": name, "state": state}, n) for state, n in states.items()]
    lines += family("ade_pauses", "gauge", "pauses in force")
    lines.append(sample("ade_pauses", {}, len(facts.pauses)))
    lines += family("ade_review_waiting", "gauge", "jobs that wait for a person's answer")
    lines.append(sample("ade_review_waiting", {}, facts.states.get("REVIEW", 0)))
    lines += family("ade_recent_jobs", "gauge", "of the newest jobs that ended, how many by state")
    ends = Counter(state for _, state in recent.ends)
    lines += [
        sample("ade_recent_jobs", {"state": str(state)}, ends.get(str(state), 0)) for state in State if state in ends
    ]
    lines += family("ade_recent_failures", "gauge", "of the newest jobs that ended, how many failed, by whose fault")
    lines += [sample("ade_recent_failures", {"fault": fault}, n) for fault, n in recent.faults.items()]
    if facts.queue is not None:
        queue = facts.queue
        depths = {"ready": queue.ready, "in_flight": queue.in_flight, "delayed": queue.delayed, "dead": queue.dead}
        lines += family("ade_queue_messages", "gauge", "messages in the work queue")
        lines += [sample("ade_queue_messages", {"kind": kind}, n) for kind, n in depths.items()]
        lines += family("ade_queue_oldest_seconds", "gauge", "age of the oldest message that is ready")
        lines.append(sample("ade_queue_oldest_seconds", {}, queue.oldest_seconds or 0.0))
    return lines


def exposition(parts: Iterable[list[str]]) -> str:
    return "\n".join(line for part in parts for line in part) + "\n"
