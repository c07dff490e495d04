"""`ade erase` over a bucket that keeps versions, with PostgreSQL, and with DynamoDB and SQS."""

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from secrets import token_hex

import psycopg
import pytest

from console.api.access import LINKS_KEY, LOCAL, Access, LinkFacts, Scope
from console.api.actions import ActionLog
from core.ports import JobQuery, Message, Resolution
from core.settings import Settings
from infra.addresses import parse_address
from infra.aws.calls import client
from infra.logs import Log
from infra.wiring import Stack, open_stack
from tests.acceptance.ade import Ade
from tests.acceptance.test_erasure import CANARY, LOADED, files_with
from tests.contract import postgres_adapters, servers

NEIGHBOUR = "Nachbar"
RULES = {name: part for name, part in LOADED.items() if name != "output"}


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()


class Cloud:
    """A deployment of its own on real servers, and every byte that it holds."""

    def __init__(self, home: Path, table: str, opened: ExitStack) -> None:
        server, self.name = servers.ministack(), f"erase-{token_hex(4)}"
        opened.enter_context(servers.credentials(server))
        at = f"?endpoint={server.endpoint}"
        self.urls = {"ADE_STORE_URL": f"s3://{self.name}{at}"}
        if table == "dynamodb":
            self.urls |= {
                "ADE_TABLE_URL": f"dynamodb://{self.name}{at}",
                "ADE_QUEUE_URL": f"sqs://{self.name}-work{at}",
            }
            self.urls |= {"ADE_EVENTS_URL": f"sqs://{self.name}-events{at}"}
        else:
            schema = self.name.replace("-", "_")
            self.urls["ADE_TABLE_URL"] = postgres_adapters.url_of(servers.postgres().endpoint, schema)
            opened.callback(self._drop_schema, schema)
        env = {"ADE_SANDBOX_MIN_LEVEL": "limits", "ADE_LOG_LEVEL": "error"} | server.environment | self.urls
        self.ade = Ade(home, env, within=True)
        self._s3 = opened.enter_context(closing(client(parse_address(self.urls["ADE_STORE_URL"]))))
        self.ade("infra", "init")
        self._s3.put_bucket_versioning(Bucket=self.name, VersioningConfiguration={"Status": "Enabled"})

    @staticmethod
    def _drop_schema(schema: str) -> None:
        with psycopg.connect(servers.postgres().endpoint, autocommit=True) as db:
            db.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")

    def stack(self) -> Stack:
        return open_stack(Settings.from_env(self.ade.environment()))

    def places_with(self, text: str) -> list[str]:
        """Everything that has a text in its name or its bytes: objects of any version, rows, messages, local files."""
        wanted = text.lower().encode()
        held = {**self._objects(), **(self._rows() if "postgres" in self.urls["ADE_TABLE_URL"] else self._items())}
        found = [name for name, body in held.items() if wanted in name.lower().encode() or wanted in body.lower()]
        return found + files_with(self.ade.data, text)

    def _objects(self) -> dict[str, bytes]:
        listed = self._s3.get_paginator("list_object_versions").paginate(Bucket=self.name)
        versions = [(one["Key"], one["VersionId"]) for page in listed for one in page.get("Versions", ())]
        return {
            f"{key} {version}": self._s3.get_object(Bucket=self.name, Key=key, VersionId=version)["Body"].read()
            for key, version in versions
        }

    def _rows(self) -> dict[str, bytes]:
        with psycopg.connect(servers.postgres().endpoint) as db:
            schema = self.name.replace("-", "_")
            names = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
            return {
                f"table {name}": repr(db.execute(f'SELECT * FROM "{schema}"."{name}"').fetchall()).encode()
                for (name,) in names
            }

    def _items(self) -> dict[str, bytes]:
        with closing(client(parse_address(self.urls["ADE_TABLE_URL"]))) as db:
            pages = db.get_paginator("scan").paginate(TableName=self.name)
            items = [item for page in pages for item in page["Items"]]
        return {f"item {n}": repr({k: _plain(v) for k, v in item.items()}).encode() for n, item in enumerate(items)}


