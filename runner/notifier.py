"""Carries out notices: sends what a job's row holds, then clears it there by a conditional write.

A crash after the send and before the write sends it again, with the same id. Deliveries run in a few threads of their
own once `start` was called, so that a slow receiver delays neither rescues nor publications; before that they run where
they are asked for.
"""

import random
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field

from core.errors import AdeError
from core.jobs import Job, Notice
from core.loads import PREFIX, LoadFailed, LoadRefused, LoadRule
from core.mails import PREFIX as MAILTO
from core.notices import MOST_TRIES, Refusal, body, delivered, held_until, postponed
from core.ports import Clock, JobTable
from infra.deliveries import Deliveries, NotDelivered
from infra.loads import Loads
from infra.logs import Log
from infra.mails import MailHeld, Mails
from infra.queueing import mutate
from infra.telemetry import Telemetry, job_fields

_THREADS = 8
_MOST_WAITING = 500


@dataclass(eq=False, repr=False)
class Notifier:
    table: JobTable
    clock: Clock
    deliveries: Deliveries
    loads: Loads
    mails: Mails
    log: Log
    _: KW_ONLY
    telemetry: Telemetry = field(default_factory=Telemetry)
    draw: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        self._meters = self.telemetry.meters
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._pool: ThreadPoolExecutor | None = None

    def start(self) -> None:
        self._pool = self._pool or ThreadPoolExecutor(_THREADS, thread_name_prefix="notice")

    def stop(self) -> None:
        """Wait for the deliveries in progress; the others stay in their rows."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
            self._busy.clear()

    def deliver(self, job: Job) -> bool:
        """Send the notices of a job that are due; False if they are being sent already, or too many others wait."""
        with self._lock:
            if job.job_id in self._busy or len(self._busy) >= _MOST_WAITING:
                return False
            self._busy.add(job.job_id)
        if self._pool is None:
            self._send_all(job)
        else:
            self._pool.submit(self._send_all, job)
        return True

    def _send_all(self, job: Job) -> None:
        try:
            for notice in job.notices:
                if notice.next_at <= self.clock.now():
                    self._send(job, notice)
        except Exception as error:  # noqa: BLE001 - it is still in its row, so the next round tries again
            self.log.warning("notice_failed", **job_fields(job), error=f"{type(error).__name__}: {error}")
        finally:
            with self._lock:
                self._busy.discard(job.job_id)

    def _send(self, job: Job, notice: Notice) -> None:
        about = {**job_fields(job), "notice": notice.id, "kind": notice.kind, "tries": notice.tries + 1}
        try:
            refusal = self._deliver(job, notice)
        except MailHeld as held:
            until = held.until
            self._change(job, lambda row: held_until(row, notice.id, until))
            return
        except NotDelivered as error:
            self._postpone(job, notice, str(error), about)
            return
        except Exception as error:  # noqa: BLE001 - it counts as a try, or it would come back at once, forever
            self._postpone(job, notice, type(error).__name__, about)  # its text may quote a cell
            return
        if refusal is not None:
            self._meters.add("ade.notices", outcome="refused")
            self.log.warning("notice_refused", **about, reason=refusal.reason)
        else:
            self._meters.add("ade.notices", outcome="delivered")
            self.log.info("notice_delivered", **about)
        self._change(job, lambda row: delivered(row, notice.id))

    def _postpone(self, job: Job, notice: Notice, error: str, about: Mapping[str, object]) -> None:
        """Try a notice later; after about a day it is given up."""
        last = notice.tries + 1 >= MOST_TRIES
        if last and notice.to.startswith(PREFIX):
            with suppress(AdeError, OSError):
                self.loads.note_failure(job, LoadRule.parse(notice.to), error)
        self._meters.add("ade.notices", outcome="given_up" if last else "failed")
        self.log.warning("notice_given_up" if last else "notice_failed", **about, error=error)
        jitter = self.draw()
        self._change(job, lambda row: postponed(row, notice.id, now=self.clock.now(), jitter=jitter))

    def _deliver(self, job: Job, notice: Notice) -> Refusal | None:
        """Send a notice, or load the result; raises NotDelivered if it has to be tried again."""
        if notice.to.startswith(MAILTO):
            return self.mails.send(job, notice)
        if not notice.to.startswith(PREFIX):
            return self.deliveries.send(notice.to, notice.id, notice.kind, body(job, notice))
        try:
            self.loads.load(job, LoadRule.parse(notice.to))
        except LoadRefused as refused:
            return Refusal(str(refused))
        except LoadFailed as failed:
            raise NotDelivered(str(failed)) from failed
        return None

    def _change(self, job: Job, change: Callable[[Job], Job | None]) -> None:
        mutate(self.table, job.job_id, change)
