"""Home, the list of senders and a sender's page: what they show to whom, and how a matter is resolved."""

import html
import re

import pytest

from core.ends import DAY
from core.jobs import Job, JobError, State, move
from core.verdicts import Verdict
from tests.contract.jobs import a_job
from tests.support.console import ApiRig

HTML = {"Accept": "text/html"}
EVIL = "<script>alert(1)</script>\u202e"


def drop(rig: ApiRig, name: str, *, ago: float = 0.0, rows: int = 100, wrong: int = 0, **more) -> Job:
    """A job that ended as a runner ends it."""
    at = rig.stack.clock.now() - ago
    summary = {"rows_out": rows, "rows_with_errors": wrong, "drift": more.pop("drift", 0)}
    made = a_job(name, state=State.PUBLISHING, created_at=at, updated_at=at, history=(("QUEUED", at),), **more)
    job, _ = rig.stack.table.add(made)
    done = rig.stack.table.replace(job, move(job, State.SUCCEEDED, now=at, ended_at=at, summary=summary))
    assert done is not None
    return done


def shown(rig: ApiRig, path: str, client=None) -> str:
    answer = (client or rig.client).get(path, headers=HTML)
    assert answer.status_code == 200, path
    return answer.text


def texts(page: str) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", page)))


def test_home_lists_what_needs_attention_with_its_next_step(rig: ApiRig):
    at = rig.stack.clock.now()
    job = rig.failed("bad", created_at=at)
    drop(rig, "worse", tenant="north", wrong=40)
    page = shown(rig, "/")
    assert f'<a class="step" href="/jobs/{job.job_id}">See why</a>' in page
    assert "40.0% of rows have errors" in texts(page)
    assert 'href="/sender?tenant=north&amp;workflow=members"' in page
    assert texts(page).index("bad.csv failed") < texts(page).index("40.0% of rows")


def test_a_matter_is_resolved_with_a_note_once_and_comes_back(rig: ApiRig):
    at = rig.stack.clock.now()
    rig.failed("a", created_at=at)
    (matter,) = rig.client.get("/attention").json()["matters"]
    body = {"what": matter["what"], "until": matter["happened"], "note": "asked them\u202e"}
    assert rig.client.post("/attention/resolve", json=body).json()["resolved"]["by"] == "local"
    assert rig.client.get("/attention").json()["matters"] == []
    assert rig.client.post("/attention/resolve", json=body).status_code == 404  # it is off the list
    entry = rig.context.actions.latest(1)[0]
    assert (entry["act"], entry["what"], entry["tenant"]) == ("resolve", matter["what"], "acme")
    assert rig.client.get("/attention/resolved").json()["resolutions"][0]["note"] == "asked them\u202e"
    error = JobError(verdict=Verdict.RULE_ERROR, message="it broke")
    rig.job("b", state=State.FAILED, error=error, created_at=at, ended_at=at)
    rig.context.facade.forget_matters()  # or the answer of a moment ago would be shown
    (back,) = rig.client.get("/attention").json()["matters"]
    assert (back["what"], back["happened"]) == (matter["what"], at)


