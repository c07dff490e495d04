"""What is asked where the engine is unsure, and what an answer does."""

import json
from pathlib import Path
from unicodedata import normalize

import jsonschema
import pytest

from core.memories import parse_memory
from runner.engine.deciding.answers import Answers
from runner.engine.deciding.review import Asking
from runner.engine.options import JobOptions
from runner.engine.protocol import read_order
from tests.support.engine_jobs import run_job

FIELDS = [{"name": "street", "required": True}, {"name": "city", "required": True}, {"name": "start", "type": "date"}]
ROWS = [["QZORT", "city", "start"], ["Mayor 1", "Lugo", "03/04/2025"], ["Sol 2", "Vigo", "05/06/2025"]]
UNSURE = {"fields": FIELDS, "mapping": {"review": "unsure"}}
SCHEMAS = Path(__file__).parents[3]


def asked(done):
    return {(q["kind"], q["field"] or q["header"] or q["column"]) for q in done.questions}


def answers(*said, **more):
    return {"answers": list(said), **more}


def test_a_job_asks_for_a_required_field_and_for_dates_that_have_two_readings(tmp_path):
    done = run_job(tmp_path, ROWS, **UNSURE)
    assert asked(done) == {("required", "street"), ("reading", "start")}
    assert (done.folder / "normalized.xlsx").exists() is False
    street = next(q for q in done.questions if q["kind"] == "required")
    assert [(c["value"], c.get("header")) for c in street["candidates"]] == [("A", "QZORT"), (None, None)]


def test_a_job_asks_nothing_unless_the_manifest_says_so(tmp_path):
    assert run_job(tmp_path, ROWS, fields=FIELDS).end["ok"]


def test_a_file_that_leaves_no_doubt_is_not_asked_about(tmp_path):
    rows = [["street", "city", "start"], ["Mayor 1", "Lugo", "2025-04-03"]]
    assert run_job(tmp_path, rows, **UNSURE).end["ok"]


def test_answers_are_applied_and_named_in_the_artifact(tmp_path):
    decision = answers({"header": "qzort ", "field": "street"}, {"header": "start", "reading": "month_first"})
    done = run_job(tmp_path, ROWS, **UNSURE, decision=decision)
    assert done.rows()[1][:2] == ["Mayor 1", "Lugo"]
    assert done.column("start")[0].strftime("%Y-%m-%d") == "2025-03-04"
    assert done.artifact["decision"] == {"key": "k", "version": "v", "sha256": "0" * 64, "by": "ann"}
    assert "decision_unused" not in done.artifact["validation"]["by_code"]
    (street,) = [m for m in done.artifact["mapping"] if m["target"] == "street"]
    assert street["note"] == "decided by a person"


def test_answers_by_the_ids_of_questions_do_the_same(tmp_path):
    street, start = run_job(tmp_path / "1", ROWS, **UNSURE).questions
    decision = answers({"id": street["id"], "value": "A"}, {"id": start["id"], "value": "day_first"})
    done = run_job(tmp_path / "2", ROWS, **UNSURE, decision=decision)
    assert done.column("start")[0].strftime("%Y-%m-%d") == "2025-04-03"
    assert done.column("street") == ["Mayor 1", "Sol 2"]


@pytest.mark.parametrize("by", ["header", "column", "id"])
def test_what_was_applied_is_reported_by_its_header_however_the_answer_names_the_column(tmp_path, by):
    street, start = run_job(tmp_path / "1", ROWS, **UNSURE).questions
    said = {
        "header": [{"header": "QZORT", "field": "street"}, {"header": "start", "reading": "day_first"}],
        "column": [{"column": "A", "field": "street"}, {"column": "C", "reading": "day_first"}],
        "id": [{"id": street["id"], "value": "A"}, {"id": start["id"], "value": "day_first"}],
    }
    unused = [
        {"header": "city", "field": "street"},
        {"header": "gone", "field": None},
        {"column": "B", "reading": "comma"},
    ]
    decision = answers(*said[by], *unused)
    done = run_job(tmp_path / "2", ROWS, **UNSURE, decision=decision)
    assert done.artifact["profile"]["answers"] == [
        {"header": "QZORT", "field": "street"}, {"header": "start", "reading": "day_first"},
    ]  # fmt: skip
    assert done.artifact["validation"]["by_code"]["decision_unused"] == len(unused)
    hidden = run_job(tmp_path / "3", ROWS, **UNSURE, redact_headers=True, decision=decision)
    assert "answers" not in hidden.artifact["profile"]


