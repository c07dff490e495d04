"""`ade_drop.client` over a folder, over the API and over S3, against real processes; and the examples of its page."""

import asyncio
import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from secrets import token_hex
from unittest.mock import patch
from urllib.parse import urlsplit

import psycopg
import pytest

from ade_drop.client import AdeError, AsyncClient, Client, DropRejected, NotDone, ResultCorrupt, connect
from tests.acceptance.ade import Ade
from tests.contract import servers
from tests.support.clients import DBT, READERS, installed
from tests.support.postgres_server import postgres

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "client.md").read_text()
MANIFEST = {
    "manifest": 1,
    "name": "members",
    "fields": [
        {"name": "member_id", "required": True, "synonyms": ["member #"]},
        {"name": "gross_pay", "type": "money"},
        {"name": "start", "type": "date"},
        {"name": "note"},
    ],
    "output": {"formats": ["xlsx", "csv", "jsonl", "parquet"]},
}
CSV = 'Member #,Gross pay,Start,Note\nM1,12.50,2026-01-05,=1+1\nM2,7,,\'+49 30 1\nM3,0.1,2026-02-01,"a,""b"\n'
ROWS = [
    {"member_id": "M1", "gross_pay": Decimal("12.5"), "start": date(2026, 1, 5), "note": "=1+1"},
    {"member_id": "M2", "gross_pay": Decimal(7), "start": None, "note": "'+49 30 1"},
    {"member_id": "M3", "gross_pay": Decimal("0.1"), "start": date(2026, 2, 1), "note": 'a,"b'},
]
LIMITS = {"ADE_SANDBOX": "process", "ADE_SANDBOX_MIN_LEVEL": "limits", "ADE_CONSOLE_LISTEN": "127.0.0.1:0"}


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ade, str]]:
    """A running `ade up`, and the address of its API."""
    ade = Ade(tmp_path_factory.mktemp("embedded"), LIMITS)
    with ade.up() as up:
        yield ade, next(str(event["console"]) for event in up.events if event["event"] == "up")


@pytest.fixture(scope="module")
def on_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    server, name = servers.ministack(), f"drops-{token_hex(4)}"
    env = {
        **server.environment,
        **LIMITS,
        "ADE_SETTLE_SECONDS": "0",
        "ADE_STORE_URL": f"s3://{name}?endpoint={server.endpoint}",
        "ADE_TABLE_URL": f"dynamodb://{name}?endpoint={server.endpoint}",
        "ADE_QUEUE_URL": f"sqs://{name}-work?endpoint={server.endpoint}",
        "ADE_EVENTS_URL": f"sqs://{name}-events?endpoint={server.endpoint}",
    }
    ade = Ade(tmp_path_factory.mktemp("cloud"), env)
    ade("infra", "init")
    with ade.up(), patch.dict(os.environ, server.environment):
        yield connect(f"s3://{name}", endpoint=server.endpoint)
    servers.stop_all()


@pytest.fixture(params=["folder", "api", "s3"])
def client(request: pytest.FixtureRequest) -> Client:
    if request.param == "s3":
        s3: Client = request.getfixturevalue("on_s3")
        return s3
    ade, address = request.getfixturevalue("embedded")
    return connect(address if request.param == "api" else ade.bucket)


@pytest.fixture
def members(tmp_path: Path) -> Path:
    path = tmp_path / f"members-{token_hex(4)}.csv"
    path.write_text(CSV)
    return path


def test_rows_come_back_with_exact_types_from_every_format(client: Client, members: Path):
    result = client.wait(client.drop(members, tenant="acme", manifest=MANIFEST), timeout=60)
    assert (result.status, result.outcome, result.error) == ("SUCCEEDED", "clean", "")
    assert list(result.rows()) == ROWS
    assert list(_only(result, "normalized.csv").rows()) == ROWS
    workbook = list(_only(result, "normalized.xlsx").rows())
    assert [row["member_id"] for row in workbook] == ["M1", "M2", "M3"]
    assert result.read("normalized.parquet").startswith(b"PAR1")


