"""Mapping a whole table: evidence, policy, collisions, several tables."""

import pytest

from tests.support.engine_jobs import run_job

PEOPLE = [
    ["Member #", "Nick", "Begin", "Mail"],
    ["M000001", "ada", "2026-01-31", "ada@a.de"],
    ["M000002", "bob", "2026-02-01", "bob@b.de"],
    ["M000003", "cy", "2026-02-02", "cy@c.de"],
]
FIELDS = [
    {"name": "member_id", "synonyms": ["member #"]},
    {"name": "start_date", "type": "date", "synonyms": ["begin"]},
    {"name": "email", "type": "email"},
]


def test_columns_find_their_fields(tmp_path):
    done = run_job(tmp_path, PEOPLE, fields=FIELDS)
    assert done.mapped() == {"Member #": "member_id", "Nick": None, "Begin": "start_date", "Mail": "email"}


def test_a_decision_says_what_spoke_for_it(tmp_path):
    done = run_job(tmp_path, PEOPLE, fields=FIELDS)
    begin = next(m for m in done.artifact["mapping"] if m["header"] == "Begin")
    assert [c["rule"] for c in begin["contributors"]] == ["header:synonym", "values:date", "type:date", "prior"]
    assert begin["contributors"][0]["weight"] > 5
    assert begin["probability"] > 0.99
    assert begin["header_cell"] == "C1"


def test_values_alone_can_tell_a_column(tmp_path):
    rows = [["Column X", "n"], ["ada@a.de", 1], ["bob@b.de", 2], ["cy@c.de", 3]]
    assert run_job(tmp_path, rows, fields=[{"name": "contact", "type": "email"}]).mapped()["Column X"] == "contact"


def test_a_pattern_that_fits_says_a_column(tmp_path):
    rows = [["Column X", "n"], ["M000001", 1], ["M000002", 2], ["M000003", 3]]
    assert run_job(tmp_path, rows, fields=[{"name": "key", "pattern": "M[0-9]{6}"}]).mapped()["Column X"] == "key"


def test_a_pattern_that_fits_anything_says_nothing(tmp_path):
    rows = [["Column X", "n"], ["M000001", 1], ["M000002", 2], ["M000003", 3]]
    fields = [{"name": "key", "pattern": ".+"}, {"name": "n"}]
    assert run_job(tmp_path, rows, fields=fields).mapped()["Column X"] is None


def test_values_of_the_wrong_type_speak_against_a_likely_header(tmp_path):
    rows = [["Begin", "Start"], ["x", "2026-01-31"], ["y", "2026-01-31"], ["z", "2026-01-31"]]
    fields = [{"name": "when", "type": "date", "synonyms": ["begin", "start"]}]
    assert run_job(tmp_path, rows, fields=fields).mapped() == {"Begin": None, "Start": "when"}


def test_a_tie_is_reported(tmp_path):
    rows = [["Plan", "plan"], ["a", "b"], ["c", "d"]]
    done = run_job(tmp_path, rows, fields=[{"name": "plan"}])
    assert [m["target"] for m in done.artifact["mapping"]] == ["plan", None]
    assert "tie" in done.artifact["mapping"][0]["note"]


def test_a_lower_threshold_maps_more(tmp_path):
    rows = [["Sprocket", "n"], ["a", 1], ["b", 2]]
    fields = [{"name": "sprocket_pitch_total"}, {"name": "n"}]
    assert run_job(tmp_path / "a", rows, fields=fields).mapped()["Sprocket"] is None
    done = run_job(tmp_path / "b", rows, fields=fields, mapping={"threshold": 0.3})
    assert done.mapped()["Sprocket"] == "sprocket_pitch_total"


@pytest.mark.parametrize(
    ("policy", "headers"),
    [
        ("keep", ["member_id", "Nick", "start_date", "email"]),
        ("prefix", ["member_id", "start_date", "email", "raw_Nick"]),
        ("drop", ["member_id", "start_date", "email"]),
    ],
)
def test_unmapped_columns_follow_the_policy(policy, headers, tmp_path):
    assert run_job(tmp_path, PEOPLE, fields=FIELDS, mapping={"unmapped": policy}).rows()[0] == headers


def test_an_unmapped_column_never_takes_a_fields_place(tmp_path):
    rows = [["Plan", "plan", "PLAN"], ["a", "b", "c"], ["d", "e", "f"]]
    done = run_job(tmp_path, rows, fields=[{"name": "plan"}])
    assert done.rows() == [["plan", "plan_2", "PLAN_3"], ["a", "b", "c"], ["d", "e", "f"]]
    assert sorted(f["code"] for f in done.findings) == ["column_renamed"] * 2 + ["duplicate_header"] * 2