def test_a_matter_resolved_by_the_form_of_the_page_is_gone(rig: ApiRig):
    rig.failed("a", created_at=rig.stack.clock.now())
    page = shown(rig, "/")
    fields = dict(re.findall(r'<input type="hidden" name="(what|until)" value="([^"]+)"', page))
    data = {name: html.unescape(value) for name, value in fields.items()} | {"note": "seen"}
    headers = HTML | {"Origin": "http://127.0.0.1"}
    answer = rig.client.post("/acts/resolve", data=data, headers=headers, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "Needs attention" in shown(rig, "/")
    assert "See why" not in shown(rig, "/")


@pytest.mark.parametrize("scope", ["reader", "reviewer", "sender"])
def test_whoever_may_not_act_resolves_nothing(rig: ApiRig, scope: str):
    rig.failed("a", created_at=rig.stack.clock.now())
    (matter,) = rig.client.get("/attention").json()["matters"]
    client = rig.from_afar(rig.token(scope, "acme"))
    body = {"what": matter["what"], "until": matter["happened"]}
    assert client.post("/attention/resolve", json=body).status_code == 403
    assert "Mark as resolved" not in shown(rig, "/", client)
    assert rig.stack.table.resolutions() == ()


def test_nobody_sees_or_resolves_what_is_of_another_tenant(rig: ApiRig):
    rig.failed("secret", tenant="umbrella", created_at=rig.stack.clock.now())
    drop(rig, "hidden", tenant="umbrella", wrong=50)
    (matter, *_) = rig.client.get("/attention").json()["matters"]
    other = rig.from_afar(rig.token("operator", "acme"))
    for path in ("/", "/senders", "/senders?text=umbrella"):
        assert "umbrella /" not in shown(rig, path, other), path
    assert other.get("/sender?tenant=umbrella&workflow=members", headers=HTML).status_code == 404
    assert other.get("/?tenant=umbrella", headers=HTML).status_code == 403
    assert other.get("/attention?tenant=umbrella").status_code == 403
    body = {"what": matter["what"], "until": matter["happened"]}
    assert other.post("/attention/resolve", json=body).status_code == 404
    assert rig.stack.table.resolutions() == ()


def test_a_case_that_has_not_happened_cannot_be_resolved(rig: ApiRig):
    rig.failed("a", created_at=rig.stack.clock.now())
    (matter,) = rig.client.get("/attention").json()["matters"]
    ahead = {"what": matter["what"], "until": matter["happened"] + 86400}
    assert rig.client.post("/attention/resolve", json=ahead).status_code == 409


def test_charts_have_axes_a_range_and_tooltips(rig: ApiRig):
    drop(rig, "a", wrong=10)
    for name, bars in (("hour", 12), ("day", 24), ("week", 28)):
        page = shown(rig, f"/?range={name}")
        assert f'<a href="/?range={name}" aria-current="true">' in page
        assert page.count("<title>") - 1 == 4 * bars
        assert "1 file, 0 failed" in texts(page)
        assert "10.0% of 100 rows" in texts(page)
    assert shown(rig, "/?range=%3Cscript%3E").count('aria-current="true"') == 1


class TestTheList:
    @pytest.fixture
    def many(self, rig: ApiRig) -> ApiRig:
        for n in range(60):
            drop(rig, "f", tenant=f"t{n:02d}", wrong=n // 2)
        drop(rig, "g", tenant="zebra", workflow="odd one", drift=3)
        return rig

    def names(self, page: str) -> list[str]:
        return re.findall(r'<td class="file"><a [^>]*>([^<]+)</a>', page)

    def test_worst_first_fifty_a_page(self, many: ApiRig):
        page = shown(many, "/senders")
        names = self.names(page)
        assert (len(names), names[0], names[1]) == (50, "t59 / members", "t58 / members")
        (following,) = re.findall(r'<a href="([^"]+)" rel="next"', page)
        rest = self.names(shown(many, html.unescape(following)))
        assert (len(rest), set(rest) & set(names)) == (11, set())

    def test_search_filter_and_sort(self, many: ApiRig):
        assert self.names(shown(many, "/senders?text=ZEB")) == ["zebra / odd one"]
        assert self.names(shown(many, "/senders?show=drift")) == ["zebra / odd one"]
        assert len(self.names(shown(many, "/senders?show=errors"))) == 40
        assert self.names(shown(many, "/senders?sort=name"))[0] == "t00 / members"

    @pytest.mark.parametrize(
        "query", ["start=999999", "start=-1", "start=x", "sort=%00", "show=%3C", "text=%F0", "tenant=t01"]
    )
    def test_any_address_shows_a_list(self, many: ApiRig, query: str):
        assert many.client.get(f"/senders?{query}", headers=HTML).status_code in (200, 400)


def test_a_senders_page_has_its_drops_rhythm_memory_and_overlay(rig: ApiRig):
    for n in range(1, 6):
        drop(rig, f"week{n}", ago=n * 4 * DAY, wrong=n, drift=2 if n == 1 else 0)
    rig.stack.store.put("configs/acme/members.overlay.json", f'{{"overlay": 1, "x": "{EVIL}"}}'.encode())
    page = shown(rig, "/sender?tenant=acme&workflow=members")
    for words in ("week1.csv", "differs from the file before it in 2 places", "by its own rhythm of 4d0h", "Overlay"):
        assert words in texts(page), words
    assert "<script>alert" not in page
    assert rig.client.get("/sender?tenant=acme&workflow=nothing", headers=HTML).status_code == 404
    assert rig.client.get("/sender", headers=HTML).status_code == 404
