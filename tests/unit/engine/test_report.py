"""report.html and the drawings that it shares with the console."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from runner.engine.contract import ReportTerms
from runner.engine.pages import drawing
from runner.engine.pages.fixes import fixes
from runner.engine.pages.messages import LANGUAGES, catalogue
from runner.engine.pages.report import FailedJob, failure_report, report
from tests.support.engine_jobs import run_job
from tests.support.samples import artifact

SAMPLE = artifact("Pay")


def changed(**parts: Any) -> dict[str, Any]:
    """The sample with some of its parts changed, each a dictionary merged into the one there or a new value."""
    made = deepcopy(SAMPLE)
    for name, value in parts.items():
        made[name] = made.get(name, {}) | value if isinstance(value, dict) else value
    return made


def findings(*listed: dict[str, Any]) -> dict[str, Any]:
    return {"findings": list(listed), "kept": len(listed), "total": len(listed)}


def finding(cell: str, message: str = "is blank", severity: str = "error") -> dict[str, Any]:
    return {"code": "x", "severity": severity, "message": message, "sheet": "Pay", "table": "Pay", "cell": cell}


def typed(cell: str, type_name: str = "decimal", **parts: Any) -> dict[str, Any]:
    return {**finding(cell, "is not a number"), "code": "type_error", "entry": type_name, "field": "pay", **parts}


def counted(error: int = 0, warning: int = 0, **parts: Any) -> dict[str, Any]:
    """The sample with so many findings."""
    return changed(summary={"findings": {"error": error, "warning": warning, "info": 0}, "left_out": {}}, **parts)


def text_of(page: str) -> str:
    return re.sub(r"<style>.*?</style>|<[^>]+>", " ", page)


def test_the_file_the_time_and_the_verdict_come_before_everything_else():
    page = report(SAMPLE, at=1_750_000_000)
    parts = ("<h1>Pay</h1>", "15 June 2025", "errors to correct", "How to send", "What to correct", "About this job")
    places = [page.index(part) for part in parts]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("errors", "warnings", "left_out", "sheets", "said"),
    [
        (0, 0, {}, ["x"], "All 7 rows were accepted."),
        (0, 3, {}, ["x"], "7 rows were accepted, with remarks."),
        (1, 0, {}, ["x"], "7 rows were accepted, but there are errors to correct."),
        (2, 0, {"rejected": 2}, ["x"], "2 rows have errors and were set aside until you correct them."),
        (1, 0, {}, [], "The file was not accepted. Nothing was written."),
    ],
)
def test_the_verdict_is_a_sentence(errors, warnings, left_out, sheets, said):
    counts = {"error": errors, "warning": warnings, "info": 0}
    made = changed(summary={"findings": counts, "left_out": left_out}, output={"sheets": sheets})
    assert f'<p class="what">{said}</p>' in report(made)


@pytest.mark.parametrize(("errors", "said"), [(1, "1 error"), (2, "2 errors")])
def test_one_error_is_no_errors(errors, said):
    made = changed(summary={"findings": {"error": errors, "warning": 0, "info": 0}})
    assert f"{said} 0 to check" in " ".join(text_of(report(made)).split())


@pytest.mark.parametrize("code", ["empty_input", "nothing_mapped", "rows_rejected", "drift_columns"])
def test_a_job_that_wrote_nothing_says_why_and_what_to_do(code):
    made = counted(1, output={"sheets": []}, validation={"by_code": {code: 1}})
    said = text_of(report(made, terms=ReportTerms(drop_to="inbox/acme/2026-04")))
    assert "The file was not accepted: " in said
    assert "again" in said or "as before" in said
    assert "inbox/acme/2026-04/" in said


def test_a_clean_result_asks_for_nothing():
    made = counted(validation={"findings": [], "kept": 0, "total": 0, "totals": []})
    said = text_of(report(made))
    assert "You do not need to do anything." in said
    assert "How to send" not in said
    assert "What to c" not in said


def test_the_file_to_correct_and_the_folder_to_drop_it_into_are_named():
    terms = ReportTerms(drop_to="inbox/acme/2026-04")
    page = report(changed(output={"rejects": {"rows": 3}}), terms=terms)
    assert 'Open <a href="rejects.xlsx">rejects.xlsx</a>' in page
    assert "<code>inbox/acme/2026-04/</code>" in page
    without = report(SAMPLE, terms=terms)
    assert "rejects.xlsx" not in without
    assert "your own file" in without
    assert "Put the file where you put the first one." in report(SAMPLE)


def test_what_to_fix_is_reported_once_for_all_cells_of_a_column_in_the_senders_catalogue():
    page = fixes(changed(validation=findings(typed("A3"), typed("A5"), typed("B5", "date", field="day"))))
    assert page.count("<li") == 2
    said = text_of(page)
    assert "Column A “Pay”" in said
    assert "2 cells are not numbers." in said
    assert "1 cell is not a valid date." in said
    assert "A3 , A5" in " ".join(said.split())


def test_a_field_has_the_name_that_the_manifest_gives_it_for_people(tmp_path):
    fields = [{"name": "id"}, {"name": "iban", "label": "Account <IBAN>", "required": True}]
    done = run_job(tmp_path, [["id"], ["M1"]], fields=fields)
    page = report(done.artifact)
    assert "required field “Account &lt;IBAN&gt;”" in page
    assert "write “Account &lt;IBAN&gt;” into the header" in page


def test_a_group_counts_also_the_cells_that_are_not_listed():
    total = {"code": "type_error", "severity": "error", "field": "pay", "count": 5000}
    listed = [typed(f"A{row}") for row in range(2, 1002)]
    page = fixes(changed(validation={**findings(*listed), "totals": [total], "total": 5000}))
    said = text_of(page)
    assert "5,000 cells are not numbers." in said
    assert page.count("<code>") == 24
    assert "and 4,976 more" in said
    assert "findings are listed" not in said, "nothing is missing"


def test_findings_that_are_in_no_group_are_mentioned():
    """Of several groups of a code nobody knows how many of the others each has."""
    total = {"code": "type_error", "severity": "error", "field": "pay", "count": 5000}
    listed = [typed(f"A{row}") for row in range(2, 501)] + [typed(f"B{row}") for row in range(2, 503)]
    page = fixes(changed(validation={**findings(*listed), "totals": [total], "total": 5000}))
    assert "1,000 of 5,000 findings are listed" in text_of(page)


def test_kinds_of_values_that_changed_are_in_the_senders_language():
    change = {"header": "Betrag", "what": "types", "before": ["number"], "now": ["number", "text"]}
    drift = {**SAMPLE["drift"], "values": [change]}
    said = text_of(drawing.drift(changed(drift=drift) | {"drift": drift}, phrases=catalogue("de")))
    assert "Arten von Werten früher Zahl, jetzt Zahl, Text" in said


@pytest.mark.parametrize(("language", "marks"), [("en", "“”"), ("de", "„“"), ("fr", "«»"), ("es", "«»")])
def test_values_are_quoted_as_in_the_language(language, marks):
    page = report(SAMPLE, terms=ReportTerms(language=language))
    rule = re.search(rf":lang\({language}\) q{{quotes:'(.*?)' '(.*?)'}}", page)
    rule = rule or re.search(r"}q{quotes:'(.*?)' '(.*?)'}", page)
    assert rule is not None
    assert "".join(rule.groups()).replace("\\a0", "") == marks
    assert f'<html lang="{language}">' in page


def test_many_kinds_of_what_to_fix_are_in_a_fold():
    some = changed(validation=findings(*(typed(f"{letter}3") for letter in "ABCDE")))
    drawn = fixes(some, most=3)
    seen, _, folded = drawn.partition("<details")
    assert (seen.count("<li "), folded.count("<li ")) == (3, 2)
    assert "2 more to fix" in folded
    assert "<details" not in fixes(some)


def test_the_grid_says_so_when_not_all_findings_are_listed():
    totals = [{"code": "type_error", "severity": "error", "field": "amount", "count": 1234}]
    column = SAMPLE["mapping"][0]["column"]
    cut = {**findings(typed(f"{column}5", field=SAMPLE["mapping"][0]["target"])), "total": 1234, "totals": totals}
    totals[0]["field"] = SAMPLE["mapping"][0]["target"]
    grid = drawing.grids(changed(validation=cut))
    assert re.findall(r'<span class="hit error" title="([^"]*)">([^<]*)<', grid) == [
        ("1,234 errors in column " + column, "1+")
    ]


def test_a_rules_own_message_is_said_as_it_is():
    own = {**finding("A3", "the plan ended"), "code": "row_rule", "entry": "stated"}
    other = {**finding("A4", "too old"), "code": "house_code"}
    said = text_of(fixes(changed(validation=findings(own, other))))
    assert "the plan ended" in said
    assert "too old" in said


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_is_in_one_language(language):
    rows = [typed("A3"), {**finding("A4"), "code": "required"}, {**finding("A5"), "code": "date_order_assumed",
            "entry": "day_first", "severity": "warning", "params": {"settle": '"day_first": true'}}]  # fmt: skip
    page = report(changed(validation=findings(*rows)), at=0, terms=ReportTerms(language=language))
    assert f'<html lang="{language}">' in page
    english = [text for text in ("rows", "What", "column ", "Error", "cell ", "January") if text in text_of(page)]
    assert bool(english) == (language == "en") or set(english) <= {"Error"}


def test_an_entry_or_a_parameter_that_a_box_made_up_breaks_no_page():
    forged = {**typed("A5"), "code": "missing_field", "params": {"count": "x", "field": "<u>"}}
    made = [typed("A3", "no_such_entry"), {**finding("A4"), "code": "clean", "entry": "do"}, forged]
    page = report(changed(validation=findings(*made)))
    assert "<u>" not in page
    assert "“&lt;u&gt;”" in page
    assert "1 cell does not hold a value of the expected kind." in page


@pytest.mark.parametrize("reason", ["empty", "encrypted", "not_a_spreadsheet", "too_large", "never heard of"])
def test_a_file_that_cannot_be_read_has_a_report(reason):
    job = FailedJob(verdict="input_unreadable", reason=reason, message="x <script>", files=("a.xlsx",), job_id="j-1")
    page = failure_report(job, at=0, terms=ReportTerms(drop_to="inbox/acme"))
    assert "<h1>a.xlsx</h1>" in page
    assert "inbox/acme/" in page
    assert "<script>" not in page
    assert "j-1" in page


@pytest.mark.parametrize("verdict", ["cpu", "memory", "wall_clock", "file_size", "processes"])
def test_a_job_at_its_limits_says_how_to_stay_below_them(verdict):
    assert "smaller files" in text_of(failure_report(FailedJob(verdict=verdict)))


def test_a_failed_rule_is_not_blamed_on_the_sender():
    said = text_of(failure_report(FailedJob(verdict="rule_error", files=("a.csv",)), terms=ReportTerms(drop_to="x")))
    assert "Your file is probably not the cause." in said
    assert "Put the new file" not in said


def test_it_says_how_long_the_results_are_kept_if_that_is_known():
    terms = ReportTerms(retention_seconds=48 * 3600)
    assert "kept until 3 January 1970, 00:00 UTC at least" in text_of(report(SAMPLE, at=0, terms=terms))
    assert "kept until 3 January 1970" in text_of(failure_report(FailedJob(verdict="cpu"), at=0, terms=terms))
    assert "kept until" not in text_of(report(SAMPLE, at=0))


def test_only_doubtful_columns_are_open():
    page = report(SAMPLE)
    assert page.count("<details") > 5
    assert page.count(" open>") == 1
    sure = [{**column, "probability": 0.99, "runners_up": []} for column in SAMPLE["mapping"][:1]]
    assert " open>" not in report(changed(mapping=sure))


def test_a_page_loads_nothing_and_runs_nothing():
    page = report(changed(output={"rejects": {"rows": 1}}))
    assert "<script" not in page
    assert set(re.findall(r'(?:href|src)="([^"]*)"', page)) == {"rejects.xlsx"}
    assert "default-src 'none'" in page


def test_the_file_is_named_where_there_are_several_and_one_that_corrects_rows_is_called_so():
    one = SAMPLE["inputs"][0]
    inputs = [{**one, "name": "a.csv"}, {**one, "name": "b.csv"}]
    listed = [{**finding("A3"), "input": name} for name in ("a.csv", "b.csv")]
    page = report(changed(inputs=inputs, validation={**SAMPLE["validation"], **findings(*listed)}))
    assert page.count("File “a.csv” · Sheet “Pay” · Column A") == 1
    assert "2 files" in page
    inputs[1]["role"] = "mended"
    page = report(changed(inputs=inputs, mends={"jobs": ["j"], "rows": 3, "left_out": 1}))
    assert "<h1>a.csv</h1>" in page
    assert "3 rows were corrected by b.csv." in page
    assert "1 corrected row was left out; see below." in page


def test_errors_come_before_warnings_and_notes_are_left_out():
    listed = (finding("A3", "odd", "warning"), finding("A4", "wrong"), finding("A5", "by the way", "info"))
    page = fixes(changed(validation=findings(*listed)))
    assert page.index("wrong") < page.index("odd")
    assert "by the way" not in page


def test_a_grid_of_many_runs_shows_its_first_and_last_ones():
    made = changed()
    rows = [{"from": n, "to": n, "as": "data" if n % 2 else "group", "table": "t1", "rows": 1} for n in range(2, 5000)]
    made["sheets"][0]["rows"] = rows
    grid = drawing.grids(made)
    assert grid.count("<tr>") < 70
    assert '<th scope="row">2</th>' in grid
    assert '<th scope="row">4,999</th>' in grid
    assert "4,950 more runs of rows" in grid


def test_a_grid_counts_findings_in_their_column_and_run():
    grid = drawing.grids(changed(validation=findings(finding("A3"), finding("A5"), finding("A9"))))
    assert 'title="2 errors in column A">2</span>' in grid


@pytest.mark.parametrize(("value", "kind"), [(0.99, "high"), (0.6, "middle"), (0.1, "low")])
def test_a_bar_is_as_long_as_its_probability(value, kind):
    assert f'class="{kind}" width="{100 * value:.0f}"' in drawing.bar(value)


def test_artifacts_of_the_version_before_are_drawn_too():
    old = {"table": "Pay", "column": "A", "header": "Pay", "header_cell": "A1", "target": "pay", "score": 0.5,
           "contributors": [{"rule": "header", "delta": 0.5}], "runners_up": [], "note": None}  # fmt: skip
    assert "50%" in drawing.columns(changed(mapping=[old]))


def test_what_changed_since_the_last_drop_is_listed_and_nothing_is_reported_to_be_so():
    assert "New column “Pay”" in drawing.drift(SAMPLE)
    same = {"columns": {}, "values": [], "previous": {}}
    assert "Nothing changed" in drawing.drift(changed(drift=same) | {"drift": same})
    without = {name: part for name, part in SAMPLE.items() if name != "drift"}
    assert drawing.drift(without) == ""


def documented_rules():
    table = (
        (Path(__file__).parents[3] / "docs/explanation/mapping.md").read_text().partition("| rule | what it is |")[2]
    )
    names = [
        name
        for line in table.strip().split("\n\n")[0].splitlines()
        for name in re.findall("`([^`]+)`", line.split("|")[1])
    ]
    return [name for name in names if name != "prior" and "." not in name]


@pytest.mark.parametrize("rule", [*documented_rules(), "header", "header:name~", "decision", "hooks.after_mapping"])
def test_every_reason_has_words_for_and_against(rule):
    said = {drawing.in_words(rule, 1.0), drawing.in_words(rule, -1.0)}
    assert len(said) == 2
    assert rule not in said
    assert not any(text.endswith(" ") or "{" in text for text in said)


@pytest.mark.parametrize(
    ("settle", "said"),
    [
        ('"day_first": true (or false) on field start', '"day_first": true oder false beim Feld start'),
        ('"unit": "percent" on field rate', '"unit": "percent" beim Feld rate'),
        (
            '"reading": {"total_rows": "drop"} or "reading": {"total_rows": "keep"}',
            '"reading": {"total_rows": "drop"} oder "reading": {"total_rows": "keep"}',
        ),
        ('"delimiter": ";"', '"delimiter": ";"'),
        ("write the number itself", "write the number itself"),
    ],
)
def test_what_settles_a_reading_is_in_the_senders_language_where_it_is_a_line_of_the_manifest(settle, said):
    assert drawing.draw_setting(settle, catalogue("de")) == f"<code>{drawing.escape(said)}</code>"
    assert not drawing.draw_setting(None, catalogue("de"))
