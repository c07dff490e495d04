"""Jobs with several tables: which of them hold the records, and what is reported about the others."""

from datetime import date, timedelta

import pytest

from core.errors import ManifestInvalid
from core.manifests import parse_manifest
from tests.support.engine_jobs import run_job

HEAD = ["order", "region", "rep", "date", "amount"]
FIELDS = [
    {"name": "order"},
    {"name": "region"},
    {"name": "rep"},
    {"name": "date", "type": "date"},
    {"name": "amount", "type": "money"},
]


def orders(first=1000, rows=12, head=HEAD):
    made = [
        {
            "order": f"SO-{first + n}",
            "region": ("North", "South", "East")[n % 3],
            "rep": ("Ann", "Bob")[n % 2],
            "date": date(2024, 5, 1) + timedelta(days=n + abs(first - 1000)),
            "amount": 100.5 + 7 * n + abs(first - 1000) / 16,
        }
        for n in range(rows)
    ]
    return [list(head), *([row[name] for name in head] for row in made)]


def sums(rows, by="region", of="amount"):
    group, number = rows[0].index(by), rows[0].index(of)
    found = {}
    for row in rows[1:]:
        found[row[group]] = found.get(row[group], 0) + row[number]
    return [[by, of], *map(list, found.items())]


DATA = orders()
PLAN = [HEAD, *([*row[:4], row[4] + n * n % 11 + 1] for n, row in enumerate(DATA[1:]))]
LISTS = [["region", "rep"], ["North", "Ann"], ["South", "Bob"], ["East", None]]
TARGETS = [["region", "amount"], ["North", 9000.0], ["South", 8000.0], ["East", 7000.0]]
GLOSSARY = [["rep", "remark"], ["order", "who ordered"], ["region", "where"], ["date", "when"], ["amount", "how much"]]


def told(done):
    return [(f["code"], f["severity"], f["sheet"]) for f in done.findings if f["code"].startswith("table_")]


def used(done):
    return {s["name"]: sum(t["rows_out"] for t in s["tables"]) for s in done.artifact["sheets"]}


def job(folder, sheets, **more):
    return run_job(folder, sheets, fields=more.pop("fields", FIELDS), **more)


