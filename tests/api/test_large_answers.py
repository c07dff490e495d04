"""No answer and no page grows with what tenants wrote: lists are pages, and documents have room for a few MiB."""

import json

import pytest

from console.api import service_routes
from core.jobs import Review, State
from core.manifests import parse_manifest
from infra import apart
from tests.support.console import MANIFEST, ApiRig

HTML = {"Accept": "text/html"}
AT = "2026-01-31T00:00:00Z"


def memory(*headers: str) -> bytes:
    told = [{"header": header, "field": "name", "at": AT} for header in headers]
    return json.dumps({"memory": 1, "headers": told}).encode()


def put_memory(rig: ApiRig, workflow: str, body: bytes, tenant: str = "acme") -> str:
    return rig.stack.store.put(f"configs/{tenant}/{workflow}.memory.json", body).key


def walk(rig: ApiRig, path: str, of: str, **query):
    """All pages of a list."""
    cursor = None
    while True:
        page = rig.client.get(path, params=query | ({"cursor": cursor} if cursor else {})).json()
        yield page[of]
        cursor = page["cursor"]
        if cursor is None:
            return


class TestMemories:
    def test_they_come_in_pages_that_miss_none(self, rig: ApiRig):
        keys = [
            put_memory(rig, f"w{n}", memory(f"h{n}"), tenant) for tenant in ("acme", "b", "acme.x") for n in range(3)
        ]
        found = [[one["key"] for one in page] for page in walk(rig, "/memory", "memories", limit=2)]
        assert max(map(len, found)) == 2
        assert sorted(key for page in found for key in page) == sorted(keys)
        assert [one["workflow"] for page in walk(rig, "/memory", "memories", tenant="b") for one in page] == [
            "w0",
            "w1",
            "w2",
        ]

    def test_an_answer_has_room_for_so_many_bytes(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(service_routes, "_ANSWER_BYTES", 500)
        for n in range(5):
            put_memory(rig, f"w{n}", memory(*"abc"))
        put_memory(rig, "large", memory(*map(str, range(50))))
        found = list(walk(rig, "/memory", "memories"))
        assert len(found) > 2
        assert {one["workflow"]: one["memory"] is None for page in found for one in page} == {
            "large": True, **{f"w{n}": False for n in range(5)}
        }  # fmt: skip

    def test_what_they_hold_is_given_as_it_is_and_a_broken_one_is_null(self, rig: ApiRig):
        put_memory(rig, "bom", b"\xef\xbb\xbf" + memory("Straße"))
        put_memory(rig, "broken", b'{"memory": 1, "headers": [{}]}')
        put_memory(rig, "trick", b'{}], "cursor": "x", "y": [')
        (page,) = walk(rig, "/memory", "memories")
        assert [one["memory"] for one in page] == [json.loads(memory("Straße")), None, None]

    def test_a_page_shows_the_newest_of_a_large_one_without_reading_it_here(
        self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch
    ):
        put_memory(rig, "people", memory(*(f"h{n}" for n in range(3000))))
        calls = []
        monkeypatch.setattr("infra.parsing.apart", lambda *given: (calls.append(given), apart.apart(*given))[1])
        text = rig.client.get("/sender?tenant=acme&workflow=people", headers=HTML).text
        assert "3,000 headers" in text
        assert text.count("<li>") < 300
        assert calls

    def test_the_list_of_senders_reads_no_memory(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        for n in range(4):
            put_memory(rig, f"w{n}", memory(*"abc"))
        monkeypatch.setattr("console.web.sender_pages.memory_summary", None)
        assert rig.client.get("/senders", headers=HTML).status_code == 200


def reviewed(rig: ApiRig, name: str, *, questions: int = 1, fields: int = 3, text: str = "Which?"):
    manifest = MANIFEST | {"name": name, "fields": [{"name": f"{'f' * 90}{n}"} for n in range(fields)]}
    parse_manifest(json.dumps(manifest).encode())
    info = rig.stack.store.put(f"inbox/acme/{name}/manifest.json", json.dumps(manifest).encode())
    asked = [
        {"id": f"q{n}", "kind": "column", "text": text, "column": "A", "candidates": [{"value": None, "label": "none"}]}
        for n in range(questions)
    ]
    files = {"review.json": json.dumps({"review": 1, "questions": asked}).encode()}
    return rig.job(
        name, files=files, state=State.REVIEW, manifest=info.ref, review=Review(questions=questions, on_expiry="fail")
    )


class TestReviews:
    def test_the_page_names_the_fields_once_however_many_questions_there_are(self, rig: ApiRig):
        reviewed(rig, "wide", questions=200, fields=1500)
        page = rig.client.get("/review", headers=HTML)
        assert page.status_code == 200
        assert page.text.count("data-other") == 200
        assert len(page.content) < 1_000_000
        assert page.text.count("<option>") == 1500

    def test_an_answer_has_room_for_so_many_bytes_and_misses_none(self, rig: ApiRig, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(service_routes, "_ANSWER_BYTES", 2500)
        jobs = [reviewed(rig, f"r{n}", text="x" * 1000) for n in range(5)]
        large = reviewed(rig, "large", text="x" * 3000)
        found = list(walk(rig, "/review", "reviews"))
        assert len(found) > 2
        assert {one["job"]["job_id"]: one["review"] is None for page in found for one in page} == {
            large.job_id: True, **{job.job_id: False for job in jobs}
        }  # fmt: skip
