"""Shell patterns over paths, matched in time linear in the path, whatever the pattern.

Theory of operation. A pattern is a sequence of steps: one character, or a star of some kind. The steps that may come
next are the bits of one number, and each character of the path advances all of them at once (Shift-And), so nothing is
tried twice. Tenants write the patterns, and a process that serves all tenants matches them: a regular expression that
backtracks would let one tenant block the others. Patterns with at most two stars cannot backtrack badly and use a
regular expression, which is faster.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache

MAX_STARS = 16  # of one pattern; more are refused in a manifest
_REGEX_STARS = 2

_CHARACTER, _STAR, _ANYTHING, _FOLDERS = range(4)


@dataclass(frozen=True, slots=True)
class _Step:
    kind: int
    regex: str  # what it means as a regular expression


@dataclass(slots=True)
class Pattern:
    steps: tuple[_Step, ...]
    _regex: re.Pattern[str] | None = None
    _stars: dict[int, int] = field(default_factory=dict)  # kind: bits of its steps
    _steps: dict[str, int] = field(default_factory=dict)  # character: bits of the steps that match it

    def __post_init__(self) -> None:
        if stars(self.steps) <= _REGEX_STARS:
            self._regex = re.compile("".join(step.regex for step in self.steps), re.IGNORECASE | re.DOTALL)
        for kind in (_STAR, _ANYTHING, _FOLDERS):
            self._stars[kind] = sum(1 << n for n, step in enumerate(self.steps) if step.kind == kind)

    def matches(self, path: str) -> bool:
        return self._simulate(path) if self._regex is None else self._regex.fullmatch(path) is not None

    def _simulate(self, path: str) -> bool:
        star, anything, folders = self._stars[_STAR], self._stars[_ANYTHING], self._stars[_FOLDERS]
        every = star | anything | folders
        now, inside = _skip(1, every), 0  # steps that may come next; `**/` steps in the middle of a folder name
        for character in path:
            steps = self._steps.get(character)
            if steps is None:
                steps = self._steps[character] = self._steps_of(character)
            following = (now & steps) << 1 | now & anything
            if character == "/":
                following |= inside
                inside = 0
            else:
                following |= now & star
                inside |= now & folders
            now = _skip(following, every)
            if not now and not inside:
                return False
        return bool(now >> len(self.steps) & 1)

    def _steps_of(self, character: str) -> int:
        return sum(
            1 << n
            for n, step in enumerate(self.steps)
            if step.kind == _CHARACTER and re.fullmatch(step.regex, character, re.IGNORECASE | re.DOTALL)
        )


def stars(steps: tuple[_Step, ...]) -> int:
    return sum(step.kind != _CHARACTER for step in steps)


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Pattern:
    return Pattern(_parsed(pattern))


def count_stars(pattern: str) -> int:
    return stars(_parsed(pattern))


def _skip(now: int, stars: int) -> int:
    """A star may match nothing: the step after it may come next too."""
    while (more := now | (now & stars) << 1) != now:
        now = more
    return now


def _parsed(pattern: str) -> tuple[_Step, ...]:
    steps, at = list[_Step](), 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            steps.append(_Step(_FOLDERS, "(?:[^/]+/)*"))
            at += 3
        elif pattern.startswith("**", at):
            steps.append(_Step(_ANYTHING, ".*"))
            at += 2
        elif pattern[at] == "*":
            steps.append(_Step(_STAR, "[^/]*"))
            at += 1
        elif pattern[at] == "?":
            steps.append(_Step(_CHARACTER, "[^/]"))
            at += 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + 2)) > 0:
            inside = pattern[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            regex = f"(?!/)[{'^' + inside[1:] if inside[0] == '!' else inside}]"
            if not _compiles(regex):
                return tuple(_Step(_CHARACTER, re.escape(character)) for character in pattern)
            steps.append(_Step(_CHARACTER, regex))
            at = end + 1
        else:
            steps.append(_Step(_CHARACTER, re.escape(pattern[at])))
            at += 1
    return tuple(steps)


def _compiles(regex: str) -> bool:
    try:
        re.compile(regex, re.IGNORECASE)
    except re.error:
        return False
    return True
