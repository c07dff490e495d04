"""Jobs over HTTP: submitted, listed, followed, fetched, acted on."""

import io
import json
import re
import tempfile
import zipfile
from pathlib import Path

import pytest

from core.jobs import State
from core.keys import decision_key
from tests.contract.jobs import NOW
from tests.support.console import MANIFEST, ApiRig, api_rig

FILES = {"artifact.json": b'{"a": 1}', "normalized.xlsx": b"PK-book", "logs.txt": b"one\ntwo\n", "report.html": b"<p>"}


class TestSubmitting:
    def test_a_form_becomes_a_job_at_once(self, rig: ApiRig):
        answer = rig.submit()
        assert answer.status_code == 202
        (job,) = answer.json()["jobs"]
        assert (job["tenant"], job["workflow"], job["state"]) == ("acme", "people", "QUEUED")
        assert answer.headers["location"] == f"/jobs/{job['job_id']}"
        assert rig.stack.table.get(job["job_id"]) is not None
        key, _ = answer.json()["keys"]
        assert re.fullmatch(r"inbox/acme/people/[0-9a-f]{12}/p\.csv", key)
        assert rig.stack.store.read(key, limit=100) == b"Name,Age\nann,3\n"

    def test_two_drops_with_the_same_file_name_are_two_jobs(self, rig: ApiRig):
        drops = (b"Name,Age\nann,3\n", b"Name,Age\nbob,4\n")
        ids = [rig.submit(files=[("files", ("p.csv", body))]).json()["jobs"][0]["job_id"] for body in drops]
        assert [rig.stack.table.get(one).state for one in ids] == [State.QUEUED, State.QUEUED]

    def test_a_drop_with_another_manifest_leaves_those_before_alone(self, rig: ApiRig):
        first = rig.submit().json()["jobs"][0]
        changed = json.dumps(MANIFEST | {"fields": [{"name": "name"}]})
        rig.submit(data={"tenant": "acme", "manifest": changed}, files=[("files", ("q.csv", b"Name\nbob\n"))])
        assert len(rig.client.get("/jobs").json()["jobs"]) == 2
        assert rig.stack.table.get(first["job_id"]).state is State.QUEUED

    def test_the_same_drop_again_is_the_same_job(self, rig: ApiRig):
        assert rig.submit().json()["jobs"][0]["job_id"] == rig.submit().json()["jobs"][0]["job_id"]
        assert len(rig.client.get("/jobs").json()["jobs"]) == 1

    def test_with_a_path_a_new_version_supersedes(self, rig: ApiRig):
        data = {"tenant": "acme", "manifest": json.dumps(MANIFEST), "path": "daily"}
        drops = (b"Name,Age\nann,3\n", b"Name,Age\nbob,4\n")
        ids = [rig.submit(data=data, files=[("files", ("p.csv", body))]).json()["jobs"][-1]["job_id"] for body in drops]
        assert [rig.stack.table.get(one).state for one in ids] == [State.SKIPPED, State.QUEUED]

    def test_the_manifest_may_be_a_file(self, rig: ApiRig):
        files = [("manifest", ("m.json", json.dumps(MANIFEST))), ("files", ("p.csv", b"Name,Age\n"))]
        assert rig.client.post("/jobs", data={"tenant": "acme"}, files=files).status_code == 202

    def test_a_config_package_comes_along(self, rig: ApiRig):
        data = {"tenant": "acme", "manifest": json.dumps(MANIFEST | {"config": "config/"}), "path": "a/b"}
        files = [("files", ("p.csv", b"Name,Age\n")), ("files", ("config/rules.py", b"x = 1\n"))]
        answer = rig.client.post("/jobs", data=data, files=files)
        assert [job["state"] for job in answer.json()["jobs"]] == ["QUEUED"]
        assert rig.stack.store.head("inbox/acme/a/b/config/rules.py") is not None

    @pytest.mark.parametrize(
        ("data", "name", "status"),
        [
            ({"manifest": "{}"}, "p.csv", 422),
            ({"manifest": "no json"}, "p.csv", 422),
            ({"tenant": "../x"}, "p.csv", 400),
            ({"tenant": ""}, "p.csv", 400),
            ({"path": "../other"}, "p.csv", 400),
            ({"path": "a//b"}, "p.csv", 400),
            ({"data_time": "noon"}, "p.csv", 400),
            ({"surprise": "1"}, "p.csv", 400),
            ({}, "p.pdf", 422),
            ({}, "manifest.json", 422),
            ({}, "../../p.csv", 400),
            ({}, "p.csv.decision.json", 422),
            ({}, ".hidden.csv", 422),
        ],
    )
    def test_what_does_not_fit_is_refused_and_leaves_nothing(self, rig: ApiRig, data, name: str, status: int):
        given = {"tenant": "acme", "manifest": json.dumps(MANIFEST)} | data
        answer = rig.client.post("/jobs", data=given, files=[("files", (name, b"a,b\n"))])
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert list(rig.stack.store.keys("inbox/")) == []

    def test_an_invalid_manifest_is_reported_line_by_line(self, rig: ApiRig):
        data = {"tenant": "acme", "manifest": json.dumps(MANIFEST | {"fields": 7, "nonsense": 1})}
        told = rig.submit(data=data).json()
        assert {problem["path"] for problem in told["problems"]} >= {"$.fields", "$.nonsense"}

    def test_keys_that_stand_in_the_inbox_are_taken_up(self, rig: ApiRig):
        folder = "inbox/acme/people/"
        rig.stack.store.put(f"{folder}p.csv", b"Name,Age\n")
        rig.stack.store.put(f"{folder}manifest.json", json.dumps(MANIFEST).encode())
        keys = {"tenant": "acme", "keys": [f"{folder}p.csv", f"{folder}manifest.json"]}
        assert len(rig.client.post("/jobs", json=keys).json()["jobs"]) == 1
        gone = keys | {"keys": [f"{folder}q.csv"]}
        assert "q.csv" in rig.client.post("/jobs", json=gone).json()["detail"]

    def test_uploads_go_through_us_where_the_store_has_no_links(self, rig: ApiRig):
        wanted = {"tenant": "acme", "path": "people", "names": ["p.csv"]}
        (upload,) = rig.client.post("/uploads", json=wanted).json()["uploads"]
        assert rig.client.put(upload["url"], content=b"Name,Age\n").json()["key"] == upload["key"]
        assert rig.stack.store.read(upload["key"], limit=100) == b"Name,Age\n"

    def test_a_full_backlog_says_when_to_come_again(self, tmp_path):
        with api_rig(tmp_path, queue_size=2) as rig:
            for n in range(2):
                rig.job(f"{n}", state=State.QUEUED)
            answer = rig.submit()
            assert answer.status_code == 429
            assert int(answer.headers["retry-after"]) > 0
            assert rig.submit(tenant="other").status_code == 202

    def test_a_body_has_a_bound(self, tmp_path):
        with api_rig(tmp_path, console_body_mb=1) as rig:
            large = b"x" * (2 * 1024 * 1024)
            assert rig.submit(files=[("files", ("p.csv", large))]).status_code == 413
            assert rig.client.put("/uploads/inbox/acme/p.csv", content=iter([large])).status_code == 413


