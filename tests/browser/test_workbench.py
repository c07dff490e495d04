"""An author's path in a browser: samples, draft, form, clicks in the sheet, a test case, a draft, live."""

import json
import re
import time

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.conftest import SHOTS

pytestmark = pytest.mark.slow
HOSTILE = "<img src=x onerror=alert(1)>"
CSV = (
    f"Roster of {HOSTILE},,\n,,\nMember #,E-Mail,Gross {HOSTILE}\n"
    "M000001,ada@acme.example,12.50\nM000002,grace@acme.example,7\nM000003,alan@acme.example,3\n"
)
PATIENT = 180_000  # boxes beside a busy machine


def serious(page):
    found = [one for one in Axe().run(page).response["violations"] if one["impact"] in ("serious", "critical")]
    return [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found]


def shot(page, name):
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"workbench-{name}.png", full_page=True)


@pytest.mark.long  # seven boxes: more than CI has time for
def test_an_author_makes_samples_a_live_workflow(visit, console, tmp_path):
    sample = tmp_path / "roster.csv"
    sample.write_text(CSV)
    page = visit("/bench", scope="operator,values")
    page.set_default_timeout(PATIENT)
    page.set_input_files("#files", sample)
    page.get_by_label("for one:").check()
    page.get_by_label("tenant", exact=True).fill("acme")
    page.get_by_label("Name").fill("roster")
    page.get_by_role("button", name="Draft a manifest").click()
    expect(page.locator("table.fields")).to_contain_text("e_mail", timeout=PATIENT)
    expect(page.locator("#preview")).to_contain_text("grace@acme.example", timeout=PATIENT)
    shot(page, "begun")
    assert serious(page) == []

    page.locator("table.fields a", has_text="member").click()
    page.locator("#field [name=required]").check()
    expect(page.locator("table.fields tr.here")).to_contain_text("required", timeout=PATIENT)
    expect(page.locator("#preview.working")).to_have_count(0, timeout=PATIENT)
    page.get_by_role("button", name="C", exact=True).click()
    page.locator("#sheet-1-column select").select_option("")
    page.locator("#sheet-1-column button").click()
    expect(page.locator("table.fields tr")).to_have_count(5, timeout=PATIENT)
    expect(page.locator("#preview.working")).to_have_count(0, timeout=PATIENT)
    page.get_by_role("button", name="3", exact=True).click()
    expect(page.locator('[name="reading.header_rows"]')).to_have_value("3", timeout=PATIENT)
    page.locator("nav.tabs").get_by_role("link", name="JSON").click()
    text = page.locator("#manifest").input_value()
    manifest = json.loads(text)
    assert manifest["reading"] == {"header_rows": [3]}
    assert manifest["fields"][-1]["synonyms"] == [f"Gross {HOSTILE}"]
    manifest["fields"].pop()
    page.locator("#manifest").fill(json.dumps(manifest))
    expect(page.locator("#problems")).to_contain_text("is valid", timeout=PATIENT)
    page.get_by_role("button", name="Use this").click()
    expect(page.locator("#said")).to_contain_text("Changed", timeout=PATIENT)
    expect(page.locator("#preview.working")).to_have_count(0, timeout=PATIENT)
    shot(page, "json")
    assert serious(page) == []

    page.locator("nav.tabs").get_by_role("link", name="Tests").click()
    page.get_by_role("button", name="Run it").click()
    expect(page.locator("main")).to_contain_text("ada@acme.example", timeout=PATIENT)
    page.get_by_role("button", name="I have read it").click()
    expect(page.locator("main")).to_contain_text("expects this from now on", timeout=PATIENT)
    shot(page, "tests")
    assert serious(page) == []

    page.locator("nav.tabs").get_by_role("link", name="Save").click()
    page.get_by_label("Files that it takes").fill("roster/*.csv")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("saved as a draft")
    bucket = console.ade.bucket / "configs" / "acme" / "roster"
    assert not (bucket / "manifest.json").exists()
    page.get_by_role("button", name="Make the draft live").click()
    expect(page.locator("main")).to_contain_text("roster is live")
    assert json.loads((bucket / "manifest.json").read_text())["subscribe"] == ["roster/*.csv"]
    assert (bucket / "tests" / "roster" / "expected.csv").exists()
    shot(page, "save")
    assert serious(page) == []
    assert not page.locator("img").count()


