"""The workbench: whose it is, what its forms change, and how it is saved."""

import json
import re

import pytest

from console.benches import EXPIRY_SECONDS, BenchChanged, Benches, BenchFacts
from console.erasure import ErasureReport, _remove_files, _search
from console.library import DRAFTED, LIVE, Library
from console.web.bench_runs import _columns_out
from core.drops import make_workflow
from core.errors import ManifestInvalid
from core.keys import is_private
from core.manifests import Manifest
from core.ports import ObjectInfo
from infra.clocks import HandClock
from tests.support.console import ApiRig

HTML = {"Accept": "text/html"}
HOSTILE = '"><img src=x onerror=alert(1)>'
MANIFEST = {
    "manifest": 1,
    "name": "people",
    "reading": {"encoding": "utf-8"},
    "fields": [{"name": "name", "number_format": "@"}, {"name": "age", "type": "integer"}],
}
LIVE_KEY, DRAFT_KEY = "configs/acme/people/manifest.json", "configs/acme/people/.draft/manifest.json"


@pytest.fixture
def benches(rig: ApiRig) -> Benches:
    return Benches(rig.stack.store, rig.stack.clock)


def begun(benches: Benches, owner="acme", manifest=None, samples=()):
    facts = BenchFacts(created_at=1.0, manifest=manifest or MANIFEST)
    return benches.new(owner, facts, dict(samples))


def at(bench, more=""):
    return f"/bench/{bench.owner}/{bench.id}{more}"


def change(rig: ApiRig, bench, act, **form):
    return rig.client.post(at(bench), data={"version": bench.version, "act": act, **form}, headers=HTML)


def now(benches: Benches, bench):
    return benches.find(bench.owner, bench.id)


class TestWho:
    @pytest.mark.parametrize(
        ("scope", "tenant", "status"),
        [
            ("author", "acme", 200),
            ("author", None, 200),
            ("operator", None, 200),
            ("author", "other", 404),
            ("operator", "other", 404),
            ("sender", "acme", 403),
            ("reader", None, 403),
            ("reviewer", None, 403),
        ],
    )
    def test_a_bench_is_for_authors_of_its_tenant(self, rig: ApiRig, benches, scope, tenant, status):
        bench = begun(benches)
        who = rig.from_afar(rig.token(scope, tenant), **HTML)
        assert who.get(at(bench)).status_code == status
        form = {"version": bench.version, "act": "new_field", "name": "x"}
        assert who.post(at(bench), data=form, follow_redirects=False).status_code == (303 if status == 200 else status)
        for step in ("/save", "/promote", "/replay", "/cases", "/remove"):
            if status != 200:
                assert who.post(at(bench, step), data={}).status_code == status

    def test_a_shared_bench_is_for_those_of_no_tenant(self, rig: ApiRig, benches):
        bench = begun(benches, "_shared")
        mine = rig.from_afar(rig.token("author", "acme"), **HTML)
        assert mine.get(at(bench)).status_code == 404
        assert "several tenants" not in mine.get("/bench").text
        everybody = rig.from_afar(rig.token("author"), **HTML)
        assert everybody.get(at(bench)).status_code == 200

    def test_nobody_opens_the_workflow_of_another_tenant_or_a_shared_one(self, rig: ApiRig):
        for owner, more in (("acme", {}), ("_shared", {"tenants": ["*"]})):
            key = f"configs/{owner}/people/manifest.json"
            rig.stack.store.put(key, json.dumps(MANIFEST | {"subscribe": ["*.csv"]} | more).encode())
            other = rig.from_afar(rig.token("author", "other"), **HTML)
            assert other.post("/bench/open", data={"key": key}).status_code == 404
            assert "people" not in other.get("/bench").text

    def test_a_sample_of_another_tenant_is_never_begun_for_it(self, rig: ApiRig):
        mine = rig.from_afar(rig.token("author", "acme"), **HTML)
        given = {"files": [("files", ("a.csv", b"a\n1\n"))]}
        for form in ({"tenant": "other"}, {"for": "shared"}, {"tenant": "../acme"}, {"tenant": ""}):
            assert mine.post("/bench", data=form, **given).status_code in (404, 422)
        assert not list(rig.stack.store.keys("access/benches/"))

    def test_a_page_of_another_site_changes_nothing(self, rig: ApiRig, benches):
        bench = begun(benches)
        form = {"version": bench.version, "act": "new_field", "name": "x"}
        answer = rig.client.post(at(bench), data=form, headers={"Origin": "https://evil.example"})
        assert answer.status_code == 403
        assert now(benches, bench).version == bench.version