class TestSomethingElse:
    @pytest.mark.parametrize(
        ("other", "finding"),
        [
            pytest.param(sums(DATA), ("table_derived", "info"), id="sums by group"),
            pytest.param([*sums(DATA), ["Total", 1668.0]], ("table_derived", "info"), id="sums and their total"),
            pytest.param(
                [["region", "Orders"], ["North", 4], ["South", 4], ["East", 4]],
                ("table_assumed", "warning"),
                id="counts",
            ),
            pytest.param(
                [["region", "Meaning"], *([r, f"the {r}"] for r in ("North", "South", "East", "West"))],
                ("table_derived", "info"),
                id="what values mean",
            ),
            pytest.param(
                [["region", "Meaning"], *([r, f"the {r}"] for r in ("North", "South", "West"))],
                ("table_assumed", "warning"),
                id="some of the values",
            ),
            pytest.param(LISTS, ("table_derived", "info"), id="allowed values"),
            pytest.param(GLOSSARY, ("table_derived", "info"), id="glossary"),
            pytest.param(TARGETS, ("table_assumed", "warning"), id="amounts that are no sums"),
            pytest.param([DATA[0], *DATA[:0:-1]], ("table_repeated", "warning"), id="sorted copy"),
            pytest.param([DATA[0], *DATA[3:5]], ("table_repeated", "warning"), id="filtered copy"),
            pytest.param([row[:1] + row[3:] for row in DATA], ("table_repeated", "warning"), id="narrow copy"),
            pytest.param([row[::-1] for row in DATA], ("table_repeated", "warning"), id="columns turned round"),
            pytest.param(
                [*DATA[:9], *([*row[:4], row[4] + 1] for row in DATA[9:])],
                ("table_assumed", "warning"),
                id="older copy",
            ),
        ],
    )
    @pytest.mark.parametrize("first", [True, False], ids=["after", "before"])
    def test_is_left_out_and_reported(self, other, finding, first, tmp_path):
        sheets = {"Data": DATA, "Sheet2": other}
        same = finding[0] != "table_derived" and len(other) == len(DATA)
        if first and not same:  # of two copies the first is used
            sheets = {"Sheet2": other, "Data": DATA}
        done = job(tmp_path, sheets)
        assert used(done) == {"Data": 12, "Sheet2": 0}
        assert told(done) == [(*finding, "Sheet2")]

    @pytest.mark.parametrize(
        ("change", "code", "kept"),
        [
            pytest.param({"rep": lambda v: f"{v.upper()}  "}, "table_repeated", "Data", id="untidy texts"),
            pytest.param({"date": lambda v: f"{v:%d %b %Y}"}, "table_repeated", "Data", id="dates as texts"),
            pytest.param({"date": lambda v: f"{v:%m/%d/%Y}"}, "table_repeated", "Data", id="American dates"),
            pytest.param({"amount": lambda v: f"{v:.2f}"}, "table_repeated", "Data", id="numbers as texts"),
            pytest.param({"amount": lambda v: f"{v:.2f}".replace(".", ",")}, "table_repeated", "Data", id="commas"),
            pytest.param({"amount": round}, "table_repeated", "Data", id="rounded"),
            pytest.param({"amount": int}, "table_repeated", "Data", id="cut"),
            pytest.param({"amount": lambda v: round(v * 1.08, 2)}, "table_assumed", None, id="another currency"),
            pytest.param({"amount": lambda v: v / 1000}, "table_assumed", None, id="thousands"),
        ],
    )
    @pytest.mark.parametrize("first", [True, False], ids=["after", "before"])
    def test_may_be_the_records_again_written_otherwise(self, change, code, kept, first, tmp_path):
        copy = [HEAD, *([change.get(k, lambda v: v)(v) for k, v in zip(HEAD, r, strict=True)] for r in DATA[:0:-1])]
        sheets = {"Data": DATA, "Copy": copy} if first else {"Copy": copy, "Data": DATA}
        done = job(tmp_path, sheets)
        kept = kept or next(iter(sheets))  # nobody can say which currency is wanted
        other = next(name for name in sheets if name != kept)
        assert used(done) == {kept: 12, other: 0}
        assert told(done) == [(code, "warning", other)]

    def test_a_copy_of_one_of_many_sheets_is_found(self, tmp_path):
        months = {m: orders(n * 100) for n, m in enumerate(("Jan", "Feb", "Mar", "Apr", "May", "Jun"))}
        copy = [HEAD, *([*r[:2], r[2].upper(), *r[3:]] for r in months["May"][1:])]
        done = job(tmp_path, {**months, "Print": copy})
        assert told(done) == [("table_repeated", "warning", "Print")]

    def test_a_copy_written_otherwise_of_a_unique_field_warns(self, tmp_path):
        fields = [{**FIELDS[0], "unique": True}, *FIELDS[1:]]
        done = job(
            tmp_path, {"Data": DATA, "Copy": [HEAD, *([*r[:2], r[2].upper(), *r[3:]] for r in DATA[1:])]}, fields=fields
        )
        assert told(done) == [("table_repeated", "warning", "Copy")]

    @pytest.mark.parametrize("place", ["right", "below"])
    @pytest.mark.parametrize("other", [sums(DATA), TARGETS], ids=["sums", "targets"])
    def test_is_found_beside_and_below_the_records(self, place, other, tmp_path):
        rows = [list(row) for row in DATA]
        if place == "right":
            for row, more in zip(rows, other, strict=False):
                row += [None, *more]
        else:
            rows += [[], [], *other]
        assert len(job(tmp_path, rows).rows()) == 13

    def test_parts_beside_the_whole_are_left_out(self, tmp_path):
        parts = {r: [HEAD, *(row for row in DATA if row[1] == r)] for r in ("North", "South", "East")}
        done = job(tmp_path, {**parts, "All": DATA})
        assert used(done) == {"North": 0, "South": 0, "East": 0, "All": 12}
        assert [code for code, *_ in told(done)] == ["table_repeated"] * 3

    def test_a_whole_with_fewer_columns_than_its_parts_is_left_out(self, tmp_path):
        parts = {r: [HEAD, *(row for row in DATA if row[1] == r)] for r in ("North", "South", "East")}
        done = job(tmp_path, {"All": [row[:1] + row[2:] for row in DATA], **parts})
        assert used(done) == {"All": 0, "North": 4, "South": 4, "East": 4}

    def test_a_short_example_is_left_out(self, tmp_path):
        done = job(tmp_path, {"Example": orders(1, 2), "Data": DATA})
        assert used(done) == {"Example": 0, "Data": 12}
        assert told(done) == [("table_assumed", "warning", "Example")]

    def test_a_year_of_month_sheets_is_left_out(self, tmp_path):
        months = {m: orders(n * 100, 6 + n) for n, m in enumerate(("Jan", "Feb", "Mar"), 1)}
        year = [["rep", "amount"], *([m, sum(row[4] for row in rows[1:])] for m, rows in months.items())]
        done = job(tmp_path, {"Year": year, **months})
        assert used(done)["Year"] == 0
        assert len(done.rows()) == 1 + 7 + 8 + 9

    def test_a_copy_of_a_unique_field_needs_no_warning(self, tmp_path):
        fields = [{**FIELDS[0], "unique": True}, *FIELDS[1:]]
        done = job(tmp_path, {"Data": DATA, "Open": DATA[:4]}, fields=fields)
        assert told(done) == [("table_repeated", "info", "Open")]
        assert "duplicate" not in {f["code"] for f in done.findings}

    def test_the_message_names_the_line_that_settles_it(self, tmp_path):
        (found,) = [f for f in job(tmp_path, {"Data": DATA, "Plan": TARGETS}).findings if f["code"] == "table_assumed"]
        assert "2 of the 5 fields of in.xlsx/Data!A1:E13" in found["message"]
        assert '"reading": {"tables": ["Data"]}, with "Plan" too' in found["message"]

    def test_its_rows_are_in_the_books(self, tmp_path):
        sheet = job(tmp_path, {"Data": DATA, "Plan": TARGETS}).artifact["sheets"][1]
        assert sheet["tables"][0]["left_out"] == {"skipped_table": 3}
        assert "2 of the 5 fields" in sheet["tables"][0]["skipped"]

    def test_no_required_field_is_missed_in_it(self, tmp_path):
        fields = [{**FIELDS[0], "required": True}, *FIELDS[1:]]
        done = job(tmp_path, {"Data": DATA, "Lists": LISTS}, fields=fields)
        assert [f["code"] for f in done.findings] == ["table_derived"]


