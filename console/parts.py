"""The intake, which only some commands need."""

from handlers.intake import Intake
from infra.wiring import Stack


def make_intake(stack: Stack) -> Intake:
    """One per thread: it remembers parsed manifests without a lock."""
    return Intake(stack.store, stack.table, stack.queue, stack.clock, settle_seconds=stack.settings.settle_seconds)