def test_fields_stand_in_their_declared_order_and_all_of_them(tmp_path):
    fields = [{"name": "email", "type": "email"}, {"name": "absent"}, {"name": "member_id", "synonyms": ["member #"]}]
    done = run_job(tmp_path, PEOPLE, fields=fields, mapping={"unmapped": "drop"})
    assert done.rows()[0] == ["email", "absent", "member_id"]
    assert done.column("absent") == [None] * 3


def test_a_missing_required_field_is_one_finding(tmp_path):
    done = run_job(tmp_path, PEOPLE, fields=[*FIELDS, {"name": "salary", "required": True}])
    missing = [f for f in done.findings if f["code"] == "missing_field"]
    assert [(f["field"], f["severity"]) for f in missing] == [("salary", "error")]
    assert "required" not in {f["code"] for f in done.findings}


def test_labels_can_head_the_output(tmp_path):
    fields = [{"name": "member_id", "label": "Member ID", "synonyms": ["member #"]}]
    done = run_job(tmp_path, PEOPLE, fields=fields, mapping={"unmapped": "drop"}, output={"header": "label"})
    assert done.rows()[0] == ["Member ID"]


def test_files_of_a_drop_append_into_one_output(tmp_path):
    files = {
        "a.xlsx": [["plan", "extra"], ["gold", 1], ["tin", 2]],
        "b.xlsx": [["other", "PLAN"], ["x", "lead"], ["y", "zinc"]],
    }
    done = run_job(tmp_path, fields=[{"name": "plan"}], files=files, inputs={"per": "drop"})
    assert done.rows() == [
        ["other", "plan", "extra"],
        [None, "gold", 1],
        [None, "tin", 2],
        ["x", "lead", None],
        ["y", "zinc", None],
    ]
    assert {m["table"].partition("/")[0] for m in done.artifact["mapping"]} == {"a.xlsx", "b.xlsx"}


def test_sheets_append_and_unrelated_tables_are_left_out(tmp_path):
    body = [[f"p{n}", n] for n in range(6)]
    sheets = {
        "one": [["plan", "n"], *body],
        "two": [["plan", "n"], *([f"q{n}", n] for n in range(6))],
        "legend": [["colour", "meaning"], ["red", "bad"], ["green", "good"]],
    }
    done = run_job(tmp_path, sheets, fields=[{"name": "plan"}])
    assert len(done.column("plan")) == 12
    assert "table_unmapped" in {f["code"] for f in done.findings}


def test_a_file_without_a_table_is_a_finding_and_an_empty_output(tmp_path):
    done = run_job(tmp_path, {"Empty": []}, fields=[{"name": "plan"}], min_rows=0)
    assert done.rows() == [["plan"]]
    assert [f["code"] for f in done.findings] == ["no_table"]


def test_redacted_headers_stand_nowhere_in_the_artifact(tmp_path):
    done = run_job(tmp_path, PEOPLE, fields=FIELDS, redact_headers=True)
    for name in ("artifact.json", "report.html"):
        assert "Nick" not in (done.folder / name).read_text()


def test_columns_that_are_dropped_are_reported_with_what_they_held(tmp_path):
    done = run_job(tmp_path, PEOPLE, fields=[FIELDS[0], FIELDS[1]], mapping={"unmapped": "drop"})
    (told,) = [f for f in done.findings if f["code"] == "columns_dropped"]
    assert (told["severity"], "B, D" in told["message"], "6" in told["message"]) == ("info", True, True)
    assert [m.get("dropped_cells") for m in done.artifact["mapping"]] == [None, 3, None, 3]


def test_blank_columns_may_go_without_notice(tmp_path):
    rows = [["plan", "notes", "n"], ["a", None, 1], ["b", None, 2], ["c", None, 3]]
    done = run_job(tmp_path, rows, fields=[{"name": "plan"}, {"name": "n"}], mapping={"unmapped": "drop"})
    assert done.rows()[0] == ["plan", "n"]
    assert done.findings == []


def test_a_column_without_a_header_whose_first_value_comes_late_is_kept(tmp_path):
    rows = [["plan", None, "n"], *([f"p{n}", "late" if n == 4000 else None, n] for n in range(4200))]
    done = run_job(tmp_path, rows, fields=[{"name": "plan"}, {"name": "n", "type": "integer"}])
    assert [row[1] for row in done.rows()[1:] if row[1] is not None] == ["late"]


def test_rules_of_a_field_that_nobody_declared_and_no_table_has_are_reported(tmp_path):
    rules = {"columns/bonus.py": "def validate(*, value):\n    pass\n"}
    done = run_job(tmp_path, PEOPLE, fields=FIELDS, rules=rules)
    assert [(f["code"], f["file"]) for f in done.findings] == [("rules_unused", "columns/bonus.py")]
