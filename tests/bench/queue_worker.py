"""Our part of tests/bench/bench_queue.py: `init`, `send FIRST LAST`, `janitor`, or `work [PROCESSES]`, as the workers of
tests/bench/peers/queues.

The runner is `ade run` itself, with its start, leases, heartbeats, retries and publication, over PostgreSQL and a folder;
only the box is a stand-in, since the peers' jobs do nothing either. A job is a drop: a file, its manifest and four files
published. What the stand-in hands over is made once, by `init`, so that workers load no more than `ade run` does.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from console.cli import main as command_line
from console.cli import service
from core.settings import Settings
from core.verdicts import Verdict
from runner.attempt import Boxes
from runner.boxes import BoxOrder, BoxReport, Isolation, Killed, OnEvent, ignore_event
from runner.engine.contract import VerifyOrder
from runner.sandbox.install.layers import Layers

MANIFEST = {"manifest": 1, "name": "members", "fields": [{"name": "id"}]}
TENANTS = 8
_AT_ONCE = 20
_ISOLATION = Isolation(driver="scripted", level="isolated", rungs={}, gaps=())
_WRITTEN = ("normalized.xlsx", "artifact.json")
_VERIFIED = ("report.html", "profile.json")


class StandIn:
    """Hands over the same outputs for each job, and notes which jobs it had, as the peers' handlers do."""

    def __init__(self) -> None:
        self._done = os.open(os.environ["BENCH_DONE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        made = _made()
        self._bodies = {path.name: path.read_bytes() for path in made.iterdir()}
        self._claim = json.loads(self._bodies.pop("claim.json"))

    def isolation(self) -> Isolation:
        return _ISOLATION

    def run(self, order: BoxOrder, *, killed: Killed, on_event: OnEvent = ignore_event) -> BoxReport:
        del killed, on_event
        if isinstance(order.job, VerifyOrder):
            return BoxReport(verdict=Verdict.OK, message="", claim=self._claim, outputs=self._written(order, _VERIFIED))
        outputs = self._written(order, _WRITTEN)
        os.write(self._done, (order.scratch / "in" / "0").read_bytes().split()[-1] + b"\n")
        return BoxReport(verdict=Verdict.OK, message="", outputs=outputs)

    def reap(self, alive: object) -> int:
        del alive
        return 0

    def close(self) -> None:
        os.close(self._done)

    def _written(self, order: BoxOrder, names: tuple[str, ...]) -> dict[str, Path]:
        outputs = {name: order.scratch / f"out-{name}" for name in names}
        for name, path in outputs.items():
            path.write_bytes(self._bodies[name])
        return outputs


def _made() -> Path:
    return Path(os.environ["BENCH_FOLDER"]) / "made"


def make_outputs() -> None:
    """What the smallest job's box writes and claims, into a folder."""
    from dataclasses import replace  # noqa: PLC0415 - only here, as the next

    from tests.support.outputs import ORDER, artifact, as_bytes, order_to_verify, verify_here, workbook  # noqa: PLC0415

    folder, order = _made(), replace(ORDER, manifest=MANIFEST)
    folder.mkdir(parents=True)
    for name, body in zip(_WRITTEN, (workbook(1, title="members"), as_bytes(artifact(order, _ISOLATION))), strict=True):
        (folder / name).write_bytes(body)
    report = verify_here(order_to_verify(order, _WRITTEN, _ISOLATION), folder, _ISOLATION)
    if report.verdict is not Verdict.OK:
        raise SystemExit(f"the made outputs do not pass: {report.message}")
    (folder / "claim.json").write_text(json.dumps(report.claim))
    for name in _VERIFIED:
        if not (folder / name).exists():
            (folder / name).write_text("{}")


@contextlib.contextmanager
def stand_ins(_: Settings, run_dir: Path) -> Iterator[Boxes]:
    """In place of console.desk.boxes."""
    sandbox = StandIn()
    yield Boxes(sandbox, Layers(cache=run_dir / "layers", wheelhouse=None, sandbox=sandbox))
    sandbox.close()


def environment(url: str) -> dict[str, str]:
    """As many jobs at once as the peers, and a lease as short as theirs."""
    return {
        "ADE_STORAGE_DATA_DIR": os.environ["BENCH_FOLDER"],
        "ADE_TABLE_URL": url,
        "ADE_MAX_CONCURRENCY": "4",
        "ADE_TENANT_CONCURRENCY": "0",
        "ADE_WORKFLOW_CONCURRENCY": "0",
        "ADE_LEASE_SECONDS": "5",
        "ADE_MAX_ATTEMPTS": "100",
        "ADE_RETRY_BACKOFF_SECONDS": "0.1",
        "ADE_SETTLE_SECONDS": "0",
        "ADE_SANDBOX": "process",
        "ADE_LOG_LEVEL": "error",
    }


def send(url: str, first: int, last: int) -> None:
    from handlers.intake import Intake  # noqa: PLC0415 - workers need none
    from infra.wiring import open_stack  # noqa: PLC0415 - as above

    with open_stack(Settings.from_env(environment(url))) as stack:
        bucket, intake = stack.settings.storage_data_dir / "bucket", Intake.over(stack)
        for at in range(first, last, _AT_ONCE):
            keys = []
            for n in range(at, min(last, at + _AT_ONCE)):
                folder = f"inbox/t{n % TENANTS}/d{n}"
                (bucket / folder).mkdir(parents=True)
                (bucket / folder / "m.csv").write_text(f"id\n{n}\n")
                (bucket / folder / "manifest.json").write_text(json.dumps(MANIFEST))
                keys += [f"{folder}/m.csv", f"{folder}/manifest.json"]
            intake.changed(keys)


def init(url: str) -> None:
    from infra.postgres.connections import parse_database  # noqa: PLC0415 - only here
    from infra.postgres.schema import init_database  # noqa: PLC0415 - as above

    init_database(parse_database(url), apply=True)
    make_outputs()


def main(command: str, url: str, *rest: str) -> int:
    Path(os.environ["BENCH_FOLDER"]).mkdir(parents=True, exist_ok=True)
    os.environ.update(environment(url))
    vars(service)["boxes"] = stand_ins
    match command:
        case "init":
            init(url)
        case "send":
            send(url, *map(int, rest))
        case "janitor":
            from console.cli.commands import janitor  # noqa: PLC0415 - as above

            vars(janitor)["boxes"] = stand_ins
            return command_line.main(["janitor", "run"])
        case _:
            return command_line.main(["run", *(["--processes", *rest] if rest else [])])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