class TestRecords:
    @pytest.mark.parametrize(
        "sheets",
        [
            pytest.param({m: orders(n * 100) for n, m in enumerate(("Jan", "Feb", "Mar"))}, id="months"),
            pytest.param({"North": DATA, "South": [row[:3] + row[4:] for row in orders(50)]}, id="a column fewer"),
            pytest.param({"North": DATA, "South": [row[1:] for row in orders(50, 12)]}, id="without the key"),
            pytest.param({"Data": DATA, "Late": orders(50, 2)}, id="a few more"),
            pytest.param({"Old": DATA, "New": [[h.upper() for h in HEAD], *orders(50)[1:]]}, id="other spellings"),
            pytest.param({"Data": DATA, "Turned": [row[::-1] for row in orders(50)]}, id="another order"),
            pytest.param({"Example": orders(1, 3)}, id="the only sheet is called example"),
        ],
    )
    def test_are_used_without_a_warning(self, sheets, tmp_path):
        done = job(tmp_path, sheets)
        assert used(done) == {name: len(rows) - 1 for name, rows in sheets.items()}
        assert [f for f in done.findings if f["severity"] != "info"] == []

    @pytest.mark.parametrize("names", [("Jan", "Feb"), ("Pay 2024-01", "Pay 2024-02"), ("KW 1", "KW 2"), ("3", "4")])
    def test_may_be_the_same_every_month(self, names, tmp_path):
        pay = [["id", "name", "pay"], *([n, f"Name {n}", 2000.5 + n] for n in range(8))]
        done = job(tmp_path, dict.fromkeys(names, pay), fields=[{"name": name} for name in pay[0]])
        assert len(done.rows()) == 17
        assert done.findings == []

    def test_of_few_kinds_may_be_equal_by_chance_and_are_used(self, tmp_path):
        rows = [["size", "colour"], *([s, c] for s in "SML" for c in ("red", "blue"))]
        done = job(tmp_path, {"A": rows * 1, "B": rows[:3]}, fields=[{"name": "size"}, {"name": "colour"}])
        assert len(done.rows()) == 9

    def test_that_differ_in_one_number_are_used_and_reported(self, tmp_path):
        done = job(tmp_path, {"Actual": DATA, "Plan": PLAN})
        assert used(done) == {"Actual": 12, "Plan": 12}
        assert told(done) == [("table_assumed", "warning", "Plan")]
        (found,) = [f for f in done.findings if f["code"] == "table_assumed"]
        assert "but for amount, and no column tells which is which" in found["message"]

    @pytest.mark.parametrize(
        "sheets",
        [
            pytest.param({"2024": DATA, "2025": PLAN}, id="years"),
            pytest.param({"Pay May": DATA, "Pay June": PLAN}, id="months"),
            pytest.param(
                {"A": DATA, "B": [HEAD, *([*r[:2], "Cleo", *r[3:]] for r in PLAN[1:])]}, id="a column tells them apart"
            ),
            pytest.param(
                {t: [["part", "amount"], *([f"P {n}", n * k * 7 % 31] for n in range(8))] for k, t in ((1, "Brno"), (5, "Cork"))},
                id="nothing but a key and a number",
            ),
            pytest.param(
                {f"Shop {'abcd'[k]}": [HEAD, *([*r[:4], r[4] + n * (k + 2) % 7 + k] for n, r in enumerate(DATA[1:]))] for k in range(4)},
                id="many branches",
            ),
        ],
    )  # fmt: skip
    def test_of_other_years_or_places_are_used_without_a_warning(self, sheets, tmp_path):
        fields = [*FIELDS, {"name": "part", "optional": True}]
        done = job(tmp_path, sheets, fields=fields)
        assert used(done) == {name: len(rows) - 1 for name, rows in sheets.items()}
        assert told(done) == []

    def test_in_two_parts_are_used_and_reported(self, tmp_path):
        done = job(tmp_path, {"Orders": [r[:3] for r in DATA], "Amounts": [[r[0], *r[3:]] for r in DATA]})
        assert used(done) == {"Orders": 12, "Amounts": 12}
        assert told(done) == [("table_assumed", "warning", "Orders"), ("table_assumed", "warning", "Amounts")]

    def test_that_overlap_are_used_and_reported(self, tmp_path):
        done = job(tmp_path, {"A": DATA[:10], "B": [HEAD, *DATA[5:]]})
        assert used(done) == {"A": 9, "B": 8}
        assert told(done) == [("table_repeated", "warning", "B")]

    def test_with_half_of_the_fields_are_used_and_reported(self, tmp_path):
        fields, rows = FIELDS[:4], [row[:4] for row in DATA]
        done = job(tmp_path, {"Data": rows, "More": [row[:2] for row in orders(50)]}, fields=fields)
        assert used(done) == {"Data": 12, "More": 12}
        assert told(done) == [("table_assumed", "warning", "More")]

    def test_with_fields_that_no_other_table_has_are_used(self, tmp_path):
        people = [["name", "email", "phone"], *([f"N {n}", f"a{n}@example.com", f"+49 30 12345{n}"] for n in range(4))]
        fields = [*FIELDS, {"name": "name"}, {"name": "email", "type": "email"}, {"name": "phone", "type": "phone"}]
        assert used(job(tmp_path, {"Data": DATA, "People": people}, fields=fields)) == {"Data": 12, "People": 4}

    def test_that_most_of_the_file_is_about_are_used(self, tmp_path):
        done = job(tmp_path, {"Form": orders(1, 2), "Data": [[row[1], row[4]] for row in orders(50, 30)]})
        assert used(done) == {"Form": 2, "Data": 30}
        assert told(done) == [("table_assumed", "warning", "Data")]

    def test_of_another_file_are_used(self, tmp_path):
        files = {"a.xlsx": DATA, "b.xlsx": TARGETS}
        done = run_job(tmp_path, fields=FIELDS, files=files, inputs={"per": "drop"})
        assert len(done.rows()) == 16
        assert [f["code"] for f in done.findings if f["severity"] != "info"] == ["table_assumed"]


