"""The `docker` driver: its command line is checked here; the run itself only where an engine answers."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from unittest.mock import ANY

import pytest

from core.errors import SandboxUnavailable
from core.verdicts import Verdict
from runner.sandbox import session
from runner.sandbox.docker import IMAGE, DockerSandbox, container_name
from tests.abuse.boxes import ENGINE, never, order, result

INFO = '{"ServerVersion": "28.0", "MemoryLimit": true, "PidsLimit": true, "SecurityOptions": ["name=seccomp,profile=builtin"]}'
FAKE = """#!{python}
import json, os, subprocess, sys
args = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps(args) + "\\n")
if args[0] == "info": print(os.environ.get("FAKE_INFO", '{info}'))
elif args[0] == "image": print(json.dumps({{"Config": {{"Volumes": {{"/var/lib/ade": {{}}, "/tmp": {{}}}}}}}}) if "{{{{json .}}}}" in args else "sha256:1")
elif args[0] == "inspect": print(os.environ.get("FAKE_INSPECT", "false"))
elif args[0] == "ps": print("c1 gone-1\\nc2 mine-1")
elif args[0] == "run":
    mounts = dict(reversed(a.removeprefix("type=bind,src=").removesuffix(",readonly").split(",dst=")) for a in args if a.startswith("type=bind"))
    at = args.index("-c")
    script, rest = args[at + 1], args[at + 3:]
    if "FAKE_STALLED" in os.environ:
        import time
        time.sleep(600)  # the engine does not answer
    script = script.replace("env -i ", "env -i PYTHONPATH={root} ")
    os.environ["HTTPS_PROXY"] = "http://user:password@proxy.example"
    order = json.load(open(mounts["/job/order.json"]))
    for target, source in mounts.items():
        script = script.replace(target, source)
        order = json.loads(json.dumps(order).replace(f'"{{target}}', f'"{{source}}'))
    rest[rest.index("/job/order.json")] = mounts["/job/order.json"]
    json.dump(order, open(mounts["/job/order.json"], "w"))
    rest[0] = sys.executable
    rest[rest.index("-I")] = "-s"
    sys.exit(subprocess.run(["/bin/sh", "-c", script, "box", *rest]).returncode % 256)
