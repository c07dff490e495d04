"""Requests that nobody should send: hostile pages, odd forms, slow clients, too many of everything."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.api import app as app_module
from console.api import following, metrics
from console.api import server as server_module
from console.api.access import Principal, Scope
from console.api.actions import ACTIONS
from console.api.listening import bind
from console.api.problems import ProblemError
from console.api.server import ConsoleServer
from console.api.submissions import Accepted
from core.errors import StoreUnavailable
from core.jobs import State
from infra.logs import Log
from tests.support.console import HERE, MANIFEST, ApiRig, TestClient, api_rig

FORM = "multipart/form-data; boundary=B"
PATIENCE = 20.0  # seconds, of a test that would otherwise hang


@contextlib.contextmanager
def served(rig: ApiRig) -> Iterator[tuple[str, int]]:
    """The stack of a rig behind a real socket."""
    listening = bind("127.0.0.1:0", fall_back=False)
    server = ConsoleServer(rig.stack, Log(level="error"), listening)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield listening.getsockname()[:2]
    finally:
        server.stop()
        thread.join()


def everything(caller: socket.socket) -> bytes:
    """What comes until the other side closes."""
    caller.settimeout(PATIENCE)
    return b"".join(iter(lambda: caller.recv(65536), b""))


def part(name: str, value: bytes, *, file: str | None = None) -> bytes:
    called = f'; filename="{file}"' if file is not None else ""
    return f'--B\r\nContent-Disposition: form-data; name="{name}"{called}\r\n\r\n'.encode() + value + b"\r\n"


def whole_form(*more: bytes) -> bytes:
    manifest = json.dumps(MANIFEST).encode()
    given = (part("tenant", b"acme"), part("manifest", manifest), part("files", b"Name,Age\n", file="p.csv"), *more)
    return b"".join(given) + b"--B--\r\n"


class TestOtherSites:
    @pytest.mark.parametrize("origin", ["http://[::1", "http://[", "//]"])
    def test_an_origin_that_is_no_address_is_another_site(self, rig: ApiRig, origin: str):
        assert rig.client.post("/pause", json={}, headers={"Origin": origin}).status_code == 403
        assert rig.stack.table.pauses() == ()

    def test_a_page_that_names_itself_a_proxys_user_is_refused(self, tmp_path: Path):
        """A name of an attacker that leads here lets their page send any header from this machine."""
        with api_rig(tmp_path, console_proxies="127.0.0.1") as rig:
            rig.context.access.new("Ann", Scope.OPERATOR, tenant=None, user="ann@example.org")
            who = {rig.stack.settings.console_proxy_header: "ann@example.org", "X-Forwarded-For": "192.0.2.1"}
            assert rig.client.get("/jobs", headers=who | {"Host": "evil.example"}).status_code == 421
            assert rig.client.get("/jobs", headers=who).status_code == 200

    @pytest.mark.parametrize("after", ["//[", "//evil.example", "/\\evil.example", "https://evil.example"])
    def test_nobody_is_sent_elsewhere_after_logging_in(self, rig: ApiRig, after: str):
        shown = rig.client.get("/login", params={"next": after})
        assert shown.status_code == 200
        assert "evil" not in shown.text


class TestOddForms:
    @pytest.mark.parametrize("charset", ["punycode", "undefined"])
    def test_a_charset_that_cannot_be_read_is_the_callers_fault(self, rig: ApiRig, charset: str):
        kind = {"Content-Type": f"{FORM}; charset={charset}"}
        assert rig.client.post("/jobs", content=whole_form(), headers=kind).status_code == 400

    def test_a_field_that_is_there_twice_is_refused(self, rig: ApiRig):
        answer = rig.client.post("/jobs", content=whole_form(part("tenant", b"other")), headers={"Content-Type": FORM})
        assert (answer.status_code, "'tenant' is there twice" in answer.text) == (400, True)

    def test_a_file_without_a_name_learns_what_it_lacks(self, rig: ApiRig):
        answer = rig.client.post("/jobs", content=whole_form(part("files", b"x")), headers={"Content-Type": FORM})
        assert (answer.status_code, "has no file name" in answer.text) == (400, True)


class TestSenders:
    def test_a_sender_cannot_decide_a_review_by_an_upload(self, rig: ApiRig):
        sender = rig.from_afar(rig.token("sender", "acme"))
        name = "p.csv.decision.json"
        assert sender.put(f"/uploads/inbox/acme/people/{name}", content=b"{}").status_code == 400
        wanted = {"tenant": "acme", "path": "people", "names": [name]}
        assert sender.post("/uploads", json=wanted).status_code == 400
        assert list(rig.stack.store.keys("inbox/")) == []

    def test_an_upload_leaves_a_trace(self, rig: ApiRig):
        rig.client.put("/uploads/inbox/acme/people/p.csv", content=b"x")
        (entry,) = rig.client.get("/actions").json()["actions"]
        assert (entry["act"], entry["keys"]) == ("put", ["inbox/acme/people/p.csv"])

    def test_no_sender_blinds_the_action_log(self, rig: ApiRig):
        keys = [f"inbox/acme/{'é' * 480}{n}.csv" for n in range(100)]
        rig.client.post("/jobs", json={"tenant": "acme", "keys": keys})
        rig.stack.store.put(f"{ACTIONS}2026-01-01/odd.json", b" " * 2 * 1024 * 1024)
        answer = rig.client.get("/actions")
        assert (answer.status_code, len(answer.json()["actions"])) == (200, 1)

    def test_a_request_of_many_long_keys_is_known_again(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(rig.context.submissions, "record", lambda _tenant, keys: Accepted(keys))
        body = {"tenant": "acme", "keys": [f"inbox/acme/{'k' * 900}{n}.csv" for n in range(1000)]}
        first, again = (rig.client.post("/jobs", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2))
        assert (first.status_code, again.status_code) == (202, 202)
        assert again.headers["idempotency-replayed"] == "true"

    def test_wrong_tokens_lock_nobody_else_out(self, rig: ApiRig):
        good = rig.from_afar(rig.token("reader"))
        codes = [rig.from_afar(f"ade_x_{n}").get("/session").status_code for n in range(60)]
        assert codes[-1] == 429
        assert good.get("/session").status_code == 200


class TestStreams:
    def test_one_token_has_so_many_streams_and_no_more(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(following, "MOST_OF_ONE", 1)
        one, other = (Principal(name, name, Scope.READER) for name in ("one", "other"))
        followers = rig.context.followers
        with followers._streaming(one):
            followers.check_room(other)
            with pytest.raises(ProblemError, match="too many streams"):
                followers.check_room(one)
        followers.check_room(one)

    def test_streams_leave_room_for_everybody_else(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(following, "MOST_STREAMS", 1)
        with served(rig) as at, socket.create_connection(at) as watcher:
            ask = b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            watcher.sendall(ask % b"/events")
            watcher.settimeout(PATIENCE)
            seen = b""
            while b"retry:" not in seen:
                seen += watcher.recv(65536)
            for path, status in ((b"/events", b"503"), (b"/jobs", b"200")):
                with socket.create_connection(at) as caller:
                    caller.sendall(ask % path)
                    assert everything(caller).split()[1] == status

    def test_head_of_a_stream_ends(self, rig: ApiRig):
        with served(rig) as at, socket.create_connection(at) as caller:
            caller.sendall(b"HEAD /events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b"text/event-stream" in everything(caller)

    def test_a_fault_while_polling_does_not_blind_those_who_watch(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        rig.job("a", state=State.SUCCEEDED, ended_at=1.0)
        followers, faults = rig.context.followers, iter([RuntimeError("odd")])
        poll = followers._poll

        def odd() -> bool:
            for fault in faults:
                raise fault
            return poll()

        monkeypatch.setattr(followers, "_poll", odd)
        (job,) = rig.client.get("/jobs").json()["jobs"]
        assert "event: end" in rig.client.get(f"/jobs/{job['job_id']}/logs?follow=true").text


class TestSlowClients:
    def test_a_head_that_trickles_on_a_used_connection_is_given_up(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(server_module, "_HEAD_SECONDS", 0.2)
        with served(rig) as at, socket.create_connection(at) as caller:
            caller.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            caller.settimeout(PATIENCE)
            seen = b""
            while not seen.endswith(b"}"):
                seen += caller.recv(65536)
            caller.sendall(b"GET /hea")
            assert everything(caller) == b""

    def test_a_body_that_trickles_is_given_up(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(app_module, "_READ_SECONDS", 0.2)
        with served(rig) as at, socket.create_connection(at) as caller:
            caller.sendall(
                b"PUT /uploads/inbox/acme/p.csv HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000\r\n\r\n"
            )
            stop = threading.Event()

            def trickle() -> None:
                with contextlib.suppress(OSError):
                    while not stop.wait(0.05):
                        caller.sendall(b"x")

            thread = threading.Thread(target=trickle)
            thread.start()
            try:
                caller.settimeout(PATIENCE)
                assert caller.recv(65536).split()[1] == b"408"
            finally:
                stop.set()
                thread.join()

    def test_whoever_sends_too_much_reads_why_it_was_refused(self, rig: ApiRig):
        body = whole_form(*(part(f"a{n}", b"x" * 1000) for n in range(4000)))
        with served(rig) as at, socket.create_connection(at) as caller:
            head = f"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: {FORM}\r\nConnection: close\r\n"
            caller.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            assert b"Too many fields" in everything(caller)


class TestWhileTheStoreHangs:
    def test_health_answers_though_every_thread_waits(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        """An orchestrator would kill a server that only waits for its bucket."""
        free, busy = threading.Event(), threading.Semaphore(0)

        def hang(*_: Any, **__: Any) -> None:
            busy.release()
            free.wait(PATIENCE)

        monkeypatch.setattr(rig.context.facade, "senders", hang)
        with TestClient(rig.app, base_url="http://127.0.0.1", client=HERE) as client:
            callers = [threading.Thread(target=client.get, args=("/senders",)) for _ in range(app_module.THREADS)]
            for caller in callers:
                caller.start()
            for _ in callers:
                assert busy.acquire(timeout=PATIENCE)
            try:
                answered = threading.Event()
                asking = threading.Thread(target=lambda: client.get("/health").raise_for_status() and answered.set())
                asking.start()
                assert answered.wait(5)
            finally:
                free.set()
                for caller in (*callers, asking):
                    caller.join()

    def test_acts_on_many_stop_at_the_first_silence(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        for n in range(3):
            rig.failed(f"{n}")
        asked = []

        def silent(job_id: str) -> None:
            asked.append(job_id)
            raise StoreUnavailable("the table does not answer; try again")

        monkeypatch.setattr(rig.context.control, "retry", silent)
        answer = rig.client.post("/jobs/acts", json={"act": "retry", "filter": {}})
        assert (answer.status_code, len(asked)) == (503, 1)


class TestWhatIsLeftAndTold:
    def test_the_folder_of_a_server_that_was_killed_is_removed_and_that_of_a_live_one_is_not(self, rig: ApiRig):
        left = rig.stack.run_dir / "console-dead"
        left.mkdir()
        (left / "half-of-a-large-file").write_bytes(b"x")
        with api_rig(rig.stack.settings.storage_data_dir):
            assert not left.exists()
            assert rig.context.spool.folder.exists()

    def test_a_count_is_reported_to_its_last_digit(self):
        assert metrics._line("n", {}, 12345678) == "n 12345678"
        assert metrics._line("n", {}, 0.25) == "n 0.25"

    def test_a_refusal_does_not_tell_where_the_bucket_is(self, rig: ApiRig):
        rig.client.put("/uploads/inbox/acme/x.csv", content=b"x")
        answer = rig.client.put("/uploads/inbox/acme/x.csv/y.csv", content=b"x")
        assert answer.status_code == 400
        assert str(rig.stack.settings.storage_data_dir) not in answer.text
