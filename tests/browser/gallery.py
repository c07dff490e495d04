"""Draws every page: `python -m tests.browser.gallery [--only NAME] [--out DIR]`. Needs chromium; takes minutes.

A real `ade up` gets drops with plain, long, bidirectional and hostile names and jobs in every state that lasts. Each page
is drawn at 1280 and 390 pixels, light and dark, for whoever sees it. Printed are its height and weight and what is wrong:
findings of axe of any impact, a page wider than the window, a script's error, and a script or picture that somebody's
name brought along. The exit code is 1 if anything is.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from tests.acceptance.ade import Ade
from tests.browser.conftest import CHROMIUM, SHOTS, SWITCHES
from tests.browser.pictures import ASKS, drop, fill, follow, standing

PATIENCE_MS = 120_000
CANARY = '<img src=x onerror="window.canary=1">'
FOUND = "() => [...document.querySelectorAll('main img, main script, main iframe, [onerror], [onload]')].length"
FIELDS: list[dict[str, Any]] = [{"name": "id"}, {"name": "email", "type": "email"}, {"name": "pay", "type": "money"}]
PLAIN: dict[str, Any] = {"manifest": 1, "name": "plain", "inputs": {"primary": ["*.csv"]}, "fields": FIELDS}
ROWS = "id,email,pay\n" + "".join(f"M{n},m{n}{'(at)' if n % 3 else '@'}acme.example,{n}\n" for n in range(20))
NAMES = {
    "long": "the name of a file that somebody exported from a system " * 3,
    "unbroken": "x" * 150,
    "rtl": "تقرير \u202egpj",
    "emoji": "🎉👩\u200d👩\u200d👧 pay 💶",
    "hostile": CANARY.replace("=", "&"),
}
JOBS = (*NAMES, "shown", "asks", "fixed", "failed", "wide", "awaiting", "scheduled", "queued", "cancelled")


def jobs(client: httpx.Client, folder: Path) -> dict[str, str]:
    """The jobs of the gallery by what they show."""
    shown, asks = fill(client, folder)
    found = {"shown": shown, "asks": asks, "fixed": standing(folder, client)}
    rejects = PLAIN | {"output": {"rejects": True}}
    hostile = {"fields": [{**one, "label": CANARY, "description": CANARY} for one in FIELDS]}
    for name, stem in NAMES.items():
        manifest = rejects | (hostile if name == "hostile" else {})
        rows = ROWS.replace("M1,", f'"{CANARY.replace(chr(34), chr(34) * 2)}",') if name == "hostile" else ROWS
        found[name] = drop(client, "names", manifest | {"name": name}, f"{stem[:150]}.csv", rows.encode(), stem[:60])
    wide = [{"name": f"column_{n}", "type": "integer"} for n in range(60)]
    cells = "\n".join(",".join("x" if n % 11 == row else str(n) for n in range(60)) for row in range(20))
    text = ",".join(one["name"] for one in wide) + f"\n{cells}\n"
    found["wide"] = drop(client, "acme", rejects | {"name": "wide", "fields": wide}, "wide.csv", text.encode(), "wide")
    found["failed"] = drop(client, "globex", PLAIN | {"name": "failed"}, "scan.csv", b"\x89PNG\r\n\x1a\n" + bytes(400))
    looked_up = {"primary": ["*.csv"], "auxiliary": [{"name": "plans", "path": "plans.csv", "required": True}]}
    found["awaiting"] = drop(client, "acme", PLAIN | {"name": "awaiting", "inputs": looked_up}, "a.csv", ROWS.encode())
    later = PLAIN | {"name": "scheduled", "not_before": "2100-01-01T00:00:00Z"}
    found["scheduled"] = drop(client, "acme", later, "later.csv", ROWS.encode())
    client.post("/pause", json={"tenant": "paused"}).raise_for_status()
    for name in ("queued", "cancelled"):
        found[name] = drop(client, "paused", PLAIN | {"name": name}, f"{name}.csv", ROWS.encode())
    client.post(f"/jobs/{found['cancelled']}/cancel").raise_for_status()
    drop(client, "globex", ASKS, "june.csv", b"Member,Domicile,Paid\nM1,12 High St,03/04/2026\n", "south")
    for name in (*NAMES, "wide", "failed"):
        follow(client, found[name])
    return found


def pages(found: dict[str, str], bench: str, link: str) -> dict[str, tuple[str, str]]:
    """Who sees which page, by name: empty for a stranger, else a scope and the tenant behind a space."""
    operator = {
        "home": "/", "home-week": "/?range=week", "home-tenant": "/?tenant=acme", "senders": "/senders",
        "senders-none": "/senders?text=nobody", "sender": "/sender?tenant=acme&workflow=payroll",
        "sender-long": "/sender?tenant=names&workflow=unbroken", "jobs": "/jobs?limit=60", "jobs-wrong": "/jobs?created_from=x",
        "jobs-none": "/jobs?tenant=acme&verdict=rule_error", "review": f"/review?job={found['asks']}", "drop": "/drop",
        "drop-from": f"/drop?from={found['shown']}", "fix": f"/jobs/{found['fixed']}/fix", "missing": "/jobs/none",
        "fix-wide": f"/jobs/{found['wide']}/fix", "fix-hostile": f"/jobs/{found['hostile']}/fix", "benches": "/bench",
        **{f"bench-{tab}": f"{bench}?tab={tab}" for tab in ("json", "cases", "save")}, "bench-field": f"{bench}?field=1",
        **{f"job-{name}": f"/jobs/{found[name]}" for name in JOBS},
    }  # fmt: skip
    values = {"job-values": f"/jobs/{found['hostile']}?values=yes", "review-values": f"/review?job={found['asks']}"}
    own = {
        "own": "/",
        "own-drop": "/drop",
        "own-job": f"/jobs/{found['fixed']}",
        "own-fix": f"/jobs/{found['fixed']}/fix",
    }
    strange = {"login": "/login", "link": link, "link-gone": "/u/ade_0_wrong"}
    return {
        **{name: ("operator", path) for name, path in operator.items()},
        **{name: ("operator,values", path) for name, path in values.items()},
        **{name: ("sender acme", path) for name, path in own.items()},
        **{name: ("", path) for name, path in strange.items()},
        "forbidden": ("reader", "/drop"),
    }


def wrong_with(page: Page, path: str, width: int) -> list[str]:
    """Open a page, wait until it is drawn, and list what is wrong with it."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(f"script: {error}"))
    page.on("dialog", lambda dialog: (errors.append("dialog"), dialog.dismiss()))
    page.on("console", lambda said: errors.append(said.text) if "Content Security" in said.text else None)
    page.goto(path)
    if "/fix" in path:
        page.locator("table.fix-grid tbody tr:not(.gap)").first.wait_for()
    elif "field=1" in path:
        page.locator("table.pick").first.wait_for()
    page.wait_for_timeout(200)
    wide = page.evaluate("document.documentElement.scrollWidth")
    errors += [f"{wide} px wide"] if wide > width + 1 else []
    errors += ["canary"] if page.evaluate("!!window.canary") or page.evaluate(FOUND) else []
    found = Axe().run(page).response["violations"]
    return errors + [f"{one['impact']} {one['id']}: {one['nodes'][0]['html'][:120]}" for one in found]


