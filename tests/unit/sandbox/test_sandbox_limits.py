"""Limits and their verdicts, control groups of both versions, and the judge on its own."""

import os
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from core.verdicts import FAULTS, Fault, Verdict
from runner.boxes import BoxLimits
from runner.engine.contract import EndCode, EndError, FinalEvent
from runner.sandbox import session
from runner.sandbox.box.zygote import ca_bundle
from runner.sandbox.cgroups import Cgroups
from runner.sandbox.jail import Build, JailSandbox, Options
from runner.sandbox.process import ProcessSandbox
from runner.sandbox.session import Seen, judge
from tests.abuse.boxes import ENGINE, LIMITS, never, order, result

OK = FinalEvent()


def failed(code, message="m"):
    return FinalEvent(error=EndError(EndCode(code), message))


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (Seen(end=OK, code=0), Verdict.OK),
        (Seen(end=OK, code=1), Verdict.BAD_OUTPUT),
        (Seen(end=OK, code=-9), Verdict.SIGNAL),
        (Seen(end=OK, code=0, output_problem="a link"), Verdict.BAD_OUTPUT),
        (Seen(end=OK, code=0, violation="NaN"), Verdict.BAD_OUTPUT),
        (Seen(end=OK, code=0, killed_as=Verdict.CANCELLED), Verdict.CANCELLED),
        (Seen(end=OK, code=0, killed_as=Verdict.WALL_CLOCK), Verdict.WALL_CLOCK),
        (Seen(end=None, code=0), Verdict.BAD_OUTPUT),
        (Seen(end=None, code=0, output_at_limit="x"), Verdict.FILE_SIZE),
        (Seen(end=None, code=72), Verdict.MEMORY),
        (Seen(end=None, code=None), Verdict.BOX_FAILED),
        (Seen(end=None, code=-24), Verdict.CPU),
        (Seen(end=None, code=-25), Verdict.FILE_SIZE),
        (Seen(end=None, code=-9, cpu_seconds=9.9), Verdict.CPU),
        (Seen(end=None, code=-9, cpu_seconds=0.1), Verdict.SIGNAL),
        (Seen(end=None, code=-9, out_of_memory=True), Verdict.MEMORY),
        (Seen(end=None, code=-9, host_out_of_memory=True), Verdict.BOX_FAILED),
        (Seen(end=failed("rule_error"), code=0, host_out_of_memory=True), Verdict.BOX_FAILED),
        (Seen(end=None, code=-9, cpu_seconds=0.1, trusted=True), Verdict.BOX_FAILED),
        (Seen(end=None, code=-15, trusted=True), Verdict.BOX_FAILED),
        (Seen(end=None, code=-9, cpu_seconds=9.9, trusted=True), Verdict.CPU),
        (Seen(end=None, code=-11, trusted=True), Verdict.SIGNAL),
        (Seen(end=None, code=-31), Verdict.SIGNAL),
        (Seen(end=None, code=-64), Verdict.SIGNAL),
        (Seen(end=None, code=1, setup_problem="no fork"), Verdict.BOX_FAILED),
        (Seen(end=failed("input_unreadable"), code=0), Verdict.INPUT_UNREADABLE),
        (Seen(end=failed("nothing_mapped"), code=0), Verdict.NOTHING_MAPPED),
        (Seen(end=failed("nothing_mapped"), code=3), Verdict.BAD_OUTPUT),
        (Seen(end=failed("nothing_mapped"), code=0, output_problem="a link"), Verdict.BAD_OUTPUT),
        (Seen(end=failed("rule_error"), code=0), Verdict.RULE_ERROR),
        (Seen(end=failed("rule_error", "x raised BlockingIOError"), code=0), Verdict.PROCESSES),
        (Seen(end=failed("rule_error"), code=0, too_many_processes=True), Verdict.PROCESSES),
        (Seen(end=failed("rule_error"), code=0, output_at_limit="x"), Verdict.FILE_SIZE),
        (Seen(end=failed("config_refused"), code=0), Verdict.CONFIG_REFUSED),
        (Seen(end=failed("out_of_memory"), code=0), Verdict.MEMORY),
        (Seen(end=failed("engine_error"), code=0), Verdict.RULE_ERROR),
        (Seen(end=failed("engine_error"), code=0, trusted=True), Verdict.ENGINE_FAILED),
    ],
)
def test_the_verdict_follows_from_what_was_seen(seen, verdict):
    limits = BoxLimits(wall_seconds=10, cpu_seconds=10, memory_mb=64, file_mb=1)
    assert judge(seen, limits).verdict is verdict


