"""Overlays: what one tenant, or one of its senders, changes of a standing workflow. Never a right.

`configs/<tenant>/<workflow>.overlay.json` is for all files of a tenant; one in `configs/<tenant>/<sender>/` for those
of that sender (core.keys.Place.sender) and of the senders below it. The most specific comes last. An overlay names how
files are written: synonyms, values, formats, reading, and lower limits. It has no key for config, network, notices,
tenants, subscriptions or inputs, so it cannot give what the manifest does not.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal, NamedTuple, TypeVar

from pydantic import Field, ValidationError

from core.budget import Budget, mistakes, read
from core.errors import ManifestInvalid, Problem
from core.fields import FIELD_NAME, FieldSpec, PlainValue, Strict, VersionOne
from core.keys import CONFIGS, INBOX, check_key, place
from core.manifests import MAX_FIELDS, Language, Limits, Manifest, Reading
from core.wording import nearest

MAX_OVERLAY_BYTES: Final = 256 * 1024
BUDGET: Final = Budget(bytes=MAX_OVERLAY_BYTES, values=20_000)
ENDING: Final = ".overlay.json"
_MAX_SYNONYMS: Final = 1000

Part = TypeVar("Part", FieldSpec, Reading)


class FieldOverlay(Strict):
    """How a sender writes one field: synonyms and values of `map` are added to those of the manifest, a value that both
    have means what the overlay says; anything else replaces what the manifest says."""

    synonyms: Annotated[tuple[str, ...], Field(max_length=_MAX_SYNONYMS)] = ()
    formats: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    day_first: bool | None = None
    decimal: Literal[".", ","] | None = None
    unit: Literal["share", "percent"] | None = None
    map: Annotated[dict[str, PlainValue], Field(min_length=1)] | None = None


class Overlay(Strict):
    """One overlay. A key that it does not have leaves the manifest as it is."""

    overlay: VersionOne
    description: Annotated[str, Field(max_length=2000)] | None = None
    fields: Annotated[dict[Annotated[str, Field(pattern=FIELD_NAME)], FieldOverlay], Field(max_length=MAX_FIELDS)] = (
        Field(default_factory=dict)
    )
    reading: Reading = Reading()
    limits: Limits = Limits()
    language: Language | None = None  # of this sender's reports

    def changes(self) -> Iterator[str]:
        """What it changes, as paths of the manifest."""
        for name, field in self.fields.items():
            yield from (f"fields.{name}.{key}" for key in FieldOverlay.model_fields if key in field.model_fields_set)
        yield from (f"reading.{key}" for key in Reading.model_fields if key in self.reading.model_fields_set)
        yield from (f"limits.{key}" for key in self.limits.model_dump(exclude_none=True))
        yield from ("language",) if self.language is not None else ()


class Applied(NamedTuple):
    """A manifest with an overlay, and what that changed."""

    manifest: Manifest
    changes: tuple[str, ...]


def is_overlay(key: str) -> bool:
    return key.startswith(CONFIGS) and key.endswith(ENDING)


def overlay_places(tenant: str, workflow: str, input_key: str) -> list[str]:
    """Where the overlays for a file may be, the most specific last."""
    sender = place(input_key).sender if input_key.startswith(INBOX) else ""
    parts = sender.split("/")[:-1]
    folders = ["".join(f"{part}/" for part in parts[:n]) for n in range(len(parts) + 1)]
    return [check_key(f"{CONFIGS}{tenant}/{folder}{workflow}{ENDING}") for folder in folders]


def parse_overlay(body: bytes) -> Overlay:
    """Raises ManifestInvalid with one problem per mistake."""
    found = read(body, Overlay, BUDGET)
    if isinstance(found, list):
        raise ManifestInvalid(found)
    return found


def apply(manifest: Manifest, overlay: Overlay) -> Applied:
    """A manifest with what an overlay names, and nothing else, changed. Raises ManifestInvalid if they do not fit."""
    problems = list[Problem]()
    known = {field.name: field for field in manifest.fields}
    fields = dict(known)
    for name, changed in overlay.fields.items():
        if name not in known:
            allowed = f"fields of the workflow: {', '.join(known)}"
            problems.append(Problem(f"$.fields.{name}", f"is not a field of it{nearest(name, known)}", allowed))
            continue
        named = changed.model_dump(exclude_unset=True)
        if changed.synonyms:
            named["synonyms"] = tuple(dict.fromkeys((*known[name].synonyms, *changed.synonyms)))
        if changed.map:
            named |= _mapped(known[name], changed.map)
        fields[name] = _merged(known[name], named, f"$.fields.{name}", problems)
    reading = _merged(manifest.reading, overlay.reading.model_dump(exclude_unset=True), "$.reading", problems)
    limits = _lowered(manifest.limits, overlay.limits, problems)
    if problems:
        raise ManifestInvalid(problems)
    language = overlay.language or manifest.language
    update = {"fields": tuple(fields.values()), "reading": reading, "limits": limits, "language": language}
    changes = tuple(overlay.changes())
    return Applied(_consistent(manifest.model_copy(update=update)) if changes else manifest, changes)


def _consistent(manifest: Manifest) -> Manifest:
    """A manifest whose parts were changed; raises ManifestInvalid if they contradict one another."""
    try:
        Manifest.model_validate(manifest.model_dump(by_alias=True, exclude_unset=True))
    except ValidationError as error:
        raise ManifestInvalid(mistakes(error, Manifest)) from None
    return manifest


def _mapped(field: FieldSpec, added: Mapping[str, str | int | float | bool]) -> dict[str, object]:
    """The values of a field's map with those of an overlay; case does not matter. Without a map, all others stay."""
    again = {key.strip().casefold() for key in added}
    others = {key: value for key, value in (field.map or {}).items() if key.strip().casefold() not in again}
    return {"map": {**others, **added}, **({} if field.map else {"otherwise": "keep"})}


def _merged(part: Part, named: Mapping[str, object], at: str, problems: list[Problem]) -> Part:
    """A part of a manifest with other values; adds what does not fit together to `problems`."""
    if not named:
        return part
    try:
        return type(part).model_validate(part.model_dump(exclude_unset=True) | dict(named))
    except ValidationError as error:
        problems += [
            Problem(f"{at}{p.path.removeprefix('$')}", p.problem, p.allowed) for p in mistakes(error, type(part))
        ]
        return part


def _lowered(limits: Limits, asked: Limits, problems: list[Problem]) -> Limits:
    lower, known = asked.model_dump(exclude_none=True), limits.model_dump(exclude_none=True)
    for key, value in lower.items():
        most = known.get(key, value)
        if value > most:
            problems.append(Problem(f"$.limits.{key}", f"is {value}, above that of the manifest", f"at most {most}"))
    return limits.model_copy(update=lower)
