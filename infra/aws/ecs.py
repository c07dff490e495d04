"""Scale-in protection of an ECS task, requested from the task's own agent while jobs run.

Theory of operation. ECS may end any task when a service scales in or is deployed, unless the task has requested
protection. `TaskShield` requests it while jobs run, renews it before it expires, and releases it once the task has been
idle for a moment, so that short jobs do not cost two calls each. A runner that is never idle would block a deployment
forever: after `stretch` seconds it takes no new job until its jobs are done and ECS has had `rest` seconds to end it.

One thread calls the agent; no job waits for it or fails because of it. If the agent does not answer, it is called again
after a pause. A task that ends without protection loses no result either: SIGTERM drains, and jobs that cannot end in
time go back to the queue with no attempt lost.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from infra.logs import Log

_PATH = "/task-protection/v1/state"
_ANSWER_SECONDS = 3.0
_LARGEST_ANSWER = 65536


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """Durations in seconds."""

    expires: int = 600  # a hanging runner loses its protection after this; ECS takes whole minutes
    renew: float = 200.0
    linger: float = 15.0  # idle time before the protection is released
    retry: float = 15.0  # after an agent that did not answer
    stretch: float = 3600.0  # of protection without a break
    rest: float = 30.0  # ECS ends an unprotected task within seconds


class Agent:
    """The ECS agent's endpoint for task protection."""

    def __init__(self, uri: str) -> None:
        self._url = uri.rstrip("/") + _PATH

    def protect(self, seconds: int) -> None:
        """Request or renew. Raises OSError if the agent does not answer or refuses."""
        self._put({"ProtectionEnabled": True, "ExpiresInMinutes": max(1, seconds // 60)})

    def release(self) -> None:
        """Raises like `protect`; does nothing without protection."""
        self._put({"ProtectionEnabled": False})

    def _put(self, body: dict[str, object]) -> None:
        import urllib.request  # noqa: PLC0415 - most runners are no task, and start without it

        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the agent is never behind a proxy
        request = urllib.request.Request(  # noqa: S310 - the address that ECS gave to this task
            self._url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="PUT"
        )
        with direct.open(request, timeout=_ANSWER_SECONDS) as answer:
            raw = answer.read(_LARGEST_ANSWER)
        # Some refusals (a task of no service, a missing right) come with status 200.
        try:
            failure = json.loads(raw).get("failure")
        except (ValueError, AttributeError):
            raise OSError("the answer is not a JSON object") from None
        if failure:
            raise OSError(f"refused: {failure.get('Reason')} {failure.get('Detail') or ''}".strip())


class TaskShield:
    """Keeps the task protected while jobs run, as `busy` reports. Safe to share between threads."""

    def __init__(
        self, agent: Agent, log: Log, *, pace: Pace | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._agent = agent
        self._log = log
        self._pace = pace or Pace()
        self._now = monotonic
        self._changed = threading.Condition()
        self._jobs = 0
        self._idle_since = monotonic()
        self._since: float | None = None  # protected since then; None: not protected
        self._asked_at = 0.0  # when the agent last agreed
        self._rested_until = 0.0
        self._retry_at = 0.0
        self._stopped = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._loop, name="shield", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Call after the last job; releases the protection. A second call does nothing."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def busy(self, jobs: int) -> None:
        """Set the number of running jobs; returns at once."""
        with self._changed:
            self._jobs = jobs
            if not jobs:
                self._idle_since = self._now()
            self._changed.notify_all()

    def ready(self) -> bool:
        """Whether new jobs may be taken: not while a long stretch is to end, nor in the rest after it."""
        with self._changed:
            return not self._tired() and self._now() >= self._rested_until

    def round(self) -> float:
        """Do what is due, if anything; returns the seconds until the next round. One pass of the thread."""
        with self._changed:
            due, wait = self._due()
        if due is None:
            return wait
        try:
            if due:
                self._agent.protect(self._pace.expires)
            else:
                self._agent.release()
        except OSError as error:
            self._log.warning("protection_failed", wanted=due, error=f"{type(error).__name__}: {error}")
            with self._changed:
                self._retry_at = self._now() + self._pace.retry
            return self._pace.retry
        self._call(protected=due)
        return 0.0

    def _due(self) -> tuple[bool | None, float]:
        """True: protect; False: release; None: nothing for so many seconds."""
        now, pace = self._now(), self._pace
        if now < self._retry_at and not self._stopped:
            return None, self._retry_at - now
        if self._jobs and not self._stopped:
            due_at = 0.0 if self._since is None else self._asked_at + pace.renew
            return (True, 0.0) if now >= due_at else (None, due_at - now)
        if self._since is None:
            return None, pace.renew
        idle_until = self._idle_since + pace.linger
        if self._stopped or self._tired() or now >= idle_until:
            return False, 0.0
        return None, idle_until - now

    def _tired(self) -> bool:
        return self._since is not None and self._now() - self._since >= self._pace.stretch

    def _call(self, *, protected: bool) -> None:
        with self._changed:
            now = self._now()
            if not protected:
                if self._tired():
                    self._rested_until = now + self._pace.rest
                self._since = None
            else:
                self._since = now if self._since is None else self._since
                self._asked_at = now
        self._log.debug("protection_set", protected=protected)

    def _loop(self) -> None:
        while True:
            wait = self.round()
            with self._changed:
                if self._stopped:
                    break
                if self._due()[0] is None:
                    self._changed.wait(wait)
        self.round()  # releases the protection, with one try


def task_shield(environment: Mapping[str, str], log: Log) -> TaskShield | None:
    """A shield if the process runs in an ECS task, else None."""
    uri = environment.get("ECS_AGENT_URI", "")
    return TaskShield(Agent(uri), log) if uri.startswith(("http://", "https://")) else None
