"""The console in a real browser, over a real `ade up` that asks everybody for a token."""

import json
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.conftest import CSV, MANIFEST, SHOTS

pytestmark = pytest.mark.slow
DRAG = """([zone, name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, {type: "text/csv"}));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    zone.dispatchEvent(new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}));
  }
}"""
WEIGHT = """() => ["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind))
  .reduce((sum, one) => sum + one.decodedBodySize, 0)"""
HEAVIEST = 200 * 1024
UNFOLD = "(one) => { one.open = true; }"


def drag_in(page, name: str, text: str = CSV) -> None:
    page.evaluate(DRAG, [page.locator("#zone").element_handle(), name, text])
    expect(page.locator("#chosen")).to_contain_text(name)


def test_a_file_dragged_in_is_followed_to_its_end_and_explained(visit):
    page = visit("/drop")
    drag_in(page, "dragged.csv")
    page.get_by_label("Tenant").fill("acme")
    page.locator("#drop details").evaluate(UNFOLD)
    page.locator("#manifest").fill('{"manifest": 1, "nane": "x"}')
    expect(page.locator("#problems")).to_contain_text("nane")
    page.locator("#manifest").fill(json.dumps(MANIFEST))
    expect(page.locator("#problems")).to_contain_text("valid")
    page.get_by_role("button", name="Drop", exact=True).click()
    page.wait_for_url("**/jobs/acme-members-*")
    expect(page.locator("#live-head .state")).to_contain_text("SUCCEEDED", timeout=60_000)  # without a reload
    grid = page.locator("table.grid")
    expect(grid.locator(".k-header", has_text="E-Mail").locator(".became")).to_have_text("email")
    expect(grid).to_contain_text("total, left out")
    expect(page.locator("#live-explanation")).to_contain_text("gross_pay")
    expect(page.locator(".fixes")).to_contain_text("“E-Mail”")

    findings = page.locator("#findings tbody tr")
    everything = findings.count()
    page.locator("#findings > summary").click()
    page.get_by_label("Kind").select_option("type_error")
    page.evaluate("document.activeElement.blur(), document.querySelector('#live-explanation').append('old'), refresh()")
    expect(page.get_by_label("Kind")).to_have_value("type_error")  # a choice outlives what is drawn again
    page.locator("#findings").get_by_role("button", name="Filter").click()
    page.wait_for_url("**code=type_error**")
    expect(findings).to_have_count(1)
    expect(findings).to_contain_text("B5")
    assert everything > 1
    page.locator("table.grid a.hit").first.click()
    page.wait_for_url("**column=A&severity=error**")
    expect(findings).to_contain_text("A7")


def test_the_mapping_can_be_seen_before_anything_runs(visit, console):
    page = visit("/drop", scope="sender", tenant="initech")
    drag_in(page, "looked.csv")
    page.locator("#drop details").evaluate(UNFOLD)
    page.locator("#manifest").fill(json.dumps(MANIFEST | {"name": "unrun"}))
    page.get_by_role("button", name="Preview the mapping").click()
    expect(page.locator("#preview")).to_contain_text("It would write", timeout=60_000)
    expect(page.locator("#preview")).to_contain_text("member_id")
    assert console.call("GET", "/jobs?workflow=unrun").json()["jobs"] == []


