"""Values: who sees cells of an input, and everything that must not leak on the way. Cells are read in a real box."""

import html
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.api.access import Scope
from console.web.site import console_app
from core.errors import UsageError
from core.jobs import InputRef, Job, Review, State
from core.settings import Settings
from infra.logs import Log
from infra.wiring import open_stack
from tests.support.console import HERE, ApiRig, TestClient

pytestmark = pytest.mark.slow
HTML = {"Accept": "text/html"}
CANARY = "canary-7f3k9q2d"
OTHER = "secret-of-umbrella"
EVIL = '<img src=x onerror=alert(1)>"\u202e\u2066\x07'
CSV = (
    f"Name,Qxz,Note\n{CANARY}-ann,12 High St,{EVIL.replace(chr(34), chr(34) * 2)}\n{CANARY}-bob,x{'y' * 200},=cmd()\n"
    f"{CANARY}-cid,3 Low Rd,fine\n"
)
QUESTIONS = [
    {
        "id": "q-1", "kind": "column", "input": "p.csv", "sheet": "p", "table": "p.csv!p!A1:C4", "column": "B",
        "header": "Qxz", "field": None, "text": "Which field is column B?", "chosen": None,
        "candidates": [{"value": "street", "label": "street", "probability": 0.5}, {"value": None, "label": "no field"}],
    },
    {
        "id": "q-2", "kind": "required", "input": "p.csv", "sheet": "p", "table": "p.csv!p!A1:C4", "column": None,
        "header": None, "field": "name", "text": "Which column is name?", "chosen": None,
        "candidates": [{"value": "A", "label": "column A"}, {"value": None, "label": "none"}],
    },
]  # fmt: skip


def finding(cell: str, **more: Any) -> dict[str, Any]:
    return {"code": "type_error", "severity": "error", "message": "not right", "sheet": "p", "cell": cell, **more}


def artifact() -> dict[str, Any]:
    sheet = {"name": "p", "input": "p.csv", "visibility": "visible", "tables": [], "rows": [], "beside": []}
    found = [finding("A2", input="p.csv"), finding("C2", input="p.csv"), finding("A9999", input="p.csv")]
    return {
        "summary": {"rows_out": 3}, "mapping": [], "sheets": [sheet], "readings": [], "inputs": [],
        "output": {"columns": []},
        "validation": {"findings": found, "total": 3, "kept": 3, "totals": []}, "pass_history": [],
    }  # fmt: skip


class ValuesRig(ApiRig):
    logged: io.StringIO

    def dropped(self, name: str, *, tenant: str = "acme", text: str = CSV, **more: Any) -> Job:
        key = f"inbox/{tenant}/{name}/p.csv"
        self.stack.store.put(key, text.encode())
        info = self.stack.store.head(key)
        assert info is not None
        given = {"inputs": (InputRef(role="primary", name="p.csv", ref=info.ref),), "subject": f"{name}/p.csv"}
        return self.job(name, tenant=tenant, **(given | more))


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValuesRig]:
    folder = tmp_path_factory.mktemp("values")
    with open_stack(Settings(storage_data_dir=folder / "data", settle_seconds=0.0, console_rate=1000)) as stack:
        logged = io.StringIO()
        app = console_app(stack, Log(stream=logged, level="debug"))
        with TestClient(app, base_url="http://127.0.0.1", client=HERE) as client:
            made = ValuesRig(stack, app, client)
            made.logged = logged
            yield made


@pytest.fixture(scope="module")
def done(rig: ValuesRig) -> Job:
    files = {"artifact.json": json.dumps(artifact()).encode()}
    return rig.dropped("done", state=State.SUCCEEDED, ended_at=2.0, files=files)


@pytest.fixture(scope="module")
def asks(rig: ValuesRig) -> Job:
    files = {"review.json": json.dumps({"questions": QUESTIONS}).encode()}
    return rig.dropped("asks", state=State.REVIEW, review=Review(questions=2, on_expiry="fail"), files=files)


def paths(done: Job, asks: Job) -> list[str]:
    return [
        "/", "/jobs", "/jobs?text=canary", f"/jobs/{done.job_id}", f"/jobs/{done.job_id}?values=yes",
        f"/jobs/{done.job_id}/values?rows=1-9", f"/jobs/{asks.job_id}/values?columns=A,B", f"/review?job={asks.job_id}",
        "/review", "/senders", "/sender?tenant=acme&workflow=members", "/overview", "/actions", "/metrics",
    ]  # fmt: skip


WITHOUT = [("reader", "acme"), ("reader", None), ("reviewer", "acme"), ("operator", None), ("sender", "acme")]


