"""Requests that nobody should send: hostile pages, odd forms, slow clients, too many of everything."""

import contextlib
import json
import queue
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from console.api import actions, bodies, clients, following, guarding, job_routes
from console.api import server as server_module
from console.api.access import Scope
from console.api.actions import ACTIONS
from console.api.server import ConsoleServer
from console.api.submissions import Accepted
from console.facade import Facade
from core.errors import StoreUnavailable
from core.jobs import State
from infra.addresses import bind
from infra.logs import Log
from infra.prometheus_text import sample
from tests.support.console import HERE, MANIFEST, ApiRig, TestClient, api_rig

FORM = "multipart/form-data; boundary=B"
PATIENCE = 60.0  # seconds, of a test that would otherwise hang


@contextlib.contextmanager
def served(rig: ApiRig) -> Iterator[tuple[str, int]]:
    """The stack of a rig behind a real socket."""
    listening = bind("127.0.0.1:0", "ADE_CONSOLE_LISTEN")
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

    @pytest.mark.parametrize("host", ["[::1].evil.example", "[::1]evil.example", "[::1", "127.0.0.1.evil.example"])
    def test_a_host_that_only_begins_like_this_machine_is_another(self, rig: ApiRig, host: str):
        assert rig.client.get("/jobs", headers={"Host": host}).status_code == 421
        assert rig.client.get("/jobs", headers={"Host": "[::1]:8020"}).status_code == 200

    def test_who_is_named_twice_is_nobody(self, tmp_path: Path):
        """A proxy that adds its header behind the caller's must not let the caller choose a name."""
        with api_rig(tmp_path, console_proxies="127.0.0.1") as rig:
            for user, scope in (("ann@example.org", Scope.OPERATOR), ("bob@example.org", Scope.READER)):
                rig.context.access.new(user, scope, tenant=None, user=user)
            header = rig.stack.settings.console_proxy_header
            twice = [(header, "ann@example.org"), (header, "bob@example.org"), ("X-Forwarded-For", "192.0.2.1")]
            assert rig.client.get("/jobs", headers=twice).status_code == 401

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

    def test_no_tenant_hides_what_is_done_with_another(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(actions, "_MOST_READ", 2)
        job = rig.failed("a", tenant="acme")
        rig.client.post(f"/jobs/{job.job_id}/retry")
        for n in range(3):
            rig.client.put(f"/uploads/inbox/globex/{n}.csv", content=b"x")
        mine = rig.from_afar(rig.token("operator", "acme"))
        assert [entry["act"] for entry in mine.get("/actions").json()["actions"]] == ["retry"]

    def test_a_tenant_whose_name_ends_in_another_s_hides_nothing_of_it(
        self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(actions, "_MOST_READ", 2)
        job = rig.failed("a", tenant="acme")
        rig.client.post(f"/jobs/{job.job_id}/retry")
        for n in range(3):
            rig.client.put(f"/uploads/inbox/evil.acme/{n}.csv", content=b"x")
        mine = rig.from_afar(rig.token("operator", "acme"))
        assert [entry["act"] for entry in mine.get("/actions").json()["actions"]] == ["retry"]
        theirs = rig.from_afar(rig.token("operator", "evil.acme"))
        assert [entry["act"] for entry in theirs.get("/actions").json()["actions"]] == ["put", "put"]

    def test_entries_of_the_action_log_are_kept_for_so_many_days(self, rig: ApiRig):
        rig.client.put("/uploads/inbox/acme/p.csv", content=b"x")
        for day in ("2020-01-01", "2020-01-02"):
            rig.stack.store.put(f"{ACTIONS}{day}/120000.000000-01234567.acme.json", b'{"act": "old", "tenant": "acme"}')
        rig.stack.store.put(f"{ACTIONS}notes/mine.json", b"{}")
        log = rig.context.actions
        log.tidy(0)
        assert len(log.latest(10, tenant="acme")) == 3
        log.tidy(30)
        assert [entry["act"] for entry in log.latest(10, tenant="acme")] == ["put"]
        assert rig.stack.store.head(f"{ACTIONS}notes/mine.json") is not None

    def test_a_request_of_many_long_keys_is_known_again(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(rig.context.submissions, "record", lambda _tenant, keys, **_: Accepted(keys))
        body = {"tenant": "acme", "keys": [f"inbox/acme/{'k' * 900}{n}.csv" for n in range(1000)]}
        first, again = (rig.client.post("/jobs", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2))
        assert (first.status_code, again.status_code) == (202, 202)
        assert again.headers["idempotency-replayed"] == "true"

    def test_wrong_tokens_lock_nobody_else_out(self, rig: ApiRig):
        good = rig.from_afar(rig.token("reader"))
        rig.stop_the_clock()
        codes = [rig.from_afar(f"ade_x_{n}").get("/session").status_code for n in range(60)]
        assert codes[-1] == 429
        assert good.get("/session").status_code == 200


class TestManyRequests:
    def test_one_token_has_so_many_at_work_and_no_more(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(guarding, "MOST_OF_ONE", 1)
        one, other = (rig.from_afar(rig.token("reader")) for _ in range(2))
        job, answers = rig.job("a"), []

        def ask_meanwhile(*_: Any) -> bytes:
            answers.extend(client.get("/session").status_code for client in (one, other))
            return b""

        monkeypatch.setattr(Facade, "log", ask_meanwhile)
        first = one.get(f"/jobs/{job.job_id}/logs")
        assert (answers, first.status_code, one.get("/session").status_code) == ([429, 200], 200, 200)

    def test_a_stream_is_at_work_until_it_ends(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        rig.job("a", state=State.SUCCEEDED, ended_at=1.0)
        (job,) = rig.client.get("/jobs").json()["jobs"]
        poll, seen = rig.context.followers._poll, []

        def note() -> bool:
            seen.append(rig.context.guard._at_work.total())
            return poll()

        monkeypatch.setattr(rig.context.followers, "_poll", note)
        rig.client.get(f"/jobs/{job['job_id']}/logs?follow=true")
        assert (seen[0], rig.context.guard._at_work.total()) == (1, 0)


class TestStreams:
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

    def test_a_revoked_token_gets_no_further_event(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(following, "_SILENCE_SECONDS", 0.05)
        token = rig.token("reader")
        ask = b"GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\nConnection: close\r\n\r\n"
        with served(rig) as at, socket.create_connection(at) as watcher:
            watcher.sendall(ask % token.encode())
            watcher.settimeout(PATIENCE)
            seen = b""
            while b"retry:" not in seen:
                seen += watcher.recv(65536)
            rig.context.access.revoke(token.split("_")[1])
            everything(watcher)  # until the server closes it

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
        monkeypatch.setattr(clients, "HEAD_SECONDS", 0.2)
        with served(rig) as at, socket.create_connection(at) as caller:
            caller.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            caller.settimeout(PATIENCE)
            seen = b""
            while not seen.endswith(b"}"):
                seen += caller.recv(65536)
            caller.sendall(b"GET /hea")
            assert everything(caller) == b""

    def test_a_body_that_trickles_is_given_up(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(bodies, "_READ_SECONDS", 0.2)
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

    @pytest.mark.parametrize("part", ["output", "logs"], ids=["a file in pieces", "an answer at once"])
    def test_who_does_not_read_the_answer_is_cut_off(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch, part: str):
        monkeypatch.setattr(clients, "READER_SECONDS", 0.05)
        cut, lost = threading.Event(), clients.BoundedProtocol.connection_lost

        def connection_lost(self: clients.BoundedProtocol, exc: Exception | None) -> None:
            lost(self, exc)
            cut.set()

        monkeypatch.setattr(clients.BoundedProtocol, "connection_lost", connection_lost)
        with self.asked_for_much(rig, monkeypatch, part):
            assert cut.wait(PATIENCE)

    def test_who_reads_slowly_is_served_although_the_system_takes_nothing_more(
        self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(clients, "READER_SECONDS", 30 * PATIENCE)
        monkeypatch.setattr(clients, "_SLOWEST", 1 / clients.READER_SECONDS)
        waits: queue.SimpleQueue[clients.BoundedProtocol] = queue.SimpleQueue()
        await_reader = clients.BoundedProtocol._await_reader

        def note(self: clients.BoundedProtocol, before: int | None) -> None:
            await_reader(self, before)
            waits.put(self)

        monkeypatch.setattr(clients.BoundedProtocol, "_await_reader", note)
        with self.asked_for_much(rig, monkeypatch, "output") as caller:
            one = waits.get(timeout=PATIENCE)
            kept, timer = one.transport.get_write_buffer_size(), one._unread
            assert timer
            for _ in range(100):
                caller.recv(4096)
            one.loop.call_soon_threadsafe(timer._run)  # its time is up
            waits.get(timeout=PATIENCE)
            assert (one.transport.get_write_buffer_size(), one.transport.is_closing()) == (kept, False)

    @contextlib.contextmanager
    def asked_for_much(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch, part: str) -> Iterator[socket.socket]:
        """A client with a small buffer that has asked for more than the system keeps for a socket."""
        large = b"x" * 16 * 1024 * 1024
        job = rig.job("a", state=State.SUCCEEDED, ended_at=1.0, files={"normalized.xlsx": large})
        monkeypatch.setattr(job_routes, "_LOG_PIECE", len(large))
        monkeypatch.setattr(Facade, "log", lambda *_: large)
        with served(rig) as at, socket.socket() as caller:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            caller.settimeout(PATIENCE)
            caller.connect(at)
            ask = f"GET /jobs/{job.job_id}/{part} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            caller.sendall(ask.encode())
            yield caller

    def test_whoever_sends_too_much_reads_why_it_was_refused(self, rig: ApiRig):
        body = whole_form(*(part(f"a{n}", b"x" * 1000) for n in range(4000)))
        with served(rig) as at, socket.create_connection(at) as caller:
            head = f"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: {FORM}\r\nConnection: close\r\n"
            caller.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            assert b"Too many fields" in everything(caller)


class TestUnfinishedBodies:
    """Requests that are never finished hold neither memory nor disk beyond a budget of whoever sends them."""

    @staticmethod
    def begin(at: tuple[str, int], target: str, sent: bytes, more: int = 1, **headers: str) -> socket.socket:
        """A request of which the last bytes do not come."""
        given = {"Host": "localhost", "X-Forwarded-For": "192.0.2.1", "Content-Length": str(len(sent) + more)} | headers
        caller = socket.create_connection(at)
        caller.settimeout(PATIENCE)
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items())
        caller.sendall(f"{target} HTTP/1.1\r\n{lines}\r\n".encode() + sent)
        return caller

    @pytest.mark.parametrize("target", ["POST /session", "POST /login", "POST /logout"])
    @pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded", FORM])
    def test_a_stranger_is_refused_before_a_large_body_is_read(
        self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch, target: str, kind: str
    ):
        kept: list[int] = []
        take = bodies.Bodies.reserve

        def note(self: bodies.Bodies, who: str | None, size: int, *, on_disk: bool) -> None:
            kept.append(size)
            take(self, who, size, on_disk=on_disk)

        monkeypatch.setattr(bodies.Bodies, "reserve", note)
        monkeypatch.setattr(bodies, "_READ_AWAY_SECONDS", 0.2)
        with served(rig) as at, self.begin(at, target, b"x" * 100_000, 4_000_000, Content_Type=kind) as caller:
            assert caller.recv(65536).split()[1] in (b"413", b"303", b"415")
        assert sum(kept) <= bodies.LARGEST_OF_STRANGERS

    def test_a_stranger_who_does_not_say_how_much_comes_is_cut_too(self, rig: ApiRig):
        head = b"POST /session HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        with served(rig) as at, socket.create_connection(at) as caller:
            caller.settimeout(PATIENCE)
            caller.sendall(head + b"4000\r\n" + b"x" * 0x4000 + b"\r\n0\r\n\r\n")
            assert caller.recv(65536).split()[1] == b"413"

    def test_a_stranger_has_little_time(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(bodies, "_STRANGER_SECONDS", 0.1)
        with served(rig) as at, self.begin(at, "POST /session", b"{", Content_Type="application/json") as caller:
            assert caller.recv(65536).split()[1] == b"408"

    def test_one_address_has_so_many_at_work_and_no_more(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(guarding, "MOST_OF_ONE", 1)
        monkeypatch.setattr(bodies, "_STRANGER_SECONDS", PATIENCE)
        with served(rig) as at, self.begin(at, "POST /session", b"{") as first:
            seen = b"4"
            while seen != b"429":  # once the first has been read
                with self.begin(at, "POST /session", b'{"token": "x"', Content_Length="14") as second:
                    second.sendall(b"}")
                    seen = second.recv(65536).split()[1]
            first.sendall(b"}")
            assert first.recv(65536).split()[1] == b"400"

    def test_the_memory_of_one_token_is_not_that_of_another(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(bodies, "MEMORY_OF_ONE", 100_000)
        one, other = ({"Authorization": f"Bearer {rig.token('sender', name)}"} for name in ("acme", "globex"))
        with served(rig) as at, contextlib.ExitStack() as opened:
            for _ in range(2):
                opened.enter_context(self.begin(at, "POST /uploads", b"[" * 60_000, **one))
            late = opened.enter_context(self.begin(at, "POST /uploads", b"[" * 60_000, **one))
            assert late.recv(65536).split()[1] == b"429"
            with self.begin(at, "POST /uploads", b"[" * 60_000, more=0, **other) as caller:
                assert caller.recv(65536).split()[1] == b"400"

    def test_all_together_have_a_budget_of_memory(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(bodies, "MEMORY", 100_000)
        known = [{"Authorization": f"Bearer {rig.token('sender', f'tenant{n}')}"} for n in range(3)]
        with served(rig) as at, contextlib.ExitStack() as opened:
            callers = [opened.enter_context(self.begin(at, "POST /uploads", b"[" * 60_000, **who)) for who in known]
            answered, _, _ = select.select(callers, [], [], PATIENCE)
            assert answered[0].recv(65536).split()[1] == b"503"

    def test_files_on_their_way_in_are_on_the_disk_and_open_one_at_a_time(self, rig: ApiRig):
        sent = b"".join(part("files", b"x" * 50_000, file=f"{n}.csv") for n in range(50))
        who = {"Authorization": f"Bearer {rig.token('sender', 'acme')}"}
        with served(rig) as at, self.begin(at, "POST /jobs", sent, Content_Type=FORM, **who):
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until:
                there = [path for path in rig.stack.run_dir.glob("console-*/request-*/*") if path.stat().st_size]
                if len(there) == 50:
                    break
            assert len(there) == 50
            held = [str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
            assert sum("/request-" in name for name in held) <= 1

    def test_a_form_of_many_fields_is_no_way_to_fill_memory(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(bodies, "MEMORY_OF_ONE", 100_000)
        sender = rig.from_afar(rig.token("sender", "acme"))
        large = whole_form(part("path", b"x" * 200_000))
        assert sender.post("/jobs", content=large, headers={"Content-Type": FORM}).status_code == 429

    @pytest.mark.parametrize("target", ["PUT /uploads/inbox/acme/a.csv", "POST /jobs"])
    def test_uploads_of_one_token_leave_room_for_others(
        self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch, target: str
    ):
        monkeypatch.setattr(bodies, "DISK_OF_ONE", 100_000 / (500 * 1024 * 1024))
        who = {"Authorization": f"Bearer {rig.token('sender', 'acme')}", "Content_Type": FORM}
        sent = part("files", b"x" * 60_000, file="a.csv")
        with served(rig) as at, contextlib.ExitStack() as opened:
            callers = [opened.enter_context(self.begin(at, target, sent, **who)) for _ in range(2)]
            answered, _, _ = select.select(callers, [], [], PATIENCE)
            assert answered[0].recv(65536).split()[1] == b"429"
            assert (
                rig.from_afar(rig.token("sender", "globex"))
                .put("/uploads/inbox/globex/a.csv", content=b"a,b\n")
                .is_success
            )

    def test_a_disk_that_is_full_is_said(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(bodies, "DISK_LEFT_FREE", 1 << 60)
        assert rig.submit().status_code == 507
        assert rig.client.put("/uploads/inbox/acme/a.csv", content=b"x").status_code == 507

    def test_what_was_answered_no_longer_counts(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(bodies, "MEMORY_OF_ONE", 1000)
        sender = rig.from_afar(rig.token("sender", "acme"))
        asked = {"tenant": "acme", "path": "p" * 500, "names": ["a.csv"]}
        assert [sender.post("/uploads", json=asked).status_code for _ in range(5)] == [200] * 5


class TestIdleConnections:
    """Clients that connect and say nothing; the numbers are smaller than those of a real server."""

    @staticmethod
    def ask(at: tuple[str, int]) -> bytes:
        with socket.create_connection(at) as caller:
            caller.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return everything(caller).split()[1]

    def test_they_make_room_for_whoever_asks(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(server_module, "allow_files", lambda: 20)
        with served(rig) as at, contextlib.ExitStack() as opened:
            silent = [opened.enter_context(socket.create_connection(at)) for _ in range(60)]
            assert [self.ask(at) for _ in range(5)] == [b"200"] * 5
            assert everything(silent[0]) == b""  # the first to come is the first to go

    def test_a_request_at_work_is_never_cut_for_another(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(server_module, "allow_files", lambda: 5)
        with served(rig) as at, socket.create_connection(at) as watcher, contextlib.ExitStack() as opened:
            watcher.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            watcher.settimeout(PATIENCE)
            seen = watcher.recv(65536)
            for _ in range(20):
                opened.enter_context(socket.create_connection(at))
            assert self.ask(at) == b"200"
            rig.job("a", state=State.QUEUED)
            while b'"QUEUED"' not in seen:
                part = watcher.recv(65536)
                assert part, "the stream was cut"
                seen += part

    def test_requests_of_strangers_make_room_too(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        """Of unknown callers, what is read away or waits for its body is no reason to keep others out."""
        monkeypatch.setattr(server_module, "allow_files", lambda: 10)
        monkeypatch.setattr(bodies, "_STRANGER_SECONDS", PATIENCE)
        monkeypatch.setattr(bodies, "_READ_AWAY_SECONDS", PATIENCE)
        with served(rig) as at, contextlib.ExitStack() as opened:
            for n in range(30):
                target = ("POST /session", "POST /jobs")[n % 2]
                opened.enter_context(TestUnfinishedBodies.begin(at, target, b"{", 1000))
            assert [self.ask(at) for _ in range(5)] == [b"200"] * 5

    def test_the_address_with_most_of_them_loses_first(self):
        """One address fills the server; the single silent connection of another is kept."""
        gone: list[object] = []

        class One:
            def __init__(self, address: str) -> None:
                self.address = address

            def let_go(self) -> None:
                gone.append(self)
                every.closed(self)  # type: ignore[arg-type]

        every = clients.Clients(most=10)
        other = One("198.51.100.1")
        crowd = [One("192.0.2.1") for _ in range(30)]
        for one in (other, *crowd):
            every.opened(one)  # type: ignore[arg-type]
        assert gone == crowd[:21]


class TestEveryErrorIsAProblem:
    """Whatever is wrong, and whoever notices it: the answer is problem+json that says what to do."""

    RAW: ClassVar[dict[str, tuple[bytes, int]]] = {
        "no HTTP": (b"hello there\r\n\r\n", 400),
        "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40) + b"\r\n\r\n", 400),
        "a long head": (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 40_000, 431),
        "many headers": (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 8000, 431),
        "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
        "a bad length": (b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
        "two lengths": (b"POST /pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        "an unknown path": (b"GET /nothing/here HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        "an empty path part": (b"GET //jobs HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        "a path that is no UTF-8": (b"GET /jobs/%ff%fe HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        "a key that is no UTF-8": (b"PUT /uploads/inbox/acme/M%FCller.csv HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 400),
        "a key that nobody reads": (b"PUT /uploads/inbox/acme/a.csv.part HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 400),
        "a hidden key": (b"PUT /uploads/inbox/acme/.a.csv HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 400),
        "an unknown method": (b"BREW /jobs HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        "another method": (b"PUT /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405),
        "a long URL": (b"GET /jobs?text=" + b"x" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        "a large body": (b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\n", 413),
        "another host": (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        "another site": (b"POST /pause HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nContent-Length: 0\r\n\r\n", 403),
        "a wrong token": (b"GET /jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ade_no_no\r\n\r\n", 401),
        "another way to sign in": (b"GET /jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic eDp5\r\n\r\n", 401),
    }  # fmt: skip

    @pytest.fixture(scope="class")
    @classmethod
    def at(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
        with api_rig(tmp_path_factory.mktemp("data")) as rig, served(rig) as at:
            yield at

    @pytest.mark.parametrize("name", RAW)
    def test_on_the_wire(self, at: tuple[str, int], name: str):
        sent, status = self.RAW[name]
        with socket.create_connection(at) as caller:
            caller.sendall(sent)
            caller.settimeout(PATIENCE)
            seen = b""
            while not seen.endswith(b"}"):
                more = caller.recv(65536)
                assert more, seen
                seen += more
        head, _, body = seen.partition(b"\r\n\r\n")
        told = json.loads(body)
        assert (int(head.split()[1]), told["status"], b"application/problem+json" in head) == (status, status, True)
        assert told["detail"]

    BODIES: ClassVar[dict[str, tuple[str, str, bytes, int]]] = {
        "bad JSON": ("/pause", "application/json", b"{", 400),
        "deep JSON": ("/pause", "application/json", b"[" * 100_000, 400),
        "bad UTF-8 in JSON": ("/pause", "application/json", b'{"tenant": "\xff"}', 400),
        "JSON that is a number": ("/pause", "application/json", b"NaN", 400),
        "another type": ("/pause", "text/csv", b"a;b", 415),
        "a form without its boundary": ("/jobs", "multipart/form-data", b"x", 400),
        "a form that ends early": ("/jobs", FORM, part("tenant", b"acme")[:-6], 400),
        "a form with a broken part": ("/jobs", FORM, b"--B\r\nContent-Disposition form-data\r\n\r\nx\r\n--B--\r\n", 400),
        "a form of bad UTF-8": ("/jobs", FORM, part("tenant", b"\xff\xfe") + part("manifest", b"{}") + part("files", b"", file="p.csv") + b"--B--\r\n", 400),
        "a manifest that is none": ("/jobs", FORM, part("tenant", b"acme") + part("manifest", b"\xff{") + part("files", b"x", file="p.csv") + b"--B--\r\n", 422),
        "a login of another kind": ("/login", "multipart/form-data", b"x", 400),
    }  # fmt: skip

    @pytest.mark.parametrize("name", BODIES)
    def test_in_a_body(self, rig: ApiRig, name: str):
        path, kind, body, status = self.BODIES[name]
        answer = rig.client.post(path, content=body, headers={"Content-Type": kind})
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
        assert answer.json()["detail"]

    def test_a_range_beyond_the_end(self, rig: ApiRig):
        job = rig.job("a", state=State.SUCCEEDED, ended_at=1.0, files={"artifact.json": b"{}"})
        answer = rig.client.get(f"/jobs/{job.job_id}/artifact", headers={"Range": "bytes=100-"})
        assert (answer.status_code, answer.headers["content-range"]) == (416, "bytes */2")
        assert answer.json()["status"] == 416

    @pytest.mark.parametrize("wanted", ["bytes", "bytes=", "bytes=x-y", "rows=1-2", "bytes=5-2", "0-1"])
    def test_a_range_that_is_none_is_ignored(self, rig: ApiRig, wanted: str):
        job = rig.job("a", state=State.SUCCEEDED, ended_at=1.0, files={"artifact.json": b'{"artifact_version": 1}'})
        answer = rig.client.get(f"/jobs/{job.job_id}/artifact", headers={"Range": wanted})
        assert (answer.status_code, answer.json()) == (200, {"artifact_version": 1})

    def test_a_file_that_vanishes_while_it_is_sent(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        job = rig.job("a", state=State.SUCCEEDED, ended_at=1.0, files={"artifact.json": b"{}"})
        monkeypatch.setattr(rig.context.spool, "get", lambda *_: rig.stack.run_dir / "gone")
        answer = rig.client.get(f"/jobs/{job.job_id}/artifact")
        assert (answer.status_code, answer.json()["status"]) == (500, 500)


class TestWhileTheStoreHangs:
    def test_health_answers_though_every_thread_waits(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        """An orchestrator would kill a server that only waits for its bucket."""
        free, busy = threading.Event(), threading.Semaphore(0)

        def hang(*_: Any, **__: Any) -> None:
            busy.release()
            free.wait(PATIENCE)

        monkeypatch.setattr(rig.context.facade, "senders", hang)
        with TestClient(rig.app, base_url="http://127.0.0.1", client=HERE) as client:
            callers = [threading.Thread(target=client.get, args=("/senders",)) for _ in range(guarding.THREADS)]
            for caller in callers:
                caller.start()
            for _ in callers:
                assert busy.acquire(timeout=PATIENCE)
            try:
                answered = threading.Event()
                asking = threading.Thread(target=lambda: client.get("/health").raise_for_status() and answered.set())
                asking.start()
                assert answered.wait(PATIENCE)
            finally:
                free.set()
                for caller in (*callers, asking):
                    caller.join()

    @pytest.mark.parametrize(
        "tokens", [[("reader", None)], [("reader", "acme"), ("sender", "acme"), ("reviewer", "acme")]]
    )
    def test_one_token_or_tenant_leaves_threads_to_others(
        self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch, tokens: list[tuple[str, str | None]]
    ):
        free, busy = threading.Event(), threading.Semaphore(0)

        def hang(*_: Any, **__: Any) -> list[Any]:
            busy.release()
            free.wait(PATIENCE)
            return []

        *some, other = (
            {"Authorization": f"Bearer {rig.token(scope, tenant)}"} for scope, tenant in [*tokens, ("reader", None)]
        )
        monkeypatch.setattr(rig.context.facade, "senders", hang)
        with TestClient(rig.app, base_url="http://127.0.0.1", client=HERE) as client:
            asks = [{"args": ("/senders",), "kwargs": {"headers": one}} for one in some]
            callers = [threading.Thread(target=client.get, **one) for one in asks for _ in range(guarding.THREADS + 1)]
            for caller in callers:
                caller.start()
            for _ in range(guarding.THREADS_OF_ONE):
                assert busy.acquire(timeout=PATIENCE)
            try:
                assert client.get("/jobs", headers=other).status_code == 200
                assert not free.is_set()
            finally:
                free.set()
                for caller in callers:
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
        assert sample("n", {}, 12345678) == "n 12345678"
        assert sample("n", {}, 0.25) == "n 0.25"

    def test_a_refusal_does_not_tell_where_the_bucket_is(self, rig: ApiRig):
        rig.client.put("/uploads/inbox/acme/x.csv", content=b"x")
        answer = rig.client.put("/uploads/inbox/acme/x.csv/y.csv", content=b"x")
        assert answer.status_code == 400
        assert str(rig.stack.settings.storage_data_dir) not in answer.text
