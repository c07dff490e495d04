"""In: decision files beside inputs. Out: the decision that each planned job takes along, and what is wrong with others.

A decision is level-triggered like everything in the inbox: each scan reads what is there now. One that cannot be used
is reported in the folder's rejected.json, and the job that waits goes on waiting.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from posixpath import basename

from core.budget import weight_of, weight_of_problems
from core.caches import BoundedCache
from core.decisions import MAX_DECISION_BYTES, Decision, DecisionInvalid, fields_of, is_for, misfits
from core.drops import Package, Workflow, is_placeholder
from core.errors import (
    ManifestInvalid,
    ObjectChanged,
    ObjectMissing,
    ObjectTooLarge,
    Problem,
    RowUnreadable,
    StoreUnavailable,
)
from core.jobs import LENGTHS, Job, State, is_new_decision, job_id
from core.keys import DECISION, decision_places, place
from core.memories import own_key
from core.ports import JobTable, ObjectInfo, ObjectStore
from core.verdicts import Verdict
from core.wording import shown
from handlers.workflows import BucketView, Packages, folder_of
from infra.parsing import read_decision

_PARSED_BYTES = 32 * 1024 * 1024
_JOB_ID = re.compile(r"[a-z0-9-]{3,80}")
# Finds the workflows that select a key.
Selecting = Callable[[BucketView, str], list[Workflow]]


class Decisions:
    """Safe to share between threads."""

    def __init__(self, store: ObjectStore, table: JobTable, packages: Packages) -> None:
        self._store = store
        self._table = table
        self._packages = packages
        self._parsed = BoundedCache[tuple[str, str], Decision | DecisionInvalid](_PARSED_BYTES)

    def pinned(
        self, view: BucketView, workflow: Workflow, package: Package, primaries: list[ObjectInfo], jobs: list[Job]
    ) -> list[Job]:
        """The jobs of one input set with the newest decision beside its inputs and with the memories there are."""
        keys = [*workflow.manifest.mapping.memory, own_key(workflow.tenant, workflow.manifest.name)]
        memories = tuple(info.ref for info in view.infos(list(dict.fromkeys(keys))))
        jobs = [replace(job, memories=memories) for job in jobs] if memories else jobs
        if not any(view.decisions(folder) for folder in {folder_of(p.key) for p in primaries}):
            return jobs
        return [self._decided(view, workflow, package, job) for job in jobs]

    def _decided(self, view: BucketView, workflow: Workflow, package: Package, job: Job) -> Job:
        """A planned job with the newest of the decisions that are for it."""
        ids = [job_id(job.tenant, job.workflow, job.identity, length) for length in LENGTHS]  # it may get a longer one
        places = {key for one in ids for key in decision_places(replace(job, job_id=one))}
        there = [key for key in places if key in view.decisions(folder_of(key))]
        for info in sorted(view.infos(there), key=lambda i: (i.modified, i.key), reverse=True):
            decision = self.load(info)
            fits = isinstance(decision, Decision) and is_for(decision, job, is_planned=True)
            if isinstance(decision, Decision) and fits and not self._misfits(decision, [(workflow, package)]):
                return replace(job, decision=info.ref, decided_at=info.modified)
        return job

    def about(self, key: str) -> list[str]:
        """The inputs that a decision may be about: the one it is named after, or those of the job."""
        name = basename(key).removesuffix(DECISION)
        try:
            job = self._table.get(name) if _JOB_ID.fullmatch(name) else None
        except RowUnreadable:
            job = None
        inputs = [i.ref.key for i in job.inputs if i.role == "primary"] if job is not None else []
        return [key.removesuffix(DECISION), *(one for one in inputs if folder_of(one) == folder_of(key))]

    def problems(self, view: BucketView, folder: str, selecting: Selecting) -> list[tuple[str, Problem]]:
        """What is wrong with the decisions of a folder, each with its key."""
        return [
            (info.key, problem)
            for info in view.infos(sorted(view.decisions(folder)))
            for problem in self._problems(view, info, selecting)
        ]

    def load(self, info: ObjectInfo) -> Decision | DecisionInvalid | None:
        """A decision at its version; None if it is gone again."""
        known = self._parsed.get((info.key, info.version))
        if known is not None:
            return known
        body = b""
        try:
            body = self._store.read(info.key, version=info.version, limit=MAX_DECISION_BYTES)
            known = read_decision(body)
        except StoreUnavailable:
            raise
        except ObjectTooLarge:
            what = f"is {info.size} bytes"
            known = DecisionInvalid([Problem("$", what, f"at most {MAX_DECISION_BYTES} bytes")])
        except DecisionInvalid as error:
            known = DecisionInvalid(error.problems)  # without what its traceback holds on to
        except (ObjectMissing, ObjectChanged):
            return None
        except Exception as error:  # noqa: BLE001 - whatever a decision does to its parser, it does to nobody else
            what = f"cannot be read ({type(error).__name__})"
            known = DecisionInvalid([Problem("$", what, "a decision as docs/guides/review.md describes it")])
        weight = weight_of(body) if isinstance(known, Decision) else weight_of_problems(known.problems)
        self._parsed.put((info.key, info.version), known, weight)
        return known

    def _problems(self, view: BucketView, info: ObjectInfo, selecting: Selecting) -> list[Problem]:
        decision = self.load(info)
        if isinstance(decision, DecisionInvalid):
            return decision.problems
        key = next((one for one in self.about(info.key) if view.head(one) is not None), None)
        workflows = selecting(view, key) if decision is not None and key is not None else []
        if decision is None or key is None or not workflows:
            return []  # its file or manifest may still be on its way
        packed = [self._with_package(view, workflow) for workflow in workflows]
        wrong = self._misfits(decision, [one for one in packed if one is not None])
        if wrong:
            return wrong
        jobs = [
            job
            for workflow in workflows
            if decision.workflow in (None, workflow.manifest.name)
            for job in self._jobs_of(workflow, key)
        ]
        if decision.job is not None and decision.job not in {job.job_id for job in jobs}:
            known = ", ".join(sorted(job.job_id for job in jobs)) or "none yet"
            return [Problem("$.job", f"is {shown(decision.job)}, not a job of this file", f"one of: {known}")]
        return self._late(decision, info, jobs)

    def _late(self, decision: Decision, info: ObjectInfo, jobs: list[Job]) -> list[Problem]:
        """A decision that no job will take: the newest job of the file, or the one that it names, has ended."""
        named = [job for job in jobs if decision.job in (None, job.job_id)]
        newest = max(named, key=lambda job: (job.stamp, job.created_at), default=None)
        if newest is None or not newest.ended or not is_new_decision(newest, info.ref):
            return []
        expired = newest.error is not None and newest.error.verdict is Verdict.REVIEW_EXPIRED
        if newest.state is State.FAILED and expired:
            return []  # it runs again
        what = f"was not applied: job {newest.job_id} had ended ({newest.state}) before it came"
        return [
            Problem("$", what, f"a decision before the end; `ade reset {newest.job_id}` runs it again with this one")
        ]

    def _jobs_of(self, workflow: Workflow, key: str) -> list[Job]:
        at = place(key)
        line = f"{at.tenant}/{workflow.subject(key)}|{workflow.manifest.name}"
        try:
            jobs = self._table.line(line)
        except RowUnreadable:
            return []
        return [job for job in jobs if not is_placeholder(job)]

    def _with_package(self, view: BucketView, workflow: Workflow) -> tuple[Workflow, Package] | None:
        try:
            return self._packages.find(view, workflow)
        except ManifestInvalid:
            return None

    def _misfits(self, decision: Decision, workflows: Iterable[tuple[Workflow, Package]]) -> list[Problem]:
        fields = {w.manifest.name: fields_of(w.manifest, [r.key for r in package.refs]) for w, package in workflows}
        return misfits(decision, workflows=fields)
