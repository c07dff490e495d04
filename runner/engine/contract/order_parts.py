"""The parts of an order: the job, its files, what a person decided, and the sandbox it runs in."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from runner.engine.contract.decoding import Json, JsonObject, require
from runner.engine.contract.names import CORRECTED, ROLES


@dataclass(frozen=True, kw_only=True)
class JobFacts:
    """Which job, and which attempt at it."""

    job_id: str = ""
    tenant: str = ""
    workflow: str = ""
    attempt: int = 0

    def encode(self) -> Json:
        """Return the JSON form of this `JobFacts`, which `decode` reads back."""
        return {"job_id": self.job_id, "tenant": self.tenant, "workflow": self.workflow, "attempt": self.attempt}

    @classmethod
    def decode(cls, raw: object) -> Self:
        """Check and read the JSON form of a `JobFacts`; raises ContractBroken if a part is missing or of another
        type."""
        read = JsonObject(raw, "job")
        return cls(
            job_id=read.text("job_id", ""),
            tenant=read.text("tenant", ""),
            workflow=read.text("workflow", ""),
            attempt=read.count("attempt", 0),
        )


NO_JOB: Final = JobFacts()  # of an order that is not about a job


@dataclass(frozen=True, kw_only=True)
class OriginJob:
    """The job whose rejects a file corrects, and the names of that job's inputs, by which keys number them."""

    job: str
    inputs: tuple[str, ...]
    knows: tuple[int, ...] = ()  # which of the corrected files before it that job's result had, by number
    earlier: bool = False  # of an earlier drop than this one
    key: str = ""  # where it was dropped; a later file with the same key replaces the rows that it corrects

    def encode(self) -> Json:
        """Return the JSON form of this `OriginJob`, which `decode` reads back."""
        return {
            "job": self.job,
            "inputs": list(self.inputs),
            "key": self.key,
            "knows": list(self.knows),
            "earlier": self.earlier,
        }

    @classmethod
    def decode(cls, read: JsonObject) -> Self:
        """Check and read the JSON form of an `OriginJob`; raises ContractBroken if a part is missing or of another
        type."""
        return cls(
            job=read.text("job"),
            inputs=read.texts("inputs"),
            knows=read.counts("knows"),
            earlier=read.flag("earlier"),
            key=read.text("key", ""),
        )


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """An input of a job, as it is staged for the box."""

    role: str  # one of ROLES
    name: str
    path: Path
    size: int = 0
    sha256: str = ""
    file: str = ""  # the file's own name, a hint for the format, if `name` is not
    corrects: OriginJob | None = None

    def __post_init__(self) -> None:
        """Check that the role is known, and that only corrected files correct."""
        require(self.role in ROLES, "an input has no known role")
        require((self.role == CORRECTED) == (self.corrects is not None), "an input corrects, or has the role to")

    @property
    def hint(self) -> str:
        """The name whose ending hints at the file's format."""
        return self.file or self.name

    @property
    def facts(self) -> "InputFacts":
        """What documents say of it."""
        return InputFacts(role=self.role, name=self.name, sha256=self.sha256, size=self.size)

    def encode(self) -> Json:
        """Return the JSON form of this `InputFile`, which `decode` reads back."""
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
    def decode(cls, read: JsonObject) -> Self:
        """Check and read the JSON form of an `InputFile`; raises ContractBroken if a part is missing or of another
        type."""
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
        """Return the JSON form of this `InputFacts`, which `decode` reads back."""
        return {"role": self.role, "name": self.name, "sha256": self.sha256, "size": self.size}

    @classmethod
    def decode(cls, read: JsonObject) -> Self:
        """Check and read the JSON form of an `InputFacts`; raises ContractBroken if a part is missing or of another
        type."""
        return cls(role=read.text("role"), name=read.text("name"), sha256=read.text("sha256"), size=read.count("size"))


@dataclass(frozen=True, kw_only=True)
class StagedFile:
    """A copy of an object: a memory, or the profile of the sender's last drop."""

    path: Path
    key: str = ""
    version: str = ""
    sha256: str = ""

    def encode(self) -> Json:
        """Return the JSON form of this `StagedFile`, which `decode` reads back."""
        return {"path": str(self.path), **self.facts()}

    def facts(self) -> dict[str, str]:
        """Return how the artifact names it."""
        return {"key": self.key, "version": self.version, "sha256": self.sha256}

    @classmethod
    def decode(cls, read: JsonObject) -> Self:
        """Check and read the JSON form of a `StagedFile`; raises ContractBroken if a part is missing or of another
        type."""
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
        """Return the JSON form of this `AppliedOverlay`, which the artifact has too and `decode` reads back."""
        return {"key": self.key, "version": self.version, "sha256": self.sha256, "changes": list(self.changes)}

    @classmethod
    def decode(cls, read: JsonObject) -> Self:
        """Check and read the JSON form of an `AppliedOverlay`; raises ContractBroken if a part is missing or of another
        type."""
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
        """Return the JSON form of this `DecisionFile`, which `decode` reads back."""
        return {"path": str(self.path), **self.facts()}

    def facts(self) -> dict[str, str]:
        """Return how artifact.json and review.json name it."""
        return {"key": self.key, "version": self.version, "sha256": self.sha256, "by": self.by}

    @classmethod
    def decode(cls, read: JsonObject) -> Self:
        """Check and read the JSON form of a `DecisionFile`; raises ContractBroken if a part is missing or of another
        type."""
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
        """Return the JSON form of this `SandboxFacts`, which `decode` reads back."""
        return {
            "driver": self.driver,
            "level": self.level,
            **({"rungs": dict(self.rungs)} if self.rungs is not None else {}),
            **({"gaps": list(self.gaps)} if self.gaps is not None else {}),
        }

    @classmethod
    def decode(cls, raw: object) -> Self:
        """Check and read the JSON form of a `SandboxFacts`; raises ContractBroken if a part is missing or of another
        type."""
        read = JsonObject(raw, "sandbox")
        rungs = read.child("rungs")
        return cls(
            driver=read.text("driver", ""),
            level=read.text("level", ""),
            rungs=None if rungs is None else {name: rungs.flag(name) for name in rungs.raw},
            gaps=read.texts("gaps") if read.raw.get("gaps") is not None else None,
        )


NO_SANDBOX: Final = SandboxFacts()  # nothing is known of it
