"""The runner's composition root. In: ports and boxes. Out: a fleet and a janitor."""

import contextlib
import os
import random
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from core.errors import AdeError
from infra.aws.ecs import task_shield
from infra.deliveries import Deliveries
from infra.loads import Loads
from infra.local.presence import Presence, Pulse, alive_file, new_owner
from infra.logs import Log
from infra.mails import Mails
from infra.queueing import Lanes
from infra.wiring import Stack
from runner.attempt import Attempts, Boxes
from runner.fleet import Fleet
from runner.janitor import REST_SECONDS, Janitor
from runner.leases import Beats
from runner.notifier import Notifier
from runner.origins import Origins
from runner.patience import PatientCalls
from runner.publish import Publisher
from runner.surroundings import DiskRoom, Surroundings, make_checks
from runner.versions import StoredVersions
from runner.worker import Worker

_CHORE_LANES = 24  # jobs that a janitor handles at once: a single leader has to keep up with everything that expires
_REMOTE_LANES = 4  # parallel transfers of one job's files, for a store over the network


@dataclass(frozen=True, slots=True)
class Runner:
    """Everything one process needs to run jobs and clean up."""

    presence: Presence
    worker: Worker
    beats: Beats
    fleet: Fleet
    janitor: Janitor
    publisher: Publisher

    def close(self) -> None:
        with contextlib.suppress(AdeError, OSError, sqlite3.Error):  # otherwise the leader's lease expires by itself
            self.janitor.resign()
        with contextlib.suppress(AdeError, OSError):  # otherwise the janitor deletes them
            self.publisher.tidy()
        self.presence.close()


def assemble(
    stack: Stack,
    boxes: Boxes,
    log: Log,
    *,
    role: str = "runner",
    sweep: Callable[[], object] | None = None,
    draw: Callable[[], float] = random.random,
    bundles: bool = True,
) -> Runner:
    """`draw` returns numbers from [0, 1): the jitter of retries and probes.

    `bundles`: whether small outputs are staged together.
    """
    settings = stack.settings
    presence = Presence(stack.run_dir, new_owner(role))
    pulse = Pulse(alive_file(stack.run_dir, role))
    lanes = Lanes(_REMOTE_LANES if settings.store_url else 1)
    publisher = Publisher(stack.store, stack.table, stack.clock, lanes, log, telemetry=stack.telemetry)
    leases_table, leases_queue = stack.for_leases()
    beats = Beats(
        leases_table,
        leases_queue,
        stack.clock,
        log,
        lease_seconds=settings.lease_seconds,
        beat_seconds=settings.beat_seconds,
        wait=stack.table.wait,
        telemetry=stack.telemetry,
    )
    scratch = stack.run_dir / presence.owner
    versions = StoredVersions(stack.store, log)
    attempts = Attempts(
        stack.store,
        boxes,
        settings,
        scratch,
        lanes,
        origins=Origins(stack.table),
        telemetry=stack.telemetry,
        patient=PatientCalls() if settings.store_url else None,  # a folder of this machine does not hang
        bundles=bundles,
        versions=versions,
    )
    room = DiskRoom()
    surroundings = Surroundings(
        make_checks(
            stack.store,
            stack.table,
            stack.queue,
            scratch=stack.run_dir / presence.owner,
            owner=presence.owner,
            box=attempts.check_box,
            room=room,
        ),
        stack.clock,
        log,
        on_change=presence.set_note,
        draw=draw,
        room=room,
    )
    worker = Worker(
        table=stack.table,
        queue=stack.queue,
        clock=stack.clock,
        settings=settings,
        attempts=attempts,
        publisher=publisher,
        beats=beats,
        presence=presence,
        surroundings=surroundings,
        log=log,
        draw=draw,
        telemetry=stack.telemetry,
    )
    deliveries = Deliveries(settings.notify_allow, settings.notify_secret, now=stack.clock.now)
    loads = Loads(settings, stack.store, stack.clock)
    mails = Mails(settings.mail_file, now=stack.clock.now)
    notifier = Notifier(stack.table, stack.clock, deliveries, loads, mails, log, telemetry=stack.telemetry, draw=draw)
    janitor = Janitor(
        store=stack.store,
        table=stack.table,
        queue=stack.queue,
        clock=stack.clock,
        timings=settings.timings,
        worker=worker,
        publisher=publisher,
        notifier=notifier,
        presence=presence,
        boxes=boxes,
        run_dir=stack.run_dir,
        log=log,
        lanes=Lanes(_CHORE_LANES if settings.store_url else 1),
        versions=versions,
        tidy_lanes=Lanes(_CHORE_LANES if settings.store_url else 1),
        scan_inbox=sweep,
        sweep_seconds=settings.sweep_seconds,
        rest_seconds=REST_SECONDS if settings.table_url else 0.0,
        pulse=pulse.beat if role == "janitor" else lambda: None,  # in other roles the fleet's loop is the health check
        telemetry=stack.telemetry,
    )
    shield = task_shield(os.environ, log)
    fleet = Fleet(
        worker,
        stack.queue,
        beats,
        log,
        slots=settings.max_concurrency,
        shield=shield,
        clock=stack.clock,
        draw=draw,
        pulse=pulse.beat,
    )
    return Runner(presence, worker, beats, fleet, janitor, publisher)
