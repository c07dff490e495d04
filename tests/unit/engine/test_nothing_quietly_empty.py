"""Nothing comes out quietly empty: no rows, a field without a column, a column that a rule blanks."""

import json

import pytest

from runner.engine.rules.returns import returns_of
from tests.support.engine_jobs import Outcome, run_job

FIELDS = [{"name": "code"}, {"name": "qty", "type": "integer"}]
ROWS = [["code", "qty"], ["a", 1], ["b", 2], ["c", 3]]
MISSPELT = [["code", "Betrg", "note"], ["a", 1, "x"], ["b", 2, "y"], ["c", 3, "z"]]


def told(done: Outcome) -> list[tuple[str, str]]:
    return [(f["code"], f["severity"]) for f in done.findings]


class TestRulesThatBlank:
    def ran(self, tmp_path, body: str, *, ask: str = "value", **manifest) -> Outcome:
        rule = f"from decimal import Decimal\ndef transform(*, {ask}):\n    {body}\n"
        return run_job(tmp_path, ROWS, fields=FIELDS, rules={"columns/code.py": rule}, **manifest)

    @pytest.mark.parametrize(
        "body",
        [
            "value.upper()",
            "return",
            "return {'message': 'x'}",
            "return {'valu': 3}",
            "return {'value': value, 'warnning': 'x'}",
            "return {'warning': 'x'}",
            "return float('nan')",
            "return Decimal('NaN')",
            "return Decimal('1e400')",
            "return float('inf')",
            "return 10**5000",
        ],
    )
    def test_a_wrong_shape_keeps_every_value_and_says_where(self, tmp_path, body):
        done = self.ran(tmp_path, body)
        assert done.column("code") == ["a", "b", "c"]
        assert told(done) == [("rule_error", "error")] * 3
        (one, *_) = done.findings
        assert (one["rule"], one["file"], one["line"], one["cell"]) == (
            "columns.code.transform",
            "columns/code.py",
            2,
            "A2",
        )

    @pytest.mark.parametrize("body", ["return {'valus': values}", "return [float('nan')] * len(values)", "return"])
    def test_so_does_one_of_a_chunk(self, tmp_path, body):
        done = self.ran(tmp_path, body, ask="values")
        assert done.column("code") == ["a", "b", "c"]
        assert told(done) == [("rule_error", "error")] * 3

    def test_a_column_that_a_rule_empties_on_purpose_is_a_warning_with_its_place(self, tmp_path):
        done = self.ran(tmp_path, "return None")
        assert done.column("code") == [None] * 3
        (one,) = done.findings
        assert (one["code"], one["severity"], one["field"], one["cell"]) == (
            "transform_blanked",
            "warning",
            "code",
            "A2",
        )
        assert (one["file"], one["line"]) == ("columns/code.py", 2)
        assert done.artifact["validation"]["by_code"] == {"transform_blanked": 3}

    def test_some_values_blanked_on_purpose_are_counted(self, tmp_path):
        done = self.ran(tmp_path, "return None if value == 'b' else value")
        assert done.column("code") == ["a", None, "c"]
        assert told(done) == [("transform_blanked", "info")]

    def test_a_branch_without_a_return_is_a_warning_if_it_blanks_values(self, tmp_path):
        done = self.ran(tmp_path, "if value == 'a': return value")
        assert told(done) == [("transform_blanked", "warning")]
        assert "return" in done.findings[0]["message"]

    def test_a_rule_that_leaves_blanks_blank_is_not_reported(self, tmp_path):
        rule = "def transform(*, value):\n    return value and value.upper()\n"
        rows = [["code", "qty"], ["a", 1], [None, 2], ["c", 3]]
        done = run_job(tmp_path, rows, fields=FIELDS, rules={"columns/code.py": rule})
        assert (done.column("code"), told(done)) == (["A", None, "C"], [])

    def test_a_computed_field_whose_rule_forgets_its_return_is_an_error(self, tmp_path):
        rule = "def transform(*, value, record):\n    record['code'] + '!'\n"
        done = run_job(tmp_path, ROWS, fields=[*FIELDS, {"name": "name"}], rules={"columns/name.py": rule})
        assert set(told(done)) == {("rule_error", "error")}

    def test_a_hook_that_empties_a_column_is_told(self, tmp_path):
        hook = (
            "def after_transform(*, columns, **_):\n    return {'columns': {'code': [None] * len(columns['code'])}}\n"
        )
        done = run_job(tmp_path, ROWS, fields=FIELDS, rules={"hooks/code.py": hook})
        assert told(done) == [("transform_blanked", "warning")]
        assert done.findings[0]["file"] == "hooks/code.py"

    @pytest.mark.parametrize("number", ["float('nan')", "float('inf')", "-float('inf')"])
    def test_numbers_that_are_none_reach_neither_workbook_nor_artifact(self, tmp_path, number):
        hooks = (
            f"def after_transform(*, columns, **_):\n    return {{'columns': {{'qty': [{number}] * 3}}}}\n"
            f"def finalize(**_):\n    return {{'sheets': {{'Sums': [['a', 'b'], [{number}, 1]]}}}}\n"
        )
        done = run_job(tmp_path, ROWS, fields=FIELDS, rules={"hooks/x.py": hooks})
        assert done.column("qty") == [1, 2, 3]
        assert done.rows("Sums") == [["a", "b"], [None, 1]]
        assert told(done) == [("rule_error", "error")] * 2
        assert not {"NaN", "Infinity"} & set((tmp_path / "artifact.json").read_text().split())

    def test_a_dict_of_issues_with_another_key_is_a_wrong_shape(self, tmp_path):
        rule = "def validate(*, values):\n    return {'isues': [{'index': 0, 'message': 'x'}]}\n"
        done = run_job(tmp_path, ROWS, fields=FIELDS, rules={"columns/code.py": rule})
        assert set(told(done)) == {("rule_error", "error")}


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("x = 1", "never"),
        ("return", "never"),
        ("return None", "always"),
        ("def inner():\n        return 1\n    inner()", "never"),
        ("if x:\n        return 1", "sometimes"),
        ("if x:\n        return 1\n    else:\n        return 2", "always"),
        ("if x:\n        return 1\n    return", "sometimes"),
        ("for y in x:\n        return y", "sometimes"),
        ("while True:\n        return x", "always"),
        ("while True:\n        if x:\n            break\n        return x", "sometimes"),
        ("with x:\n        return 1", "always"),
        ("try:\n        return 1\n    except ValueError:\n        pass", "sometimes"),
        ("try:\n        return 1\n    except ValueError:\n        return None", "always"),
        ("try:\n        pass\n    finally:\n        return 1", "always"),
        ("match x:\n        case 1:\n            return 1\n        case _:\n            return 2", "always"),
        ("match x:\n        case 1:\n            return 1", "sometimes"),
        ("if x:\n        return 1\n    raise ValueError", "always"),
    ],
)
def test_how_a_function_ends_is_read_from_its_source(body, how):
    assert returns_of(f"import os\ndef transform(*, x):\n    {body}\n".encode(), "transform", 2) == how


