"""What must hold in every run: while it lasts, and once the faults have stopped and everything has come to rest."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable

from core.jobs import ENDED, NO_WORKFLOW, TRANSITIONS, Job, State
from core.keys import decision_key, is_decision, is_manifest, job_folder, latest_key, result_key
from core.memories import is_memory, parse_memory
from core.verdicts import Fault, Verdict
from tests.sim.parts import Bucket, Messages, Rows


class Checks:
    def __init__(self, bucket: Bucket, rows: Rows, messages: Messages, met: Counter[str]) -> None:
        self._bucket = bucket
        self._rows = rows
        self._messages = messages
        self._met = met
        self.broken: list[str] = []
        self.cancelled: set[str] = set()  # jobs that an operator cancelled
        self.uploaded: dict[str, list[tuple[float, str]]] = {}  # what each key of the inbox has held, since when
        self.retention = 0.0
        self.on_broken: Callable[[], None] = lambda: None
        self.decisions: Counter[str] = Counter()  # how many good ones each tenant has uploaded
        self._failed: set[str] = set()  # jobs that failed through our fault, at some time
        self._fences: dict[str, int] = defaultdict(int)
        self._published: Counter[tuple[str, int, str]] = Counter()
        self._newest: dict[str, int] = defaultdict(int)  # fence of the newest content of every output

    # While it runs

    def row_written(self, old: Job | None, new: Job | None) -> None:
        if new is None:
            return
        if new.fence < self._fences[new.job_id]:
            self._breaks(f"{new.job_id}: fence went back from {self._fences[new.job_id]} to {new.fence}")
        starts = new.state is State.RUNNING and (old is None or old.state is not State.RUNNING)
        if starts and new.fence <= self._fences[new.job_id]:
            self._breaks(f"{new.job_id}: fence {new.fence} was given twice")
        self._fences[new.job_id] = max(new.fence, self._fences[new.job_id])
        if old is None or old.state is new.state:
            return
        if new.state not in TRANSITIONS[old.state]:
            self._breaks(f"{new.job_id} went from {old.state} to {new.state}")
        self._met[f"{old.state}→{new.state}"] += 1
        if is_ours(new):
            self._failed.add(new.job_id)
        if new.reason.endswith("while it ran"):
            self._met["answered_while_it_ran"] += 1
        if new.reason.startswith("superseded by"):
            self._met["superseded"] += 1

    def object_written(self, key: str, body: bytes | None) -> None:
        if body is None or not key.startswith("outputs/"):
            return
        folder, _, name = key.rpartition("/")
        job_id = folder.rpartition("/")[2]
        if name == "result.json":
            self._told(job_id, json.loads(body))
        elif name in ("normalized.xlsx", "artifact.json"):
            fence = int(body.split(b"|")[0].rpartition(b"-")[2])
            if fence < self._newest[key]:
                self._breaks(f"{key}: the outputs of fence {fence} replaced those of {self._newest[key]}")
            self._newest[key] = fence
            result = self._bucket.objects.get(f"{folder}/result.json")
            told = json.loads(result[1]) if result else {"status": ""}
            if told["status"] == "SUCCEEDED":
                digest = hashlib.sha256(body).hexdigest()
                if digest not in {f["sha256"] for f in told["files"] if f["name"] == name}:
                    self._breaks(f"{key} changed under a result.json that names other content")

    def _told(self, job_id: str, told: dict) -> None:
        row = self._rows.jobs.get(job_id)
        key = (job_id, row.fence if row else -1, told["status"])
        self._published[key] += 1
        if told["status"] == "SUCCEEDED":
            if self._published[key] > 1:
                self._breaks(f"{job_id}: result.json of fence {key[1]} was published {self._published[key]} times")
            self._whole(told)

    def _whole(self, told: dict) -> None:
        folder = told["job_id"]
        for file in told["files"]:
            key = next((k for k in self._bucket.objects if k.endswith(f"/{folder}/{file['name']}")), None)
            body = self._bucket.objects[key][1] if key else b""
            if hashlib.sha256(body).hexdigest() != file["sha256"]:
                self._breaks(f"{folder}: result.json names a {file['name']} that is not there, or another")

    def _breaks(self, said: str) -> None:
        self.broken.append(said)
        self.on_broken()

    # Once it rests

    def quiet(self) -> bool:
        """Whether nobody has anything left to do."""
        unfinished = [job for job in self._rows.jobs.values() if _unfinished(job)]
        return not unfinished and not self._messages.copies

    def at_rest(self) -> list[str]:
        """Every promise that is not kept now."""
        found = list(self.broken)
        jobs = sorted(self._rows.jobs.values(), key=lambda job: job.job_id)
        found += [f"{job.job_id} is stuck: {job.state} ({job.reason})" for job in jobs if _unfinished(job)]
        found += [f"a message of {copy.message.job_id} is left" for copy in self._messages.copies]
        found += [f"{key} is left" for key in sorted(self._bucket.objects) if key.startswith("work/")]
        for job in jobs:
            found += self._result(job)
        for key in sorted(self._bucket.objects):
            name = key.rpartition("/")[2]
            if key.startswith("inbox/") and not is_manifest(name) and not is_decision(name):
                found += self._stands(key, jobs)
            elif is_memory(key):
                found += self._memory(key)
            elif key.endswith("/latest.json"):
                found += self._latest(key)
        letters = self._messages.letters
        found += [f"{job_id} has a dead letter and never failed" for job_id in sorted(letters.keys() - self._failed)]
        found += [f"{j.job_id} failed and has no dead letter" for j in jobs if is_ours(j) and j.job_id not in letters]
        return found

    def _result(self, job: Job) -> list[str]:
        if job.state not in ENDED:
            return []
        there = self._bucket.objects.get(result_key(job))
        if there is None:
            if job.state is State.EXPIRED and not job.unpublished:
                return []  # half forgotten: the janitor comes by again and removes the row
            return [f"{job.job_id} is {job.state} and has no result.json"]
        expired = job.error is not None and job.error.verdict is Verdict.REVIEW_EXPIRED
        if f"{job_folder(job)}review.json" in self._bucket.objects and not expired:
            return [f"{job.job_id} is {job.state} and its questions are still there"]
        told = json.loads(there[1])
        if told["status"] != job.state:
            return [f"{job.job_id} is {job.state}, its result.json says {told['status']}"]
        found = []
        for file in told["files"]:
            body = self._bucket.objects.get(job_folder(job) + file["name"])
            if body is None or hashlib.sha256(body[1]).hexdigest() != file["sha256"]:
                found.append(f"{job.job_id}: {file['name']} is not what its result.json says")
            elif file["name"] == "normalized.xlsx" and body[1].split(b"|")[1].decode() != job.inputs[0].ref.digest:
                found.append(f"{job.job_id}: {file['name']} was made of other bytes than its input's")
        return found

    def _stands(self, key: str, jobs: list[Job]) -> list[str]:
        """The input that stands has one result for every parameter set of the manifest that stands beside it."""
        manifest = self._bucket.objects.get(f"{key.rpartition('/')[0]}/manifest.json")
        if manifest is None:
            return []
        asked = json.loads(manifest[1])
        digest = self._bucket.objects[key][0].digest
        mine = [
            job
            for job in jobs
            if job.manifest
            and job.workflow != NO_WORKFLOW
            and job.manifest.digest == manifest[0].digest
            and any(i.role == "primary" and (i.ref.key, i.ref.digest) == (key, digest) for i in job.inputs)
        ]
        rates = asked.get("sweep", {}).get("rate", [None])
        found = []
        for rate in rates:
            ends = [job for job in mine if job.params.get("rate") == rate]
            if len(ends) != 1:
                found.append(f"{key} has {len(ends)} jobs for rate {rate}: it was {'lost' if not ends else 'doubled'}")
            found += [
                f"{key} was lost: {job.job_id} is {job.state} ({job.reason})"
                for job in ends
                if not self._well(job, key, jobs)
            ]
        succeeded = [job for job in mine if job.state is State.SUCCEEDED]
        if succeeded and len(succeeded) == len(rates):
            there = self._bucket.objects.get(latest_key(succeeded[0]))
            named = json.loads(there[1])["job_id"] if there else None
            if named not in {job.job_id for job in succeeded}:
                found.append(f"{latest_key(succeeded[0])} names {named}, and {key} stands with {succeeded[0].job_id}")
        return found

    def _well(self, job: Job, key: str, jobs: list[Job]) -> bool:
        match job.state:
            case State.SUCCEEDED:
                accepted = job.review is not None and job.review.accepted
                return b"ask" not in self._bucket.objects[key][1] or job.decision is not None or accepted
            case State.CANCELLED:
                return job.job_id in self.cancelled
            case State.FAILED:
                body = self._bucket.objects[key][1]
                unanswered = job.error is not None and job.error.verdict is Verdict.REVIEW_EXPIRED
                return b"bad" in body or (b"ask" in body and unanswered and not self._is_answered(key))
            case State.EXPIRED:
                return job.ended_at is not None and job.ended_at - self._dropped(key, jobs) >= self.retention - 60
            case _:
                return False

    def _dropped(self, key: str, jobs: list[Job]) -> float:
        """When what stands was dropped. The same content once more is no new drop, unless another was seen between."""
        digest = self._bucket.objects[key][0].digest
        seen = {i.ref.digest for job in jobs for i in job.inputs if i.ref.key == key} - {digest}
        held = self.uploaded[key]
        others = [n for n, (_, content) in enumerate(held) if content in seen]
        return next(at for at, content in held[max(others, default=-1) + 1 :] if content == digest)

    def _is_answered(self, key: str) -> bool:
        answer = self._bucket.objects.get(decision_key(key))
        return answer is not None and b"answers" in answer[1]

    def _memory(self, key: str) -> list[str]:
        """Every decision was counted once at most."""
        tenant, counts = key.split("/")[1], [e.count for e in parse_memory(self._bucket.objects[key][1]).headers]
        most = self.decisions[tenant]
        return [f"{key} counts {sum(counts)} answers of {most}"] if sum(counts) > most else []

    def _latest(self, key: str) -> list[str]:
        named = json.loads(self._bucket.objects[key][1])
        result = self._bucket.objects.get(named["result"])
        status = json.loads(result[1])["status"] if result else "absent"
        return [] if status == "SUCCEEDED" else [f"{key} names {named['job_id']}, whose result.json is {status}"]


def is_ours(job: Job) -> bool:
    """Whether a job failed, and not through its sender."""
    return job.state is State.FAILED and job.error is not None and job.error.fault == Fault.OURS


def _unfinished(job: Job) -> bool:
    busy = (State.QUEUED, State.RUNNING, State.REVIEW, State.PUBLISHING, State.SCHEDULED)
    return job.state in busy or (job.state in ENDED and job.unpublished)
