"""Verifies the outputs of a box, inside a box: that they are consistent, complete, and contain only values."""

from runner.engine.protocol import BadOutput
from runner.engine.verifying.order import carry_out

__all__ = ["BadOutput", "carry_out"]