def _plain(value: dict[str, object]) -> object:
    """An attribute as a reader of the table sees it: records are compressed."""
    ((kind, content),) = value.items()
    if kind == "B" and isinstance(content, bytes):
        try:
            return zlib.decompress(content)
        except zlib.error:
            return content
    return content


def furnish(cloud: Cloud, tenant: str, mark: str) -> None:
    """A tenant with results, a failure, and whatever else may be kept of one, `mark` in every part of it."""
    ade = cloud.ade
    for name, manifest, body in (
        (f"{mark}.csv", RULES, f"Member #,Gross Pay\n{mark}-1,1\n{mark}-2,2\n"),
        (f"{mark}-broken.csv", RULES | {"name": f"{mark.lower()}-broken"}, "nothing\n1\n"),
    ):
        ade.write(name, body)
        ade.write("manifest.json", manifest)
        ade("drop", name, "--manifest", "manifest.json", "--tenant", tenant, "--path", name)
        os.truncate(ade.home / name, 0)
    ade("run", "--drain")
    with cloud.stack() as stack:
        job = stack.table.page(JobQuery(tenant=tenant)).jobs[0]
        for _ in range(2):  # every version goes
            stack.store.put(f"configs/{tenant}/{mark}.memory.json", mark.encode())
        stack.store.delete(f"configs/{tenant}/{mark}.memory.json")
        stack.store.put(f"work/{job.job_id}/9/x", mark.encode())
        stack.store.put(f"replays/r1/{tenant}/{mark}.csv/members/j/result.json", mark.encode())
        there = stack.store.head("replays/r1/report.json")
        lines = json.loads(stack.store.read("replays/r1/report.json", limit=9999))["differences"] if there else []
        report = {"differences": [*lines, {"tenant": tenant, "job_id": job.job_id, "subject": mark}]}
        stack.store.put("replays/r1/report.json", json.dumps(report).encode())
        ActionLog(stack.store, stack.clock, Log(level="error")).note(LOCAL, "retry-many", jobs=[job.job_id], why=mark)
        Access(stack.store, stack.clock).new(f"{mark} token", Scope.SENDER, tenant=tenant)
        links = Access(stack.store, stack.clock, key=LINKS_KEY)
        facts = LinkFacts(workflow="members", path="members", most_mb=1)
        links.new(f"{mark} link", Scope.SENDER, tenant=tenant, days=9, link=facts)
        stack.queue.bury(Message(job_id=job.job_id, tenant=tenant), f"{mark} reason")
        now = stack.clock.now()
        stack.table.resolve(
            Resolution(what=f"failures/{tenant}/{mark}", until=now, tenant=tenant, at=now, by=mark, note=mark)
        )


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("table", ["postgres", "dynamodb"])
def test_no_byte_of_a_tenant_is_left_in_bucket_table_or_queue(tmp_path: Path, table: str):
    with ExitStack() as opened:
        cloud = Cloud(tmp_path, table, opened)
        furnish(cloud, "acme", CANARY)
        furnish(cloud, "acme-2", NEIGHBOUR)
        assert len(cloud.places_with(CANARY)) > 10
        before = sorted(place for place in cloud.places_with(NEIGHBOUR) if not place.startswith("item"))
        done = cloud.ade("erase", "acme", "--yes", "--json").json
        assert done["found"] == []
        assert cloud.places_with(CANARY) == []
        left = set(cloud.places_with(NEIGHBOUR))
        shared = ("access/", "replays/r1/report.json")  # of which only the newest version stays
        assert [place for place in before if place not in left and not place.startswith(shared)] == []
        assert any(place.startswith("access/tokens.json") for place in left)
        assert any(place.startswith("replays/r1/report.json") for place in left)
        again = cloud.ade("erase", "acme", "--yes", "--json").json
        assert not again["found"]
        assert not again["erased"]["jobs"]
