"""The contract of the box: what goes in, what comes out, and the names and codes that both sides use.

The runner makes an `Order` and encodes it; the engine decodes it in the box (docs/reference/engine-order.md). The
engine encodes its events; the runner decodes them, and trusts none of them. Each part has one `encode` and one
`decode`, and checks itself whenever it is made: so the same conditions hold before writing and after reading, whichever
side is wrong.

Standard library only, and little of it: every box imports this module.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, Self, TypeVar

ORDER_VERSION: Final = 1

Json = dict[str, object]  # a JSON object that was just read, or is about to be written
Place = Path | int  # where a file is: its path, or the number of an open descriptor
Where = dict[str, str | int]  # where something went wrong: names and numbers, never a cell's value
T = TypeVar("T")


class OutputName(StrEnum):
    """Every file that a job writes, by the name that it has in the box, while staged and where it is published."""

    WORKBOOK = "normalized.xlsx"
    CSV = "normalized.csv"
    JSONL = "normalized.jsonl"
    PARQUET = "normalized.parquet"
    SCHEMA = "schema.json"  # of the three before it
    ARTIFACT = "artifact.json"
    REPORT = "report.html"
    REJECTED_ROWS = "rejects.jsonl"  # the box's description of REJECTS
    REJECTS = "rejects.xlsx"
    REVIEW = "review.json"
    REVIEW_PAGE = "review.html"
    PROFILE = "profile.json"
    DRAFT = "draft.json"  # of an order that asks for a draft of a manifest; never published
    LOG = "logs.txt"
    RESULT = "result.json"


# What the engine may write, what is written where its outputs are verified, and what a job's folder may hold.
ENGINE_FILES: Final = (OutputName.ARTIFACT, OutputName.REVIEW)
DATA_FORMATS: Final = {
    "xlsx": OutputName.WORKBOOK,
    "csv": OutputName.CSV,
    "jsonl": OutputName.JSONL,
    "parquet": OutputName.PARQUET,
}
DATA_FILES: Final = frozenset({*DATA_FORMATS.values(), OutputName.SCHEMA})
VERIFIED_FILES: Final = (OutputName.REPORT, OutputName.REVIEW_PAGE, OutputName.PROFILE)
REVIEW_FILES: Final = (OutputName.REVIEW, OutputName.REVIEW_PAGE)
AUDIT_FILES: Final = (OutputName.ARTIFACT, OutputName.REPORT, OutputName.REJECTS)
PUBLISHED_FILES: Final = frozenset({*DATA_FILES, OutputName.LOG, *AUDIT_FILES, *REVIEW_FILES})
_CORRECTED: Final = re.compile(r"corrected(-[0-9]{1,6})?(\.[a-z0-9]{1,10})?")  # a copy of an input (core/keys.py)


class EndCode(StrEnum):
    """How an engine says that a job ended without its workbook."""

    INPUT_UNREADABLE = "input_unreadable"
    NOTHING_MAPPED = "nothing_mapped"
    EMPTY_INPUT = "empty_input"
    ROWS_REJECTED = "rows_rejected"
    DRIFTED = "drifted"
    CORRECTS = "mends"  # an input holds corrected rows of another job's rejects
    NEEDS_REVIEW = "needs_review"
    RULE_ERROR = "rule_error"
    CONFIG_REFUSED = "config_refused"
    OUT_OF_MEMORY = "out_of_memory"
    BAD_OUTPUT = "bad_output"  # only from a box that verifies another's outputs
    ENGINE_ERROR = "engine_error"


# Ends without a workbook whose other outputs are published: they show what was found, or what is asked.
# The verdicts of these ends (core/verdicts.py) have the same values.
EXPLAINED: Final[frozenset[str]] = frozenset(
    {
        EndCode.NOTHING_MAPPED,
        EndCode.EMPTY_INPUT,
        EndCode.ROWS_REJECTED,
        EndCode.DRIFTED,
        EndCode.NEEDS_REVIEW,
    }
)

PRIMARY, AUXILIARY, CORRECTED = "primary", "auxiliary", "mended"  # roles of inputs
_ROLES: Final = frozenset({PRIMARY, AUXILIARY, CORRECTED})
REPORTED_PASSES: Final = frozenset({"structure", "mapping", "transform", "validate", "write"})
TIMED_PASSES: Final = ("structure", "mapping", "read", "transform", "validate", "write")


class ContractBroken(Exception):
    """A side of the contract broke it; the message names the part and holds nothing that a box wrote."""


def require(condition: object, what: str) -> None:
    """Raise ContractBroken unless a condition of the contract holds."""
    if not condition:
        raise ContractBroken(what)


def check_published(names: Iterable[str], *, succeeded: bool) -> None:
    """Check the names of files that are to be published; raises ContractBroken.

    Before they are staged, when the attempt is committed, and again when they are copied: no other name may ever reach
    a job's folder, and only a success has files with data.
    """
    listed = list(names)
    for name in listed:
        known = name in PUBLISHED_FILES or _CORRECTED.fullmatch(name)
        require(known, "a file that no job publishes")
    require(len(set(listed)) == len(listed), "a file twice")
    require(succeeded or DATA_FILES.isdisjoint(listed), "data of a job that did not succeed")


def data_files(formats: Iterable[str]) -> tuple[OutputName, ...]:
    """The files that these formats give; whatever is not a workbook comes with its schema."""
    named = tuple(DATA_FORMATS[one] for one in formats)
    return named if set(named) <= {OutputName.WORKBOOK} else (*named, OutputName.SCHEMA)


class _Object:
    """A JSON object that is being decoded: every access checks a type, and what is wrong is named by its key."""

    __slots__ = ("_at", "raw")

    def __init__(self, raw: object, at: str = "") -> None:
        if not isinstance(raw, dict):
            raise ContractBroken(f"{at or 'it'} is not an object")
        self.raw = raw
        self._at = f"{at}." if at else ""

    def _value(self, key: str, kind: type[T], default: T | None) -> T:
        """The value of a key, of a type; the default if it is absent and there is one."""
        value = self.raw.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ContractBroken(f"{self._at}{key} is missing" if value is None else f"{self._at}{key} is of no use")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        return self._value(key, str, default)

    def optional(self, key: str) -> str | None:
        return None if self.raw.get(key) is None else self.text(key)

    def count(self, key: str, default: int | None = None) -> int:
        value = self._value(key, int, default)
        require(value >= 0, f"{self._at}{key} is below zero")
        return value

    def flag(self, key: str) -> bool:
        return self._value(key, bool, False)

    def object(self, key: str, *, needed: bool = False) -> Json:
        return dict(self._value(key, dict, None if needed else {}))

    def child(self, key: str) -> "_Object | None":
        return None if self.raw.get(key) is None else _Object(self.raw[key], f"{self._at}{key}")

    def children(self, key: str, *, needed: bool = False) -> "list[_Object]":
        items = self._value(key, list, None if needed else [])
        return [_Object(item, f"{self._at}{key}[{index}]") for index, item in enumerate(items)]

    def texts(self, key: str) -> tuple[str, ...]:
        items = self._value(key, list, [])
        require(all(isinstance(item, str) for item in items), f"{self._at}{key} is not a list of texts")
        return tuple(items)

    def counts(self, key: str) -> tuple[int, ...]:
        items = self._value(key, list, [])
        are_counts = all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in items)
        require(are_counts, f"{self._at}{key} is not a list of counts")
        return tuple(items)

    def path(self, key: str = "path") -> Path:
        return Path(self.text(key))

    def place(self, key: str = "path") -> Place:
        value = self.raw.get(key)
        return self.count(key) if isinstance(value, int) else self.path(key)

    def places(self, key: str, *, needed: bool = False) -> dict[str, Place]:
        children = _Object(self.object(key, needed=needed), f"{self._at}{key}")
        return {name: children.place(name) for name in children.raw}


def _written(place: Place) -> str | int:
    """A place as an order writes it."""
    return place if isinstance(place, int) else str(place)


def _all_below(folder: Path, places: Mapping[str, Place]) -> dict[str, Place]:
    """Places with relative paths below a folder."""
    return {name: place if isinstance(place, int) else folder / place for name, place in places.items()}


def _version(raw: _Object) -> None:
    if raw.count("order") != ORDER_VERSION:
        raise OtherVersion("the order has another version")


class OtherVersion(ContractBroken):
    """The order is of a version that this engine does not know."""


@dataclass(frozen=True, kw_only=True)
class JobFacts:
    """Which job, and which attempt at it."""

    job_id: str = ""
    tenant: str = ""
    workflow: str = ""
    attempt: int = 0

    def encode(self) -> Json:
        """Its JSON form."""
        return {"job_id": self.job_id, "tenant": self.tenant, "workflow": self.workflow, "attempt": self.attempt}

    @classmethod
    def decode(cls, raw: object) -> Self:
        """From its JSON form; raises ContractBroken."""
        read = _Object(raw, "job")
        return cls(
            job_id=read.text("job_id", ""),
            tenant=read.text("tenant", ""),
            workflow=read.text("workflow", ""),
            attempt=read.count("attempt", 0),
        )


@dataclass(frozen=True, kw_only=True)
class OriginJob:
    """The job whose rejects a file corrects, and the names of that job's inputs, by which keys number them."""

    job: str
    inputs: tuple[str, ...]
    knows: tuple[int, ...] = ()  # which of the corrected files before it that job's result had, by number
    earlier: bool = False  # of an earlier drop than this one
    key: str = ""  # where it was dropped; a later file with the same key replaces the rows that it corrects

    def encode(self) -> Json:
        """Its JSON form."""
        return {
            "job": self.job,
            "inputs": list(self.inputs),
            "key": self.key,
            "knows": list(self.knows),
            "earlier": self.earlier,
        }

    @classmethod
    def decode(cls, read: _Object) -> Self:
        """From its JSON form; raises ContractBroken."""
        return cls(
            job=read.text("job"),
            inputs=read.texts("inputs"),
            knows=read.counts("knows"),
            earlier=read.flag("earlier"),
            key=read.text("key", ""),
        )