def test_what_a_rule_can_do_on_its_own_is_never_called_our_fault():
    """Ours is tried again; a rule must not be able to earn itself further attempts by how it exits."""
    limits = BoxLimits(wall_seconds=10, cpu_seconds=10, memory_mb=64, file_mb=1)
    for code in range(-64, 256):
        ending = judge(Seen(end=None, code=code), limits)
        assert FAULTS[ending.verdict] is not Fault.OURS, (code, ending)


def test_no_more_files_can_be_open_than_the_limit(tmp_path):
    sandbox = JailSandbox(run_dir=tmp_path / "run", min_level="confined", engine=ENGINE)
    snippet = """
import os
def main(order):
    held = []
    try:
        while True:
            held.append(os.dup(1))
    except OSError:
        count = len(held)
    for fd in held:
        os.close(fd)
    return count
"""
    limits = replace(LIMITS, open_files=20)
    assert result(sandbox.run(order(tmp_path, snippet, limits=limits), killed=never)) < 20
    sandbox.close()


@pytest.mark.parametrize("build", ["own", "none"])
@pytest.mark.parametrize("network", [True, False])
def test_the_network_is_there_only_for_a_job_that_may_use_it(tmp_path, build, network):
    options = Options(builds=(Build(namespaces=build),))
    sandbox = JailSandbox(run_dir=tmp_path / "run", min_level="confined", engine=ENGINE, options=options)
    with socket.create_server(("127.0.0.1", 0)) as server:
        snippet = f"""
import os
import socket
import subprocess
import sys
def main(order):
    try:
        socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5).close()
    except OSError:
        return False
    return True
"""
        assert result(sandbox.run(order(tmp_path, snippet, network=network), killed=never)) is network
    sandbox.close()


@pytest.mark.parametrize("build", ["own", "bubblewrap", "none"])
def test_a_job_with_the_network_sees_no_more_of_the_hosts_keys_than_whom_to_trust(tmp_path, build):
    if build == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("needs bubblewrap")
    options = Options(builds=(Build(namespaces=build),))
    sandbox = JailSandbox(run_dir=tmp_path / "run", min_level="confined", engine=ENGINE, options=options)
    snippet = """
import os
import ssl
def readable(path):
    try:
        if os.path.isdir(path):
            return bool(os.listdir(path)) and path not in ('/etc/ssl', '/etc/ssl/certs', '/etc/pki')
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        return False
    return True
def main(order):
    asked = ['/etc/ssl', '/etc/ssl/openssl.cnf', '/etc/ssl/private', '/etc/pki', '/usr/share/ca-certificates']
    trusted = len(ssl.create_default_context().get_ca_certs())
    return [[path for path in asked if readable(path)], trusted > 0]
"""
    bundle = ca_bundle()
    seen = result(sandbox.run(order(tmp_path, snippet, network=True), killed=never))
    assert seen == [[], bundle is not None]
    sandbox.close()


def fake_v2(tmp_path, *, delegated):
    """A delegated group as systemd makes it: the runner one level down."""
    mount = tmp_path / "cgroup"
    service = mount / "system.slice" / "ade.service"
    (service / "runner").mkdir(parents=True)
    (mount / "cgroup.controllers").write_text("cpu memory pids\n")
    (service / "cgroup.subtree_control").write_text("memory pids\n" if delegated else "")
    if not delegated:
        (service / "cgroup.subtree_control").unlink()
    return Cgroups.find(mount, "0::/system.slice/ade.service/runner\n"), service


