"""The live view of `ade up`: the newest jobs, redrawn when the table changes."""

import io
import threading
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from console.cli.output import STATE_COLOURS
from console.job_facts import note, span
from core.jobs import Job, State
from core.ports import JobQuery
from infra.wiring import Stack
from runner.engine.contract import escape_controls

_QUIET_SECONDS = 30.0
_RUNNING_SECONDS = 1.0
_LEAST_SECONDS = 0.1  # redraw at most ten times a second


class LiveJobs:
    """While entered, a thread draws the view; lines written to `stream` scroll above it."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._console = Console()
        self.stream = _Above(self._console)
        self._live = Live(console=self._console, auto_refresh=False, transient=False)
        self._stopped = threading.Event()
        self._message = ""
        self.console = ""  # its address, once it is there
        self._thread = threading.Thread(target=self._draw_on, name="view", daemon=True)

    def __enter__(self) -> Self:
        self._live.start()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._message = "ended; jobs that have not run yet wait in the queue"
        self._draw()
        self._live.stop()

    def show(self, message: str) -> None:
        self._message = message
        self._draw()

    def _draw_on(self) -> None:
        while not self._stopped.is_set():
            running = self._draw()
            self._stack.table.wait(_RUNNING_SECONDS if running else _QUIET_SECONDS)
            self._stopped.wait(_LEAST_SECONDS)

    def _draw(self) -> bool:
        """Draw the current jobs; returns whether one is running, whose time has to be updated."""
        table = self._stack.table
        room = max(3, self._console.height - 6)
        active = table.page(JobQuery(states=frozenset({State.RUNNING, State.PUBLISHING})), limit=room).jobs
        shown = {job.job_id: job for job in active}
        for job in table.page(JobQuery(), limit=room).jobs:
            if len(shown) < room:
                shown.setdefault(job.job_id, job)
        newest = sorted(shown.values(), key=lambda j: j.created_at, reverse=True)
        self._live.update(self._picture(newest), refresh=True)
        return bool(active)

    def _picture(self, jobs: list[Job]) -> Group:
        now = self._stack.clock.now()
        grid = Table(box=None, pad_edge=False, header_style="dim", expand=True)
        for name in ("JOB", "STATE", "SUBJECT", "TIME"):
            grid.add_column(name, no_wrap=True)
        grid.add_column("NOTE", ratio=1, no_wrap=True, overflow="ellipsis")
        for job in jobs:
            state = Text(str(job.state), style=STATE_COLOURS.get(job.state, "dim"))
            spent = span((job.ended_at or now) - (job.started_at or job.created_at))
            texts = [
                Text(escape_controls(word)) for word in (job.job_id, f"{job.tenant}/{job.subject}", spent, note(job))
            ]
            grid.add_row(texts[0], state, *texts[1:])
        counts = "  ".join(f"{n} {state}" for state, n in sorted(self._stack.table.counts().items()))
        inbox = f"{self._stack.settings.storage_data_dir}/bucket/inbox/<tenant>/"
        page = f"open {self.console}; " if self.console else ""
        foot = self._message or f"{page}drop files into {inbox} or use `ade drop`; Ctrl-C drains and ends"
        return Group(grid if jobs else Text("no jobs yet"), Text(counts, style="bold"), Text(foot, style="dim"))


class _Above(io.StringIO):
    """A stream whose lines appear above the live view."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def write(self, text: str) -> int:
        if text.strip():
            self._console.print(Text(escape_controls(text.strip()), style="yellow"))
        return len(text)
