"""What the tests of the sandbox share: orders made of one snippet, and a place to run them in."""

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.verdicts import Verdict
from runner.boxes import BoxLimits, BoxOrder, BoxReport
from runner.engine.contract import InputFile, JobFacts, Order
from runner.sandbox.session import Engine

ENGINE = Engine(package="snippet_engine", root=Path(__file__).parent / "engines", rehearses=False)
LIMITS = BoxLimits(wall_seconds=20, cpu_seconds=5, memory_mb=128, file_mb=4)


def order(folder: Path, snippet: str, *, limits: BoxLimits = LIMITS, **more: Any) -> BoxOrder:
    """An order whose only rule is `snippet`; its `main(order)` gives what comes out as result.json."""
    scratch = folder / f"scratch-{os.urandom(4).hex()}"
    (scratch / "in").mkdir(parents=True)
    (scratch / "in" / "0").write_text("id,name\n1,Ann\n", encoding="utf-8")
    (scratch / "config").mkdir()
    (scratch / "config" / "rule.py").write_text(snippet, encoding="utf-8")
    job = Order(
        job=JobFacts(job_id="acme-t-1", tenant="acme", workflow="t", attempt=1),
        manifest={},
        inputs=(InputFile(role="primary", name="a.csv", path=Path("in", "0")),),
        config_digest="d",
    )
    given: dict[str, Any] = {
        "label": f"acme-t-1/{scratch.name}",
        "tenant": "acme",
        "scratch": scratch,
        "job": job,
        "outputs": ("result.json",),
        "limits": limits,
    }
    return BoxOrder(**(given | more))


def never() -> None:
    """The answer of a runner that wants nothing to end."""


def result(report: BoxReport) -> Any:
    """What the snippet returned; fails with the box's own words where it did not end well."""
    assert report.verdict is Verdict.OK, f"{report.verdict}: {report.message}\n{log_of(report)}"
    return json.loads(report.outputs["result.json"].read_text(encoding="utf-8"))


def log_of(report: BoxReport) -> str:
    return report.log.read_text(encoding="utf-8", errors="replace") if report.log else ""


def comm(pid: int) -> str:
    """What a process calls itself; nothing where it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def alive(pid: int) -> bool:
    """Whether a process is there and not only waiting to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except (FileNotFoundError, ProcessLookupError):
        return False


def eventually(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Wait for something that another process does; fails with `what` when it does not come."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, what
        pause.wait(0.02)