def test_the_decision_on_the_page_is_valid_and_settles_every_question(tmp_path):
    done = run_job(tmp_path / "1", ROWS, **UNSURE)
    page = (done.folder / "review.html").read_text()
    ready = json.loads(page.split("<pre>")[1].split("</pre>")[0].replace("&quot;", '"'))
    assert run_job(tmp_path / "2", ROWS, **UNSURE, decision={**ready, "by": "ann"}).end["ok"]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_an_answer_fits_a_header_whichever_way_its_accents_are_written(tmp_path, form):
    rows = [["Qállé Zört", "city", "start"], ["Mayor 1", "Lugo", "2025-04-13"], ["Sol 2", "Vigo", "2025-04-14"]]
    other = {"NFC": "NFD", "NFD": "NFC"}[form]
    said = {"sheet": normalize(form, "Tabellé").upper(), "header": normalize(form, rows[0][0]), "field": "street"}
    rows[0][0] = normalize(other, rows[0][0])
    done = run_job(tmp_path, {normalize(other, "Tabellé"): rows}, **UNSURE, decision=answers(said))
    assert done.column("street") == ["Mayor 1", "Sol 2"]


def test_what_a_decision_leaves_open_is_asked_again(tmp_path):
    done = run_job(tmp_path, ROWS, **UNSURE, decision=answers({"header": "QZORT", "field": "street"}))
    assert asked(done) == {("reading", "start")}
    assert json.loads((done.folder / "review.json").read_bytes())["decision"]["by"] == "ann"


def test_a_review_says_which_answers_fitted_nothing(tmp_path):
    bad = [
        {"header": "QZROT", "field": "street"},
        {"column": "ZZ", "field": "city"},
        {"id": "required-0", "value": "A"},
    ]
    decision = answers(bad[0], {"header": "start", "reading": "day_first"}, *bad[1:])
    done = run_job(tmp_path / "1", ROWS, **UNSURE, decision=decision)
    assert asked(done) == {("required", "street")}
    assert json.loads((done.folder / "review.json").read_bytes())["unused"] == [1, 3, 4]
    assert "Of its answers, numbers 1, 3, 4 fit no column" in (done.folder / "review.html").read_text()
    rows = [["Qzort", "Vwk"], ["a", "03/04/2025"], ["b", "05/06/2025"]]
    decision = answers({"header": "Vwk", "reading": "day_first"})
    done = run_job(tmp_path / "2", rows, **UNSURE, decision=decision)  # asked before anybody knows what the columns are
    assert "unused" not in json.loads((done.folder / "review.json").read_bytes())


@pytest.mark.parametrize("more", [{"decision": {"accept": True}}, {"accept": True}])
def test_accepting_asks_nothing_more(tmp_path, more):
    assert run_job(tmp_path, ROWS, **UNSURE, **more).end["ok"]


def test_always_asks_about_every_column_until_all_are_answered(tmp_path):
    always = {"fields": FIELDS, "mapping": {"review": "always"}}
    rows = [["street", "city"], ["Mayor 1", "Lugo"]]
    done = run_job(tmp_path / "1", rows, **always)
    assert asked(done) == {("column", "street"), ("column", "city")}
    decision = answers({"header": "street", "field": "street"}, {"header": "city", "field": "city"})
    assert run_job(tmp_path / "2", rows, **always, decision=decision).end["ok"]


def test_a_required_field_may_be_left_without_a_column(tmp_path):
    street, _ = run_job(tmp_path / "1", ROWS, **UNSURE).questions
    decision = answers({"id": street["id"], "value": None}, {"header": "start", "reading": "day_first"})
    done = run_job(tmp_path / "2", ROWS, **UNSURE, decision=decision)
    assert done.end["ok"]
    assert done.artifact["validation"]["by_code"]["missing_field"] == 1


