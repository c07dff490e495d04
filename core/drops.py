"""Plans jobs from a manifest and the objects of a bucket. Pure: the caller lists the bucket."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from posixpath import dirname
from zoneinfo import ZoneInfo

from core.errors import KeyRefused, ManifestInvalid, Problem
from core.jobs import (
    LENGTHS,
    NO_WORKFLOW,
    InputRef,
    Job,
    NotifyRule,
    ObjectRef,
    State,
    digest_of,
    identity,
    job_id,
    new_notices,
)
from core.keys import (
    CONFIGS,
    INBOX,
    LONGEST_OUTPUT,
    MAX_KEY_BYTES,
    SHARED,
    SHARED_TENANT,
    check_key,
    is_literal,
    is_private,
    is_set_aside,
    matches,
    output_folder,
    place,
    refusal,
    rejected_key,
)
from core.manifests import Manifest, Scalar, Schedule
from core.ports import ObjectInfo

PACKAGE_FOLDERS = ("columns/", "row_types/", "hooks/", "lib/")
TESTS = "tests"  # the cases of `ade test`, in a package or beside a manifest
MAX_PACKAGE_FILES = 500
MAX_INPUTS = 5000  # of one job: its row is one item of the table, and result.json lists them all
MAX_SWEPT_REFS = 100_000  # files that the rows of one input set name, all combinations of a sweep together
MAX_PACKAGE_BYTES = 20 * 1024 * 1024
UNPACKED = "awaiting:"  # config digest of a job whose package has not arrived


@dataclass(frozen=True, slots=True)
class Workflow:
    """A valid manifest at a place in the bucket.

    One in configs/_shared/ belongs to no tenant: `for_tenant` makes it the workflow of one that it serves.
    """

    manifest: Manifest
    info: ObjectInfo
    tenant: str
    folder: str  # of the manifest, with its trailing slash
    standing: bool

    @property
    def shared(self) -> bool:
        return self.folder.startswith(SHARED)

    def for_tenant(self, tenant: str) -> "Workflow | None":
        """This workflow as a tenant's; None if it does not serve that tenant."""
        if not self.shared:
            return self if self.tenant == tenant else None
        return replace(self, tenant=tenant) if self.manifest.serves(tenant) else None

    @property
    def base(self) -> str:
        """What the patterns of the primary inputs are relative to."""
        return f"{INBOX}{self.tenant}/" if self.standing else self.folder

    @property
    def patterns(self) -> tuple[str, ...]:
        return self.manifest.subscribe if self.standing else self.manifest.inputs.primary

    @property
    def deep(self) -> bool:
        """Whether it can select objects in folders below its own."""
        return any("/" in p or "**" in p for p in self.patterns)

    @property
    def reaches(self) -> bool:
        """Whether objects outside its own folder can concern it, other than a `config/` that it does not name."""
        if self.standing or self.deep or self.manifest.config is not None:
            return True
        return any(key[: key.rfind("/") + 1] != self.folder for key in self.auxiliary_keys())

    def selects(self, key: str) -> bool:
        path = key.removeprefix(self.base)
        if not key.startswith(self.base) or self.is_config(key) or key in self.auxiliary_keys():
            return False
        return any(matches(path, p) for p in self.patterns)

    def uses(self, key: str) -> bool:
        """Whether a key is an auxiliary input or part of the config of this workflow."""
        return key in self.auxiliary_keys() or self.is_config(key)

    def auxiliary_keys(self) -> dict[str, str]:
        """Key to name of every auxiliary input."""
        return {self.auxiliary_key(a.path): a.name for a in self.manifest.inputs.auxiliary}

    def auxiliary_key(self, path: str) -> str:
        return path if path.startswith((INBOX, CONFIGS)) else self.folder + path.removeprefix("./")

    @property
    def config_place(self) -> str:
        """The key of the package: ends in '/' (a folder) or `.zip`. Named or not, `config/` beside it counts."""
        named = self.manifest.config
        if named == ".":
            return self.folder
        if named is not None and named.startswith(SHARED):
            return named if named.endswith(".zip") else f"{named.rstrip('/')}/"
        name = named or "config"
        return self.folder + (name if name.endswith(".zip") else f"{name.rstrip('/')}/")

    @property
    def unnamed_zip(self) -> str | None:
        """The archive that counts as the package where the manifest names none; None: it names one."""
        return f"{self.folder}config.zip" if self.manifest.config is None else None

    def with_zip(self) -> "Workflow":
        """The same workflow, its package being the archive beside the manifest."""
        return replace(self, manifest=self.manifest.model_copy(update={"config": "config.zip"}))

    def is_config(self, key: str) -> bool:
        at = self.config_place
        if key == self.unnamed_zip:
            return True
        if not at.endswith("/"):
            return key == at
        if not key.startswith(at) or is_private(key):
            return False
        inside = key.removeprefix(at)
        if at == self.folder:
            return inside.startswith(PACKAGE_FOLDERS) or inside == "requirements.txt"
        if self.manifest.config is None:
            return inside.startswith(PACKAGE_FOLDERS) or inside.endswith((".py", "requirements.txt"))
        return not inside.startswith(".")

    def subject(self, key: str) -> str:
        """What outputs mirror: the file's own path, or its drop's folder."""
        path = key.removeprefix(f"{INBOX}{self.tenant}/")
        if self.manifest.inputs.per == "file":
            return path
        home = dirname(path) if self.standing else self.folder.removeprefix(f"{INBOX}{self.tenant}/")
        return home.rstrip("/")

    def too_long(self, key: str) -> bool:
        """Whether the keys of an input's outputs would be too long."""
        if len(key) * 4 < MAX_KEY_BYTES:
            return False
        named = job_id(self.tenant, self.manifest.name, "f" * 64, LENGTHS[-1])
        folder = output_folder(self.tenant, self.subject(key), self.manifest.name, named)
        return refusal(folder + LONGEST_OUTPUT) is not None

    def waits_for_literals(self, present: set[str]) -> list[str]:
        """Primary inputs of a per-drop workflow that are named without a wildcard and have not arrived."""
        if self.manifest.inputs.per != "drop" or self.standing:
            return []
        wanted = [self.base + p.removeprefix("./") for p in self.patterns if is_literal(p)]
        return [key for key in wanted if key not in present]


