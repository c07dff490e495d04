"""What a request costs at worst, for every operation of the API and every page: the second table of docs/explanation/cost.md.

    python -m tests.abuse.cost_http           searches, prints the table
    python -m tests.abuse.cost_http /login    one path only

Made of the operations themselves, so that a new one is in it at once. Each is called as whoever has just the right to,
through the whole application, with what the search grows in its query, its form, its body or its headers.
"""

import asyncio
import os
import queue
import struct
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

from starlette.applications import Starlette

from console.api.access import RIGHTS, Scope
from console.api.bodies import LARGEST_IN_MEMORY, LARGEST_OF_STRANGERS
from console.api.clients import LARGEST_HEAD
from console.api.openapi import OPERATIONS
from console.api.operations import Operation
from console.web.site import EXTRA, console_app
from core.jobs import State
from core.settings import Settings
from infra.logs import Log
from infra.wiring import open_stack
from tests.abuse.cost import Attack, Cost, search, status, table
from tests.contract.jobs import a_job

_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # what a disk costs depends on who else uses it
_URL = 8000
_FORM = 8 * 1024
_STREAMS = {"/events"}  # they end with the server
_FORMS = {"/login", "/logout", "/acts/pause", "/acts/jobs", "/jobs/{job_id}/act", "/jobs/{job_id}/answer"}
_FILES = {"/drop", "/drop/preview"}
_SCOPES = (Scope.SENDER, Scope.READER, Scope.REVIEWER, Scope.OPERATOR)
_PAGE = (b"accept", b"text/html")


@cache
def site() -> tuple[Starlette, dict[Scope, str], str]:
    """An application over a folder of its own, a token of each scope, and a job."""
    settings = Settings(
        storage_data_dir=Path(tempfile.mkdtemp(prefix="ade-cost-", dir=_MEMORY)), console_rate=1_000_000
    )
    stack = open_stack(settings).__enter__()
    app = console_app(stack, Log(level="error"))
    new = app.state.context.access.new
    tokens = {
        scope: new("a", scope, tenant="acme" if scope is Scope.SENDER else None, values=scope is Scope.OPERATOR)[1]
        for scope in _SCOPES
    }
    job, _ = stack.table.add(a_job("a", state=State.REVIEW))
    return app, tokens, job.job_id


