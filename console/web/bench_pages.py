"""The workbench: samples become a manifest, which is edited as a form or as JSON, previewed, and saved as a workflow.

Both tabs edit one manifest, the bench's. Every form names the version of the bench that it was made from: a form of an
older one changes nothing, and what it said is shown so that it can be entered again.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any, Final

from starlette.responses import Response

from console.api.bodies import ReceivedFile, read_form
from console.api.operations import Answer, Call, in_turn
from console.api.problems import ProblemError
from console.benches import (
    CASE_BYTES,
    EXPIRY_SECONDS,
    LARGEST,
    MOST_SAMPLES,
    Bench,
    BenchChanged,
    BenchFacts,
    Suggestion,
    fields_of,
)
from console.library import LIVE, Library, WorkflowChanged
from console.saving import origin_of
from console.web import bench_cases, bench_saves, manifest_form
from console.web.bench_access import (
    RefusedChange,
    bench_of,
    benches_of,
    go,
    may_share,
    note,
    path_of,
    place_of,
    seen_owner,
    standing_at,
)
from console.web.bench_runs import BenchPreview, draft, preview
from console.web.forms import form_fields
from console.web.pages import manifest_problems
from console.web.rendering import link, page
from core.budget import parse
from core.errors import AdeError, ManifestInvalid, ObjectChanged, Problem, UsageError
from core.keys import SHARED_TENANT, SPREADSHEETS, is_spreadsheet, refusal
from core.manifests import BUDGET, MAX_MANIFEST_BYTES

TABS: Final = (("fields", "Form"), ("json", "JSON"), ("cases", "Tests"), ("save", "Save and replay"))
_FORM_BYTES: Final = 3 * MAX_MANIFEST_BYTES  # a manifest as a form sends it
_FIELDS: Final = 60
_LISTED: Final = 100
_NAME_CHARACTERS: Final = 60


# The list, and how a bench begins


def benches(call: Call) -> Response:
    return _start_page(call)


def _start_page(call: Call, *, problem: str = "", status: int = 200, form: Mapping[str, str] | None = None) -> Response:
    made, tenant = benches_of(call), call.principal.tenant
    owners = made.owners() if tenant is None else [tenant]
    listed = sorted((one for owner in owners for one in made.of(owner)), key=lambda one: -one.modified)
    library = Library(call.context.stack.store)
    return page(
        call,
        "benches.html",
        status=status,
        benches=[(one, path_of(one)) for one in listed[:_LISTED]],
        workflows=sorted(library.all(tenant), key=lambda one: (one.name, one.key))[:_LISTED],
        library=library,
        may_share=may_share(call),
        tenant=tenant or "",
        problem=problem,
        form=form or {},
        keep_days=round(EXPIRY_SECONDS / 86400),
        accept=",".join(SPREADSHEETS),
        most=f"{MOST_SAMPLES} files, {LARGEST // 2**20} MB together",
    )


async def begin(call: Call) -> Answer:
    """Start a bench with samples: the manifest is drafted from them."""
    with call.context.spool.scratch() as scratch:
        form, samples = await _received(call, scratch)
        try:
            owner = seen_owner(call, SHARED_TENANT if form.get("for") == "shared" else form.get("tenant", "").strip())
            return await in_turn(call, _begin, call, owner, form.get("name", ""), samples)
        except AdeError as error:
            status = int(error.status) if isinstance(error, ProblemError) else 422
            return await in_turn(call, partial(_start_page, call, problem=str(error), status=status, form=form))


async def _received(call: Call, scratch: Path) -> tuple[dict[str, str], dict[str, Path]]:
    """The fields of a form with files, and the files by their names."""
    length = call.request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > LARGEST + MAX_MANIFEST_BYTES:
        raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a bench takes samples of {LARGEST} bytes together")
    parts = await read_form(call.request, scratch, files=MOST_SAMPLES, field_bytes=10_000)
    fields = {name: value for name, value in parts if isinstance(value, str)}
    samples: dict[str, Path] = {}
    for _, one in parts:
        if isinstance(one, ReceivedFile) and one.filename:
            name = _sample_name(one.filename)
            if name in samples:
                raise ProblemError(
                    HTTPStatus.UNPROCESSABLE_ENTITY, f"two samples are called {name[:100]!r}; rename one"
                )
            samples[name] = one.path
    return fields, samples


def _sample_name(filename: str) -> str:
    name = filename.replace("\\", "/").rpartition("/")[2]
    if not is_spreadsheet(name) or refusal(name) is not None or len(name.encode()) > 200:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"{name[:100]!r} is not a spreadsheet; samples end in {', '.join(SPREADSHEETS)}",
        )
    return name


def _begin(call: Call, owner: str, name: str, samples: dict[str, Path]) -> Response:
    if not samples:
        raise UsageError("choose at least one sample")
    stem = name.strip() or PurePosixPath(next(iter(samples))).stem
    safe = "-".join("".join(c if c.isascii() and (c.isalnum() or c in "._-") else " " for c in stem).split())
    made = draft(call, safe.strip("-._")[:_NAME_CHARACTERS] or "workflow", samples)
    facts = BenchFacts(
        created_at=call.context.stack.clock.now(),
        by=call.principal.name,
        manifest=made.manifest,
        notes=made.notes,
        suggestions=made.suggestions,
    )
    bench = benches_of(call).new(owner, facts, samples)
    note(call, bench, "bench_begin", samples=len(samples))
    return go(path_of(bench))


async def open_workflow(call: Call) -> Answer:
    """Start a bench with the draft of a workflow, or with what is live."""
    form = await form_fields(call.request)
    return await in_turn(call, _open, call, form.get("key", ""))


def _open(call: Call, key: str) -> Response:
    standing = standing_at(call, key)
    library = Library(call.context.stack.store)
    version = library.draft(standing) or library.load(standing, LIVE)
    cases = library.case_files(standing, most=CASE_BYTES)
    facts = BenchFacts(
        created_at=call.context.stack.clock.now(),
        by=call.principal.name,
        manifest=_parsed(version.manifest),
        origin=origin_of(library, standing, cases),
    )
    bench = benches_of(call).new(place_of(standing), facts, {})
    benches_of(call).put_case(bench, cases)
    note(call, bench, "bench_open", version=version.id)
    return go(path_of(bench))


def _parsed(body: bytes) -> dict[str, Any]:
    """Raises ManifestInvalid."""
    found = parse(body, BUDGET)
    if isinstance(found, list):
        raise ManifestInvalid(found)
    return dict(found.raw)


async def remove(call: Call) -> Answer:
    return await in_turn(call, _remove, call)


def _remove(call: Call) -> Response:
    bench = bench_of(call)
    note(call, bench, "bench_remove")
    benches_of(call).remove(bench)
    return go("/bench")


async def add_samples(call: Call) -> Answer:
    with call.context.spool.scratch() as scratch:
        _, samples = await _received(call, scratch)
        return await in_turn(call, _add_samples, call, samples)


def _add_samples(call: Call, samples: dict[str, Path]) -> Response:
    bench = bench_of(call)
    known = {one.name for one in bench.facts.samples}
    if twice := sorted(known & samples.keys()):
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, f"there is a sample {twice[0][:100]!r} already; rename one")
    if not samples:
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "choose at least one sample")
    benches_of(call).add_samples(bench, samples)
    return go(link(path_of(bench), sample=len(known)))


# The page of a bench


def bench(call: Call) -> Response:
    return bench_page(call, bench_of(call))


def bench_page(
    call: Call,
    bench: Bench,
    refused: RefusedChange | None = None,
    extra: Mapping[str, Any] | None = None,
    *,
    tab: str = "",
) -> Response:
    query = call.request.query_params
    tab = tab or query.get("tab", "")
    tab = tab if tab in dict(TABS) else TABS[0][0]
    problems = manifest_problems(bench.body)
    shown, trouble = _preview(call, bench, problems) if "preview" in query else (None, "")
    chosen = _number(query.get("field", ""))
    fields = bench.fields
    text = bench.body.decode()
    more = _FACTS[tab](call, bench) if tab in _FACTS else {}
    return page(
        call,
        "bench.html",
        status=200 if refused is None else refused.status,
        bench=bench,
        at=path_of(bench),
        tab=tab,
        tabs=TABS,
        text=refused.sent if refused is not None and tab == "json" else text,
        refused=refused,
        problems=problems,
        fields=fields,
        chosen=chosen if chosen is not None and chosen < len(fields) else None,
        rules=[(_rule_name(one), json.dumps(one, ensure_ascii=False)) for one in _list(bench.facts.manifest, "rules")],
        ranges=[json.dumps(one, ensure_ascii=False) for one in _list(bench.facts.manifest.get("reading"), "tables")],
        forms=manifest_form,
        stem=bench_cases.stem,
        sample=min(_number(query.get("sample", "")) or 0, max(0, len(bench.facts.samples) - 1)),
        preview=shown,
        trouble=trouble,
        accept=",".join(SPREADSHEETS),
        **{"said": "", "made_of": "", **more, **(extra or {})},
    )


_FACTS: Final[dict[str, Callable[[Call, Bench], dict[str, Any]]]] = {
    "cases": bench_cases.facts,
    "save": bench_saves.facts,
}


def _rule_name(rule: object) -> str:
    return str(rule.get("name") or "")[:100] if isinstance(rule, dict) else ""


def _list(value: object, key: str) -> list[Any]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 6 else None


def _preview(call: Call, bench: Bench, problems: list[dict[str, str]]) -> tuple[BenchPreview | None, str]:
    if problems:
        return None, "The manifest has problems; a preview needs one that can be used."
    try:
        return preview(call, bench, _number(call.request.query_params.get("sample", "")) or 0), ""
    except AdeError as error:
        return None, str(error)


# Changes of the manifest


def _json(manifest: Mapping[str, Any], form: Mapping[str, str]) -> dict[str, Any]:
    del manifest
    made = _parsed(form.get("manifest", "").encode(errors="replace"))
    if "fields" in made and (not isinstance(made["fields"], list) or len(fields_of(made)) < len(made["fields"])):
        raise ManifestInvalid([Problem("$.fields", "has fields that are not objects", '[{"name": "id"}, …]')])
    return made


def _field(manifest: Mapping[str, Any], form: Mapping[str, str]) -> dict[str, Any]:
    return manifest_form.change_field(manifest, _place_of(form), form.get("do", ""), form)


def _place_of(form: Mapping[str, str]) -> int:
    number = _number(form.get("at", ""))
    return -1 if number is None else number


def _header_row(manifest: Mapping[str, Any], form: Mapping[str, str]) -> dict[str, Any]:
    row = _number(form.get("row", ""))
    if not row:
        raise ValueError("name a row by its number")
    return manifest_form.with_header_row(manifest, row, more="more" in form)


def _range(manifest: Mapping[str, Any], form: Mapping[str, str]) -> dict[str, Any]:
    if "none" in form:
        return manifest_form.without_ranges(manifest)
    area = form.get("range", "").strip().upper()
    if "open" in form and area:
        area = f"{area.rstrip('0123456789')}1048576"
    return manifest_form.with_range(manifest, form.get("sheet", ""), area)


def _column(manifest: Mapping[str, Any], form: Mapping[str, str]) -> dict[str, Any]:
    header = form.get("header", "").strip()
    if not header:
        raise ValueError("name the column by its header")
    return manifest_form.with_column(manifest, header, form.get("field", ""))


_EDITS: Final[Mapping[str, Callable[[Mapping[str, Any], Mapping[str, str]], dict[str, Any]]]] = {
    "json": _json,
    "settings": manifest_form.with_settings,
    "field": _field,
    "new_field": lambda manifest, form: manifest_form.new_field(
        manifest, form.get("name", "").strip(), form.get("type", "")
    ),
    "rule": manifest_form.with_rule,
    "no_rule": lambda manifest, form: manifest_form.without_rule(manifest, _place_of(form)),
    "header_row": _header_row,
    "range": _range,
    "column": _column,
}


async def edit(call: Call) -> Answer:
    """Change the manifest by one of the forms, and show the bench again."""
    form = await form_fields(call.request, fields=_FIELDS, most=_FORM_BYTES)
    return await in_turn(call, _edit, call, form)


def _edit(call: Call, form: dict[str, str]) -> Response:
    bench, act = bench_of(call), form.get("act", "")
    sent = form.get("manifest") or json.dumps(_posted(form), ensure_ascii=False, indent=1)
    try:
        if form.get("version") != bench.version:
            raise BenchChanged("this bench was changed in another window, or by somebody else")
        if act == "suggestion":
            benches_of(call).change(bench, **_without_suggestion(bench, _place_of(form), accepted="take" in form))
        elif (change := _EDITS.get(act)) is not None:
            manifest = change(bench.facts.manifest, form)
            benches_of(call).change(bench, manifest=manifest)
        else:
            raise ProblemError(HTTPStatus.BAD_REQUEST, "this form can change the manifest, nothing else")
    except BenchChanged as error:
        why = f"Nothing was changed: {error}. Below is the bench as it is now; enter your change again"
        return bench_page(call, benches_of(call).find(bench.owner, bench.id), RefusedChange(why, sent, 409))
    except ManifestInvalid as error:
        problem = error.problems[0]
        return bench_page(
            call, bench, RefusedChange(f"This {problem.problem}; it has to be {problem.allowed}", sent, 422)
        )
    except (ValueError, IndexError) as error:
        why = str(error) if isinstance(error, ValueError) else "there is no such field or rule any more"
        return bench_page(call, bench, RefusedChange(why, sent, 422))
    return go(_after(call, bench, form))


def _posted(form: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in form.items() if value and name not in ("version", "act", "flags")}


def _after(call: Call, bench: Bench, form: Mapping[str, str]) -> str:
    """Where a form leads: to the same tab, sample and field, wherever that is now."""
    query = call.request.query_params
    at = _number(form.get("at", ""))
    moved = {"up": -1, "down": 1}.get(form.get("do", ""), 0)
    field = None if at is None or form.get("do") == "remove" or form.get("act") != "field" else max(0, at + moved)
    if form.get("act") == "new_field":
        field = len(bench.fields)
    return link(path_of(bench), tab=query.get("tab"), sample=query.get("sample"), field=field)


def _without_suggestion(bench: Bench, at: int, *, accepted: bool) -> dict[str, Any]:
    """The facts of a bench without a suggestion, and with what it changes if it is accepted. Raises IndexError."""
    left = list[Suggestion](bench.facts.suggestions)
    if not 0 <= at < len(left):
        raise IndexError(at)
    one = left.pop(at)
    fields = [{**spec, **one.change} if spec.get("name") == one.field and accepted else spec for spec in bench.fields]
    return {"suggestions": tuple(left), "manifest": {**bench.facts.manifest, "fields": fields}}


# Tests, saving, replays


async def cases(call: Call) -> Answer:
    """Run test cases, expect what one gave, or remove one."""
    form = await form_fields(call.request)
    return await in_turn(call, _cases, call, form)


def _cases(call: Call, form: dict[str, str]) -> Response:
    def act(bench: Bench) -> Mapping[str, Any] | str:
        if form.get("do") == "accept":
            bench_cases.accept(call, bench, form)
            return f"{form.get('case', '')[:60]} expects this from now on"
        if form.get("do") == "remove":
            bench_cases.remove(call, bench, form)
            return "The case is removed"
        return {"runs": bench_cases.run(call, bench, form), "made_of": form.get("sample", "")}

    return _step(call, "cases", act)


async def save(call: Call) -> Answer:
    """Save the bench as a workflow."""
    form = await form_fields(call.request, most=100_000)
    return await in_turn(call, lambda: _step(call, "save", lambda bench: bench_saves.save(call, bench, form)))


async def promote(call: Call) -> Answer:
    """Make a version live."""
    form = await form_fields(call.request)
    return await in_turn(call, lambda: _step(call, "save", lambda bench: bench_saves.promote(call, bench, form)))


async def replay(call: Call) -> Answer:
    """Take a replay further."""
    form = await form_fields(call.request)
    return await in_turn(
        call, lambda: _step(call, "save", lambda bench: {"replay": bench_saves.replay(call, bench, form)})
    )


def _step(call: Call, tab: str, act: Callable[[Bench], Mapping[str, Any] | str]) -> Response:
    """Do something with a bench and show what came of it on its tab."""
    bench = bench_of(call)
    try:
        done = act(bench)
    except (BenchChanged, WorkflowChanged, ObjectChanged) as error:
        return bench_page(call, bench, RefusedChange(f"Nothing was replaced: {error}", "", 409), tab=tab)
    except ManifestInvalid as error:
        problem = error.problems[0]
        why = f"The manifest cannot be used: {problem.path} {problem.problem} ({problem.allowed})"
        return bench_page(call, bench, RefusedChange(why, "", 422), tab=tab)
    except UsageError as error:
        return bench_page(call, bench, RefusedChange(str(error), "", 422), tab=tab)
    extra = {"said": done} if isinstance(done, str) else done
    return bench_page(call, benches_of(call).find(bench.owner, bench.id), extra=extra, tab=tab)