@dataclass(frozen=True, kw_only=True)
class InputFile:
    role: str
    name: str
    path: Path
    size: int = 0
    sha256: str = ""
    file: str = ""  # the file's own name, a hint for the format, if `name` is not
    corrects: OriginJob | None = None

    def __post_init__(self) -> None:
        require(self.role in _ROLES, "an input has no known role")
        require((self.role == CORRECTED) == (self.corrects is not None), "an input corrects, or has the role to")

    @property
    def hint(self) -> str:
        return self.file or self.name

    @property
    def facts(self) -> "InputFacts":
        """What documents say of it."""
        return InputFacts(role=self.role, name=self.name, sha256=self.sha256, size=self.size)

    def encode(self) -> Json:
        """Its JSON form."""
        return {
            "role": self.role,
            "name": self.name,
            **({"file": self.file} if self.file else {}),
            "path": str(self.path),
            "size": self.size,
            "sha256": self.sha256,
            **({"mends": self.corrects.encode()} if self.corrects is not None else {}),
        }

    @classmethod
    def decode(cls, read: _Object) -> Self:
        """From its JSON form; raises ContractBroken."""
        corrects = read.child("mends")
        return cls(
            role=read.text("role"),
            name=read.text("name"),
            path=read.path(),
            size=read.count("size", 0),
            sha256=read.text("sha256", ""),
            file=read.text("file", ""),
            corrects=None if corrects is None else OriginJob.decode(corrects),
        )