class TestForms:
    def test_form_and_json_edit_one_manifest(self, rig: ApiRig, benches):
        bench = begun(benches)
        change(rig, bench, "field", at="1", do="save", flags="yes", required="yes", type="integer", name="age", min="0")
        bench = now(benches, bench)
        assert bench.fields[1] == {"name": "age", "type": "integer", "required": True, "min": 0}
        form = rig.client.get(at(bench, "?field=1"), headers=HTML).text
        assert 'name="min" value="0"' in form
        assert '<details class="fold"><summary>More about its values' in form
        clean = begun(benches, manifest=MANIFEST | {"fields": [{"name": "x", "clean": ["strip"]}]})
        assert '<details class="fold" open><summary>More' in rig.client.get(at(clean, "?field=0"), headers=HTML).text
        shown = rig.client.get(at(bench, "?tab=json"), headers=HTML).text
        assert "&#34;min&#34;: 0" in shown
        text = bench.body.decode().replace('"age"', '"years"')
        change(rig, bench, "json", manifest=text)
        bench = now(benches, bench)
        assert ">years</a>" in rig.client.get(at(bench), headers=HTML).text
        assert bench.fields[0]["number_format"] == "@"
        assert bench.facts.manifest["reading"] == {"encoding": "utf-8"}

    def test_json_that_is_none_is_shown_again_and_not_stored(self, rig: ApiRig, benches):
        bench = begun(benches)
        for text in ("{", "[]", '{"fields": [1]}', '{"fields": {}}', '{"a": 1, "a": 2}', "{" * 5000):
            answer = rig.client.post(
                at(bench, "?tab=json"), data={"version": bench.version, "act": "json", "manifest": text}, headers=HTML
            )
            assert answer.status_code == 422, text[:20]
            assert text[:20].replace('"', "&#34;") in answer.text
        assert now(benches, bench).version == bench.version

    def test_a_manifest_that_cannot_be_used_is_kept_and_its_problems_are_named(self, rig: ApiRig, benches):
        bench = begun(benches)
        change(rig, bench, "field", at="0", do="save", type="enum")
        shown = rig.client.get(at(bench, "?preview=yes"), headers=HTML).text
        assert "$.fields[0].allowed" in shown
        assert "The manifest has problems" in shown

    def test_a_form_of_an_older_bench_changes_nothing_and_is_not_lost(self, rig: ApiRig, benches):
        bench = begun(benches)
        change(rig, bench, "new_field", name="first")
        answer = change(rig, bench, "new_field", name="second_one")
        assert answer.status_code == 409
        assert "second_one" in answer.text
        assert [one["name"] for one in now(benches, bench).fields] == ["name", "age", "first"]
        with pytest.raises(BenchChanged):
            benches.change(bench, notes=("late",))

    def test_clicks_write_the_line_that_settles_it(self, rig: ApiRig, benches):
        bench = begun(benches)
        change(rig, bench, "header_row", row="3")
        bench = now(benches, bench)
        change(rig, bench, "range", sheet="S", range="a3:c9", open="yes")
        bench = now(benches, bench)
        change(rig, bench, "column", header="Alter", field="age")
        bench = now(benches, bench)
        assert bench.facts.manifest["reading"] == {
            "encoding": "utf-8",
            "header_rows": [3],
            "tables": [{"sheet": "S", "ranges": ["A3:C1048576"]}],
        }
        assert bench.fields[1]["synonyms"] == ["Alter"]
        for act, form in (
            ("header_row", {"row": "x"}),
            ("range", {"range": "A"}),
            ("column", {}),
            ("field", {"at": "9"}),
        ):
            assert change(rig, bench, act, **form).status_code == 422

    def test_names_of_senders_are_text_on_every_tab(self, rig: ApiRig, benches, tmp_path):
        file = tmp_path / "x"
        file.write_bytes(b"a\n1\n")
        hostile = {
            **MANIFEST,
            "name": HOSTILE,
            "fields": [{"name": HOSTILE, "synonyms": [HOSTILE]}],
            "rules": [HOSTILE],
        }
        bench = begun(benches, manifest=hostile, samples={f"{HOSTILE}.csv".replace("/", ""): file})
        for tab in ("fields&field=0", "json", "cases", "save"):
            text = rig.client.get(at(bench, f"?tab={tab}"), headers=HTML).text
            assert "<img" not in text
            assert "onerror=alert(1)&gt;" in text or tab != "fields&field=0"
        assert "<img" not in rig.client.get("/bench", headers=HTML).text


