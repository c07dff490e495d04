"""What the console's pages weigh and cost with 200 senders, at 1,000 and at 100,000 jobs.

python -m tests.bench.bench_pages [--small N] [--large N] [--rounds N] [--stale | --cold] [--heights]

Costs are CPU time in this process, in turns; beside them stand the steps that SQLite took. Both tables have as many
failures and waiting questions, which pages list. The facade keeps
answers for moments, as for people who use the pages. With `--stale` these moments are over: everything is asked again,
except counters of days that are over. With `--cold` the process has just started, and reads these too: more, until
senders have four weeks of them.
`--heights` also opens each page in Chromium and prints how tall it is at 1280 and at 390 pixels.
"""

import argparse
import contextlib
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn

from console.facade import Facade, Fresh
from core.chores import wake_at
from core.ends import NUMBERS, end_counts
from core.jobs import Job, JobError, ObjectRef, Review, State, dump_job
from core.keys import job_folder
from core.settings import Settings
from core.verdicts import Verdict
from infra.wiring import open_stack
from tests.support.console import ApiRig, api_rig

SENDERS = 200
SPREAD_SECONDS = 20 * 86400.0
FAILED, ASKING = 300, 97  # of all jobs, however many there are
MOST_KB, MOST_TIMES = 300, 1.5
PAGES = {
    "home": "/", "home, week": "/?range=week", "home of a tenant": "/?tenant=t003", "senders": "/senders",
    "senders, search": "/senders?text=t01&sort=rows", "sender": "/sender?tenant=t003&workflow=members", "jobs": "/jobs",
    "jobs, failed": "/jobs?state=FAILED", "job": "/jobs/{one}", "review": "/review", "drop": "/drop",
}  # fmt: skip


def _is_one_of(some: int, n: int, of: int) -> bool:
    """Whether a job is one of some that are spread evenly over all."""
    return n * some % of < some


def job(n: int, of: int, now: float) -> Job:
    """Jobs of three weeks; some fail, and a tenth of the senders gets worse."""
    sender = n % SENDERS
    at = now - SPREAD_SECONDS * (of - n) / of
    fails, asks = _is_one_of(FAILED, n, of), _is_one_of(ASKING, n + 1, of)
    state = State.REVIEW if asks else State.FAILED if fails else State.SUCCEEDED
    ref = ObjectRef(key=f"inbox/t{sender:03d}/d{n}/manifest.json", version="0" * 64, digest="0" * 64, size=300)
    wrong = 35 if sender % 10 == 0 and n > of - 2 * SENDERS else n % 3
    error = JobError(verdict=Verdict.RULE_ERROR, message="it broke") if state is State.FAILED else None
    return Job(
        job_id=f"t{sender:03d}-members-{n:08d}",
        identity=f"{n:064d}",
        tenant=f"t{sender:03d}",
        workflow="members",
        subject=f"d{n}/m.xlsx",
        state=state,
        manifest=ref,
        error=error,
        review=Review(questions=1, on_expiry="fail") if state is State.REVIEW else None,
        summary={"rows_out": 100, "rows_with_errors": wrong, "drift": int(n % 50 == 0), "findings": {"error": wrong}},
        created_at=at,
        updated_at=at,
        started_at=at,
        ended_at=None if state is State.REVIEW else at + 1,
        history=(("QUEUED", at), ("RUNNING", at), (str(state), at + 1)),
        rev=1,
    )


def question(one: Job) -> dict[str, object]:
    """Each sender asks about another header, so that the page compares them all."""
    candidates = [{"value": "street", "label": "street", "probability": 0.5}, {"value": None, "label": "no field"}]
    about = {"kind": "column", "header": one.tenant, "text": f"Which field is {one.tenant}?", "column": "B"}
    return {"id": "q-1", **about, "chosen": None, "candidates": candidates}


def fill(folder: Path, n: int) -> None:
    """Rows and counters as the table would have them, without the sync of each write."""
    with open_stack(Settings(storage_data_dir=folder)) as stack:
        now, db = stack.clock.now(), stack.table._db.read()  # type: ignore[attr-defined]
        db.execute("PRAGMA synchronous = OFF")
        db.execute("BEGIN IMMEDIATE")
        counted: dict[tuple[str, str, float], list] = {}
        for one in (job(k, n, now) for k in range(n)):
            db.execute(
                "INSERT INTO jobs (job_id, tenant, workflow, line, created_at, state, wake_at, resting, rev, doc)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(one.job_id, one.tenant, one.workflow, one.line, one.created_at, str(one.state)),
                    *(wake_at(one, stack.settings.timings), 1, 1, dump_job(one)),
                ),
            )
            if one.state is State.REVIEW:
                document = json.dumps({"questions": [question(one)]}).encode()
                stack.store.put(f"{job_folder(one)}review.json", document)
            before = replace(one, state=State.PUBLISHING if one.state is State.SUCCEEDED else State.RUNNING)
            for counts in end_counts(before, one) or ():
                key = (counts.tenant, counts.workflow, counts.at)
                counted[key] = counted[key] + counts if key in counted else counts
        names = ", ".join(NUMBERS)
        for (tenant, workflow, at), counts in counted.items():
            db.execute(
                f"INSERT INTO ends (tenant, workflow, at, {names}, last_at, last_job)"
                f" VALUES ({', '.join('?' * (5 + len(NUMBERS)))})",
                (tenant, workflow, at, *counts.numbers, counts.last_at, counts.last_job),
            )
        db.execute("COMMIT")


