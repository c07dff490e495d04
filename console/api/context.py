"""What every request works with: the stack and the services over it, built once per server."""

import re
from dataclasses import dataclass, field
from secrets import token_hex

from console.api.access import LINKS_KEY, Access, Principal
from console.api.actions import ActionLog
from console.api.downloads import Downloads
from console.api.following import Followers
from console.api.guarding import Guard
from console.api.metrics import HttpCounts
from console.api.problems import not_found
from console.api.spools import SPOOL_PREFIX, Spool
from console.api.submissions import Submissions
from console.facade import Facade, SharedAnswers
from core.jobs import Job
from infra.logs import Log
from infra.wiring import Stack
from runner.control import Control

_JOB_ID = re.compile(r"[a-z0-9-]{1,100}")
_EMBEDDED_POLL_SECONDS, _REMOTE_POLL_SECONDS = 0.5, 2.0


@dataclass(frozen=True)
class ApiContext:
    stack: Stack
    log: Log
    facade: Facade
    access: Access
    links: Access
    guard: Guard
    actions: ActionLog
    control: Control
    submissions: Submissions
    spool: Spool
    downloads: Downloads
    followers: Followers
    answers: SharedAnswers
    counts: HttpCounts = field(default_factory=HttpCounts)

    @classmethod
    def over(cls, stack: Stack, log: Log) -> "ApiContext":
        facade = Facade(stack)
        access = Access(stack.store, stack.clock)
        spool = Spool(stack.run_dir / f"{SPOOL_PREFIX}{token_hex(4)}")
        seconds = _REMOTE_POLL_SECONDS if stack.settings.table_url else _EMBEDDED_POLL_SECONDS
        return cls(
            stack=stack,
            log=log,
            facade=facade,
            access=access,
            links=Access(stack.store, stack.clock, key=LINKS_KEY),
            guard=Guard(stack.settings, access, stack.clock),
            actions=ActionLog(stack.store, stack.clock, log),
            control=Control(stack.store, stack.table, stack.queue, stack.clock),
            submissions=Submissions(stack),
            spool=spool,
            downloads=Downloads(stack.store, spool),
            followers=Followers(facade, stack.table, seconds=seconds),
            answers=SharedAnswers(stack.clock.steady),
        )

    def seen(self, job_id: str, principal: Principal) -> Job:
        """A job that the caller may see; a job of another tenant does not exist for them."""
        job = self.facade.job(job_id, tenant=principal.tenant) if _JOB_ID.fullmatch(job_id) else None
        if job is None:
            raise not_found(job_id)
        return job

    def close(self) -> None:
        self.followers.close()
        self.spool.close()
