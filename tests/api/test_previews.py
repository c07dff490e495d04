"""Previews run as the tenant they are for, and nobody takes them all."""

import json
import threading

import pytest

from console.api.problems import ProblemError
from console.web import rehearsals
from console.web.rehearsals import PreviewLine, Rehearsal
from tests.support.console import MANIFEST, ApiRig


@pytest.fixture
def ran(monkeypatch):
    """The jobs that would run in a box, and their inputs."""
    found = []

    def run(_context, job, source, _scratch, _then=None):
        found.append((job, {one.ref.key: source.read(one.ref.key, limit=100) for one in job.inputs}))
        return Rehearsal(job, None, None)

    monkeypatch.setattr(rehearsals, "_run", run)
    return found


def preview(rig: ApiRig, manifest, tenant="acme", **more):
    sender = rig.from_afar(rig.token("sender", tenant))
    given = {"tenant": tenant, "manifest": json.dumps(manifest), **more}
    return sender.post("/drop/preview", data=given, files={"files": ("p.csv", b"Name,Age\nann,3\n")})


def looking_up(path):
    return MANIFEST | {"inputs": {"primary": ["*.csv"], "auxiliary": [{"name": "plans", "path": path}]}}


def test_a_preview_is_of_the_tenant_that_asks_and_of_no_other(rig: ApiRig, ran):
    assert preview(rig, MANIFEST).status_code == 200
    (job, _), *_ = ran
    assert job.tenant == "acme"
    assert job.inputs[0].ref.key.startswith("inbox/acme/")


@pytest.mark.parametrize("other", ["desk", "other"])
def test_a_preview_reads_nothing_of_another_tenant(rig: ApiRig, ran, other):
    rig.stack.store.put(f"configs/{other}/secret.csv", b"code\nX\n")
    answer = preview(rig, looking_up(f"configs/{other}/secret.csv"))
    assert (answer.status_code, ran) == (422, [])


@pytest.mark.parametrize("key", ["configs/acme/plans.csv", "inbox/acme/plans.csv", "inbox/acme/deep/plans.csv"])
def test_a_preview_has_the_lookups_of_its_tenant_from_the_store(rig: ApiRig, ran, key):
    rig.stack.store.put(key, b"code\nX\n")
    assert preview(rig, looking_up(key)).status_code == 200
    ((_, inputs),) = ran
    assert inputs[key] == b"code\nX\n"


def test_a_box_of_a_preview_has_no_name_that_a_job_has(rig: ApiRig, ran):
    for _ in range(2):
        preview(rig, MANIFEST)
    first, second = (job.job_id for job, _ in ran)
    assert first != second
    assert {first[:8], second[:8]} == {"preview-"}


@pytest.mark.parametrize("tenant", [{"tenant": ""}, {"tenant": " "}, {}])
def test_a_preview_without_a_tenant_asks_for_one_in_words(rig: ApiRig, ran, tenant: dict[str, str]):
    given = {"manifest": json.dumps(MANIFEST), **tenant}
    answer = rig.client.post("/drop/preview", data=given, files={"files": ("p.csv", b"a\n")})
    assert (answer.status_code, ran) == (400, [])
    assert "lacks tenant" in answer.text
    assert "pattern" not in answer.text


class TestTheLine:
    def test_nobody_is_in_line_twice(self):
        line = PreviewLine()
        with line.turn("tenant acme"), pytest.raises(ProblemError, match="of yours"), line.turn("tenant acme"):
            pass
        with line.turn("tenant acme"):
            pass

    def test_whoever_came_first_is_next(self):
        line, order, threads = PreviewLine(), [], []

        def one(who):
            with line.turn(who):
                order.append(who)

        with line.turn("hog"):
            for who in ("a", "b", "c"):
                threads.append(threading.Thread(target=one, args=(who,)))
                threads[-1].start()
                while who not in line._line:
                    pass
        for thread in threads:
            thread.join()
        assert order == ["a", "b", "c"]

    def test_a_full_line_is_refused_at_once(self, monkeypatch):
        monkeypatch.setattr(rehearsals, "_IN_LINE", 1)
        line = PreviewLine()
        with line.turn("a"), pytest.raises(ProblemError, match="other previews"), line.turn("b"):
            pass

    def test_whoever_waits_too_long_leaves_the_line(self, monkeypatch):
        monkeypatch.setattr(rehearsals, "_WAIT_SECONDS", 0.01)
        line = PreviewLine()
        with line.turn("a"):
            with pytest.raises(ProblemError), line.turn("b"):
                pass
            assert line._line == ["a"]