@pytest.mark.parametrize(("scope", "tenant"), WITHOUT)
@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_without_the_scope_no_page_and_no_route_shows_a_value(rig, done, asks, scope, tenant, accept):
    client = rig.from_afar(rig.token(scope, tenant))
    for path in paths(done, asks):
        answer = client.get(path, headers={"Accept": accept})
        assert CANARY not in answer.text, path
        if "/values" in path or ("values" in path and accept == "text/html" and scope != "sender"):  # theirs has none
            assert answer.status_code == 403, path
    assert "Show the values" not in client.get(f"/jobs/{done.job_id}", headers=HTML).text


@pytest.mark.parametrize("scope", ["reviewer", "operator", "sender"])
def test_the_scope_of_another_tenant_sees_nothing_of_this_one(rig, done, asks, scope):
    client = rig.from_afar(rig.token(scope, "globex", values=True))
    for path in paths(done, asks):
        answer = client.get(path)
        assert CANARY not in answer.text, path
        if done.job_id in path or path.startswith(f"/jobs/{asks.job_id}"):
            assert answer.status_code == 404, path


def test_strangers_get_nothing(rig, done, asks):
    for client in (rig.from_afar(), rig.from_afar("ade_0000000000_wrong")):
        for path in paths(done, asks):
            answer = client.get(path, follow_redirects=False)
            assert answer.status_code == 401, path
            assert CANARY not in answer.text


def test_a_revoked_token_sees_no_more(rig, done):
    token = rig.token("reviewer", "acme", values=True)
    client, path = rig.from_afar(token), f"/jobs/{done.job_id}/values?rows=2"
    assert CANARY in client.get(path).text
    rig.context.access.revoke(token.split("_")[1])
    assert client.get(path).status_code == 401


def test_an_expired_token_sees_no_more(rig, done):
    token = rig.token("reviewer", "acme", values=True, days=-1)
    assert rig.from_afar(token).get(f"/jobs/{done.job_id}/values?rows=2").status_code == 401


def test_a_reader_cannot_be_given_the_scope(rig):
    with pytest.raises(UsageError, match="may not read inputs"):
        rig.context.access.new("r", Scope.READER, tenant=None, values=True)


def test_a_grant_that_was_edited_by_hand_makes_no_reader_see_values(rig, done):
    grant, token = rig.context.access.new("r", Scope.READER, tenant=None)
    rig.context.access._change(
        lambda all_: [g.model_copy(update={"values": True}) if g.id == grant.id else g for g in all_]
    )
    assert rig.from_afar(token).get(f"/jobs/{done.job_id}/values?rows=2").status_code == 403


@pytest.mark.parametrize("path", ["/jobs/{}/values?rows=1-9", "/jobs/{}?values=yes"])
def test_values_are_never_cached(rig, done, path):
    answer = rig.client.get(path.format(done.job_id), headers=HTML if "yes" in path else {})
    assert CANARY in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert "etag" not in answer.headers


def test_the_review_page_with_values_is_not_cached_and_shows_samples(rig, asks):
    answer = rig.client.get(f"/review?job={asks.job_id}", headers=HTML)
    assert answer.headers["cache-control"] == "no-store"
    text = html.unescape(answer.text)
    assert "12 High St" in text  # of the column that is asked about
    assert f"{CANARY}-ann" in text  # of the column that may be the answer


def test_a_look_is_in_the_action_log_without_the_value(rig, done):
    before = len(rig.context.actions.latest(1000))
    rig.client.get(f"/jobs/{done.job_id}/values?rows=2")
    entry, *_ = rig.context.actions.latest(1000)
    assert len(rig.context.actions.latest(1000)) == before + 1
    assert (entry["act"], entry["job"], entry["by"], entry["tenant"]) == ("see_values", done.job_id, "local", "acme")
    assert CANARY not in json.dumps(rig.context.actions.latest(1000))


def test_what_cannot_be_noted_is_not_shown(rig, done, monkeypatch):
    def refuses(*_args: Any, **_more: Any) -> None:
        raise RuntimeError("no room")

    monkeypatch.setattr(rig.context.actions, "note", refuses)
    answer = rig.client.get(f"/jobs/{done.job_id}/values?rows=2")
    assert (answer.status_code, CANARY in answer.text) == (500, False)


def test_values_are_escaped_cut_and_turn_no_text(rig, done):
    page = rig.client.get(f"/jobs/{done.job_id}?values=yes", headers=HTML).text
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert not re.search("[\u202e\u2066\x07]", page)
    rows = rig.client.get(f"/jobs/{done.job_id}/values?rows=2-3").json()["rows"]
    assert not re.search("[\u202e\u2066\x07]", json.dumps(rows, ensure_ascii=False))
    assert max(len(cell) for row in rows for cell in row["cells"]) == 80


