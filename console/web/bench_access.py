"""Whose benches somebody may see, and what every step of the workbench starts with."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from console.api.operations import Call
from console.api.problems import ProblemError
from console.benches import Bench, Benches, check_owner
from console.library import Library, Standing
from core.keys import SHARED_TENANT
from core.versions import MANIFEST


@dataclass(frozen=True, slots=True)
class RefusedChange:
    """A change that was not made, and what was sent, so that nothing is lost."""

    why: str
    sent: str
    status: int


def benches_of(call: Call) -> Benches:
    return Benches(call.context.stack.store, call.context.stack.clock)


def may_share(call: Call) -> bool:
    """Whether the viewer may write workflows that several tenants share."""
    return call.principal.tenant is None


def seen_owner(call: Call, owner: str) -> str:
    """An owner whose benches the viewer may see; those of others do not exist for them."""
    owner = check_owner(owner)
    if not call.principal.sees(owner):
        raise ProblemError(HTTPStatus.NOT_FOUND, "there is no such bench")
    return owner


def bench_of(call: Call) -> Bench:
    """The bench that the path names, if the viewer may see it."""
    params = call.request.path_params
    return benches_of(call).find(seen_owner(call, str(params["owner"])), str(params["bench_id"]))


def path_of(bench: Bench) -> str:
    return f"/bench/{quote(bench.owner)}/{bench.id}"


def go(path: str) -> Response:
    return RedirectResponse(path, status_code=303)


def note(call: Call, bench: Bench, act: str, **facts: Any) -> None:
    of = {} if bench.owner == SHARED_TENANT else {"tenant": bench.owner}
    call.context.actions.note(call.principal, act, **of, bench=bench.id, workflow=bench.name, **facts)


def place_of(standing: Standing) -> str:
    return SHARED_TENANT if standing.workflow.shared else standing.workflow.tenant


def standing_at(call: Call, key: str) -> Standing:
    """A workflow that the viewer may change. Raises ProblemError: one of another tenant does not exist for them."""
    found = Library(call.context.stack.store).at(key) if key.endswith(f"/{MANIFEST}") else None
    if found is None or not call.principal.sees(place_of(found)):
        raise ProblemError(HTTPStatus.NOT_FOUND, "there is no such workflow")
    return found