def test_a_column_may_be_decided_to_be_no_field(tmp_path):
    done = run_job(tmp_path, ROWS, fields=FIELDS, decision=answers({"header": "city", "field": None}))
    assert done.mapped()["city"] is None


def test_a_decision_is_applied_even_where_nothing_is_asked(tmp_path):
    done = run_job(tmp_path, ROWS, fields=FIELDS, decision=answers({"column": "A", "field": "street"}))
    assert done.column("street") == ["Mayor 1", "Sol 2"]


def test_a_field_that_was_decided_is_taken_from_the_column_that_had_it(tmp_path):
    done = run_job(tmp_path, ROWS, fields=FIELDS, decision=answers({"header": "QZORT", "field": "city"}))
    assert (done.mapped()["QZORT"], done.mapped()["city"]) == ("city", None)


def test_answers_that_fit_nothing_are_warnings(tmp_path):
    decision = answers({"header": "nowhere", "field": "city"}, {"id": "column-0123456789", "value": "city"})
    done = run_job(tmp_path, ROWS, fields=FIELDS, decision=decision)
    assert done.artifact["validation"]["by_code"]["decision_unused"] == 2


def test_a_file_in_which_nothing_is_found_is_asked_about_instead_of_failing(tmp_path):
    rows = [["QZORT", "QWIRN"], ["Mayor 1", "Lugo"], ["Sol 2", "Vigo"]]
    assert run_job(tmp_path / "1", rows, fields=FIELDS[:2]).error["code"] == "nothing_mapped"
    assert asked(run_job(tmp_path / "2", rows, fields=FIELDS[:2], mapping={"review": "unsure"})) >= {
        ("required", "street"), ("required", "city"),
    }  # fmt: skip


def test_a_table_without_a_header_is_asked_about(tmp_path):
    rows = [[1, 2.5], [2, 3.5], [3, 4.5]]
    fields = [{"name": "n", "type": "integer", "synonyms": ["A"]}]
    done = run_job(tmp_path / "1", rows, fields=fields, mapping={"review": "unsure"})
    (header,) = [q for q in done.questions if q["kind"] == "header"]
    assert [c["value"] for c in header["candidates"]] == ["none", "1", "2", "3"]
    decision = answers({"id": header["id"], "value": "none"}, accept=False)
    done = run_job(tmp_path / "2", rows, fields=fields, mapping={"review": "unsure"}, decision=decision)
    assert not done.end.get("error") or "header" not in {q["kind"] for q in done.questions}
    done = run_job(
        tmp_path / "3", rows, fields=fields, mapping={"review": "unsure"},
        decision=answers({"header_rows": [1]}, accept=True),
    )  # fmt: skip
    assert done.artifact["sheets"][0]["tables"][0]["header_rows"] == [1]


DOUBTED = {
    "rows": [["name", "2023", "2024"], ["Lugo", 2021, 2022], ["Vigo", 2019, 2018]],
    "fields": [{"name": "city"}], "mapping": {"review": "unsure"},
}  # fmt: skip
CITY = {"column": "A", "field": "city"}


def test_yes_settles_the_header_that_was_found(tmp_path):
    (header,) = run_job(tmp_path / "1", **DOUBTED, decision=answers(CITY)).questions
    assert (header["kind"], header["chosen"]) == ("header", "yes")
    done = run_job(tmp_path / "2", **DOUBTED, decision=answers(CITY, {"id": header["id"], "value": "yes"}))
    assert done.column("city") == ["Lugo", "Vigo"]
    assert "decision_unused" not in done.artifact["validation"]["by_code"]


