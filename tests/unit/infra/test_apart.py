"""Large texts are read by a process with limits of its own; how it ends tells whose fault it is."""

import json
import operator
import os
import pathlib
import pickle
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.budget import Budget, Parsed
from core.errors import Problem, StoreUnavailable
from infra import parsing
from infra.apart import HelperPool, TooCostly


@pytest.fixture
def pool():
    made = HelperPool(cpu_seconds=1)
    yield made
    made.end()


def test_a_function_gives_the_same_as_here(pool):
    assert pool.call(sorted, ([3, 1, 2],)) == [1, 2, 3]
    found = pool.call(Problem, ("$", "is", "allowed"))
    assert (type(found), found.as_dict()) == (Problem, {"path": "$", "problem": "is", "allowed": "allowed"})


def test_a_text_that_takes_too_much_memory_is_too_costly_and_the_next_one_is_read(pool):
    with pytest.raises(TooCostly, match="memory"):
        pool.call(operator.mul, (b"x", 2 * 10**9))
    assert pool.call(operator.add, (1, 1)) == 2


@pytest.mark.slow
def test_a_text_that_takes_too_long_is_too_costly_and_the_next_one_is_read(pool):
    with pytest.raises(TooCostly, match="1 seconds"):
        pool.call(operator.pow, (7, 10**9))
    assert pool.call(operator.add, (1, 1)) == 2


def test_a_helper_that_somebody_kills_is_no_fault_of_the_text(pool):
    with pytest.raises(StoreUnavailable):
        pool.call(signal.raise_signal, (signal.SIGKILL,))
    assert pool.call(operator.add, (1, 1)) == 2


def test_a_helper_that_is_gone_is_replaced(pool):
    pid = pool.call(os.getpid, ())
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert pool.call(os.getpid, ()) != pid


def test_a_helper_has_no_credentials_and_writes_nothing(pool, monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert pool.call(os.getenv, ("AWS_SECRET_ACCESS_KEY",)) is None
    with pytest.raises((RuntimeError, StoreUnavailable)):
        pool.call(pathlib.Path.write_bytes, (tmp_path / "x", b"x"))
    assert not (tmp_path / "x").exists() or (tmp_path / "x").read_bytes() == b""


def test_of_an_answer_only_our_own_classes_are_loaded(pool):
    with pytest.raises(pickle.UnpicklingError, match="not one of our values"):
        pool.call(pathlib.PurePath, ("/etc",))


def test_what_goes_wrong_in_a_function_is_told(pool):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        pool.call(operator.truediv, (1, 0))


def test_there_are_two_helpers_at_most(pool):
    with ThreadPoolExecutor(6) as threads:
        pids = set(threads.map(lambda _: pool.call(os.getpid, ()), range(20)))
    assert len(pids) <= 2


class TestBodiesOfRequests:
    BUDGET = Budget(bytes=1_000_000, values=50_000)

    def read(self, body: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[object, list[object]]:
        """What is found, and which functions were run apart."""
        ran: list[object] = []

        def noted(act: Callable[..., object], *given: object) -> object:
            ran.append(act)
            return act(*given)

        monkeypatch.setattr(parsing, "apart", noted)
        return parsing.parse_body(body, self.BUDGET), ran

    def test_a_large_one_is_not_weighed_in_the_process_that_serves_everybody(self, monkeypatch):
        found, ran = self.read(b'{"keys":[' + b'"a",' * 200_000 + b'"b"]}', monkeypatch)
        assert ran == [parsing.body_of]
        assert isinstance(found, list)
        assert "too many values" in found[0].problem

    def test_a_small_one_is(self, monkeypatch):
        assert self.read(b'{"keys": ["a"]}', monkeypatch) == (Parsed({"keys": ["a"]}, 2), [])

    def test_it_comes_back_whole(self):
        body = {"keys": ["ä" * 100] * 400, "n": [1, 1.5, None, True, {"a": []}]}
        found = parsing.parse_body(json.dumps(body).encode(), self.BUDGET)
        assert isinstance(found, Parsed)
        assert found.raw == body
