"""Drafts a manifest from samples: the box reads them, this side checks what it wrote and tries the manifest on them.

Samples come from strangers, so they are read in the same box as a job's inputs (runner/engine/drafting). Its answer is
untrusted: read within a budget, and every field validated as a manifest's. Then the manifest runs on its own samples,
and rules that they break are taken back.
"""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from console.desk.files import DeskSource, inbox_folder
from console.desk.trials import TENANT, TriedTable, desk_of, trials_of
from core.budget import Budget, read
from core.errors import AdeError, ManifestInvalid
from core.fields import Strict
from core.jobs import JobError
from core.manifests import Limits, Manifest
from core.settings import Settings
from core.verdicts import FAULTS, Fault, Verdict
from infra.parsing import read_manifest
from runner.attempt import Boxes, describe
from runner.boxes import BoxOrder, Killed
from runner.engine.contract import PRIMARY, DraftRequest, InputFile, JobFacts, Order, OutputName
from runner.staging import box_limits

BUDGET: Final = Budget(bytes=16 * 1024 * 1024, values=500_000)
SCHEMA: Final = "https://ade-drop.dev/manifest.schema.json"
ROUNDS: Final = 4  # trials after which a draft that still breaks its own samples is given up
_EXTENSIONS: Final = ("*.xlsx", "*.csv")
_MAX_ARTIFACT: Final = 256 * 1024 * 1024
# Which keys of a field a finding takes back.
_RULES_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "required": ("required",),
    "missing_field": ("required",),
    "duplicate": ("unique",),
    "pattern": ("pattern",),
    "not_allowed": ("allowed",),
    "min": ("min",),
    "max": ("max",),
}

# What to do if a job fails on the only samples.
_REMEDIES: Final[Mapping[Verdict, str]] = {Verdict.EMPTY_INPUT: "; give an empty template with --target instead"}

Spec = dict[str, Any]  # a field as a manifest writes it; validated with the manifest


class DraftFailed(AdeError):
    """The samples could not be read, or no manifest fits them."""


class FieldEvidence(Strict):
    spec: Spec
    evidence: Annotated[str, Field(max_length=2000)]
    personal: bool


class OpenQuestion(Strict):
    """Something that a person knows better than the samples; without an answer nothing is changed."""

    kind: Literal["same_column", "type", "date_order", "unique", "allowed", "pattern"]
    field: str
    text: Annotated[str, Field(max_length=500)]
    change: Spec
    examples: Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=20)] = ()
    refusal: Spec = Field(default_factory=dict)  # what a no of a person changes, where it says as much as a yes


class DraftDocument(Strict):
    """What the box found out about samples."""

    draft: Literal[1]
    samples: int
    rows: int
    headless: bool
    fields: Annotated[tuple[FieldEvidence, ...], Field(min_length=1, max_length=2000)]
    questions: Annotated[tuple[OpenQuestion, ...], Field(max_length=5000)]
    notes: Annotated[tuple[str, ...], Field(max_length=5000)]


