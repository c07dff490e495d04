"""Takes the pictures of docs/guides: `python -m tests.browser.pictures`. Needs chromium.

A real `ade up` gets the drops of `ade demo`, a few more of the same sender, one that asks and one that fails.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page, sync_playwright

from console.cli.demo.drops import DROPS
from tests.acceptance.ade import Ade
from tests.browser.conftest import CHROMIUM, SWITCHES

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
SIZE = {"width": 1100, "height": 760}
PATIENCE_MS = 120_000
LOW = {"width": 1100, "height": 520}
PHONE = {"width": 390, "height": 760}
ASKS: dict[str, Any] = {
    "manifest": 1,
    "name": "addresses",
    "inputs": {"primary": ["*.csv"]},
    "mapping": {"review": "always"},
    "fields": [{"name": "member_id"}, {"name": "street", "required": True}, {"name": "paid_on", "type": "date"}],
}
SERVED: dict[str, Any] = {
    "manifest": 1,
    "name": "benefits",
    "subscribe": ["benefits/**/*.csv"],
    "fields": [
        {"name": "member", "required": True},
        {"name": "email", "type": "email"},
        {"name": "plan", "type": "enum", "allowed": ["basic", "gold"]},
    ],
    "output": {"rejects": True},
}
WRONG = "member,email,plan\nM1,ann(at)acme.example,gold\nM2,bob@acme.example,golden\n,cy@acme.example,basic\nM4,di@acme.example,gold\n"
ROSTER = "id,email,gross_pay\n" + "".join(f"M{n:06d},m{n}@acme.example,{n}\n" for n in range(1, 30))


def drop(client: httpx.Client, tenant: str, manifest: dict[str, Any], name: str, body: bytes, path: str = "") -> str:
    given = {"tenant": tenant, "manifest": json.dumps(manifest), "path": path}
    answer = client.post("/jobs", data=given, files={"files": (name, body)}).raise_for_status()
    return str(answer.json()["jobs"][0]["job_id"])


def answer(client: httpx.Client, job_id: str) -> None:
    """Take the first candidate of each question, for good."""
    follow(client, job_id)
    asked = client.get(f"/jobs/{job_id}/output", params={"name": "review.json"}).raise_for_status().json()["questions"]
    answers = [{"id": one["id"], "value": one["candidates"][0]["value"]} for one in asked]
    client.post(f"/jobs/{job_id}/decide", json={"answers": answers}).raise_for_status()


def follow(client: httpx.Client, job_id: str) -> None:
    """Wait until a job ends or asks."""
    with client.stream("GET", f"/jobs/{job_id}/logs", headers={"Accept": "text/event-stream"}) as events:
        for line in events.iter_lines():
            if line == "event: end" or '"state": "REVIEW"' in line:
                break


def fill(client: httpx.Client, folder: Path) -> tuple[str, str]:
    """The jobs of the pictures: one to explain, one that asks."""
    shown = ""
    for one in DROPS:
        one.write(folder / one.file)
        job_id = drop(client, one.tenant, one.manifest, one.file, (folder / one.file).read_bytes())
        shown = shown or job_id
    simple = {
        "manifest": 1,
        "name": "payroll",
        "inputs": {"primary": ["*.csv"]},
        "fields": [{"name": "id"}, {"name": "email", "type": "email"}, {"name": "gross_pay", "type": "money"}],
    }
    for month, wrong in enumerate((9, 7, 8, 4, 5, 2, 3, 1), 1):
        text = ROSTER.replace("@", "(at)", wrong)
        drop(client, "acme", simple, f"2026-{month:02d}.csv", text.encode())
    drop(client, "globex", {**simple, "name": "unread"}, "scan.csv", b"\x89PNG\r\n\x1a\n" + bytes(400))
    rows = b"\nM1,12 High St,03/04/2026\nM2,3 Low Rd,05/06/2026\n"
    answer(client, drop(client, "acme", ASKS, "may.csv", b"Member,CALLE,Paid on" + rows, "north"))
    asks = drop(client, "acme", ASKS, "june.csv", b"Member,Domicile,Paid" + rows, "south")
    for job_id in [job["job_id"] for job in client.get("/jobs", params={"limit": 100}).json()["jobs"]]:
        follow(client, job_id)
    return shown, asks


def standing(folder: Path, client: httpx.Client) -> str:
    """A workflow of acme that rejects rows, and a job with some to fix."""
    place = folder / "data" / "bucket" / "configs" / "acme" / str(SERVED["name"])
    place.mkdir(parents=True)
    (place / "manifest.json").write_text(json.dumps(SERVED))
    given = {"tenant": "acme", "manifest": "", "path": "benefits/north"}
    sent = client.post("/jobs", data=given, files={"files": ("june.csv", WRONG.encode())}).raise_for_status()
    job_id = str(sent.json()["jobs"][0]["job_id"])
    follow(client, job_id)
    return job_id


def take(page: Page, name: str, path: str, *, at: str = "") -> None:
    page.set_default_timeout(PATIENCE_MS)  # a review reads values in a box
    page.goto(path)
    page.wait_for_load_state()
    if at:
        page.locator(at).evaluate("(one) => scrollTo(0, one.getBoundingClientRect().top + scrollY - 12)")
    page.screenshot(path=PICTURES / f"{name}.png")


def bench(page: Page, folder: Path) -> None:
    """The workbench with a sample of the demo."""
    page.goto("/bench")
    page.set_input_files("#files", folder / DROPS[0].file)
    page.get_by_role("button", name="Draft a manifest").click()
    page.locator("table.fields a").nth(1).click()
    page.locator("table.pick").first.wait_for(timeout=60_000)
    page.screenshot(path=PICTURES / "workbench.png")


def main() -> int:
    if CHROMIUM is None:
        print("chromium is not installed: apt-get install chromium", file=sys.stderr)
        return 1
    PICTURES.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as place,
        sync_playwright() as play,
        Ade(Path(place)).up(ADE_CONSOLE_LISTEN="127.0.0.1:0") as running,
    ):
        url = next(str(event["console"]) for event in running.events if event["event"] == "up")
        with httpx.Client(base_url=url, timeout=60) as client:
            shown, asks = fill(client, Path(place))
            fixed = standing(Path(place), client)
        ade = Ade(Path(place))
        token = ade("token", "new", "--name", "ann", "--scope", "sender", "--tenant", "acme", "--json").json["token"]
        by_link = ("--tenant", "acme", "--workflow", "benefits", "--name", "Benefits of June")
        link = str(ade("link", "new", *by_link, "--expires", "30d", "--json").json["path"])
        browser = play.chromium.launch(executable_path=CHROMIUM, args=list(SWITCHES))
        page = browser.new_page(base_url=url, viewport=SIZE)
        take(page, "overview", "/")
        take(page, "job", f"/jobs/{shown}", at="[aria-labelledby=fixes-title]")
        take(page, "review", f"/review?job={asks}")
        take(page, "report", f"/jobs/{shown}/output?name=report.html&inline=true")
        take(browser.new_page(base_url=url, viewport=SIZE, color_scheme="dark"), "senders-dark", "/senders")
        take(browser.new_page(base_url=url, viewport=PHONE), "jobs-phone", "/jobs")
        bench(browser.new_page(base_url=url, viewport={**SIZE, "width": 1280}), Path(place))
        take(browser.new_page(base_url=url, viewport=LOW), "jobs", "/jobs")
        take(browser.new_page(base_url=url, viewport=LOW), "upload", link)
        sender = browser.new_context(base_url=url, viewport=LOW)
        sender.add_cookies([{"name": "ade_session", "value": str(token), "url": url}])
        page = sender.new_page()
        take(page, "own", "/")
        page.goto(f"/jobs/{fixed}/fix")
        page.locator(".fix-grid td.wrong").first.wait_for()
        page.screenshot(path=PICTURES / "fix.png")
        browser.close()
    for picture in sorted(PICTURES.glob("*.png")):
        print(f"{picture.name}: {picture.stat().st_size / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
