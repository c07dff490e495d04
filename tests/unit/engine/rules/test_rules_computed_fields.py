"""Fields without Python: expressions, several columns, lookups and value maps; every cell that has no value is reported."""

import datetime as dt

import pytest

from runner.engine.common.fields import Field
from runner.engine.common.findings import Findings
from runner.engine.expressions.evaluation import Columns
from runner.engine.expressions.evaluation import evaluate_expression as evaluated
from runner.engine.expressions.signatures import compile_expression
from runner.engine.tables.lookups import Lookups
from runner.engine.transforming.computing import ComputedColumn, LookupJoin
from tests.support.engine_jobs import run_job

FIELDS = [
    {"name": "id"},
    {"name": "gross", "type": "money"},
    {"name": "tax", "type": "money"},
    {"name": "since", "type": "date"},
]
ROWS = [
    ["id", "gross", "tax", "since"],
    ["a", 10.1, 0.2, "2026-01-31"],
    ["b", 5, 0, "2026-02-28"],
    ["c", "7,5o", 1, "2026-03-01"],
    ["d", None, 1, None],
]


def computed(name, expression, kind="text", **more):
    return {"name": name, "type": kind, "from": {"expression": expression}, **more}


def found(done, *codes):
    return [(f["code"], f.get("cell"), f.get("field"), f["severity"]) for f in done.findings if f["code"] in codes]


def test_money_is_computed_exactly_and_blanks_stay_blank(tmp_path):
    done = run_job(tmp_path, ROWS, fields=[*FIELDS, computed("net", "gross - tax", "money")])
    assert done.column("net") == [9.9, 5, None, None]
    assert found(done, "expression_error") == [("expression_error", "B4", "net", "error")]
    assert [t["rule"] for t in done.artifact["transforms"] if t["field"] == "net"] == ["from:expression"]


def test_what_cannot_be_computed_is_blank_and_names_the_cell_and_the_rule(tmp_path):
    done = run_job(
        tmp_path, ROWS, fields=[*FIELDS, computed("ratio", "tax / (gross - 5)", "decimal", severity="warning")]
    )
    assert done.column("ratio") == [pytest.approx(0.2 / 5.1), None, None, None]
    (by_zero, wrong) = [f for f in done.findings if f["code"] == "expression_error"]
    assert by_zero["message"] == "the expression divides by zero"
    assert (by_zero["cell"], by_zero["severity"], by_zero["rule"]) == ("B3", "warning", "from")
    assert wrong["message"] == "the expression uses gross, which is not valid here"
    assert wrong["cell"] == "B4"


def test_fields_are_computed_in_the_order_of_what_they_use(tmp_path):
    fields = [computed("year_text", "text(year)"), computed("year", "year(since)", "integer"), *FIELDS]
    done = run_job(tmp_path, ROWS, fields=fields)
    assert done.column("year_text") == ["2026", "2026", "2026", None]


def test_the_rules_of_a_computed_field_hold_for_its_values(tmp_path):
    fields = [*FIELDS, computed("net", "gross - tax", "money", min=6, required=True)]
    done = run_job(tmp_path, ROWS, fields=fields)
    assert found(done, "min", "required") == [
        ("required", "B4", "net", "error"),
        ("required", "B5", "net", "error"),
        ("min", "B3", "net", "error"),
    ]


def test_a_default_fills_what_is_blank(tmp_path):
    done = run_job(tmp_path, ROWS, fields=[*FIELDS, computed("net", "gross - tax", "money", default=0)])
    assert done.column("net") == [9.9, 5, 0, 0]


def test_python_sees_computed_fields_and_expressions_see_what_python_made(tmp_path):
    rules = {
        "columns/twice.py": "def transform(*, value, record):\n    return None if record['net'] is None else record['net'] * 2\n",
        "columns/net.py": "def transform(*, value):\n    return value\n",
    }
    fields = [
        *FIELDS,
        computed("four", "twice * 2", "decimal"),
        {"name": "twice", "type": "decimal"},
        computed("net", "gross - tax", "money"),
    ]
    done = run_job(tmp_path, ROWS, fields=fields, rules=rules)
    assert done.column("twice") == [19.8, 10, None, None]
    assert done.column("four") == [39.6, 20, None, None]


