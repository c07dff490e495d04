"""Whatever parses text outside the box is listed here, with what bounds it. A new place has to be listed, or to use
`core.budget`: what a tenant wrote is read by processes that serve everybody."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROOMS = ("core", "handlers", "runner", "console", "infra")
BOXED = ("runner/engine/", "runner/sandbox/box/", "runner/sandbox/install/")  # run under limits of their own
PARSERS = {"loads", "load", "from_json", "model_validate", "model_validate_json", "validate_python", "validate_json"}

MODULES = ("json", "pickle")

OURS = "written by this product: "
DESK = "a command of the person whose file it is"
LISTED = {
    "core/budget.py:parse": "within its budget",
    "core/budget.py:plain": "within its budget",
    "core/budget.py:validate": "few values, or counted",
    "core/jobs.py:load_job": OURS + "a row",
    "core/loads.py:LoadRule.parse": OURS + "the address of a notice",
    "core/loads.py:parse_connections": "the operator's own file",
    "core/mails.py:parse_mail_server": "the operator's own file",
    "console/cli/backups.py:_about": "the operator's own file",
    "console/erasure.py:_mentions": OURS + "an entry of the action log, or an answer; at most 16 MiB is read",
    "console/erasure.py:_shorten_report": OURS + "the report of a replay; at most 16 MiB is read",
    "infra/local/sqlite_loads.py:_remove_job": OURS + "a row that was put aside",
    "core/memories.py:_built": "entries that were validated",
    "core/overlays.py:_consistent": "a manifest that was read within its budget, with an overlay that was",
    "core/overlays.py:_merged": "a field or the reading of a manifest and of an overlay, both validated",
    "handlers/events.py:_parsed": "within its budget, measured just before",
    "runner/documents.py:read_order": OURS + "latest.json, at most 1 MiB is read",
    "runner/profiles.py:_object_of": OURS + "the head of a profile, a short line",
    "runner/staging.py:indexed": "memories that were validated; large ones apart",
    "runner/sandbox/claims.py:parse_line": "a line of at most 64 KiB; depth and digits are bounded",
    "runner/sandbox/docker.py:_described": "the engine's answer about itself or our own image",
    "runner/sandbox/process.py:_start_box": OURS + "its own starter",
    "runner/sandbox/registry.py:Registry.reap": OURS + "its own list of boxes",
    "runner/sandbox/session.py:Watch._control_data": OURS + "the box's keeper, a bounded line",
    "runner/sandbox/zygotes.py:_receive": OURS + "its zygote",
    "console/api/access.py:Access._read": OURS + "tokens.json",
    "console/api/operations.py:checked": "a query or a form, a few KiB",
    "console/api/submissions.py:Submissions._known": OURS + "an answer to a request",
    "console/web/forms.py:drop": OURS + "the answer of another operation",
    "console/web/pages.py:_job_query": "a query, a few KiB",
    "console/contracts/importing.py:_parsed": "within its budget, without tags and aliases; a file of the person at the desk",
    "console/desk/drafts.py:_errors": "the verified artifact of a trial at a desk",
    "console/replays.py:Replayer._comparison": OURS + "a comparison, at most 16 MiB is read",
    "runner/replays.py:read_replay": OURS + "replay.json, at most 64 KiB is read",
    "core/versions.py:parse_promotion": OURS + "a note of at most 10 KB",
    "console/library.py:differences": "manifests that were validated",
    "console/cli/explain.py:explained": DESK,
    "console/cli/explain.py:accounted": DESK,
    "console/cli/commands/try_.py:run": OURS + "result.json",
    "console/cli/commands/queue.py:Import._one": DESK,
    "console/cli/commands/scan.py:scanned": "the engine's answer at a desk",
    "console/cli/commands/learn.py:_artifact": DESK,
    "console/cli/commands/learn.py:_lines": DESK,
    "infra/local/disk.py:KnownFiles.get_all": OURS + "the metadata of one file, written by this program",
    "infra/apart.py:_Helper.call": "of our own helper: plain values and our own classes only",
    "infra/apart.py:_answered": OURS + "our own parent",
    "infra/statuses.py:_job_of": OURS + "status.json, at most 1 MiB is read",
    "infra/meters.py:read_snapshots": OURS + "counters of our own processes",
    "infra/aws/ecs.py:Agent._put": "AWS's answer",
    "infra/aws/sqs.py:_loaded": "a message of at most 256 KiB on our own queue",
    "infra/deploy/local_cloud.py:_credentials": OURS + "its own file",
    "infra/deploy/local_cloud.py:_known_ports": OURS + "its own file",
    "infra/minio.py:MinioEvents.target": "MinIO's answer",
}


def calls(tree: ast.AST, within: str = "") -> Iterator[tuple[str, str]]:
    """Calls of parsers, each with the function that makes it."""
    for node in ast.iter_child_nodes(tree):
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        here = f"{within}.{node.name}".lstrip(".") if named else within
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            of = getattr(node.func, "value", None)
            if name in PARSERS and (name != "load" or isinstance(of, ast.Call) or getattr(of, "id", "") in MODULES):
                yield here, name
        yield from calls(node, here)


def found() -> set[str]:
    places = set()
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(BOXED):
                places |= {f"{name}:{where}" for where, _ in calls(ast.parse(path.read_text()))}
    return places


def test_every_place_that_parses_is_listed_with_what_bounds_it():
    new = found() - LISTED.keys()
    assert not new, f"these parse text; read it by core.budget, or list what bounds it: {sorted(new)}"


def test_no_place_is_listed_that_no_longer_parses():
    assert LISTED.keys() <= found()


def test_tenants_texts_are_read_by_content_and_apart():
    """Where a store is at hand, `infra.parsing` is: it parses a content once, and a large one in another process."""
    direct = ("parse_manifest", "parse_decision", "parse_memory")
    # Constants of ours, and files at a desk.
    known = {"infra/parsing.py", "runner/attempt.py", "runner/sandbox/jail.py", "console/cli/memory_place.py"}
    users = {
        path.relative_to(ROOT).as_posix()
        for room in ("handlers", "runner", "console", "infra")
        for path in (ROOT / room).rglob("*.py")
        if any(f"{name}(" in path.read_text() for name in direct)
    }
    assert users == known
