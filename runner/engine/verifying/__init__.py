"""The outputs of a box, looked at in a box of their own: whether they are true, whole, and no more than values."""

from runner.engine.protocol import BadOutput
from runner.engine.verifying.order import carry_out

__all__ = ["BadOutput", "carry_out"]