def draw(browser: Browser, url: str, tokens: dict[str, str], shown: dict[str, tuple[str, str]], out: Path) -> int:
    """Draw all pages in all ways; how many have something wrong."""
    count = 0
    for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
        for name, (who, path) in shown.items():
            size: dict[str, Any] = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
            context = browser.new_context(base_url=url, **size)
            if who:
                context.add_cookies([{"name": "ade_session", "value": tokens[who], "url": url}])
            page = context.new_page()
            page.set_default_timeout(PATIENCE_MS)
            errors = wrong_with(page, path, width)
            page.screenshot(path=out / f"{name}-{width}-{scheme}.png", full_page=True)
            tall = page.evaluate("document.documentElement.scrollHeight")
            weight = page.evaluate("performance.getEntriesByType('navigation')[0].decodedBodySize") / 1024
            print(f"{name:<16} {width:>5} {scheme:<5} {tall:>6} px {weight:>4.0f} KB  {'; '.join(errors)}", flush=True)
            count += bool(errors)
            context.close()
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="pages whose name has this in it")
    parser.add_argument("--out", type=Path, default=SHOTS)
    given = parser.parse_args()
    if CHROMIUM is None:
        print("chromium is not installed: apt-get install chromium", file=sys.stderr)
        return 1
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as play:
        ade = Ade(Path(place))
        tokens = {
            who: str(ade("token", "new", "--name", who, "--scope", scope, *more, "--json").json["token"])
            for who in ("operator", "operator,values", "reader", "sender acme")
            for scope, _, tenant in [who.partition(" ")]
            for more in [("--tenant", tenant) if tenant else ()]
        }
        env = {"ADE_CONSOLE_LISTEN": "127.0.0.1:0", "ADE_CONSOLE_TOKENLESS": "false", "ADE_QUEUE_SIZE": "500"}
        with ade.up(**env, ADE_CONSOLE_RATE="5000") as running:
            url = next(str(event["console"]) for event in running.events if event["event"] == "up")
            headers = {"Authorization": f"Bearer {tokens['operator']}"}
            with httpx.Client(base_url=url, timeout=120, headers=headers) as client:
                found = jobs(client, Path(place))
                chosen = {"key": "configs/acme/benefits/manifest.json"}
                html = {"Accept": "text/html", "Origin": url}
                bench = client.post("/bench/open", data=chosen, headers=html).headers["location"].partition("?")[0]
                rows = {"files": ("roster.csv", ROWS.encode())}
                client.post(f"{bench}/samples", files=rows, headers=html)
            by_link = ("--tenant", "acme", "--workflow", "benefits", "--name", CANARY, "--expires", "30d", "--json")
            link = str(ade("link", "new", *by_link).json["path"])
            shown = {name: one for name, one in pages(found, bench, link).items() if given.only in name}
            browser = play.chromium.launch(executable_path=CHROMIUM, args=list(SWITCHES))
            count = draw(browser, url, tokens, shown, given.out)
            browser.close()
    print(json.dumps({"pages": len(shown), "drawn": 4 * len(shown), "with_something_wrong": count}))
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