def test_the_parts_of_a_split_come_with_their_value_and_rows(client: Client, members: Path):
    fields = [
        {**field, "allowed": ["M1", "M3"]} if field["name"] == "member_id" else field for field in MANIFEST["fields"]
    ]
    asked = MANIFEST | {"fields": fields, "output": {"formats": ["csv", "jsonl"], "split_by": "member_id"}}
    result = client.wait(client.drop(members, tenant="acme", manifest=asked, path="split"), timeout=60)
    found = {file.name: (file.value, file.rows) for file in result.files if file.rows is not None}
    values = {"m1": "M1", "m3": "M3", "_other": None}
    assert found == {f"normalized-{n}.{kind}": (value, 1) for n, value in values.items() for kind in ("csv", "jsonl")}
    assert json.loads(result.read("normalized-m3.jsonl"))["member_id"] == "M3"
    lines = {result.read(name) for name in found if name.endswith("jsonl")}
    assert lines == {line + b"\n" for line in result.read("normalized.jsonl").splitlines()}


def test_the_same_drop_again_is_the_same_result_and_latest_names_it(client: Client, members: Path):
    first = client.wait(client.drop(members, tenant="acme", manifest=MANIFEST, path="again"), timeout=60)
    again = client.wait(client.drop(members, tenant="acme", manifest=MANIFEST, path="again"), timeout=60)
    assert again.job_id == first.job_id
    newest = client.latest(tenant="acme", subject=first.subject, workflow="members")
    assert newest is not None
    assert newest.job_id == first.job_id
    assert client.latest(tenant="acme", subject="never/there.csv", workflow="members") is None


def test_a_failed_job_is_a_result_and_a_second_drop_waits_for_the_second_run(client: Client, tmp_path: Path):
    empty = tmp_path / f"empty-{token_hex(4)}.csv"
    empty.write_text("Member #,Gross pay\n")
    first = client.wait(client.drop(empty, tenant="acme", manifest=MANIFEST, path="failing"), timeout=60)
    assert (first.status, first.outcome) == ("FAILED", None)
    assert first.error
    with pytest.raises(AdeError, match="did not succeed"):
        first.rows()
    second = client.wait(client.drop(empty, tenant="acme", manifest=MANIFEST, path="failing"), timeout=60)
    assert second.document["timings"]["ended_at"] > first.document["timings"]["ended_at"]


def test_a_manifest_that_does_not_validate_names_its_problems(client: Client, members: Path):
    with pytest.raises(DropRejected) as refused:
        client.wait(client.drop(members, tenant="acme", manifest=MANIFEST | {"fieldz": []}, path="bad"), timeout=60)
    assert "fieldz" in json.dumps(refused.value.problems)


def test_a_drop_that_waits_says_for_what(embedded: tuple[Ade, str], members: Path):
    ade, _ = embedded
    client = connect(ade.bucket)
    lookup = {"name": "plans", "path": "plans.csv", "required": True}
    waiting = MANIFEST | {"inputs": {"primary": ["*.csv"], "auxiliary": [lookup]}}
    drop, said = client.drop(members, tenant="acme", manifest=waiting, path="held"), ""
    for _ in range(300):  # until the drop is recorded
        with pytest.raises(NotDone) as not_done:
            client.wait(drop, timeout=0.2)
        said = str(not_done.value)
        if "plans.csv" in said:
            return
    pytest.fail(said)


def test_files_are_checked_against_the_result_and_stay_in_their_folder(embedded: tuple[Ade, str], members: Path):
    ade, _ = embedded
    client = connect(ade.bucket)
    result = client.wait(client.drop(members, tenant="acme", manifest=MANIFEST, path="forged"), timeout=60)
    forged = replace(result, opener=lambda _: io.BytesIO(b"other bytes"))
    with pytest.raises(ResultCorrupt, match=r"normalized\.csv"):
        forged.download("normalized.csv", members.parent)
    assert not (members.parent / "normalized.csv").exists()
    escaping = replace(result, files=(replace(result.files[0], name="../escaped"),))
    with pytest.raises(AdeError, match="outside"):
        escaping.download("../escaped", members.parent)


def test_the_config_package_goes_along(embedded: tuple[Ade, str], members: Path, tmp_path: Path):
    ade, _ = embedded
    rule = tmp_path / "config" / "columns" / "note.py"
    rule.parent.mkdir(parents=True)
    rule.write_text("def transform(*, value):\n    return {'value': 'ruled'}\n")
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps(MANIFEST | {"config": "./config"}))
    client = connect(ade.bucket)
    result = client.wait(client.drop(members, tenant="acme", manifest=manifest, path="ruled"), timeout=60)
    assert {row["note"] for row in result.rows()} == {"ruled"}


