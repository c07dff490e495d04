"""A real `ade up`, tokens for its console, and a Chromium that drives it."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.acceptance.ade import Ade

CHROMIUM = shutil.which("chromium")
SWITCHES = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
SHOTS = Path(__file__).parents[2] / "build" / "browser"
TOKENS = (
    ("operator", None),
    ("operator,values", None),
    ("reader", None),
    ("sender", "acme"),
    ("sender", "initech"),
    ("sender", "globex"),
    ("author", "acme"),
)
MANIFEST: dict[str, Any] = {
    "manifest": 1,
    "name": "members",
    "inputs": {"primary": ["*.csv"]},
    "fields": [
        {"name": "member_id", "required": True, "synonyms": ["member #"]},
        {"name": "email", "type": "email", "synonyms": ["e-mail"]},
        {"name": "gross_pay", "type": "money", "min": 0},
    ],
}
CSV = (
    "Acme roster,,\n,,\nMember #,E-Mail,Gross Pay\nM000001,ada@acme.example,12.50\nM000002,grace(at)acme.example,7\n"
    "M000003,alan@acme.example,-3\n,edsger@acme.example,4\nTotal,,20.50\n"
)


@dataclass
class ConsoleDriver:
    """The console of a running `ade up`, with a token for each kind of visitor."""

    ade: Ade
    url: str
    tokens: dict[str, str] = field(default_factory=dict)

    def token(self, scope: str, tenant: str | None = None) -> str:
        name = f"{scope} {tenant or 'all'}"
        if name not in self.tokens:
            words = [
                "token",
                "new",
                "--name",
                name,
                "--scope",
                scope,
                *(["--tenant", tenant] if tenant else []),
                "--json",
            ]
            self.tokens[name] = str(self.ade(*words).json["token"])
        return self.tokens[name]

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token('operator')}"}
        return httpx.request(method, self.url + path, headers=headers, timeout=60, **more)

    def drop(self, file: str, text: str = CSV, *, tenant: str = "acme", **manifest: Any) -> str:
        given = {"tenant": tenant, "manifest": json.dumps(MANIFEST | manifest)}
        answer = self.call("POST", "/jobs", data=given, files={"files": (file, text.encode())})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["jobs"][0]["job_id"])

    def await_state(self, job_id: str, *states: str) -> str:
        """Follow the job's events until it is in one of these states."""
        headers = {"Authorization": f"Bearer {self.token('operator')}", "Accept": "text/event-stream"}
        with httpx.stream("GET", f"{self.url}/jobs/{job_id}/logs", headers=headers, timeout=60) as stream:
            for line in stream.iter_lines():
                if line.startswith("data:") and json.loads(line[5:]).get("state") in states:
                    return str(json.loads(line[5:])["state"])
        return str(self.call("GET", f"/jobs/{job_id}").json()["state"])


@pytest.fixture(scope="session")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleDriver]:
    ade = Ade(tmp_path_factory.mktemp("browser"), within=True)
    env = {"ADE_CONSOLE_LISTEN": "127.0.0.1:0", "ADE_CONSOLE_TOKENLESS": "false", "ADE_CONSOLE_RATE": "500"}
    with ade.up(**env) as running:
        url = next(str(event["console"]) for event in running.events if event["event"] == "up")
        made = ConsoleDriver(ade, url)
        for scope, tenant in TOKENS:  # the console learns of new ones within two seconds
            made.token(scope, tenant)
        yield made


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        if os.environ.get("CI") == "true":
            pytest.fail("chromium is not installed; .ci/run installs it")
        pytest.skip("chromium is not installed: apt-get install chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=list(SWITCHES))
        yield browser
        browser.close()


Visit = Callable[..., Page]


@pytest.fixture
def visit(chromium: Browser, console: ConsoleDriver) -> Iterator[Visit]:
    """Open a page as somebody who has logged in; a script's error or a refused resource fails the test."""
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def opened(path: str = "/", *, scope: str = "operator", tenant: str | None = None, **options: Any) -> Page:
        context = chromium.new_context(base_url=console.url, **options)
        contexts.append(context)
        cookie = {"name": "ade_session", "value": console.token(scope, tenant), "url": console.url}
        context.add_cookies([{**cookie, "httpOnly": True, "sameSite": "Strict"}])
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: wrong.append(f"{page.url}: {error}"))
        page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
        page.on("dialog", lambda dialog: wrong.append(f"{page.url}: dialog {dialog.message}"))
        page.goto(path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not wrong