class TestFieldsWithoutAColumn:
    def ran(self, tmp_path, *, field=None, **manifest) -> Outcome:
        return run_job(tmp_path, MISSPELT, fields=[{"name": "code"}, {"name": "amount", **(field or {})}], **manifest)

    def test_one_is_a_warning_that_names_the_columns_left(self, tmp_path):
        done = self.ran(tmp_path)
        (one,) = done.findings
        assert (one["code"], one["severity"], one["field"]) == ("field_unmapped", "warning", "amount")
        assert "columns without a field: B, C" in one["message"]
        assert "Betrg" not in json.dumps(one)

    def test_the_column_with_the_likest_header_is_pointed_at(self, tmp_path):
        rows = [["code", "x", "contract number"], ["a", 1, "x"], ["b", 2, "y"], ["c", 3, "z"]]
        fields = [{"name": "code"}, {"name": "contract_holder_number", "type": "date"}]
        done = run_job(tmp_path, rows, fields=fields)
        assert done.cells("field_unmapped") == ["C1"]

    @pytest.mark.parametrize(
        "field", [{"optional": True}, {"default": "0"}, {"constant": "0"}, {"synonyms": ["Betrg"]}]
    )
    def test_it_is_not_reported_where_the_manifest_expects_it(self, tmp_path, field):
        assert told(self.ran(tmp_path, field=field)) == []

    def test_a_required_field_is_reported_once(self, tmp_path):
        assert told(self.ran(tmp_path, field={"required": True})) == [("missing_field", "error")]

    @pytest.mark.parametrize(
        "rules",
        [
            {"columns/amount.py": "def transform(*, value):\n    return 1\n"},
            {"hooks/x.py": "def after_transform(*, rows, **_):\n    return {'columns': {'amount': [1] * len(rows)}}\n"},
        ],
    )
    def test_a_field_that_rules_fill_is_not_reported(self, tmp_path, rules):
        assert told(self.ran(tmp_path, rules=rules)) == []

    def test_a_table_that_lacks_what_another_has_says_so_without_a_warning(self, tmp_path):
        fields = [*FIELDS, {"name": "city"}]
        short = [["code", "city"], ["d", "Rome"], ["e", "Bonn"], ["f", "Oslo"]]
        misspelt = [["code", "city", "Mnge"], ["g", "Lima", 1], ["h", "Cork", 2], ["i", "Gent", 3]]
        whole = [[*row, city] for row, city in zip(ROWS, ["city", "Rome", "Bonn", "Oslo"], strict=True)]
        done = run_job(tmp_path, {"a": whole, "b": short, "c": misspelt}, fields=fields)
        said = [(f["code"], f["severity"], f["sheet"], f["field"]) for f in done.findings]
        assert said == [("field_unmapped", "info", "b", "qty"), ("field_unmapped", "warning", "c", "qty")]