def make_workflow(manifest: Manifest, info: ObjectInfo) -> Workflow:
    """Check what depends on where the manifest is: its tenant, standing or not, shared. Raises ManifestInvalid."""
    standing, shared = info.key.startswith(CONFIGS), info.key.startswith(SHARED)
    tenant = SHARED_TENANT if shared else place(info.key, CONFIGS if standing else INBOX).tenant
    folder = info.key[: info.key.rfind("/") + 1]
    workflow = Workflow(manifest, info, tenant, folder, standing)
    problems = []
    if standing and not manifest.subscribe:
        problems.append(
            Problem("$.subscribe", "is missing", "a manifest under configs/ names the inbox paths it takes")
        )
    if not standing and manifest.subscribe:
        problems.append(
            Problem("$.subscribe", "is for standing manifests", f"put the manifest under {CONFIGS}{tenant}/<name>/")
        )
    if shared and not manifest.tenants:
        allowed = 'the tenants that it serves, such as ["acme", "north-*"], or ["*"] for all'
        problems.append(Problem("$.tenants", f"is missing in a manifest under {SHARED}", allowed))
    if not shared and manifest.tenants:
        problems.append(Problem("$.tenants", f"is for manifests under {SHARED}", "no tenants here: it serves its own"))
    problems += _foreign_keys(workflow)
    if problems:
        raise ManifestInvalid(problems)
    return workflow