def test_a_computed_field_is_no_column_to_look_for(tmp_path):
    rows = [["id", "net"], ["a", 1], ["b", 2]]
    done = run_job(tmp_path, rows, fields=[{"name": "id"}, computed("net", "length(id)", "integer")])
    assert done.rows() == [["id", "net_2", "net"], ["a", 1, 1], ["b", 2, 1]]
    assert not found(done, "field_unmapped", "missing_field")


PEOPLE = [["First", "Last", "Mobile", "Phone", "Day 1", "Day 2"], ["Ann", "Lee", None, "555", None, "31.12.2025"], ["Bo", None, "777", "888", "13.01.2026", None]]  # fmt: skip


def columns(name, *headers, **more):
    source = {"columns": list(headers), **{k: more.pop(k) for k in ("combine", "separator") if k in more}}
    return {"name": name, "from": source, **more}


def test_several_columns_become_one_field(tmp_path):
    fields = [
        columns("name", "last", "FIRST", combine="join", separator=", "),
        columns("phone", "Mobile", "Phone"),
        columns("day", "Day 1", "Day 2", type="date"),
    ]
    done = run_job(tmp_path, PEOPLE, fields=fields)
    assert done.rows() == [
        ["name", "phone", "day"],
        ["Lee, Ann", "555", dt.datetime(2025, 12, 31)],
        ["Bo", "777", dt.datetime(2026, 1, 13)],
    ]
    assert done.artifact["summary"]["columns_unmapped"] == 0
    assert not done.findings


def test_a_cell_of_a_second_column_is_read_by_its_own_convention_and_reported_there(tmp_path):
    rows = [
        ["a", "b", "n"],
        *([f"{n:02}/13/2025", None, n] for n in range(1, 9)),
        *([None, f"13/{n:02}/2025", n] for n in range(1, 9)),
    ]
    done = run_job(tmp_path, rows, fields=[{"name": "n"}, columns("day", "a", "b", type="date")])
    wanted = [dt.datetime(2025, n, 13) for n in range(1, 9)]
    assert done.column("day") == wanted * 2


DATED = [["id", "Day 1", "Day 2"], [1, None, "soon"], [2, "later", "1.2.2025"], [3, "3.2.2025", "never"], [4, None, None]]  # fmt: skip


@pytest.mark.parametrize("shape", [{}, {"dedupe": {"key": ["id"]}}, {"filter": "id > 0"}])
def test_what_is_wrong_with_a_value_names_the_column_that_it_was_taken_from(tmp_path, shape):
    fields = [{"name": "id", "type": "integer"}, columns("day", "Day 1", "Day 2", type="date", required=True)]
    done = run_job(tmp_path, DATED, fields=fields, row_shape=shape)
    wrong = {(f["code"], f["cell"]) for f in done.findings if f["field"] == "day"}
    assert wrong == {("type_error", "C2"), ("type_error", "B3"), ("required", "B5")}


def test_a_map_is_asked_about_the_values_that_are_taken(tmp_path):
    rows = [["id", "Old", "New"], [1, "a", "zzz"], [2, None, "yyy"], [3, "xxx", None]]
    fields = [{"name": "id"}, columns("kind", "Old", "New", map={"a": "A"})]
    done = run_job(tmp_path, rows, fields=fields)
    assert done.cells("not_mapped") == ["B4", "C3"]


def test_columns_that_a_file_lacks_are_reported_where_they_are_joined(tmp_path):
    fields = [
        columns("name", "First", "Middle", combine="join"),
        columns("phone", "Mobile", "Telephone"),
        columns("x", "No", "None"),
    ]
    done = run_job(tmp_path, PEOPLE, fields=fields)
    assert done.column("name") == ["Ann", "Bo"]
    assert [f["message"].split(":")[0] for f in done.findings if f["code"] == "part_missing"] == [
        "the field name is joined without Middle"
    ]
    assert [f["field"] for f in done.findings if f["code"] == "field_unmapped"] == ["x"]


