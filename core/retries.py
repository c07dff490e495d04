"""What follows a verdict: end, or another try. Pure."""

from dataclasses import dataclass

from core.jobs import State
from core.verdicts import FAULTS, Fault, Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    max_attempts: int = 3
    backoff_seconds: float = 2.0
    backoff_cap_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Retry:
    delay: float
    counts: bool = True  # against the job's attempts


@dataclass(frozen=True, slots=True)
class End:
    state: State


def decide(
    verdict: Verdict, *, attempt: int, policy: RetryPolicy, jitter: float, blameless: bool = False
) -> Retry | End:
    """`attempt` is the one that just ended, from 1; `jitter` is drawn from [0, 1) by the caller.

    `blameless`: the fault is one of the surroundings, which met this job as it would have met any other.
    """
    if verdict is Verdict.CANCELLED:
        return End(State.CANCELLED)
    if verdict is Verdict.WALL_CLOCK:
        return End(State.TIMED_OUT)
    if verdict is Verdict.INPUT_GONE:
        return End(State.SKIPPED)
    if verdict is Verdict.RELEASED:
        return Retry(0.0, counts=False)
    if FAULTS[verdict] is not Fault.OURS:
        return End(State.FAILED)
    if attempt >= policy.max_attempts and not blameless:
        return End(State.FAILED)
    ceiling = min(policy.backoff_cap_seconds, policy.backoff_seconds * 2 ** (attempt - 1))
    return Retry(ceiling * (0.5 + jitter / 2), counts=not blameless)