def _foreign_keys(workflow: Workflow) -> list[Problem]:
    """What a manifest names that it may not read: keys of other tenants, and those of the operator alone."""
    tenant, problems = workflow.tenant, list[Problem]()
    own = (SHARED,) if workflow.shared else (f"{INBOX}{tenant}/", f"{CONFIGS}{tenant}/", SHARED)
    for n, aux in enumerate(workflow.manifest.inputs.auxiliary):
        key, at = workflow.auxiliary_key(aux.path), f"$.inputs.auxiliary[{n}].path"
        try:
            check_key(key)
        except KeyRefused as error:
            problems.append(Problem(at, str(error), f"a key below {own[0]}"))
            continue
        if not key.startswith(own):
            outside = SHARED if workflow.shared else f"tenant {tenant}"
            problems.append(Problem(at, f"{aux.path} is outside {outside}", f"keys below {', '.join(own)}"))
        elif is_private(key):
            problems.append(Problem(at, f"{aux.path} is not for tenants to read", "a lookup table"))
    if is_set_aside(workflow.config_place):
        problems.append(Problem("$.config", f"is in {workflow.config_place}", "a package that is in use"))
    return problems


@dataclass(frozen=True, slots=True)
class Package:
    """The config objects of a workflow, or what is missing of them."""

    refs: tuple[ObjectRef, ...]
    modified: float
    missing: str = ""


def is_case_file(path: str) -> bool:
    """Whether a path below a package is a file of `ade test`: no job needs it, and editing it makes no new jobs."""
    folder, *below = path.split("/")
    if folder != TESTS or len(below) < 2 or path.endswith(".py"):
        return False
    name = below[1]
    if len(below) == 2:
        return name.startswith("input.") or (name.startswith("expected") and name.endswith((".csv", ".json")))
    return name == "input"


def find_package(workflow: Workflow, objects: list[ObjectInfo]) -> Package:
    """`objects`: everything at the workflow's config place. Raises ManifestInvalid if the package is too large."""
    start = len(workflow.config_place)
    files = [o for o in objects if workflow.is_config(o.key) and not is_case_file(o.key[start:])]
    if not files and workflow.manifest.config is not None:
        return Package((), 0.0, missing=workflow.config_place)
    if len(files) > MAX_PACKAGE_FILES or sum(f.size for f in files) > MAX_PACKAGE_BYTES:
        problem = f"{workflow.config_place} holds {len(files)} files, {sum(f.size for f in files)} bytes"
        raise ManifestInvalid(
            [Problem("$.config", problem, f"at most {MAX_PACKAGE_FILES} files and {MAX_PACKAGE_BYTES} bytes")]
        )
    return Package(tuple(f.ref for f in files), max((f.modified for f in files), default=0.0))


def plan(
    workflow: Workflow,
    primaries: list[ObjectInfo],
    *,
    package: Package,
    auxiliary: dict[str, ObjectInfo],
    now: float,
    most: int | None = None,
    overlays: Sequence[ObjectInfo] = (),
) -> list[Job]:
    """The jobs of one input set: one per parameter set, or the first few. `auxiliary`: those that exist, by key."""
    manifest, info = workflow.manifest, workflow.info
    names = workflow.auxiliary_keys()
    required = {workflow.auxiliary_key(a.path) for a in manifest.inputs.auxiliary if a.required}
    missing = sorted(required - auxiliary.keys()) + workflow.waits_for_literals({p.key for p in primaries})
    digest = UNPACKED + info.digest
    if package.missing:
        missing.append(package.missing)
    else:
        parts = [(r.key.removeprefix(workflow.config_place), r.digest) for r in package.refs]
        digest = digest_of([("manifest", info.digest), *parts])
    version = ""
    if overlays:
        # A name of the package never begins with a slash.
        version, digest = digest, digest_of([("/", digest), *((f"/{n}", o.digest) for n, o in enumerate(overlays))])
        digest = UNPACKED + digest if package.missing else digest
    inputs = [
        *(InputRef(role="primary", name=p.key.removeprefix(workflow.base), ref=p.ref) for p in primaries),
        *(InputRef(role="auxiliary", name=names[k], ref=auxiliary[k].ref) for k in names if k in auxiliary),
    ]
    stamp = max([info.modified, package.modified, *(i.modified for i in (*primaries, *overlays))])
    subject = workflow.subject(primaries[0].key)
    base = Job(
        job_id="",
        identity="",
        tenant=workflow.tenant,
        workflow=manifest.name,
        subject=subject,
        manifest=info.ref,
        config=package.refs,
        config_place=workflow.config_place,
        config_digest=digest,
        overlays=tuple(o.ref for o in overlays),
        version=version,
        inputs=tuple(inputs),
        stamp=stamp,
        priority=manifest.priority,
        latest=manifest.latest,
        keep_days=manifest.keep_days,
        notify=notify_rules(manifest),
        created_at=now,
        updated_at=now,
    )
    return [
        _placed(base, params, workflow=workflow, primaries=primaries, missing=missing, now=now)
        for params in islice(manifest.param_sets(), most)
    ]


