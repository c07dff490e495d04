"""No cell's value leaves the box but in the normalized workbook: marks are planted and looked for everywhere else."""

import json
import tempfile
from datetime import date, datetime, time
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.engine.mapping import table_mapping as mapping_tables
from tests.support.effort import examples
from tests.support.engine_jobs import Outcome, run_job

MARK = "Zqx9Secret"
NUMBER = 918273645
TYPES = [
    "text",
    "integer",
    "decimal",
    "money",
    "percent",
    "date",
    "datetime",
    "time",
    "boolean",
    "email",
    "phone",
    "url",
]
# What each planted cell may be: texts with the mark in every dress, and numbers and dates that stand for it.
PLANTED = [
    MARK, f" {MARK.lower()} ", f"{MARK}@{MARK}.com", f"https://{MARK}.org/{MARK}", f"${NUMBER}.25", f"={MARK}()",
    f"<b>{MARK}</b>", f"{MARK}\n{MARK}", MARK * 4000, NUMBER, NUMBER + 0.25, f"+{NUMBER}1", "1987-06-05", date(1987, 6, 5),
    datetime(1987, 6, 5, 4, 3, 2), time(4, 3, 2), None, True, f"%{MARK}s{{0}}",
]  # fmt: skip
TRACES = [MARK.casefold(), str(NUMBER), "1987-06-05", "06/05/1987", "04:03:02", "datetime.date"]
LEAKY = {
    "columns/c0.py": (
        "def detect_it(*, header, values_sample):\n    raise KeyError(values_sample)\n"
        "def transform(*, value):\n    if value is not None:\n        raise ValueError(f'cannot use {value!r}')\n    return value\n"
        "def validate(*, value):\n    return f'{value} is wrong'\n"
    ),
    "columns/c1.py": (
        "def transform(*, values):\n    try:\n        return [int('x' + str(v)) for v in values]\n"
        "    except ValueError as e:\n        raise RuntimeError(str(values)) from e\n"
        "def validate(*, values):\n    return {'issues': [{'index': i, 'message': str(v), 'code': str(v)} for i, v in enumerate(values)]}\n"
    ),
    "columns/c2.py": "def transform(*, values):\n    return {'values': values, 'warnings': [{'index': 0, 'message': repr(values)}]}\n",
    "columns/c3.py": "def detect_it(*, values_sample):\n    return {'scores': {str(values_sample): 1}}\n",
    "columns/c4.py": "class E(Exception):\n    pass\ndef validate(*, value):\n    exec('raise E(value)', {'E': E, 'value': value}, None)\n",
    "row_types/header.py": "def detect(*, row_values_sample):\n    raise TypeError(str(row_values_sample))\n",
    "hooks/h.py": (
        "def after_transform(*, columns):\n    raise RuntimeError(str(columns))\n"
        "def after_validate(*, columns):\n"
        "    return {'issues': [{'index': 0, 'field': 'c0', 'message': str(columns['c0']), 'code': str(columns['c1'])}]}\n"
        "def finalize(*, state):\n    raise LookupError('x')\n"
        "def on_job_end(*, summary):\n    return [summary]\n"
    ),
}


def said(done: Outcome) -> str:
    """All that leaves the box beside the workbook: events, artifact, report."""
    parts = [json.dumps(done.events, ensure_ascii=False)]
    for name in ("artifact.json", "report.html"):
        path = done.folder / name
        parts.append(path.read_text() if path.exists() else "")
    return "\n".join(parts).casefold()


def check(done: Outcome) -> None:
    text = said(done)
    assert [t for t in TRACES if t in text] == []


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.sampled_from(TYPES), min_size=5, max_size=7))
    cell = st.integers(0, len(PLANTED) - 1)  # which one: an example stays short enough to be shown
    rows = draw(st.lists(st.lists(cell, min_size=len(kinds), max_size=len(kinds)), min_size=3, max_size=8))
    return kinds, rows


def spec(kinds):
    more = [
        {"required": True, "unique": True},
        {"pattern": "[0-9]+"},
        {"max_length": 3},
        {"min_length": 9},
        {"allowed": ["x"]},
    ]
    return [{"name": f"c{n}", "type": k, **(more[n % 5])} for n, k in enumerate(kinds)]


@settings(max_examples=examples(25), deadline=None)
@given(tables(), st.booleans(), st.sampled_from(["finding", "fail"]))
def test_no_planted_value_is_found_outside_the_workbook(table, with_rules, on_error):
    kinds, rows = table
    with tempfile.TemporaryDirectory() as folder:
        done = run_job(
            Path(folder),
            [[f"c{n}" for n in range(len(kinds))], *([PLANTED[at] for at in row] for row in rows)],
            fields=spec(kinds),
            rules=LEAKY if with_rules else None,
            on_rule_error=on_error,
            row_rules=[{"name": "r", "then": {"field": "c0", "op": "==", "other": "c1"}}],
            output={"findings_sheet": True},
        )
        check(done)


def test_texts_right_under_the_declared_names_are_data_and_stay_out(tmp_path):
    rows = [[f"c{n}" for n in range(6)], [None, *[MARK] * 5], [MARK] * 6, [f"${NUMBER}.25"] * 6]
    check(run_job(tmp_path, rows, fields=spec(["text"] * 6)))


def test_titles_notes_and_totals_stay_out_too(tmp_path):
    rows = [
        [f"{MARK} of 2026"],
        [],
        ["code", "amount", "when"],
        *([f"a{n}", n, "2026-01-31"] for n in range(5)),
        ["Total", NUMBER, None],
        [],
        [f"Note: {MARK}"],
    ]
    check(run_job(tmp_path, rows, fields=[{"name": "code"}, {"name": "amount", "type": "money"}]))


