"""What a tenant's bytes bring about is never the runner's fault, unless the engine alone broke on them; and says nothing of its host."""

import io
import json
import zipfile

import pytest

from console.cli import checks
from core.errors import PackageRefused
from core.jobs import End, ObjectRef, RetryPolicy, State, decide
from core.packages import check_zip, read_member
from core.verdicts import FAULTS, Fault, Verdict
from runner.attempt import without_places
from runner.boxes import BoxReport
from runner.engine.contract import EndCode, EndError, FinalEvent
from runner.engine.job import run as run_engine
from runner.sandbox.claims import Channel, ChannelViolation
from runner.sandbox.session import Seen, judge
from runner.staging import fetch_config
from tests.abuse.boxes import LIMITS


@pytest.mark.parametrize(
    "event",
    [
        {"event": "progress", "pass": []},
        {"event": "progress", "pass": {}},
        {"event": "progress", "pass": "transform", "done": []},
        {"event": "progress", "pass": "transform", "done": 1, "total": {}},
        {"event": "end", "ok": False, "error": {"code": []}},
        {"event": "end", "ok": False, "error": {"code": {}}},
        {"event": "end", "ok": False, "error": []},
        {"event": "end", "ok": []},
        {"event": []},
        {"event": {}},
    ],
)
def test_a_word_of_another_kind_on_the_channel_is_a_violation(event):
    with pytest.raises(ChannelViolation):
        Channel().feed(json.dumps(event).encode() + b"\n")


def test_what_a_box_says_of_its_end_is_bounded_and_shows_no_control_characters():
    where = {"input": "\x9b2J" * 1000, "rule": {"a": "\x1b[2J"}, "line": 7, "other": "x" * 20_000}
    error = {"code": "rule_error", "message": "one\ntwo\x1b[2J\x9b\u202e" + "x" * 20_000, "where": where}
    (event,) = Channel().feed(json.dumps({"event": "end", "ok": False, "error": error}).encode() + b"\n")
    text = json.dumps(event.encode(), ensure_ascii=False)
    assert len(text) < 10_000
    assert not {"\x1b", "\x9b", "\u202e"} & {*text}
    assert event.error.message.startswith("one\ntwo\\x1b[2J")


@pytest.mark.parametrize(("trusted", "fault"), [(True, Fault.OURS), (False, Fault.CONFIG)])
def test_an_engine_that_breaks_is_ours_unless_a_rule_may_have_broken_it(trusted, fault):
    end = FinalEvent(error=EndError(EndCode.ENGINE_ERROR, "the engine failed"))
    assert FAULTS[judge(Seen(end=end, code=0, trusted=trusted), LIMITS).verdict] is fault


def test_an_engine_that_breaks_would_break_again():
    policy = RetryPolicy(max_attempts=3)
    assert decide(Verdict.ENGINE_FAILED, attempt=1, policy=policy, jitter=0.5) == End(State.FAILED)


def packed(*names, method=zipfile.ZIP_DEFLATED) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", method) as archive:
        for name in names:
            archive.writestr(name, b"x = 1\n" * 100)
    return body.getvalue()


class Store:
    """Every key holds the same bytes."""

    def __init__(self, body: bytes = b"x = 1\n") -> None:
        self.body = body

    def read(self, key, *, version=None, limit):
        return self.body


def refs(*keys, size=6):
    return tuple(ObjectRef(key=key, version="0", digest="0", size=size) for key in keys)


@pytest.mark.parametrize(
    "names",
    [
        ("lib", "lib/a.py"),
        ("a/b", "a/b/c/d.py"),
        (f"{'n' * 300}.py",),
        (f"{'ü' * 200}.py",),
        ("/".join(["folder"] * 200) + "/a.py",),
    ],
)
def test_files_that_cannot_stand_beside_each_other_are_the_configs_fault(tmp_path, names):
    with pytest.raises(PackageRefused):
        check_zip(packed(*names))
    with pytest.raises(PackageRefused):
        fetch_config(Store(), refs(*(f"configs/a/{name}" for name in names)), "configs/a/", tmp_path / "config")


def test_a_damaged_or_odd_zip_is_the_configs_fault():
    good = packed("columns/a.py")
    start = 30 + len("columns/a.py")
    for at in range(start, start + 8):
        damaged = bytearray(good)
        damaged[at] ^= 0xFF
        archive = check_zip(bytes(damaged))
        with pytest.raises(PackageRefused):
            read_member(archive, archive.infolist()[0])
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with pytest.raises(PackageRefused, match="deflate"):
            check_zip(packed("a.py", method=method))


