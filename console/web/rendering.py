"""Turns facts into pages: the templates, what they may call, and the files that pages load."""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from console.api.access import LOCAL, Permission, Principal, Scope
from console.api.operations import Call
from console.job_facts import note as note_of
from console.job_facts import plural, size, span
from console.web.own_words import words
from core.jobs import ENDED, RETRIABLE, Job, State
from runner.engine.pages import drawing

STATIC = "/static/"
_TEXTS = re.compile("(<textarea[^>]*>[^<]*)|(?:^|>)[^<]*")
_MEDIA = {"js": "text/javascript", "svg": "image/svg+xml"}
_MADE = re.compile(r"[^/]+/[0-9a-f]{12}/")
_KINDS = {
    State.SUCCEEDED: "good",
    State.FAILED: "bad",
    State.TIMED_OUT: "bad",
    State.REVIEW: "ask",
    State.RUNNING: "busy",
    State.PUBLISHING: "busy",
}
_MENU = (
    ("/", "Home", "h", Permission.READ),
    ("/jobs", "Jobs", "j", Permission.READ),
    ("/review", "Review", "r", Permission.READ),
    ("/senders", "Senders", "s", Permission.READ),
    ("/bench", "Workbench", "w", Permission.AUTHOR),
    ("/drop", "Drop", "d", Permission.SUBMIT),
)
_ONE_OF = {"/senders": "/sender"}  # a page below another in the menu, though not by its path
_SENDERS_MENU = (
    ("/", "title", "h", Permission.READ),
    ("/drop", "send", "d", Permission.SUBMIT),
)  # as own_words says them


@cache
def static_files() -> dict[str, tuple[bytes, str]]:
    """What pages load, by name: bytes and media type.

    There is one style sheet, of the engine's drawings, console.css and then every other `.css` by name, so that a page
    can have a file of its own. A script of one page is loaded by that page, after console.js.
    """
    there = {one.name: one.read_bytes() for one in (files("console.web") / "static").iterdir() if one.is_file()}
    styles = sorted((name for name in there if name.endswith(".css")), key=lambda name: (name != "console.css", name))
    found = {
        name: (body, _MEDIA[ending]) for name, body in there.items() if (ending := name.rpartition(".")[2]) in _MEDIA
    }
    style = b"\n".join([drawing.STYLE.encode(), *(there[name] for name in styles)])
    return found | {"console.css": (style, "text/css")}


@cache
def static_link(name: str) -> str:
    """Where a file is; another link once it changes, so browsers may keep it."""
    body, _ = static_files()[name]
    return f"{STATIC}{name}?v={hashlib.sha256(body).hexdigest()[:12]}"


def when(at: float | None) -> Markup:
    """A time, with the seconds since the epoch for the script to make it relative."""
    if at is None:
        return Markup("")
    moment = datetime.fromtimestamp(at, UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        moment.strftime("%Y-%m-%d %H:%M:%S UTC"),
        moment.strftime("%d %b %Y, %H:%M"),
    )


def clock(at: float) -> Markup:
    """The time of day; the date shows on demand."""
    moment = datetime.fromtimestamp(at, UTC)
    return Markup('<span class="clock" title="{}">{}</span>').format(
        moment.strftime("%Y-%m-%d %H:%M:%S UTC"), moment.strftime("%H:%M:%S")
    )


def brief(seconds: float) -> str:
    """A duration that may be very short."""
    return span(seconds) if seconds >= 1 else f"{seconds * 1000:.0f} ms" if seconds >= 0.001 else "under 1 ms"


def _ending(job_id: str) -> str:
    """What tells a job's id from others of its tenant and workflow."""
    return job_id.rpartition("-")[2]


def _note(job: Job) -> str:
    """Why a job is in its state, as pages say it: causes in words, and no file where a page has a link."""
    if job.error is not None and job.ended:
        return f"{str(job.error.verdict).replace('_', ' ')}: {job.error.message}"
    return note_of(job).removesuffix("; see review.html") if job.state is State.REVIEW else note_of(job)


def _base(subject: str) -> str:
    return subject.rpartition("/")[2] or subject


def place_of(subject: str) -> str:
    """The folder of a file, unless the API made it for that one drop."""
    return "" if _MADE.fullmatch(folder := _folder(subject)) else folder