@dataclass(frozen=True, kw_only=True)
class InputFacts:
    """An input as artifact.json and review.json name it."""

    role: str
    name: str
    sha256: str
    size: int

    def encode(self) -> Json:
        """Its JSON form."""
        return {"role": self.role, "name": self.name, "sha256": self.sha256, "size": self.size}

    @classmethod
    def decode(cls, read: _Object) -> Self:
        """From its JSON form; raises ContractBroken."""
        return cls(role=read.text("role"), name=read.text("name"), sha256=read.text("sha256"), size=read.count("size"))


@dataclass(frozen=True, kw_only=True)
class StagedFile:
    """A copy of an object: a memory, or the profile of the sender's last drop."""

    path: Path
    key: str = ""
    version: str = ""
    sha256: str = ""

    def encode(self) -> Json:
        """Its JSON form."""
        return {"path": str(self.path), **self.facts()}

    def facts(self) -> dict[str, str]:
        """How the artifact names it."""
        return {"key": self.key, "version": self.version, "sha256": self.sha256}

    @classmethod
    def decode(cls, read: _Object) -> Self:
        """From its JSON form; raises ContractBroken."""
        path = read.path()
        key = read.text("key", "") or str(path)
        return cls(path=path, key=key, version=read.text("version", ""), sha256=read.text("sha256", ""))


@dataclass(frozen=True, kw_only=True)
class AppliedOverlay:
    """An overlay that is part of the order's manifest, and the paths of what it changed there."""

    key: str
    version: str
    sha256: str
    changes: tuple[str, ...]

    def encode(self) -> Json:
        """As the order and the artifact name it."""
        return {"key": self.key, "version": self.version, "sha256": self.sha256, "changes": list(self.changes)}

    @classmethod
    def decode(cls, read: _Object) -> Self:
        """From its JSON form; raises ContractBroken."""
        return cls(
            key=read.text("key"),
            version=read.text("version", ""),
            sha256=read.text("sha256"),
            changes=read.texts("changes"),
        )


