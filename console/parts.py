"""The intake, which only some commands need."""

from handlers.intake import Intake
from infra.wiring import Stack


def make_intake(stack: Stack) -> Intake:
    return Intake.over(stack)