def asked(path: str, n: int) -> str:
    k = n // 2
    return path.format(one=f"t{k % SENDERS:03d}-members-{k:08d}")


class StepCount:
    """Counts the steps of SQLite's machine that a table takes to answer: the same however busy the computer is."""

    EACH = 10  # steps between two counts

    def __init__(self, table: Any) -> None:
        self.steps = 0
        self._read = table._db.read
        table._db.read = self._counted

    def _counted(self) -> Any:
        db = self._read()
        db.set_progress_handler(self._add, self.EACH)
        return db

    def _add(self) -> None:
        self.steps += self.EACH


def expire(facade: Facade) -> None:
    """What the facade remembers for moments is too old."""
    for kept in vars(facade).values():
        if isinstance(kept, Fresh):
            kept.forget()
        elif isinstance(kept, dict):
            kept.clear()


def measure(rigs: dict[int, ApiRig], rounds: int, *, answers: str) -> None:
    small, large = sorted(rigs)
    counts = {n: StepCount(rig.stack.table) for n, rig in rigs.items()}
    print(f"{'page':<20} {'ms at ' + str(small):>14} {'ms at ' + str(large):>14} {'times':>6} {'KB':>6} {'steps':>14}")
    for name, path in PAGES.items():
        taken: dict[int, list[float]] = {n: [] for n in rigs}
        steps: dict[int, int] = {}
        weight = 0
        for turn in range(rounds + 1):
            for n, rig in rigs.items():
                rig.context.answers.forget()
                if answers == "cold":
                    object.__setattr__(rig.context, "facade", Facade(rig.stack))  # nothing is remembered
                elif answers == "stale":
                    expire(rig.context.facade)
                counts[n].steps = 0
                began = time.process_time()
                answer = rig.client.get(asked(path, n), headers={"Accept": "text/html"})
                spent = (time.process_time() - began) * 1000
                answer.raise_for_status()
                weight, steps[n] = max(weight, len(answer.content)), counts[n].steps
                if turn:
                    taken[n].append(spent)
        few, many = (min(taken[n]) for n in (small, large))
        middle = statistics.median(taken[large])
        wrong = "  TOO SLOW" * (many / few > MOST_TIMES) + "  TOO HEAVY" * (weight > MOST_KB * 1024)
        read = f"{steps[small]} {steps[large]}"
        costs = f"{few:>14.1f} {many:>14.1f} {many / few:>6.2f} {weight / 1024:>6.0f} {read:>14}"
        print(f"{name:<20} {costs}  median {middle:.1f}{wrong}")


@contextlib.contextmanager
def served(rig: ApiRig) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(rig.app, host="127.0.0.1", port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


def heights(rig: ApiRig, n: int, shots: Path | None) -> None:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where it is asked for

    from tests.browser.conftest import CHROMIUM, SWITCHES  # noqa: PLC0415

    with served(rig) as address, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=list(SWITCHES))
        for width in (1280, 390):
            page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
            for name, path in PAGES.items():
                page.goto(address + asked(path, n))
                tall = page.evaluate("document.documentElement.scrollHeight")
                print(f"{name} at {width}: {tall} px")
                if shots is not None:
                    shots.mkdir(parents=True, exist_ok=True)
                    page.screenshot(
                        path=shots / f"{name.replace(', ', '-').replace(' ', '-')}-{width}.png", full_page=True
                    )
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=1_000)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--heights", action="store_true")
    parser.add_argument("--stale", dest="answers", action="store_const", const="stale", default="warm")
    parser.add_argument("--cold", dest="answers", action="store_const", const="cold")
    parser.add_argument("--shots", type=Path)
    given = parser.parse_args()
    with contextlib.ExitStack() as opened:
        rigs: dict[int, ApiRig] = {}
        for n in (given.small, given.large):
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="bench-pages-")))
            fill(folder, n)
            rigs[n] = opened.enter_context(api_rig(folder, console_rate=100_000))
        measure(rigs, given.rounds, answers=given.answers)
        if given.heights or given.shots:
            heights(rigs[given.large], given.large, given.shots)


if __name__ == "__main__":
    main()