@dataclass(frozen=True, kw_only=True)
class DecisionFile:
    """A copy of a person's decision."""

    path: Path
    key: str
    version: str
    sha256: str
    by: str

    def encode(self) -> Json:
        """Its JSON form."""
        return {"path": str(self.path), **self.facts()}

    def facts(self) -> dict[str, str]:
        """How artifact.json and review.json name it."""
        return {"key": self.key, "version": self.version, "sha256": self.sha256, "by": self.by}

    @classmethod
    def decode(cls, read: _Object) -> Self:
        """From its JSON form; raises ContractBroken."""
        return cls(
            path=read.path(),
            key=read.text("key", ""),
            version=read.text("version", ""),
            sha256=read.text("sha256", ""),
            by=read.text("by", ""),
        )


@dataclass(frozen=True, kw_only=True)
class SandboxFacts:
    """What the box is, as the driver probed it; the artifact repeats it."""

    driver: str = ""
    level: str = ""
    rungs: Mapping[str, bool] | None = None
    gaps: tuple[str, ...] | None = None

    def encode(self) -> Json:
        """Its JSON form."""
        return {
            "driver": self.driver,
            "level": self.level,
            **({"rungs": dict(self.rungs)} if self.rungs is not None else {}),
            **({"gaps": list(self.gaps)} if self.gaps is not None else {}),
        }

    @classmethod
    def decode(cls, raw: object) -> Self:
        """From its JSON form; raises ContractBroken."""
        read = _Object(raw, "sandbox")
        rungs = read.child("rungs")
        return cls(
            driver=read.text("driver", ""),
            level=read.text("level", ""),
            rungs=None if rungs is None else {name: rungs.flag(name) for name in rungs.raw},
            gaps=read.texts("gaps") if read.raw.get("gaps") is not None else None,
        )


@dataclass(frozen=True, kw_only=True)
class DataTypes:
    """What the data files of a job must look like: the manifest's `output`, and the type and scale of each field."""

    output: Mapping[str, object]
    types: Mapping[str, tuple[str, int | None]]

    def encode(self) -> Json:
        """Its JSON form."""
        return {
            "output": dict(self.output),
            "types": {name: {"type": kind, "scale": scale} for name, (kind, scale) in self.types.items()},
        }

    @classmethod
    def decode(cls, read: _Object) -> Self:
        """From its JSON form; raises ContractBroken."""
        types = _Object(read.object("types"), "data.types")
        fields = {name: _Object(facts, "a type") for name, facts in types.raw.items()}
        return cls(
            output=read.object("output"),
            types={
                name: (one.text("type"), one.count("scale") if one.raw.get("scale") is not None else None)
                for name, one in fields.items()
            },
        )