class TestTheSameAgain:
    def test_a_key_makes_nothing_twice(self, rig: ApiRig):
        first = rig.submit(headers={"Idempotency-Key": "k1"})
        again = rig.submit(headers={"Idempotency-Key": "k1"})
        assert again.headers["idempotency-replayed"] == "true"
        assert again.json()["keys"] == first.json()["keys"]
        assert len(rig.client.get("/actions").json()["actions"]) == 1

    def test_a_key_is_for_one_request(self, rig: ApiRig):
        rig.submit(headers={"Idempotency-Key": "k1"})
        other = [("files", ("p.csv", b"Name,Age\nbob,4\n"))]
        assert rig.submit(headers={"Idempotency-Key": "k1"}, files=other).status_code == 422

    def test_what_failed_may_be_tried_again_under_its_key(self, tmp_path):
        with api_rig(tmp_path, queue_size=1) as rig:
            job = rig.job("a", state=State.QUEUED)
            assert rig.submit(headers={"Idempotency-Key": "k1"}).status_code == 429
            rig.stack.table.remove(job)
            assert rig.submit(headers={"Idempotency-Key": "k1"}).status_code == 202

    def test_keys_of_two_callers_are_apart(self, rig: ApiRig):
        one, other = (rig.from_afar(rig.token("sender", tenant)) for tenant in ("acme", "other"))
        assert rig.submit(one, headers={"Idempotency-Key": "k"}).status_code == 202
        assert rig.submit(other, tenant="other", headers={"Idempotency-Key": "k"}).status_code == 202