def test_findings_show_their_value_and_the_cells_around(rig, done):
    page = rig.client.get(f"/jobs/{done.job_id}?values=yes", headers=HTML).text
    assert f'<td class="value">{CANARY}-ann</td>' in page
    assert f'<td class="m-error">{CANARY}-ann</td>' in page
    assert f"<td>{CANARY}-bob</td>" in page  # the row below
    assert "Qxz" in page


@pytest.mark.parametrize(
    "query",
    ["rows=0", "rows=9999999", "rows=5-2", "columns=ZZZ", "rows=1-9999999&columns=A", ""],
)
def test_odd_cells_are_blank(rig, done, query):
    answer = rig.client.get(f"/jobs/{done.job_id}/values?{query}")
    assert answer.status_code == 200
    assert sum(len(row["cells"]) for row in answer.json()["rows"]) <= 400 * 60


@pytest.mark.parametrize(
    "query",
    [
        "rows=../etc",
        "rows=1;2",
        "columns=a",
        "columns=A%00",
        f"rows={'1,' * 200}1",
        "input=../p.csv",
        "n=1",
        "first=0",
        "last=x",
    ],
)
def test_odd_questions_are_refused(rig, done, query):
    assert rig.client.get(f"/jobs/{done.job_id}/values?{query}").status_code in (400, 404)


def test_another_version_of_the_file_is_not_shown(rig):
    job = rig.dropped("replaced", state=State.SUCCEEDED, ended_at=2.0)
    rig.stack.store.put("inbox/acme/replaced/p.csv", f"a\n{OTHER}\n".encode())
    answer = rig.client.get(f"/jobs/{job.job_id}/values?rows=1-9")
    assert (answer.status_code, OTHER in answer.text) == (404, False)


def test_an_input_that_names_another_tenants_file_is_not_shown_to_this_ones_token(rig):
    theirs = rig.dropped("theirs", tenant="umbrella", text=f"a\n{OTHER}\n")
    client = rig.from_afar(rig.token("reviewer", "acme", values=True))
    assert client.get(f"/jobs/{theirs.job_id}/values?rows=1-9").status_code == 404
    assert OTHER not in client.get("/review", headers=HTML).text


@pytest.mark.parametrize(
    "body",
    [
        b"PK\x03\x04" + b"\0" * 100,
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + CANARY.encode() * 9,
        b"%PDF " + CANARY.encode(),
    ],
)
def test_a_file_that_cannot_be_read_says_so_without_its_bytes(rig, body):
    job = rig.dropped(f"odd{len(body)}{body[0]}", state=State.SUCCEEDED, ended_at=2.0)
    key = job.inputs[0].ref.key
    rig.stack.store.put(key, body)
    info = rig.stack.store.head(key)
    fresh = rig.job(f"odd2{len(body)}{body[0]}", inputs=(InputRef(role="primary", name="p.csv", ref=info.ref),))
    answer = rig.client.get(f"/jobs/{fresh.job_id}/values?rows=1-9")
    assert (answer.status_code, CANARY in answer.text) == (422, False)


def test_a_large_file_is_not_read(rig, monkeypatch):
    monkeypatch.setattr("console.api.values.LARGEST", 10)
    job = rig.dropped("large", state=State.SUCCEEDED, ended_at=2.0)
    assert rig.client.get(f"/jobs/{job.job_id}/values?rows=1").status_code == 413


def test_a_page_is_shown_without_values_where_they_cannot_be_read(rig, monkeypatch):
    files = {"artifact.json": json.dumps(artifact()).encode()}
    job = rig.dropped("gone", state=State.SUCCEEDED, ended_at=2.0, files=files)
    rig.stack.store.delete(job.inputs[0].ref.key)
    page = rig.client.get(f"/jobs/{job.job_id}?values=yes", headers=HTML)
    assert page.status_code == 200
    assert "Values cannot be shown" in page.text


def test_the_session_says_who_sees_values(rig):
    assert "values" in rig.client.get("/session").json()["rights"]
    for scope, values in (("operator", False), ("operator", True), ("reviewer", True)):
        token = rig.token(scope, None, values=values)
        assert ("values" in rig.from_afar(token).get("/session").json()["rights"]) is values


def test_zz_nothing_that_is_kept_holds_a_value(rig, done, asks):
    """After all of the above: bucket, table, logs and scratch folders; only the inputs themselves have it."""
    del done, asks
    assert "see_values" in rig.logged.getvalue()
    assert CANARY not in rig.logged.getvalue()
    folder = Path(rig.stack.settings.storage_data_dir)
    holds = [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and CANARY.encode() in path.read_bytes()
    ]
    assert [name for name in holds if "/inbox/" not in f"/{name}"] == []
    assert holds
