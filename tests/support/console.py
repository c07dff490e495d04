"""The API over an embedded stack, called in this process; rows and outputs are made by hand."""

import contextlib
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from console.api.access import Scope
from console.api.context import ApiContext
from console.web.site import console_app
from core.jobs import Job, JobError, State
from core.keys import job_folder
from core.settings import Settings
from core.verdicts import Verdict
from infra.clocks import HandClock
from infra.logs import Log
from infra.telemetry import Telemetry
from infra.wiring import Stack, open_stack
from tests.contract.jobs import a_job

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it would rather use another client
    from starlette.testclient import TestClient

HERE = ("127.0.0.1", 4000)
AWAY = ("192.0.2.7", 4000)
MANIFEST = {
    "manifest": 1,
    "name": "people",
    "inputs": {"primary": ["*.csv"]},
    "fields": [{"name": "name"}, {"name": "age", "type": "integer"}],
}


@dataclass
class ApiRig:
    stack: Stack
    app: Starlette
    client: TestClient  # on this machine, without a token

    @property
    def context(self) -> ApiContext:
        context: ApiContext = self.app.state.context
        return context

    def token(self, scope: str, tenant: str | None = None, **more: Any) -> str:
        """A new token; it is known at once."""
        _, token = self.context.access.new(f"{scope} of {tenant}", Scope(scope), tenant=tenant, **more)
        return token

    def from_afar(self, token: str | None = None, **headers: str) -> TestClient:
        """A client on another machine."""
        given = {"Authorization": f"Bearer {token}"} if token else {}
        return TestClient(self.app, base_url="http://127.0.0.1", client=AWAY, headers=given | headers)

    def job(self, name: str, *, files: dict[str, bytes] | None = None, **more: Any) -> Job:
        """A row, and what it published."""
        job, _ = self.stack.table.add(a_job(name, **more))
        for file, body in (files or {}).items():
            self.stack.store.put(f"{job_folder(job)}{file}", body)
        return job

    def failed(self, name: str, **more: Any) -> Job:
        error = JobError(verdict=Verdict.RULE_ERROR, message="it broke")
        return self.job(name, state=State.FAILED, error=error, ended_at=1.0, **more)

    def stop_the_clock(self) -> None:
        """Of the limits of requests, which are refilled as time goes by: on a busy machine too soon."""
        self.app.state.context.guard._rates._clock = HandClock()

    def submit(self, client: TestClient | None = None, *, tenant: str = "acme", **more: Any) -> Any:
        given: dict[str, Any] = {
            "data": {"tenant": tenant, "manifest": json.dumps(MANIFEST)},
            "files": [("files", ("p.csv", b"Name,Age\nann,3\n"))],
        }
        return (client or self.client).post("/jobs", **(given | more))


@contextlib.contextmanager
def api_rig(folder: Path, *, telemetry: Telemetry | None = None, **settings: Any) -> Iterator[ApiRig]:
    given = replace(Settings(storage_data_dir=folder, settle_seconds=0.0), **settings)
    with open_stack(given, telemetry=telemetry) as stack:
        app = console_app(stack, Log(level="error"))
        with TestClient(app, base_url="http://127.0.0.1", client=HERE) as client:
            yield ApiRig(stack, app, client)