def test_waiting_is_asynchronous(client: Client, members: Path):
    async def both() -> list[str]:
        waiting = AsyncClient(client)
        drops = [await waiting.drop(members, tenant="acme", manifest=MANIFEST, path=f"async-{n}") for n in range(2)]
        return [result.status for result in await asyncio.gather(*map(waiting.wait, drops))]

    assert asyncio.run(both()) == ["SUCCEEDED", "SUCCEEDED"]


def test_places_that_are_none_are_refused(tmp_path: Path):
    with pytest.raises(AdeError, match="not a folder"):
        connect(tmp_path / "none")
    with pytest.raises(AdeError, match="takes no token"):
        connect(tmp_path, token="t")
    with pytest.raises(AdeError, match="does not answer"):
        connect("http://127.0.0.1:9").latest(tenant="a", subject="b", workflow="c")


def test_the_client_imports_nothing_else_of_ours():
    code = "import sys, ade_drop.client; print([m for m in ('core', 'infra', 'boto3', 'openpyxl') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_examples_of_the_page_run(embedded: tuple[Ade, str], tmp_path: Path):
    ade, _ = embedded
    (tmp_path / "members.csv").write_text(CSV)
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST | {"name": "paged"}))
    (tmp_path / "data").symlink_to(ade.data)
    first, asynchronous, sensor, duck = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    printed = io.StringIO()
    with contextlib.chdir(tmp_path), contextlib.redirect_stdout(printed):
        exec(first, {})
        exec(asynchronous, {})
    assert printed.getvalue().splitlines() == ["SUCCEEDED clean", "M1 12.5", "M2 7", "M3 0.1", "SUCCEEDED"]
    names: dict[str, object] = {}
    exec(sensor, names)
    there = names["result_is_there"]
    assert callable(there)
    assert there("acme", "paged/members.csv", "paged", str(ade.bucket))
    assert not there("acme", "paged/other.csv", "paged", str(ade.bucket))
    frames = (
        "from ade_drop.client import connect\n"
        "r = connect('data/bucket').latest(tenant='acme', subject='paged/members.csv', workflow='paged')\n"
        "print(r.to_polars().shape, r.to_pandas().shape, len(rows) % 3)"
    )
    python = installed("readers", READERS) / "python"
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [python, "-c", duck + frames],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "(3, 4) (3, 4) 0", done.stderr[-2000:]


def _only(result, name: str):
    """The result as if it had been published in one format."""
    kept = {name, "schema.json", "artifact.json"}
    return replace(result, files=tuple(file for file in result.files if file.name in kept))


@pytest.mark.long
def test_dbt_reads_a_loaded_table_as_the_page_says(tmp_path: Path):
    source, model = re.search(r"```yaml\n(.*?)```\s+```sql\n(.*?)```", PAGE, re.DOTALL).groups()
    dbt = installed("dbt", DBT) / "dbt"
    with postgres(tmp_path) as server:
        address = urlsplit(server.endpoint)
        loads = tmp_path / "loads.json"
        loads.write_text(json.dumps({"warehouse": {"url": server.endpoint}}))
        ade = Ade(tmp_path, LIMITS | {"ADE_LOAD_FILE": str(loads)})
        load = {"connection": "warehouse", "table": "members", "mode": "upsert", "key": ["member_id"]}
        ade.write("members.csv", CSV)
        ade.write("manifest.json", MANIFEST | {"output": {"formats": ["xlsx", "csv"], "load": load}})
        ade("drop", "members.csv", "--manifest", "manifest.json", "--tenant", "acme")
        ade("run", "--drain")
        project = {"name": "drops", "version": "1.0.0", "profile": "drops", "model-paths": ["models"]}
        target = {"type": "postgres", "host": "127.0.0.1", "port": address.port, "user": "ade", "password": "x",
                  "dbname": address.path[1:], "schema": "marts", "threads": 1}  # fmt: skip
        ade.write("dbt_project.yml", project)
        ade.write("profiles.yml", {"drops": {"target": "dev", "outputs": {"dev": target}}})
        ade.write("models/sources.yml", source)
        ade.write("models/members_paid.sql", model)
        built = subprocess.run(
            [dbt, "build", "--profiles-dir", "."], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert built.returncode == 0, built.stdout[-3000:]
        with psycopg.connect(server.endpoint) as connection:
            assert connection.execute("select count(*), count(_ade_job) from marts.members_paid").fetchone() == (3, 3)