class TestLooking:
    def test_every_filter_may_be_in_the_url(self, rig: ApiRig):
        wanted = rig.failed("a", subject="2026/Plan.csv", workflow="plans")
        rig.job("b", state=State.QUEUED)
        for query in (
            "state=FAILED",
            "state=FAILED&state=TIMED_OUT",
            "text=plan",
            "verdict=rule_error",
            "fault=config",
            "workflow=plans",
            "ended_from=0&ended_to=2",
            "ended_to=1970-01-01T00:00:10Z",
        ):
            assert [j["job_id"] for j in rig.client.get(f"/jobs?{query}").json()["jobs"]] == [wanted.job_id], query

    def test_results_are_listed_by_their_outcome(self, rig: ApiRig):
        findings = {"clean": {}, "warnings": {"warning": 1}, "errors": {"error": 2, "warning": 1}}
        jobs = {
            outcome: rig.job(outcome, state=State.SUCCEEDED, ended_at=NOW, summary={"findings": found})
            for outcome, found in findings.items()
        }
        for outcome, job in jobs.items():
            (found,) = rig.client.get(f"/jobs?outcome={outcome}").json()["jobs"]
            assert (found["job_id"], found["outcome"]) == (job.job_id, outcome)
        assert rig.client.get("/overview").json()["recent"]["outcomes"] == dict.fromkeys(findings, 1)

    @pytest.mark.parametrize(
        "query", ["state=NONE", "outcome=good", "limit=0", "limit=501", "colour=red", "cursor=x", "created_from=x"]
    )
    def test_a_wrong_filter_is_reported(self, rig: ApiRig, query: str):
        answer = rig.client.get(f"/jobs?{query}")
        assert answer.status_code == 400
        assert answer.json()["detail"]

    def test_pages_join(self, rig: ApiRig):
        made = {rig.job(f"{n}", created_at=NOW + n).job_id for n in range(7)}
        seen, cursor = [], ""
        while cursor is not None:
            page = rig.client.get("/jobs", params={"limit": 3} | ({"cursor": cursor} if cursor else {})).json()
            seen += [job["job_id"] for job in page["jobs"]]
            cursor = page["cursor"]
        assert (len(seen), set(seen)) == (7, made)

    def test_a_job_has_a_timeline(self, rig: ApiRig):
        told = rig.client.get(f"/jobs/{rig.failed('a').job_id}").json()
        assert {entry["what"] for entry in told["timeline"]} >= {"QUEUED", "error"}

    def test_counts_by_tenant(self, rig: ApiRig):
        rig.failed("a")
        told = rig.client.get("/overview").json()
        assert told["tenants"] == {"acme": {"FAILED": 1}}
        assert told["recent"]["faults"] == {"config": 1}

    def test_metrics_tell_the_truth_of_the_table(self, rig: ApiRig):
        rig.job("a", state=State.QUEUED, tenant='a"b')
        text = rig.client.get("/metrics").text
        assert 'ade_jobs{tenant="a\\"b",state="QUEUED"} 1' in text
        assert "ade_queue_messages" in text


