"""`ade serve` and `ade run` as processes of their own over S3, SQS and DynamoDB: files pass the API by, jobs do not."""

import json
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

import httpx
import pytest

from tests.acceptance.ade import Ade
from tests.contract import servers
from tests.support.console import MANIFEST

pytestmark = pytest.mark.slow
FILE = b"Name,Age\nAnn,31\nBob,44\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Ade, str]]:
    server, name = servers.ministack(), f"drops-{token_hex(4)}"
    env = {
        **server.environment,
        "ADE_SANDBOX": "process",
        "ADE_SANDBOX_MIN_LEVEL": "limits",
        "ADE_CONSOLE_LISTEN": "127.0.0.1:0",
        "ADE_QUEUE_SIZE": "2",
        "ADE_SETTLE_SECONDS": "0",
        "ADE_STORE_URL": f"s3://{name}?endpoint={server.endpoint}",
        "ADE_TABLE_URL": f"dynamodb://{name}?endpoint={server.endpoint}",
        "ADE_QUEUE_URL": f"sqs://{name}-work?endpoint={server.endpoint}",
        "ADE_EVENTS_URL": f"sqs://{name}-events?endpoint={server.endpoint}",
    }
    home: Path = tmp_path_factory.mktemp("home")
    ade = Ade(home, env, within=True)
    ade("infra", "init")
    with ade.up("serve", first="serving") as console, ade.up("run", "--json", first="runner_started"):
        address = next(str(event["console"]) for event in console.events if event["event"] == "serving")
        with httpx.Client(base_url=address, timeout=60) as client:
            yield client, ade, server.endpoint
    servers.stop_all()


def sent(client: httpx.Client, path: str, files: dict[str, bytes], tenant: str = "acme") -> httpx.Response:
    """Upload by links of the store, then name the keys."""
    wanted = {"tenant": tenant, "path": path, "names": list(files)}
    links = client.post("/uploads", json=wanted)
    if links.is_error:
        return links
    for one, body in zip(links.json()["uploads"], files.values(), strict=True):
        httpx.put(one["url"], content=body).raise_for_status()
    return client.post("/jobs", json={"tenant": tenant, "keys": [one["key"] for one in links.json()["uploads"]]})


def followed(client: httpx.Client, job_id: str) -> dict[str, Any]:
    """The job once its stream has ended."""
    with client.stream("GET", f"/jobs/{job_id}/logs?follow=true") as stream:
        assert "event: end" in stream.read().decode()
    told: dict[str, Any] = client.get(f"/jobs/{job_id}").json()
    return told


def drop(file: str, body: bytes) -> dict[str, bytes]:
    manifest = MANIFEST | {"inputs": {"primary": [file]}}
    return {file: body, "manifest.json": json.dumps(manifest).encode()}


def test_from_a_presigned_upload_to_a_presigned_download(served: tuple[httpx.Client, Ade, str]):
    client, _, store = served
    (job,) = sent(client, "people", drop("people.csv", FILE)).raise_for_status().json()["jobs"]
    assert followed(client, job["job_id"])["state"] == "SUCCEEDED"
    at = f"/jobs/{job['job_id']}"
    for path in (f"{at}/artifact", f"{at}/output", f"{at}/output?name=report.html"):
        link = client.get(path)
        assert (link.status_code, link.headers["location"].startswith(store)) == (307, True)
        assert httpx.get(link.headers["location"]).raise_for_status().content
    assert httpx.get(client.get(f"{at}/output").headers["location"]).content.startswith(b"PK")
    part = client.get(f"{at}/result.zip", headers={"Range": "bytes=0-1"})
    assert (part.status_code, part.content) == (206, b"PK")
    page = client.get(at, headers={"Accept": "text/html"})
    assert (page.status_code, "SUCCEEDED" in page.text) == (200, True)


def test_a_job_that_failed_is_tried_again_when_it_is_asked_for(served: tuple[httpx.Client, Ade, str]):
    client, _, _ = served
    (job,) = sent(client, "broken", drop("people.xlsx", b"PK\x03\x04 no workbook")).raise_for_status().json()["jobs"]
    failed = followed(client, job["job_id"])
    assert (failed["state"], failed["error"]["verdict"]) == ("FAILED", "input_unreadable")
    assert client.post(f"/jobs/{job['job_id']}/retry").status_code == 200
    again = followed(client, job["job_id"])
    assert (again["state"], again["attempts_total"]) == ("FAILED", failed["attempts_total"] + 1)


def test_a_full_backlog_is_429_and_another_tenant_is_not_held_up(served: tuple[httpx.Client, Ade, str]):
    client, _, _ = served
    client.post("/pause", json={"tenant": "full"}).raise_for_status()
    for n in range(2):
        sent(client, f"d{n}", drop("people.csv", FILE), "full").raise_for_status()
    refused = sent(client, "d2", drop("people.csv", FILE), "full")
    assert (refused.status_code, "ADE_QUEUE_SIZE" in refused.json()["detail"]) == (429, True)
    assert int(refused.headers["retry-after"]) > 0
    (job,) = sent(client, "d2", drop("people.csv", FILE), "other").raise_for_status().json()["jobs"]
    assert followed(client, job["job_id"])["state"] == "SUCCEEDED"
    client.post("/resume", json={"tenant": "full"}).raise_for_status()


def test_a_sender_of_one_tenant_has_links_to_its_own_inbox_alone(served: tuple[httpx.Client, Ade, str]):
    client, ade, _ = served
    for tenant in ("other", "acme"):
        sent(client, "mine", drop("people.csv", FILE), tenant).raise_for_status()
    token = ade("token", "new", "--name", "x", "--scope", "sender", "--tenant", "other", "--json").json["token"]
    who = {"Authorization": f"Bearer {token}"}
    wanted = {"tenant": "acme", "path": "people", "names": ["x.csv"]}
    assert client.post("/uploads", json=wanted, headers=who).status_code == 403
    jobs = client.get("/jobs", headers=who).json()["jobs"]
    assert {job["tenant"] for job in jobs} == {"other"}
