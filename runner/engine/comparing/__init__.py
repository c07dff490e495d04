"""Finished results, read again: two compared, one described as the expected files of a test, one cell explained."""

from runner.engine.comparing.inspection import carry_out

__all__ = ["carry_out"]
