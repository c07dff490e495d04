"""Parses the supported subset of requirements.txt, and selects wheels from a wheelhouse."""

import hashlib
import re
import stat
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

_HASH = re.compile(r"\s--hash=(\w+):([0-9a-fA-F]+)")
_COMMENT = re.compile(r"(^|\s)#.*$")


class RequirementRefused(Exception):
    """A requirement that cannot be met; the message names it and the remedy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    requirement: Requirement
    hashes: frozenset[str]  # SHA-256, lower case; empty: none was given
    line: int

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)


def parse(text: str) -> tuple[list[Wanted], bool]:
    """The requirements, and whether all must have hashes."""
    wanted: list[Wanted] = []
    strict = False
    for number, line in _logical_lines(text):
        if line == "--require-hashes":
            strict = True
            continue
        hashes = _HASH.findall(f" {line}")
        rest = _HASH.sub("", f" {line}").strip()
        if rest.startswith("-") or " --" in rest:
            raise RequirementRefused(f"requirements.txt line {number}: options other than --hash are not supported")
        if any(kind != "sha256" for kind, _ in hashes):
            raise RequirementRefused(f"requirements.txt line {number}: only sha256 hashes are supported")
        try:
            requirement = Requirement(rest)
        except InvalidRequirement as error:
            raise RequirementRefused(
                f"requirements.txt line {number}: not a name with versions; paths and URLs are not supported"
            ) from error
        if requirement.url is not None:
            raise RequirementRefused(
                f"requirements.txt line {number}: {requirement.name} is a URL; put its wheel into the "
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


MAX_METADATA = 4 * 1024 * 1024
_ROUNDS = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    name: str
    version: Version
    path: Path
    rank: int  # position of its best tag among those of this interpreter; lower is better

    @property
    def sha256(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


class Wheelhouse:
    """A folder of wheels. Anything else in it, such as source archives, is ignored."""

    def __init__(self, folder: Path) -> None:
        ranks = {tag: rank for rank, tag in enumerate(sys_tags())}
        self._wheels: dict[str, list[Wheel]] = {}
        for path in sorted(folder.glob("*.whl")):
            try:
                name, version, _, tags = parse_wheel_filename(path.name)
            except InvalidWheelFilename:
                continue
            fitting = [ranks[tag] for tag in tags if tag in ranks]
            if fitting:
                wheel = Wheel(name=name, version=version, path=path, rank=min(fitting))
                self._wheels.setdefault(name, []).append(wheel)

    def best(self, name: str, wanted: list[Requirement], hashes: frozenset[str]) -> Wheel:
        """The newest wheel that every requirement takes and, where hashes are given, whose hash is among them."""
        fitting = [
            wheel
            for wheel in self._wheels.get(name, ())
            if all(_allows(requirement, wheel.version) for requirement in wanted)
        ]
        for wheel in sorted(fitting, key=lambda found: (found.version, -found.rank), reverse=True):
            if not hashes or wheel.sha256 in hashes:
                return wheel
        asked = ", ".join(sorted({str(requirement.specifier) or "any version" for requirement in wanted}))
        why = "has another hash than the one given" if fitting else "is not in the wheelhouse for this Python"
        raise RequirementRefused(f"{name} ({asked}) {why}; ask the operator to add its wheel to ADE_WHEELHOUSE")


def resolve(wanted: list[Wanted], house: Wheelhouse, *, strict: bool) -> list[Wheel]:
    """One wheel for everything that is needed, directly or not. Newest first, no going back."""
    hashes: dict[str, frozenset[str]] = {}
    for item in wanted:
        hashes[item.name] = hashes.get(item.name, frozenset()) | item.hashes
    direct = [item.requirement for item in wanted if _applies(item.requirement, "")]
    chosen: dict[str, Wheel] = {}
    for _ in range(_ROUNDS):
        asked = _closure(direct, chosen)
        fresh = {}
        for name, requirements in asked.items():
            if strict and not hashes.get(name):
                raise RequirementRefused(f"{name} has no --hash in requirements.txt, and others have")
            fresh[name] = house.best(name, requirements, hashes.get(name, frozenset()))
        if fresh == chosen:
            return [chosen[name] for name in sorted(chosen)]
        chosen = fresh
    raise RequirementRefused("the requirements do not come to rest; give exact versions")


def _closure(direct: list[Requirement], chosen: dict[str, Wheel]) -> dict[str, list[Requirement]]:
    """Every name that is needed with what is asked of it, as far as the chosen wheels say."""
    asked: dict[str, list[Requirement]] = {}
    queue = list(direct)
    seen: set[str] = set()
    while queue:
        requirement = queue.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        name = canonicalize_name(requirement.name)
        asked.setdefault(name, []).append(requirement)
        wheel = chosen.get(name)
        if wheel is not None:
            for extra in ("", *requirement.extras):
                queue += [needed for needed in needs(wheel) if _applies(needed, extra)]
    return asked


def needs(wheel: Wheel) -> list[Requirement]:
    """What a wheel's own metadata asks for."""
    with zipfile.ZipFile(wheel.path) as archive:
        names = [n for n in archive.namelist() if n.count("/") == 1 and n.endswith(".dist-info/METADATA")]
        if len(names) != 1:
            raise RequirementRefused(f"{wheel.path.name} is not a wheel: it has no metadata")
        with archive.open(names[0]) as file:
            raw = file.read(MAX_METADATA)
    try:
        return [Requirement(line) for line in BytesHeaderParser().parsebytes(raw).get_all("Requires-Dist", [])]
    except InvalidRequirement as error:
        raise RequirementRefused(f"{wheel.path.name} has requirements that cannot be read") from error


def members(wheel: Wheel) -> Iterator[tuple[str, zipfile.ZipInfo, zipfile.ZipFile]]:
    """The files to install and where; scripts, data and path files are left out."""
    with zipfile.ZipFile(wheel.path) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            if stat.S_ISLNK(info.external_attr >> 16):
                raise RequirementRefused(f"{wheel.path.name} holds a link: {info.filename!r}")
            target = _target(info.filename)
            if target is not None:
                yield target, info, archive


def _target(name: str) -> str | None:
    top, _, rest = name.partition("/")
    if top.endswith(".data"):
        kind, _, name = rest.partition("/")
        if kind not in {"purelib", "platlib"}:
            return None
    path_file = "/" not in name and name.endswith(".pth")
    return None if path_file else name or None


def _allows(requirement: Requirement, version: Version) -> bool:
    return requirement.specifier.contains(version, prereleases=version.is_prerelease and _names_it(requirement))


def _names_it(requirement: Requirement) -> bool:
    return bool(requirement.specifier.prereleases)


def _applies(requirement: Requirement, extra: str) -> bool:
    if requirement.marker is None:
        return not extra
    environment = {key: str(value) for key, value in default_environment().items()}
    return requirement.marker.evaluate(environment | {"extra": extra})