class TestSaving:
    def save(self, rig: ApiRig, bench, **form):
        return rig.client.post(at(bench, "/save"), data={"subscribe": "people/**/*.csv"} | form, headers=HTML)

    def test_a_draft_takes_no_files_and_is_promoted(self, rig: ApiRig, benches):
        bench = begun(benches)
        assert self.save(rig, bench, **{"as": "draft"}).status_code == 200
        store, library = rig.stack.store, Library(rig.stack.store)
        assert store.head(LIVE_KEY) is None
        assert not library.find("people", "acme").is_live
        page = rig.client.post(at(bench, "/promote"), data={"live": ""}, headers=HTML)
        assert page.status_code == 200, page.text
        standing = library.find("people", "acme")
        assert standing.is_live
        assert library.load(standing, LIVE).id == library.load(standing, DRAFTED).id
        assert json.loads(store.read(LIVE_KEY, limit=9999))["subscribe"] == ["people/**/*.csv"]

    def test_a_shared_workflow_names_its_tenants(self, rig: ApiRig, benches):
        bench = begun(benches, "_shared")
        assert self.save(rig, bench, **{"as": "live", "tenants": "acme\nnorth-*"}).status_code == 200
        live = json.loads(rig.stack.store.read("configs/_shared/people/manifest.json", limit=9999))
        assert live["tenants"] == ["acme", "north-*"]

    def test_a_manifest_that_cannot_stand_there_is_refused(self, rig: ApiRig, benches):
        bench = begun(benches)
        for form in ({"subscribe": ""}, {"subscribe": "../x"}):
            assert self.save(rig, bench, **form).status_code == 422
        stolen = {**MANIFEST, "inputs": {"auxiliary": [{"name": "p", "path": "configs/other/plans.csv"}]}}
        assert self.save(rig, begun(benches, manifest=stolen)).status_code == 422
        assert not list(rig.stack.store.keys("configs/"))

    def test_what_somebody_else_saved_is_not_replaced(self, rig: ApiRig, benches):
        first, second = begun(benches), begun(benches)
        assert self.save(rig, first, **{"as": "live"}).status_code == 200
        assert self.save(rig, second, **{"as": "live"}).status_code == 409
        body = rig.stack.store.read(LIVE_KEY, limit=9999)
        rig.stack.store.put(LIVE_KEY, body.replace(b'"age"', b'"years"'))
        first = now(benches, first)
        change(rig, first, "new_field", name="mine")
        answer = self.save(rig, first, **{"as": "live"})
        assert answer.status_code == 409
        assert "changed by somebody else" in answer.text
        assert b'"years"' in rig.stack.store.read(LIVE_KEY, limit=9999)
        assert "mine" in rig.client.get(at(first), headers=HTML).text, "the author's own change is still there"

    def test_a_save_that_died_after_its_draft_goes_on(self, rig: ApiRig, benches, monkeypatch):
        bench = begun(benches)
        monkeypatch.setattr(Library, "promote", lambda *_: (_ for _ in ()).throw(OSError("died")))
        assert self.save(rig, bench, **{"as": "live"}).status_code == 500
        monkeypatch.undo()
        assert self.save(rig, bench, **{"as": "live"}).status_code == 200
        assert rig.stack.store.head(LIVE_KEY) is not None

    def test_a_promotion_of_what_nobody_saw_is_refused_and_one_can_go_back(self, rig: ApiRig, benches):
        bench = begun(benches)
        self.save(rig, bench, **{"as": "live"})
        before = Library(rig.stack.store)
        first = before.load(before.find("people", "acme"), LIVE).id
        change(rig, now(benches, bench), "new_field", name="more")
        self.save(rig, bench, **{"as": "draft"})
        stale = rig.client.post(at(bench, "/promote"), data={"live": "0123456789abcdef"}, headers=HTML)
        assert stale.status_code == 409
        assert rig.client.post(at(bench, "/promote"), data={"live": first}, headers=HTML).status_code == 200
        live = before.load(before.find("people", "acme"), LIVE).id
        assert live != first
        back = rig.client.post(at(bench, "/promote"), data={"live": live, "version_id": first}, headers=HTML)
        assert back.status_code == 200
        assert before.load(before.find("people", "acme"), LIVE).id == first

    def test_config_and_cases_of_a_workflow_come_along(self, rig: ApiRig, benches):
        store = rig.stack.store
        store.put(LIVE_KEY, json.dumps(MANIFEST | {"subscribe": ["*.csv"], "config": "./config"}).encode())
        store.put("configs/acme/people/config/columns/name.py", b"x = 1\n")
        store.put("configs/acme/people/tests/one/input.csv", b"name\nann\n")
        store.put("configs/acme/people/tests/one/expected.json", b"{}")
        opened = rig.client.post("/bench/open", data={"key": LIVE_KEY}, headers=HTML)
        bench = benches.find("acme", str(opened.url).rpartition("/")[2])
        assert set(benches.cases(bench)) == {"one/input.csv", "one/expected.json"}
        rig.client.post(at(bench, "/cases"), data={"do": "remove", "case": "one"}, headers=HTML)
        assert self.save(rig, bench, **{"as": "draft"}).status_code == 200
        assert store.head("configs/acme/people/.draft/config/columns/name.py") is not None
        assert store.head("configs/acme/people/tests/one/input.csv") is None

    def test_a_replay_without_history_says_so(self, rig: ApiRig, benches):
        bench = begun(benches)
        assert rig.client.post(at(bench, "/replay"), data={}, headers=HTML).status_code == 422
        self.save(rig, bench, **{"as": "live"})
        answer = rig.client.post(at(bench, "/replay"), data={"days": "7"}, headers=HTML)
        assert "No file came" in answer.text

    def test_a_case_is_not_accepted_without_the_scope_to_read_it(self, rig: ApiRig, benches, tmp_path):
        bench = begun(benches)
        author = rig.from_afar(rig.token("author", "acme"), **HTML)
        form = {"do": "accept", "case": "x", "sample": "0", "digest": "0"}
        assert author.post(at(bench, "/cases"), data=form).status_code == 403
        sample = tmp_path / "a.csv"
        sample.write_bytes(b"name\n")
        bench = begun(benches, samples={"a.csv": sample})
        assert "that takes the scope" in author.get(at(bench, "?tab=cases")).text
        assert "Make a case" not in author.get(at(bench, "?tab=cases")).text
        assert "Make a case" in rig.client.get(at(bench, "?tab=cases"), headers=HTML).text