def test_a_lookup_tables_values_stay_out(tmp_path):
    fields = [{"name": "code", "type": "enum", "allowed": {"lookup": "plans", "column": "id"}}]
    rows = [["code", "n"], [MARK, 1], [f"{MARK}2", 2]]
    check(run_job(tmp_path, rows, fields=fields, aux={"plans": f"id,label\n{MARK}x,y\n{MARK}y,z\n"}))


@pytest.mark.parametrize("on_error", ["finding", "fail"])
def test_an_exception_of_a_rule_is_reported_by_its_kind_and_place_alone(on_error, tmp_path):
    done = run_job(
        tmp_path,
        [["c0", "n"], [MARK, 1], [MARK, 2]],
        fields=[{"name": "c0"}],
        rules={"columns/c0.py": LEAKY["columns/c0.py"]},
        on_rule_error=on_error,
    )
    check(done)
    assert "keyerror" in said(done) or "valueerror" in said(done)


@pytest.mark.parametrize(
    "body",
    [
        "raise type(value, (KeyError,), {})(value)",
        "E = type('E', (KeyError,), {})\n    E.__name__ = value\n    raise E",
        "return type(value, (), {})()",
    ],
)
def test_a_class_that_is_named_after_a_value_goes_by_the_name_of_one_that_is_not(body, tmp_path):
    done = run_job(
        tmp_path,
        [["c0", "n"], [MARK, 1], [MARK, 2]],
        fields=[{"name": "c0"}],
        rules={"columns/c0.py": f"def transform(*, value):\n    {body}\n"},
    )
    check(done)
    assert "raised keyerror" in said(done) or "of type object" in said(done)


def test_a_rules_own_exception_is_reported_by_its_name(tmp_path):
    source = "class NoSuchPlan(Exception):\n    pass\ndef transform(*, value):\n    raise NoSuchPlan(value)\n"
    done = run_job(
        tmp_path, [["c0", "n"], [MARK, 1], [MARK, 2]], fields=[{"name": "c0"}], rules={"columns/c0.py": source}
    )
    check(done)
    assert "raised nosuchplan" in said(done)


def test_a_module_that_fails_to_load_is_reported_by_its_kind_and_place(tmp_path):
    source = f"X = {{}}\nX['{MARK}']\ndef transform(*, value):\n    return value\n"
    done = run_job(
        tmp_path, [["c0", "n"], ["a", 1], ["b", 2]], fields=[{"name": "c0"}], rules={"columns/c0.py": source}
    )
    check(done)
    assert done.error["where"]["line"] == 2


@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("gap", [0, 1])
@pytest.mark.parametrize("policy", ["keep", "prefix", "drop"])
def test_a_value_in_a_header_that_is_repeated_stays_out(tmp_path, position, gap, policy):
    """The second page's header has a value where the first has a label; the labels beside it are shown."""
    header = ["Member ID", "Full Name", "City", "Shade"]
    again = [MARK if n == position else name for n, name in enumerate(header)]
    body = [[f"M{n:04d}", f"Person {n}", f"Town {n % 3}", n * 10 + 0.5] for n in range(12)]
    fields = [{"name": "member_id"}, {"name": "full_name"}, {"name": "city"}]
    rows = [header, *body[:6], *([[]] * gap), again, *body[6:]]
    done = run_job(tmp_path, rows, fields=fields, mapping={"unmapped": policy})
    check(done)
    assert {m["header"] for m in done.artifact["mapping"]} >= set(header)


def test_a_field_under_another_of_its_names_in_a_later_table_is_shown(tmp_path):
    body = [[f"M{n:04d}", f"Person {n}", n * 10 + 0.5] for n in range(12)]
    rows = [["Member ID", "Full Name", "Amount"], *body[:6], [], ["Member ID", "Whole Name", "Amount"], *body[6:]]
    fields = [{"name": "member_id"}, {"name": "full_name", "synonyms": ["whole name"]}, {"name": "amount"}]
    done = run_job(tmp_path, rows, fields=fields)
    assert "Whole Name" in {m["header"] for m in done.artifact["mapping"]}


@pytest.mark.parametrize("policy", ["keep", "prefix", "drop"])
def test_a_header_that_may_be_a_row_of_data_is_shown_nowhere(tmp_path, monkeypatch, policy):
    """Nothing speaks for the first row but that it stands first: it goes into the workbook, not into what is told."""
    monkeypatch.setattr(mapping_tables, "_LEAST_CONFIDENCE", 2.0)
    rows = [["Xsurname", "Xwhereto"], *([f"Name {n}", f"p{n}@example.com"] for n in range(9))]
    fields = [{"name": "contact", "type": "email"}]
    done = run_job(tmp_path, rows, fields=fields, mapping={"unmapped": policy})
    told = done.artifact
    assert [m["target"] for m in told["mapping"]] == [None, "contact"]
    assert [m["header"] for m in told["mapping"]] == [None, None]
    for name in ("artifact.json", "report.html"):
        assert "Xsurname" not in (done.folder / name).read_text()
        assert "Xwhereto" not in (done.folder / name).read_text()
    if policy == "keep":
        assert "Xsurname" in str(next(openpyxl.load_workbook(done.folder / "normalized.xlsx").active.values))


def test_a_header_that_is_a_fields_name_is_shown_whatever_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr(mapping_tables, "_LEAST_CONFIDENCE", 2.0)
    rows = [["Surname", "Contact"], *([f"Name {n}", f"p{n}@example.com"] for n in range(9))]
    done = run_job(tmp_path, rows, fields=[{"name": "contact", "type": "email"}])
    assert [m["header"] for m in done.artifact["mapping"]] == ["Surname", "Contact"]
    assert [c["header"] for c in done.artifact["output"]["columns"]] == ["Surname", "contact"]
