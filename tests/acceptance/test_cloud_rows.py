"""docs/reference/rows.md in a table that was used: every item is of a kind that stands there, and its examples run."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.jobs import State
from core.ports import Pause, Resolution
from core.verdicts import Verdict
from tests.support.clients import clients
from tests.support.places import PLACES
from tests.support.world import World
from tests.unit.infra.test_rows_docs import PAGE, attributes, names, rows_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A table with something of every kind in it."""
    made = World(tmp_path, PLACES["cloud"])
    runner = made.runner()
    made.intake.changed(made.drop(tenant="gone"))
    made.work_off(runner)
    made.control.remove(made.jobs()[0].job_id)
    made.intake.changed(made.drop())
    made.sandbox.verdict = Verdict.RULE_ERROR
    made.work_off(runner)
    made.intake.changed(made.drop(tenant="globex"))
    made.table.hold("janitor", "me", 30)
    made.table.advance("configs/shared")
    for tenant in (None, "acme"):
        made.table.pause(Pause(tenant=tenant, workflow=None, since=1.0, by="me"))
    made.table.resolve(Resolution(what="failed acme", until=1.0, tenant="acme", at=made.clock.now(), by="me", note=""))
    yield made
    made.close()


def every_item(world: World) -> list[dict]:
    return list(world.table._db.get_paginator("scan").paginate(TableName=world.table._name).search("Items"))


def test_every_item_is_of_a_documented_kind_and_has_only_documented_attributes(world: World):
    kinds = {row[0].split("<")[0].strip("`"): set(names(row[2])) for row in rows_of("## Items in DynamoDB")}
    kinds["J#"] = set(attributes())
    seen: dict[str, set[str]] = {}
    for item in every_item(world):
        kind = re.match(r"[A-Z]+#?", item["pk"]["S"])
        assert kind, item["pk"]
        seen.setdefault(kind.group(), set()).update(item.keys() - {"pk", "sk"})
    assert seen.keys() == kinds.keys()
    assert {kind: found - kinds[kind] for kind, found in seen.items() if found - kinds[kind]} == {}


def test_the_examples_run_as_they_stand_and_show_what_people_look_for(world: World, tmp_path: Path):
    failed = next(job for job in world.jobs() if job.state is State.FAILED)
    environment = {
        "PATH": f"{clients()}:{os.environ['PATH']}",
        "AWS_ENDPOINT_URL": world.table._db.meta.endpoint_url,
        "AWS_DEFAULT_REGION": "us-east-1",
        **{name: os.environ[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")},
        "TABLE": world.table._name,
        "JOB": failed.job_id,
    }
    said = []
    for block in re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL):
        done = subprocess.run(
            ["bash", "-c", f"set -eu\n{block}"],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stderr}"
        said.append(done.stdout)
    one, failures, tenant, scanned = said
    assert "rule_error" in one
    assert "inbox/acme/d/a.csv" in one
    assert f"J#{failed.job_id}" in failures
    assert '"paused"' in tenant
    assert scanned.split()[:2] == [failed.job_id, "rule_error"]