PLANS = "code,price,name\ngold,12.50,Gold plan\nSILVER,7,Silver plan\nold,1,A\nold,2,B\n,3,Nothing\nbad,soon,Bad\n"


def lookup(name, column, kind="text", **more):
    return {
        "name": name,
        "type": kind,
        "from": {"lookup": "plans", "key": "plan", "match": "code", "column": column},
        **more,
    }


def test_a_lookup_brings_several_columns_and_no_match_is_a_finding(tmp_path):
    rows = [["plan", "n"], ["Gold", 1], ["silver ", 2], ["none", 3], [None, 4], ["old", 5], ["bad", 6]]
    fields = [
        {"name": "plan"},
        lookup("price", "price", "money"),
        lookup("title", "Name"),
        computed("twice", "price * 2", "money"),
    ]
    done = run_job(tmp_path, rows, fields=fields, aux={"plans": PLANS})
    assert done.column("price") == [12.5, 7, None, None, None, "soon"]
    assert done.column("title") == ["Gold plan", "Silver plan", None, None, None, "Bad"]
    assert done.column("twice") == [25, 14, None, None, None, None]
    assert found(done, "lookup_missing", "lookup_ambiguous", "type_error", "expression_error") == [
        ("lookup_missing", "A4", "price", "error"),
        ("lookup_ambiguous", "A6", "price", "error"),
        ("lookup_missing", "A4", "title", "error"),
        ("lookup_ambiguous", "A6", "title", "error"),
        ("expression_error", "A7", "twice", "error"),
        ("type_error", "A7", "price", "error"),
    ]


def test_a_column_that_the_lookup_table_lacks_ends_the_job(tmp_path):
    done = run_job(tmp_path, [["plan"], ["x"]], fields=[{"name": "plan"}, lookup("a", "cost")], aux={"plans": PLANS})
    assert done.error["code"] == "config_refused"
    assert "column cost" in done.error["message"]


SEX = [["sex", "n"], ["M", 1], [" f ", 2], ["?", 3], [None, 4]]


@pytest.mark.parametrize(
    ("otherwise", "values", "cells"),
    [
        ({}, ["male", "female", "?", None], ["A4"]),
        ({"otherwise": "finding"}, ["male", "female", "?", None], ["A4"]),
        ({"otherwise": "keep"}, ["male", "female", "?", None], []),
        ({"otherwise": "blank"}, ["male", "female", None, None], []),
        ({"otherwise": {"value": "other"}}, ["male", "female", "other", None], []),
        ({"otherwise": "blank", "default": "unknown"}, ["male", "female", "unknown", "unknown"], []),
    ],
)
def test_a_map_turns_values_into_others(otherwise, values, cells, tmp_path):
    done = run_job(tmp_path, SEX, fields=[{"name": "sex", "map": {"m": "male", "F": "female"}, **otherwise}])
    assert done.column("sex") == values
    assert done.cells("not_mapped") == cells


@pytest.mark.parametrize(
    ("kind", "more", "mapped", "values"),
    [
        ("integer", {}, {"one": 1, "two": 2}, [1, 2, 1]),
        ("percent", {}, {"one": 0.5, "two": 1}, [0.5, 1, 0.5]),
        ("boolean", {}, {"one": True, "two": False}, [True, False, True]),
        (
            "date",
            {},
            {"one": "2026-01-31", "two": "2026-02-01"},
            [dt.datetime(2026, 1, 31), dt.datetime(2026, 2, 1), dt.datetime(2026, 1, 31)],
        ),
        ("enum", {"allowed": ["First", "Second"]}, {"one": "First", "two": "Second"}, ["First", "Second", "First"]),
    ],
)
def test_mapped_values_are_of_the_fields_type(kind, more, mapped, values, tmp_path):
    rows = [["rank", "n"], ["one", 1], ["TWO", 2], ["One", 3]]
    done = run_job(tmp_path, rows, fields=[{"name": "rank", "type": kind, "map": mapped, **more}])
    assert done.column("rank") == values
    assert not done.findings