def _folder(subject: str) -> str:
    folder, slash, _ = subject.rpartition("/")
    return folder + slash


def state_kind(state: str) -> str:
    """The colour of a state."""
    return _KINDS.get(State(state), "calm") if state in State.__members__ else "calm"


def link(path: str, query: Mapping[str, Any] | None = None, /, **changes: Any) -> str:
    """A path with a query: what is given, changed; None and empty values are left out."""
    merged = {**(query or {}), **changes}
    return path + (f"?{text}" if (text := urlencode(_pairs(merged))) else "")


def _pairs(query: Mapping[str, Any]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, value in query.items():
        values = value if isinstance(value, list | tuple) else [value]
        found += [(name, str(one)) for one in values if one not in (None, "")]
    return found


def job_acts(job: Job, principal: Principal) -> list[str]:
    """What the viewer may do with a job as it is now."""
    if not principal.may(Permission.ACT):
        return []
    acts = []
    if job.state in RETRIABLE:
        acts.append("retry")
    if job.state not in ENDED and job.cancel_requested_at is None:
        acts.append("cancel")
    if job.state in ENDED:
        acts.append("reset")
    return [*acts, "remove"] if job.state in ENDED else acts


@cache
def _environment() -> Environment:
    env = Environment(
        loader=PackageLoader("console.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    env.filters |= {"when": when, "span": span, "size": size, "kind": state_kind, "note": _note}
    env.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False)
    env.filters |= {
        "clock": clock,
        "base": _base,
        "ending": _ending,
        "place": place_of,
        "brief": brief,
    }
    env.globals["reason"] = lambda one: Markup(drawing.reason(str(one.get("rule", "")), one.get("weight")))  # noqa: S704 - it escapes
    env.globals |= {"plural": plural, "link": link, "static": static_link, "bar": lambda p: Markup(drawing.bar(p))}  # noqa: S704 - numbers only
    env.globals["parts"] = parts = SimpleNamespace()  # the macros that several pages share; they call each other
    for name in env.list_templates(filter_func=lambda name: name.startswith("parts/")):
        vars(parts).update(_macros(env, name))
    return env


def _macros(env: Environment, name: str) -> dict[str, object]:
    module = env.get_template(name).module
    return {macro: getattr(module, macro) for macro in vars(module) if not macro.startswith("_")}


def fragment(template: str, **facts: Any) -> str:
    """A template with what senders called things. Attributes and what is edited are sent back, and stay as they are."""
    html = _environment().get_template(template).render(**facts)
    if drawing.without_hidden(plain := html.replace("\n", "")) == plain:
        return html
    return _TEXTS.sub(lambda found: found[1] or drawing.without_hidden(found[0]), html)


def page(call: Call, template: str, *, status: int = 200, **facts: Any) -> HTMLResponse:
    """A page for whoever calls."""
    return _shown(call.request, call.principal, template, status, facts)


def bare_page(request: Request, template: str, *, status: int = 200, **facts: Any) -> HTMLResponse:
    """A page for somebody whom we do not know (yet)."""
    return _shown(request, None, template, status, facts)


def _shown(
    request: Request, principal: Principal | None, template: str, status: int, facts: dict[str, object]
) -> HTMLResponse:
    path = request.url.path
    is_sender = principal is not None and principal.scope is Scope.SENDER
    text = words(request.headers.get("accept-language", "")) if is_sender else {}
    menu = [
        {
            "path": at,
            "name": text.get(name, name),
            "key": key,
            "here": path in (at, _ONE_OF.get(at)) or (at != "/" and path.startswith(f"{at}/")),
        }
        for at, name, key, right in (_SENDERS_MENU if is_sender else _MENU)
        if principal is not None and principal.may(right)
    ]
    who = {
        "who": principal,
        "signed_in": principal is not None and principal is not LOCAL,
        # Not a dictionary, whose own `values` a template would call.
        "may": SimpleNamespace(**{str(right): principal is not None and principal.may(right) for right in Permission}),
    }
    spoken = {"language": text.get("language", ""), "log_out": text.get("log_out", "Log out")}
    return HTMLResponse(fragment(template, menu=menu, path=path, **spoken, **who, **facts), status_code=status)
