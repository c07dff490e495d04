"""Rows with errors: where they go, what rejects.xlsx shows of them, and how they come back."""

import csv
import json
import zipfile
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.styles import Alignment, Border, Color, Font, PatternFill, Side

from core.errors import ManifestInvalid
from core.manifests import parse_manifest
from runner.engine.corrections.corrected import make_key, match_columns
from runner.engine.corrections.written import WrittenColumn, is_same
from runner.engine.pages.report import report
from runner.engine.protocol import BadOutput
from runner.engine.reading import CellError, Shown
from runner.engine.rejects import appearance
from runner.engine.rejects import set_aside as module
from runner.engine.verifying.rejects_book import write_rejects
from runner.staging import box_outputs
from tests.support.engine_jobs import Outcome, run_job, run_order, workbook

FIELDS = [{"name": "id", "required": True}, {"name": "email", "type": "email"}, {"name": "n", "type": "integer"}]
HEADER = ["Id", "Email", "N", "Remark"]
KEY = "ade: key"


def rejects(folder: Path, sheet: int = 0) -> list[list[Any]]:
    """The rows of rejects.xlsx with their keys and what to do, titles and headers left out."""
    rows = openpyxl.load_workbook(folder / "rejects.xlsx").worksheets[sheet].iter_rows(values_only=True)
    return [list(row) for row in rows if str(row[-1]).startswith("ade: row")]


def run(folder: Path, rows: Any, **manifest: Any) -> Outcome:
    return run_job(folder, rows, fields=FIELDS, **({"output": {"rejects": True}} | manifest))


def mended(
    folder: Path, *sources: Path, job: str = "acme-test-1", keys: tuple[str, ...] = ("",), **manifest: Any
) -> Outcome:
    """The job over corrected files, as the runner orders it once it has found the first one."""
    spec = {"manifest": 1, "name": "test", "fields": FIELDS, "output": {"rejects": True}, **manifest}
    checked = parse_manifest(json.dumps(spec).encode())
    facts = {"size": 1, "sha256": "0" * 64}
    order = {
        "order": 1,
        "job": {"job_id": "acme-test-2", "tenant": "acme", "workflow": "test", "attempt": 1},
        "manifest": checked.model_dump(mode="json"),
        "params": {},
        "inputs": [
            {"role": "primary", "name": "in.xlsx", "path": "in.xlsx", **facts},
            *({"role": "mended", "name": source.name, "path": source.name, **facts,
               "mends": {"job": job, "inputs": ["in.xlsx"], "key": at}}
              for source, at in zip(sources, keys * len(sources), strict=False)),
        ],
        "config": {"path": None, "digest": "0" * 8},
        "outputs": {n: n for n in box_outputs(checked)},
        "sandbox": {"driver": "process", "level": "limits", "rungs": {"rlimits": True}},
    }  # fmt: skip
    return run_order(order, folder)


def mend(folder: Path, change: Any, name: str = "mended.xlsx") -> Path:
    book = openpyxl.load_workbook(folder / "rejects.xlsx")
    change(book.worksheets[0])
    book.save(folder / name)
    return folder / name


ROWS = [["List"], HEADER, ["a", "a@b.com", 1, "x"], ["b", "bad", 2, "y"], [None, "c@b.com", "three", "z"]]


