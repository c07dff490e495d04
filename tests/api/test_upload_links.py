"""Upload links: a file goes in and its verdict comes out, and nothing else can be had by them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from console.api import guarding
from console.api.access import LINKS_KEY, LinkFacts, Scope
from console.web import upload_page
from core.keys import job_folder
from core.ports import JobQuery
from infra.quarantine import begin_quarantine
from tests.support.console import AWAY, ApiRig, TestClient, api_rig

STANDING = {"manifest": 1, "name": "people", "subscribe": ["people/**/*.csv"], "fields": [{"name": "name"}]}
OTHER = STANDING | {"name": "other", "subscribe": ["elsewhere/**/*.csv"]}
HTML = {"accept": "text/html"}


@pytest.fixture(autouse=True)
def _workflows(rig: ApiRig):
    for tenant in ("acme", "acme-2"):
        for manifest in (STANDING, OTHER):
            rig.stack.store.put(f"configs/{tenant}/{manifest['name']}/manifest.json", json.dumps(manifest).encode())


def link(rig: ApiRig, tenant: str = "acme", days: float | None = 30, most_mb: int = 1, **facts: str) -> str:
    made = LinkFacts(workflow=facts.get("workflow", "people"), path=facts.get("path", "people"), most_mb=most_mb)
    _, token = rig.context.links.new("People of May", Scope.SENDER, tenant=tenant, days=days, link=made)
    return token


def stranger(rig: ApiRig) -> TestClient:
    return TestClient(rig.app, base_url="http://127.0.0.1", client=AWAY, headers=HTML, follow_redirects=False)


def send(rig: ApiRig, token: str, name: str = "people.csv", body: bytes = b"name\nAda\n"):
    return stranger(rig).post(f"/u/{token}", files={"file": (name, body)})


def inbox(rig: ApiRig) -> list[str]:
    return list(rig.stack.store.keys("inbox/"))


def test_a_file_goes_in_and_its_verdict_comes_out(rig: ApiRig):
    token = link(rig)
    page = stranger(rig).get(f"/u/{token}")
    assert page.status_code == 200
    assert "People of May" in page.text
    assert "script" not in page.headers["content-security-policy"].split("script-src")[0]
    sent = send(rig, token)
    assert sent.status_code == 303
    (key,) = inbox(rig)
    number = token.split("_")[1]
    assert key.startswith(f"inbox/acme/people/link-{number}/")
    assert key.endswith("/people.csv")
    after = stranger(rig).get(sent.headers["location"])
    assert "being checked" in after.text
    assert (after.headers["cache-control"], after.headers["x-robots-tag"]) == ("no-store", "noindex")
    (job,) = rig.stack.table.line(f"acme/{key.removeprefix('inbox/acme/')}|people")
    assert job.workflow == "people"


@pytest.mark.parametrize(
    ("language", "says"),
    [("de", "Datei senden"), ("fr-CA", "Envoyer un fichier"), ("es", "Enviar un archivo"), ("ja", "Send a file")],
)
def test_the_page_speaks_the_language_of_whoever_has_the_link(rig: ApiRig, language: str, says: str):
    token = link(rig)
    page = stranger(rig).get(f"/u/{token}", headers={"Accept-Language": language}).text
    assert says in page
    after = stranger(rig).get(send(rig, token).headers["location"], headers={"Accept-Language": language}).text
    assert ("being checked" in after) is (language == "ja")
    gone = (
        stranger(rig).get("/u/ade_0000000000_none", headers={"Accept-Language": language, "Accept": "text/html"}).text
    )
    assert says in gone
    assert ("no longer valid" in gone) is (language == "ja")
    assert "Back" not in gone  # to what they may not see


def test_wrong_revoked_and_expired_links_are_answered_alike(rig: ApiRig):
    good, revoked, expired = link(rig), link(rig), link(rig, days=-1)
    rig.context.links.revoke(revoked.split("_")[1])
    number = good.split("_")[1]
    guesses = [f"ade_{number}_wrong", "ade_0000000000_none", "nothing-like-it", revoked, expired, good + "x", good[:-1]]
    answers = {(a.status_code, a.text.replace(g, "")) for g in guesses for a in [stranger(rig).get(f"/u/{g}")]}
    assert len(answers) == 1, "a link that never was, one that is over and one that is nearly right"
    assert {status for status, _ in answers} == {404}
    assert stranger(rig).post(f"/u/{revoked}", files={"file": ("a.csv", b"x")}).status_code == 404


def test_a_link_that_is_revoked_while_a_file_comes_stores_nothing(rig: ApiRig, monkeypatch):
    token = link(rig)
    read = upload_page.read_form

    async def slow(*words: Any, **named: Any) -> Any:
        parts = await read(*words, **named)
        rig.context.links.revoke(token.split("_")[1])
        return parts

    monkeypatch.setattr(upload_page, "read_form", slow)
    assert send(rig, token).status_code == 404
    assert inbox(rig) == []


def test_who_guesses_has_to_wait(rig: ApiRig):
    seen = {stranger(rig).get(f"/u/ade_{n:010}_x").status_code for n in range(60)}
    assert seen == {404, 429}


def test_a_link_opens_nothing_else(rig: ApiRig):
    token = link(rig)
    for path in ("/jobs", "/overview", "/pauses", "/actions", "/", "/memory"):
        answer = TestClient(rig.app, base_url="http://127.0.0.1", client=AWAY).get(
            path, headers={"Authorization": f"Bearer {token}"}, follow_redirects=False
        )
        assert answer.status_code == 401, path
    assert stranger(rig).post("/login", data={"token": token, "next": "/"}).status_code != 303
    assert rig.token("reader") not in rig.stack.store.read(LINKS_KEY, limit=99999).decode()
    assert token.split("_")[2] not in rig.stack.store.read(LINKS_KEY, limit=99999).decode(), "only its hash is kept"


def test_a_verdict_is_found_by_its_own_number_and_link_only(rig: ApiRig):
    mine, others, foreign = link(rig), link(rig), link(rig, tenant="acme-2")
    sent = send(rig, mine).headers["location"]
    number = sent.split("sent=")[1]
    for token in (others, foreign):
        assert "people.csv" not in stranger(rig).get(f"/u/{token}?sent={number}").text
    for guess in ("0" * 32, "..", "%", "", number[:-1], number + "/../x", "inbox"):
        assert "people.csv" not in stranger(rig).get(f"/u/{mine}?sent={guess}").text


def test_a_verdict_is_found_however_many_others_come_after_it(rig: ApiRig):
    token = link(rig)
    sent = send(rig, token).headers["location"]
    (job,) = rig.stack.table.page(JobQuery(tenant="acme")).jobs
    for n in range(1000):
        rig.job(f"later{n}", tenant="acme", created_at=job.created_at + 1 + n)
    assert "people.csv" in stranger(rig).get(sent).text


def test_a_verdict_of_a_whole_drop_is_shown_and_one_whose_file_is_gone(rig: ApiRig):
    whole = STANDING | {"inputs": {"per": "drop"}}
    rig.stack.store.put("configs/acme/people/manifest.json", json.dumps(whole).encode())
    sent = send(rig, link(rig)).headers["location"]
    assert "being checked" in stranger(rig).get(sent).text.split("role=", 1)[1]
    rig.stack.store.put("configs/acme/people/manifest.json", json.dumps(STANDING).encode())
    sent = send(rig, token := link(rig)).headers["location"]
    (key,) = [key for key in inbox(rig) if token.split("_")[1] in key]
    (job,) = rig.stack.table.line(f"acme/{key.removeprefix('inbox/acme/')}|people")
    rig.stack.store.put(f"{job_folder(job)}result.json", b"{}")
    rig.stack.store.delete(key)
    assert "people.csv" in stranger(rig).get(sent).text


@pytest.mark.parametrize(
    "name",
    ["manifest.json", "x.manifest.json", "config.zip", "people.csv.decision.json", ".people.csv", "people.csv.part", "x.exe",
     "a" * 200 + ".csv", "people", "people.overlay.json"],
)  # fmt: skip
def test_only_spreadsheets_have_names_that_are_taken(rig: ApiRig, name: str):
    assert send(rig, link(rig), name).status_code in (400, 422)
    assert inbox(rig) == []


@pytest.mark.parametrize("name", ["../../acme-2/people/x.csv", "..\\..\\x.csv", "/inbox/acme-2/people/x.csv"])
def test_no_name_leads_out_of_the_folder_of_its_upload(rig: ApiRig, name: str):
    assert send(rig, link(rig), name).status_code == 303
    (key,) = inbox(rig)
    assert key.startswith("inbox/acme/people/link-")
    assert key.endswith("/x.csv")
    assert ".." not in key


def test_size_and_rate_are_bounded(rig: ApiRig):
    token = link(rig)
    assert send(rig, token, body=b"name\n" + b"x" * (1024 * 1024)).status_code == 413
    assert send(rig, token, body=b"name\n" + b"x" * (3 * 1024 * 1024)).status_code == 413
    assert inbox(rig) == []
    seen = [send(rig, token, body=b"name\n%d\n" % n).status_code for n in range(24)]
    assert set(seen) <= {303, 429}
    assert seen.count(303) <= 20
    assert 429 in seen
    assert send(rig, link(rig, tenant="acme-2")).status_code == 303, "another link is not slowed down"


@pytest.fixture
def exhausted(tmp_path) -> Iterator[tuple[ApiRig, str]]:
    """A link that took as many files as it may at once, of a tenant whose backlog has room; no time passes."""
    with api_rig(tmp_path, queue_size=100) as roomy:
        roomy.stop_the_clock()
        roomy.stack.store.put("configs/acme/people/manifest.json", json.dumps(STANDING).encode())
        token = link(roomy)
        seen = [send(roomy, token, body=b"name\n%d\n" % n).status_code for n in range(21)]
        assert seen == [303] * 20 + [429]
        yield roomy, token


def test_strangers_of_many_addresses_do_not_reset_the_limit_of_a_link(exhausted, monkeypatch):
    rig, token = exhausted
    monkeypatch.setattr(guarding, "_BUCKETS", 50)
    for n in range(60):
        peer = TestClient(rig.app, base_url="http://127.0.0.1", client=(f"2001:db8::{n:x}", 4000), headers=HTML)
        assert peer.get("/u/ade_0000000000_none").status_code == 404
    assert send(rig, token).status_code == 429


def test_looking_at_the_page_brings_no_more_uploads(exhausted):
    rig, token = exhausted
    clock = rig.context.guard._rates._clock
    clock.move(30)  # refills what pages take, and half an upload
    assert stranger(rig).get(f"/u/{token}").status_code == 200
    assert send(rig, token).status_code == 429
    clock.move(31)
    assert send(rig, token).status_code == 303


def test_the_same_request_twice_is_two_drops_and_neither_overwrites_the_other(rig: ApiRig):
    token = link(rig)
    first, second = send(rig, token), send(rig, token, body=b"name\nBob\n")
    assert first.headers["location"] != second.headers["location"]
    assert len(inbox(rig)) == 2


def test_a_link_of_one_workflow_brings_nothing_to_another(rig: ApiRig):
    assert send(rig, link(rig, path="elsewhere")).status_code == 409
    assert send(rig, link(rig, path="nowhere")).status_code == 422
    assert send(rig, link(rig, path="../acme-2/people")).status_code in (400, 409, 422)
    begin_quarantine(rig.stack.table, rig.stack.clock, "acme", "ops")
    assert send(rig, link(rig)).status_code == 403
    assert inbox(rig) == []
