"""The engine's entry: orders, descriptors, ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runner.engine.job import run as run_engine
from tests.support.engine_jobs import run_order

ROOT = Path(__file__).parents[3]
MANIFEST = {"manifest": 1, "name": "m", "fields": [{"name": "code"}]}
CSV = "code,n\na,1\nb,2\nc,3\n"


def order(**changes):
    return {
        "order": 1,
        "job": {"job_id": "j", "tenant": "t", "workflow": "m", "attempt": 1},
        "manifest": MANIFEST,
        "params": {},
        "inputs": [{"role": "primary", "name": "a.csv", "path": "in/0", "size": 1, "sha256": ""}],
        "config": {"path": None, "digest": ""},
        "outputs": {"normalized.xlsx": "normalized.xlsx", "artifact.json": "artifact.json"},
        **changes,
    }


@pytest.fixture
def place(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0").write_text(CSV)
    return tmp_path


def test_the_command_carries_out_an_order_and_says_its_end(place):
    (place / "order.json").write_text(json.dumps(order()))
    read, write = os.pipe()
    command = [sys.executable, "-I", "-B", "-m", "runner.engine", str(place / "order.json"), "--channel", str(write)]
    done = subprocess.run(command, pass_fds=[write], check=False, capture_output=True)
    os.close(write)
    with os.fdopen(read) as channel:
        events = [json.loads(line) for line in channel]
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert events[-1] == {"event": "end", "ok": True, "summary": events[-1]["summary"]}
    assert events[-1]["summary"]["rows_out"] == 3


@pytest.mark.parametrize("words", [[], ["missing.json"], ["a", "--channel", "x"], ["a", "b"]])
def test_an_order_that_cannot_be_read_ends_with_seventy(words, tmp_path):
    done = subprocess.run([sys.executable, "-m", "runner.engine", *words], cwd=ROOT, check=False, capture_output=True)
    assert done.returncode == 70
    assert b"usage" in done.stderr


def test_an_output_may_be_a_descriptor(place):
    file = os.open(place / "given.xlsx", os.O_RDWR | os.O_CREAT)
    done = run_order(order(outputs={"normalized.xlsx": file, "artifact.json": "artifact.json"}), place)
    os.close(file)
    assert done.end["ok"] is True
    assert (place / "given.xlsx").read_bytes().startswith(b"PK")


def test_outputs_nobody_asked_for_are_not_written(place):
    assert run_order(order(outputs={"artifact.json": "artifact.json"}), place).end["ok"] is True
    assert sorted(p.name for p in place.iterdir()) == ["artifact.json", "in"]


def test_the_same_order_gives_the_same_workbook(place):
    first, second = (run_order(order(outputs={"normalized.xlsx": name}), place) for name in ("a.xlsx", "b.xlsx"))
    assert first.end == second.end
    assert (place / "a.xlsx").read_bytes() == (place / "b.xlsx").read_bytes()


@pytest.mark.parametrize("wrong", [{"order": 2}, {"inputs": []}, {"inputs": [{"role": "primary"}]}, {"manifest": None}])
def test_a_wrong_order_is_the_runners_mistake_and_says_so(wrong, place):
    done = run_order(order(**wrong), place)
    assert (done.code, done.error["code"]) == (0, "engine_error")
    assert "docs/reference/engine-order.md" in json.dumps(done.error["where"]) or "update" in json.dumps(
        done.error["where"]
    )


def test_an_unreadable_input_is_the_inputs_fault(place):
    (place / "in" / "0").write_bytes(b"%PDF-1.7 nothing to see")
    error = run_order(order(), place).error
    assert error["code"] == "input_unreadable"
    assert error["where"]["input"] == "a.csv"
    assert error["where"]["remedy"]


def test_an_unreadable_lookup_is_the_inputs_fault(place):
    (place / "in" / "1").write_bytes(b"")
    manifest = {**MANIFEST, "fields": [{"name": "code", "allowed": {"lookup": "t", "column": "c"}}]}
    inputs = [*order()["inputs"], {"role": "auxiliary", "name": "t", "file": "t.csv", "path": "in/1"}]
    error = run_order(order(manifest=manifest, inputs=inputs), place).error
    assert (error["code"], error["where"]["input"]) == ("input_unreadable", "t")


def test_memory_that_runs_out_is_reported(place, monkeypatch):
    def greedy(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("runner.engine.job.survey", greedy)
    assert run_order(order(), place).error["code"] == "out_of_memory"


def test_what_breaks_in_the_engine_is_reported_by_its_kind_and_place(place, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("runner.engine.job.survey", broken)
    error = run_order(order(), place).error
    assert error["code"] == "engine_error"
    assert error["where"]["file"] == "engine/job.py"
    assert "secret" not in json.dumps(error)


def test_a_channel_that_is_gone_ends_with_seventy(place):
    class Gone:
        def write(self, _):
            raise BrokenPipeError

    assert run_engine(order(), Gone(), folder=place) == 70