class TestWhereRowsGo:
    def test_kept_rows_are_in_both_books(self, tmp_path):
        done = run(tmp_path, ROWS)
        assert [row[1] for row in done.rows()[1:]] == ["a@b.com", "bad", "c@b.com"]
        assert [row[1] for row in rejects(tmp_path)] == ["bad", "c@b.com"]
        assert done.artifact["output"]["rejects"] == {"rows": 2}

    def test_split_rows_are_only_rejected_and_the_books_list_them(self, tmp_path):
        done = run(tmp_path, ROWS, on_error="split")
        assert [row[1] for row in done.rows()[1:]] == ["a@b.com"]
        assert done.end["summary"]["left_out"] == {"rejected": 2}
        assert {"from": 4, "to": 5, "as": "rejected", "table": "t1", "rows": 2} in done.artifact["sheets"][0]["rows"]

    @pytest.mark.parametrize(
        ("on_type_error", "in_the_workbook", "in_the_csv"),
        [
            ("keep", [1, 2, "three", "4x"], ["1", "2", "", ""]),
            ("null", [1, 2, None, None], ["1", "2", "", ""]),
            ("reject", [1, 2], ["1", "2"]),
        ],
    )
    def test_rows_with_a_cell_of_another_type_go_where_on_type_error_says(
        self, tmp_path, on_type_error, in_the_workbook, in_the_csv
    ):
        rows = [HEADER, ["a", "a@b.com", 1], [None, "b@b.com", 2], ["c", "c@b.com", "three"], [None, "d@b.com", "4x"]]
        output = {"rejects": True, "formats": ["xlsx", "csv"], "on_type_error": on_type_error}
        done = run(tmp_path, rows, output=output)
        assert [row[2] for row in done.rows()[1:]] == in_the_workbook
        with (tmp_path / "normalized.csv").open(newline="") as file:
            assert [row[2] for row in csv.reader(file)][1:] == in_the_csv
        assert len(rejects(tmp_path)) == 3, "each row with an error is shown to its sender, also the one that stays"
        rejected = len(rows) - 1 - len(in_the_workbook)
        assert done.end["summary"].get("left_out", {}) == ({"rejected": rejected} if rejected else {})
        assert done.end["summary"]["rows_with_errors"] == 3

    def test_rejecting_cells_of_another_type_needs_a_place_for_their_rows(self):
        with pytest.raises(ManifestInvalid, match="on_type_error"):
            parse_manifest(
                b'{"manifest": 1, "name": "x", "fields": [{"name": "a"}], "output": {"on_type_error": "reject"}}'
            )

    def test_a_rejected_job_fails_with_its_audit_and_rejects(self, tmp_path):
        done = run(tmp_path, ROWS, on_error="reject")
        assert done.error["code"] == "rows_rejected"
        assert done.error["message"] == "2 of 3 rows have errors (66.67%); on_error is reject"
        assert done.artifact["summary"]["rows_out"] == 0
        assert len(rejects(tmp_path)) == 2

    @pytest.mark.parametrize(("rate", "ok"), [(0.66, False), (0.67, True), (0, False), (1, True)])
    def test_a_job_with_too_many_errors_fails(self, tmp_path, rate, ok):
        assert run(tmp_path, ROWS, max_error_rate=rate).end["ok"] is ok

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"max_error_rate": 0.5}, "2 of 3 rows have errors; at most 1 are accepted."),
            ({"max_rejected_rows": 1}, "2 of 3 rows have errors; at most 1 are accepted."),
            ({"on_error": "reject"}, "2 of 3 rows have errors; at most 0 are accepted."),
        ],
    )
    def test_the_report_of_a_job_with_too_many_errors_has_the_numbers(self, tmp_path, options, said):
        assert said in report(run(tmp_path, ROWS, **options).artifact)

    @pytest.mark.parametrize(
        ("share", "rows", "most"), [(0.29, 100, 29), (0.07, 100, 7), (0, 5, 0), (1, 5, 5), (0.5, 3, 1)]
    )
    def test_a_share_of_rows_is_a_number_of_rows(self, share, rows, most):
        assert module.most_within(share, rows) == most

    def test_a_rate_of_zero_accepts_a_job_without_errors(self, tmp_path):
        assert run(tmp_path, ROWS[:3], max_error_rate=0, on_error="reject").end["ok"]

    def test_warnings_reject_nothing(self, tmp_path):
        fields = [{**field, "severity": "warning"} for field in FIELDS]
        done = run_job(tmp_path, ROWS, fields=fields, output={"rejects": True}, on_error="split")
        assert done.end["summary"]["rows_out"] == 3
        assert not (tmp_path / "rejects.xlsx").read_bytes() if (tmp_path / "rejects.xlsx").exists() else True

    def test_what_hooks_gather_is_about_the_rows_of_the_output(self, tmp_path):
        hook = (
            "seen = []\ndef accumulate(*, columns, rows):\n    seen.extend(rows)\n"
            "def finalize():\n    return {'sheets': {'Seen': [['row'], *([r] for r in seen)]}}\n"
        )
        done = run(tmp_path, ROWS, on_error="split", rules={"hooks/seen.py": hook})
        assert done.rows("Seen") == [["row"], [3]]

    def test_split_without_rejects_is_no_manifest(self):
        with pytest.raises(ManifestInvalid, match="on_error"):
            parse_manifest(b'{"manifest": 1, "name": "x", "fields": [{"name": "a"}], "on_error": "split"}')