class TestSettled:
    @pytest.mark.parametrize(
        ("tables", "rows"),
        [
            (["*"], 15), (["Data"], 12), (["D*"], 12), (["Plan!A1"], 3), (["Plan!A2:B3", "Data"], 15), (["Plan!F1:G9"], 0),
            (["in.xlsx/Data"], 12),
        ],
    )  # fmt: skip
    def test_the_manifest_names_the_tables(self, tables, rows, tmp_path):
        done = job(tmp_path, {"Data": DATA, "Plan": TARGETS}, reading={"tables": tables})
        assert done.artifact["output"]["rows"] == rows
        assert not {"table_assumed", "table_derived"} & {f["code"] for f in done.findings}

    def test_a_name_of_no_table_is_reported(self, tmp_path):
        done = job(tmp_path, {"Data": DATA, "Plan": TARGETS}, reading={"tables": ["Data", "Plan!F1:G9"]})
        assert [(f["code"], f["severity"]) for f in done.findings] == [
            ("table_skipped", "info"),
            ("no_table", "warning"),
        ]

    def test_a_sheet_that_the_manifest_names_is_used(self, tmp_path):
        done = job(tmp_path, {"Data": DATA, "Plan": TARGETS}, reading={"sheets": ["Data", "Plan"]})
        assert used(done) == {"Data": 12, "Plan": 3}
        assert told(done) == []

    def test_names_have_to_be_texts(self):
        with pytest.raises(ManifestInvalid):
            parse_manifest(b'{"manifest": 1, "name": "a", "fields": [{"name": "b"}], "reading": {"tables": "Data"}}')

    def test_a_review_asks(self, tmp_path):
        sheets = {"Data": DATA, "Plan": TARGETS}
        asked = job(tmp_path / "asks", sheets, mapping={"review": "unsure"}).questions
        (question,) = [q for q in asked if q["kind"] == "table"]
        assert (question["sheet"], question["chosen"]) == ("Plan", "skip")
        assert [c["value"] for c in question["candidates"]] == ["skip", "use"]
        for value, rows in (("use", 3), ("skip", 0)):
            answers = {"answers": [{"id": question["id"], "value": value}]}
            done = job(tmp_path / value, sheets, mapping={"review": "unsure"}, decision=answers)
            assert used(done) == {"Data": 12, "Plan": rows}
            assert "decision_unused" not in {f["code"] for f in done.findings}

    def test_a_person_who_keeps_a_sheet_is_heard(self, tmp_path):
        answers = {"answers": [{"sheet": "Plan", "skip": False}]}
        assert used(job(tmp_path, {"Data": DATA, "Plan": TARGETS}, decision=answers)) == {"Data": 12, "Plan": 3}

    def test_no_sheet_of_that_name_says_which_there_are(self, tmp_path):
        done = job(tmp_path, {"Data": DATA, "Plan": TARGETS}, reading={"sheets": ["Orders"]})
        assert done.error["code"] == "empty_input"
        assert "no sheet matches reading.sheets; its sheets are “Data”, “Plan”" in done.error["message"]


