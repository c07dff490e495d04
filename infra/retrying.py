"""The one policy by which calls to a service are tried again: fully jittered exponential waits, up to a deadline."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_before_delay, wait_random_exponential

_FIRST_WAIT_SECONDS = 0.05  # at most; it doubles with every try
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class CallPolicy:
    deadline: float = 30.0  # seconds after which no further try begins
    longest_wait: float  # seconds between two tries

    def within(self, seconds: float) -> "CallPolicy":
        """The policy of calls that end within `seconds`, if a single try ends within half of that."""
        return replace(self, deadline=seconds / 2, longest_wait=seconds / 12)

    def run(
        self,
        act: Callable[[], T],
        *,
        is_transient: Callable[[BaseException], bool],
        on_retry: Callable[[BaseException], None],
        skips_wait: Callable[[int], bool] = lambda _tries: False,
    ) -> T:
        """What `act` returns, tried again while it raises what is transient; at the deadline, the last such error.

        `skips_wait`: whether the next try comes at once, after so many.
        """
        jittered = wait_random_exponential(multiplier=_FIRST_WAIT_SECONDS, max=self.longest_wait)

        def wait(state: RetryCallState) -> float:
            return 0.0 if skips_wait(state.attempt_number) else jittered(state)

        def before_sleep(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome is not None else None
            if error is not None:
                on_retry(error)

        retrying = Retrying(
            retry=retry_if_exception(is_transient),
            wait=wait,
            stop=stop_before_delay(self.deadline),
            before_sleep=before_sleep,
            reraise=True,
        )
        return retrying(act)