def test_a_folder_zipped_with_a_folder_of_its_own_name_is_unwrapped(tmp_path):
    store = Store(packed("mine/mine/a.py", "mine/columns/b.py"))
    config = fetch_config(store, refs("configs/a.zip", size=len(store.body)), "configs/a.zip", tmp_path / "config")
    assert sorted(str(p.relative_to(config)) for p in config.rglob("*.py")) == ["columns/b.py", "mine/a.py"]


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("OSError: [Errno 28] No space left on device: '/srv/ade/run/x/in/0'", "OSError: [Errno 28] No space left on device: '…'"),
        ("the store did not answer: http://10.0.0.7:9000/bucket?x=1; is it up?", "the store did not answer: …; is it up?"),
        ("mount /srv/in on /srv/root/job/in: Permission denied", "mount … on … Permission denied"),
        ("inbox/acme/d/m.csv is gone; docs/explanation/sandbox.md says 1/2", "inbox/acme/d/m.csv is gone; docs/explanation/sandbox.md says 1/2"),
    ],
)  # fmt: skip
def test_a_tenant_sees_no_path_and_no_address_of_the_host(message, told):
    assert without_places(message) == told


def broken(trusted, **where):
    error = {"code": "engine_error", "message": "the engine failed", "where": where}
    end = Channel().feed(json.dumps({"event": "end", "ok": False, "error": error}).encode() + b"\n")[0]
    return judge(Seen(end=end, code=0, trusted=trusted), LIMITS)


def test_what_may_be_a_fault_of_the_engines_is_reported_by_places_in_our_code():
    ending = broken(trusted=True, exception="KeyError", trace="engine/job.py:53 structure/model.py:31")
    assert ending.suspicion == "KeyError at engine/job.py:53 structure/model.py:31"
    assert "trace" not in ending.where


@pytest.mark.parametrize("trace", ["Ann Smith", "/etc/passwd:1", "engine/job.py:53 Ann", "", "a/b.py:1 " * 100, 7])
def test_a_trace_of_another_form_is_not_repeated(trace):
    ending = broken(trusted=False, exception="Ann Smith, 41", trace=trace)
    assert ending.suspicion == "an error at an unknown place"


def test_an_end_that_a_rule_or_a_file_brought_about_raises_no_suspicion():
    for code in ("rule_error", "input_unreadable", "config_refused", "nothing_mapped", "out_of_memory"):
        end = FinalEvent(error=EndError(EndCode(code), "m"))
        assert judge(Seen(end=end, code=0), LIMITS).suspicion == ""


def test_an_engine_that_breaks_says_where_and_nothing_of_the_values(monkeypatch, tmp_path):
    def breaks(*_):
        raise KeyError("Ann Smith")

    monkeypatch.setattr("runner.engine.job.read_order", breaks)
    said = io.StringIO()
    run_engine({}, said, folder=tmp_path)
    error = json.loads(said.getvalue())["error"]
    assert error["where"]["exception"] == "KeyError"
    assert "engine/job.py:" in error["where"]["trace"]
    assert "Ann" not in said.getvalue()


def test_a_likely_fault_of_the_engines_is_seen_by_the_operator_and_costs_one_attempt(world):
    what = "KeyError at engine/job.py:53"
    said = BoxReport(verdict=Verdict.ENGINE_FAILED, message="the engine failed: KeyError", suspicion=what)
    world.sandbox.run = lambda *_, **__: said
    world.intake.changed(world.drop())
    world.work_off(world.runner())
    (job,) = world.jobs()
    assert (job.state, job.error.fault, job.attempts_total) == (State.FAILED, "ours", 1)
    assert len(world.queue.dead(limit=10)) == 1
    events = [json.loads(line) for line in world.log._stream.getvalue().splitlines()]
    (event,) = [event for event in events if event["event"] == "engine_fault_suspected"]
    assert (event["level"], event["what"], event["rules"], event["job_id"]) == ("error", what, False, job.job_id)
    (check,) = checks.check_engine(world.fragile)
    assert check.level == "warning"
    assert job.job_id in check.message
    assert what in check.message


def test_nothing_is_suspected_of_a_job_that_went_well(world):
    world.intake.changed(world.drop())
    world.work_off(world.runner())
    assert [check.level for check in checks.check_engine(world.fragile)] == ["ok"]
    assert "engine_fault" not in world.log._stream.getvalue()
