"""Parse each different text once: columns repeat themselves."""

from collections.abc import Callable
from typing import Any, Final

KEPT: Final = 50_000


class Bad:
    """Stands for a text that is not of the declared type. One instance: `BAD`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "BAD"


BAD: Final = Bad()


class Memo(dict[str | None, Any]):
    """`memo[text]` is what `parse(text)` returned; a blank is None.

    `bad` stays False until a text did not parse, so that clean chunks need no second look.
    """

    __slots__ = ("bad", "parse")

    def __init__(self, parse: Callable[[str], Any]) -> None:
        super().__init__()
        self.parse = parse
        self.bad = False
        self[None] = None

    def __missing__(self, text: str) -> Any:
        if len(self) > KEPT:
            self.forget()
        value = self[text] = self.parse(text)
        if value is BAD:
            self.bad = True
        return value

    def forget(self) -> None:
        self.clear()
        self[None] = None
