"""The jail from the runner's side: zygotes, levels, threads, cancels, and what is left when somebody is killed."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import SandboxBusy, SandboxUnavailable, SettingsError
from core.verdicts import Verdict
from runner.boxes import Isolation
from runner.sandbox import jail as jail_module
from runner.sandbox import zygotes as zygotes_module
from runner.sandbox.box.keeper import descendants
from runner.sandbox.drivers import gaps_of, level_of, make_sandbox, require
from runner.sandbox.jail import Build, JailSandbox, Options
from runner.sandbox.session import OWN_ROOT
from tests.abuse.boxes import ENGINE, LIMITS, alive, eventually, log_of, never, order, result


@pytest.fixture
def jail(tmp_path):
    made = []

    def make(**options):
        sandbox = JailSandbox(run_dir=tmp_path / "run", min_level="confined", engine=ENGINE, options=Options(**options))
        made.append(sandbox)
        return sandbox

    yield make
    for sandbox in made:
        sandbox.close()


def named(name):
    """Processes below this one with that name."""
    found = []
    for pid in descendants(os.getpid()):
        try:
            if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                found.append(pid)
        except OSError:
            continue
    return found


def answer(sandbox, folder, snippet, **more):
    return result(sandbox.run(order(folder, snippet, **more), killed=never))


def test_jobs_of_one_tenant_share_a_zygote_and_tenants_do_not(jail, tmp_path):
    sandbox = jail()
    for tenant in ("acme", "acme", "globex"):
        answer(sandbox, tmp_path, "def main(order): return 1", tenant=tenant)
    assert sorted(zygote for _, zygote in zygotes(sandbox)) == ["acme", "globex"]


def test_the_first_tenant_gets_the_zygote_of_the_canary(jail, tmp_path):
    sandbox = jail()
    sandbox.isolation()
    before = named("ade-zygote")
    answer(sandbox, tmp_path, "def main(order): return 1", tenant="acme")
    assert named("ade-zygote") == before
    assert len(before) == 1


def zygotes(sandbox):
    return [(place.zygote, tenant) for (tenant, _), place in sandbox._probed().jailer._pool._places.items()]


def test_a_zygote_is_replaced_after_its_jobs(jail, tmp_path):
    sandbox = jail(recycle_after=2)
    seen = []
    for _ in range(4):
        answer(sandbox, tmp_path, "def main(order): return 1")
        seen.append(next(zygote for zygote, tenant in zygotes(sandbox) if tenant == "acme"))
    assert seen[0] is seen[1]
    assert seen[1] is not seen[2]
    assert not seen[0].alive


def test_a_zygote_is_replaced_when_the_engine_has_changed(jail, tmp_path, monkeypatch):
    sandbox = jail()
    answer(sandbox, tmp_path, "def main(order): return 1")
    first = next(zygote for zygote, tenant in zygotes(sandbox) if tenant == "acme")
    monkeypatch.setattr(sandbox._probed().jailer._pool, "_version", lambda: "another")
    answer(sandbox, tmp_path, "def main(order): return 1")
    assert not first.alive


def test_a_killed_zygote_costs_no_job(jail, tmp_path):
    sandbox = jail()
    answer(sandbox, tmp_path, "def main(order): return 1")
    for pid in named("ade-zygote"):
        os.kill(pid, signal.SIGKILL)
    assert answer(sandbox, tmp_path, "def main(order): return 2") == 2


def test_a_host_that_is_too_busy_to_answer_gets_no_weaker_build_and_is_asked_again(jail, monkeypatch):
    sandbox = jail()
    with monkeypatch.context() as patched:
        patched.setattr(zygotes_module, "START_SECONDS", 1e-6)
        with pytest.raises(SandboxBusy, match="too much to do"):
            sandbox._probed()
        assert sandbox.isolation().gaps == (zygotes_module._LATE,)
    assert not any("rejected" in gap for gap in sandbox.isolation().gaps)
    assert sandbox.isolation().level == jail().isolation().level != "none"


def test_a_canary_that_runs_out_of_time_says_nothing_about_its_build(jail, monkeypatch):
    monkeypatch.setattr(jail_module, "_LIMITS", replace(LIMITS, wall_seconds=0.0))
    with pytest.raises(SandboxBusy, match="took over 0 s"):
        jail()._probed()


def test_a_zygote_that_does_not_answer_is_gone_round_by_a_cold_start(jail, tmp_path, monkeypatch):
    sandbox = jail()
    answer(sandbox, tmp_path, "def main(order): return 1")
    zygote = next(zygote for zygote, tenant in zygotes(sandbox) if tenant == "acme")

    def broken(*_, **__):
        raise SandboxUnavailable("broken on purpose")

    monkeypatch.setattr(zygote, "start", broken)
    assert answer(sandbox, tmp_path, "def main(order): return 2") == 2


def test_a_zygote_has_one_thread_a_clean_environment_and_no_file_of_the_runners(jail, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t")
    sandbox = jail()
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        answer(sandbox, tmp_path, "def main(order): return 1")
    for pid in named("ade-zygote"):
        assert b"s3cr3t" not in Path(f"/proc/{pid}/environ").read_bytes()
        assert len(list(Path(f"/proc/{pid}/task").iterdir())) == 1
        held = []
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # the box's descriptors go while we look
                held.append(str(path.readlink()))
        assert held
        assert not any(str(tmp_path) in target for target in held)


def test_a_box_that_could_not_start_leaves_no_descriptor_open(jail, tmp_path, monkeypatch):
    sandbox = jail(warm=False)
    answer(sandbox, tmp_path, "def main(order): return 1")

    def broken(*_):
        raise SandboxUnavailable("broken on purpose")

    monkeypatch.setattr("runner.sandbox.jail.Jailer._make", broken)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(SandboxUnavailable, match="on purpose"):
        answer(sandbox, tmp_path, "def main(order): return 1")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_several_threads_run_boxes_at_once(jail, tmp_path):
    sandbox = jail()
    found = {}

    def one(number):
        tenant = f"t{number % 2}"
        found[number] = answer(
            sandbox, tmp_path, f"import time\ntime.sleep(.2)\ndef main(order): return {number}", tenant=tenant
        )

    threads = [threading.Thread(target=one, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: number for number in range(6)}


@pytest.mark.parametrize("build", ["own", "none"])
def test_a_cancel_ends_a_box_at_once(jail, tmp_path, build):
    sandbox = jail(builds=(Build(namespaces=build),))
    given = order(tmp_path, "import time\nprint('up', flush=True)\ntime.sleep(60)")
    log = given.scratch / "log.txt"
    report = sandbox.run(given, killed=lambda: Verdict.LEASE_LOST if log.stat().st_size else None)
    assert report.verdict is Verdict.LEASE_LOST
    assert report.wall_seconds < 30
    assert named("ade-box") == []


def test_a_box_may_start_processes_where_it_is_allowed_and_they_die_with_it(jail, tmp_path):
    sandbox = jail(builds=(Build(namespaces="own"),))
    snippet = """