def notify_rules(manifest: Manifest) -> tuple[NotifyRule, ...]:
    """Who is notified of what; a load is a notice of success to a database."""
    loads = () if manifest.output.load is None else (manifest.output.load.rule.address(),)
    return (
        *(NotifyRule(to=target.to, on=tuple(target.on)) for target in manifest.notify),
        *(NotifyRule(to=address, on=("succeeded",)) for address in loads),
    )


def _placed(
    base: Job,
    params: dict[str, Scalar],
    *,
    workflow: Workflow,
    primaries: list[ObjectInfo],
    missing: list[str],
    now: float,
) -> Job:
    """One job with its id, in the state it starts in."""
    whole = identity(
        tenant=base.tenant,
        workflow=base.workflow,
        subject=base.subject,
        config_digest=base.config_digest,
        inputs=[f"{p.key}\0{p.digest}" for p in primaries],
        params=params,
    )
    state, reason, due = State.QUEUED, "", None
    not_before = workflow.manifest.not_before
    at = data_time(workflow.manifest, primaries)
    if missing:
        state, reason = State.AWAITING, f"waiting for {', '.join(missing)}"
    elif not workflow.manifest.schedule.holds(at):
        state, reason = State.SKIPPED, "the data's time is outside the schedule window of the manifest"
    elif not_before is not None and not_before.timestamp() > now:
        state, reason, due = State.SCHEDULED, f"not before {not_before.isoformat()}", not_before.timestamp()
    return replace(
        base,
        job_id=job_id(base.tenant, base.workflow, whole),
        identity=whole,
        params=params,
        state=state,
        reason=reason,
        due_at=due,
        waiting_for=tuple(missing),
        announced=state in (State.AWAITING, State.SCHEDULED),
        unpublished=state is State.SKIPPED,
        ended_at=now if state is State.SKIPPED else None,
        history=((str(state), now),),
    )


def data_time(manifest: Manifest, primaries: list[ObjectInfo]) -> float:
    """The data's own time: from the manifest, else the object's metadata, else its upload."""
    if manifest.data_time is not None:
        return manifest.data_time.timestamp()
    times = [t for t in (_metadata_time(p) for p in primaries) if t is not None]
    return min(times) if times else min(p.modified for p in primaries)


def needs_metadata(manifest: Manifest) -> bool:
    """Whether the metadata of inputs decides what becomes of them."""
    return manifest.data_time is None and manifest.schedule != Schedule()


def _metadata_time(info: ObjectInfo) -> float | None:
    text = info.metadata.get("data-time") if info.metadata is not None else None
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def unselected(info: ObjectInfo, *, now: float, reason: str) -> Job:
    """The row of a spreadsheet that no manifest selects yet."""
    at = place(info.key)
    wanted = (f"a manifest that selects {info.key}",)
    return _waiting(at.tenant, NO_WORKFLOW, at.path, reason=reason, wanted=wanted, info=info, now=now)


