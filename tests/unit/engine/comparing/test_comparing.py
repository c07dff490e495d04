"""Two results compared, one described for a test, a cell explained: the engine's part, without a box."""

import io
import json
from datetime import date, datetime, time, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.engine.comparing import carry_out
from runner.engine.comparing.cell_texts import cell_text, kind_of
from runner.engine.comparing.result_sides import ResultSide, SideRow
from runner.engine.comparing.row_origins import row_origins
from runner.engine.comparing.row_pairs import RowPairs
from runner.engine.contract import InspectOrder, ResultFiles
from runner.engine.reading import CellError
from tests.support.effort import examples
from tests.support.engine_jobs import run_job

FIELDS = [{"name": "code", "unique": True}, {"name": "qty", "type": "integer"}, {"name": "due", "type": "date"}]
ROWS = [["code", "qty", "due"], ["a", 1, "2026-01-05"], ["b", 2, "2026-02-06"], ["c", 3, None]]


def files(done, status="SUCCEEDED") -> ResultFiles:
    return ResultFiles(rows=done.folder / "normalized.xlsx", facts=done.folder / "artifact.json", status=status)


def inspected(tmp_path, what, *results, **more):
    names = {"compare": ["comparison.json", "spool"], "explain": ["explanation.json"]}.get(
        what, ["expected.json", "expected.csv"]
    )
    outputs = {name: tmp_path / name for name in names}
    end = carry_out(InspectOrder(what=what, results=results, outputs=outputs, **more))
    if end.error is not None:
        return end.error
    if what == "describe":
        return ResultFiles(rows=outputs["expected.csv"], facts=outputs["expected.json"])
    return json.loads(outputs[names[0]].read_text())


def compared(tmp_path, left, right, **more):
    return inspected(tmp_path, "compare", left, right, **more)


def changes(found) -> dict[str, int]:
    return {one["what"]: one["count"] for one in found["changes"]}