def test_a_hook_that_skips_a_table_does_not_speak_for_others(tmp_path):
    source = "def after_structure(*, tables):\n    return {'skip': [t['id'] for t in tables if t['sheet'] == 'B']}\n"
    answers = {"answers": [{"sheet": "C", "skip": True}]}
    sheets = {"A": DATA, "B": orders(50), "C": orders(90)}
    done = job(tmp_path, sheets, rules={"hooks/skip.py": source}, decision=answers)
    found = [(f["sheet"], f["message"]) for f in done.findings if f["code"] == "table_skipped"]
    assert found == [("C", "its sheet is left out: it was decided for this drop"), ("B", "a hook skipped this table")]


BLOCK = [["Item", "Jan", "Feb"], ["bolt", 10, 21], ["nut", 42, 53], ["screw", 77, 81], ["washer", 95, 64], [None]]
AROUND = {
    "captions": ({"reading": {"captions": {"to": "region"}}}, [["North"], *BLOCK, ["South"], *BLOCK]),
    "labels": ({}, [["Region:", "North"], *BLOCK, ["Region:", "South"], *BLOCK]),
}


@pytest.mark.parametrize("way", AROUND)
def test_equal_rows_of_two_regions_are_no_copies(tmp_path, way):
    manifest, rows = AROUND[way]
    source = {"from": {"label": "Region"}} if way == "labels" else {}
    fields = [{"name": "region", **source}, {"name": "item"}, {"name": "jan", "type": "integer"}]
    outcome = run_job(tmp_path, rows, fields=fields, **manifest)
    assert outcome.column("region") == ["North"] * 4 + ["South"] * 4
    assert outcome.cells("table_repeated") == []


def test_equal_rows_of_one_region_are_a_copy(tmp_path):
    fields = [{"name": "region"}, {"name": "item"}, {"name": "jan", "type": "integer"}]
    rows = [["North"], *BLOCK, ["South"], *BLOCK, ["South"], *BLOCK]
    outcome = run_job(tmp_path, rows, fields=fields, reading={"captions": {"to": "region"}})
    assert outcome.column("region") == ["North"] * 4 + ["South"] * 4
