"""The `process` driver: limits with their verdicts, a clean environment, and a tree that always ends."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from core.verdicts import Verdict
from runner.sandbox.process import ProcessSandbox
from runner.sandbox.registry import Registry
from runner.sandbox.session import OWN_ROOT
from tests.abuse.boxes import ENGINE, LIMITS, alive, eventually, never, order, result


@pytest.fixture
def sandbox(tmp_path):
    return ProcessSandbox(run_dir=tmp_path / "run", engine=ENGINE)


def run(sandbox, given, killed=never):
    return sandbox.run(given, killed=killed)


def test_a_rule_that_ends_well_gives_ok_and_its_output(sandbox, tmp_path):
    assert result(run(sandbox, order(tmp_path, "def main(order): return {'x': 1}"))) == {"x": 1}


def test_the_environment_of_the_runner_is_not_handed_on(sandbox, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t")
    seen = result(run(sandbox, order(tmp_path, "import os\ndef main(order): return dict(os.environ)")))
    assert "AWS_SECRET_ACCESS_KEY" not in seen


def test_no_descriptor_of_the_runner_is_handed_on(sandbox, tmp_path):
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        snippet = "import os\ndef main(order): return sorted(int(n) for n in os.listdir('/proc/self/fd'))"
        seen = result(run(sandbox, order(tmp_path, snippet)))
    assert [fd for fd in seen if fd > 5] == []  # five is the listing's own descriptor


@pytest.mark.parametrize(
    ("snippet", "verdict"),
    [
        ("def main(order): raise ValueError('x')", Verdict.RULE_ERROR),
        ("while True: pass", Verdict.CPU),
        ("x = bytearray(900 * 2**20)", Verdict.MEMORY),
        ("import time\ntime.sleep(60)", Verdict.WALL_CLOCK),
        ("import os\nos.kill(os.getpid(), 11)", Verdict.SIGNAL),
        ("import os\nos._exit(0)", Verdict.BAD_OUTPUT),
        ("import os\nos.write(3, b'{\"event\": NaN}\\n')", Verdict.BAD_OUTPUT),
        ("import os\nwhile True: os.write(order['outputs']['result.json'], bytes(2**20))", Verdict.FILE_SIZE),
        ("while True: print('x' * 65536)", Verdict.FILE_SIZE),
        (
            "import ctypes, time\nctypes.CDLL(None).fallocate(4, 1, ctypes.c_long(0), ctypes.c_long(2**26))\ntime.sleep(60)",
            Verdict.FILE_SIZE,
        ),
        (
            "import threading as t, time\nt.stack_size(32768)\n[t.Thread(target=time.sleep, args=(60,)).start() for _ in range(1500)]",
            Verdict.PROCESSES,
        ),
    ],
)
def test_each_way_to_end_has_its_verdict(sandbox, tmp_path, snippet, verdict):
    wall = 2 if verdict is Verdict.WALL_CLOCK else 60
    limits = replace(LIMITS, cpu_seconds=1, wall_seconds=wall, log_bytes=4096)
    report = run(sandbox, order(tmp_path, snippet, limits=limits))
    assert report.verdict is verdict, report.message


def test_a_cancel_ends_the_box_with_the_reason_that_was_given(sandbox, tmp_path):
    given = order(tmp_path, "import time\nprint('started', flush=True)\ntime.sleep(60)")
    log = given.scratch / "log.txt"

    def killed():
        return Verdict.CANCELLED if log.exists() and log.stat().st_size else None

    assert run(sandbox, given, killed).verdict is Verdict.CANCELLED


def test_a_daemon_that_left_its_session_dies_with_the_box(sandbox, tmp_path):
    snippet = """
import os, time
def main(order):
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, str(os.getpid()).encode())
            time.sleep(600)
        os._exit(0)
    return int(os.read(read, 20))