class TestTexts:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (None, ""),
            ("", "'"),
            ("Ada", "Ada"),
            ("00501", "00501"),
            ("42", "'42"),
            ("-1.5", "'-1.5"),
            ("2026-01-05", "'2026-01-05"),
            ("true", "'true"),
            ("=1+1", "'=1+1"),
            ("'x", "''x"),
            (42, "42"),
            (42.0, "42"),
            (0.1, "0.1"),
            (1e300, "1e+300"),
            (True, "true"),
            (date(2026, 1, 5), "2026-01-05"),
            (datetime(2026, 1, 5, 10, 15), "2026-01-05 10:15:00"),
            (time(7, 30), "07:30:00"),
            (timedelta(hours=-30), "-30:00:00"),
            (CellError("#N/A"), "#N/A"),
        ],
    )
    def test_each_value_has_one_text(self, value, text):
        assert cell_text(value) == text

    @settings(max_examples=examples(200))
    @given(
        st.one_of(st.text(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.dates())
    )
    def test_a_text_is_never_taken_for_another_kind(self, value):
        kinds = {str: ("text",), int: ("number",), float: ("number",), bool: ("boolean",), date: ("date",)}
        assert kind_of(cell_text(value)) in kinds[type(value)]


class TestPairs:
    @settings(max_examples=examples(100))
    @given(st.lists(st.integers(0, 30)), st.lists(st.integers(0, 30)), st.integers(0, 6))
    def test_pairs_are_the_same_however_few_rows_wait_in_memory(self, left, right, waiting):
        sides = [[SideRow(str(n), "", [str(key)]) for n, key in enumerate(keys)] for keys in (left, right)]

        def paired(most):
            pairs = RowPairs((lambda r: r.cells[0], lambda r: r.cells[0]), io.BytesIO(), most_waiting=most).pairs(
                *sides
            )
            return sorted((p.left.place if p.left else "", p.right.place if p.right else "") for p in pairs)

        assert paired(waiting) == paired(1000)
        both = paired(1000)
        assert sorted(a for a, _ in both if a) == sorted(r.place for r in sides[0])
        assert sorted(b for _, b in both if b) == sorted(r.place for r in sides[1])
        assert sum(1 for a, b in both if a and b) == sum(min(left.count(k), right.count(k)) for k in set(left))


SHEETS = {
    "Two": [
        ["code", "qty", None, "code", "qty"],
        ["a", 1, None, "x", 7],
        ["b", 2, None, "y", 8],
        ["c", 3, None, "z", 9],
        ["cc", 3, None, None, None],
        [None] * 5,
        [None] * 5,
        ["code", "qty"],
        ["d", 4],
        ["e", 5],
    ],
    "More": [["List"], [], ["code", "qty"], ["f", 1], ["g", 2], ["Total", 3]],
}


class TestOrigins:
    def test_the_books_say_where_each_row_comes_from_as_the_provenance_does(self, tmp_path):
        fields = [{"name": "code"}, {"name": "qty", "type": "integer"}]
        done = run_job(tmp_path, SHEETS, fields=fields, output={"provenance": True})
        assert len(done.column("code")) >= 7
        written = list(zip(done.column("source_sheet"), done.column("source_row"), strict=True))
        assert [(one.sheet, one.row) for one in row_origins(done.artifact)] == written

    def test_rows_among_blank_ones_have_no_number_but_a_range(self, tmp_path):
        done = run_job(tmp_path, [["code", "qty"], ["a", 1], [None, None], ["b", 2], ["c", 3]], fields=FIELDS[:2])
        assert [(one.row, one.first, one.last) for one in row_origins(done.artifact)] == [(None, 2, 5)] * 3


class TestComparison:
    def test_the_same_result_has_no_differences(self, tmp_path):
        done = run_job(tmp_path / "a", ROWS, fields=FIELDS)
        assert compared(tmp_path, files(done), files(done))["same"] is True

    def test_cells_are_named_with_their_place_on_both_sides(self, tmp_path):
        one = run_job(tmp_path / "a", ROWS, fields=FIELDS)
        two = run_job(tmp_path / "b", [ROWS[0], ROWS[2], ["a", 9, None], ["d", 4, None]], fields=FIELDS)
        found = compared(tmp_path, files(one), files(two), values=True)
        assert found["by"] == "key code"
        wanted = {"values_changed": 1, "values_blanked": 1, "rows_removed": 1, "rows_added": 1}
        assert {what: n for what, n in changes(found).items() if what in wanted} == wanted
        assert {(c["cell"], c["source"], c["field"], c["left"], c["right"]) for c in found["cells"]} == {
            ("B3", "Sheet1!3", "qty", "1", "9"),
            ("C3", "Sheet1!3", "due", "2026-01-05", ""),
        }
        assert [one["values"][0] for one in found["rows_removed"] + found["rows_added"]] == ["c", "d"]

    def test_without_values_only_their_kinds_are_shown(self, tmp_path):
        one = run_job(tmp_path / "a", ROWS, fields=FIELDS)
        two = run_job(tmp_path / "b", [ROWS[0], ["a", "SECRET", None], *ROWS[2:]], fields=FIELDS)
        text = json.dumps(compared(tmp_path, files(one), files(two)))
        assert '"left": "number", "right": "text"' in text
        assert "SECRET" not in text

    def test_by_source_a_changed_key_is_a_changed_cell(self, tmp_path):
        one = run_job(tmp_path / "a", ROWS, fields=FIELDS)
        two = run_job(tmp_path / "b", [ROWS[0], ["A", 1, "2026-01-05"], *ROWS[2:]], fields=FIELDS)
        assert changes(compared(tmp_path, files(one), files(two), by="source")) == {"values_changed": 1}
        assert changes(compared(tmp_path, files(one), files(two))) == {"rows_removed": 1, "rows_added": 1}

    def test_by_key_needs_a_field_that_is_unique_in_both(self, tmp_path):
        one = run_job(tmp_path / "a", ROWS, fields=FIELDS[1:])
        assert "no field that the manifest calls unique" in compared(tmp_path, files(one), files(one), by="key").message

    def test_columns_types_mapping_and_ends_are_labelled(self, tmp_path):
        one = run_job(tmp_path / "a", ROWS, fields=FIELDS)
        fields = [FIELDS[0], {"name": "qty", "type": "decimal"}, {"name": "deadline"}]
        two = run_job(tmp_path / "b", ROWS, fields=fields, mapping={"unmapped": "drop"})
        found = compared(tmp_path, files(one), files(two, "FAILED (rows_rejected)"))
        labels = {one["what"]: one["breaking"] for one in found["changes"]}
        breaking = {"status_worse", "columns_removed", "types_changed", "mapping_changed"}
        assert {what for what, breaks in labels.items() if breaks} >= breaking
        assert labels["columns_added"] is False
        assert found["breaking"] is True

    def test_a_findings_place_counts_and_its_words_do_not(self, tmp_path):
        required = [{"name": "code", "required": True}, *FIELDS[1:]]
        one = run_job(tmp_path / "a", ROWS, fields=required)
        two = run_job(tmp_path / "b", [*ROWS[:2], [None, 2, "2026-02-06"], ROWS[3]], fields=required)
        found = compared(tmp_path, files(one), files(two))
        assert {"only": "right", "finding": "error required code at Sheet1!A3", "count": 1} in found["findings"]
        assert changes(found)["errors_added"] == 1

    def test_two_text_files_of_other_names_are_compared_row_by_row(self, tmp_path):
        one = run_job(tmp_path / "a", {"June": ROWS}, fields=FIELDS[1:])
        two = run_job(tmp_path / "b", {"July": ROWS}, fields=FIELDS[1:])
        assert compared(tmp_path, files(one), files(two))["same"] is True


class TestExpected:
    @pytest.mark.parametrize("text", ["a\rb", "a\nb", 'say "x", y', "\r", ",", "a\r\nb"])
    def test_every_text_comes_back_from_expected_csv(self, tmp_path, text):
        rule = f"def transform(*, value):\n    return {text!r}\n"
        done = run_job(tmp_path / "a", ROWS, fields=[{"name": "code", "clean": []}], rules={"columns/code.py": rule})
        expected = inspected(tmp_path, "describe", files(done))
        assert compared(tmp_path, expected, files(done))["same"] is True

    def test_a_result_is_equal_to_its_own_description(self, tmp_path):
        done = run_job(tmp_path / "a", ROWS, fields=FIELDS, output={"provenance": True})
        expected = inspected(tmp_path, "describe", files(done))
        assert expected.rows.read_text().splitlines()[:2] == ["source,code,qty,due", "Sheet1!2,a,1,2026-01-05"]
        assert compared(tmp_path, expected, files(done))["same"] is True

    @pytest.mark.parametrize(
        "text", ["", "[]", "{}", '{"expected": 2}', '{"expected": 1, "status": "x", "columns": 1}']
    )
    def test_a_wrong_expected_json_is_named(self, tmp_path, text):
        (tmp_path / "expected.json").write_text(text)
        sides = ResultFiles(facts=tmp_path / "expected.json")
        assert compared(tmp_path, sides, sides).message.startswith("expected.json")

    @pytest.mark.parametrize("text", ["", "code\n", "source,code,qty,due\nx,y\n", "source,code,qty,due\n\x00"])
    def test_so_is_a_wrong_expected_csv(self, tmp_path, text):
        done = run_job(tmp_path / "a", ROWS, fields=FIELDS)
        expected = inspected(tmp_path, "describe", files(done))
        expected.rows.write_text(text)
        assert "expected.csv" in compared(tmp_path, expected, files(done)).message

    def test_forged_files_end_with_an_error_and_never_with_a_crash(self, tmp_path):
        done = run_job(tmp_path / "a", ROWS, fields=FIELDS)
        (done.folder / "normalized.xlsx").write_bytes(b"PK\x03\x04 no workbook")
        assert compared(tmp_path, files(done), files(done)).code == "bad_output"


class TestExplained:
    def told(self, tmp_path, done, cell):
        return inspected(tmp_path, "explain", files(done), cell=cell)

    def test_a_cell_names_its_source_mapping_conversion_and_findings(self, tmp_path):
        done = run_job(tmp_path / "a", [["List"], [], *ROWS[:3], ["c", "x", None]], fields=FIELDS)
        found = self.told(tmp_path, done, "B4")
        assert (found["field"], found["value"]) == ("qty", "x")
        assert found["source"]["cell"] == "B6"
        assert found["mapping"]["header"] == "qty"
        assert [one["code"] for one in found["findings"]] == ["type_error"]
        assert "cell B6" in found["why"][0]

    def test_an_unmapped_column_is_not_explained_by_mapped_ones_where_headers_are_hidden(self, tmp_path):
        rows = [[*row, mark] for row, mark in zip(ROWS, ("mood", "x", "y", "z"), strict=True)]
        done = run_job(tmp_path / "a", rows, fields=FIELDS, redact_headers=True)
        found = self.told(tmp_path, done, "D2")
        assert (found["field"], found["value"]) == (None, "x")
        assert [part["column"] for part in found["mappings"]] == ["D"]
        assert found["source"]["cell"] == "D2"

    def test_a_finding_about_the_whole_output_is_not_one_of_a_cell(self, tmp_path):
        rows = [[*row, mark] for row, mark in zip(ROWS, ("mood", "x", "y", "z"), strict=True)]
        few = {"name": "few_rows", "rows": {"min": 100}, "severity": "warning"}
        done = run_job(tmp_path / "a", rows, fields=FIELDS, row_rules=[few])
        assert [finding["code"] for finding in done.findings] == ["row_count"]
        assert self.told(tmp_path, done, "B2")["findings"] == []
        assert self.told(tmp_path, done, "D2")["field"] is None
        assert self.told(tmp_path, done, "D2")["findings"] == []

    def test_provenance_makes_the_row_exact_among_blank_ones(self, tmp_path):
        rows = [["code", "qty"], ["a", 1], [None, None], ["b", 2], ["c", 3]]
        plain = run_job(tmp_path / "a", rows, fields=FIELDS[:2])
        assert "one of rows 2 to 5" in self.told(tmp_path, plain, "B3")["why"][0]
        exact = run_job(tmp_path / "b", rows, fields=FIELDS[:2], output={"provenance": True})
        assert self.told(tmp_path, exact, "B3")["source"]["cell"] == "B4"

    def test_a_field_without_a_column_says_what_makes_it(self, tmp_path):
        rule = "def transform(*, value, record):\n    return record['code'] + '!'\n"
        fields = [*FIELDS, {"name": "made"}, {"name": "fixed", "constant": "EU"}]
        done = run_job(tmp_path / "a", ROWS, fields=fields, rules={"columns/made.py": rule})
        assert "columns.made.transform makes it" in " ".join(self.told(tmp_path, done, "D2")["why"])
        assert "its constant" in " ".join(self.told(tmp_path, done, "E2")["why"])

    @pytest.mark.parametrize(
        ("cell", "why"),
        [
            ("B99", "no row 99"),
            ("ZZ2", "no column ZZ"),
            ("A1", "its header"),
            ("x", "not an address"),
            ("No!A2", "no sheet"),
        ],
    )
    def test_a_wrong_cell_is_refused_with_what_there_is(self, tmp_path, cell, why):
        done = run_job(tmp_path / "a", ROWS, fields=FIELDS)
        assert why in self.told(tmp_path, done, cell).message


def test_a_side_without_rows_has_none(tmp_path):
    assert list(ResultSide(ResultFiles(status="REVIEW")).rows()) == []


def test_sorted_and_unpivoted_rows_are_traced_by_provenance_only(tmp_path):
    rows = [["code", "qty"], ["c", 3], ["a", 1], ["b", 2]]
    plain = run_job(tmp_path / "a", rows, fields=FIELDS[:2], row_shape={"sort": ["code"]})
    assert row_origins(plain.artifact) is None
    assert [row.source for row in ResultSide(files(plain)).rows()] == ["", "", ""]
    traced = run_job(tmp_path / "b", rows, fields=FIELDS[:2], row_shape={"sort": ["code"]}, output={"provenance": True})
    assert [row.source for row in ResultSide(files(traced)).rows()] == ["Sheet1!3", "Sheet1!4", "Sheet1!2"]


def test_a_field_of_several_columns_names_them_all_and_no_single_cell(tmp_path):
    rows = [["a", "b", "qty"], [None, "x", 1], ["y", "z", 2], ["w", None, 3]]
    fields = [{"name": "code", "from": {"columns": ["a", "b"]}}, {"name": "qty", "type": "integer"}]
    done = run_job(tmp_path / "a", rows, fields=fields)
    found = inspected(tmp_path, "explain", files(done), cell="A2")
    assert found["value"] == "x"
    assert found["source"]["cell"] is None
    assert found["source"]["row"] == 2


def test_rows_are_paired_by_their_place_where_only_one_result_says_where_they_come_from(tmp_path):
    rows = [["code", "qty"], ["a", 1], ["b", 2], ["c", 3]]
    known = run_job(tmp_path / "a", rows, fields=FIELDS[:2])
    unknown = run_job(tmp_path / "b", [*rows[:2], [None, None], *rows[2:3], ["c", 4]], fields=FIELDS[:2])
    found = compared(tmp_path, files(known), files(unknown), by="source")
    assert found["by"] == "row"
    assert found["rows"] == {"left": 3, "right": 3, "same": 2, "changed": 1, "added": 0, "removed": 0}
    assert [cell["cell"] for cell in found["cells"]] == ["B4"]
