"""The policy by which calls are tried again."""

import pytest

from infra.retrying import CallPolicy


class Service:
    """Fails so often, each time with the same error."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.calls = 0
        self._failures, self._error = failures, error

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self._failures:
            raise self._error
        return "answer"


def run(service, *, deadline=5.0, **more):
    noted: list[str] = []
    answer = CallPolicy(deadline=deadline, longest_wait=0.001).run(
        service,
        is_transient=lambda error: isinstance(error, ConnectionError),
        on_retry=lambda error: noted.append(type(error).__name__),
        **more,
    )
    return answer, noted


def test_what_is_transient_is_tried_again_and_noted_each_time():
    service = Service(3, ConnectionError())
    assert run(service) == ("answer", ["ConnectionError"] * 3)
    assert service.calls == 4


def test_what_is_not_transient_is_raised_at_once():
    service = Service(1, ValueError())
    with pytest.raises(ValueError):
        run(service)
    assert service.calls == 1


def test_after_the_deadline_the_last_error_is_raised():
    service = Service(1_000_000, ConnectionError("gone"))
    with pytest.raises(ConnectionError, match="gone"):
        run(service, deadline=0.0)
    assert service.calls == 1


def test_a_try_that_comes_at_once_does_not_wait(monkeypatch):
    waited: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", waited.append)
    run(Service(2, ConnectionError()), skips_wait=lambda tries: tries == 1)
    assert waited[0] == 0.0
    assert waited[1] > 0.0


def test_a_call_within_a_time_waits_for_a_part_of_it():
    policy = CallPolicy(longest_wait=4.0).within(6.0)
    assert (policy.deadline, policy.longest_wait) == (3.0, 0.5)