def call(operation: Operation, where: str, body: bytes) -> int:
    """One request with these bytes `where` they go; the status of its answer."""
    app, tokens, job_id = site()
    headers, query, sent = [(b"host", b"127.0.0.1")], b"", b""
    if not operation.open:
        headers.append((b"authorization", f"Bearer {tokens[_scope(operation)]}".encode()))
    match where.partition(" ")[::2]:
        case "query", name:
            query = f"{name}={quote_from_bytes(body)[:_URL]}".encode()
        case "page", name:
            query, headers = f"{name}={quote_from_bytes(body)[:_URL]}".encode(), [*headers, _PAGE]
        case "header", name:
            headers = [*(one for one in headers if one[0] != name.encode()), (name.encode(), body[:LARGEST_HEAD])]
        case "form", _:
            sent = b"&".join(b"%b=%b" % (name, body[: _FORM // 4]) for name in (b"token", b"act", b"filter"))
            headers.append((b"content-type", b"application/x-www-form-urlencoded"))
        case "files", _:
            sent = body
            headers.append((b"content-type", b"multipart/form-data; boundary=B"))
        case _:
            sent = body
            headers.append((b"content-type", b"application/json"))
    headers.append((b"content-length", str(len(sent)).encode()))
    known = operation.method == "GET" or operation.path.endswith(("/decide", "/answer", "/preview"))
    path = (
        operation.path.replace("{job_id}", job_id if known else "no-such-job")
        .replace("{key}", "inbox/acme/a.csv")
        .replace("{name}", "app.css")
    )
    answered = _answered(app, operation.method, path, query, headers, sent)
    return asyncio.run_coroutine_threadsafe(answered, _loop(os.getpid())).result()


def form(body: bytes) -> bytes:
    """These bytes as a manifest, with very many small files beside it."""
    part = b'--B\r\ncontent-disposition: form-data; name="files"; filename="%d.csv"\r\n\r\n%b\r\n'
    text = b'--B\r\ncontent-disposition: form-data; name="manifest"\r\n\r\n%b\r\n' % body
    return text + b"".join(part % (n, body[:50]) for n in range(min(999, len(body) // 100)))


@cache
def _loop(pid: int) -> asyncio.AbstractEventLoop:
    """The loop of a server in this process: its threads outlive a request, as those of a real one."""
    del pid
    made: queue.SimpleQueue[asyncio.AbstractEventLoop] = queue.SimpleQueue()

    async def serve() -> None:
        made.put(asyncio.get_running_loop())
        await asyncio.Event().wait()

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    return made.get()


async def _answered(
    app: Starlette, method: str, path: str, query: bytes, headers: list[tuple[bytes, bytes]], sent: bytes
) -> int:
    status, rest = 0, [sent[at : at + 65536] for at in range(0, len(sent), 65536)] or [b""]

    async def receive() -> dict[str, Any]:
        if rest:
            return {"type": "http.request", "body": rest.pop(0), "more_body": bool(rest)}
        await asyncio.sleep(0.01)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)

    scope = {
        "type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(), "root_path": "",
        "query_string": query, "headers": headers, "client": ("192.0.2.1", 1), "server": ("127.0.0.1", 80), "scheme": "http",
    }  # fmt: skip
    await app(scope, receive, send)
    return status


def ways(operation: Operation) -> list[tuple[str, int]]:
    """Where what somebody sends may be in a request, and its most bytes."""
    found = [("header cookie", LARGEST_HEAD), ("header authorization", LARGEST_HEAD)]
    if operation.query is not None:
        found += [(f"{kind} {name}", _URL) for name in operation.query.model_fields for kind in ("query", "page")]
    else:
        found.append(("page next", _URL))
    if operation.path in _FORMS:
        found.append(("form", _FORM))
    if operation.form is not None or operation.path in _FILES:
        found.append(("files", 1024 * 1024))
    if operation.body is not None or operation.raw or operation.path == "/drop/check":
        found.append(("body", LARGEST_OF_STRANGERS if operation.open else LARGEST_IN_MEMORY))
    return found


def _who(operation: Operation) -> str:
    return "stranger" if operation.open else f"{_scope(operation)} token"


def _scope(operation: Operation) -> Scope:
    """Who may do it with the least rights; values are asked for besides a scope, here with the operator's."""
    right = operation.right
    return next((one for one in _SCOPES if right is None or right in RIGHTS[one]), Scope.OPERATOR)


_PLACES = ("@", '{"token":@}', '{"tenant":"acme","names":@}', '{"answers":@}', "a=@;b=1", "Bearer ade_@")


def _warm(operation: Operation, where: str) -> None:
    for body in (b"[0]", b'"' + b"x" * 3000 + b'"', b"[0]"):
        call(operation, where, form(body) if where == "files" else body)


def growth(operation: Operation, requests: int) -> float:
    """MiB that a process has grown by after so many small requests, since before the first."""
    source, target = os.pipe()
    pid = os.fork()
    if pid == 0:
        before = status("VmRSS")
        for n in range(requests):
            call(operation, "header cookie", b"%d" % n)
        os.write(target, struct.pack("d", (status("VmHWM") - before) / 1024))
        os._exit(0)
    os.close(target)
    with os.fdopen(source, "rb") as pipe:
        (found,) = struct.unpack("d", pipe.read())
    os.waitpid(pid, 0)
    return float(found)


def attacks() -> list[list[Attack]]:
    """Of each operation, one attack for each way into it."""
    every = [one for one in (*OPERATIONS, *EXTRA) if one.path not in _STREAMS]
    return [[_attack(one, where, most) for where, most in ways(one)] for one in every]


def _attack(one: Operation, where: str, most: int) -> Attack:
    warm = partial(_warm, one, where)
    wrap = form if where == "files" else bytes
    return Attack(f"`{one.method} {one.path}`", _who(one), _PLACES, partial(call, one, where), most, warm, wrap)


def worst(of_one: list[Attack], *, trials: int, seed: int = 7) -> tuple[Attack, list[Cost]]:
    """The trials of all ways into an operation, and the largest of them for the table."""
    costs = [cost for n, one in enumerate(of_one) for cost in search(one, trials=trials, seed=seed + n)]
    return max(of_one, key=lambda one: one.most), costs


def main(paths: Sequence[str]) -> None:
    site()
    rows = []
    for of_one in attacks():
        if paths and not any(path in of_one[0].name for path in paths):
            continue
        attack, costs = worst(of_one, trials=int(os.environ.get("TRIALS", "30")), seed=int(os.environ.get("SEED", "7")))
        by_time, by_memory = (max(costs, key=lambda cost: cost.rates[n]) for n in (0, 1))
        rows.append((attack, replace(by_time, size=1_000_000, seconds=by_time.rates[0], mib=by_memory.rates[1])))
        for cost in (by_time, by_memory) if paths else ():
            print(attack.name, cost, file=sys.stderr)
    print(table(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
