"""The runner's composition root: ports and boxes in, a fleet and a janitor out."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from infra.ecs import task_shield
from infra.logs import Log
from infra.presence import Presence, new_owner
from infra.wiring import Stack
from runner.attempt import Attempts, Boxes
from runner.fleet import Fleet
from runner.janitor import Janitor
from runner.leases import Beats
from runner.publish import Publisher
from runner.worker import Worker


@dataclass(frozen=True, slots=True)
class Runner:
    """Everything one process needs to work on jobs and to tidy up."""

    presence: Presence
    worker: Worker
    beats: Beats
    fleet: Fleet
    janitor: Janitor
    publisher: Publisher

    def close(self) -> None:
        self.janitor.resign()
        self.presence.close()


def assemble(
    stack: Stack, boxes: Boxes, log: Log, *, role: str = "runner", sweep: Callable[[], object] | None = None
) -> Runner:
    settings = stack.settings
    presence = Presence(stack.run_dir, new_owner(role))
    publisher = Publisher(stack.store, stack.table, stack.clock)
    beats = Beats(
        stack.table,
        stack.queue,
        stack.clock,
        log,
        lease_seconds=settings.lease_seconds,
        beat_seconds=settings.beat_seconds,
    )
    worker = Worker(
        table=stack.table,
        queue=stack.queue,
        clock=stack.clock,
        settings=settings,
        attempts=Attempts(stack.store, boxes, settings, stack.run_dir / presence.owner),
        publisher=publisher,
        beats=beats,
        presence=presence,
        log=log,
    )
    janitor = Janitor(
        store=stack.store,
        table=stack.table,
        queue=stack.queue,
        clock=stack.clock,
        timings=settings.timings,
        worker=worker,
        publisher=publisher,
        presence=presence,
        boxes=boxes,
        run_dir=stack.run_dir,
        log=log,
        sweep=sweep,
        sweep_seconds=settings.sweep_seconds,
    )
    shield = task_shield(os.environ, log)
    fleet = Fleet(worker, stack.queue, beats, log, slots=settings.max_concurrency, shield=shield)
    return Runner(presence, worker, beats, fleet, janitor, publisher)
