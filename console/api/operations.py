"""What an operation of the API is: its path, who may call it, what it takes and gives. Routes and OpenAPI follow."""

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, to_json
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from console.api.access import Permission, Principal
from console.api.bodies import LARGEST_IN_MEMORY
from console.api.guarding import unauthorized
from console.api.problems import ProblemError
from console.api.spans import RequestSpan
from core.budget import Budget, mistakes, validate
from core.errors import Problem
from infra.parsing import parse_body

if TYPE_CHECKING:
    from console.api.context import ApiContext

Model = TypeVar("Model", bound=BaseModel)
T = TypeVar("T")
BUDGET = Budget(bytes=LARGEST_IN_MEMORY, values=50_000)
_SMALL = 32 * 1024  # bytes that may be read in the event loop


@dataclass(frozen=True, slots=True)
class Call:
    """One request on its way: who makes it, and what it asks for, checked."""

    request: Request
    context: "ApiContext"
    principal: Principal
    query: Any = None  # of the operation's query model
    body: Any = None  # of the operation's body model

    @property
    def span(self) -> RequestSpan:
        span: RequestSpan = self.request.scope["ade.span"]
        return span

    @property
    def job_id(self) -> str:
        return str(self.request.path_params["job_id"])


Answer = Response | BaseModel | Mapping[str, Any]
Handler = Callable[[Call], Answer | Awaitable[Answer]]
Page = Callable[[Call], Response | Awaitable[Response]]


@dataclass(frozen=True, kw_only=True)
class Operation:
    method: str
    path: str
    name: str
    summary: str
    right: Permission | None  # None: anyone who may call at all
    handler: Handler
    open: bool = False  # needs no token anywhere
    query: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    form: type[BaseModel] | None = None  # multipart, besides or instead of JSON; read by the handler
    raw: str = ""  # the media type of a body that is bytes
    headers: Mapping[str, str] = field(default_factory=dict)  # request headers it takes, with what they are for
    answers: Mapping[int, type[BaseModel] | str | None] = field(default_factory=dict)  # model, media type or nothing
    also: tuple[int, ...] = ()  # problems besides those that every operation has


async def perform(operation: Operation, request: Request, context: "ApiContext", principal: Principal) -> Response:
    """Check what came in, call the handler, turn what it gives into an answer."""
    query = body = None
    if operation.query is not None:
        query = checked(operation.query, query_values(request), "query parameter")
    if operation.body is not None and not _is_form(request, operation):
        body = await read_json(operation.body, request)
    call = Call(request, context, principal, query, body)
    if inspect.iscoroutinefunction(operation.handler):
        answer = await operation.handler(call)
    else:
        answer = await in_turn(call, operation.handler, call)
    return as_response(answer, next(iter(operation.answers), 200))


async def in_turn(call: Call, act: Callable[..., T], *arguments: Any) -> T:
    """Run something for a request in a thread, once its caller has one to spare.

    Raises ProblemError if their token was revoked, or expired, while its body came in or it waited.
    """

    def still_allowed() -> T:
        if not call.context.access.lasts(call.principal):
            raise unauthorized("the token was revoked or has expired since this request began; nothing was done")
        return act(*arguments)

    async with call.context.guard.turn(call.principal):
        return await run_in_threadpool(still_allowed)


def as_response(answer: Any, status: int) -> Response:
    if isinstance(answer, Response):
        return answer
    if isinstance(answer, BaseModel):
        return Response(answer.model_dump_json(), status_code=status, media_type="application/json")
    return Response(json_bytes(answer), status_code=status, media_type="application/json")


def json_bytes(value: Any) -> bytes:
    """JSON that every client reads, whatever a row holds: no NaN, no half characters."""
    try:
        return to_json(value, inf_nan_mode="null")
    except ValueError:
        return json.dumps(value, default=str).encode()


async def read_json(model: type[Model], request: Request) -> Model:
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ProblemError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"the body is {kind[:80]!r}; send JSON with Content-Type: application/json",
        )
    body = await request.body() or b"{}"  # bounded by console/api/bodies.py
    found = _read_body(model, body) if len(body) <= _SMALL else await run_in_threadpool(_read_body, model, body)
    if isinstance(found, list):
        raise _invalid(found, "body")
    return found


def _read_body(model: type[Model], body: bytes) -> Model | list[Problem]:
    found = parse_body(body, BUDGET)
    return found if isinstance(found, list) else validate(model, found.raw, values=found.values, wording=_described)


def checked(model: type[Model], values: Mapping[str, Any], what: str) -> Model:
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        found = mistakes(error, model, wording=_described)
    raise _invalid(found, what)


def _described(one: ErrorDetails) -> Problem:
    """A mistake without repeating what came in: it may be a secret."""
    is_name = one["type"] == "string_pattern_mismatch" and one["loc"][-1:] == ("tenant",)
    return Problem(".".join(str(part) for part in one["loc"]), _NO_TENANT if is_name else one["msg"], "")


_NO_TENANT = "not a tenant name; use letters, digits, '.', '_', '-', at most 63"


def _invalid(problems: list[Problem], what: str) -> ProblemError:
    first, path = problems[0], problems[0].path.removeprefix("$")
    return ProblemError(
        HTTPStatus.BAD_REQUEST,
        f"{what} {path or '(as a whole)'}: {first.problem}; GET /openapi.json says what is allowed",
        problems=[problem.as_dict() for problem in problems],
    )


def query_values(request: Request, *, empty: bool = True) -> dict[str, str | list[str]]:
    """The query as a mapping; a name that occurs several times has a list. `empty`: also fields without a value."""
    found: dict[str, list[str]] = {}
    for name, value in request.query_params.multi_items():
        if value or empty:
            found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _is_form(request: Request, operation: Operation) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return operation.form is not None and kind in ("multipart/form-data", "application/x-www-form-urlencoded")
