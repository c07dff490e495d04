"""Rows with errors are corrected in the browser: the same drop as that of a corrected rejects.xlsx."""

import io
import json
import re
from pathlib import Path
from typing import Any

import httpx
import openpyxl
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.conftest import SHOTS, ConsoleDriver
from tests.support.effort import FULL

pytestmark = pytest.mark.slow
FIELDS = [
    {"name": "member_id", "required": True, "synonyms": ["member #"]},
    {"name": "start", "type": "date"},
    {"name": "gross_pay", "type": "money"},
    {"name": "region", "type": "enum", "allowed": ["North", "South"]},
]
FIXED = {"name": "fixed", "inputs": {"primary": ["*.xlsx"]}, "fields": FIELDS, "output": {"rejects": True}}
HEADER = ("Member #", "Start", "Gross Pay", "Region")
HOSTILE = '<img src=x onerror="alert(1)">'
MANY = 10_000 if FULL else 3_000


def workbook(rows: list[tuple[Any, ...]]) -> bytes:
    book = openpyxl.Workbook()
    for row in (HEADER, *rows):
        book.active.append(row)
    made = io.BytesIO()
    book.save(made)
    return made.getvalue()


ROWS = [
    ("M1", "2026-01-05", 12.5, "North"),
    ("M2", "soon", 7, "North"),
    ("M3", "2026-02-01", HOSTILE, "Nroth"),
    ("M4", "2026-03-01", 3, "South"),
]


def rejected(console: ConsoleDriver, path: str, rows: list[tuple[Any, ...]] = ROWS, **manifest: Any) -> str:
    """A job with rejected rows in a folder of its own."""
    given = {"tenant": "acme", "path": path, "manifest": json.dumps({"manifest": 1} | FIXED | manifest)}
    answer = console.call("POST", "/jobs", data=given, files={"files": ("members.xlsx", workbook(rows))})
    assert answer.status_code == 202, answer.text
    job = str(answer.json()["jobs"][0]["job_id"])
    assert console.await_state(job, "SUCCEEDED", "FAILED") == "SUCCEEDED"
    return job


def corrected_by_hand(console: ConsoleDriver, job: str, path: str, cells: dict[str, Any]) -> str:
    """rejects.xlsx, corrected in a spreadsheet program and dropped again."""
    body = console.call("GET", f"/jobs/{job}/output?name=rejects.xlsx").content
    book = openpyxl.load_workbook(io.BytesIO(body))
    for cell, value in cells.items():
        book.active[cell] = value
    made = io.BytesIO()
    book.save(made)
    folder = console.ade.bucket / "inbox" / "acme" / path
    (folder / "by-hand.xlsx").write_bytes(made.getvalue())
    answer = console.call("POST", "/jobs", json={"tenant": "acme", "keys": [f"inbox/acme/{path}/by-hand.xlsx"]})
    return str(answer.json()["jobs"][0]["job_id"])


def normalized(console: ConsoleDriver, job: str) -> bytes:
    assert console.await_state(job, "SUCCEEDED", "FAILED") == "SUCCEEDED"
    return console.call("GET", f"/jobs/{job}/output?name=normalized.xlsx").content


