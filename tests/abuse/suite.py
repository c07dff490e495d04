"""Runs every case through one sandbox and prints a JSON line for each. A program: `python -m tests.abuse.suite`.

It is started by the tests as root, as a plain user and as a container would have it, and makes its own world: secrets
in its environment and memory, another tenant's files, sockets that listen, a process that must survive.
"""

import argparse
import ctypes
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.verdicts import Verdict
from runner.boxes import BoxReport, Sandbox
from runner.sandbox.box import seccomp
from runner.sandbox.box.keeper import descendants
from runner.sandbox.cgroups import Cgroups
from runner.sandbox.jail import Build, JailSandbox, Options
from runner.sandbox.process import ProcessSandbox
from tests.abuse import privileges
from tests.abuse.boxes import ENGINE, LIMITS, alive, log_of, never, order
from tests.abuse.cases import CASES, Case

SECRET = "AWS_SECRET_ACCESS_KEY"
IN_SCRATCH = {"in/0", "config/rule.py", "order.json", "out/result.json", "log.txt"}


@dataclass
class World:
    """What an attacker would like to reach, and what must be the same afterwards."""

    folder: Path
    params: dict[str, Any]
    victim: int

    def traces(self) -> dict[str, Any]:
        """All that a case could leave behind."""
        temporary = [*Path("/tmp").glob("ade-abuse-[0-9]*"), *Path("/dev/shm").glob("ade-abuse-*")]
        return {
            "processes": sorted(pid for pid in descendants(os.getpid()) if alive(pid)),
            "files": sorted(str(p) for top in ("data", "open", "run") for p in (self.folder / top).rglob("*")),
            "temporary": sorted(map(str, temporary)),
            "mounts": Path("/proc/self/mounts").read_text().count("\n"),
            "victim": alive(self.victim),
        }


def make_world(folder: Path, stack: ExitStack) -> World:
    other = folder / "data" / "bucket" / "inbox" / "globex" / "members.csv"
    other.parent.mkdir(parents=True)
    other.write_text("id,name\n7,another tenant's\n", encoding="utf-8")
    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)
    (folder / "jobs").mkdir()
    (folder / "beside.txt").write_text("beside", encoding="utf-8")
    memory = ctypes.create_string_buffer(os.environ[SECRET].encode())
    stack.callback(lambda: memory.raw)
    tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    path = str(folder / "unix")
    for address in (path, f"\0ade-abuse-{os.getpid()}"):
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(address)
        listener.listen(50)
    victim = stack.enter_context(
        subprocess.Popen(
            [
                sys.executable,
                "-S",
                "-c",
                "import signal\nsignal.signal(15, lambda *_: None)\nwhile True: signal.pause()",
            ]
        )
    )
    stack.callback(victim.kill)
    tables = f"{seccomp.ALLOWED} {seccomp.REFUSED} {seccomp.SPECIAL} clone3=435/435"
    params = {
        "secret_hash": hashlib.sha256(os.environ[SECRET].encode()).hexdigest(),
        "address": ctypes.addressof(memory),
        "runner": os.getpid(),
        "victim": victim.pid,
        "other_input": str(other),
        "data_dir": str(folder / "data"),
        "open_dir": str(folder / "open"),
        "port": tcp.getsockname()[1],
        "unix": path,
        "abstract": f"ade-abuse-{os.getpid()}",
        "nr": seccomp.numbers(tables, os.uname().machine),
    }
    return World(folder=folder, params=params, victim=victim.pid)


def run_case(sandbox: Sandbox, world: World, case: Case) -> dict[str, Any]:
    """One case and what it left behind."""
    limits = replace(LIMITS, **case.limits)
    given = order(world.folder / "jobs", case.source, limits=limits)
    params = world.params | {"scratch": str(given.scratch)}
    given = replace(given, job=replace(given.job, params=params))
    before = world.traces()
    report = sandbox.run(given, killed=never)
    left = list(changes(before, world.traces()))
    extra = {str(p.relative_to(given.scratch)) for p in given.scratch.rglob("*") if not p.is_dir()} - IN_SCRATCH
    left += [f"file {name}" for name in sorted(extra)]
    groups = Cgroups.find()
    if groups is not None and groups.holds(given.label):
        left.append("a control group")
    source = given.scratch / "in" / "0"
    if not source.exists() or source.read_text() != "id,name\n1,Ann\n":
        left.append("the input was changed")
    outcome = {
        "case": case.id,
        "verdict": report.verdict,
        "message": report.message,
        "expected": report.verdict in case.verdicts,
        "through": got_through(case, report),
        "left": left,
        "log": log_of(report)[-300:],
        "seconds": round(report.wall_seconds, 3),
    }
    shutil.rmtree(given.scratch)
    return outcome


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [f"{name}: {before[name]} -> {after[name]}" for name in before if before[name] != after[name]]


def got_through(case: Case, report: BoxReport) -> bool:
    if case.effect == "verdict":
        return report.verdict not in case.verdicts
    if report.verdict is not Verdict.OK or "result.json" not in report.outputs:
        return False
    return report.outputs["result.json"].read_text() == "true"


def unharmed(sandbox: Sandbox, world: World) -> bool:
    """Whether a plain job still runs as it should."""
    given = order(world.folder / "jobs", "def main(order): return open(order['inputs'][0]['path']).read()")
    report = sandbox.run(given, killed=never)
    return report.verdict is Verdict.OK and json.loads(report.outputs["result.json"].read_text()) == "id,name\n1,Ann\n"


def make_sandbox(args: argparse.Namespace) -> Sandbox:
    run_dir = args.dir / "run"
    if args.driver == "process":
        return ProcessSandbox(run_dir=run_dir, engine=ENGINE)
    builds = None if args.build == "auto" else (Build(namespaces=args.build),)
    options = Options(warm=not args.cold, builds=builds, cgroups=not args.contained)
    return JailSandbox(run_dir=run_dir, min_level="confined", engine=ENGINE, options=options)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--driver", choices=("jail", "process"), default="jail")
    parser.add_argument("--build", default="auto")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--contained", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1, help="only every so many-th case")
    args = parser.parse_args()
    if os.environ.get("ADE_ABUSE") != "ready":
        become(args)
    with ExitStack() as stack:
        sandbox = make_sandbox(args)
        stack.callback(sandbox.close)
        isolation = sandbox.isolation()
        print(json.dumps({"level": isolation.level, "rungs": isolation.rungs, "gaps": isolation.gaps}), flush=True)
        world = make_world(args.dir, stack)
        assert unharmed(sandbox, world), "not even a harmless job runs"
        cases = [case for case in CASES if re.search(args.only, case.id)][:: args.every]
        for number, case in enumerate(cases):
            outcome = run_case(sandbox, world, case)
            if not args.cold or number % 10 == 9:
                outcome["next"] = unharmed(sandbox, world)
            print(json.dumps(outcome), flush=True)
    return 0


def become(args: argparse.Namespace) -> None:
    """Give up what was asked to be given up, and start again as that."""
    os.environ["ADE_ABUSE"] = "ready"
    os.environ[SECRET] = f"AKIA{os.urandom(16).hex()}"
    if args.plain:
        privileges.make_reachable(sys.base_prefix)
    if args.contained:
        privileges.become_contained()
    if args.plain:
        os.chown(args.dir, privileges.PLAIN, privileges.PLAIN)
        privileges.become_plain()
    os.execv(sys.executable, [sys.executable, "-m", "tests.abuse.suite", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