class TestNoRows:
    @pytest.mark.parametrize(
        ("sheets", "reading", "why"),
        [
            ({"Data": []}, {}, "no table"),
            ({"Data": [["code", "qty"]]}, {}, "a header without rows below it"),
            (
                {"Other": ROWS, "More": ROWS},
                {"sheets": ["Data"]},
                "no sheet matches reading.sheets; its sheets are “Other”, “More”",
            ),
        ],
    )
    def test_it_fails_and_says_why(self, tmp_path, sheets, reading, why):
        done = run_job(tmp_path, sheets, fields=FIELDS, reading=reading)
        assert done.error["code"] == "empty_input"
        assert "0 rows of data, and min_rows is 1" in done.error["message"]
        assert why in done.error["message"]
        assert told(done) == [("empty_input", "error")]
        assert "The file was not accepted: it has too few rows of data." in (tmp_path / "report.html").read_text()
        accepted = run_job(tmp_path / "accepted", sheets, fields=FIELDS, reading=reading, min_rows=0)
        assert accepted.rows() == [["code", "qty"]]
        assert "it has no rows of data, so the result is empty" in (tmp_path / "accepted" / "report.html").read_text()

    @pytest.mark.parametrize("name", ["in.xlsx", "in.csv", "in.xls", "in.ods"])
    def test_a_file_of_0_bytes_has_no_rows_in_any_format(self, tmp_path, name, monkeypatch):
        monkeypatch.setattr("tests.support.engine_jobs.workbook", lambda path, _: path.write_bytes(b""))
        done = run_job(tmp_path, files={name: []}, fields=FIELDS)
        assert (done.error["code"], "0 bytes" in done.error["message"]) == ("empty_input", True)

    def test_fewer_rows_than_expected_fail_with_the_numbers(self, tmp_path):
        done = run_job(tmp_path, ROWS, fields=FIELDS, min_rows=4)
        assert done.error["message"] == "3 rows of data, and min_rows is 4"
        assert done.artifact["summary"]["rows_out"] == 0
        assert done.artifact["output"]["sheets"] == []
        assert not run_job(tmp_path / "x", ROWS, fields=FIELDS, min_rows=3).end.get("error")

    def test_rows_that_are_split_off_are_rows(self, tmp_path):
        fields = [FIELDS[0], {**FIELDS[1], "max": 0}]
        done = run_job(tmp_path, ROWS, fields=fields, on_error="split", output={"rejects": True})
        assert done.end["ok"]

    def test_one_of_several_files_may_be_empty_and_is_told(self, tmp_path):
        done = run_job(tmp_path, files={"a.xlsx": ROWS, "b.xlsx": []}, fields=FIELDS, inputs={"per": "drop"})
        assert len(done.rows()) == 4
        assert told(done) == [("no_table", "error")]

    def test_a_review_is_not_asked_about_a_file_without_rows(self, tmp_path):
        done = run_job(tmp_path, [["code", "qty"]], fields=FIELDS, mapping={"review": "always"})
        assert done.error["code"] == "empty_input"

    def test_a_negative_number_of_rows_is_refused(self, tmp_path):
        with pytest.raises(Exception, match="min_rows"):
            run_job(tmp_path, ROWS, fields=FIELDS, min_rows=-1)


class TestColumnsWithoutValues:
    FIELDS = ({"name": "flat"}, {"name": "tenant"}, {"name": "rent", "type": "money"})

    def ran(self, tmp_path, head: list[str], *cells: object, **rent: object) -> Outcome:
        rows = [head, *([f"F{n}", f"Ann {name}", *cells] for n, name in enumerate(("Lee", "Ray", "Fox", "May")))]
        return run_job(tmp_path, rows, fields=[*self.FIELDS[:2], {**self.FIELDS[2], **rent}])

    @pytest.mark.parametrize("other", ["Rent 2025", None, "Rent new"])
    def test_one_beside_a_full_column_of_a_like_name_or_none_is_a_warning_at_its_header(self, tmp_path, other):
        done = self.ran(tmp_path, ["Flat", "Tenant", "Rent", other], None, 750.5)
        assert ("column_blank", "warning") in told(done)
        assert done.cells("column_blank") == ["C1"]
        assert "column D" in next(f["message"] for f in done.findings if f["code"] == "column_blank")

    def test_one_beside_columns_of_other_names_is_an_info(self, tmp_path):
        done = self.ran(tmp_path, ["Flat", "Tenant", "Rent", "Remarks"], None, "late")
        assert told(done) == [("column_blank", "info")]

    def test_one_beside_values_that_contradict_their_field_is_a_warning(self, tmp_path):
        fields = [*self.FIELDS, {"name": "since", "type": "date"}]
        rows = [["Flat", "Tenant", "Rent", "Since"], *([f"F{n}", "Ann", f"2025-03-{n + 10}", None] for n in range(5))]
        done = run_job(tmp_path, rows, fields=fields)
        assert [f["field"] for f in done.findings if f["code"] == "column_blank" and f["severity"] == "warning"] == [
            "since"
        ]

    @pytest.mark.parametrize("rent", [{"optional": True}, {"default": 3}])
    def test_an_optional_one_and_one_with_a_default_are_not_reported(self, tmp_path, rent):
        assert told(self.ran(tmp_path, ["Flat", "Tenant", "Rent", "Rent 2025"], None, 750.5, **rent)) == []


