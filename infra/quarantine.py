"""Quarantine: nothing of a tenant is accepted and nothing of it starts; its files wait in the inbox.

It is two pauses, one of the tenant and one that marks it, and a generation: a scan reads the pauses only of tenants
that were in quarantine before, so that it costs the others nothing.
"""

from core.ports import QUARANTINE, Clock, JobTable, Pause


def quarantine_mark(tenant: str) -> str:
    """The name of the generation that says whether a tenant was ever in quarantine."""
    return f"quarantine/{tenant}"


def begin_quarantine(table: JobTable, clock: Clock, tenant: str, by: str) -> None:
    """A second call changes nothing."""
    table.advance(quarantine_mark(tenant))
    for workflow in (QUARANTINE, None):
        table.pause(Pause(tenant=tenant, workflow=workflow, since=clock.now(), by=by))


def end_quarantine(table: JobTable, tenant: str) -> bool:
    """End it, and the pause of the tenant with it; whether there was one."""
    was = table.resume(tenant, QUARANTINE)
    if was:
        table.resume(tenant, None)
    return was


def in_quarantine(table: JobTable, tenant: str) -> bool:
    return any(pause.is_quarantine and pause.tenant == tenant for pause in table.pauses())
