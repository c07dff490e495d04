"""The pages of the console, rendered: what they hold of others' text, and what they do with what cannot be read."""

import html
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any, ClassVar

import pytest

from console.api import job_routes
from console.web.rendering import link
from core.errors import StoreUnavailable
from core.jobs import Job, JobError, Review, State
from core.keys import decision_key, job_folder
from core.memories import HeaderFact, Memory, ReadingFact, ShapeFact, learn, parse_memory, serialized
from core.ports import QueueStats
from core.verdicts import Verdict
from tests.contract.jobs import NOW, a_job
from tests.support.console import MANIFEST, ApiRig
from tests.support.samples import artifact, review

EVIL = "</title><script>alert(1)</script><img src=x onerror=alert(1)>'\"&\u202e"
HTML = {"Accept": "text/html"}
OURS = {"script": r"/static/console\.js\?v=[0-9a-f]+"}


class Elements(HTMLParser):
    """Tags, and attributes that could run something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        source = dict(attrs).get("src") or ""
        if tag in ("script", "img", "iframe", "object", "base") and not re.fullmatch(OURS.get(tag, "-"), source):
            self.found.append(f"<{tag} {attrs}>")
        self.found += [
            f"<{tag} {name}={value!r}>"
            for name, value in attrs
            if name.startswith("on") or name == "style" or (value or "").lower().startswith(("javascript:", "data:"))
        ]


def _job(rig: ApiRig, name: str, *, files: dict[str, bytes] | None = None, **more: Any) -> Job:
    """A job whose id is its name, whatever its other names are."""
    job, _ = rig.stack.table.add(replace(a_job(name, **more), job_id=name))
    for file, body in (files or {}).items():
        rig.stack.store.put(f"{job_folder(job)}{file}", body)
    return job


@pytest.fixture
def hostile(rig: ApiRig) -> list[str]:
    """Jobs whose every text is hostile; the paths of all pages that could show it."""
    error = JobError(verdict=Verdict.RULE_ERROR, message=EVIL, where={EVIL: EVIL})
    given = {"subject": EVIL, "workflow": EVIL, "reason": EVIL}
    files = {"artifact.json": json.dumps(artifact(EVIL)).encode(), "logs.txt": EVIL.encode()}
    done = _job(rig, "done", state=State.SUCCEEDED, ended_at=2.0, files=files, **given)
    bad = _job(rig, "bad", state=State.FAILED, error=error, ended_at=3.0, **given)
    asks = _job(
        rig, "asks", state=State.REVIEW, review=Review(questions=1, on_expiry="fail"), waiting_for=(EVIL,),
        files={"review.json": json.dumps(review(EVIL)).encode()}, **given,
    )  # fmt: skip
    memory = {"headers": [{"header": EVIL, "field": EVIL, "count": 1, "at": EVIL, "by": EVIL}]}
    rig.stack.store.put("configs/acme/people.memory.json", json.dumps(memory).encode())
    rig.client.post("/pause", json={"tenant": "acme", "workflow": EVIL[:200]})
    return [
        "/", "/jobs", f"/jobs/{done.job_id}", f"/jobs/{bad.job_id}", f"/jobs/{asks.job_id}",
        f"/review?job={asks.job_id}", "/review", "/senders", "/drop", f"/drop?from={done.job_id}",
        link("/sender", tenant="acme", workflow=EVIL), "/sender?tenant=acme&workflow=people", "/?tenant=acme",
    ]  # fmt: skip


def test_hostile_text_stays_text_on_every_page(rig: ApiRig, hostile: list[str]):
    shown = 0
    for path in hostile:
        answer = rig.client.get(path, headers=HTML)
        assert answer.status_code == 200, path
        assert answer.headers["content-type"].startswith("text/html")
        assert Elements(answer.text).found == [], path
        shown += answer.text.count("alert(1)")
    assert shown > 50  # it was there, as text


def test_no_text_on_a_page_turns_its_direction(rig: ApiRig, hostile: list[str]):
    for path in hostile:
        texts = re.sub("<textarea.*?</textarea>|<[^>]*>", "", rig.client.get(path, headers=HTML).text, flags=re.DOTALL)
        assert "\u202e" not in texts, path


@pytest.mark.parametrize(
    "path", ["/jobs?text={}", "/jobs?state={}", "/jobs/{}", "/drop?from={}", "/login?next={}", "/{}"]
)
def test_hostile_addresses_stay_text(rig: ApiRig, path: str):
    answer = rig.client.get(path.format("%3Cscript%3Ealert(1)%3C%2Fscript%3E%22"), headers=HTML)
    assert answer.status_code < 500
    assert Elements(answer.text).found == []


@pytest.mark.parametrize(
    "damage",
    [
        {}, {"sheets": 1}, {"mapping": [{}]}, {"validation": None}, {"summary": []}, {"sheets": [{"rows": [1]}]},
        {"readings": "x"}, {"drift": {"columns": 3}}, {"pass_history": [{"pass": 1}]},
    ],
)  # fmt: skip
def test_a_job_is_shown_whatever_its_artifact_is(rig: ApiRig, damage: dict):
    body = artifact("x") | damage if damage else []
    job = rig.job("odd", state=State.SUCCEEDED, ended_at=2.0, files={"artifact.json": json.dumps(body).encode()})
    assert rig.client.get(f"/jobs/{job.job_id}", headers=HTML).status_code == 200


@pytest.mark.parametrize("questions", [None, "x", [1], [{"id": "a", "candidates": [{"value": []}]}], [{"id": "a"}]])
def test_a_review_is_shown_whatever_its_questions_are(rig: ApiRig, questions: object):
    files = {"review.json": json.dumps({"questions": questions}).encode()}
    job = rig.job("odd", state=State.REVIEW, files=files)
    assert rig.client.get(f"/review?job={job.job_id}", headers=HTML).status_code == 200


def test_a_grid_names_its_rows_and_marks_findings(rig: ApiRig):
    files = {"artifact.json": json.dumps(artifact("Pay")).encode()}
    job = rig.job("done", state=State.SUCCEEDED, ended_at=2.0, files=files)
    page = rig.client.get(f"/jobs/{job.job_id}", headers=HTML).text
    assert '<th scope="row">2-8</th>' in page
    assert "data · 7 rows" in page
    assert "total, left out" in page
    assert f'href="/jobs/{job.job_id}?column=A&amp;severity=error#findings"' in page


def test_a_login_leads_to_our_own_pages_only(rig: ApiRig):
    token = rig.token("reader")
    for given, led in (("/jobs?state=FAILED", "/jobs?state=FAILED"), ("//evil.example", "/"), ("/\\evil", "/")):
        answer = rig.client.post("/login", data={"token": token, "next": given}, follow_redirects=False)
        assert answer.status_code == 303
        assert answer.headers["location"] == led


def test_a_session_cookie_is_out_of_reach_of_scripts_and_other_sites(rig: ApiRig):
    answer = rig.client.post("/login", data={"token": rig.token("reader"), "next": "/"}, follow_redirects=False)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_a_form_of_another_site_is_refused(rig: ApiRig):
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert rig.client.post("/logout", headers=headers, follow_redirects=False).status_code == 403


def test_the_input_is_for_those_who_may_see_what_was_sent(rig: ApiRig):
    rig.submit()
    job_id = rig.client.get("/jobs").json()["jobs"][0]["job_id"]
    reader, sender = rig.from_afar(rig.token("reader")), rig.from_afar(rig.token("sender", "acme"))
    other = rig.from_afar(rig.token("sender", "globex"))
    assert reader.get(f"/jobs/{job_id}/input").status_code == 403
    assert other.get(f"/jobs/{job_id}/input").status_code == 404
    assert sender.get(f"/jobs/{job_id}/input").content == b"Name,Age\nann,3\n"
    assert f'href="/jobs/{job_id}/input' not in reader.get(f"/jobs/{job_id}", headers=HTML).text


def test_a_manifest_is_checked_as_it_is_written(rig: ApiRig):
    def problems(text: str) -> list:
        return rig.client.post("/drop/check", content=text).json()["problems"]

    assert problems('{"manifest": 1, "name": "x", "fields": [{"name": "a"}]}') == []
    assert problems('{"manifest": 1, "nane": "x"}')[0]["path"]
    assert problems("{")


def test_a_preview_is_for_small_files_of_ones_own_tenant(rig: ApiRig):
    sender = rig.from_afar(rig.token("sender", "acme"))
    given = {"tenant": "globex", "manifest": json.dumps(MANIFEST)}
    assert sender.post("/drop/preview", data=given, files={"files": ("p.csv", b"a\n1\n")}).status_code == 403
    large = {"files": ("p.csv", bytes(20 * 1024 * 1024))}
    assert sender.post("/drop/preview", data=given | {"tenant": "acme"}, files=large).status_code == 413
    assert rig.from_afar(rig.token("reader")).post("/drop/preview", data=given, files=large).status_code == 403


def test_whoever_may_only_read_gets_no_buttons(rig: ApiRig):
    job = rig.failed("one", tenant="acme")
    reader = rig.from_afar(rig.token("reader"))
    for path in ("/", "/jobs", f"/jobs/{job.job_id}", "/senders"):
        assert not re.search(r"data-(?:post|bulk)", reader.get(path, headers=HTML).text), path
    assert 'data-post="/jobs/' in rig.client.get(f"/jobs/{job.job_id}", headers=HTML).text


class TestWithoutScripts:
    """What a browser's own forms send: the buttons of a job, the answers of a review."""

    ASKED: ClassVar[dict[str, Any]] = {
        "questions": [
            {"id": "q-a", "kind": "column", "text": "?", "candidates": [{"value": "street"}, {"value": None}]},
            {"id": "q-b", "kind": "column", "text": "?", "candidates": [{"value": "city"}, {"value": "town"}]},
        ]
    }

    def waiting(self, rig: ApiRig) -> Job:
        return rig.job("a", state=State.REVIEW, files={"review.json": json.dumps(self.ASKED).encode()})

    def sent(self, rig: ApiRig, path: str, **more: Any) -> Any:
        return rig.client.post(path, headers=HTML | {"Origin": "http://127.0.0.1"}, follow_redirects=False, **more)

    def page_form(self, rig: ApiRig, job: Job) -> tuple[str, dict[str, str]]:
        """Where the form of the page leads, and what it sends by itself."""
        shown = rig.client.get(f"/review?job={job.job_id}", headers=HTML).text
        (action,) = re.findall(r'method="post" action="(/jobs/[^"]+)"', shown)
        return action, dict(re.findall(r'type="hidden" name="(\w+)" value="(\w+)"', shown))

    def test_a_job_is_retried_by_its_button(self, rig: ApiRig):
        job = rig.failed("a")
        shown = rig.client.get(f"/jobs/{job.job_id}", headers=HTML).text
        (action,) = re.findall(r'<form class="row acts" method="post" action="([^"]+)"', shown)
        answer = self.sent(rig, action, data={"act": "retry"})
        assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{job.job_id}")
        again = rig.stack.table.get(job.job_id)
        assert again is not None
        assert again.state is State.QUEUED

    def test_nothing_is_removed_without_a_question_and_nothing_from_elsewhere(self, rig: ApiRig):
        job = rig.failed("a")
        at = f"/jobs/{job.job_id}/act"
        assert "Delete the job" in self.sent(rig, at, data={"act": "remove"}).text
        elsewhere = rig.client.post(at, data={"act": "retry"}, headers=HTML | {"Origin": "http://evil.example"})
        assert elsewhere.status_code == 403
        assert rig.from_afar(rig.token("reader")).post(at, data={"act": "retry"}).status_code == 403
        assert rig.stack.table.get(job.job_id) == job

    def test_a_review_is_answered_by_its_form(self, rig: ApiRig):
        job = self.waiting(rig)
        action, hidden = self.page_form(rig, job)
        answer = self.sent(rig, action, data=hidden | {"q1": "1", "q2": "0", "remember": "on"})
        assert (answer.status_code, answer.headers["location"]) == (303, f"/review?answered={job.job_id}")
        assert (
            f'Answered: <a href="/jobs/{job.job_id}">' in rig.client.get(answer.headers["location"], headers=HTML).text
        )
        written = json.loads(rig.stack.store.read(decision_key(job.inputs[0].ref.key), limit=10_000))
        assert written["answers"] == [{"id": "q-a", "value": None}, {"id": "q-b", "value": "city"}]
        assert written["remember"] is True

    def test_answers_to_other_questions_are_refused_as_a_page(self, rig: ApiRig):
        job = self.waiting(rig)
        action, hidden = self.page_form(rig, job)
        asks = {"questions": self.ASKED["questions"][::-1]}
        rig.stack.store.put(f"{job_folder(job)}review.json", json.dumps(asks).encode())
        answer = self.sent(rig, action, data=hidden | {"q1": "0", "q2": "0"})
        assert (answer.status_code, "text/html" in answer.headers["content-type"]) == (409, True)
        assert rig.stack.store.head(decision_key(job.inputs[0].ref.key)) is None

    def test_a_required_field_is_left_empty_by_nobodys_default(self, rig: ApiRig):
        asks = {"kind": "required", "text": "?", "chosen": None, "candidates": [{"value": "A"}, {"value": None}]}
        body = json.dumps({"questions": [asks | {"id": "q-a"}]}).encode()
        job = rig.job("a", state=State.REVIEW, files={"review.json": body})
        shown = rig.client.get(f"/review?job={job.job_id}", headers=HTML).text
        assert re.findall(r"<input type=\"radio\"[^>]* checked", shown) == []

    def test_a_column_that_was_chosen_for_a_required_field_is_not_answered_twice(self, rig: ApiRig):
        column: dict[str, Any] = {"kind": "column", "text": "?", "chosen": None, "candidates": [{"value": None}]}
        required = {"id": "q-r", "kind": "required", "text": "?", "candidates": [{"value": "B"}, {"value": None}]}
        asks = [required, column | {"id": "q-a", "column": "A"}, column | {"id": "q-b", "column": "B"}]
        job = rig.job("a", state=State.REVIEW, files={"review.json": json.dumps({"questions": asks}).encode()})
        action, hidden = self.page_form(rig, job)
        self.sent(rig, action, data=hidden | {"q1": "0", "q2": "0", "q3": "0"})
        written = json.loads(rig.stack.store.read(decision_key(job.inputs[0].ref.key), limit=10_000))
        assert written["answers"] == [{"id": "q-r", "value": "B"}, {"id": "q-a", "value": None}]

    def press(self, rig: ApiRig, shown: str, button: str, *ticked: str) -> Any:
        """Send the form of a page that has this button, as a browser would."""
        (form,) = [one for one in re.findall(r"<form.*?</form>", shown, re.DOTALL) if f">{button}</button>" in one]
        (action,) = re.findall(r'action="([^"]+)"', form)
        fields: dict[str, Any] = {
            name: html.unescape(value)
            for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
        }
        fields |= dict(re.findall(rf'<button[^>]* name="(\w+)" value="(\w+)"[^>]*>{button}<', form))
        return self.sent(rig, action, data=fields | ({"job": list(ticked)} if ticked else {}))

    def test_ticked_jobs_are_retried(self, rig: ApiRig):
        jobs = [rig.failed(name) for name in "abc"]
        done = rig.job("d", state=State.SUCCEEDED, ended_at=1.0)
        shown = rig.client.get("/jobs", headers=HTML).text
        told = self.press(rig, shown, "Retry", jobs[0].job_id, jobs[1].job_id, done.job_id).text
        assert ("2 jobs done, 1 skipped" in told, done.job_id in told) == (True, True)
        assert rig.stack.table.counts() == {State.QUEUED: 2, State.FAILED: 1, State.SUCCEEDED: 1}

    def test_all_that_match_are_asked_about_and_done_in_parts(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(job_routes, "ACTED_AT_ONCE", 2)
        for name in "abc":
            rig.failed(name)
        rig.failed("other", tenant="other")
        shown = rig.client.get("/jobs?tenant=acme", headers=HTML).text
        asked = self.press(rig, shown, "Retry all that match").text
        assert "Retry 3 jobs, all that match?" in asked
        assert rig.stack.table.counts() == {State.FAILED: 4}
        first = self.press(rig, asked, "Yes, retry").text
        assert "2 jobs done" in first
        last = self.press(rig, first, "Go on with the rest").text
        assert ("1 job done" in last, "Go on" in last) == (True, False)
        assert rig.stack.table.counts() == {State.QUEUED: 3, State.FAILED: 1}

    def test_nobody_acts_on_jobs_of_another_tenant(self, rig: ApiRig):
        job = rig.failed("a", tenant="other")
        mine = rig.from_afar(rig.token("operator", "acme"))
        given = {"act": "retry", "job": job.job_id}
        assert mine.post("/acts/jobs", data=given).status_code == 404
        everything = {"all": "retry", "filter": json.dumps({"tenant": "other"}), "sure": "yes"}
        assert mine.post("/acts/jobs", data=everything).status_code == 403
        assert rig.stack.table.get(job.job_id) == job

    def test_everything_is_paused_and_resumed(self, rig: ApiRig):
        asked = self.press(rig, rig.client.get("/", headers=HTML).text, "Pause everything").text
        assert rig.stack.table.pauses() == ()
        assert self.press(rig, asked, "Yes, pause").headers["location"] == "/"
        assert [pause.tenant for pause in rig.stack.table.pauses()] == [None]
        self.press(rig, rig.client.get("/", headers=HTML).text, "Resume")
        assert rig.stack.table.pauses() == ()

    def test_a_drop_leads_to_its_job(self, rig: ApiRig):
        given = {"tenant": "acme", "path": "", "manifest": json.dumps(MANIFEST)}
        answer = self.sent(rig, "/drop", data=given, files={"files": ("p.csv", b"Name,Age\nann,3\n")})
        (job,) = rig.client.get("/jobs").json()["jobs"]
        assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{job['job_id']}")

    def test_a_job_is_removed_once_that_was_confirmed(self, rig: ApiRig):
        job = rig.failed("a")
        asked = self.sent(rig, f"/jobs/{job.job_id}/act", data={"act": "remove"}).text
        assert self.press(rig, asked, "Yes, remove").headers["location"] == "/jobs"
        assert rig.stack.table.get(job.job_id) is None


def test_a_queue_that_does_not_answer_hides_nothing_else(rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
    rig.failed("a")

    def stats() -> QueueStats:
        raise StoreUnavailable("sqs://work did not answer stats")

    monkeypatch.setattr(rig.context.facade._queue, "_ask", stats)
    shown = rig.client.get("/", headers=HTML).text
    assert ("sqs://work did not answer" in shown, "FAILED" in shown) == (True, True)
    told = rig.client.get("/overview").json()
    assert (told["queue"], told["states"], bool(told["trouble"])) == (None, {"FAILED": 1}, True)
    assert 'ade_jobs{tenant="acme",state="FAILED"} 1' in rig.client.get("/metrics").text


class TestMemories:
    """What a workflow remembers, on the page of its senders."""

    KEY = "configs/acme/members.memory.json"
    PAGE = "/sender?tenant=acme&workflow=members"

    def learnt(self, rig: ApiRig) -> None:
        facts = [
            HeaderFact("Ort", "city", by="Ann", sender="north"),
            HeaderFact("Ort", "city", sender="south"),
            ShapeFact("north", "Roster", (3,), ("Ref", "Ort"), by="Ann"),
            ShapeFact("north", "Notes", (), (), by="Ann", left_out=True),
            ReadingFact("north", "Bezahlt", "month_first", by="Ann"),
        ]
        rig.stack.store.put(self.KEY, serialized(learn(Memory(), facts, at=datetime(2026, 1, 1, tzinfo=UTC))))

    def memory(self, rig: ApiRig) -> Memory:
        return parse_memory(rig.stack.store.read(self.KEY, limit=10_000))

    def test_everything_is_shown_in_words(self, rig: ApiRig):
        self.learnt(rig)
        shown = re.sub(r"<[^>]+>|\s+", " ", rig.client.get(self.PAGE, headers=HTML).text)
        shown = re.sub(r"\s+", " ", shown)
        for words in (
            "1 header, 2 tables, 1 reading remembered",
            "“Ort” is city 2 times, said by Ann",
            "Files in north/",
            "Sheet “Roster” has its header in row 3: Ref, Ort",
            "Sheet “Notes” is left out",
            "“Bezahlt” is read month before day",
        ):
            assert words in shown

    def test_a_sender_is_forgotten_by_a_form(self, rig: ApiRig):
        self.learnt(rig)
        shown = rig.client.get(self.PAGE, headers=HTML).text
        assert TestWithoutScripts().press(rig, shown, "Forget these").headers["location"] == self.PAGE
        left = self.memory(rig)
        assert (len(left.headers), left.shapes, left.readings) == (1, (), ())

    def test_a_header_is_forgotten_by_the_script(self, rig: ApiRig):
        self.learnt(rig)
        body = {"tenant": "acme", "workflow": "members", "header": "Ort"}
        assert rig.client.post("/memory/forget", json=body).json()["forgotten"] == 2  # the table that has it as well
        assert self.memory(rig).headers == ()

    @pytest.mark.parametrize("more", [{}, {"sender": "north", "tenant": "other"}])
    def test_nothing_is_forgotten_that_nobody_named_or_that_is_of_others(self, rig: ApiRig, more: dict[str, str]):
        self.learnt(rig)
        before = self.memory(rig)
        mine = rig.from_afar(rig.token("operator", "acme"))
        given = {"tenant": "acme", "workflow": "members"} | more
        for how in ({"json": given}, {"data": given}):
            assert mine.post("/memory/forget", **how).status_code in (400, 403)
        assert self.memory(rig) == before


def test_the_list_shows_and_filters_by_outcome(rig: ApiRig):
    findings = {"clean": {"error": 0}, "errors": {"error": 3}}
    for name, found in findings.items():
        rig.job(name, state=State.SUCCEEDED, started_at=NOW, ended_at=NOW + 1, summary={"findings": found})
    page = rig.client.get("/jobs?outcome=errors", headers=HTML).text
    assert "with errors" in page
    assert 'href="/jobs/acme-members-errors"' in page
    assert 'href="/jobs/acme-members-clean"' not in page


def test_a_filter_that_cannot_be_read_is_named_as_the_form_names_it(rig: ApiRig):
    page = html.unescape(rig.client.get("/jobs?created_from=soon", headers=HTML).text)
    assert "Dropped from: must be a date such as 2026-01-31" in page
    assert "Retry all that match" not in page


def test_an_error_page_speaks_of_pages_and_not_of_the_api(rig: ApiRig):
    page = rig.client.get("/jobs/none", headers=HTML).text
    assert "There is no job none." in page
    assert "GET /" not in page


def test_a_drop_uses_what_stands_unless_nothing_does(rig: ApiRig):
    rig.job("known", tenant="acme", state=State.SUCCEEDED, started_at=NOW, ended_at=NOW + 1)
    assert '"start_date"' in html.unescape(rig.client.get("/drop", headers=HTML).text)  # an example to begin with
    rig.stack.store.put("configs/acme/people/manifest.json", json.dumps(MANIFEST | {"subscribe": ["*.csv"]}).encode())
    page = html.unescape(rig.client.get("/drop", headers=HTML).text)
    assert '"start_date"' not in page
    assert '<option value="acme">' in page


def test_a_sender_reads_what_to_fix_in_their_language_and_nothing_of_the_engine(rig: ApiRig):
    shown, note = artifact("Pay"), {"code": "rows_total", "severity": "info", "message": "to keep: {}", "sheet": "Pay"}
    cell = {"code": "type_error", "entry": "email", "severity": "error", "message": "is no email", "cell": "B2"}
    shown["validation"]["findings"] = [note, {**cell, "sheet": "Pay", "field": "email"}]
    files = {"artifact.json": json.dumps(shown).encode(), "logs.txt": b"GET /"}
    job = rig.job("told", state=State.SUCCEEDED, ended_at=2.0, files=files)
    assert "to keep" in html.unescape(rig.client.get(f"/jobs/{job.job_id}", headers=HTML).text)
    sender, at = rig.from_afar(rig.token("sender", "acme")), f"/jobs/{job.job_id}"
    page = html.unescape(sender.get(at, headers=HTML | {"Accept-Language": "de"}).text)
    assert "Was zu korrigieren ist" in page
    assert "1 Zelle ist keine gültige E-Mail-Adresse." in page
    for words in ("to keep", "artifact.json", "Timeline", "/logs", "type_error", "data-post"):
        assert words not in page, words
    assert 'href="/">Ihre Dateien' in page
    rig.stack.store.put(f"{job_folder(job)}artifact.json", b'{"validation": 3}')
    assert sender.get(at, headers=HTML).status_code == 200
