"""Spellings of allowed values that a memory knows: applied, counted, and shown nowhere."""

import json
from datetime import UTC, datetime

import pytest

from core.memories import Memory, SpellingFact, learn, serialized
from tests.support.engine_jobs import run_job

PLAN = {"name": "plan", "type": "enum", "allowed": ["gold", "silver"]}
ROWS = [["name", "plan"], ["Ann", "Gld "], ["Bob", "gold"], ["Cid", "GLD"], ["Dan", "bronze"]]


def memory_of(*facts):
    memory = Memory()
    for day, fact in enumerate(facts, 1):
        memory = learn(memory, [fact], at=datetime(2026, 1, day, tzinfo=UTC))
    return serialized(memory)


def ran(tmp_path, memory, rows=None, plan=None):
    return run_job(tmp_path, rows or ROWS, fields=[{"name": "name"}, plan or PLAN], memory=memory, sender="north")


@pytest.mark.parametrize("kind", ["enum", "text"])
def test_a_learnt_spelling_becomes_the_allowed_value_and_each_cell_is_counted(tmp_path, kind):
    done = ran(tmp_path, memory_of(SpellingFact("plan", "gld", "gold")), plan={**PLAN, "type": kind})
    assert done.column("plan") == ["gold", "gold", "gold", "bronze"]
    assert {k: done.artifact["validation"]["by_code"].get(k) for k in ("spelling_learnt", "not_allowed")} == {
        "spelling_learnt": 2,
        "not_allowed": 1,
    }
    assert "gld" not in json.dumps(done.artifact).casefold()


def test_a_number_can_be_a_spelling(tmp_path):
    rows = [["name", "plan"], ["Ann", 1], ["Bob", "silver"], ["Cid", 1]]
    done = ran(tmp_path, memory_of(SpellingFact("plan", "1", "gold")), rows)
    assert done.column("plan") == ["gold", "silver", "gold"]
    assert done.artifact["validation"]["by_code"]["spelling_learnt"] == 2


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ([SpellingFact("plan", "gld", "silver", times=9), SpellingFact("plan", "gld", "gold", by="ann")], "gold"),
        ([SpellingFact("plan", "gld", "silver", by="ann"), SpellingFact("plan", "gld", "gold", by="bob")], "gold"),
        ([SpellingFact("plan", "gld", "silver"), SpellingFact("plan", "gld", "gold", times=2)], "gold"),
        ([SpellingFact("plan", "gld", "silver"), SpellingFact("plan", "gld", "gold")], "GLD"),
        ([SpellingFact("plan", "gld", "platinum")], "GLD"),
        ([SpellingFact("name", "gld", "gold")], "GLD"),
    ],
    ids=["person", "newest person", "count", "tie", "no longer allowed", "other field"],
)
def test_of_several_meanings_the_newest_word_of_a_person_counts_then_the_greater_count(tmp_path, facts, found):
    assert ran(tmp_path, memory_of(*facts)).column("plan")[2] == found


def test_an_allowed_value_is_never_taken_for_another(tmp_path):
    done = ran(tmp_path, memory_of(SpellingFact("plan", "gold", "silver", by="ann")))
    assert done.column("plan")[1] == "gold"


def test_a_field_without_allowed_values_keeps_its_texts(tmp_path):
    done = ran(tmp_path, memory_of(SpellingFact("plan", "gld", "gold", by="ann")), plan={"name": "plan"})
    assert done.column("plan")[2] == "GLD"


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b'{"memory": 1, "values": [{"field": "plan"}]}', b'{"memory": 1, "readings": {}, "headers": [1]}'],
    ids=["no JSON", "no object", "no spelling", "no header"],
)
def test_a_memory_that_cannot_be_used_is_the_configs_fault_and_named(tmp_path, body):
    done = ran(tmp_path, body)
    assert (done.error["code"], "the memory k was refused" in done.error["message"]) == ("config_refused", True)


def abo(tmp_path, memory, values=("Gld", "slv", "GLD", "gold", "brz"), **plan):
    rows = [["name", "Abo"], *([f"Name {n}", value] for n, value in enumerate(values))]
    return run_job(
        tmp_path, rows, fields=[{"name": "name"}, {**PLAN, "allowed": ["gold", "silver", "bronze"], **plan}],
        memory=memory, sender="north",
    )  # fmt: skip


KNOWN = (
    SpellingFact("plan", "gld", "gold"),
    SpellingFact("plan", "slv", "silver"),
    SpellingFact("plan", "brz", "bronze"),
)


def test_a_column_of_known_spellings_is_the_field_whose_values_they_mean(tmp_path):
    done = abo(tmp_path / "with", memory_of(*KNOWN))
    (column,) = (m for m in done.artifact["mapping"] if m["header"] == "Abo")
    assert column["target"] == "plan"
    assert {"memory:spellings", "allowed"} <= {c["rule"] for c in column["contributors"]}
    assert done.column("plan") == ["gold", "silver", "gold", "gold", "bronze"]
    for text in ("gld", "slv", "brz"):
        assert text not in json.dumps(done.artifact).casefold()
    assert abo(tmp_path / "without", memory_of()).mapped()["Abo"] is None


@pytest.mark.parametrize(
    ("facts", "values"),
    [
        (tuple(f._replace(field="other") for f in KNOWN), ("Gld", "slv", "brz")),
        (tuple(f._replace(means="wood") for f in KNOWN), ("Gld", "slv", "brz")),
        (KNOWN, ("Gld", "slv", "x1", "y2", "z3")),
        ([SpellingFact("plan", str(n), v) for n, v in enumerate(("gold", "silver", "bronze"))], ("0", "1", "2", "1")),
    ],
    ids=["of another field", "of no allowed value", "too few", "bare numbers"],
)
def test_spellings_that_say_nothing_give_a_column_no_field(tmp_path, facts, values):
    assert abo(tmp_path, memory_of(*facts), values).mapped()["Abo"] is None