@dataclass(frozen=True, kw_only=True)
class VerifyOrder:
    """An order to verify outputs: what the runner knows about the job itself, and where the outputs are."""

    job: JobFacts
    params: Mapping[str, object]
    config_digest: str
    overlays: tuple[AppliedOverlay, ...] = ()
    known: tuple[InputFacts, ...]  # the inputs of the job
    title: str = ""
    formats: tuple[str, ...] = ()  # number formats of the manifest
    decision: Mapping[str, str] | None = None
    answer_to: str | None = None
    memories: tuple[Mapping[str, str], ...] = ()
    why: str = "never"  # why the job may ask a person
    data: DataTypes | None = None  # None: the workbook is the only file with data
    removes: tuple[str, ...] = ()  # as what the manifest's `rows` may leave rows out
    audit: bool = False  # there is no workbook, and the artifact explains why
    review: bool = False  # the job asks
    written: Mapping[str, Place] = field(default_factory=dict)  # the outputs to verify
    outputs: Mapping[str, Place] = field(default_factory=dict)
    sandbox: SandboxFacts = SandboxFacts()

    def ended(self, code: str | None) -> Self:
        """The same order for a job that ended so; None: with its workbook."""
        return replace(self, audit=code in EXPLAINED, review=code == EndCode.NEEDS_REVIEW)

    def below(self, folder: Path) -> Self:
        """The same order with its paths below a folder."""
        return replace(
            self,
            written=_all_below(folder, self.written),
            outputs=_all_below(folder, self.outputs),
        )

    def encode(self) -> Json:
        """Its JSON form."""
        return {
            "order": ORDER_VERSION,
            "job": self.job.encode(),
            "params": dict(self.params),
            "config": {"digest": self.config_digest, **_overlays(self.overlays)},
            "verify": {
                "inputs": [one.encode() for one in self.known],
                "title": self.title,
                "formats": list(self.formats),
                "decision": None if self.decision is None else dict(self.decision),
                "answer_to": self.answer_to,
                "memories": [dict(one) for one in self.memories],
                "why": self.why,
                "removes": list(self.removes),
                "audit": self.audit,
                "review": self.review,
                **({"data": self.data.encode()} if self.data is not None else {}),
            },
            "inputs": [{"name": name, "path": _written(place)} for name, place in self.written.items()],
            "outputs": {name: _written(place) for name, place in self.outputs.items()},
            "sandbox": self.sandbox.encode(),
        }

    @classmethod
    def decode(cls, raw: object) -> Self:
        """From its JSON form; raises ContractBroken."""
        read = _Object(raw)
        _version(read)
        verify = _Object(read.object("verify", needed=True), "verify")
        decision, data = verify.child("decision"), verify.child("data")
        config = read.child("config")
        return cls(
            job=JobFacts.decode(read.object("job")),
            params=read.object("params"),
            config_digest="" if config is None else config.text("digest", ""),
            overlays=() if config is None else tuple(map(AppliedOverlay.decode, config.children("overlays"))),
            known=tuple(map(InputFacts.decode, verify.children("inputs"))),
            title=verify.text("title", ""),
            formats=verify.texts("formats"),
            decision=None if decision is None else _texts(decision, ("key", "version", "sha256", "by")),
            answer_to=verify.optional("answer_to"),
            memories=tuple(_texts(one, ("key", "version", "sha256")) for one in verify.children("memories")),
            why=verify.text("why", "never"),
            data=None if data is None else DataTypes.decode(data),
            removes=verify.texts("removes"),
            audit=verify.flag("audit"),
            review=verify.flag("review"),
            written={one.text("name"): one.place() for one in read.children("inputs")},
            outputs=read.places("outputs"),
            sandbox=SandboxFacts.decode(read.object("sandbox")),
        )


def _overlays(overlays: Sequence[AppliedOverlay]) -> Json:
    return {"overlays": [one.encode() for one in overlays]} if overlays else {}


@dataclass(frozen=True, kw_only=True)
class DraftRequest:
    """An order with this asks for the draft of a manifest instead of a job: its inputs are samples."""

    known_only: bool = False  # columns that are none of the manifest's fields are left out
    rules: bool = True  # infer rules too; a contract has its own
    same: Mapping[str, str] = field(default_factory=dict)  # header -> the header of the same field in an earlier sample

    def encode(self) -> Json:
        """Its JSON form."""
        return {"known_only": self.known_only, "rules": self.rules, "same": dict(self.same)}

    @classmethod
    def decode(cls, read: _Object) -> Self:
        """From its JSON form; raises ContractBroken."""
        same = _Object(read.object("same"), "draft.same")
        return cls(
            known_only=read.flag("known_only"),
            rules=read.flag("rules"),
            same={header: same.text(header) for header in same.raw},
        )


def _texts(read: _Object, keys: Iterable[str]) -> dict[str, str]:
    return {key: read.text(key) for key in keys}


