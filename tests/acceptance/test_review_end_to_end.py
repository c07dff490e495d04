"""An unsure drop waits, is answered by a dropped file and publishes; the next files need no answer. Embedded and cloud."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from secrets import token_hex

import pytest

from infra.addresses import parse_address
from infra.aws.calls import client
from tests.acceptance.ade import Ade
from tests.contract import servers

BOX = {"ADE_SANDBOX": "process", "ADE_SANDBOX_MIN_LEVEL": "limits"}
MANIFEST = {
    "manifest": 1,
    "name": "addresses",
    "subscribe": ["**/*.csv"],
    "fields": [{"name": "street", "required": True}, {"name": "city", "required": True}],
    "mapping": {"review": "unsure"},
}
FILE = "Qalle Zort,city\nMayor 1,Lugo\nSol 2,Vigo\nLuna 3,Leon\n"
DECISION = {
    "decision": 1,
    "workflow": "addresses",
    "by": "ann",
    "answers": [{"header": "Qalle Zort", "field": "street"}],
}


class Folder:
    """The bucket as senders see it, as a folder."""

    def __init__(self, ade: Ade) -> None:
        self.ade = ade

    def put(self, key: str, body: str) -> None:
        path = self.ade.bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body, encoding="utf-8")

    def get(self, key: str) -> str:
        return (self.ade.bucket / key).read_text(encoding="utf-8")


class Remote:
    """The same on S3."""

    def __init__(self, ade: Ade, s3, bucket: str) -> None:
        self.ade, self._s3, self._bucket = ade, s3, bucket

    def put(self, key: str, body: str) -> None:
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=body.encode())

    def get(self, key: str) -> str:
        return self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read().decode()


@pytest.fixture(params=["embedded", pytest.param("cloud", marks=pytest.mark.slow)])
def bucket(request, tmp_path: Path) -> Iterator[Folder | Remote]:
    if request.param == "embedded":
        yield Folder(Ade(tmp_path, BOX, within=True))
        return
    server, name = servers.ministack(), f"drops-{token_hex(4)}"
    env = {
        **BOX,
        **server.environment,
        "ADE_STORE_URL": f"s3://{name}?endpoint={server.endpoint}",
        "ADE_TABLE_URL": f"dynamodb://{name}?endpoint={server.endpoint}",
        "ADE_QUEUE_URL": f"sqs://{name}-work?endpoint={server.endpoint}",
        "ADE_EVENTS_URL": f"sqs://{name}-events?endpoint={server.endpoint}",
    }
    ade = Ade(tmp_path, env, within=True)
    with servers.credentials(server), closing(client(parse_address(env["ADE_STORE_URL"]))) as s3:
        ade("infra", "init")
        yield Remote(ade, s3, name)
    servers.stop_all()


def job_of(bucket, subject: str) -> dict:
    """The job of a file, once everything that is to do now is done."""
    bucket.ade("sweep")
    bucket.ade("run", "--drain")
    (job,) = [j for j in bucket.ade("jobs", "--json").json if j["subject"] == subject]
    return job


def answered(bucket):
    """Drop a file that leaves a doubt, see that it waits, and answer it by a file."""
    bucket.put("configs/acme/addresses/manifest.json", json.dumps(MANIFEST))
    bucket.put("inbox/acme/north/a.csv", FILE)
    job = job_of(bucket, "north/a.csv")
    assert job["state"] == "REVIEW", job["error"]
    status = json.loads(bucket.get("outputs/acme/north/a.csv/addresses/status.json"))
    assert status["waiting_for"] == ["inbox/acme/north/a.csv.decision.json"]
    review = json.loads(bucket.get(f"{job['outputs']}review.json"))
    assert [(q["kind"], q["field"]) for q in review["questions"]] == [("required", "street")]

    bucket.put("inbox/acme/north/a.csv.decision.json", json.dumps(DECISION))
    job = job_of(bucket, "north/a.csv")
    assert job["state"] == "SUCCEEDED", job["error"]
    assert json.loads(bucket.get(job["result"]))["status"] == "SUCCEEDED"
    artifact = json.loads(bucket.get(f"{job['outputs']}artifact.json"))
    assert artifact["decision"]["key"] == "inbox/acme/north/a.csv.decision.json"


def test_an_unsure_drop_waits_and_is_answered_by_a_dropped_file(bucket):
    answered(bucket)


def test_an_answer_is_asked_for_once_and_helps_every_later_sender(bucket):
    answered(bucket)
    bucket.put("inbox/acme/north/b.csv", FILE + "Estrella 4,Jaca\n")
    bucket.put("inbox/acme/south/c.csv", "city,QALLE_ZORT\nPalma,Mar 9\nIbiza,Sal 8\n")
    for subject in ("north/b.csv", "south/c.csv"):
        job = job_of(bucket, subject)
        assert (job["state"], job["decision"], job["attempts_total"]) == ("SUCCEEDED", None, 1), job["reason"]
        artifact = json.loads(bucket.get(f"{job['outputs']}artifact.json"))
        assert "street" in {m["target"] for m in artifact["mapping"]}


POOR = "Liste,Juni\nQorra,Zelt\nMayor,Lugo\nSol,Vigo\nLuna,Leon\n"


def test_a_header_row_that_a_person_named_is_found_in_the_senders_next_drop(tmp_path):
    bucket = Folder(Ade(tmp_path, BOX, within=True))
    fields = [{"name": "first"}, {"name": "second"}]
    bucket.put("configs/acme/addresses/manifest.json", json.dumps(MANIFEST | {"fields": fields}))
    bucket.put("inbox/acme/north/2026-06/a.csv", POOR)
    job = job_of(bucket, "north/2026-06/a.csv")
    assert job["state"] == "REVIEW", job["error"]
    (question,) = json.loads(bucket.get(f"{job['outputs']}review.json"))["questions"]
    answers = [{"id": question["id"], "value": "2"}, {"header": "Zelt", "field": "second"}]
    bucket.put("inbox/acme/north/2026-06/a.csv.decision.json", json.dumps(DECISION | {"answers": answers}))
    assert job_of(bucket, "north/2026-06/a.csv")["state"] == "SUCCEEDED"
    bucket.put("inbox/acme/north/2026-07/b.csv", POOR.replace("Juni", "Juli") + "Mar,Jaca\n")
    job = job_of(bucket, "north/2026-07/b.csv")
    assert (job["state"], job["attempts_total"]) == ("SUCCEEDED", 1), job["reason"]
    artifact = json.loads(bucket.get(f"{job['outputs']}artifact.json"))
    (table,) = artifact["sheets"][0]["tables"]
    (memory,) = artifact["memories"]
    assert (table["header_rows"], table["shape"]["memory"], table["shape"]["version"], table["shape"]["by"]) == (
        [2], memory["key"], memory["version"], "ann",
    )  # fmt: skip


def test_answers_by_id_are_remembered_though_they_come_in_two_rounds(tmp_path):
    bucket = Folder(Ade(tmp_path, BOX, within=True))
    bucket.put("configs/acme/addresses/manifest.json", json.dumps(MANIFEST))
    bucket.put("inbox/acme/north/a.csv", FILE.replace("city", "Vwk"))
    answers = []
    for chosen in ("A", "B"):
        job = job_of(bucket, "north/a.csv")
        asked = json.loads(bucket.get(f"{job['outputs']}review.json"))["questions"]
        answers += [{"id": q["id"], "value": "yes"} for q in asked if q["kind"] == "header"]
        answers += [{"id": q["id"], "value": chosen} for q in asked if q["kind"] == "required"][:1]
        bucket.put("inbox/acme/north/a.csv.decision.json", json.dumps(DECISION | {"answers": answers}))
    job = job_of(bucket, "north/a.csv")
    assert (job["state"], job["attempts_total"]) == ("SUCCEEDED", 3), job["reason"]
    memory = json.loads(bucket.get("configs/acme/addresses.memory.json"))
    assert {e["header"]: e["field"] for e in memory["headers"]} == {"Qalle Zort": "street", "Vwk": "city"}
