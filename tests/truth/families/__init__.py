"""The families of cases; importing this registers them all."""

from tests.truth.families import plain as _plain

__all__ = ["_plain"]
