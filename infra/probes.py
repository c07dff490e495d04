"""Does with each service what jobs need of it, in a place of its own: what only answers may still refuse every write.

A probe leaves nothing behind. What a crash leaves of it is collected like any staged file (store), forgotten like any
ended job (table), and thrown away by the runner that receives it (queue: no such job).
"""

import secrets
from contextlib import suppress

from core.errors import ObjectMissing, PreconditionFailed, StoreUnavailable
from core.jobs import Job, State
from core.keys import staging_folder
from core.ports import Clock, JobTable, Message, ObjectStore, WorkQueue

TENANT = "_probe"  # no tenant can be called so
_WAIT_SECONDS = 2.0
_VISIBLE_SECONDS = 30.0
_MOST = 10


def probe_store(store: ObjectStore) -> None:
    """Put, read back, put again under a condition, copy, list, delete. Raises StoreUnavailable."""
    folder = staging_folder(f"probe-{secrets.token_hex(8)}")
    key, copied, body = f"{folder}probe", f"{folder}copy", secrets.token_bytes(64)
    try:
        made = store.put(key, body)
        _expect(
            "an object reads as it was written", holds=store.read(key, version=made.version, limit=len(body)) == body
        )
        with suppress(PreconditionFailed):
            store.put(key, b"other", if_absent=True)
            _expect("a conditional write is refused where its condition fails", holds=False)
        store.copy(key, copied)
        _expect("a copy holds what was copied", holds=store.read(copied, limit=len(body)) == body)
        _expect("a listing holds what was written", holds=sorted(store.keys(folder)) == sorted([key, copied]))
    except (ObjectMissing, PreconditionFailed) as error:
        raise StoreUnavailable(f"what was just written is not there: {error}") from error
    finally:
        store.delete_all([key, copied])
    _expect("what was deleted is gone", holds=store.head(key) is None)


def probe_table(table: JobTable, clock: Clock) -> None:
    """Add, read, replace and remove a row that is no work for anybody. Raises StoreUnavailable."""
    name, now = f"probe-{secrets.token_hex(8)}", clock.now()
    job = Job(
        job_id=name,
        identity=name,
        tenant=TENANT,
        workflow="probe",
        subject="probe",
        state=State.SKIPPED,
        reason="a probe of `ade doctor`",
        created_at=now,
        updated_at=now,
        ended_at=now,
    )
    added, _ = table.add(job)
    try:
        _expect("a row reads as it was written", holds=table.get(name) == added)
        written = table.replace(added, added)
        _expect("a write over another's is refused", holds=written is not None and table.replace(added, added) is None)
    finally:
        if (last := table.get(name)) is not None:
            table.remove(last)
    _expect("a row that was removed is gone", holds=table.get(name) is None)


def probe_queue(queue: WorkQueue) -> None:
    """Send, receive and delete a message that names no job; puts back what else it receives.

    A runner may be quicker and throw the probe away, and a busy queue may bring others first: neither is a failure.
    """
    name = f"probe-{secrets.token_hex(8)}"
    queue.send(Message(job_id=name, tenant=TENANT))
    for delivery in queue.receive(most=_MOST, wait=_WAIT_SECONDS, visibility=_VISIBLE_SECONDS):
        if delivery.message.tenant == TENANT:
            queue.ack(delivery.receipt)
        else:
            queue.hide(delivery.receipt, 0)


def _expect(what: str, *, holds: bool) -> None:
    if not holds:
        raise StoreUnavailable(f"it does not hold that {what}")