def test_a_correction_in_the_browser_is_byte_for_byte_that_of_the_workbook(visit, console):
    job = rejected(console, "fix-a")
    page = visit(f"/jobs/{job}")
    page.get_by_role("link", name="Fix in the browser").click()
    grid = page.locator("table.fix-grid")
    expect(grid.locator("td.wrong")).to_have_count(3)
    page.get_by_role("button", name="Next wrong cell").click()
    expect(page.locator("#fix-message")).to_contain_text("Start, row 3")
    page.keyboard.type("2026-01-12")
    page.keyboard.press("Enter")
    expect(grid.locator("td.right")).to_have_count(1, timeout=60_000)  # checked by the rules, in a box
    page.get_by_role("button", name="Next wrong cell").click()
    page.keyboard.type("lots")
    page.keyboard.press("Tab")
    expect(page.locator("#fix-count")).to_contain_text("still wrong", timeout=60_000)
    page.keyboard.press("Control+z")
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name="Next wrong cell").click()
    page.keyboard.type("980")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("td input")).to_have_attribute("list", "fix-choices")  # what is allowed is offered
    page.keyboard.type("North")
    page.keyboard.press("Enter")
    expect(grid.locator("td.right")).to_have_count(3, timeout=60_000)
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / "fix.png")
    page.get_by_role("button", name="Submit 3 changes").click()
    page.wait_for_url(re.compile(r"/jobs/acme-fixed-[a-z0-9]+$"))
    in_browser = page.url.rpartition("/")[2]
    assert in_browser != job
    by_hand = corrected_by_hand(console, job, "fix-a", {"B2": "2026-01-12", "C3": 980, "D3": "North"})
    assert normalized(console, in_browser) == normalized(console, by_hand)
    record = console.call("GET", f"/jobs/{in_browser}").json()
    assert (record["outcome"], record["mends"]["job_id"]) == ("clean", job)