def test_without_scripts_the_manifest_is_edited_by_forms(visit, console):
    key = "configs/acme/plain/manifest.json"
    place = console.ade.bucket / key
    place.parent.mkdir(parents=True)
    manifest = {"manifest": 1, "name": "plain", "subscribe": ["plain/*.csv"], "fields": [{"name": "id"}]}
    place.write_text(json.dumps(manifest))
    page = visit("/bench", scope="author", tenant="acme", java_script_enabled=False)
    page.get_by_role("button", name="Open plain").click()
    page.get_by_role("textbox", name="New field").fill("age")
    page.get_by_label("type of the new field").select_option("integer")
    page.get_by_role("button", name="Add", exact=True).click()
    page.locator("#field [name=min]").fill("18")
    page.locator("#field [name=unique]").check()
    page.get_by_role("button", name="Save the field").click()
    page.locator("nav.tabs").get_by_role("link", name="Save").click()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("main")).to_contain_text(re.compile("saved as a draft"))
    draft = json.loads((place.parent / ".draft" / "manifest.json").read_text())
    assert draft["fields"] == [{"name": "id"}, {"name": "age", "type": "integer", "min": 18, "unique": True}]


@pytest.mark.long
def test_an_author_replays_real_jobs_with_a_draft_and_makes_it_live(visit, console):
    """What the draft changes is seen on the files that came, before it is live: with scripts to start, without to end."""
    place = console.ade.bucket / "configs" / "acme" / "pay"
    place.mkdir(parents=True)
    fields = [{"name": "id"}, {"name": "pay", "type": "money"}]
    manifest = {"manifest": 1, "name": "pay", "subscribe": ["pay/*.csv"], "fields": fields}
    (place / "manifest.json").write_text(json.dumps(manifest))
    inbox = console.ade.bucket / "inbox" / "acme" / "pay"
    inbox.mkdir(parents=True)
    (inbox / "may.csv").write_text("Id,Pay\nA1,5\nA2,900\n")
    (inbox / "june.csv").write_text("Id,Pay\nA1,5\nA2,6\n")
    for _ in range(600):
        jobs = console.call("GET", "/jobs", params={"tenant": "acme", "workflow": "pay", "state": "SUCCEEDED"}).json()
        if len(jobs["jobs"]) == 2:
            break
        time.sleep(0.2)
    kept = {key: key.read_bytes() for key in console.ade.bucket.rglob("outputs/acme/pay/*/pay/*/normalized.xlsx")}
    assert len(kept) == 2

    page = visit("/bench", scope="author", tenant="acme")
    page.set_default_timeout(PATIENT)
    page.get_by_role("button", name="Open pay").click()
    page.locator("table.fields a", has_text="pay").click()
    page.locator("#field [name=max]").fill("100")
    page.get_by_role("button", name="Save the field").click()
    page.locator("nav.tabs").get_by_role("link", name="Save").click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("saved as a draft")
    page.get_by_role("button", name="Replay", exact=True).click()
    expect(page.locator("#replay-state")).to_contain_text("2 jobs: 1 the same, 1 differs", timeout=PATIENT)
    expect(page.get_by_role("region", name="what differs")).to_contain_text("pay/may.csv")
    shot(page, "replay")
    assert serious(page) == []
    assert {key: key.read_bytes() for key in kept} == kept

    bench = page.url.partition("/replay")[0]
    plain = visit(f"{bench}?tab=save", scope="author", tenant="acme", java_script_enabled=False)
    plain.get_by_role("button", name="Make the draft live").click()
    expect(plain.locator("main")).to_contain_text("pay is live")
    plain.get_by_role("button", name="Go back to this").click()
    expect(plain.locator("main")).to_contain_text("pay is live")
    assert "max" not in (place / "manifest.json").read_text()