@dataclass(frozen=True, kw_only=True)
class Order:
    """One job for the engine. Paths are below the job's folder until a driver or the engine says where that is."""

    job: JobFacts = JobFacts()
    manifest: Mapping[str, object]  # validated, every default filled in (core/manifests.py)
    params: Mapping[str, object] = field(default_factory=dict)
    inputs: tuple[InputFile, ...]
    config: Path | None = None  # the folder of its Python
    config_digest: str = ""
    overlays: tuple[AppliedOverlay, ...] = ()  # already in the manifest
    layer: str | None = None  # the folder of its installed requirements
    answer_to: str | None = None  # where a decision on it is expected
    decision: DecisionFile | None = None
    accept: bool = False  # nobody decided in time: ask nothing
    sender: str | None = None  # whose habits the memories are asked for
    memories: tuple[StagedFile, ...] = ()  # the most specific last
    headers: Path | None = None  # those of all memories, indexed; the memories' files then have none
    refused: Mapping[str, str] = field(default_factory=dict)  # memories that cannot be used, and why
    previous: StagedFile | None = None  # the profile of the sender's last drop
    lost: tuple[str, ...] = ()  # names of corrected files of earlier drops that are gone
    outputs: Mapping[str, Place] = field(default_factory=dict)
    sandbox: SandboxFacts = SandboxFacts()
    verification: VerifyOrder | None = None  # to be carried out after the job, if no rule can run
    draft: DraftRequest | None = None

    def __post_init__(self) -> None:
        before = 0  # corrected files so far
        for one in self.inputs:
            if one.corrects is not None:
                require(all(n < before for n in one.corrects.knows), "a corrected file knows one that is not before it")
                before += 1

    @property
    def primary(self) -> list[InputFile]:
        return self.inputs_as(PRIMARY)

    @property
    def auxiliary(self) -> list[InputFile]:
        return self.inputs_as(AUXILIARY)

    @property
    def corrections(self) -> list[InputFile]:
        """Files whose rows replace rows of the primary inputs, from the oldest to the newest."""
        return self.inputs_as(CORRECTED)

    def inputs_as(self, role: str) -> list[InputFile]:
        return [one for one in self.inputs if one.role == role]

    def below(self, folder: Path) -> Self:
        """The same order with its paths below a folder; what is absolute stays."""

        def moved(one: StagedFile) -> StagedFile:
            return replace(one, path=folder / one.path)

        return replace(
            self,
            inputs=tuple(replace(one, path=folder / one.path) for one in self.inputs),
            config=None if self.config is None else folder / self.config,
            decision=None if self.decision is None else replace(self.decision, path=folder / self.decision.path),
            memories=tuple(map(moved, self.memories)),
            headers=None if self.headers is None else folder / self.headers,
            previous=None if self.previous is None else moved(self.previous),
            verification=None if self.verification is None else self.verification.below(folder),
            outputs=_all_below(folder, self.outputs),
        )

    def encode(self) -> Json:
        """Its JSON form."""
        return {
            "order": ORDER_VERSION,
            "job": self.job.encode(),
            "manifest": dict(self.manifest),
            "params": dict(self.params),
            "answer_to": self.answer_to,
            "inputs": [one.encode() for one in self.inputs],
            "config": {
                "digest": self.config_digest,
                "path": None if self.config is None else str(self.config),
                **_overlays(self.overlays),
            },
            **self._encode_learnt(),
            **({"lost": list(self.lost)} if self.lost else {}),
            "layer": self.layer,
            "outputs": {name: _written(place) for name, place in self.outputs.items()},
            "sandbox": self.sandbox.encode(),
            **({"verification": self.verification.encode()} if self.verification is not None else {}),
            **({"draft": self.draft.encode()} if self.draft is not None else {}),
        }

    def _encode_learnt(self) -> Json:
        """What is known beside the inputs; absent if there is none."""
        previous = None if self.previous is None else self.previous.encode()
        if previous is not None:
            del previous["version"]  # the newest counts, whatever its version
        refused = [{"key": key, "why": why} for key, why in self.refused.items()]
        known: Json = {
            "decision": None if self.decision is None else self.decision.encode(),
            "review": "accept" if self.accept else None,
            "sender": self.sender,
            "memories": [one.encode() for one in self.memories] or None,
            "headers": None if self.headers is None else {"path": str(self.headers)},
            "refused": refused or None,
            "previous": previous,
        }
        return {name: value for name, value in known.items() if value is not None}

    @classmethod
    def decode(cls, raw: object) -> Self:
        """From its JSON form; raises ContractBroken."""
        read = _Object(raw)
        _version(read)
        config, headers, previous = read.child("config"), read.child("headers"), read.child("previous")
        decision, verification, draft = read.child("decision"), read.child("verification"), read.child("draft")
        return cls(
            job=JobFacts.decode(read.object("job")),
            manifest=read.object("manifest", needed=True),
            params=read.object("params"),
            inputs=tuple(map(InputFile.decode, read.children("inputs", needed=True))),
            config=Path(path) if config is not None and (path := config.text("path", "")) else None,
            config_digest="" if config is None else config.text("digest", ""),
            overlays=() if config is None else tuple(map(AppliedOverlay.decode, config.children("overlays"))),
            layer=read.optional("layer"),
            answer_to=read.optional("answer_to"),
            decision=None if decision is None else DecisionFile.decode(decision),
            accept=read.text("review", "") == "accept",
            sender=read.optional("sender"),
            memories=tuple(map(StagedFile.decode, read.children("memories"))),
            headers=None if headers is None else headers.path(),
            refused={one.text("key"): one.text("why") for one in read.children("refused")},
            previous=None if previous is None else StagedFile.decode(previous),
            lost=read.texts("lost"),
            outputs=read.places("outputs", needed=True),
            sandbox=SandboxFacts.decode(read.object("sandbox")),
            verification=None if verification is None else VerifyOrder.decode(verification.raw),
            draft=None if draft is None else DraftRequest.decode(draft),
        )