class TestTheWorkbook:
    def test_rows_say_what_to_do_and_wrong_cells_are_marked_and_commented(self, tmp_path):
        run(tmp_path, ROWS)
        sheet = openpyxl.load_workbook(tmp_path / "rejects.xlsx").worksheets[0]
        assert sheet["A1"].value == "List"
        assert [cell.value for cell in sheet[2]][:5] == [*HEADER, "ade: what to do"]
        assert sheet["F2"].value == make_key("key", "acme-test-1", 0, 0, 2)
        assert sheet["E3"].value == "Email: is not a valid email address"
        assert (sheet["B3"].fill.fgColor.rgb, sheet["B3"].comment.text) == ("FFFFC7CE", "is not a valid email address")
        assert sheet["A4"].comment.text == "is blank"
        assert sheet["D3"].comment is None

    def test_it_looks_like_the_senders_own(self, tmp_path):
        book = openpyxl.Workbook()
        sheet = book.active
        for row in ROWS:
            sheet.append(row)
        sheet["A2"].font = Font(name="Georgia", size=14, bold=True, color="FF112233")
        sheet["A2"].fill = PatternFill("solid", fgColor="FFAABBCC")
        sheet["C4"].number_format = "#,##0.00"
        sheet["D4"].border = Border(bottom=Side(style="double", color="FF00FF00"))
        sheet.column_dimensions["D"].width = 33
        sheet.row_dimensions[2].height = 40
        sheet.merge_cells("A1:D1")
        tmp_path.mkdir(exist_ok=True)
        book.save(tmp_path / "in.xlsx")
        run_job(tmp_path, None, fields=FIELDS, output={"rejects": True})
        made = openpyxl.load_workbook(tmp_path / "rejects.xlsx").worksheets[0]
        font = made["A2"].font
        assert (font.name, font.size, font.bold, font.color.rgb) == ("Georgia", 14, True, "FF112233")
        assert made["A2"].fill.fgColor.rgb == "FFAABBCC"
        assert made["C3"].number_format == "#,##0.00"
        assert (made["D3"].border.bottom.style, made["D3"].border.bottom.color.rgb) == ("double", "FF00FF00")
        assert made.column_dimensions["D"].width == 33
        assert made.row_dimensions[2].height == 40
        assert [str(area) for area in made.merged_cells.ranges] == ["A1:D1"]

    def test_a_cell_never_takes_the_format_of_another_row(self, tmp_path):
        """A number in a date format would come back as a date, and count as a correction."""
        book = openpyxl.Workbook()
        for row in [[*HEADER, "Due"], ["a", "bad", 1, "x", date(2026, 1, 2)], ["b", "bad", 2, "y", 12]]:
            book.active.append(row)
        book.save(tmp_path / "in.xlsx")
        run_job(tmp_path, None, fields=FIELDS, output={"rejects": True})
        assert [row[4] for row in rejects(tmp_path)] == [datetime(2026, 1, 2), 12]

    @pytest.mark.parametrize(
        ("value", "code", "comes_back"),
        [
            ({"date": "2026-01-02"}, "0.00", datetime(2026, 1, 2)), (12.5, "dd.mm.yyyy", 12.5),
            ({"time": "06:07:00"}, "dd.mm.yyyy", time(6, 7)), (12, "[h]:mm", 12), ({"seconds": 3600}, "0", timedelta(hours=1)),
            ({"datetime": "2026-01-02T03:04:05"}, "@", datetime(2026, 1, 2, 3, 4, 5)),
        ],
    )  # fmt: skip
    def test_a_value_keeps_its_kind_whatever_format_its_cell_had(self, tmp_path, value, code, comes_back):
        lines = described({"style": {"format": code}}, SHEET, {**ROW, "cells": [[1, value, 0]], "marks": []}, END)
        (tmp_path / "d").write_bytes(lines)
        with (tmp_path / "d").open("rb") as source, (tmp_path / "x.xlsx").open("w+b") as file:
            write_rejects(source, file, job="j", title="t")
        assert openpyxl.load_workbook(tmp_path / "x.xlsx").worksheets[0]["A1"].value == comes_back

    def test_the_grid_goes_on_over_blank_cells_and_marked_cells_stay_readable(self, tmp_path):
        book = openpyxl.Workbook()
        sheet = book.active
        for row in [HEADER, [None, "bad", 1, None]]:
            sheet.append(row)
        line = Border(bottom=Side(style="thin", color="FF00FF00"))
        for cell in sheet[2]:
            cell.border, cell.number_format = line, "@"
        sheet["B2"].font = Font(color="FFFFFFFF")
        sheet["C1"].fill = PatternFill("solid", fgColor=Color(indexed=22))
        sheet["C1"].alignment = Alignment(textRotation=90, indent=2)
        book.save(tmp_path / "in.xlsx")
        run_job(tmp_path, None, fields=FIELDS, output={"rejects": True})
        made = openpyxl.load_workbook(tmp_path / "rejects.xlsx").worksheets[0]
        assert [made.cell(2, n).border.bottom.style for n in range(1, 5)] == ["thin"] * 4
        assert made["A2"].number_format == "@"  # so that an id keeps its zeros when it is typed
        assert made["B2"].font.color.rgb == "FF9C0006"
        assert made["C1"].fill.fgColor.rgb == "FFC0C0C0"
        assert (made["C1"].alignment.textRotation, made["C1"].alignment.indent) == (90, 2)

    def test_hidden_columns_stay_hidden_unless_something_is_wrong_there(self, tmp_path):
        book = openpyxl.Workbook()
        sheet = book.active
        for row in ROWS:
            sheet.append(row)
        for name in "BD":
            sheet.column_dimensions[name].hidden = True
            sheet.column_dimensions[name].width = 0
        sheet.freeze_panes, sheet.sheet_view.rightToLeft, sheet.sheet_view.showGridLines = "B3", True, False
        sheet.sheet_view.zoomScale = 80
        book.save(tmp_path / "in.xlsx")
        run_job(tmp_path, None, fields=FIELDS, output={"rejects": True})
        made = openpyxl.load_workbook(tmp_path / "rejects.xlsx").worksheets[0]
        assert [made.column_dimensions[name].hidden for name in "BD"] == [False, True]
        assert made.column_dimensions["B"].width > 5
        assert made.freeze_panes == "B3"
        view = made.sheet_view
        assert (view.rightToLeft, view.showGridLines, view.zoomScale) == (True, False, 80)

    def test_a_cell_offers_what_is_allowed_and_the_header_says_how_to_go_on(self, tmp_path):
        fields = [{"name": "id"}, {"name": "plan", "type": "enum", "allowed": ['5" pipe', "gold"]}]
        run_job(tmp_path, [["Id", "Plan"], ["a", "tin"], ["b", "zinc"]], fields=fields, output={"rejects": True})
        sheet = openpyxl.load_workbook(tmp_path / "rejects.xlsx").worksheets[0]
        (offer,) = sheet.data_validations.dataValidation
        assert (str(offer.sqref), offer.formula1, offer.showErrorMessage) == ("B2:B3", '"5"" pipe,gold"', False)
        assert "Correct the red cells" in sheet["C1"].comment.text

    @pytest.mark.parametrize(("was", "now"), [('<sz val="11"', '<sz val="nan"'), ('<sz val="11"', '<sz val="inf"')])
    def test_a_font_of_an_impossible_size_is_a_plain_one(self, tmp_path, was, now):
        workbook(tmp_path / "plain.xlsx", {"S": [HEADER, ["a", "bad", 1, "x"]]})
        with zipfile.ZipFile(tmp_path / "plain.xlsx") as given, zipfile.ZipFile(tmp_path / "in.xlsx", "w") as made:
            for name in given.namelist():
                made.writestr(name, given.read(name).replace(was.encode(), now.encode()))
        run_job(tmp_path, None, fields=FIELDS, output={"rejects": True})
        assert len(rejects(tmp_path)) == 1

    def test_rows_past_those_that_are_searched_look_like_the_first_without_its_fill(self, tmp_path, monkeypatch):
        monkeypatch.setattr(appearance, "MAX_CELLS", 8)
        book = openpyxl.Workbook()
        sheet = book.active
        sheet.append(HEADER)
        for n in range(30):
            sheet.append([f"k{n}", "bad" if n in (0, 29) else "a@b.com", n, "x"])
        sheet["B2"].font, sheet["B2"].fill = Font(name="Georgia"), PatternFill("solid", fgColor="FFAABBCC")
        book.save(tmp_path / "in.xlsx")
        run_job(tmp_path, None, fields=FIELDS, output={"rejects": True})
        made = openpyxl.load_workbook(tmp_path / "rejects.xlsx").worksheets[0]
        assert (made["A3"].value, made["B3"].font.name, made["A3"].fill.fill_type) == ("k29", "Georgia", None)

    def test_formulas_links_and_macros_of_the_sender_do_not_get_through(self, tmp_path):
        tmp_path.mkdir(exist_ok=True)
        book = openpyxl.Workbook()
        sheet = book.active
        for row in [HEADER, ["a", "bad", 1, "=cmd|'/c calc'!A1"], ["b", '=HYPERLINK("http://x")', 2, "+1"]]:
            sheet.append(row)
        sheet["A2"].hyperlink = "http://evil.example"
        book.save(tmp_path / "in.xlsx")
        run_job(tmp_path, None, fields=FIELDS, output={"rejects": True})
        with zipfile.ZipFile(tmp_path / "rejects.xlsx") as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        assert all(b"<f>" not in part and b"evil.example" not in part for part in parts.values())
        assert {name.split("/")[-1] for name in parts} == {
            "sheet1.xml", "comments1.xml", "vmlDrawing1.vml", "sheet1.xml.rels", "workbook.xml", "workbook.xml.rels",
            "styles.xml", "core.xml", "app.xml", ".rels", "[Content_Types].xml",
        }  # fmt: skip

    def test_a_text_like_a_formula_stays_a_text(self, tmp_path):
        run(tmp_path, [HEADER, ["a", "=1+1", 1, "@x"]])
        sheet = openpyxl.load_workbook(tmp_path / "rejects.xlsx").worksheets[0]
        assert (sheet["B2"].value, sheet["B2"].data_type) == ("=1+1", "s")

    @pytest.mark.parametrize("text", ["=1+1", "+49 30", "-x", "@x", "plain"])
    def test_a_text_like_a_formula_stays_a_text_when_its_cell_is_edited(self, tmp_path, text):
        run(tmp_path, [HEADER, ["a", "no email", 1, text]])
        cell = openpyxl.load_workbook(tmp_path / "rejects.xlsx").worksheets[0]["D2"]
        assert (cell.value, cell.quotePrefix) == (text, int(text != "plain"))

    def test_values_of_every_kind_come_back_as_they_were(self, tmp_path):
        values = [
            date(2026, 1, 2),
            datetime(2026, 1, 2, 3, 4, 5),
            time(6, 7),
            True,
            1.25,
            "t <&> x",
            timedelta(hours=30),
        ]
        run(tmp_path, [[*HEADER, *(f"c{n}" for n in range(len(values)))], ["a", "bad", 1, "x", *values]])
        (row,) = rejects(tmp_path)
        assert row[4:6] == [datetime(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5)]
        assert row[6:11] == [time(6, 7), True, 1.25, "t <&> x", timedelta(hours=30)]

    def test_several_sheets_and_tables_each_keep_their_headers(self, tmp_path):
        stacked = [HEADER, ["a", "bad", 1, "x"], [], [], ["Second"], [], HEADER, ["b", "worse", 2, "y"]]
        run(
            tmp_path,
            {"One": stacked, "Fine": [HEADER, ["c", "c@b.com", 3, "z"]], "Two": [HEADER, ["d", "bad", 4, "w"]]},
        )
        book = openpyxl.load_workbook(tmp_path / "rejects.xlsx")
        assert book.sheetnames == ["One", "Two"]
        assert [row[0] for row in rejects(tmp_path)] == ["a", "b"]
        assert [row[0] for row in rejects(tmp_path, 1)] == ["d"]

    def test_more_rows_than_a_sheet_holds_go_on_on_another_one_and_come_back(self, tmp_path, monkeypatch):
        monkeypatch.setattr(module, "MAX_SHEET_ROWS", 2)
        run(tmp_path, [HEADER, *([f"k{n}", "bad", n, "x"] for n in range(5))], on_error="split")
        book = openpyxl.load_workbook(tmp_path / "rejects.xlsx")
        assert [[row[0].value for row in sheet] for sheet in book.worksheets] == [
            ["Id", "k0", "k1"], ["Id", "k2", "k3"], ["Id", "k4"],
        ]  # fmt: skip
        for sheet in book.worksheets:
            for row in sheet.iter_rows(min_row=2):
                row[1].value = "a@b.com"
        book.save(tmp_path / "mended.xlsx")
        done = mended(tmp_path, tmp_path / "mended.xlsx", on_error="split")
        assert done.artifact["mends"]["rows"] == 5
        assert done.end["summary"]["rows_out"] == 5

    def test_a_csv_gets_a_plain_workbook_with_its_own_columns(self, tmp_path):
        tmp_path.mkdir(exist_ok=True)
        (tmp_path / "in.xlsx").write_text("Id;Email;N\n007;bad;1\nb;b@b.com;2\n")
        run_job(tmp_path, None, fields=FIELDS, output={"rejects": True})
        assert [row[:3] for row in rejects(tmp_path)] == [["007", "bad", "1"]]

    def test_an_id_that_is_typed_into_the_rows_of_a_csv_keeps_its_zeros_and_a_number_is_one(self, tmp_path):
        (tmp_path / "in.xlsx").write_text("Id;Email;N;Remark\n;bad;1;x\n008;bad;x;\n009;a@b.com;2;y\n")
        run_job(tmp_path, None, fields=FIELDS, output={"rejects": True})
        sheet = openpyxl.load_workbook(tmp_path / "rejects.xlsx").worksheets[0]
        assert [[cell.number_format for cell in row[:4]] for row in sheet.iter_rows(min_row=2)] == [
            ["@", "@", "General", "@"]
        ] * 2