@dataclass(frozen=True, slots=True)
class Drafting:
    """Where drafts are made, and from what."""

    settings: Settings
    boxes: Boxes
    scratch: Path
    samples: Sequence[Path]
    killed: Killed

    def document(self, files: Sequence[Path], fields: Iterable[Spec], request: DraftRequest) -> DraftDocument:
        """Have the box read samples; raises DraftFailed if it cannot."""
        folder = self.scratch / "draft"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "in").mkdir(parents=True)
        source = DeskSource({str(n): path for n, path in enumerate(files)})
        inputs = []
        for n, path in enumerate(files):
            place = Path("in", str(n))
            source.fetch(str(n), folder / place, limit=self.settings.worker_fsize_mb * 1024 * 1024)
            facts = describe(str(n), folder / place)
            inputs.append(InputFile(role=PRIMARY, name=path.name, path=place, size=facts.size, sha256=facts.sha256))
        job = JobFacts(job_id="draft", tenant=TENANT, workflow="draft")
        order = BoxOrder(
            label="draft-1",
            tenant=TENANT,
            scratch=folder,
            job=Order(job=job, manifest={"fields": list(fields)}, inputs=tuple(inputs), draft=request),
            outputs=(OutputName.DRAFT,),
            limits=box_limits(Limits(), self.settings),
            trusted=True,
        )
        report = self.boxes.sandbox.run(order, killed=self.killed)
        if report.verdict is not Verdict.OK or OutputName.DRAFT not in report.outputs:
            remedy = report.where.get("remedy")
            what = report.message or str(report.verdict)
            if FAULTS[report.verdict] is Fault.LIMIT:
                what, remedy = f"reading the samples {what}", "take fewer samples, or samples with fewer columns"
            raise DraftFailed(what if not remedy else f"{what} {remedy}" if what.endswith(".") else f"{what}; {remedy}")
        document = read(report.outputs[OutputName.DRAFT].read_bytes(), DraftDocument, BUDGET)
        if isinstance(document, list):
            raise DraftFailed(f"the draft is not valid: {document[0].path} {document[0].problem}")
        return document

    def draft(self, name: str) -> tuple[DraftDocument, "TriedManifest"]:
        """What the samples say, and the manifest that it makes, with the safe choice wherever a person was asked."""
        document = self.document(self.samples, [], DraftRequest())
        manifest = manifest_of(name, document, self.samples, drop_others=False)
        validate(manifest)
        return document, self.without_broken_rules(manifest, bound=False)

    def without_broken_rules(self, manifest: Spec, *, bound: bool) -> "TriedManifest":
        """Run a drafted manifest on its samples and drop the rules that they break; `bound`: by a contract, so none."""
        notes: list[str] = []
        broken, failed = self._broken(manifest)
        for _ in range(0 if bound else ROUNDS):
            if not broken:
                break
            fields, what = without_rules(manifest["fields"], broken)
            notes += what
            manifest = {**manifest, "fields": fields}
            broken, failed = self._broken(manifest)
        notes += [f"{name or 'a sample'}: the samples break it ({code})" for code, name in sorted(broken, key=str)]
        notes += [
            f"the draft was not tried on {sample.name}: {error.message}"
            for sample, error in failed.items()
            if error.verdict is not Verdict.EMPTY_INPUT  # already noted: it was not used
        ]
        return TriedManifest(manifest, tuple(notes), [sample for sample in self.samples if sample not in failed])

    def _broken(self, manifest: Spec) -> tuple[set[tuple[str, str | None]], dict[Path, JobError]]:
        """The codes and fields of the errors that a manifest reports on the samples, and which samples its jobs failed
        on, with the reason; raises DraftFailed if they failed on all of them."""
        place = self.scratch / "trial"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        path = place / "manifest.json"
        path.write_text(json.dumps(manifest), encoding="utf-8")
        errors: set[tuple[str, str | None]] = set()
        failures: dict[Path, JobError] = {}
        for n, sample in enumerate(self.samples):
            desk, files = desk_of(path, [sample], inbox_folder(TENANT, ""), place)
            scratch = place / str(n)
            scratch.mkdir()
            table = TriedTable(self.settings, self.boxes, DeskSource({**desk.files, **files}), scratch)
            for trial in trials_of(desk, files, place / f"out-{n}"):
                job = table.run(trial, stopped=self.killed)
                if job.error is None:
                    errors |= _errors(trial.out / OutputName.ARTIFACT)
                elif job.error.verdict is Verdict.CANCELLED:
                    raise DraftFailed(job.error.message)
                else:
                    failures[sample] = job.error
        if failures and len(failures) == len(set(self.samples)):
            sample, error = next(iter(failures.items()))
            fewer = "; take samples with fewer columns" if error.fault is Fault.LIMIT else ""
            remedy = _REMEDIES.get(error.verdict, fewer)
            raise DraftFailed(f"{sample.name}: {error.message}{remedy}")
        return errors, failures


@dataclass(frozen=True, slots=True)
class TriedManifest:
    """A manifest that reports no error on its own samples if possible, and the rules that were taken back for it."""

    manifest: Spec
    notes: tuple[str, ...] = ()
    tried: Sequence[Path] = ()  # the samples that it ran on