class InspectName(StrEnum):
    """Every file that an inspection of finished results reads or writes."""

    COMPARISON = "comparison.json"
    EXPECTED_ROWS = "expected.csv"
    EXPECTED = "expected.json"
    EXPLANATION = "explanation.json"
    SPOOL = "spool"  # rows that do not fit in memory while two results are compared


COMPARE, DESCRIBE, EXPLAIN = "compare", "describe", "explain"  # what an inspection does
BY_KEY, BY_SOURCE = "key", "source"  # how the rows of two results are paired
_INSPECTIONS: Final = frozenset({COMPARE, DESCRIBE, EXPLAIN})


@dataclass(frozen=True, kw_only=True)
class ResultFiles:
    """A finished result: its rows (normalized.xlsx, expected.csv) and its facts (artifact.json, expected.json)."""

    rows: Path | None = None  # None: it ended without rows
    facts: Path | None = None
    status: str = ""  # how the job ended; expected.json has its own

    def below(self, folder: Path) -> Self:
        """The same with relative paths below a folder."""
        rows, facts = self.rows, self.facts
        return replace(
            self, rows=None if rows is None else folder / rows, facts=None if facts is None else folder / facts
        )

    def encode(self) -> Json:
        """Its JSON form."""
        paths = {"rows": self.rows, "facts": self.facts}
        return {"status": self.status, **{name: str(path) for name, path in paths.items() if path is not None}}

    @classmethod
    def decode(cls, read: _Object) -> Self:
        """From its JSON form; raises ContractBroken."""
        rows, facts = read.optional("rows"), read.optional("facts")
        return cls(
            rows=None if rows is None else Path(rows),
            facts=None if facts is None else Path(facts),
            status=read.text("status", ""),
        )


@dataclass(frozen=True, kw_only=True)
class InspectOrder:
    """An order to read finished results: compare two, describe one as the expected files of a test, explain a cell."""

    what: str
    results: tuple[ResultFiles, ...]
    by: str = ""  # how rows are paired; empty: by key where there is one, else by source
    values: bool = False  # whether a comparison shows the values that differ
    cell: str = ""  # the cell to explain
    outputs: Mapping[str, Place] = field(default_factory=dict)
    sandbox: SandboxFacts = SandboxFacts()

    def __post_init__(self) -> None:
        require(self.what in _INSPECTIONS, "an unknown inspection")
        require(len(self.results) == (2 if self.what == COMPARE else 1), "an inspection of too many or few results")

    def below(self, folder: Path) -> Self:
        """The same order with its paths below a folder."""
        results = tuple(one.below(folder) for one in self.results)
        return replace(self, results=results, outputs=_all_below(folder, self.outputs))

    def encode(self) -> Json:
        """Its JSON form."""
        return {
            "order": ORDER_VERSION,
            "inspect": self.what,
            "results": [one.encode() for one in self.results],
            "by": self.by,
            "values": self.values,
            "cell": self.cell,
            "outputs": {name: _written(place) for name, place in self.outputs.items()},
            "sandbox": self.sandbox.encode(),
        }

    @classmethod
    def decode(cls, raw: object) -> Self:
        """From its JSON form; raises ContractBroken."""
        read = _Object(raw)
        _version(read)
        return cls(
            what=read.text("inspect"),
            results=tuple(map(ResultFiles.decode, read.children("results", needed=True))),
            by=read.text("by", ""),
            values=read.flag("values"),
            cell=read.text("cell", ""),
            outputs=read.places("outputs"),
            sandbox=SandboxFacts.decode(read.object("sandbox")),
        )


MAX_LINE: Final = 64 * 1024  # bytes of an event
MAX_MESSAGE: Final = 2000
_MAX_NAME: Final = 200
_MAX_LEVEL: Final = 20
_MAX_PLACE: Final = 500
_MOST: Final = 2**53
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
WHERE_KEYS: Final = frozenset(
    {"input", "sheet", "table", "cell", "field", "rule", "file", "line", "reason", "remedy", "pass", "job"}
    | {"exception", "trace"}
)


