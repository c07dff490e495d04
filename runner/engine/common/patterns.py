"""Regular expressions that are compiled on first use: a small job needs less than half of them."""

import re
from collections.abc import Callable
from functools import cached_property


class LazyPattern:
    """A regular expression for texts, compiled when one of its methods is first asked for."""

    def __init__(self, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        """Remember the expression; its methods are those of a compiled one."""
        self.pattern = pattern
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self._flags)

    @cached_property
    def match(self) -> Callable[[str], re.Match[str] | None]:
        return self._compiled.match

    @cached_property
    def fullmatch(self) -> Callable[[str], re.Match[str] | None]:
        return self._compiled.fullmatch

    @cached_property
    def search(self) -> Callable[[str], re.Match[str] | None]:
        return self._compiled.search

    @cached_property
    def findall(self) -> Callable[[str], list[str]]:
        return self._compiled.findall

    @cached_property
    def sub(self) -> Callable[..., str]:
        return self._compiled.sub