def _errors(artifact: Path) -> set[tuple[str, str | None]]:
    """The codes and fields of the errors that an artifact counts."""
    if artifact.stat().st_size > _MAX_ARTIFACT:
        return set()
    totals = json.loads(artifact.read_bytes())["validation"]["totals"]
    return {(one["code"], one["field"]) for one in totals if one["severity"] == "error"}


def without_rules(fields: Sequence[Spec], broken: Iterable[tuple[str, str | None]]) -> tuple[list[Spec], list[str]]:
    """Fields without the rules that findings name, and which rules those are."""
    by_name, notes = {spec["name"]: dict(spec) for spec in fields}, []
    for code, name in sorted(broken, key=str):
        spec = by_name.get(name or "")
        if spec is None:
            continue
        keys = [key for key in _RULES_OF.get(code, ()) if key in spec]
        for key in keys:
            del spec[key]
        if "allowed" in keys:
            spec["type"] = "text"
        if not keys:
            spec["severity"] = "warning"
        what = f"without {' and '.join(keys)}" if keys else "with warnings instead of errors"
        notes.append(f"{name}: {what}, because of {code} in the samples")
    return list(by_name.values()), notes


def manifest_of(name: str, document: DraftDocument, samples: Sequence[Path], *, drop_others: bool) -> Spec:
    """The manifest that a draft proposes."""
    extensions = sorted({f"*{path.suffix.lower()}" for path in samples if path.suffix} - set(_EXTENSIONS))
    fields = [
        in_reading_order({**one.spec, "description": _description(one)} if one.evidence else one.spec)
        for one in document.fields
    ]
    manifest: Spec = {
        "$schema": SCHEMA,
        "manifest": 1,
        "name": name,
        "description": _origin(document),
    }
    if extensions:
        manifest["inputs"] = {"primary": [*_EXTENSIONS, *extensions]}
    if document.headless:
        manifest["reading"] = {"header": "none"}
    if drop_others:
        manifest["mapping"] = {"unmapped": "drop"}
    return {**manifest, "fields": fields}


def for_all_tenants(manifest: Spec) -> Spec:
    """The manifest as a shared workflow: for what each tenant drops below a folder of the workflow's name."""
    patterns = manifest.get("inputs", {}).get("primary", _EXTENSIONS)
    return {**manifest, "tenants": ["*"], "subscribe": [f"{manifest['name']}/**/{pattern}" for pattern in patterns]}


def _origin(document: DraftDocument) -> str:
    if not document.samples:
        return "Drafted without samples."
    files = f"{document.samples} sample{'' if document.samples == 1 else 's'}"
    return f"Drafted from {files} with {document.rows:,} rows."


def _description(one: FieldEvidence) -> str:
    """What a field is, then its evidence: mapping reads only what comes before the first semicolon."""
    words = one.spec.get("description") or one.spec.get("label") or one.spec["name"]
    return f"{words}; {one.evidence}"[:2000]


def in_reading_order(spec: Spec) -> Spec:
    """A field with its keys in the order in which people read them."""
    first = ("name", "label", "description", "type", "required", "optional", "unique", "synonyms", "clean", "formats")
    return {key: spec[key] for key in (*(k for k in first if k in spec), *(k for k in spec if k not in first))}


def validate(manifest: Spec) -> Manifest:
    """The manifest as others will read it; raises DraftFailed if it does not validate."""
    try:
        return read_manifest(json.dumps(manifest).encode())
    except ManifestInvalid as error:
        raise DraftFailed(f"the draft does not validate: {error}") from None


def manifest_text(manifest: Spec) -> str:
    """A manifest as people read it: one line for each key, of a field too."""
    lines = [f"  {json.dumps(key)}: {_inline(value)}" for key, value in manifest.items() if key != "fields"]
    fields = ",\n".join(_field_text(spec) for spec in manifest["fields"])
    return "{\n" + ",\n".join([*lines, f'  "fields": [\n{fields}\n  ]']) + "\n}\n"


def _field_text(spec: Spec) -> str:
    lines = ",\n".join(f"      {json.dumps(key)}: {_inline(value)}" for key, value in spec.items())
    return f"    {{\n{lines}\n    }}"


def _inline(value: object) -> str:
    """JSON on one line; what a person would not see in it, such as a mark that turns the direction, is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