class TestFetching:
    def test_artifact_output_and_files(self, rig: ApiRig):
        at = f"/jobs/{rig.job('a', files=FILES, state=State.SUCCEEDED).job_id}"
        assert rig.client.get(f"{at}/artifact").json() == {"a": 1}
        assert rig.client.get(f"{at}/output").content == b"PK-book"
        shown = rig.client.get(f"{at}/output", params={"name": "report.html", "inline": "true"})
        assert shown.headers["content-security-policy"].startswith("sandbox")
        assert {f["name"] for f in rig.client.get(f"{at}/files").json()["files"]} == set(FILES)

    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("normalized.csv", "text/csv; charset=utf-8"),
            ("normalized.jsonl", "application/x-ndjson"),
            ("normalized.parquet", "application/vnd.apache.parquet"),
            ("normalized-north.csv", "text/csv; charset=utf-8"),
            ("normalized-_other.parquet", "application/vnd.apache.parquet"),
            ("schema.json", "application/json"),
        ],
    )
    def test_every_format_is_served_as_what_it_is(self, rig: ApiRig, name: str, kind: str):
        at = f"/jobs/{rig.job('a', files={**FILES, name: b'abc'}, state=State.SUCCEEDED).job_id}"
        served = rig.client.get(f"{at}/output", params={"name": name})
        assert (served.content, served.headers["content-type"]) == (b"abc", kind)
        packed = zipfile.ZipFile(io.BytesIO(rig.client.get(f"{at}/result.zip").content))
        assert any(one.endswith(f"/{name}") for one in packed.namelist())

    @pytest.mark.parametrize("name", ["../other/x", "..", "no.txt", "a/b", "\x00"])
    def test_no_other_name_leads_anywhere(self, rig: ApiRig, name: str):
        at = f"/jobs/{rig.job('a', files=FILES).job_id}/output"
        assert rig.client.get(at, params={"name": name}).status_code in (400, 404)

    def test_a_zip_of_what_there_is_can_be_resumed(self, rig: ApiRig):
        at = f"/jobs/{rig.failed('a', files={'result.json': b'{}', 'logs.txt': b'x' * 5000}).job_id}/result.zip"
        whole = rig.client.get(at)
        names = zipfile.ZipFile(io.BytesIO(whole.content)).namelist()
        assert sorted(name.rpartition("/")[2] for name in names) == ["logs.txt", "result.json"]
        head = rig.client.get(at, headers={"Range": "bytes=0-99"})
        rest = rig.client.get(at, headers={"Range": "bytes=100-", "If-Range": head.headers["etag"]})
        assert (head.status_code, rest.status_code) == (206, 206)
        assert head.content + rest.content == whole.content

    def test_a_job_that_published_nothing_says_so(self, rig: ApiRig):
        answer = rig.client.get(f"/jobs/{rig.job('a').job_id}/result.zip")
        assert answer.status_code == 404
        assert "QUEUED" in answer.json()["detail"]

    @pytest.mark.parametrize("state", [State.FAILED, State.TIMED_OUT, State.CANCELLED])
    @pytest.mark.parametrize("what", ["output?name=result.json", "result.zip", "artifact"])
    def test_files_of_an_earlier_run_are_not_given_for_an_end_that_is_being_published(
        self, rig: ApiRig, state: State, what: str
    ):
        earlier = {"result.json": b'{"state": "SUCCEEDED"}', "artifact.json": b"{}"}
        at = f"/jobs/{rig.job('a', files=earlier, state=state, ended_at=NOW, unpublished=True).job_id}"
        answer = rig.client.get(f"{at}/{what}")
        assert (answer.status_code, "being published" in answer.json()["detail"]) == (404, True)


class TestFollowing:
    def events(self, rig: ApiRig, job_id: str, **headers: str) -> list[tuple[str, str, dict]]:
        answer = rig.client.get(f"/jobs/{job_id}/logs", headers={"Accept": "text/event-stream"} | headers)
        found = []
        for block in answer.text.split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
            if "event" in lines:
                found.append((lines["event"], lines.get("id", ""), json.loads(lines["data"])))
        return found

    def test_a_log_is_reported_to_its_end(self, rig: ApiRig):
        job = rig.job("a", files=FILES, state=State.SUCCEEDED, fence=2)
        state, log, end = self.events(rig, job.job_id)
        assert state[2]["state"] == "SUCCEEDED"
        assert log == ("log", "2.8", {"text": "one\ntwo\n", "after": 8})
        assert end[:2] == ("end", "2.8")

    def test_it_goes_on_where_the_client_was(self, rig: ApiRig):
        job = rig.job("a", files=FILES, state=State.SUCCEEDED, fence=2)
        told = self.events(rig, job.job_id, **{"Last-Event-ID": "2.4"})
        assert [event[2].get("text") for event in told if event[0] == "log"] == ["two\n"]

    @pytest.mark.parametrize("last", ["1.4", "x", "2.999999999999999999999999", "-1.0", "2.5.6"])
    def test_another_attempt_or_nonsense_begins_anew(self, rig: ApiRig, last: str):
        job = rig.job("a", files=FILES, state=State.SUCCEEDED, fence=2)
        told = self.events(rig, job.job_id, **{"Last-Event-ID": last})
        assert [event[2].get("text") for event in told if event[0] == "log"] == ["one\ntwo\n"]

    def test_polling_gives_what_came_since(self, rig: ApiRig):
        at = f"/jobs/{rig.job('a', files=FILES, state=State.SUCCEEDED).job_id}/logs"
        first = rig.client.get(at).json()
        assert (first["text"], first["after"], first["ended"]) == ("one\ntwo\n", 8, True)
        assert rig.client.get(f"{at}?after=4").json()["text"] == "two\n"
        assert rig.client.get(f"{at}?after=99").json()["text"] == ""