def described(*lines: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


SHEET = {"sheet": "S", "input": 0, "index": 0, "columns": 2, "widths": [], "headless": False}
ROW = {"row": 2, "kind": "row", "cells": [[1, "a"]], "marks": [[1, "is wrong"]], "do": "fix it"}
END = {"end": True, "rows": 1}


class TestWhatABoxMayDescribe:
    def test_the_plain_case_is_written(self, tmp_path):
        (tmp_path / "d").write_bytes(described(SHEET, ROW, END))
        with (tmp_path / "d").open("rb") as source, (tmp_path / "x.xlsx").open("w+b") as file:
            assert write_rejects(source, file, job="j", title="t") == 1

    @pytest.mark.parametrize(
        "lines",
        [
            [SHEET, ROW],
            [SHEET, ROW, {"end": True, "rows": 2}],
            [ROW, END],
            [SHEET, {**ROW, "cells": [[3, "beyond the columns"]]}, END],
            [SHEET, {**ROW, "cells": [[1, {"formula": "1+1"}]]}, END],
            [SHEET, {**ROW, "cells": [[1, {"error": "<evil>"}]]}, END],
            [SHEET, {**ROW, "cells": [[2, "b"], [1, "a"]]}, END],
            [SHEET, {**ROW, "kind": "macro"}, END],
            [SHEET, {**ROW, "do": 7}, END],
            [SHEET, {**ROW, "row": 0}, END],
            [SHEET, ROW, ROW, END],
            [SHEET, {**ROW, "cells": [[1, "a", 4]]}, END],
            [{**SHEET, "columns": 16_384}, ROW, END],
            [{**SHEET, "sheet": 7}, ROW, END],
            [SHEET, {"script": "x"}, END],
            [SHEET, ROW, END, {"style": {}}],
            [{**SHEET, "input": 1}, ROW, END],
            [{**SHEET, "index": 1}, ROW, END],
            [SHEET, {**ROW, "row": 3}, END],
            [SHEET, {**ROW, "row": 1, "kind": "row"}, END],
            [{**SHEET, "frozen": 10**6}, ROW, END],
            [{**SHEET, "across": -1}, ROW, END],
            [{**SHEET, "hidden": [3]}, ROW, END],
            [{**SHEET, "view": {"zoom": "<evil>"}}, ROW, END],
            [{**SHEET, "view": 7}, ROW, END],
            [SHEET, ROW, {"choices": [[3, ["a"]]]}, END],
            [SHEET, ROW, {"choices": [[1, "a"]]}, END],
            [SHEET, {**ROW, "cells": [[1, 10**16]]}, END],
            [SHEET, {**ROW, "height": 1e9}, END],
            [[1, 2]],
        ],
    )
    def test_anything_else_is_refused(self, tmp_path, lines):
        (tmp_path / "d").write_bytes(described(*lines))
        with (tmp_path / "d").open("rb") as source, (tmp_path / "x.xlsx").open("w+b") as file, pytest.raises(BadOutput):
            write_rejects(source, file, job="j", title="t", exists=lambda *row: row[1:] == (0, 0, 2))

    def test_odd_looks_are_left_out(self, tmp_path):
        evil = {"font": {"name": 'x"/><evil/>', "size": 1e9, "color": "red"}, "fill": "zz", "format": "x\n" * 200,
                "border": {"left": ["<evil>", "x"]}, "align": {"h": "<evil>"}}  # fmt: skip
        lines = described({"style": evil}, SHEET, {**ROW, "cells": [[1, "a", 0]]}, END)
        (tmp_path / "d").write_bytes(lines)
        with (tmp_path / "d").open("rb") as source, (tmp_path / "x.xlsx").open("w+b") as file:
            write_rejects(source, file, job="j", title="t")
        with zipfile.ZipFile(tmp_path / "x.xlsx") as archive:
            assert b"<evil" not in archive.read("xl/styles.xml")
        assert openpyxl.load_workbook(tmp_path / "x.xlsx").worksheets[0]["A1"].value == "a"


class TestMending:
    def test_a_file_with_keys_asks_for_the_job_it_mends(self, tmp_path):
        run(tmp_path, ROWS)
        done = run_job(
            tmp_path / "again",
            [[*HEADER, make_key("key", "acme-x-1", 0, 0, 1)], ["a", "b", 1, "x", None]],
            fields=FIELDS,
        )
        assert done.error["code"] == "mends"
        assert done.error["where"]["job"] == "acme-x-1"

    def test_mended_rows_take_the_places_of_the_first_ones(self, tmp_path):
        run(tmp_path, ROWS, on_error="split")

        def change(sheet):
            sheet["B3"], sheet["A4"], sheet["C4"] = "b@b.com", "c", 3

        done = mended(tmp_path, mend(tmp_path, change), on_error="split")
        assert [row[:3] for row in done.rows()[1:]] == [["a", "a@b.com", 1], ["b", "b@b.com", 2], ["c", "c@b.com", 3]]
        assert done.artifact["mends"] == {"jobs": ["acme-test-1"], "rows": 2, "left_out": 0}

    def test_rows_may_be_sorted_and_columns_moved_added_or_renumbered(self, tmp_path):
        run(tmp_path, ROWS)

        def change(sheet):
            rows = [[c.value for c in row] for row in sheet.iter_rows(min_row=2)]
            sheet.delete_rows(1, sheet.max_row)
            for header, *body in [rows]:
                for row in [header, *reversed(body)]:
                    row[1] = "ok@b.com" if row[1] == "bad" else row[1]
                    row[0] = "c" if row[0] is None else row[0]
                    row[2] = 3 if row[2] == "three" else row[2]
                    sheet.append([row[5], row[4], "mine", row[3], row[1], row[0], row[2]])

        done = mended(tmp_path, mend(tmp_path, change))
        assert done.rows()[1:] == [
            ["a", "a@b.com", 1, "x"],
            ["b", "ok@b.com", 2, "y"],
            ["c", "c@b.com", 3, "z"],
        ]

    def test_a_header_that_was_sorted_below_its_rows_still_names_their_columns(self, tmp_path):
        run(tmp_path, ROWS)

        def change(sheet):
            rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
            sheet.delete_rows(1, sheet.max_row)
            for id_, email, *rest in reversed(rows):
                sheet.append(["b@b.com" if email == "bad" else email, id_, *rest])

        done = mended(tmp_path, mend(tmp_path, change))
        assert done.rows()[0] == ["id", "email", "n", "Remark"]
        assert done.rows()[2] == ["b", "b@b.com", 2, "y"]

    def test_rows_whose_header_was_deleted_are_left_out_and_reported(self, tmp_path):
        run(tmp_path, ROWS)
        done = mended(tmp_path, mend(tmp_path, lambda sheet: sheet.delete_rows(1, 2)))
        assert done.rows()[0] == ["id", "email", "n", "Remark"]
        assert done.artifact["validation"]["by_code"]["mend_without_header"] == 2
        assert done.artifact["mends"] == {"jobs": ["acme-test-1"], "rows": 0, "left_out": 2}

    def test_a_row_that_was_deleted_or_blanked_stays_as_it_was(self, tmp_path):
        run(tmp_path, ROWS)

        def change(sheet):
            for column in range(1, 6):
                sheet.cell(4, column).value = None
            sheet.delete_rows(3)

        done = mended(tmp_path, mend(tmp_path, change))
        assert [row[1] for row in done.rows()[1:]] == ["a@b.com", "bad", "c@b.com"]
        assert done.artifact["validation"]["by_code"]["mend_blank"] == 1

    @pytest.mark.parametrize(
        ("row", "code"),
        [
            (["d", "d@b.com", 4, "new", None, None], "mend_without_key"),
            (["d", "d@b.com", 4, "new", None, make_key("row", "acme-test-1", 0, 0, 4)], "mend_twice"),
            (["d", "d@b.com", 4, "new", None, make_key("row", "acme-other-1", 0, 0, 4)], "mend_other_job"),
            (["d", "d@b.com", 4, "new", None, make_key("row", "acme-test-1", 7, 0, 4)], "mend_other_job"),
            (["d", "d@b.com", 4, "new", None, make_key("row", "acme-test-1", 0, 0, 999)], "mend_unknown_row"),
            (["d", "d@b.com", 4, "new", None, make_key("row", "acme-test-1", 0, 9, 4)], "mend_unknown_row"),
        ],
    )
    def test_a_row_that_contradicts_the_first_file_is_left_out_and_reported(self, tmp_path, row, code):
        run(tmp_path, ROWS)
        done = mended(tmp_path, mend(tmp_path, lambda sheet: sheet.append(row)))
        assert done.artifact["validation"]["by_code"][code] == 1
        assert done.artifact["mends"]["left_out"] == 1
        assert "new" not in [r[3] for r in done.rows()]

    def test_a_lost_column_keeps_its_first_values(self, tmp_path):
        run(tmp_path, ROWS)
        done = mended(tmp_path, mend(tmp_path, lambda sheet: sheet.delete_cols(4)))
        assert [row[3] for row in done.rows()[1:]] == ["x", "y", "z"]
        assert done.artifact["validation"]["by_code"]["mend_column_gone"] == 1

    def test_no_finding_of_a_mended_row_holds_a_value(self, tmp_path):
        run(tmp_path, ROWS)
        done = mended(tmp_path, mend(tmp_path, lambda sheet: sheet.append(["geheim", "geheim", "geheim"])))
        assert "geheim" not in json.dumps(done.artifact)


def test_columns_are_found_by_header_wherever_they_moved():
    assert match_columns(["a", "b", None, "c"], ["c", "a", "b", "ade"], frozenset({3})) == ([1, 2, None, 0], 0)
    assert match_columns(["a", None, "c"], ["a", None, "c", "ade"], frozenset({3})) == ([0, 1, 2], 0)
    assert match_columns(["a", "b"], ["a", "x"], frozenset()) == ([0, None], 1)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40), st.booleans())
