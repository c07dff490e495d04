"""The order of a job, or of a draft of a manifest."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from runner.engine.contract.decoding import (
    ORDER_VERSION,
    Json,
    JsonObject,
    Place,
    all_below,
    check_version,
    require,
    written_place,
)
from runner.engine.contract.names import AUXILIARY, CORRECTED, PRIMARY
from runner.engine.contract.order_parts import (
    NO_JOB,
    NO_SANDBOX,
    AppliedOverlay,
    DecisionFile,
    InputFile,
    JobFacts,
    SandboxFacts,
    StagedFile,
)
from runner.engine.contract.verify_order import VerifyOrder, encode_overlays


@dataclass(frozen=True, kw_only=True)
class DraftRequest:
    """An order with this asks for the draft of a manifest instead of a job: its inputs are samples."""

    known_only: bool = False  # columns that are none of the manifest's fields are left out
    rules: bool = True  # infer rules too; a contract has its own
    same: Mapping[str, str] = field(default_factory=dict)  # header -> the header of the same field in an earlier sample

    def encode(self) -> Json:
        """Return the JSON form of this `DraftRequest`, which `decode` reads back."""
        return {"known_only": self.known_only, "rules": self.rules, "same": dict(self.same)}

    @classmethod
    def decode(cls, read: JsonObject) -> Self:
        """Check and read the JSON form of a `DraftRequest`; raises ContractBroken if a part is missing or of another
        type."""
        same = JsonObject(read.object("same"), "draft.same")
        return cls(
            known_only=read.flag("known_only"),
            rules=read.flag("rules"),
            same={header: same.text(header) for header in same.raw},
        )


@dataclass(frozen=True, kw_only=True)
class Order:
    """One job for the engine. Paths are below the job's folder until a driver or the engine says where that is."""

    job: JobFacts = NO_JOB
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
    sandbox: SandboxFacts = NO_SANDBOX
    verification: VerifyOrder | None = None  # to be carried out after the job, if no rule can run
    draft: DraftRequest | None = None

    def __post_init__(self) -> None:
        """Check that corrected files only know those before them."""
        corrected_files = 0  # corrected files so far
        for file in self.inputs:
            if file.corrects is not None:
                require(
                    all(n < corrected_files for n in file.corrects.knows),
                    "a corrected file knows one that is not before it",
                )
                corrected_files += 1

    @property
    def primary(self) -> list[InputFile]:
        """The files that the job is about."""
        return self.inputs_as(PRIMARY)

    @property
    def auxiliary(self) -> list[InputFile]:
        """The files to look values up in."""
        return self.inputs_as(AUXILIARY)

    @property
    def corrections(self) -> list[InputFile]:
        """Files whose rows replace rows of the primary inputs, from the oldest to the newest."""
        return self.inputs_as(CORRECTED)

    def inputs_as(self, role: str) -> list[InputFile]:
        """Return the inputs of a role, in their order."""
        return [file for file in self.inputs if file.role == role]

    def below(self, folder: Path) -> Self:
        """Copy the order with its paths below a folder; what is absolute stays."""

        def moved(file: StagedFile) -> StagedFile:
            """Copy a file with its path below the folder."""
            return replace(file, path=folder / file.path)

        return replace(
            self,
            inputs=tuple(replace(file, path=folder / file.path) for file in self.inputs),
            config=None if self.config is None else folder / self.config,
            decision=None if self.decision is None else replace(self.decision, path=folder / self.decision.path),
            memories=tuple(map(moved, self.memories)),
            headers=None if self.headers is None else folder / self.headers,
            previous=None if self.previous is None else moved(self.previous),
            verification=None if self.verification is None else self.verification.below(folder),
            outputs=all_below(folder, self.outputs),
        )

    def encode(self) -> Json:
        """Return the JSON form of this `Order`, which `decode` reads back."""
        return {
            "order": ORDER_VERSION,
            "job": self.job.encode(),
            "manifest": dict(self.manifest),
            "params": dict(self.params),
            "answer_to": self.answer_to,
            "inputs": [file.encode() for file in self.inputs],
            "config": {
                "digest": self.config_digest,
                "path": None if self.config is None else str(self.config),
                **encode_overlays(self.overlays),
            },
            **self._encode_learnt(),
            **({"lost": list(self.lost)} if self.lost else {}),
            "layer": self.layer,
            "outputs": {name: written_place(place) for name, place in self.outputs.items()},
            "sandbox": self.sandbox.encode(),
            **({"verification": self.verification.encode()} if self.verification is not None else {}),
            **({"draft": self.draft.encode()} if self.draft is not None else {}),
        }

    def _encode_learnt(self) -> Json:
        """Return the JSON form of what is known beside the inputs: memories, decision, last drop; absent if there is
        none."""
        previous = None if self.previous is None else self.previous.encode()
        if previous is not None:
            del previous["version"]  # the newest counts, whatever its version
        refused = [{"key": key, "why": why} for key, why in self.refused.items()]
        known: Json = {
            "decision": None if self.decision is None else self.decision.encode(),
            "review": "accept" if self.accept else None,
            "sender": self.sender,
            "memories": [memory.encode() for memory in self.memories] or None,
            "headers": None if self.headers is None else {"path": str(self.headers)},
            "refused": refused or None,
            "previous": previous,
        }
        return {name: value for name, value in known.items() if value is not None}

    @classmethod
    def decode(cls, raw: object) -> Self:
        """Check and read the JSON form of an `Order`; raises ContractBroken if a part is missing or of another type."""
        read = JsonObject(raw)
        check_version(read)
        config, headers, previous = read.child("config"), read.child("headers"), read.child("previous")
        decision, verification, draft = read.child("decision"), read.child("verification"), read.child("draft")
        return cls(
            job=JobFacts.decode(read.object("job")),
            manifest=read.object("manifest", is_required=True),
            params=read.object("params"),
            inputs=tuple(map(InputFile.decode, read.children("inputs", is_required=True))),
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
            refused={refused.text("key"): refused.text("why") for refused in read.children("refused")},
            previous=None if previous is None else StagedFile.decode(previous),
            lost=read.texts("lost"),
            outputs=read.places("outputs", is_required=True),
            sandbox=SandboxFacts.decode(read.object("sandbox")),
            verification=None if verification is None else VerifyOrder.decode(verification.raw),
            draft=None if draft is None else DraftRequest.decode(draft),
        )