class TestActing:
    def test_retry_cancel_reset_and_remove(self, rig: ApiRig):
        job = rig.failed("a")
        at = f"/jobs/{job.job_id}"
        assert rig.client.post(f"{at}/retry").json()["state"] == "QUEUED"
        assert rig.client.post(f"{at}/retry").status_code == 409
        assert rig.client.post(f"{at}/cancel").json()["state"] == "CANCELLED"
        assert rig.client.post(f"{at}/reset").json()["state"] == "QUEUED"
        assert rig.client.delete(at).json() == {"job_id": job.job_id, "removed": True}
        assert rig.client.get(at).status_code == 404

    def test_all_that_match_after_a_dry_run(self, rig: ApiRig):
        jobs = {rig.failed(f"{n}").job_id for n in range(3)}
        rig.job("waits", state=State.QUEUED)
        asked = {"act": "retry", "filter": {"state": ["FAILED"]}}
        dry = rig.client.post("/jobs/acts", json=asked | {"dry_run": True}).json()
        assert (dry["count"], set(dry["jobs"])) == (3, jobs)
        assert rig.stack.table.counts()[State.FAILED] == 3
        done = rig.client.post("/jobs/acts", json=asked).json()
        assert (done["count"], done["refused"], done["cursor"]) == (3, [], None)
        assert rig.stack.table.counts() == {State.QUEUED: 4}

    def test_what_cannot_be_done_is_reported_and_stops_nothing(self, rig: ApiRig):
        rig.failed("a")
        waits = rig.job("waits", state=State.QUEUED)
        done = rig.client.post("/jobs/acts", json={"act": "retry", "filter": {}}).json()
        assert [one["job_id"] for one in done["refused"]] == [waits.job_id]
        assert rig.stack.table.counts() == {State.QUEUED: 2}

    def test_pause_and_resume(self, rig: ApiRig):
        assert rig.client.post("/pause", json={"tenant": "acme"}).json()["pauses"][0]["tenant"] == "acme"
        assert rig.client.post("/resume", json={"tenant": "acme"}).json()["pauses"] == []
        assert rig.client.post("/pause", json={"workflow": "x"}).status_code == 400


class TestReviews:
    def waiting(self, rig: ApiRig):
        rig.stack.store.put("inbox/acme/a é.csv", b"x")
        return rig.job("a", state=State.REVIEW, files={"review.json": b'{"questions": []}'})

    def test_reviews_are_listed_with_their_questions(self, rig: ApiRig):
        job = self.waiting(rig)
        (review,) = rig.client.get("/review").json()["reviews"]
        assert (review["job"]["job_id"], review["review"]) == (job.job_id, {"questions": []})

    def test_a_decision_is_put_beside_the_input(self, rig: ApiRig):
        job = self.waiting(rig)
        answers = [{"header": "CALLE", "field": "street"}]
        answer = rig.client.post(f"/jobs/{job.job_id}/decide", json={"answers": answers})
        assert answer.status_code == 200
        key = decision_key(job.inputs[0].ref.key)
        written = json.loads(rig.stack.store.read(key, limit=10_000))
        assert (written["by"], written["job"], written["answers"]) == ("local", job.job_id, answers)

    def test_a_decision_that_does_not_validate_is_not_put(self, rig: ApiRig):
        job = self.waiting(rig)
        answer = rig.client.post(f"/jobs/{job.job_id}/decide", json={"answers": [{"colour": "red"}]})
        assert answer.status_code == 422
        assert rig.stack.store.head(decision_key(job.inputs[0].ref.key)) is None

    def test_only_a_review_is_decided(self, rig: ApiRig):
        job = rig.failed("a")
        assert rig.client.post(f"/jobs/{job.job_id}/decide", json={"accept": True}).status_code == 409


def test_a_row_that_holds_anything_is_shown(rig: ApiRig):
    job = rig.job("a", reason="\x00\u202e", summary={"seconds": float("nan")}, subject="<b>&\u2028")
    told = rig.client.get("/jobs").json()["jobs"]
    assert [one["job_id"] for one in told] == [job.job_id]
    assert rig.client.get(f"/jobs/{job.job_id}").status_code == 200


def test_a_server_leaves_the_temporary_folder_of_its_process_alone(tmp_path: Path):
    before = tempfile.tempdir
    with api_rig(tmp_path / "other"):
        assert tempfile.tempdir == before