def test_output_and_rejects_are_the_input_and_mending_gives_all_of_it(tmp_path_factory, bad, headless_note):
    """`bad`: for each row, whether its email and its number are wrong."""
    folder = tmp_path_factory.mktemp("rejects")
    rows = [
        [f"k{n}", "nobody" if email else f"{n}@b.com", "many" if number else n, f"note {n}" if headless_note else None]
        for n, (email, number) in enumerate(bad)
    ]
    done = run(folder, [HEADER, *rows], on_error="split")
    wrong = [n for n, (email, number) in enumerate(bad) if email or number]
    good = [n for n in range(len(rows)) if n not in wrong]
    assert [row[0] for row in done.rows()[1:]] == [f"k{n}" for n in good]
    if not wrong:
        return
    found = rejects(folder)
    assert [row[:3] for row in found] == [rows[n][:3] for n in wrong]

    def change(sheet):
        for row in sheet.iter_rows(min_row=2):
            row[1].value = f"{row[0].value[1:]}@b.com"
            row[2].value = int(row[0].value[1:])

    whole = mended(folder, mend(folder, change), on_error="split")
    assert [row[:3] for row in whole.rows()[1:]] == [[f"k{n}", f"{n}@b.com", n] for n in range(len(rows))]
    assert whole.end["summary"]["rows_with_errors"] == 0