"""


@pytest.fixture
def docker(tmp_path, monkeypatch):
    """A stand-in that understands the same words and runs the engine here."""
    folder = tmp_path / "bin"
    folder.mkdir()
    log = tmp_path / "docker.log"
    (folder / "docker").write_text(FAKE.format(python=sys.executable, log=str(log), root=str(ENGINE.root), info=INFO))
    (folder / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return log


@pytest.fixture
def sandbox(tmp_path):
    return DockerSandbox(run_dir=tmp_path / "run", min_level="confined", engine=ENGINE)


def after(args, option):
    return [args[i + 1] for i, arg in enumerate(args) if arg == option]


def test_a_container_has_no_network_no_capabilities_and_no_writable_root(sandbox, tmp_path):
    args = sandbox.command(order(tmp_path, "pass"))
    assert after(args, "--network") == ["none"]
    assert after(args, "--cap-drop") == ["ALL"]
    assert after(args, "--security-opt") == ["no-new-privileges"]
    assert after(args, "--ipc") == ["none"]
    assert "--read-only" in args
    assert "--privileged" not in args


def test_every_limit_of_the_order_is_in_the_command(sandbox, tmp_path):
    args = sandbox.command(order(tmp_path, "pass"))
    assert after(args, "--memory") == after(args, "--memory-swap") == ["128m"]
    assert after(args, "--ulimit") == ["cpu=5", f"fsize={4 * 1024 * 1024}", "nofile=64", "core=0"]
    assert int(after(args, "--pids-limit")[0]) < 100


def test_only_the_output_files_can_be_written(sandbox, tmp_path):
    given = order(tmp_path, "pass")
    mounts = after(sandbox.command(given), "--mount")
    writable = [mount for mount in mounts if not mount.endswith(",readonly")]
    assert writable == [f"type=bind,src={given.scratch}/out/result.json,dst=/job/out/result.json"]


def test_a_job_that_may_use_the_network_gets_one(sandbox, tmp_path):
    assert after(sandbox.command(order(tmp_path, "pass", network=True)), "--network") == ["bridge"]


def test_a_container_carries_the_label_of_its_box(sandbox, tmp_path):
    given = order(tmp_path, "pass", label="acme-members-1-2")
    args = sandbox.command(given)
    assert after(args, "--label") == ["ade.box=acme-members-1-2", ANY]
    assert after(args, "--name") == [container_name("acme-members-1-2")]


def test_a_box_runs_to_its_end_and_its_container_is_removed(docker, sandbox, tmp_path):
    given = order(tmp_path, "print('hello')\ndef main(order): return open(order['inputs'][0]['path']).read()[:2]")
    report = sandbox.run(given, killed=never)
    assert result(report) == "id"
    assert report.log.read_text() == "hello\n"
    assert f'["rm", "--force", "--volumes", "{container_name(given.label)}"]' in docker.read_text()


def test_a_killed_container_is_judged_by_what_the_engine_says_of_it(docker, sandbox, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_INSPECT", "true")
    report = sandbox.run(order(tmp_path, "import os\nos._exit(137)"), killed=never)
    assert report.verdict is Verdict.MEMORY


def test_a_command_that_could_make_no_container_is_our_fault(docker, sandbox, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_INSPECT", "")
    assert sandbox.run(order(tmp_path, "import os\nos._exit(125)"), killed=never).verdict is Verdict.BOX_FAILED


def test_reap_removes_containers_whose_runner_is_gone(docker, sandbox):
    assert sandbox.reap(lambda label: label == "mine-1") == 1
    assert '["rm", "--force", "--volumes", "c1"]' in docker.read_text()


def test_boxes_of_another_run_folder_are_not_reaped(docker, sandbox, tmp_path):
    """Another deployment, `ade try` and installers of layers use the same engine, and their labels are no jobs here."""
    sandbox.reap(lambda _: True)
    other = DockerSandbox(run_dir=tmp_path / "run" / "install", min_level="confined", engine=ENGINE)
    (asked,) = [json.loads(line) for line in docker.read_text().splitlines() if json.loads(line)[0] == "ps"]
    (wanted,) = after(asked, "--filter")
    labels = [after(box.command(order(tmp_path, "pass")), "--label") for box in (sandbox, other)]
    assert [wanted.removeprefix("label=") in given for given in labels] == [True, False]


def test_volumes_that_the_image_declares_cannot_be_written(docker, sandbox, tmp_path):
    """Our own image has two, and `--read-only` does not cover them."""
    covered = dict(given.split(":", 1) for given in after(sandbox.command(order(tmp_path, "pass")), "--tmpfs"))
    assert covered.keys() == {"/tmp", "/var/lib/ade"}
    assert all("ro" in options.split(",") for options in covered.values())


def test_a_box_sees_no_variable_of_image_or_client(docker, sandbox, tmp_path):
    """The client adds its proxies, passwords included."""
    report = sandbox.run(order(tmp_path, "import os\ndef main(order): return sorted(os.environ)"), killed=never)
    assert set(result(report)) <= {"PATH", "LANG", "TZ", "HOME", "PYTHONPATH", "PWD", "LC_CTYPE", "SHLVL", "_"}


def test_an_engine_that_stalls_holds_no_box_beyond_its_time(docker, sandbox, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_STALLED", "1")
    monkeypatch.setattr(session, "GRACE", 0.2)
    given = order(tmp_path, "pass")
    report = sandbox.run(replace(given, limits=replace(given.limits, wall_seconds=1)), killed=never)
    assert report.verdict is Verdict.WALL_CLOCK


@pytest.mark.parametrize(
    ("change", "level"),
    [
        ({"SecurityOptions": ["name=seccomp,profile=unconfined"]}, "limits"),
        ({"SecurityOptions": ["name=apparmor"]}, "limits"),
        ({"MemoryLimit": False}, "none"),
        ({"PidsLimit": False}, "none"),
        ({}, "isolated"),
    ],
)
def test_the_level_is_what_the_engine_can_keep(docker, sandbox, monkeypatch, change, level):
    """An engine without control groups (rootless, undelegated) takes the limits and ignores them."""
    monkeypatch.setenv("FAKE_INFO", json.dumps(json.loads(INFO) | change))
    assert sandbox.isolation().level == level


def test_without_an_engine_it_says_what_to_do(sandbox, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="ADE_SANDBOX=jail"):
        sandbox.run(order(tmp_path, "pass"), killed=never)


def test_the_driver_runs_a_real_container_where_there_is_an_engine(tmp_path):
    docker = shutil.which("docker")
    if not docker or subprocess.run([docker, "image", "inspect", IMAGE], capture_output=True, check=False).returncode:
        pytest.skip(f"no docker engine with the image {IMAGE}")
    sandbox = DockerSandbox(run_dir=tmp_path / "run", min_level="confined")
    given = order(tmp_path, "pass", outputs=("normalized.xlsx", "artifact.json", "report.html"))
    assert sandbox.run(given, killed=never).verdict in {Verdict.OK, Verdict.INPUT_UNREADABLE, Verdict.CONFIG_REFUSED}