import os, time
def main(order):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, b'x')
        time.sleep(600)
    return os.read(read, 1).decode()
"""
    assert answer(sandbox, tmp_path, snippet, limits=replace(LIMITS, processes=3)) == "x"
    assert named("ade-box") == []


def test_the_kernels_word_on_memory_goes_before_the_boxes(jail, tmp_path):
    sandbox = jail()
    if not sandbox.isolation().rungs["cgroup"]:
        pytest.skip("needs a control group that can be written to")
    snippet = "import mmap\nx = mmap.mmap(-1, 110 << 20)\nx.write(bytes(110 << 20))\ny = bytearray(40 << 20)\n"
    assert sandbox.run(order(tmp_path, snippet), killed=never).verdict is Verdict.MEMORY


def test_the_output_of_a_box_is_the_file_that_the_runner_made(jail, tmp_path):
    sandbox = jail()
    given = order(tmp_path, "def main(order): return [1, 2]")
    report = sandbox.run(given, killed=never)
    assert report.outputs == {"result.json": given.scratch / "out" / "result.json"}
    assert report.peak_mb > 0
    assert report.cpu_seconds > 0


def test_untrusted_code_is_refused_below_the_least_level(tmp_path):
    options = Options(builds=(Build(namespaces="none", landlock=False, seccomp=True),))
    sandbox = JailSandbox(run_dir=tmp_path / "run", min_level="confined", engine=ENGINE, options=options)
    with pytest.raises(SandboxUnavailable, match="ADE_SANDBOX_MIN_LEVEL=limits"):
        sandbox.run(order(tmp_path, "pass"), killed=never)
    assert sandbox.run(order(tmp_path, "pass", trusted=True), killed=never).verdict is Verdict.OK
    sandbox.close()


def test_a_host_that_gives_no_jail_is_level_none_and_says_why(tmp_path):
    options = Options(builds=())
    sandbox = JailSandbox(run_dir=tmp_path / "run", min_level="confined", engine=ENGINE, options=options)
    assert sandbox.isolation().level == "none"
    assert "docs/explanation/sandbox.md" in sandbox.isolation().gaps[0]


def test_a_build_whose_promise_does_not_hold_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "runner.sandbox.jail._broken_promises", lambda build, rungs: [] if build.namespaces == "none" else ["seccomp"]
    )
    options = Options(builds=(Build(namespaces="own"), Build(namespaces="none")))
    sandbox = JailSandbox(run_dir=tmp_path / "run", min_level="confined", engine=ENGINE, options=options)
    assert sandbox.isolation().level == "confined"
    assert any("got past seccomp" in gap for gap in sandbox.isolation().gaps)
    sandbox.close()


RUNNER = """
import sys, threading
sys.path[:0] = [sys.argv[1]]
from pathlib import Path
from tests.abuse.boxes import ENGINE, never, order
from runner.sandbox.jail import JailSandbox, Options
from runner.sandbox.jail import Build
options = Options(builds=(Build(namespaces=sys.argv[3]),))
sandbox = JailSandbox(run_dir=Path(sys.argv[2]) / "run", min_level="confined", engine=ENGINE, options=options)
given = order(Path(sys.argv[2]), "import time\\nprint('up', flush=True)\\ntime.sleep(600)")
print(given.scratch, flush=True)
thread = threading.Thread(target=sandbox.run, args=(given,), kwargs={"killed": never})
thread.start()
thread.join()
"""


@pytest.mark.parametrize("build", ["own", "none"])
def test_a_killed_runner_leaves_no_box_and_no_zygote(tmp_path, build):
    command = [sys.executable, "-c", RUNNER, str(OWN_ROOT), str(tmp_path), build]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as runner:
        log = Path(runner.stdout.readline().strip()) / "log.txt"
        eventually(lambda: log.exists() and log.stat().st_size, "the box never started")
        below = descendants(runner.pid)
        assert len(below) >= 2
        runner.kill()
    eventually(lambda: not any(alive(pid) for pid in below), "something outlived its runner")


def test_reap_ends_a_box_whose_runner_is_gone(jail, tmp_path):
    sandbox = jail()
    given = order(tmp_path, "import time\nprint('up', flush=True)\ntime.sleep(60)")
    reports = []
    slot = threading.Thread(target=lambda: reports.append(sandbox.run(given, killed=never)))
    slot.start()
    eventually(lambda: (given.scratch / "log.txt").exists() and log_up(given), "the box never started")
    assert sandbox.reap(lambda label: label != given.label) == 1
    slot.join()
    assert reports[0].verdict is Verdict.SIGNAL


def log_up(given):
    return (given.scratch / "log.txt").stat().st_size > 0


def test_levels_follow_from_what_holds():
    assert level_of({}) == "none"
    assert level_of({"rlimits": True, "landlock": True}) == "limits"
    assert level_of({"rlimits": True, "seccomp": True}) == "limits"
    assert level_of({"rlimits": True, "seccomp": True, "landlock": True}) == "confined"
    assert level_of({"rlimits": True, "seccomp": True, "namespaces": True}) == "isolated"


def test_every_rung_that_is_missing_is_a_gap():
    assert len(gaps_of({})) == 5
    assert gaps_of(dict.fromkeys(("namespaces", "landlock", "seccomp", "cgroup", "own_user"), True)) == ()


def test_a_level_that_is_too_low_is_refused_with_the_remedy():
    isolation = Isolation(driver="jail", level="limits", rungs={"landlock": False, "rlimits": True}, gaps=())
    with pytest.raises(SandboxUnavailable, match=r"missing: landlock.*docs/explanation/sandbox.md"):
        require(isolation, "confined")


@pytest.mark.parametrize(("name", "level"), [("chroot", "confined"), ("jail", "high")])
def test_a_setting_that_names_nothing_is_an_error_that_lists_what_it_can_be(tmp_path, name, level):
    with pytest.raises(SettingsError, match="it can be"):
        make_sandbox(name, min_level=level, run_dir=tmp_path)


@pytest.mark.parametrize("name", ["jail", "process", "docker"])
def test_every_driver_has_its_name(tmp_path, name):
    sandbox = make_sandbox(name, min_level="none", run_dir=tmp_path)
    assert sandbox.isolation().driver == name
    sandbox.close()


def test_what_earlier_jobs_printed_is_not_in_the_log_of_the_next(jail, tmp_path):
    sandbox = jail()
    sandbox.run(order(tmp_path, "print('first')"), killed=never)
    assert log_of(sandbox.run(order(tmp_path, "print('second')"), killed=never)) == "second\n"