@pytest.mark.parametrize(
    ("own", "mended", "same"),
    [
        (None, None, True), (None, "", True), ("", None, True), (None, "x", False), ("x", None, False),
        ("a\r\nb", "a\nb", True), (" gold", "gold", False), ("007", "7", False), ("7", 7, False),
        (7, 7.0, True), (0.1 + 0.2, 0.3, True), (12.4, 12, False), (12.4, "12", False), (7, "007", False), (7, "7", True),
        (Shown(501, "00501"), 501, True), (Shown(501, "00501"), "00501", True), (Shown(501, "00501"), "501", True),
        (1, True, False), (True, 1, True), (True, "TRUE", True), (False, "TRUE", False), (True, 0, False),
        (1234.5, "1,234.50", True), (1234.5, "1.234,50", True), (0.45, "45%", True), (1234567890123456, "1234567890123456", True),
        (date(2026, 1, 2), datetime(2026, 1, 2), True), (date(2026, 1, 2), "2026-01-02", True),
        (date(2026, 1, 2), "02.01.2026", True), (date(2026, 1, 2), "01/02/26", True), (date(2026, 1, 2), "03.01.2026", False),
        (datetime(2026, 1, 2, 3, 4), "2026-01-02 03:04", True), (datetime(2026, 1, 2, 3, 4), "2026-01-02", False),
        (time(1, 2), time(1, 2), True), (timedelta(hours=1), timedelta(hours=2), False), (date(2026, 1, 2), "9" * 5000, False),
        (7, "9" * 5000, False), (15, "1,5", False), (1500, "1,500", True), (date(1985, 7, 6), "06/07/85", True),
        (CellError("#N/A"), "#N/A", True), (CellError("#N/A"), CellError("#N/A"), True),
    ],
)  # fmt: skip
def test_a_cell_counts_as_corrected_unless_it_may_be_what_was_shown(own, mended, same):
    assert is_same(own, mended) is same