def without_input(workflow: Workflow, *, now: float) -> Job:
    """The row of a manifest whose spreadsheets have not arrived."""
    subject = workflow.folder.removeprefix(f"{INBOX}{workflow.tenant}/").rstrip("/")
    wanted = tuple(workflow.base + p for p in workflow.patterns)
    return _of_workflow(workflow, subject, reason=f"waiting for {', '.join(wanted)}", wanted=wanted, now=now)


def too_many(workflow: Workflow, subject: str, count: int, *, now: float) -> Job:
    """The row of an input set that is too large for one job; replaced by the job once the set is smaller.

    `count`: of its files, those of its config among them where the workflow has a sweep.
    """
    combinations = workflow.manifest.combinations
    what = f'{count} files are too many for one job ("per": "drop")'
    remedy = f'drop at most {MAX_INPUTS} together, or use "per": "file"'
    if combinations > 1 and count * combinations > MAX_SWEPT_REFS:
        what = f"{count} files of input and config are too many for each of {combinations} jobs of a sweep"
        remedy = f"at most {MAX_SWEPT_REFS // combinations}; pack the config as a zip, or sweep fewer values"
    return _of_workflow(workflow, subject, reason=f"{what}; {remedy}", wanted=("a smaller drop",), now=now)


def misfitting(workflow: Workflow, info: ObjectInfo, overlay: str, *, now: float) -> Job:
    """The row of an input whose overlay cannot be used; it gives way to the job once it can, or is gone."""
    reason = f"overlay {overlay} cannot be used; see {rejected_key(overlay)}" if overlay else ""
    tenant, name, subject = workflow.tenant, workflow.manifest.name, workflow.subject(info.key)
    job = _waiting(tenant, name, subject, reason=reason, wanted=(overlay,), info=info, now=now)
    return replace(job, manifest=workflow.info.ref)


def missing_drop(workflow: Workflow, deadline: float, *, now: float) -> Job:
    """The row that says that an expected drop has not come; it carries the notices about that."""
    expect = workflow.manifest.expect
    zone = ZoneInfo(expect.tz if expect else "UTC")
    by = datetime.fromtimestamp(deadline, zone).strftime("%Y-%m-%d %H:%M ") + zone.key
    job = _of_workflow(
        workflow, f"expected-{by[:10]}", reason=f"nothing has come by {by}", wanted=("the expected drop",), now=now
    )
    job = replace(job, params={"expected": by}, notify=notify_rules(workflow.manifest))
    return replace(job, notices=new_notices(job, "missing", now))


def _of_workflow(workflow: Workflow, subject: str, *, reason: str, wanted: tuple[str, ...], now: float) -> Job:
    job = _waiting(workflow.tenant, workflow.manifest.name, subject, reason=reason, wanted=wanted, info=None, now=now)
    return replace(job, manifest=workflow.info.ref)


def _waiting(
    tenant: str,
    name: str,
    subject: str,
    *,
    reason: str,
    wanted: tuple[str, ...],
    info: ObjectInfo | None,
    now: float,
) -> Job:
    whole = identity(tenant=tenant, workflow=name, subject=subject, config_digest=UNPACKED, inputs=[], params={})
    inputs = (InputRef(role="primary", name=place(info.key).name, ref=info.ref),) if info else ()
    return Job(
        job_id=job_id(tenant, name, whole),
        identity=whole,
        tenant=tenant,
        workflow=name,
        subject=subject,
        config_digest=UNPACKED,
        state=State.AWAITING,
        reason=reason,
        waiting_for=wanted,
        announced=True,
        inputs=inputs,
        stamp=info.modified if info else now,
        created_at=now,
        updated_at=now,
        history=((str(State.AWAITING), now),),
    )


def is_placeholder(job: Job) -> bool:
    """A row that only says what is missing until the real job replaces it."""
    return job.state is State.AWAITING and job.config_digest.startswith(UNPACKED)
