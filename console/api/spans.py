"""The span of one HTTP request; a job that the request brings has its trace below it."""

from collections.abc import Mapping

from infra.telemetry import Root, Telemetry

# Asked for every few seconds by machines, and of no use to anybody who reads traces.
_UNTRACED = frozenset({"/health", "/ready", "/metrics", "/static/{name}"})


class RequestSpan:
    """Costs a comparison while traces are off."""

    def __init__(self, telemetry: Telemetry, method: str, route: str) -> None:
        self._telemetry = telemetry
        self._method = method
        self._route = route
        self._on = telemetry.traces and route not in _UNTRACED
        self._start = telemetry.now() if self._on else 0.0
        self._root: Root | None = None
        self.jobs: Mapping[str, str] = {}  # that the request brought: traces by ids

    @property
    def trace(self) -> str:
        """What spans below it name as their parent; empty while traces are off."""
        return self._root.trace if self._root is not None else ""

    def begin(self, parent: str | None = None) -> None:
        """From here on it has a name. `parent`: the traceparent of a caller whom we know."""
        if self._on and self._root is None:
            name = f"{self._method} {self._route}"
            self._root = self._telemetry.root(name, start=self._start, below=parent or "", kind="server")

    def end(self, status: int) -> None:
        if self._on:
            self.begin()  # it was refused before we knew who calls
            if self._root is not None:
                self._root.end_request(self._telemetry.now(), self._method, self._route, status, self.jobs)