@pytest.mark.parametrize("value", ["banana", "0", "-1", "1048577", "9" * 400])
def test_an_answer_that_is_no_row_does_not_take_the_header_away(tmp_path, value):
    (header,) = run_job(tmp_path / "1", **DOUBTED, decision=answers(CITY)).questions
    said = answers(CITY, {"id": header["id"], "value": value})
    assert run_job(tmp_path / "2", **DOUBTED, decision=said).questions == [header]
    done = run_job(tmp_path / "3", **DOUBTED, decision=said | {"accept": True})
    assert done.artifact["validation"]["by_code"]["decision_unused"] == 1
    assert done.column("city") == ["Lugo", "Vigo"]


def test_review_json_keeps_its_published_schema(tmp_path):
    schema = json.loads((SCHEMAS / "docs/reference/review.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    done = run_job(tmp_path, ROWS, **UNSURE)
    jsonschema.Draft202012Validator(schema).validate(json.loads((done.folder / "review.json").read_bytes()))
    assert schema == json.loads((SCHEMAS / "runner/engine/review.schema.json").read_text())


def test_no_cell_value_is_in_a_review(tmp_path):
    rows = [["QZORT", "city", "start"], ["Sekrit 1", "Sekrit 2", "03/04/2025"], ["Sekrit 3", "Sekrit 4", "05/06/2025"]]
    done = run_job(tmp_path, rows, **UNSURE)
    for name in ("review.json", "review.html"):
        text = (done.folder / name).read_text()
        assert "Sekrit" not in text
        assert "2025" not in text.replace("31/12/2025", "").replace("12/31/2025", "")


@pytest.mark.parametrize(
    "rows",
    [
        [["street", "Sekrit 1", "Sekrit 2"], ["city", "Sekrit 3", "Sekrit 4"], ["start", "2025-04-03", "2025-04-04"]],
        [
            ["city", "sekrit@sekrit.example", "x"],
            ["Sekrit 1", "Sekrit 2", "Sekrit 3"],
            ["Sekrit 4", "Sekrit 5", "Sekrit 6"],
        ],
        [
            ["city", "+49 7731 60701", "Sekrit"],
            ["Sekrit 1", "Sekrit 2", "Sekrit 3"],
            ["Sekrit 4", "Sekrit 5", "Sekrit 6"],
        ],
    ],
    ids=["turned", "email", "phone"],
)
def test_no_header_is_shown_where_the_header_row_may_be_a_record(tmp_path, rows):
    done = run_job(tmp_path, rows, **UNSURE)
    assert done.questions
    for name in ("review.json", "review.html"):
        text = (done.folder / name).read_text()
        assert "sekrit" not in text.lower()
        assert "7731" not in text


def test_headers_are_not_shown_where_the_manifest_hides_them(tmp_path):
    done = run_job(tmp_path, ROWS, **UNSURE, redact_headers=True)
    assert "QZORT" not in (done.folder / "review.json").read_text() + (done.folder / "review.html").read_text()
    assert "column A" in (done.folder / "review.html").read_text()


GUESSED = [
    ["street", "city", "Qzort"],
    ["Mayor 1", "Lugo", "03/04/2025"],
    *([f"Sol {n}", "Vigo", f"05/0{n}/2025"] for n in range(1, 6)),
]


def test_how_a_column_is_written_is_asked_together_with_what_it_is(tmp_path):
    done = run_job(tmp_path / "1", GUESSED, **UNSURE)
    assert [(q["kind"], q["column"]) for q in done.questions] == [("column", "C"), ("reading", "C")]
    assert done.questions[1]["text"].startswith("If column C (“Qzort”) is start: ")
    said = answers({"header": "Qzort", "field": "start"}, {"id": done.questions[1]["id"], "value": "month_first"})
    done = run_job(tmp_path / "2", GUESSED, **UNSURE, decision=said)
    assert done.column("start")[0].strftime("%Y-%m-%d") == "2025-03-04"


def test_a_required_date_is_asked_about_in_one_round(tmp_path):
    fields = [*FIELDS[:2], {"name": "start", "type": "date", "required": True}]
    asking = {"fields": fields, "mapping": UNSURE["mapping"]}
    done = run_job(tmp_path / "1", GUESSED, **asking)
    assert asked(done) == {("required", "start"), ("reading", "start")}
    start, written = done.questions
    said = answers({"id": start["id"], "value": "C"}, {"id": written["id"], "value": "day_first"})
    assert run_job(tmp_path / "2", GUESSED, **asking, decision=said).end["ok"]


@pytest.mark.parametrize("about", ["header", "id"])
def test_how_a_column_is_written_does_not_matter_where_it_is_no_field(tmp_path, about):
    written = (
        {"header": "Qzort"}
        if about == "header"
        else {"id": run_job(tmp_path / "1", GUESSED, **UNSURE).questions[1]["id"]}
    )
    said = answers(
        {"header": "Qzort", "field": None}, written | {"reading" if about == "header" else "value": "day_first"}
    )
    done = run_job(tmp_path / "2", GUESSED, **UNSURE, decision=said)
    assert "decision_unused" not in done.artifact["validation"]["by_code"]


def learnt(*pairs):
    entries = [{"header": h, "field": f, "count": 5, "first": "2026-01-01", "last": "2026-01-02"} for h, f in pairs]
    return json.dumps({"memory": 1, "headers": entries}).encode()


def test_every_likely_candidate_says_what_speaks_for_it_whether_it_was_chosen_or_not(tmp_path):
    rows = [["Strasenname", "Citty name", "start"], ["Mayor 1", "Lugo", "2025-04-03"], ["Sol 2", "Vigo", "2025-06-05"]]
    memory = learnt(("Strassennummer", "street"), ("Ortsteil", "city"))
    done = run_job(tmp_path, rows, fields=FIELDS, mapping={"review": "always", "threshold": 0.999}, memory=memory)
    likely = [c for q in done.questions for c in q["candidates"] if c["probability"]]
    unchosen = [c for q in done.questions for c in q["candidates"] if c["probability"] and c["value"] != q["chosen"]]
    assert unchosen
    assert all(c["reasons"] for c in likely)
    assert "header is like its name" in (done.folder / "review.html").read_text()


def test_a_confirmed_header_that_a_reason_names_is_hidden_with_the_others(tmp_path):
    rows = [["QZORTO", "city", "start"], ["Mayor 1", "Lugo", "2025-04-03"], ["Sol 2", "Vigo", "2025-06-05"]]
    memory = learnt(*((f"Qzort{n}", "street") for n in "abc"))
    texts = []
    for redact in (False, True):
        done = run_job(tmp_path / str(redact), rows, **UNSURE, memory=memory, redact_headers=redact)
        texts.append((done.folder / "review.json").read_text())
    assert ["Qzort" in text for text in texts] == [True, False]
    assert all("memory:like" in text for text in texts)


@pytest.mark.parametrize(
    "header", ["<script>alert(1)</script>", "</pre><b>", "a" * 5000, "x\u202ey", "tab\tnew\nline", '"quoted"', "=1+1"]
)
def test_a_hostile_header_is_only_text_on_the_page(tmp_path, header):
    rows = [[header, "city"], ["Mayor 1", "Lugo"], ["Sol 2", "Vigo"]]
    done = run_job(tmp_path, rows, fields=FIELDS[:2], mapping={"review": "always"})
    page = (done.folder / "review.html").read_text()
    body = page.split("</style>")[1]
    for bad in ("<script", "</pre><b>", "\u202e"):
        assert bad not in body
    assert "default-src 'none'" in page
    assert len(page) < 60_000


def drifted(decision=None):
    order = read_order(
        {
            "order": 1, "job": {}, "manifest": {"mapping": {"review": "never"}}, "params": {}, "outputs": {}, "config": {},
            "inputs": [{"role": "primary", "name": "a.csv", "path": "a"}],
        },
        Path(),
    )  # fmt: skip
    return Asking(order, JobOptions.parse(order.manifest), Answers(decision), [], fields_with_values=()).ask_drift(
        "new: “Fax”"
    )


def test_columns_that_drifted_are_asked_about_until_somebody_accepts_them():
    (question,) = drifted()
    assert (question.kind, "new: “Fax”" in question.text) == ("drift", True)
    assert drifted({"answers": [{"id": question.id, "value": "accept"}]}) == []
    assert drifted({"accept": True}) == []
    assert drifted({"answers": [{"id": "drift-0000000000", "value": "accept"}]}) == [question]


def test_a_reading_that_a_sender_was_asked_about_once_is_not_asked_again(tmp_path):
    rows = [["street", "city", "start"], ["Mayor 1", "Lugo", "03/04/2025"], ["Sol 2", "Vigo", "05/06/2025"]]
    entry = {"sender": "north", "header": "START", "reading": "month_first", "at": "2026-01-01T00:00:00Z"}
    memory = json.dumps({"memory": 1, "readings": [entry]}).encode()
    parse_memory(memory)
    assert asked(run_job(tmp_path / "1", rows, **UNSURE, memory=memory, sender="south")) == {("reading", "start")}
    done = run_job(tmp_path / "2", rows, **UNSURE, memory=memory, sender="north")
    assert done.column("start")[0].strftime("%Y-%m-%d") == "2025-03-04"
    (reading,) = [r for r in done.artifact["readings"] if r["kind"] == "date_order"]
    assert (reading["evidence"], reading["sure"]) == ({"memory": 1}, True)
    decision = answers({"header": "start", "reading": "day_first"})
    done = run_job(tmp_path / "3", rows, **UNSURE, memory=memory, sender="north", decision=decision)
    assert done.column("start")[0].strftime("%Y-%m-%d") == "2025-04-03"


TWICE = [["phone", "id", "phone"], ["x", "1", "+1 202 555 0101"], ["y", "2", "+1 202 555 0102"]]
ALWAYS = {"fields": [{"name": "id"}, {"name": "phone", "type": "phone"}], "mapping": {"review": "always"}}


def test_of_two_columns_with_one_header_an_answer_by_header_settles_both(tmp_path):
    (likely,) = [q["column"] for q in run_job(tmp_path / "1", TWICE, **ALWAYS).questions if q["chosen"] == "phone"]
    said = answers({"header": "phone", "field": "phone"}, {"header": "id", "field": "id"})
    done = run_job(tmp_path / "2", TWICE, **ALWAYS, decision=said)
    assert done.end["ok"], "the second was answered too"
    assert [m["column"] for m in done.artifact["mapping"] if m["target"] == "phone"] == [likely]


@pytest.mark.parametrize("none", ["A", "C"])
def test_an_answer_by_header_and_column_settles_one_of_two_columns_with_one_header(tmp_path, none):
    other = "C" if none == "A" else "A"
    said = [{"header": "phone", "column": none, "field": None}, {"header": "phone", "column": other, "field": "phone"}]
    done = run_job(tmp_path, TWICE, **ALWAYS, decision=answers(*said, {"header": "id", "field": "id"}))
    assert [m["column"] for m in done.artifact["mapping"] if m["target"] == "phone"] == [other]


def test_the_decision_on_the_page_keeps_columns_with_one_header_apart(tmp_path):
    done = run_job(tmp_path / "1", TWICE, **ALWAYS)
    page = (done.folder / "review.html").read_text()
    ready = json.loads(page.split("<pre>")[1].split("</pre>")[0].replace("&quot;", '"'))
    chosen = {q["column"]: q["chosen"] for q in done.questions}
    again = run_job(tmp_path / "2", TWICE, **ALWAYS, decision={**ready, "by": "ann"})
    assert {m["column"]: m["target"] for m in again.artifact["mapping"]} == chosen


def test_a_confirmed_header_that_a_file_has_twice_is_reported_as_a_declared_one_is(tmp_path):
    at = "2026-01-01T00:00:00Z"
    entry = {"header": "QZORT", "field": "street", "at": at, "by": "ann", "said_at": at}
    memory = json.dumps({"memory": 1, "headers": [entry]}).encode()
    rows = [["QZORT", "Qzort", "city"], ["Mayor 1", "Apt 5", "Lugo"], ["Sol 2", "Apt 6", "Vigo"]]
    done = run_job(tmp_path, rows, fields=FIELDS[:2], memory=memory)
    assert done.artifact["validation"]["by_code"]["duplicate_header"] == 1
