"""The ASGI application: every request is bounded, judged, counted, and answered by one operation or page."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

import anyio.to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from console.api.access import ANYONE, LOCAL
from console.api.bodies import READ_AWAY, Bodies, ReceivedBody, body_of, too_large
from console.api.context import ApiContext
from console.api.guarding import SECURITY_HEADERS, THREADS, unauthorized
from console.api.openapi import OPERATIONS, document
from console.api.operations import Call, Operation, Page, in_turn, perform
from console.api.problems import ProblemError, problem_of, respond
from console.api.spans import RequestSpan
from console.benches import Benches
from infra.logs import Log
from infra.wiring import Stack

_LARGEST_URL = 8192

WrongPage = Callable[[Request, ProblemError], Response]


def create_app(
    stack: Stack,
    log: Log,
    *,
    pages: Mapping[str, Page] | None = None,
    extra: tuple[Operation, ...] = (),
    wrong: WrongPage | None = None,
) -> Starlette:
    """`pages`: what a browser gets at a path of the API; `extra`: what only pages ask for; `wrong`: errors as pages."""
    context = ApiContext.over(stack, log)
    shown = dict(pages or {})
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in (*OPERATIONS, *extra):
        by_path.setdefault(operation.path, {})[operation.method] = operation
    routes: list[BaseRoute] = [Route("/openapi.json", Endpoint(context, _openapi(), None, None))]
    routes += [
        Route(path, Endpoint(context, operations, shown.get(path), wrong)) for path, operations in by_path.items()
    ]

    @contextlib.asynccontextmanager
    async def life(_app: Starlette) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        tidying = asyncio.create_task(_tidy(context))
        try:
            yield
        finally:
            tidying.cancel()
            context.close()

    app = Starlette(routes=routes, lifespan=life, exception_handlers={HTTPException: _http_errors(wrong)})
    app.router.redirect_slashes = False  # it would send a caller to whatever Host they named
    largest = stack.settings.console_body_mb * 1024 * 1024
    app.add_middleware(Bounds, bodies=Bodies(largest=largest, spool=context.spool.folder))
    app.state.context = context
    return app


def _openapi() -> dict[str, Operation]:
    """The document itself; not among the operations that it lists."""
    made = document()
    operation = Operation(
        method="GET",
        path="/openapi.json",
        name="openapi",
        summary="",
        right=None,
        handler=lambda _call: JSONResponse(made),
        answers={200: "application/json"},
    )
    return {"GET": operation}


UPLOAD = "/u/"  # of upload links


class Endpoint:
    """One path: authenticates and authorizes the caller, then runs the operation of the method, or the page."""

    def __init__(
        self, context: ApiContext, operations: dict[str, Operation], page: Page | None, wrong: WrongPage | None
    ) -> None:
        self._context = context
        self._wrong = wrong
        self._operations = operations | ({"HEAD": operations["GET"]} if "GET" in operations else {})
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        began = time.monotonic()
        operation = self._operations.get(request.method)
        route = next(iter(self._operations.values())).path
        span = scope["ade.span"] = RequestSpan(self._context.stack.telemetry, request.method, route)
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                name = operation.name if operation else "other"
                self._context.counts.add(name, status, time.monotonic() - began)
            await send(message)

        with contextlib.ExitStack() as held:
            response = await self._answer(request, operation, held)
            try:
                with contextlib.suppress(ClientDisconnect):
                    await _guarded(response)(scope, receive, sending)
            except Exception as error:
                if status:
                    raise  # half an answer is out: the connection is cut
                await _guarded(self._refusal(request, error))(scope, receive, sending)
            finally:
                span.end(status)

    async def _answer(self, request: Request, operation: Operation | None, held: contextlib.ExitStack) -> Response:
        try:
            return await self._authorized(request, operation, held)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:  # noqa: BLE001 - the last line: whatever happens, the caller is answered
            return self._refusal(request, error)

    def _refusal(self, request: Request, error: Exception) -> Response:
        problem = problem_of(error)
        if problem is None:
            what = f"{type(error).__name__}: {error}"
            path = UPLOAD if request.url.path.startswith(UPLOAD) else request.url.path  # the rest is a secret
            self._context.log.error("request_failed", path=path, error=what)
            detail = "a fault of ade-drop; the log has `request_failed` with the reason. Please report it"
            problem = ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, detail)
        if self._wrong is not None and wants_page(request):
            return self._wrong(request, problem)
        return respond(problem)

    async def _authorized(self, request: Request, operation: Operation | None, held: contextlib.ExitStack) -> Response:
        """`held`: what lasts until the answer is out."""
        context = self._context
        context.guard.check_origin(request)
        if operation is None:
            allowed = ", ".join(sorted(self._operations))
            raise ProblemError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                f"{request.method} is not known here; use {allowed}",
                headers={"Allow": allowed},
            )
        if operation.open:
            address = request.client.host if request.client is not None else ""
            body_of(request).comes_from_stranger(address)
            if operation.method != "GET":
                held.enter_context(context.guard.at_work(replace(ANYONE, id=f"address {address}")))
            return await perform(operation, request, context, ANYONE)
        principal = await run_in_threadpool(context.guard.principal, request)
        if principal is None:
            raise unauthorized("a token is needed (`ade token new`); send `Authorization: Bearer <token>`")
        request.scope["ade.span"].begin(request.headers.get("traceparent"))
        context.guard.limit_rate(principal)
        held.enter_context(context.guard.at_work(principal))
        body_of(request).comes_from(None if principal is LOCAL else principal.id)
        request.scope.get("ade.known", _nobody)()
        if operation.right is not None and not principal.may(operation.right):
            raise ProblemError(
                HTTPStatus.FORBIDDEN,
                f"scope {principal.scope} may not do this (it needs the right to {operation.right}); "
                "ask an operator for a token with another scope",
            )
        if self._page is not None and request.method == "GET" and wants_page(request):
            call = Call(request, context, principal)
            answer = await in_turn(call, self._page, call)
            return answer if isinstance(answer, Response) else await answer
        try:
            return await perform(operation, request, context, principal)
        finally:
            if request.method not in ("GET", "HEAD"):
                context.answers.forget()
                context.facade.forget_pauses()


def _nobody() -> None:
    """Where no server waits to hear that a caller is known."""


def wants_page(request: Request) -> bool:
    """Whether a browser navigates here: it names HTML itself, which programs seldom do."""
    return "text/html" in request.headers.get("accept", "")


class Bounds:
    """Bounds of every request: the length of its URL, and its body."""

    def __init__(self, app: ASGIApp, bodies: Bodies) -> None:
        self._app = app
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        header = request.headers.get("content-length", "0")
        declared = int(header) if header.isdecimal() else 0
        problem = None
        if len(scope.get("raw_path", b"")) + len(scope.get("query_string", b"")) > _LARGEST_URL:
            problem = ProblemError(HTTPStatus.REQUEST_URI_TOO_LONG, f"the URL is over {_LARGEST_URL} bytes; shorten it")
        elif not _is_utf8(unquote_to_bytes(scope.get("raw_path", b""))):
            # Decoded all the same, two names would become one key, and the second file would replace the first.
            problem = ProblemError(HTTPStatus.BAD_REQUEST, "the URL is not UTF-8; encode its names as UTF-8")
        elif declared > self._bodies.largest:
            problem = too_large(self._bodies.largest)
        if problem is not None:
            await _bare(problem)(scope, receive, send)
            return
        body = scope["ade.body"] = ReceivedBody(receive, self._bodies, declared)
        asks_first = "expect" in request.headers

        async def sending(message: Message) -> None:
            refused = message["type"] == "http.response.start" and message["status"] >= HTTPStatus.BAD_REQUEST
            # A connection that closes on a body half read loses the answer.
            if refused and not (asks_first and not body.seen) and body.left <= READ_AWAY:
                await body.read_away()
            await send(message)

        try:
            await self._app(scope, body.receive, sending)
        finally:
            body.close()


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _bare(problem: ProblemError) -> Response:
    return _guarded(respond(problem))


def _guarded(response: Response) -> Response:
    for name, value in SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _http_errors(wrong: WrongPage | None) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(request: Request, error: Exception) -> Response:
        status = HTTPStatus(error.status_code) if isinstance(error, HTTPException) else HTTPStatus.NOT_FOUND
        detail = f"nothing is at {request.url.path[:200]}; GET /openapi.json lists what there is"
        problem = ProblemError(status, detail if status is HTTPStatus.NOT_FOUND else status.phrase)
        if wrong is not None and wants_page(request):
            return _guarded(wrong(request, problem))
        return _bare(problem)

    return answer


async def _tidy(context: ApiContext) -> None:
    """Once a day, and at the start; what was made for downloads every hour."""
    daily = (
        context.submissions.tidy,
        lambda: context.actions.tidy(context.stack.settings.actions_days),
        Benches(context.stack.store, context.stack.clock).tidy,
    )
    for hour in itertools.count():
        for tidy in (context.spool.tidy, *(daily if hour % 24 == 0 else ())):
            with contextlib.suppress(Exception):
                await run_in_threadpool(tidy)
        await asyncio.sleep(3600)