def test_a_delegated_group_of_version_2_takes_boxes(tmp_path):
    found, service = fake_v2(tmp_path, delegated=True)
    with found.group("acme-1", memory_mb=100, processes=2) as group:
        (made,) = service.glob("ade-*")
        assert int((made / "memory.max").read_text()) == 116 * 1024 * 1024
        assert int((made / "pids.max").read_text()) == 66
        (made / "cgroup.procs").write_text("")  # as the kernel makes it
        group.add(4711)
        assert (made / "cgroup.procs").read_text() == "4711"
        with group.entries() as entries:
            assert entries == []  # only others can move a process
        (made / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
        (made / "pids.events").write_text("max 3\n")
        (made / "memory.peak").write_text(str(50 * 1024 * 1024))
        seen = group.seen()
    assert (seen.out_of_memory, seen.too_many_processes, seen.peak_mb) == (True, True, 50)


def test_a_process_that_is_in_its_group_is_not_moved_again(tmp_path):
    found, service = fake_v2(tmp_path, delegated=True)
    with found.group("acme-1", memory_mb=100, processes=2) as group:
        (made,) = service.glob("ade-*")
        (made / "cgroup.procs").write_text("17\n4711\n")
        group.add(4711)
        assert (made / "cgroup.procs").read_text() == "17\n4711\n"


def test_a_process_moves_itself_into_its_group():
    found = Cgroups.find()
    if found is None:
        pytest.skip("needs control groups")
    with found.group("moves-itself", memory_mb=100, processes=2) as group, group.entries() as entries:
        if not entries:
            pytest.skip("needs control groups of version 1")
        command = (
            "import os, sys; [os.write(int(fd), b'0') for fd in sys.argv[1:]]; print(open('/proc/self/cgroup').read())"
        )
        words = [sys.executable, "-c", command, *map(str, entries)]
        said = subprocess.run(words, pass_fds=entries, stdout=subprocess.PIPE, text=True, check=True).stdout
    places = dict(line.split(":", 2)[1:] for line in said.splitlines() if line)
    assert all(Path(places[kind]).name.startswith("ade-") for kind in ("memory", "pids"))


@pytest.mark.parametrize(
    ("events", "own", "host"),
    [("oom 0\noom_kill 1\n", False, True), ("oom 2\noom_kill 1\n", True, False), ("oom 0\noom_kill 0\n", False, False)],
)
def test_a_kill_for_want_of_memory_is_the_limit_only_where_the_group_was_at_it(tmp_path, events, own, host):
    found, service = fake_v2(tmp_path, delegated=True)
    with found.group("acme-1", memory_mb=100, processes=2) as group:
        (made,) = service.glob("ade-*")
        (made / "memory.events").write_text(events)
        seen = group.seen()
    assert (seen.out_of_memory, seen.host_out_of_memory) == (own, host)


@pytest.mark.parametrize(("failures", "own", "host"), [(0, False, True), (7, True, False)])
def test_so_it_is_in_version_1(tmp_path, failures, own, host):
    for kind in ("memory", "pids"):
        (tmp_path / kind / "runner").mkdir(parents=True)
    found = Cgroups.find(tmp_path, "4:memory:/runner\n8:pids:/runner\n")
    with found.group("acme-1", memory_mb=100, processes=2) as group:
        (made,) = (tmp_path / "memory" / "runner").glob("ade-*")
        (made / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
        (made / "memory.failcnt").write_text(f"{failures}\n")
        seen = group.seen()
    assert (seen.out_of_memory, seen.host_out_of_memory) == (own, host)


KILLED = "import os\nos.kill(os.getpid(), 9)"


@pytest.mark.parametrize(("kills", "verdict"), [(0, Verdict.SIGNAL), (1, Verdict.BOX_FAILED)])
def test_without_a_group_the_host_counts_its_kills_for_want_of_memory(tmp_path, monkeypatch, kills, verdict):
    counts = iter([5, 5 + kills])
    monkeypatch.setattr(session, "oom_kills", lambda: next(counts))
    report = ProcessSandbox(run_dir=tmp_path / "run", min_level="none", engine=ENGINE).run(
        order(tmp_path, KILLED), killed=never
    )
    assert (report.verdict, report.by_host) == (verdict, bool(kills))


def test_a_group_that_is_not_delegated_is_not_used(tmp_path):
    assert fake_v2(tmp_path, delegated=False)[0] is None


def test_a_host_without_control_groups_has_none(tmp_path):
    assert Cgroups.find(tmp_path, "0::/\n") is None


MANY_THREADS = """
import threading, time
def main(order):
    threading.stack_size(32768)
    for count in range(2000):
        try:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        except RuntimeError:
            return count
"""


@pytest.mark.parametrize("build", [Build(namespaces="own", own_user=True), Build(namespaces="none")])
def test_the_kernel_bounds_the_threads_of_a_box_without_a_control_group_even_for_root(tmp_path, build):
    """The rule sees the error: nobody had to notice and kill it."""
    if os.geteuid() and build.own_user:
        pytest.skip("only root can give boxes another user")
    tmp_path.chmod(0o755)
    made = JailSandbox(
        run_dir=tmp_path / "run", min_level="none", engine=ENGINE, options=Options(cgroups=False, builds=(build,))
    )
    try:
        for _ in range(3):
            assert 16 <= result(made.run(order(tmp_path, MANY_THREADS), killed=never)) < 300
    finally:
        made.close()
