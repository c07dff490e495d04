"""Everything that only pages ask for, with forms, addresses and bodies that nobody's page sends: refused, never a fault."""

import json
from random import Random
from typing import Any

import pytest

from console.api.operations import Operation
from console.benches import Bench, Benches, BenchFacts
from console.web.site import EXTRA
from core.jobs import Review, State
from core.keys import job_folder
from tests.support.console import ApiRig
from tests.support.effort import examples

ORIGIN = {"Accept": "text/html", "Origin": "http://127.0.0.1"}
TEXTS = (
    "", "0", "1", "-1", "999999", "9" * 400, "1e999", "NaN", "null", "[]", "{}", '{"a":', "\x00", "\ud800", "ü" * 300,
    "<img src=x onerror=alert(1)>", "../../etc/passwd", "..", "/", "\\", "a\r\nSet-Cookie: x=1", "acme", "_shared",
    "*", "٣", "²", "text", "nobody", "on", "yes", "A1:C3", "ZZZZ9:A1", "$.fields", "people/**/*.csv", "draft", "live",
    "accept", "remove", "up", "down", "json", "settings", "field", "new_field", "rule", "no_rule", "header_row", "range",
    "column", "suggestion", "configs/acme/people/manifest.json", "configs/globex/people/manifest.json", "🦄",
    '{"manifest": 1, "name": "people", "fields": [1]}', '{"manifest": 1, "fields": {"a": 1}, "reading": 3}',
    '{"manifest": 1, "name": 3, "fields": [], "rules": {}, "tenants": 3, "subscribe": {"a": 1}}',
)  # fmt: skip
NAMES = (
    "act", "version", "manifest", "name", "type", "at", "do", "field", "header", "row", "more", "range", "sheet", "none",
    "open", "take", "what", "until", "note", "tenant", "workflow", "for", "key", "as", "tenants", "subscribe", "case",
    "sample", "days", "since", "version_id", "live", "of", "q1", "q1-other", "also", "remember", "job", "all", "filter",
    "sure", "path", "allowed", "min", "max", "formats", "map", "synonyms", "required", "flags", "reading.header_rows",
    "reading.encoding", "mapping.threshold", "output.formats", "from", "token", "next", "rest", "header_rows", "rule",
)  # fmt: skip
ABOUT: dict[str, tuple[str, ...]] = {
    "json": ("manifest",), "settings": NAMES, "field": ("do", "name", "type", "allowed", "min", "max", "formats", "map"),
    "new_field": ("name", "type"), "rule": ("rule",), "no_rule": ("at",), "header_row": ("row",),
    "range": ("range", "sheet", "none"), "column": ("header", "field"), "suggestion": ("at", "take"),
}  # fmt: skip
QUERIES = ("tab", "field", "sample", "preview", "tenant", "workflow", "range", "start", "sort", "show", "text", "n")
EDITS = ([[0, 1, 1, "x"]], [[99, 1048576, 16384, "\x00"]], [[0, 2, 1, "<b>"]], [["a", 1, 1, "x"]], [], None, 3, [[0]])


def manifest() -> dict[str, Any]:
    return {"manifest": 1, "name": "people", "subscribe": ["people/**/*.csv"], "fields": [{"name": "name"}]}


def world(rig: ApiRig) -> tuple[Bench, str, str]:
    """A workflow, a bench, a job with a broken rejects.xlsx and one that asks."""
    for tenant in ("acme", "globex"):
        rig.stack.store.put(f"configs/{tenant}/people/manifest.json", json.dumps(manifest()).encode())
    bench = Benches(rig.stack.store, rig.stack.clock).new("acme", BenchFacts(created_at=1.0, manifest=manifest()), {})
    done = rig.job("done", state=State.SUCCEEDED, ended_at=2.0, files={"artifact.json": b"{}"})
    asks = rig.job("asks", state=State.REVIEW, review=Review(questions=1, on_expiry="fail"))
    question = {"id": "q", "kind": "column", "header": "<b>", "candidates": [{"value": "name"}, {"value": None}]}
    rig.stack.store.put(f"{job_folder(asks)}review.json", json.dumps({"questions": [question]}).encode())
    return bench, done.job_id, asks.job_id


def odd(random: Random) -> str:
    return random.choice(TEXTS).encode(errors="replace").decode()