@pytest.mark.parametrize(
    ("own", "text", "asked", "same"),
    [
        (12.4, "12", False, True), (12.4, "12", True, False), (1234.567, "1,234.57", False, True), (12.4, "13", False, False),
        (123456789012, "1.23457E+11", False, True), (-1234.5, "(1,234.50)", False, True), (0.4567, "46%", False, True),
        (date(2026, 1, 2), "########", True, True), (date(2026, 1, 2), "Jan-26", False, True), (date(2026, 1, 2), "Jan-26", True, False),
        (datetime(2026, 1, 2, 3, 4), "2026-01-02", False, True), (datetime(2026, 1, 2, 15, 4, 5), "1/2/26 3:04 PM", False, True),
        (time(6, 7), "6:07", False, True), (time(18, 7), "6:07 PM", False, True), (time(6, 7), "6:08", False, False),
        (timedelta(hours=30), "30:00:00", False, True), (timedelta(days=10**6), "1:00", False, False),
        ("007", "7", False, True), ("007", "7", True, False), ("1234567890123456", "1.23457E+15", False, True),
        ("2026-01-02", "02.01.2026", False, True), ("A1", "A2", False, False), ("x", "", False, False), (7, "", False, False),
        (True, "WAHR", False, True), (True, "FALSE", False, False), (True, "WAHR", True, False), (None, "x", False, False), (None, " ", False, True),
        (CellError("#N/A"), "#N/A", True, True), (CellError("#N/A"), "5", False, False), (Shown(501, "00501"), "00501", False, True),
    ],
)  # fmt: skip
def test_a_text_file_has_only_what_cells_show(own, text, asked, same):
    assert WrittenColumn().is_same(own, text, to_correct=asked) is same


def test_how_a_text_file_writes_dates_and_numbers_is_learnt_from_cells_that_were_right():
    column = WrittenColumn()
    for own, text in [
        (date(2026, 1, 2), "01/02/26"),
        (date(2026, 3, 4), "03/04/26"),
        (1234.5, "1.234,50"),
        (9.999, "10,00"),
    ]:
        column.learn(own, text)
    assert column.value("05/06/26") == date(2026, 5, 6)
    assert column.value("5/6/2026 7:08") == datetime(2026, 5, 6, 7, 8)
    assert column.value("1.234") == 1234
    assert not column.is_same(date(2026, 1, 2), "02/01/26", to_correct=True), "day and month were swapped"
    assert column.is_same(0.001, "0,00", to_correct=True), "shown with as many decimals as the others"
    assert WrittenColumn().value("05/06/26") == "05/06/26"


def test_a_date_typed_in_another_way_than_its_column_is_written_is_left_to_the_manifest_and_the_column():
    column = WrittenColumn()
    column.learn(date(2026, 1, 2), "2026-01-02")
    assert column.value("12/06/25") == "12/06/25"