@dataclass(frozen=True)
class PassProgress:
    step: str  # the pass
    done: int
    total: int | None = None
    table: str | None = None

    def __post_init__(self) -> None:
        require(self.step in REPORTED_PASSES, "progress of an unknown pass")

    def encode(self) -> Json:
        """Its JSON form."""
        return {"event": "progress", "pass": self.step, "done": self.done, "total": self.total, "table": self.table}

    @classmethod
    def decode(cls, raw: Json) -> Self:
        """From its JSON form; raises ContractBroken."""
        step, total, table = raw.get("pass"), raw.get("total"), raw.get("table")
        return cls(
            step if isinstance(step, str) else "",
            _count(raw.get("done", 0), "done"),
            None if total is None else _count(total, "total"),
            None if table is None else bounded(table, _MAX_NAME),
        )


@dataclass(frozen=True)
class LogLine:
    """A line of the engine's own log; never a cell's value."""

    level: str
    name: str
    fields: Json

    def encode(self) -> Json:
        """Its JSON form."""
        return {"event": "log", "level": self.level, "name": self.name, "fields": self.fields}

    @classmethod
    def decode(cls, raw: Json) -> Self:
        """From its JSON form; raises ContractBroken."""
        fields = raw.get("fields", {})
        if not isinstance(fields, dict):
            raise ContractBroken("log fields that are not an object")
        return cls(bounded(raw.get("level", "info"), _MAX_LEVEL), bounded(raw.get("name", ""), _MAX_NAME), fields)


@dataclass(frozen=True)
class EndError:
    """Why a job ended without its workbook. Nothing in it may hold a cell's value."""

    code: EndCode
    message: str
    where: Where = field(default_factory=dict)

    def encode(self) -> Json:
        """Its JSON form."""
        return {"code": str(self.code), "message": self.message, "where": self.where}

    @classmethod
    def decode(cls, raw: Json) -> Self:
        """From its JSON form; raises ContractBroken."""
        where = raw.get("where", {})
        if not isinstance(where, dict):
            raise ContractBroken("a place that is not an object")
        return cls(
            EndCode(str(raw["code"])),
            bounded(raw.get("message", ""), MAX_MESSAGE),
            {
                key: value if isinstance(value, int) else bounded(value, _MAX_PLACE)
                for key, value in where.items()
                if key in WHERE_KEYS and value is not None
            },
        )


@dataclass(frozen=True)
class FinalEvent:
    """The last event of a job, or (`verified`, right before it) of the verification of its own outputs."""

    summary: Json = field(default_factory=dict)  # of a success, as the box claims it
    error: EndError | None = None
    verified: bool = False

    def encode(self) -> Json:
        """Its JSON form."""
        outcome: Json = {"ok": True, "summary": self.summary}
        if self.error is not None:
            outcome = {"ok": False, "error": self.error.encode()}
        return {"event": "verified" if self.verified else "end", **outcome}

    @classmethod
    def decode(cls, raw: Json) -> Self:
        """From its JSON form; raises ContractBroken."""
        ok, verified = raw.get("ok"), raw.get("event") == "verified"
        if ok is True:
            summary = raw.get("summary", {})
            if not isinstance(summary, dict):
                raise ContractBroken("a summary that is not an object")
            return cls(summary, verified=verified)
        error = raw.get("error")
        if ok is not False or not isinstance(error, dict) or error.get("code") not in tuple(EndCode):
            raise ContractBroken("a final line with neither success nor a known error")
        return cls(error=EndError.decode(error), verified=verified)


Event = PassProgress | LogLine | FinalEvent
_EVENTS: Final[Mapping[str, Callable[[Json], Event]]] = {
    "progress": PassProgress.decode,
    "log": LogLine.decode,
    "end": FinalEvent.decode,
    "verified": FinalEvent.decode,
}


def decode_event(raw: Json) -> Event | None:
    """An event of a box, reduced to its known parts; None for an unknown one. Raises ContractBroken."""
    name = raw.get("event")
    if not isinstance(name, str):
        raise ContractBroken("a line without an event")
    decode = _EVENTS.get(name)
    return None if decode is None else decode(raw)


def _count(value: object, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST:
        raise ContractBroken(f"{key} is not a count")
    return value


def bounded(value: object, most: int) -> str:
    """A box's text in at most so many characters, safe to show."""
    text = value if isinstance(value, str) else json.dumps(value)
    text = text if len(text) <= most else text[: most - 1] + "…"
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def printable(line: str) -> str:
    """A line that is safe to show on a terminal or a page: control characters become visible escapes."""
    return "".join(
        char if char == "\t" or unicodedata.category(char) not in _HIDDEN else _escaped(char) for char in line
    )


def _escaped(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