def test_an_answered_review_lets_the_next_file_pass(visit, console):
    fields = [{"name": "member_id", "synonyms": ["member #"]}, {"name": "street", "required": True}]
    asks = {"name": "asked", "mapping": {"review": "unsure"}, "fields": fields}
    text = "Member #,Qxz\nM000001,12 High St\nM000002,3 Low Rd\n"
    first = console.drop("asked-1.csv", text, **asks)
    assert console.await_state(first, "REVIEW", "SUCCEEDED", "FAILED") == "REVIEW"
    page = visit(f"/review?job={first}")
    question = page.locator("[data-question]", has_text="street")
    page.keyboard.press("j")
    expect(question).to_have_class(re.compile("here"))
    page.keyboard.press("1")
    expect(question.locator("input:checked")).to_have_attribute("data-value", '"B"')
    page.get_by_role("button", name="Show what this changes").click()
    expect(page.locator("#preview tr", has_text="Qxz")).to_contain_text("street", timeout=60_000)
    expect(page.locator("#preview")).not_to_contain_text("Member #")  # only what differs
    for other in page.locator("[data-question]").all():
        if not other.locator("input:checked").count():
            page.keyboard.press("n")
            page.locator("[data-question].here input").last.check()
    page.get_by_role("button", name="Answer").click()
    page.wait_for_url(f"**/review?answered={first}")
    assert console.await_state(first, "SUCCEEDED", "FAILED") == "SUCCEEDED"
    second = console.drop("asked-2.csv", text.replace("M000001", "M000009"), **asks)
    assert console.await_state(second, "REVIEW", "SUCCEEDED", "FAILED") == "SUCCEEDED"
    page.goto(f"/jobs/{second}")
    expect(page.locator("table.columns tr", has_text="Qxz")).to_contain_text("street")
    page.goto("/senders?text=asked")
    page.get_by_role("link", name="acme / asked").click()
    expect(page.locator("main")).to_contain_text("“Qxz” is street")
    page.locator("li", has_text="Qxz").get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Yes").click()
    expect(page.locator("main")).not_to_contain_text("“Qxz” is street")


def test_jobs_are_cancelled_and_retried_in_bulk(visit, console):
    console.call("POST", "/pause", json={"tenant": "bulk"})
    ids = [console.drop(f"bulk-{n}.csv", tenant="bulk") for n in range(3)]
    page = visit("/jobs?tenant=bulk")
    expect(page.locator(".bulk .ticked")).to_be_hidden()
    for job_id in ids[:2]:
        page.locator(f"[data-select={job_id}]").check()
    expect(page.locator("#selected")).to_have_text("2")
    page.get_by_role("button", name="Cancel 2", exact=True).click()
    expect(page.locator("#said")).to_contain_text("2 done")
    expect(page.locator("tr .state", has_text="CANCELLED")).to_have_count(2)
    page.goto("/jobs?tenant=bulk&state=CANCELLED")
    page.get_by_role("button", name="Retry all that match").click()
    expect(page.locator("#ask")).to_contain_text("Retry 2 jobs")
    page.get_by_role("button", name="Yes").click()
    expect(page.locator("#said")).to_contain_text("2 done")
    console.call("POST", "/resume", json={"tenant": "bulk"})
    for job_id in ids:
        assert console.await_state(job_id, "SUCCEEDED", "FAILED") == "SUCCEEDED"


