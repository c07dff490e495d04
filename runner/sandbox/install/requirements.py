"""A requirements.txt as far as a box takes it: names, versions, markers and hashes. No other source, no options."""

import re
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

_HASH = re.compile(r"\s--hash=(\w+):([0-9a-fA-F]+)")
_COMMENT = re.compile(r"(^|\s)#.*$")


class Refused(Exception):
    """A requirement that cannot be met here; the message says which and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    requirement: Requirement
    hashes: frozenset[str]  # SHA-256, lower case; empty: none was given
    line: int

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)


def parse(text: str) -> tuple[list[Wanted], bool]:
    """What is asked for, and whether everything must come with a hash."""
    wanted: list[Wanted] = []
    strict = False
    for number, line in _logical_lines(text):
        if line == "--require-hashes":
            strict = True
            continue
        hashes = _HASH.findall(f" {line}")
        rest = _HASH.sub("", f" {line}").strip()
        if rest.startswith("-") or " --" in rest:
            raise Refused(f"requirements.txt line {number}: options other than --hash are not taken")
        if any(kind != "sha256" for kind, _ in hashes):
            raise Refused(f"requirements.txt line {number}: only sha256 hashes are taken")
        try:
            requirement = Requirement(rest)
        except InvalidRequirement as error:
            raise Refused(
                f"requirements.txt line {number}: not a name with versions; paths and addresses are not taken"
            ) from error
        if requirement.url is not None:
            raise Refused(
                f"requirements.txt line {number}: {requirement.name} names an address; put its wheel into the "
                "wheelhouse and name it by version"
            )
        found = frozenset(value.lower() for _, value in hashes)
        strict = strict or bool(found)
        wanted.append(Wanted(requirement=requirement, hashes=found, line=number))
    return wanted, strict


def _logical_lines(text: str) -> list[tuple[int, str]]:
    lines: list[tuple[int, str]] = []
    held, first = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = _COMMENT.sub("", raw).rstrip()
        first = first or number
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        whole = (held + line).strip()
        if whole:
            lines.append((first, whole))
        held, first = "", 0
    if held.strip():
        lines.append((first, held.strip()))
    return lines