def test_many_bad_rows_can_be_pasted_filled_and_undone(visit, console):
    rows = [(f"M{n}", "2026-01-05", "lots", "North") for n in range(MANY)]
    job = rejected(console, "fix-many", rows)
    page = visit(f"/jobs/{job}/fix")
    drawn = page.locator("table.fix-grid tbody tr:not(.gap)")
    expect(page.locator("#fix-count")).to_contain_text(f"{MANY:,} rows have errors", timeout=60_000)
    assert drawn.count() < 100  # only what is in sight
    page.get_by_role("button", name="Next wrong cell").click()
    page.evaluate(
        """(text) => { const data = new DataTransfer(); data.setData("text/plain", text);
        document.activeElement.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true})); }""",
        "\n".join(str(n) for n in range(50)),
    )
    expect(page.get_by_role("button", name="Submit 50 changes")).to_be_visible()
    page.keyboard.press("Control+z")
    expect(page.get_by_role("button", name="Submit", exact=True)).to_be_disabled()
    page.keyboard.type("5")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowUp")
    page.keyboard.down("Shift")
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    page.keyboard.up("Shift")
    page.keyboard.press("Control+d")
    expect(page.get_by_role("button", name="Submit 5 changes")).to_be_visible()
    page.keyboard.press("Control+Shift+ArrowDown")  # to the end of the column
    page.keyboard.press("Control+d")
    expect(page.get_by_role("button", name=f"Submit {MANY:,} changes")).to_be_visible()
    page.keyboard.press("Control+z")
    page.locator("#fix-scroll").evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    expect(drawn.last).to_contain_text(f"M{MANY - 1}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_grid_is_accessible_and_says_what_to_do_without_scripts(visit, console, scheme):
    job = rejected(console, f"fix-{scheme}")
    page = visit(f"/jobs/{job}/fix", color_scheme=scheme)
    expect(page.locator("td.wrong").first).to_be_visible()
    serious = [one for one in Axe().run(page).response["violations"] if one["impact"] in ("serious", "critical")]
    assert not serious
    page.locator("td.wrong").first.click()
    page.locator("td.wrong").first.click()  # a second tap, where there are no keys
    expect(page.locator("td input")).to_be_focused()
    german = visit(f"/jobs/{job}/fix", scope="sender", tenant="acme", locale="de-DE")
    expect(german.locator("#fix-count")).to_have_text("2 Zeilen haben Fehler")
    bare = visit(f"/jobs/{job}/fix", java_script_enabled=False)
    expect(bare.get_by_role("link", name="download rejects.xlsx")).to_be_visible()


def test_only_whoever_may_submit_for_the_tenant_can_fix(console):
    job = rejected(console, "fix-who")
    for scope, tenant, status in (("reader", None, 403), ("sender", "globex", 404), ("operator", None, 200)):
        headers = {"Authorization": f"Bearer {console.token(scope, tenant)}"}
        answer = httpx.get(f"{console.url}/jobs/{job}/fix/rows", headers=headers)
        assert answer.status_code == status, answer.text
        assert answer.headers["Cache-Control"] == "no-store"
    assert console.call("GET", f"/jobs/{job}/rejects.xlsx").content.startswith(b"PK")  # as report.html links to it
    actions = console.call("GET", "/actions?limit=50").text
    assert "read_rejects" in actions
    assert "Nroth" not in actions


@pytest.mark.parametrize(
    "edit",
    [[0, 1, 1, "x"], [0, 2, 5, "x"], [0, 2, 6, "ade: row other-job/0/0/3"], [0, 999, 1, "x"], [7, 2, 1, "x"]],
    ids=["the header", "what to do", "the key", "no such row", "no such sheet"],
)
def test_nothing_but_the_senders_cells_can_be_changed(console, edit):
    job = rejected(console, "fix-hostile")
    for path in ("fix", "fix/check"):
        answer = console.call("POST", f"/jobs/{job}/{path}", json={"edits": [edit]})
        assert answer.status_code == 422, answer.text
    assert not list((console.ade.bucket / "inbox/acme/fix-hostile").glob("*corrected*"))


def test_the_same_edits_again_are_the_same_drop_and_texts_stay_texts(console):
    job = rejected(console, "fix-twice")
    edits = {"edits": [[0, 2, 2, "2026-01-12"], [0, 3, 3, "1"], [0, 3, 4, "North"], [0, 3, 1, '</t><c r="A1">&=1+1']]}
    first, again = (console.call("POST", f"/jobs/{job}/fix", json=edits).json()["jobs"][0]["job_id"] for _ in range(2))
    assert first == again
    book = openpyxl.load_workbook(io.BytesIO(normalized(console, first)))
    assert [row[0].value for row in book.active.iter_rows(min_row=2)] == ["M1", "M2", '</t><c r="A1">&=1+1', "M4"]


def test_cells_of_another_run_are_not_changed(console):
    """Somebody runs the job again while the grid is open: what was row 3 may be another row now."""
    job = rejected(console, "fix-stale")
    edits = [[0, 2, 2, "2026-01-12"]]
    seen = console.call("GET", f"/jobs/{job}/fix/rows").json()["of"]
    for path in ("fix/check", "fix"):
        answer = console.call("POST", f"/jobs/{job}/{path}", json={"of": "0" * 64, "edits": edits})
        assert answer.status_code == 409, answer.text
    assert not list((console.ade.bucket / "inbox/acme/fix-stale").glob("*corrected*"))
    too_long = console.call("POST", f"/jobs/{job}/fix", json={"of": seen, "edits": [[0, 2, 2, "😀" * 20_000]]})
    assert too_long.status_code == 400, "a cell takes half as many, and would be cut"
    assert console.call("POST", f"/jobs/{job}/fix", json={"of": seen, "edits": edits}).json()["jobs"]


def test_a_workflow_that_takes_csv_only_gets_csv(console):
    given = {
        "tenant": "acme",
        "path": "fix-csv",
        "manifest": json.dumps({"manifest": 1} | FIXED | {"inputs": {"primary": ["*.csv"]}}),
    }
    text = "Member #,Start,Gross Pay,Region\nM1,2026-01-05,1.5,North\nM2,soon,2,South\n"
    answer = console.call("POST", "/jobs", data=given, files={"files": ("members.csv", text.encode())})
    job = answer.json()["jobs"][0]["job_id"]
    assert console.await_state(job, "SUCCEEDED", "FAILED") == "SUCCEEDED"
    fixed = console.call("POST", f"/jobs/{job}/fix", json={"edits": [[0, 2, 2, "2026-01-12"]]}).json()["jobs"][0]
    assert Path(fixed["subject"]).suffix == ".csv"
    book = openpyxl.load_workbook(io.BytesIO(normalized(console, fixed["job_id"])))
    assert [str(row[1].value)[:10] for row in book.active.iter_rows(min_row=2)] == ["2026-01-05", "2026-01-12"]
