"""`ade review`: a job that is unsure waits, is answered from the terminal or by a file, and publishes."""

import json

import pytest

from tests.acceptance.ade import Terminal

MANIFEST = {
    "manifest": 1,
    "name": "addresses",
    "fields": [{"name": "street", "required": True}, {"name": "opened", "type": "date"}],
    "mapping": {"review": "unsure"},
}
CSV = "Qzx 7,opened\nMayor 1,03/04/2025\nSol 2,05/06/2025\n"


@pytest.fixture
def asked(ade):
    """A job that waits for two answers."""
    ade.within = True
    ade.write("a.csv", CSV)
    ade.write("manifest.json", MANIFEST)
    job = ade("drop", "a.csv", "--manifest", "manifest.json", "--tenant", "acme", "--json").json["jobs"][0]["job_id"]
    ade("run", "--drain", ADE_SANDBOX="process")
    return job


def drained(ade, job):
    ade("run", "--drain", ADE_SANDBOX="process")
    return ade("status", job, "--json").json


def test_a_job_that_waits_is_listed_with_what_it_waits_for(ade, asked):
    (listed,) = ade("jobs", "--state", "review", "--json").json
    assert (listed["job_id"], listed["waiting_for"]) == (asked, ["inbox/acme/addresses/a.csv.decision.json"])
    assert "2 questions" in ade("jobs").out
    shown = ade("status", asked)
    assert "a.csv.decision.json" in shown.out
    assert f"ade review {asked}" in shown.err
    assert (ade.bucket / listed["outputs"] / "review.html").exists()


def test_questions_are_listed_and_answered_without_a_terminal(ade, asked):
    found = ade("review", asked, "--json").json
    assert [(q["kind"], q["field"]) for q in found["questions"]] == [("required", "street"), ("reading", "opened")]
    assert "1. Which column" in ade("review", asked).out
    done = ade(
        "review", asked, "--answer", "1=A", "--answer", f"{found['questions'][1]['id']}=day_first", "--by", "ann"
    )
    assert "QUEUED" in done.out
    decision = json.loads((ade.bucket / found["decision"]).read_text())
    assert decision["answers"] == [
        {"sheet": "a", "header": "Qzx 7", "column": "A", "field": "street"},
        {"sheet": "a", "header": "opened", "column": "B", "reading": "day_first"},
    ]
    job = drained(ade, asked)
    assert job["state"] == "SUCCEEDED"
    artifact = json.loads((ade.bucket / job["outputs"] / "artifact.json").read_text())
    assert artifact["decision"]["by"] == "ann"
    memory = json.loads((ade.bucket / "configs/acme/addresses.memory.json").read_text())
    assert [(e["header"], e["field"], e["by"]) for e in memory["headers"]] == [("Qzx 7", "street", "ann")]


def test_an_answer_that_leaves_questions_open_is_kept_by_the_next(ade, asked):
    ade("review", asked, "--answer", "1=A")
    assert drained(ade, asked)["state"] == "REVIEW"
    (left,) = ade("review", asked, "--json").json["questions"]
    ade("review", asked, "--answer", f"{left['id']}=month_first")
    assert drained(ade, asked)["state"] == "SUCCEEDED"


def test_accepting_takes_the_likeliest_answers_and_remembers_nothing(ade, asked):
    ade("review", asked, "--accept", "--no-remember")
    assert drained(ade, asked)["state"] == "SUCCEEDED"
    assert not (ade.bucket / "configs/acme/addresses.memory.json").exists()


def test_answers_that_fit_no_question_are_refused(ade, asked):
    assert "is no question" in ade("review", asked, "--answer", "9=A", expect=2).err
    assert "is no answer" in ade("review", asked, "--answer", "2=sideways", expect=2).err
    assert "is not ID=VALUE" in ade("review", asked, "--answer", "A", expect=2).err
    assert ade("status", asked, "--json").json["state"] == "REVIEW"
    ade("cancel", asked)
    assert "only a job that is REVIEW" in ade("review", asked, expect=2).err


def test_a_drop_that_is_waited_for_ends_with_an_exit_code_of_its_own(ade, asked):
    done = ade("drop", "a.csv", "--manifest", "manifest.json", "--tenant", "acme", "--wait", expect=6)
    assert f"ade review {asked}" in done.err


def test_a_person_walks_through_the_questions_on_a_terminal(ade, asked):
    with Terminal(ade, "review", asked) as terminal:
        terminal.until("Which column")
        terminal.type("1\n")
        terminal.until("How are the values")
        terminal.type("no\n")
        terminal.until("is no answer")
        terminal.type("\n")
        assert terminal.end() == 0
    assert drained(ade, asked)["state"] == "SUCCEEDED"


def test_a_number_typed_for_a_header_is_a_row(ade):
    ade.within = True
    ade.write("a.csv", "Liste,Juni\nQorra,Zelt\nMayor,Lugo\nSol,Vigo\nLuna,Leon\n")
    ade.write("manifest.json", MANIFEST | {"fields": [{"name": "first"}, {"name": "second"}]})
    ade("drop", "a.csv", "--manifest", "manifest.json", "--tenant", "acme")
    ade("run", "--drain")
    (job,) = ade("jobs", "--json").json
    for wrong in ("0", "1048577", "\uff19", "9" * 5000):
        assert "is no answer" in ade("review", job["job_id"], "--answer", f"1={wrong}", expect=2).err
    ade.within = False
    with Terminal(ade, "review", job["job_id"]) as terminal:
        terminal.until("2) row 2")
        terminal.type("2\n")
        terminal.end()
    (path,) = ade.bucket.glob("inbox/**/a.csv.decision.json")
    decision = json.loads(path.read_bytes())
    assert [a["value"] for a in decision["answers"]] == ["2"]


def test_a_manifest_that_asks_is_tried_and_answered_at_the_desk(ade):
    ade.within = True
    ade.write("a.csv", CSV)
    ade.write("manifest.json", MANIFEST)
    tried = ("try", "a.csv", "--manifest", "manifest.json", "--out", "out")
    assert "a.csv.decision.json" in ade(*tried, expect=6, ADE_SANDBOX="process").out
    assert {path.name for path in (ade.home / "out").iterdir()} == {"review.json", "review.html", "logs.txt"}
    answers = [{"header": "Qzx 7", "field": "street"}, {"header": "opened", "reading": "day_first"}]
    ade.write("a.csv.decision.json", {"decision": 1, "by": "ann", "answers": answers})
    ade(*tried, ADE_SANDBOX="process")
    assert json.loads((ade.home / "out" / "artifact.json").read_text())["decision"]["by"] == "ann"
    assert not (ade.home / "out" / "review.json").exists()
    ade.write("a.csv.decision.json", {"decision": 1})
    assert "$.by: is missing" in ade(*tried, expect=2, ADE_SANDBOX="process").err