class TestThresholds:
    FIELDS = (
        {"name": "code", "required": True, "max_blank_share": 0.5},
        {"name": "qty", "type": "integer"},
        {"name": "note", "max_blank_share": 0.5, "optional": True},
    )

    def ran(self, tmp_path, rows, **manifest) -> Outcome:
        return run_job(tmp_path, [["code", "qty", "note"], *rows], fields=list(self.FIELDS), **manifest)

    def test_too_many_rows_with_errors_fail_with_the_numbers(self, tmp_path):
        rows = [["a", 1, "x"], [None, "?", "x"], ["c", "?", "x"], ["d", "?", "x"]]
        done = self.ran(tmp_path / "a", rows, max_rejected_rows=2)
        assert done.error["code"] == "rows_rejected"
        assert done.error["message"] == "3 of 4 rows have errors (75.00%); max_rejected_rows is 2"
        assert done.error["where"]["rule"] == "max_rejected_rows"
        assert self.ran(tmp_path / "b", rows, max_rejected_rows=3).end["ok"] is True

    @pytest.mark.parametrize("limit", [{"max_rejected_rows": 1}, {"max_error_rate": 0.9}, {"on_error": "reject"}])
    def test_every_row_of_a_table_without_a_required_column_has_an_error(self, tmp_path, limit):
        rows = [["qty", "note"], [1, "x"], [2, "x"], [3, "y"]]
        fields, shape = [{"name": "code", "required": True}, *FIELDS[1:], {"name": "note"}], {"filter": "note == 'x'"}
        done = run_job(tmp_path / "a", rows, fields=fields, row_shape=shape, **limit)
        assert done.error["message"].startswith("2 of 2 rows have errors (100.00%)")
        kept = run_job(tmp_path / "b", rows, fields=fields, row_shape=shape, on_error="split", output={"rejects": True})
        assert kept.end["summary"]["rows_with_errors"] == 2
        assert kept.column("code") == [None, None], "nobody can correct them one by one"
        fields[0] = {**fields[0], "severity": "warning"}
        assert run_job(tmp_path / "c", rows, fields=fields, row_shape=shape, **limit).end["ok"] is True

    def test_too_many_blanks_of_a_field_fail_with_the_numbers(self, tmp_path):
        rows = [["a", 1, None], ["b", 2, "  "], ["c", 3, "x"]]
        done = self.ran(tmp_path / "a", rows)
        assert done.error["message"] == "note is blank in 2 of 3 rows (66.67%); max_blank_share is 0.5"
        assert done.error["where"] | {"rule": "max_blank_share", "field": "note"} == done.error["where"]
        (one,) = [f for f in done.findings if f["code"] == "rows_rejected"]
        assert (one["severity"], one["field"]) == ("error", "note")
        assert self.ran(tmp_path / "b", [*rows, ["d", 4, "y"]]).end["ok"] is True

    def test_a_field_without_a_column_is_all_blank(self, tmp_path):
        done = run_job(tmp_path, ROWS, fields=[*FIELDS, {"name": "gone", "optional": True, "max_blank_share": 0.9}])
        assert "gone is blank in 3 of 3 rows" in done.error["message"]

    def test_the_summary_names_fields_without_a_value(self, tmp_path):
        fields = [*FIELDS, {"name": "gone"}, {"name": "made"}, {"name": "fixed", "constant": "x"}]
        rule = "def transform(*, value):\n    return None\n"
        done = run_job(tmp_path, ROWS, fields=fields, rules={"columns/made.py": rule})
        assert done.artifact["summary"]["empty_fields"] == ["gone", "made"]

    def test_a_field_with_values_in_one_table_is_not_empty(self, tmp_path):
        sheets = {"A": ROWS, "B": [["code", "note"], ["d", "x"], ["e", "y"]]}
        done = run_job(tmp_path, sheets, fields=[*FIELDS, {"name": "note"}])
        assert "empty_fields" not in done.artifact["summary"]