def test_a_day_and_a_month_that_were_swapped_in_a_text_file_are_a_correction(tmp_path):
    fields = [{"name": "id"}, {"name": "day", "type": "date", "max": "2026-02-15"}, {"name": "email", "type": "email"}]
    days = [(date(2026, 2, 1), "bad"), (date(2026, 1, 14), "bad"), (date(2026, 3, 2), "a@b.com")]
    rows = [["Id", "Day", "Email"], *([f"k{n}", day, mail] for n, (day, mail) in enumerate(days))]
    run_job(tmp_path, rows, fields=fields, output={"rejects": True})
    sheet = openpyxl.load_workbook(tmp_path / "rejects.xlsx").worksheets[0]
    lines = [[f"{c.value:%d/%m/%Y}" if isinstance(c.value, datetime) else c.value or "" for c in row] for row in sheet]
    assert lines[3][1] == "02/03/2026"
    lines[3][1] = "03/02/2026"
    with (tmp_path / "mended.csv").open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    done = mended(tmp_path, tmp_path / "mended.csv", fields=fields)
    assert done.column("day") == [datetime(2026, 2, 1), datetime(2026, 1, 14), datetime(2026, 2, 3)]


def test_a_cell_that_looks_like_a_key_does_not_say_which_job_a_file_corrects(tmp_path):
    run(tmp_path, [HEADER, ["a", "bad", 2, "y"], ["b", "bad", 2, "y"]])
    rows = [list(row) for row in openpyxl.load_workbook(tmp_path / "rejects.xlsx").worksheets[0].values]
    rows[1][0] = make_key("row", "acme-other-9", 0, 0, 1)
    assert run_job(tmp_path / "again", rows, fields=FIELDS).error["where"]["job"] == "acme-test-1"


@pytest.mark.parametrize(
    ("reading", "name", "encoding"),
    [
        ({"delimiter": ";"}, "m.csv", "utf-8"), ({"encoding": "utf-16"}, "m.csv", "utf-8"), ({"quote": "'"}, "m.csv", "utf-16"),
        ({"sheets": ["Members*"]}, "m.xlsx", ""),
    ],
)  # fmt: skip
def test_what_the_manifest_says_about_files_does_not_hide_the_keys_of_corrected_rejects(
    tmp_path, reading, name, encoding
):
    run(tmp_path, [["A list, of members"], HEADER, ["a", "bad", 2, "y"]])
    rows = [list(row) for row in openpyxl.load_workbook(tmp_path / "rejects.xlsx").worksheets[0].values]
    again = tmp_path / "again"
    again.mkdir()
    if name == "m.csv":
        with (again / "in.xlsx").open("w", newline="", encoding=encoding) as file:
            csv.writer(file).writerows(rows)
    found = run_job(again, None if name == "m.csv" else {"Mine": rows}, fields=FIELDS, reading=reading).error
    assert (found["code"], found["where"]["job"]) == ("mends", "acme-test-1")


def test_rejects_without_their_keys_are_refused_in_words_and_not_taken_for_a_whole_file(tmp_path):
    run(tmp_path, [HEADER, ["a", "bad", 2, "y"]])
    rows = [list(row)[:-1] for row in openpyxl.load_workbook(tmp_path / "rejects.xlsx").worksheets[0].values]
    found = run_job(tmp_path / "again", rows, fields=FIELDS).error
    assert (found["code"], "column with the keys is gone" in found["message"]) == ("mends", True)


def test_a_formula_without_a_result_does_not_blank_a_cell(tmp_path):
    run(tmp_path, ROWS)

    def change(sheet: Any) -> None:
        sheet["B3"] = '="x"&"@b.com"'

    done = mended(tmp_path, mend(tmp_path, change))
    assert next(row[1] for row in rejects(tmp_path)) == "bad"
    assert done.artifact["mends"]["rows"] == 0


@pytest.mark.parametrize(("keys", "remark"), [(("one", "one"), "y"), (("one", "two"), "first")])
def test_a_file_dropped_again_replaces_its_rows_and_that_of_somebody_else_only_what_it_corrects(tmp_path, keys, remark):
    run(tmp_path, [*ROWS[:4], ["c", "bad", 3, "z"]])

    def first(sheet: Any) -> None:
        sheet["B3"], sheet["D3"], sheet["B4"] = "first@b.com", "first", "first@b.com"

    def again(sheet: Any) -> None:
        sheet["B3"] = "again@b.com"

    files = mend(tmp_path, first, "first.xlsx"), mend(tmp_path, again, "again.xlsx")
    done = mended(tmp_path, *files, keys=keys)
    rows = {row[0]: row for row in done.rows()[1:]}
    assert (rows["b"][1], rows["b"][3], rows["c"][1]) == ("again@b.com", remark, "first@b.com")


def test_a_correction_is_not_asked_about_once_more_where_everything_is_asked_about(tmp_path):
    run(tmp_path, [HEADER, ["a", "bad", 1, "x"]])
    fixed = mend(tmp_path, lambda sheet: setattr(sheet["B2"], "value", "a@b.com"))
    assert mended(tmp_path, fixed, mapping={"review": "always"}).end["ok"]


def test_two_people_who_use_one_name_and_correct_different_cells_of_a_row_lose_nothing(tmp_path):
    run(tmp_path, [HEADER, ["a", "bad", "x", "y"], ["b", "bad", 2, "y"]])

    def ann(sheet: Any) -> None:
        sheet["B2"] = "ann@b.com"

    def bob(sheet: Any) -> None:
        sheet["C2"] = 7

    files = mend(tmp_path, ann, "ann.xlsx"), mend(tmp_path, bob, "bob.xlsx")
    done = mended(tmp_path, *files, keys=("one", "one"))
    assert done.rows()[1][:3] == ["a", "ann@b.com", 7]