def version(rig: ApiRig, bench: Bench) -> str:
    found = [info for info in rig.stack.store.objects(bench.folder) if info.key.endswith("bench.json")]
    return found[0].version if found else ""


def sent(random: Random) -> dict[str, Any]:
    """What goes with one request: a form, JSON, files or raw bytes."""
    form = {random.choice(NAMES): odd(random) for _ in range(random.randrange(6))}
    kind = random.randrange(5)
    if kind == 0:
        body = random.choice([{"edits": random.choice(EDITS)}, form, [], None, "x", {"answers": [form]}])
        return {"json": body}
    if kind == 1:
        names = [random.choice(["a.csv", "../a.csv", "a.exe", "", "<b>.xlsx", "\u202e.csv"]) for _ in range(2)]
        return {"data": form, "files": [(random.choice(["files", "file"]), (name, b"a,b\n1,2\n")) for name in names]}
    if kind == 2:
        return {"content": random.randbytes(40), "headers": {"Content-Type": random.choice(TEXTS[:12]) or "x"}}
    return {"data": form}


def address(operation: Operation, random: Random, bench: Bench, jobs: list[str]) -> str:
    odd = random.random() < 0.2
    place = {
        "owner": random.choice(["acme", "globex", "_shared", "..", "%00", "x" * 300]) if odd else bench.owner,
        "bench_id": random.choice(["0", "..", "%2e%2e", "é", "x" * 99]) if odd else bench.id,
        "job_id": random.choice(["nobody", "..%2f", "%00"]) if odd else random.choice(jobs),
        "workflow": random.choice(["people", "..", "%0d%0aX: y", "é"]),
        "token": random.choice(["ade_1_x", "..", "x" * 500, "%00", "ade_" + "0" * 10 + "_"]),
        "name": random.choice(["console.js", "..%2fsite.py", "", "%00"]),
    }
    path = operation.path
    for name, value in place.items():
        path = path.replace(f"{{{name}}}", value)
    if random.random() < 0.5:
        wanted = random.sample(QUERIES, 2)
        path += "?" + "&".join(f"{name}={random.choice(['', '1', '-1', '%00', 'x', '9' * 30])}" for name in wanted)
    return path


@pytest.mark.parametrize("seed", range(examples(4)))
def test_no_form_address_or_body_is_a_fault(rig: ApiRig, seed: int):
    """Boxes are left out: they are judged by tests of their own."""
    random, (bench, *jobs) = Random(seed), world(rig)
    wrong: list[str] = []
    for operation in EXTRA * 3:
        path, body = address(operation, random, bench, list(jobs)), sent(random)
        if "preview" in path or path.startswith("/bench?") or operation.path == "/bench" or path.endswith("/remove"):
            continue
        given = body if operation.method == "POST" else {}
        headers = {**ORIGIN, **given.pop("headers", {})}
        answer = rig.client.request(operation.method, path, headers=headers, follow_redirects=False, **given)
        if answer.status_code >= 500 or "<img src=x" in answer.text:
            wrong.append(f"{operation.method} {path} {body}: {answer.status_code} {answer.text[-300:]}")
    assert not wrong, wrong[:3]


@pytest.mark.parametrize("seed", range(examples(4)))
def test_no_change_of_a_bench_makes_it_unreadable(rig: ApiRig, seed: int):
    """Changes of a bench as it is now, one after the other: whatever is kept is shown again, as text."""
    random, (bench, *_) = Random(seed), world(rig)
    wrong, kept, at = list[str](), 0, f"/bench/{bench.owner}/{bench.id}"
    for _ in range(40):
        act = random.choice(list(ABOUT))
        form = {name: odd(random) for name in random.sample(ABOUT[act], k=min(3, len(ABOUT[act])))}
        form |= {"version": version(rig, bench), "act": act, "at": "0"}
        answer = rig.client.post(at, data=form, headers=ORIGIN, follow_redirects=False)
        kept += answer.status_code == 303
        pages = [rig.client.get(f"{at}?tab={tab}&field=0", headers=ORIGIN) for tab in ("", "json", "save")]
        if any(one.status_code >= 500 or "<img src=x" in one.text for one in (answer, *pages)):
            wrong.append(f"{form}: {answer.status_code} {[one.status_code for one in pages]}")
            break
    assert not wrong
    assert kept
