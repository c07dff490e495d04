"""The review page: what is preset, and one answer for all that ask the same."""

import json
import re
from typing import Any

import pytest

from core.jobs import Job, Review, State
from core.keys import decision_key, job_folder
from tests.support.console import ApiRig

HTML = {"Accept": "text/html", "Origin": "http://127.0.0.1"}


def asked(number: int = 1, **more: Any) -> dict[str, Any]:
    candidates = [{"value": "street", "label": "street", "probability": 0.5}, {"value": None, "label": "no field"}]
    given = {"kind": "column", "header": "Qxz", "text": "?", "column": "B", "chosen": None, "candidates": candidates}
    return {"id": f"q-{number}", **given, **more}


def waiting(rig: ApiRig, name: str, *questions: dict[str, Any], **more: Any) -> Job:
    asks = Review(questions=len(questions), on_expiry="fail")
    job = rig.job(name, state=State.REVIEW, review=asks, **more)
    rig.stack.store.put(f"{job_folder(job)}review.json", json.dumps({"questions": list(questions)}).encode())
    return job


def answers(rig: ApiRig, job: Job) -> list[dict[str, Any]] | None:
    key = decision_key(job.inputs[0].ref.key)
    if rig.stack.store.head(key) is None:
        return None
    found: list[dict[str, Any]] = json.loads(rig.stack.store.read(key, limit=10_000))["answers"]
    return found


def send(rig: ApiRig, job: Job, client=None, **fields: Any) -> Any:
    page = rig.client.get(f"/review?job={job.job_id}", headers=HTML).text
    (of,) = re.findall(r'name="of" value="(\w+)"', page)
    return (client or rig.client).post(
        f"/jobs/{job.job_id}/answer", data={"of": of, **fields}, headers=HTML, follow_redirects=False
    )


@pytest.mark.parametrize(("sure", "preset"), [(0.84, 0), (0.85, 1), (None, 0), ("x", 0)])
def test_nothing_is_preset_that_is_unsure(rig: ApiRig, sure: object, preset: int):
    candidates = [{"value": "street", "probability": sure}, {"value": None}]
    job = waiting(rig, "a", asked(chosen="street", candidates=candidates))
    page = rig.client.get(f"/review?job={job.job_id}", headers=HTML).text
    assert len(re.findall(r'<input type="radio"[^>]* checked', page)) == preset


def test_the_page_opens_the_oldest_however_many_wait(rig: ApiRig):
    for n in range(120):
        rig.job(f"r{n:03d}", state=State.REVIEW, review=Review(questions=1, on_expiry="fail"), created_at=float(n))
    page = rig.client.get("/review", headers=HTML).text
    assert re.findall(r'<a href="/jobs/(acme-[^"]*)', page)[0].startswith("acme-members-r000")


def test_files_that_ask_the_same_are_listed_and_answered_together(rig: ApiRig):
    first = waiting(rig, "a", asked())
    same = waiting(rig, "b", asked(7, column="D"), tenant="north")
    more = waiting(rig, "c", asked(), asked(2, header="Other"), tenant="south")
    page = rig.client.get(f"/review?job={first.job_id}", headers=HTML).text
    assert re.findall(r'name="also" value="([^"]+)"', page) == [same.job_id]
    answer = send(rig, first, q1="0", also=[same.job_id, more.job_id])
    assert answer.headers["location"] == f"/review?answered={first.job_id}&together=1"
    assert answers(rig, first) == [{"id": "q-1", "value": "street"}]
    assert answers(rig, same) == [{"id": "q-7", "value": "street"}]
    assert answers(rig, more) is None  # it asks more


def test_what_is_unticked_stays(rig: ApiRig):
    first, same = waiting(rig, "a", asked()), waiting(rig, "b", asked(), tenant="north")
    send(rig, first, q1="1")
    assert (answers(rig, first), answers(rig, same)) == ([{"id": "q-1", "value": None}], None)


def test_nobody_answers_for_another_tenant(rig: ApiRig):
    first, other = waiting(rig, "a", asked()), waiting(rig, "b", asked(), tenant="north")
    mine = rig.from_afar(rig.token("reviewer", "acme"))
    assert other.job_id not in mine.get(f"/review?job={first.job_id}", headers=HTML).text
    assert send(rig, first, mine, q1="0", also=[other.job_id]).status_code == 303
    assert (answers(rig, first) is not None, answers(rig, other)) == (True, None)


def test_an_answer_by_another_field_is_taken_from_the_form(rig: ApiRig):
    job = waiting(rig, "a", asked())
    send(rig, job, q1="other", **{"q1-other": "name"})
    assert answers(rig, job) == [{"id": "q-1", "value": "name"}]


@pytest.mark.parametrize("fields", [{"q1": "9"}, {"q1": "-1"}, {"q1": "other"}, {}])
def test_an_answer_that_nobody_offered_is_none(rig: ApiRig, fields: dict[str, str]):
    job = waiting(rig, "a", asked())
    send(rig, job, **fields)
    assert answers(rig, job) in (None, [])