"""
    limits = replace(LIMITS, processes=4)
    assert not alive(result(run(sandbox, order(tmp_path, snippet, limits=limits))))


def test_lines_are_in_the_log_while_the_box_runs(sandbox, tmp_path):
    given = order(tmp_path, "import time\nprint('hello', flush=True)\ntime.sleep(60)")
    seen = []

    def killed():
        log = given.scratch / "log.txt"
        if log.exists() and "hello" in log.read_text():
            seen.append(log.read_text())
            return Verdict.CANCELLED
        return None

    run(sandbox, given, killed)
    assert seen == ["hello\n"]


def test_a_log_is_cut_at_its_limit_and_says_so(sandbox, tmp_path):
    limits = replace(LIMITS, log_bytes=500)
    report = run(sandbox, order(tmp_path, "for _ in range(99): print('x' * 99)", limits=limits))
    text = report.log.read_text()
    assert report.verdict is Verdict.OK
    assert text[500:] == "\n[log cut here: the limit is 500 bytes]\n"


def test_an_output_replaced_by_a_link_is_refused(sandbox, tmp_path):
    snippet = """
import os
def main(order):
    os.unlink('out/result.json')
    os.symlink('/etc/passwd', 'out/result.json')
"""
    report = run(sandbox, order(tmp_path, snippet))
    assert (report.verdict, report.outputs) == (Verdict.BAD_OUTPUT, {})


def test_boxes_run_side_by_side_from_several_threads(sandbox, tmp_path):
    reports = {}

    def one(number):
        reports[number] = result(run(sandbox, order(tmp_path, f"def main(order): return {number}")))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reports == {0: 0, 1: 1, 2: 2, 3: 3}


RUNNER = """
import sys, threading
sys.path[:0] = [sys.argv[1]]
from pathlib import Path
from tests.abuse.boxes import ENGINE, never, order
from runner.sandbox.process import ProcessSandbox
sandbox = ProcessSandbox(run_dir=Path(sys.argv[2]) / "run", engine=ENGINE)
snippet = "import os, time\\nprint(os.getpid(), os.getppid(), flush=True)\\ntime.sleep(600)"
given = order(Path(sys.argv[2]), snippet)
print(given.scratch, flush=True)
thread = threading.Thread(target=sandbox.run, args=(given,), kwargs={"killed": never})
thread.start()
thread.join()
"""


def test_a_killed_runner_leaves_no_box_behind(tmp_path):
    command = [sys.executable, "-c", RUNNER, str(OWN_ROOT), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as runner:
        log = Path(runner.stdout.readline().strip()) / "log.txt"
        eventually(lambda: log.exists() and log.read_text().count("\n") == 1, "the box never started")
        box, keeper = map(int, log.read_text().split())
        assert alive(box)
        runner.send_signal(signal.SIGKILL)
    eventually(lambda: not alive(box) and not alive(keeper), "a box outlived its runner")


def test_a_box_is_not_touched_by_the_end_of_another_thread(sandbox, tmp_path):
    started = threading.Event()
    given = order(tmp_path, "import time\nprint('up', flush=True)\ntime.sleep(1)\ndef main(order): return 1")
    reports = []

    def killed():
        if (given.scratch / "log.txt").stat().st_size:
            started.set()

    slot = threading.Thread(target=lambda: reports.append(run(sandbox, given, killed)))
    slot.start()
    started.wait(20)
    other = threading.Thread(target=run, args=(sandbox, order(tmp_path, "pass")))
    other.start()
    other.join()
    slot.join()
    assert result(reports[0]) == 1


def test_reap_kills_a_recorded_box_whose_label_is_not_alive(tmp_path):
    registry = Registry(tmp_path)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as orphan:
        with registry.entry("gone", orphan.pid):
            assert registry.reap(lambda label: label != "gone") == ["gone"]
        assert orphan.wait() == -signal.SIGKILL


def test_reap_spares_a_process_that_only_took_over_the_number(tmp_path):
    registry = Registry(tmp_path)
    with registry.entry("gone", os.getpid()):
        (path,) = (tmp_path / "boxes").iterdir()
        record = json.loads(path.read_text())
        path.write_text(json.dumps(record | {"started": record["started"] - 1}))
        assert registry.reap(lambda label: False) == ["gone"]


def test_reap_leaves_boxes_of_living_runners_alone(tmp_path):
    registry = Registry(tmp_path)
    with registry.entry("mine", os.getpid()):
        assert registry.reap(lambda label: True) == []