def test_whoever_has_no_token_sees_a_login_and_a_wrong_one_is_refused(chromium, console):
    context = chromium.new_context(base_url=console.url)
    page = context.new_page()
    page.goto("/jobs?tenant=acme")
    page.wait_for_url("**/login?next=**")
    page.get_by_label("Token").fill("ade_0000000000_wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("not known")
    page.get_by_label("Token").fill(console.token("reader"))
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/jobs?tenant=acme")
    assert page.evaluate("document.cookie") == ""  # no script can read it
    expect(page.get_by_role("link", name="Drop", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login")
    page.goto("/jobs")
    page.wait_for_url("**/login?next=**")
    context.close()


def test_another_tenants_job_is_hidden(visit, console):
    mine = console.drop("mine.csv", tenant="globex")
    other = console.drop("secret-name.csv", tenant="umbrella")
    page = visit("/jobs", scope="sender", tenant="globex")
    expect(page.locator(f"a[href='/jobs/{mine}']")).to_be_visible()
    for path in ("/", "/jobs", "/jobs?tenant=umbrella", "/review", "/senders", "/drop", f"/jobs/{other}"):
        page.goto(path)
        assert "secret-name" not in page.content(), path
    assert page.goto(f"/jobs/{other}").status == 404
    assert page.goto(f"/jobs/{other}/input").status == 404
    expect(page.get_by_role("heading", name="Not Found")).to_be_visible()


def test_the_list_works_by_keys_alone(visit, console):
    console.drop("keys.csv", tenant="keys")
    console.drop("more-keys.csv", tenant="keys")
    page = visit("/jobs?tenant=keys")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("tr.here")).to_contain_text("keys.csv")
    page.keyboard.press("k")
    page.keyboard.press("x")
    expect(page.locator("#selected")).to_have_text("1")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("more-keys")
    page.keyboard.press("Enter")
    page.wait_for_url("**text=more-keys**")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/keys-members-*")


def test_everything_can_be_read_without_scripts(visit, console):
    job_id = console.drop("plain.csv", tenant="plain")
    console.await_state(job_id, "SUCCEEDED")
    page = visit("/", scope="reader", java_script_enabled=False)
    expect(page.get_by_role("heading", name="Throughput")).to_be_visible()
    page.goto("/senders?text=plain")
    page.get_by_role("link", name="plain / members").click()
    page.locator(f"a[href='/jobs/{job_id}']").click()
    expect(page.locator("table.grid")).to_be_visible()
    expect(page.locator("#findings")).to_contain_text("type_error")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_a_review_is_answered_without_scripts(visit, console):
    asks = console.drop("still.csv", CSV.replace("E-Mail", "Mqz"), tenant="still", mapping={"review": "always"})
    console.await_state(asks, "REVIEW")
    page = visit(f"/review?job={asks}", java_script_enabled=False)
    for question in page.locator("[data-question]").all():  # all are shown, and what is unsure is not preset
        if not question.locator("input:checked").count():
            question.locator("input").first.check()
    page.get_by_role("button", name="Answer").click()
    expect(page.get_by_role("heading", name="Review")).to_be_visible()
    assert console.await_state(asks, "SUCCEEDED") == "SUCCEEDED"


@pytest.mark.parametrize("mode", ["light", "dark", "phone"])
def test_every_page_is_light_fits_and_has_no_serious_barrier(visit, console, mode):
    """Weights are printed, pictures land in build/browser/."""
    done = console.drop("shown.csv", tenant="shown")
    asks = console.drop(
        "asks.csv", CSV.replace("E-Mail", "Mqz"), tenant="shown", mapping={"review": "always"}, name="a"
    )
    own = console.drop("own.csv", tenant="initech", output={"rejects": True})
    console.await_state(done, "SUCCEEDED")
    console.await_state(own, "SUCCEEDED")
    console.await_state(asks, "REVIEW")
    sizes = {"phone": {"width": 390, "height": 844}}
    looks = {
        "color_scheme": "dark" if mode == "dark" else "light",
        "viewport": sizes.get(mode, {"width": 1280, "height": 900}),
    }
    page = visit("/", **looks)
    SHOTS.mkdir(parents=True, exist_ok=True)
    paths = {
        "overview": "/", "jobs": "/jobs", "job": f"/jobs/{done}", "review": f"/review?job={asks}",
        "senders": "/senders", "sender": "/sender?tenant=shown&workflow=members", "drop": "/drop", "login": "/login", "missing": "/jobs/no-such-job",
        "report": f"/jobs/{done}/output?name=report.html&inline=true", "workbench": "/bench", "link": "/u/ade_0_wrong",
        "own": "/", "own job": f"/jobs/{own}", "own fix": f"/jobs/{own}/fix",
    }  # fmt: skip
    for name, path in paths.items():
        if name == "own":
            page = visit("/", **looks, scope="sender", tenant="initech")
        page.goto(path)
        expect(page.locator("h1").first).to_be_visible()
        page.screenshot(path=SHOTS / f"{name}-{mode}.png", full_page=True)
        weight = page.evaluate(WEIGHT)
        print(f"{name} {mode}: {weight / 1024:.1f} KiB with style and script")
        assert weight < HEAVIEST
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1"), f"{name} is wider than {mode}"
        if name == "report" or mode == "phone":
            continue  # the report allows no script, so axe cannot run in it; the phone's colours are those of light
        barriers = [one for one in Axe().run(page).response["violations"] if one["impact"] in ("serious", "critical")]
        told = [f"{one['id']}: {[node['html'][:120] for node in one['nodes'][:3]]}" for one in barriers]
        assert not told, f"{name} {mode}"


def test_hostile_names_stay_text_in_the_browser(visit, console):
    evil = "<img src=x onerror=alert(1)>"
    text = CSV.replace("E-Mail", f'"{evil}"').replace("Acme roster", f'"{evil}"')
    job_id = console.drop("evil<b>.csv", text, tenant="evil", fields=[{"name": "member_id", "label": evil}])
    console.await_state(job_id, "SUCCEEDED", "FAILED")
    page = visit(f"/jobs/{job_id}")
    expect(page.locator("#live-explanation")).to_contain_text(evil)
    assert page.locator("main img").count() == 0
    page.goto("/jobs?tenant=evil&text=" + "<script>alert(1)</script>")
    assert page.locator("main script").count() == 0


def test_an_operator_takes_care_of_what_needs_attention(visit, console):
    bad = console.drop("broken.xlsx", "not a workbook", tenant="care", inputs={"primary": ["*.xlsx"]})
    assert console.await_state(bad, "FAILED", "SUCCEEDED") == "FAILED"
    page = visit("/")
    matter = page.locator(".matter", has_text="care / members")
    expect(matter).to_contain_text("broken.xlsx failed")
    matter.locator("summary").click()
    matter.get_by_label("Note").fill("told the sender")
    page.locator("h1").click()
    page.evaluate("refresh()")  # as after any event
    expect(matter.get_by_label("Note")).to_have_value("told the sender")
    matter.get_by_role("button", name="Mark as resolved").click()
    page.wait_for_url("**/")
    expect(page.locator(".matter", has_text="care / members")).to_have_count(0)
    page.goto("/?range=hour")
    expect(page.locator("svg.chart").first).to_be_visible()


def test_values_are_shown_on_request_to_those_who_may_see_them(visit, console):
    job_id = console.drop("seen.csv", tenant="seen")
    console.await_state(job_id, "SUCCEEDED")
    page = visit(f"/jobs/{job_id}", scope="operator,values")
    assert "grace(at)acme.example" not in page.content()
    page.get_by_role("link", name="Show the values").click()
    expect(page.locator("td.value", has_text="grace(at)acme.example")).to_be_visible()
    expect(page.locator("td.m-error").first).to_be_visible()
    other = visit(f"/jobs/{job_id}")
    expect(other.get_by_role("link", name="Show the values")).to_have_count(0)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_sender_drops_a_file_and_learns_what_to_fix(visit, console, tmp_path, scripts):
    """The sender's path: no manifest, a verdict in their words, and what to do next."""
    name = f"served-{'with' if scripts else 'without'}"
    place = console.ade.bucket / "configs" / "globex" / name
    place.mkdir(parents=True)
    served = MANIFEST | {"name": name, "subscribe": [f"{name}/**/*.csv"], "output": {"rejects": True}}
    served.pop("inputs")
    (place / "manifest.json").write_text(json.dumps(served))
    file = tmp_path / "roster.csv"
    file.write_text(CSV)
    page = visit("/", scope="sender", tenant="globex", java_script_enabled=scripts, locale="en")
    page.set_input_files("#files", file)
    page.get_by_label("Folder").fill(f"{name}/north")
    page.get_by_role("button", name="Drop").click()
    page.wait_for_url("**/jobs/globex-*")
    assert console.await_state(page.url.rpartition("/")[2], "SUCCEEDED") == "SUCCEEDED"
    page.goto("/")
    row = page.locator("table.list tr", has_text=f"{name}/north")
    expect(row).to_contain_text("Rows with errors")
    expect(row.get_by_role("link", name="Download rejects.xlsx")).to_be_visible()
    row.get_by_role("link", name="Fix in the browser").click()
    if scripts:
        expect(page.locator(".fix-grid td.wrong").first).to_be_visible()
    else:
        expect(page.get_by_role("link", name="download rejects.xlsx")).to_be_visible()