def test_who_sees_no_values_reads_the_headers_of_what_comes_out():
    columns = [{"column": "A", "header": "id", "field": None}, {"column": "B", "header": "Plan", "field": "plan"}]
    assert _columns_out({"output": {"columns": columns}}) == ["id", "Plan"]
    assert _columns_out({"output": {"columns": [3]}}) == []


def test_shared_cases_are_nobodys_lookups():
    """They hold cells of some sender."""
    for name in ("input.csv", "input/a.xlsx", "expected.csv", "expected-rate=1.json"):
        key = f"configs/_shared/people/tests/one/{name}"
        assert is_private(key)
        manifest = Manifest.model_validate(
            MANIFEST | {"inputs": {"auxiliary": [{"name": "p", "path": key}]}, "subscribe": ["*.csv"]}
        )
        with pytest.raises(ManifestInvalid):
            make_workflow(manifest, ObjectInfo(key=LIVE_KEY, version="", digest="", size=0, modified=0.0))
    assert not is_private("configs/_shared/people/tests/readme.csv")


def test_benches_expire_and_are_erased_with_their_tenant(rig: ApiRig, tmp_path):
    file = tmp_path / "x"
    file.write_bytes(b"a\n1\n")
    clock = HandClock(rig.stack.clock.now())
    benches = Benches(rig.stack.store, clock)
    bench, other = begun(benches, samples={"a.csv": file}), begun(benches, "other")
    report = ErasureReport("acme")
    _remove_files(rig.stack, "acme", set(), report)
    _search(rig.stack, "acme", set(), report)
    assert (report.erased["access/benches"], report.found) == (2, [])
    assert not list(rig.stack.store.keys(bench.folder))
    clock.move(EXPIRY_SECONDS + 60)
    benches.tidy()
    assert not list(rig.stack.store.keys(other.folder))


def test_a_bench_takes_spreadsheets_and_no_more_than_it_says(rig: ApiRig, benches, tmp_path):
    for name in ("a.exe", "manifest.json", ".hidden.csv", "a.csv.tmp"):
        answer = rig.client.post(
            "/bench", data={"tenant": "acme", "for": "tenant"}, files=[("files", (name, b"a\n"))], headers=HTML
        )
        assert answer.status_code == 422, name
        assert re.search("not a spreadsheet", answer.text)
    files = [("files", (f"{n}.csv", b"a\n")) for n in range(11)]
    assert rig.client.post("/bench", data={"tenant": "acme"}, files=files, headers=HTML).status_code == 400
