"""Rules that go for the warden: the process in their own box that will verify what they wrote (box/zygote.py)."""

import hashlib
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from core.verdicts import FAULTS, Fault, Verdict
from runner.attempt import run_verified
from runner.engine.contract import ENGINE_FILES, OutputName
from runner.sandbox.box.keeper import descendants
from runner.sandbox.jail import JailSandbox, Options
from tests.abuse import jobs
from tests.abuse.boxes import comm
from tests.abuse.test_abuse import needed
from tests.abuse.test_outputs import FORGE

REACH = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
NR = {"x86_64": 0, "aarch64": 1}[os.uname().machine]

def refused(*call):
    return libc.syscall(*(ctypes.c_long(a) if isinstance(a, int) else a for a in call)) == -1

def on_job_start(**_):
    warden = os.getppid()
    assert warden == 1 and os.getpid() != 1, (warden, os.getpid())
    room = ctypes.create_string_buffer(64)
    vector = (ctypes.c_ulong * 2)(ctypes.addressof(room), 64)
    through = []
    for number in range(1, 65):
        if not refused((62, 129)[NR], warden, number): through.append(f"kill {number}")
        if not refused((234, 131)[NR], warden, warden, number): through.append(f"tgkill {number}")
        if not refused((200, 130)[NR], warden, number): through.append(f"tkill {number}")
        if not refused((129, 138)[NR], warden, number, room): through.append(f"sigqueue {number}")
    for group in (0, -1, -2):
        if not refused((62, 129)[NR], group, 9): through.append(f"kill {group}")
    tries = {
        "ptrace attach": ((101, 117), 16, warden, 0, 0),
        "ptrace seize": ((101, 117), 0x4206, warden, 0, 0),
        "read its memory": ((310, 270), warden, vector, 1, vector, 1, 0),
        "write its memory": ((311, 271), warden, vector, 1, vector, 1, 0),
        "a descriptor of it": ((434, 434), warden, 0),
        "its limits": ((302, 261), warden, 0, room, None),
        "its limits, read": ((302, 261), warden, 0, None, room),
        "its priority": ((141, 140), 0, warden, 19),
        "its processors": ((203, 122), warden, 8, room),
        "compare with it": ((312, 272), os.getpid(), warden, 0, 0, 0),
        "advise it": ((440, 440), 3, vector, 1, 21, 0),
        "join its namespaces": ((308, 268), 3, 0),
    }
    through += [name for name, (number, *given) in tries.items() if not refused(number[NR], *given)]
    for name in ("mem", "maps", "environ", "fd", "status", "ns/pid", "root", "task/1/mem"):
        for mode in (os.O_RDONLY, os.O_RDWR):
            try:
                os.close(os.open(f"/proc/1/{name}", mode))
                through.append(f"/proc/1/{name}")
            except OSError:
                pass
    known = set(range(8))  # input, log, log, channel, two outputs, and what the interpreter opens for this rule
    for fd in range(8, 64):
        try:
            os.fstat(fd)
            through.append(f"descriptor {fd}")
        except OSError:
            pass
    assert not through, through
"""

AFTER = """
import threading
def forged():
    return os.pread(ARTIFACT, 10**7, 0).replace(b'acme-members-1', b'globex-mem-001')

def forge():
    good, bad = os.pread(ARTIFACT, 10**7, 0), forged()
    %s

def over(good, bad):
    while True:
        os.pwrite(ARTIFACT, bad, 0)
        os.pwrite(ARTIFACT, good, 0)
"""
LATE = {
    "a thread": "threading.Thread(target=over, args=(good, bad), daemon=True).start()",
    "a child": "os.fork() or over(good, bad)",
    "a grandchild": "os.fork() or (os.fork() and os._exit(0)) or over(good, bad)",
    "children without end": "[os.fork() or over(good, bad) for _ in range(4)]",
    "a shared mapping": (
        "import mmap; m = mmap.mmap(ARTIFACT, len(good)); "
        "os.fork() or [m.seek(0) or m.write(bad) for _ in iter(int, 1)]"
    ),
}


@pytest.fixture
def box():
    with tempfile.TemporaryDirectory(prefix="ade-warden-") as folder:
        Path(folder).chmod(0o755)
        made = JailSandbox(run_dir=Path(folder) / "run", min_level="none", options=Options())
        if made.isolation().level != "isolated" or not made._probed().jailer.build.verifies:
            made.close()
            needed("user namespaces")
        yield Path(folder), made
        made.close()


def ended(box, rule, **limits):
    folder, made = box
    order = jobs.job(
        folder,
        {"hooks/hostile.py": rule},
        outputs=(OutputName.WORKBOOK, *ENGINE_FILES),
        limits=replace(jobs.LIMITS, **limits),
    )
    seen = []
    kept = made.run

    def run(given, **more):
        seen.append(given)
        return kept(given, **more)

    made.run = run
    try:
        report = run_verified(made, order, limits=jobs.LIMITS, killed=lambda: None)
    finally:
        made.run = kept
    assert len(seen) == 1, "the outputs were verified in a second box"
    assert not [pid for pid in descendants(os.getpid()) if comm(pid) == "ade-box"]
    return report


def test_no_rule_reaches_the_warden_of_its_box(box):
    report = ended(box, REACH)
    assert report.verdict is Verdict.OK, f"{report.message}\n{report.log.read_text()}"
    assert set(report.outputs) == {"artifact.json", "normalized.xlsx", "profile.json", "report.html"}


@pytest.mark.parametrize("how", list(LATE))
def test_what_goes_on_writing_after_the_end_is_dead_before_outputs_are_read(box, how):
    """Whatever moment it is killed at: what is published is what was verified."""
    for _ in range(3):
        report = ended(box, FORGE + AFTER % LATE[how], processes=8)
        if report.verdict is not Verdict.OK:
            assert FAULTS[report.verdict] in {Fault.CONFIG, Fault.LIMIT}, report.message
            assert not report.outputs
            continue
        first = hashlib.sha256(report.outputs["artifact.json"].read_bytes()).digest()
        assert json.loads(report.outputs["artifact.json"].read_bytes())["job"]["job_id"] == "acme-members-1"
        assert hashlib.sha256(report.outputs["artifact.json"].read_bytes()).digest() == first


@pytest.mark.parametrize(
    "rule",
    [
        "import os\ndef on_job_start(**_): os.kill(os.getpid(), 9)",
        "import os\ndef on_job_start(**_): os._exit(0)",
        "import os, signal\ndef on_job_start(**_): os.abort()",
        "import os\ndef on_job_start(**_):\n    for fd in range(64):\n        try: os.close(fd)\n        except OSError: pass",
    ],
)
def test_an_engine_that_a_rule_ends_is_the_configs_fault_and_nothing_is_verified(box, rule):
    report = ended(box, rule)
    assert FAULTS[report.verdict] is Fault.CONFIG, f"{report.verdict}: {report.message}"
    assert not report.outputs


def test_the_warden_says_nothing_of_what_it_reads_but_one_checked_line(box):
    report = ended(box, FORGE + 'def forge(): rewrite(ARTIFACT, b\'{"SECRET": "SECRET"}\')')
    assert report.verdict is Verdict.BAD_OUTPUT
    assert "SECRET" not in report.message
    assert not report.claim
