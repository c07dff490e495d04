"""Declared rules: each finding names its cell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.engine.values.checking import SeenValues
from tests.support.engine_jobs import run_job

CASES = {
    "required": ({"required": True}, ["a", None, " ", "b"], "required", ["A3", "A4"]),
    "unique": ({"unique": True}, ["a", "b", "a", None, None, "a"], "duplicate", ["A4", "A7"]),
    "unique after cleaning": ({"unique": True, "clean": ["strip", "upper"]}, ["a", " A"], "duplicate", ["A3"]),
    "unique numbers, some of them texts": (
        {"type": "decimal", "unique": True},
        [5, "5", 6, "5.00", 7.5, "7.5", 0, "-0"],
        "duplicate",
        ["A3", "A5", "A7", "A9"],
    ),
    "pattern": ({"pattern": "M[0-9]+"}, ["M1", "x", "M1x", None], "pattern", ["A3", "A4"]),
    "pattern on numbers": ({"type": "integer", "pattern": "[0-9]{3}"}, [123, 1234], "pattern", ["A3"]),
    "min": ({"type": "decimal", "min": 0}, [1, -1, "x", None, 0], "min", ["A3"]),
    "max": ({"type": "money", "max": 10}, ["$9", "$11"], "max", ["A3"]),
    "min of dates": ({"type": "date", "min": "2026-01-01"}, ["2025-12-31", "2026-01-01"], "min", ["A2"]),
    "max of datetimes": (
        {"type": "datetime", "max": "2026-01-01T12:00:00"},
        ["2026-01-01 12:01", "2026-01-01 12:00"],
        "max",
        ["A2"],
    ),
    "max of times": ({"type": "time", "max": "12:00"}, ["12:01", "9:00"], "max", ["A2"]),
    "min_length": ({"min_length": 2}, ["ab", "a", None], "min_length", ["A3"]),
    "max_length": ({"max_length": 2}, ["ab", "abc"], "max_length", ["A3"]),
    "allowed": ({"allowed": ["x", "y"]}, ["X", "z", None], "not_allowed", ["A3"]),
    "allowed numbers": ({"type": "integer", "allowed": [1, 2]}, [1, "2", 3], "not_allowed", ["A4"]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_declared_rule_names_the_cells_that_break_it(name, tmp_path):
    spec, values, code, cells = CASES[name]
    rows = [["f", "n"], *([v, n] for n, v in enumerate(values))]
    done = run_job(tmp_path, rows, fields=[{"name": "f", **spec}])
    assert done.cells(code) == cells


def test_a_rule_may_warn_instead(tmp_path):
    fields = [{"name": "f", "required": True, "severity": "warning"}]
    done = run_job(tmp_path, [["f", "n"], [None, 1], ["a", 2]], fields=fields)
    assert done.artifact["summary"]["findings"] == {"error": 0, "warning": 1, "info": 0}


def test_unique_counts_over_all_files_of_a_drop(tmp_path):
    files = {"a.xlsx": [["f", "n"], ["x", 1], ["y", 2]], "b.xlsx": [["f", "n"], ["z", 1], ["x", 2]]}
    done = run_job(tmp_path, fields=[{"name": "f", "unique": True}], files=files, inputs={"per": "drop"})
    found = [f for f in done.findings if f["code"] == "duplicate"]
    assert [(f["input"], f["cell"]) for f in found] == [("b.xlsx", "A3")]


ROWS = [
    ["start", "end", "kind", "n"],
    ["2026-01-01", "2026-02-01", "a", 1],
    ["2026-03-01", "2026-02-01", "b", 2],
    ["2026-03-01", None, "b", 3],
]
DATES = [{"name": "start", "type": "date"}, {"name": "end", "type": "date"}, {"name": "kind"}]


@pytest.mark.parametrize(
    ("rule", "cells"),
    [
        ({"then": {"field": "end", "op": ">=", "other": "start"}}, ["B3"]),
        ({"when": {"field": "kind", "op": "==", "value": "a"}, "then": {"field": "end", "op": "empty"}}, ["B2"]),
        ({"when": {"field": "kind", "op": "in", "value": ["B"]}, "then": {"field": "end", "op": "present"}}, ["B4"]),
        ({"then": {"field": "start", "op": "<", "value": "2026-02-01"}}, ["A3", "A4"]),
        ({"then": {"field": "kind", "op": "not in", "value": ["b"]}}, ["C3", "C4"]),
        ({"then": {"field": "kind", "op": "!=", "value": "a"}}, ["C2"]),
    ],
)
def test_a_rule_over_a_row_names_the_cell_it_judges(rule, cells, tmp_path):
    done = run_job(tmp_path, ROWS, fields=DATES, row_rules=[{"name": "r", **rule}])
    assert done.cells("row_rule") == cells


MIXED = st.lists(st.one_of(st.none(), st.text(max_size=2), st.integers(-3, 3)), max_size=60)
RISING = st.builds(
    lambda rising, last: [*rising, *last],
    st.lists(st.integers(0, 999), unique=True)
    .map(sorted)
    .flatmap(lambda n: st.sampled_from([n, [f"{v:03}" for v in n]])),
    st.lists(st.one_of(st.none(), st.integers(0, 2000), st.sampled_from(["000", "001", "500", "9999"])), max_size=5),
)


@given(st.one_of(MIXED, RISING), st.integers(1, 7))
def test_repeats_are_found_whatever_the_chunks(values, size):
    seen = SeenValues(max_in_set=5, worth_packing=1)
    found = []
    for at in range(0, len(values), size):
        found += [at + i for i in seen.repeats(values[at : at + size])]
    wanted, before = [], set()
    for n, value in enumerate(values):
        if value is not None and value in before:
            wanted.append(n)
        before.add(value)
    assert found == wanted


def test_a_value_that_is_allowed_as_it_stands_keeps_its_spelling(tmp_path):
    rows = [["city", "plan"], ["Bonn", "gold"], ["bonn", "Gold"], ["BONN", "GOLD"]]
    fields = [
        {"name": "city", "type": "enum", "allowed": {"lookup": "cities", "column": "name"}},
        {"name": "plan", "type": "enum", "allowed": ["Gold", "gold"]},
    ]
    done = run_job(tmp_path, rows, fields=fields, aux={"cities": "code,name\n1,Bonn\n2,bonn\n3,Ulm\n"})
    assert done.rows()[1:] == [["Bonn", "gold"], ["bonn", "Gold"], ["Bonn", "Gold"]]


def test_of_two_columns_of_a_look_up_table_with_one_name_the_first_counts(tmp_path):
    fields = [{"name": "id"}, {"name": "city", "allowed": {"lookup": "cities", "column": "name"}}]
    rows = [["id", "city"], ["a", "A"], ["b", "X"]]
    done = run_job(tmp_path, rows, fields=fields, aux={"cities": "name,n,name\nA,1,X\nB,2,Y\nC,3,Z\n"})
    assert done.cells("not_allowed") == ["B3"]


@pytest.mark.parametrize(
    ("then", "message"),
    [
        ({"field": "n", "op": ">", "value": 10}, "n > 10 does not hold"),
        ({"field": "n", "op": "in", "value": [7, 8]}, "n in 7, 8 does not hold"),
        ({"field": "n", "op": "<", "other": "m"}, "n < m does not hold"),
        ({"field": "m", "op": "empty"}, "m is not blank"),
        ({"field": "k", "op": "present"}, "k is blank"),
    ],
)
def test_a_rule_without_a_message_says_what_does_not_hold(then, message, tmp_path):
    fields = [{"name": "n", "type": "integer"}, {"name": "m", "type": "integer"}, {"name": "k"}]
    rows = [["n", "m", "k"], [5, 4, None]]
    done = run_job(tmp_path, rows, fields=fields, row_rules=[{"name": "r", "then": then}])
    assert [f["message"] for f in done.findings if f["code"] == "row_rule"] == [message]
