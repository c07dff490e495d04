"""The order to verify the outputs of a job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from runner.engine.contract.decoding import (
    ORDER_VERSION,
    Json,
    JsonObject,
    Place,
    all_below,
    check_version,
    written_place,
)
from runner.engine.contract.names import EXPLAINED, EndCode
from runner.engine.contract.order_parts import NO_SANDBOX, AppliedOverlay, InputFacts, JobFacts, SandboxFacts
from runner.engine.contract.splits import SplitBy


@dataclass(frozen=True, kw_only=True)
class DataTypes:
    """What the data files of a job must look like: the manifest's `output`, and the type and scale of each field."""

    output: Mapping[str, object]
    types: Mapping[str, tuple[str, int | None]]

    def encode(self) -> Json:
        """Return the JSON form of this `DataTypes`, which `decode` reads back."""
        return {
            "output": dict(self.output),
            "types": {name: {"type": kind, "scale": scale} for name, (kind, scale) in self.types.items()},
        }

    @classmethod
    def decode(cls, read: JsonObject) -> Self:
        """Check and read the JSON form of a `DataTypes`; raises ContractBroken if a part is missing or of another
        type."""
        types = JsonObject(read.object("types"), "data.types")
        fields = {name: JsonObject(facts, "a type") for name, facts in types.raw.items()}
        return cls(
            output=read.object("output"),
            types={
                name: (field.text("type"), field.count("scale") if field.raw.get("scale") is not None else None)
                for name, field in fields.items()
            },
        )


@dataclass(frozen=True, kw_only=True)
class ReportTerms:
    """What report.html needs to know beside the artifact."""

    language: str = "en"
    shows_values: bool = False  # the manifest asks for the values that findings are about
    drop_to: str = ""  # the folder of the inbox that corrections belong into
    retention_seconds: int = 0  # how long the results are kept at least; 0: nobody knows

    def encode(self) -> Json:
        """Return the JSON form of this `ReportTerms`, which `decode` reads back."""
        return {
            "language": self.language,
            "shows_values": self.shows_values,
            "drop_to": self.drop_to,
            "retention_seconds": self.retention_seconds,
        }

    @classmethod
    def decode(cls, read: JsonObject) -> Self:
        """Check and read the JSON form of a `ReportTerms`; raises ContractBroken if a part is missing or of another
        type."""
        return cls(
            language=read.text("language", "en"),
            shows_values=read.flag("shows_values"),
            drop_to=read.text("drop_to", ""),
            retention_seconds=read.count("retention_seconds", 0),
        )


PLAIN_REPORT: Final = ReportTerms()


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
    split: SplitBy | None = None  # into which further files the rows are split
    removes: tuple[str, ...] = ()  # as what the manifest's `rows` may leave rows out
    audit: bool = False  # there is no workbook, and the artifact explains why
    review: bool = False  # the job asks
    report: ReportTerms = PLAIN_REPORT
    written: Mapping[str, Place] = field(default_factory=dict)  # the outputs to verify
    outputs: Mapping[str, Place] = field(default_factory=dict)
    sandbox: SandboxFacts = NO_SANDBOX

    def ended(self, code: str | None) -> Self:
        """Copy the order for a job that ended with this code; None: with its workbook."""
        return replace(self, audit=code in EXPLAINED, review=code == EndCode.NEEDS_REVIEW)

    def below(self, folder: Path) -> Self:
        """Copy the order with its paths below a folder."""
        return replace(
            self,
            written=all_below(folder, self.written),
            outputs=all_below(folder, self.outputs),
        )

    def encode(self) -> Json:
        """Return the JSON form of this `VerifyOrder`, which `decode` reads back."""
        return {
            "order": ORDER_VERSION,
            "job": self.job.encode(),
            "params": dict(self.params),
            "config": {"digest": self.config_digest, **encode_overlays(self.overlays)},
            "verify": {
                "inputs": [facts.encode() for facts in self.known],
                "title": self.title,
                "formats": list(self.formats),
                "decision": None if self.decision is None else dict(self.decision),
                "answer_to": self.answer_to,
                "memories": [dict(facts) for facts in self.memories],
                "why": self.why,
                "removes": list(self.removes),
                "audit": self.audit,
                "review": self.review,
                "report": self.report.encode(),
                **({"data": self.data.encode()} if self.data is not None else {}),
                **({"split": self.split.encode()} if self.split is not None else {}),
            },
            "inputs": [{"name": name, "path": written_place(place)} for name, place in self.written.items()],
            "outputs": {name: written_place(place) for name, place in self.outputs.items()},
            "sandbox": self.sandbox.encode(),
        }

    @classmethod
    def decode(cls, raw: object) -> Self:
        """Check and read the JSON form of a `VerifyOrder`; raises ContractBroken if a part is missing or of another
        type."""
        read = JsonObject(raw)
        check_version(read)
        verify = JsonObject(read.object("verify", is_required=True), "verify")
        decision, data, split, report = (verify.child(name) for name in ("decision", "data", "split", "report"))
        config = read.child("config")
        return cls(
            job=JobFacts.decode(read.object("job")),
            params=read.object("params"),
            config_digest="" if config is None else config.text("digest", ""),
            overlays=() if config is None else tuple(map(AppliedOverlay.decode, config.children("overlays"))),
            known=tuple(map(InputFacts.decode, verify.children("inputs"))),
            title=verify.text("title", ""),
            formats=verify.texts("formats"),
            decision=None if decision is None else decision.texts_of("key", "version", "sha256", "by"),
            answer_to=verify.optional("answer_to"),
            memories=tuple(file.texts_of("key", "version", "sha256") for file in verify.children("memories")),
            why=verify.text("why", "never"),
            data=None if data is None else DataTypes.decode(data),
            split=None if split is None else SplitBy.decode(split),
            removes=verify.texts("removes"),
            audit=verify.flag("audit"),
            review=verify.flag("review"),
            report=PLAIN_REPORT if report is None else ReportTerms.decode(report),
            written={file.text("name"): file.place() for file in read.children("inputs")},
            outputs=read.places("outputs"),
            sandbox=SandboxFacts.decode(read.object("sandbox")),
        )


def encode_overlays(overlays: Sequence[AppliedOverlay]) -> Json:
    """Return the overlays as an order has them; nothing if there are none."""
    return {"overlays": [overlay.encode() for overlay in overlays]} if overlays else {}
