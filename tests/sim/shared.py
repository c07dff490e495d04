"""One workflow for two tenants under one seed: overlays, drafts, promotions, reverts, corrections and replays.

The world of world.py, with its faults, where no sender has a manifest. Authors change the workflow while files arrive,
and die in the middle of it like any process. Each version of the workflow and each overlay leaves a mark in what the
box writes, so that the checks can tell which of them a result was really made with.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from console.again import run_again
from console.library import DRAFTED, LIVE, Library, Version
from console.replays import Replayer
from core.errors import UsageError
from core.jobs import ENDED, NO_WORKFLOW, Job, State
from core.keys import REPLAYS, VERSIONS, latest_key
from core.versions import stored_parts
from handlers.intake import Intake
from infra.wiring import Stack
from runner.boxes import BoxOrder, BoxReport, Killed, OnEvent, ignore_event
from runner.control import Control
from runner.engine.contract import Order
from tests.sim.checks import Checks
from tests.sim.parts import SimStore
from tests.sim.scheduler import Process
from tests.sim.wires import WiredTable, said
from tests.sim.world import BODIES, SimSandbox, World

FOLDER = "configs/_shared/members/"
MANIFEST = f"{FOLDER}manifest.json"
# What an overlay makes of the delimiter tells whose it is: of the tenant, or of its sender d/.
DELIMITERS = {"acme": (";", ":"), "globex": ("\t", "~")}
MISFIT = b'{"overlay": 1, "fields": {"nobody": {"synonyms": ["x"]}}}'


def manifest_of(n: int) -> bytes:
    whole = {"manifest": 1, "name": "members", "tenants": ["*"], "subscribe": ["d/*.csv"]}
    return json.dumps(whole | {"config": "./config", "fields": [{"name": f"v{n}"}]}).encode()


def rule_of(n: int) -> bytes:
    """Two versions share a config, so that some promotions change nothing but the manifest."""
    return f"RULE = {n // 2}\n".encode()


def package_of(n: int) -> dict[str, bytes]:
    return {f"row_types/r{n // 2 % 2}.py": rule_of(n)}


def overlay_of(tenant: str, *, sender: bool, n: int) -> bytes:
    reading = {"delimiter": DELIMITERS[tenant][sender]}
    return json.dumps({"overlay": 1, "reading": reading, "description": f"{n}"}).encode()


class MarkingSandbox(SimSandbox):
    """A box whose workbook says which version, config and overlay it had."""

    def run(self, order: BoxOrder, *, killed: Killed, on_event: OnEvent = ignore_event) -> BoxReport:
        report = super().run(order, killed=killed, on_event=on_event)
        book = report.outputs.get("normalized.xlsx")
        if book is not None and isinstance(order.job, Order):
            rules = sorted((order.scratch / "config").rglob("*.py"))
            facts = [order.job.manifest["fields"][0]["name"], order.job.manifest["reading"]["delimiter"]]  # type: ignore[index]
            marks = [*map(str, facts), *(rule.read_text().strip() for rule in rules)]
            book.write_bytes(book.read_bytes() + "".join(f"|{mark}" for mark in marks).encode())
        return report


@dataclass(frozen=True)
class _Replay:
    version: str
    tenant: str | None


class SharedChecks(Checks):
    """Also: what a result was made with is what its row says, and a replay writes nowhere else."""

    world: "Shared"
    kept: frozenset[str] = frozenset()  # inputs of the replay's job that an operator acts on

    def object_written(self, key: str, body: bytes | None) -> None:
        super().object_written(key, body)
        process = self.world.scheduler.current.process.name
        if process.startswith("replayer") and not key.startswith(REPLAYS) and VERSIONS not in key:
            self._breaks(f"a replay wrote {key}")
        if body is None:
            if process.startswith("operator") and key in self.kept:
                self._breaks(f"{key} was deleted with a job of a replay")
            if VERSIONS in key:
                self._is_free(key)
        elif key.endswith("/normalized.xlsx") and key.startswith(("outputs/", REPLAYS)):
            self._made_with(key, body)

    def _is_free(self, key: str) -> None:
        """A part of a version is deleted only after the last job that names it is gone."""
        for job in self._rows.jobs.values():
            named = {part.key for part in stored_parts(job)} | {ref.key for ref in job.config}
            if job.state is not State.EXPIRED and key in named | ({job.manifest.key} if job.manifest else set()):
                self._breaks(f"{key} was deleted, and {job.job_id} names it")
        self.world.met["version_forgotten"] += 1

    def _made_with(self, key: str, body: bytes) -> None:
        job = self._rows.jobs.get(key.split("/")[-2])
        if job is None or job.manifest is None:
            return
        if bool(job.replay) != key.startswith(REPLAYS):
            self._breaks(f"{job.job_id} published {key}")
        _, _, field, delimiter, *rules = body.decode().split("|")
        n = int(field[1:])
        if rules != [rule_of(n).decode().strip()] or job.manifest.digest != self.world.digests[n]:
            self._breaks(f"{key}: version {n} of {job.manifest.digest[:8]} ran with {rules}")
        marks = [self.world.overlays.get(ref.digest, ("", "")) for ref in job.overlays]
        if any(tenant != job.tenant for tenant, _ in marks) or delimiter != (marks[-1][1] if marks else "None"):
            self._breaks(f"{key}: delimiter {delimiter!r} of overlays {marks}")
        self.world.met["made_with_an_overlay"] += bool(marks)
        self.world.met[f"version_{'replayed' if job.replay else 'ran'}"] += 1

    def at_rest(self) -> list[str]:
        return [*super().at_rest(), *self.world.library_problems()]

    def _stands(self, key: str, jobs: list[Job]) -> list[str]:
        """The input that stands has a result with some version of the workflow, and latest.json names it."""
        digest = self._bucket.objects[key][0].digest
        mine = [job for job in jobs if not job.replay and job.workflow != NO_WORKFLOW]
        mine = [j for j in mine if any((i.ref.key, i.ref.digest) == (key, digest) for i in j.inputs)]
        well = [job for job in mine if self._well(job, key, jobs)]
        if not well:
            told = ", ".join(f"{job.job_id} {job.state} ({job.reason})" for job in mine)
            return [f"{key} was lost: {told or 'it has no job'}"]
        succeeded = [job for job in mine if job.state is State.SUCCEEDED]
        found = []
        first = min(succeeded, key=lambda job: job.ended_at or 0.0, default=None)
        for job in succeeded if first is not None and key not in self.world.run_again_for else ():
            # One that was planned before the other had ended may have run beside it.
            if job.created_at > (first.ended_at or 0.0) + 5.0:  # type: ignore[union-attr]
                found.append(f"{key} was processed by {first.job_id}, and again by {job.job_id}")  # type: ignore[union-attr]
        there = self._bucket.objects.get(latest_key(well[0]))
        named = json.loads(there[1])["job_id"] if there else None
        if succeeded and named not in {job.job_id for job in succeeded}:
            found.append(f"{latest_key(well[0])} names {named}, and {key} stands with {succeeded[0].job_id}")
        return found

    def _dropped(self, key: str, jobs: list[Job]) -> float:
        """When what is there came first: while there was no workflow, nobody planned what came between."""
        del jobs
        digest = self._bucket.objects[key][0].digest
        return next(at for at, content in self.uploaded[key] if content == digest)


class SleepingTable(WiredTable):
    def wait(self, seconds: float) -> None:
        self._n.scheduler.sleep(seconds)


class Shared(World):
    checks: SharedChecks
    collected_after = 2500.0  # neither janitor may lead when its turn comes

    def __init__(self, seed: int, folder: Path) -> None:
        self.authors = random.Random(f"authors {seed}")
        self.digests: list[str] = []  # of the manifest of each version
        self.overlays: dict[str, tuple[str, str]] = {}  # by digest: of which tenant, and its delimiter
        self.run_again_for: set[str] = set()
        self.promoted: list[str] = []  # ids of versions, in the order in which promotions went through
        self.replays: list[_Replay] = []
        self.alone = self.authors.random() < 0.6
        super().__init__(seed, folder)
        self.people = None
        self.bodies = BODIES
        self.boxes = type(self.boxes)(MarkingSandbox(self), self.boxes.layers)
        checks = SharedChecks(self.bucket, self.rows, self.messages, self.met)
        checks.retention, checks.on_broken, checks.world = self.checks.retention, self.checks.on_broken, self
        self.checks = checks
        self.store = SimStore(self.bucket)
        self._write_version(FOLDER, 0)

    def wired_table(self, process: Process) -> WiredTable:
        return SleepingTable(self.network, process, self.table(process))

    def _write_version(self, place: str, n: int) -> None:
        for name, body in package_of(n).items():
            self.store.put(f"{place}config/{name}", body)
        self.digests.append(self.store.put(f"{place}manifest.json", manifest_of(n)).digest)

    # What people do

    def send(self) -> None:
        rng, store = self.authors, self.store
        for n in range(rng.randint(4, 14)):
            tenant = rng.choice(["acme", "globex"])
            key = f"inbox/{tenant}/d/{rng.choice(['a.csv', 'a.csv', 'b.csv'])}"
            draw = rng.random()
            if draw < 0.55:
                self._upload(store, key, rng.choice(self.bodies))
                if self.checks.uploaded[key][-1][1] in [digest for _, digest in self.checks.uploaded[key][:-1]]:
                    self.run_again_for.add(key)  # another content may have been seen between
            elif draw < 0.62:
                self.scheduler.trace("deletes", key)
                store.delete(key)
            else:
                self._overlay(tenant, n)
            if rng.random() < 0.5:
                self.scheduler.sleep(rng.choice([0.0, 0.05, 0.3]))
            elif rng.random() < 0.94:
                self.scheduler.sleep(rng.uniform(0, self.length / 5))
            else:
                self.met["retention_passed"] += 1
                self.scheduler.sleep(rng.choice([3000.0, 7500.0]))
        self._end()

    def _overlay(self, tenant: str, n: int) -> None:
        """A tenant, or one of its senders, gets an overlay, a wrong one, or none any more."""
        sender = self.authors.random() < 0.4
        key, draw = f"configs/{tenant}/{'d/' if sender else ''}members.overlay.json", self.authors.random()
        if draw < 0.25:
            self.scheduler.trace("deletes", key)
            self.store.delete(key)
            return
        if draw < 0.35:
            self.scheduler.trace("uploads", said(self.store.put(key, MISFIT)))
            return
        body = overlay_of(tenant, sender=sender, n=n)
        info = self.store.put(key, body)
        self.overlays[info.digest] = (tenant, DELIMITERS[tenant][sender])
        self.scheduler.trace("uploads", said(info))

    def _author(self) -> None:
        """Drafts, promotes, reverts and replays; whoever dies in the middle does it again."""
        rng = self.authors
        for _ in range(rng.randint(1, 5)):
            self.scheduler.sleep(rng.uniform(1.0, self.length / 3))
            act = rng.choice(["promote", "promote", "promote", "revert", "replay", "replay"])
            if act == "replay":
                self._replay(rng.choice([None, "acme"]), rng.choice([0, 1, 5]))
            elif act == "revert":
                chosen = list[str]()
                self._insist_on("revert", "members", lambda stack, chosen=chosen: self._revert(stack, chosen))
            else:
                n = len(self.digests)
                self.digests.append("")
                self._insist_on("promote", f"v{n}", lambda stack, n=n: self._promote(stack, n))
        self._end()

    def _insist_on(self, act: str, about: str, carry_out: Callable[[Stack], None]) -> None:
        """Repeat what another author got in the way of, too."""
        for _ in range(10):
            if self.repeat(act, about, carry_out, "author"):
                return

    def _promote(self, stack: Stack, n: int) -> None:
        library = Library(stack.store)
        standing = library.find("members")
        files = {f"config/{name}": body for name, body in package_of(n).items()}
        draft = library.put_draft(standing, {**files, "manifest.json": manifest_of(n)})
        self._goes_live(stack, draft)

    def _goes_live(self, stack: Stack, version: Version) -> None:
        n = int(version.read.fields[0].name[1:])
        self.digests[n] = self.digests[n] or self._digest_of(version.manifest)
        library = Library(stack.store)
        library.promote(library.find("members"), version)
        self.promoted.append(version.id)
        Intake.over(stack).changed([MANIFEST])

    def _digest_of(self, body: bytes) -> str:
        return SimStore(type(self.bucket)(self._service)).put("x/x", body).digest

    def _revert(self, stack: Stack, chosen: list[str]) -> None:
        """Go back; who has to repeat it names the version, as the command asks for."""
        library = Library(stack.store)
        standing = library.find("members")
        if not chosen:
            chosen.append(standing.unfinished.to if standing.unfinished else library.before_live(standing))
        self._goes_live(stack, library.load(standing, chosen[0]))

    def _replay(self, tenant: str | None, patience: int) -> None:
        """Somebody replays history for a while, and goes away."""
        left = [patience]

        def stopped() -> bool:
            left[0] -= 1
            return left[0] < 0

        def carry_out(stack: Stack) -> None:
            library = Library(stack.store)
            standing = library.find("members")
            version = library.load(standing, DRAFTED if library.has_draft(standing) else LIVE)
            n = int(version.read.fields[0].name[1:])
            self.digests[n] = self.digests[n] or self._digest_of(version.manifest)
            made = Replayer(stack, standing, version, tenant=tenant, since=None)
            self.replays.append(_Replay(version.id, tenant))
            self._fed(made, stopped)

        self.repeat("replay", tenant or "all", carry_out, "replayer")

    def _fed(self, made: Replayer, stopped: Callable[[], bool]) -> None:
        made.feed(made.pairs(), at_once=2, stopped=stopped, seen=lambda _ended: None)

    def act_on(self, stack: Stack, act: str, job_id: str) -> None:
        job = self.rows.jobs.get(job_id)
        self.checks.kept = frozenset(i.ref.key for i in job.inputs) if job and job.replay else frozenset()
        if act not in ("retry", "reset"):
            super().act_on(stack, act, job_id)
            return
        self.run_again_for |= {i.ref.key for i in job.inputs} if job else set()
        control = Control(stack.store, stack.table, stack.queue, stack.clock)
        run_again(Intake.over(stack), control, "retry" if act == "retry" else "reset", job_id)

    def _end(self) -> None:
        self.busy -= 1
        self.scheduler.wake(self.scheduler.world)

    # How a run goes

    def run(self) -> list[str]:
        people = Process("authors", self.scheduler)
        self.busy = 1 if self.alone else 2
        for n in range(self.busy):
            self.scheduler.spawn(people, f"author{n}", self._author)
        return super().run()

    def calm(self) -> None:
        super().calm()
        for key in sorted(self.bucket.objects):
            if self.bucket.objects[key][1] == MISFIT:
                self.scheduler.trace("deletes", key)
                self.store.delete(key)
        if MANIFEST not in self.bucket.objects:
            self.repeat(
                "revert", "members", lambda stack: self._revert(stack, []), "author"
            )  # goes on with what somebody gave up
        for replay in dict.fromkeys(self.replays):
            self.repeat("replay", "to its end", lambda stack, one=replay: self._finish(stack, one), "replayer")

    def _finish(self, stack: Stack, replay: _Replay) -> None:
        library = Library(stack.store)
        standing = library.find("members")
        version = library.load(standing, replay.version)
        made = Replayer(stack, standing, version, tenant=replay.tenant, since=None)
        deadline = self.scheduler.now + 3000.0
        self._fed(made, lambda: self.scheduler.now > deadline)
        ends = stack.table.get_all([pair.again.job_id for pair in made.pairs()])
        late = [job.job_id for job in ends.values() if job.state not in ENDED]
        if late:
            self.checks._breaks(f"{late} of a replay did not end")
        self.met["replay_finished"] += 1

    def library_problems(self) -> list[str]:
        """What is live is a whole version that somebody promoted, and what was live before can be made live again."""
        library = Library(self.store)
        try:
            standing = library.find("members")
            live = library.load(standing, LIVE)
        except UsageError as error:
            return [f"the workflow is gone: {error}"]
        n = int(live.read.fields[0].name[1:])
        found = []
        if dict(live.package) != package_of(n):
            found.append(f"version {n} is live with {dict(live.package)}")
        if self.alone and self.promoted and live.id != self.promoted[-1]:
            found.append(f"{live.id} is live, and {self.promoted[-1]} was promoted last")
        try:
            before = library.load(standing, library.before_live(standing)) if self.promoted else live
        except UsageError as error:
            given_up = "did not take effect" in str(error)
            return found if given_up else [*found, f"nothing to go back to: {error}"]
        if len(set(self.promoted)) > 1 and before.id == live.id:
            found.append(f"a revert of {live.id} would change nothing")
        return found


class Withdrawn(Shared):
    """The workflow is taken away while files come, whole or in part, and comes back as it was."""

    def _author(self) -> None:
        rng = self.authors
        live = {key: held[1] for key, held in self.bucket.objects.items() if key.startswith(FOLDER)}
        for _ in range(rng.randint(1, 4)):
            self.scheduler.sleep(rng.uniform(0.0, self.length / 3))
            if rng.random() < 0.25:
                self._replay(rng.choice([None, "acme"]), rng.choice([0, 1, 5]))
                continue
            gone = [key for key in live if rng.random() < 0.7] or [MANIFEST]
            for key in rng.sample(gone, len(gone)):
                self.scheduler.trace("deletes", key)
                self.store.delete(key)
                self.scheduler.sleep(rng.choice([0.0, 0.1, 2.0]))
            self.met["workflow_withdrawn"] += 1
            self.scheduler.sleep(rng.choice([0.0, 1.0, rng.uniform(0.0, self.length / 2)]))
            for key in sorted(gone, key=lambda key: key == MANIFEST):
                self.scheduler.trace("uploads", said(self.store.put(key, live[key])))
                self.scheduler.sleep(rng.choice([0.0, 0.1, 2.0]))
        self._end()