def test_a_map_reads_numbers_and_truths_as_the_texts_that_they_show(tmp_path):
    rows = [["sex", "n"], [1, 1], ["1 ", 2], [2.0, 3], [True, 4], ["true", 5], [1.0, 6]]
    done = run_job(tmp_path, rows, fields=[{"name": "sex", "map": {"1": "male", "2": "female", "TRUE": "yes"}}])
    assert done.column("sex") == ["male", "male", "female", "yes", "yes", "male"]


def test_a_map_applies_to_what_is_computed(tmp_path):
    fields = [
        *FIELDS,
        computed("quarter", "quarter(since)", map={"1": "Q1", "2": "Q2"}),
        computed("taxed", "tax > 0", map={"true": "yes", "false": "no"}),
        computed("first", "month(since) == 1", "integer", map={"TRUE": 1, "FALSE": 0}),
    ]
    done = run_job(tmp_path, ROWS, fields=fields)
    assert done.column("quarter") == ["Q1", "Q1", "Q1", None]
    assert done.column("taxed") == ["yes", "no", "yes", "yes"]
    assert done.column("first") == [1, 0, 0, None]


def test_a_text_field_may_hold_numbers(tmp_path):
    """Allowed values, defaults and mapped values of a text field are what the manifest says, also numbers."""
    rows = [["grade", "n"], ["1", 1], ["2.5", 2], [None, 3]]
    fields = [
        {"name": "grade", "type": "enum", "allowed": [1, 2.5, True], "default": True},
        computed("label", "'no. ' & upper(grade)"),
    ]
    assert run_job(tmp_path, rows, fields=fields).column("label") == ["no. 1", "no. 2.5", "no. TRUE"]


def test_a_long_chain_of_computed_fields_costs_what_it_is_long(tmp_path):
    chain = [computed(f"f{n}", f"f{n - 1} + f{max(0, n - 2)}", "decimal") for n in range(1, 600)]
    done = run_job(
        tmp_path,
        [["id", "x"], ["a", 1], ["b", 2]],
        fields=[{"name": "id"}, {"name": "f0", "type": "decimal", "optional": True}, *chain],
    )
    assert done.column("f599") == [None, None]


@pytest.mark.parametrize("wrong", [dt.timedelta(1), object(), b"x", [1]])
def test_values_that_no_field_should_have_make_an_expression_fail_in_their_row(wrong):
    done = evaluated(
        compile_expression("upper(s) & round(n / 2, 1)", {"s": "text", "n": "decimal"}),
        Columns({"s": ["a", wrong, "b"], "n": [1, 2, wrong]}, {}, 3),
    )
    assert done.values == ["A0.5", None, None]
    assert sorted(done.failed) == [1, 2]


def test_an_optional_lookup_table_that_is_not_there_leaves_its_field_blank_with_a_warning():
    findings = Findings()
    field = Field(lookup("price", "price", "money"))
    join = LookupJoin(field, field.source, Lookups([]), findings)
    assert join.values_of_keys(["a", None]) == ComputedColumn([None, None], [], [])
    assert [(f.code, f.severity, f.field) for f in findings.listed] == [("lookup_absent", "warning", "price")]


def test_a_finding_on_a_coalesced_value_names_the_cell_that_it_is_from(tmp_path):
    rows = [["k", "A", "B"], ["a", None, 50], ["b", 3, 4], ["c", None, "many"], ["d", None, 3]]
    fields = [columns("amount", "A", "B", type="integer", min=4), {"name": "k"}]
    fields.append(computed("double", "amount * 2", "integer", max=9))
    done = run_job(tmp_path, rows, fields=fields, row_shape={"filter": "100 / (amount - 3) > 0"})
    assert [cell for _, cell, _, _ in found(done, "filter_unsure")] == ["B3", "C4", "C5"]
    assert found(done, "type_error", "min", "max") == [
        ("type_error", "C4", "amount", "error"),
        ("min", "B3", "amount", "error"),
        ("min", "C5", "amount", "error"),
        ("max", "C2", "double", "error"),
    ]
