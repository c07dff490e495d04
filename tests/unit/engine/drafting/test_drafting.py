"""What a draft says about samples: types, rules that later files keep, evidence, and no value of a person."""

import csv
import datetime as dt
import hashlib
import json
import random

import pytest

from core.manifests import parse_manifest
from runner.engine.contract import DraftRequest, InputFile, Order
from runner.engine.drafting import draft
from runner.engine.drafting.draft import field_name
from runner.engine.drafting.written_shapes import formats_of, pattern_of
from runner.engine.protocol import EngineStop
from tests.support.engine_jobs import run_order, workbook

RNG = random.Random(7)
FIRST, LAST = ("Ann", "Peter", "Maria", "John"), ("Smith", "Garcia", "Brown", "Rossi")


def drafted(folder, files, fields=(), hashed=False, **request):
    """The draft of files: rows of a CSV by name, or of sheets of a workbook."""
    for name, body in files.items():
        if isinstance(body, dict):
            workbook(folder / name, body)
            continue
        with (folder / name).open("w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows(body)
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() if hashed else "" for name in files}
    inputs = tuple(InputFile(role="primary", name=n, path=folder / n, sha256=digests[n]) for n in files)
    asked = DraftRequest(**request)
    order = Order(
        manifest={"fields": list(fields)}, inputs=inputs, outputs={"draft.json": folder / "draft.json"}, draft=asked
    )
    again = Order.decode(json.loads(json.dumps(order.encode())))
    draft(again, again.draft)
    return json.loads((folder / "draft.json").read_bytes())


def few(n, most):
    """One of a few numbers, some more often than others."""
    return (n * n % 11 + n // 5) % 7 % most


def specs(document):
    return {one["spec"]["name"]: one["spec"] for one in document["fields"]}


def column(header, values):
    return [[header], *([value] for value in values)]


def table(rows=40, **columns):
    """Rows with a header: each column from a function of the row's number."""
    return [list(columns), *([make(n) for make in columns.values()] for n in range(rows))]


def one_field(folder, header, values, samples=1):
    """The field that a column becomes, beside a column of words, so that there is a table."""
    body = [[header, "remark"], *([value, f"word{n}"] for n, value in enumerate(values))]
    return next(iter(specs(drafted(folder, {f"{n}.csv": body for n in range(samples)})).values()))


TYPES = {
    "whole numbers": ("Stock", [str(n * 3) for n in range(40)], "integer"),
    "numbers": ("Height", [f"{n}.5" for n in range(40)], "decimal"),
    "money by its header": ("Betrag", [f"{n},50" for n in range(40)], "money"),
    "money by its sign": ("X", [f"{n}.50 €" for n in range(40)], "money"),
    "percent": ("Share", [f"{n} %" for n in range(40)], "percent"),
    "dates": ("When", [f"{n % 28 + 1:02}.11.2025" for n in range(40)], "date"),
    "dates with a time": ("When", [f"2025-11-{n % 28 + 1:02} 10:{n:02}" for n in range(40)], "datetime"),
    "times": ("Begin", [f"{n % 24:02}:30" for n in range(40)], "time"),
    "yes and no": ("Paid", ["yes", "no"] * 20, "boolean"),
    "0 and 1 under a flag's name": ("Is active", ["0", "1"] * 20, "boolean"),
    "0 and 1 under another": ("Level", ["0", "1"] * 20, "integer"),
    "addresses": ("Contact", [f"a{n}@example.com" for n in range(40)], "email"),
    "web": ("Link", [f"https://example.com/{n}" for n in range(40)], "url"),
    "phones": ("Tel", [f"+49 30 12345{n:02}" for n in range(40)], "phone"),
    "leading zeros": ("Amount", [f"{n:05}" for n in range(40)], "text"),
    "a zero that only the last row shows": ("Amount", [*(str(n + 100) for n in range(300)), "007"], "text"),
    "digits that a number would lose": ("Amount", [f"{10**17 + n}" for n in range(40)], "text"),
    "a postcode": ("PLZ", [str(10115 + n) for n in range(40)], "text"),
    "a number of a document": ("Rechnungsnr.", [str(100200 + n) for n in range(40)], "text"),
    "a word that only the last row shows": ("Stock", [*map(str, range(40)), "many"], "text"),
    "nothing but n/a beside numbers": ("Stock", [*map(str, range(40)), "n/a", "-"], "integer"),
}


@pytest.mark.parametrize("what", TYPES)
def test_types(what, tmp_path):
    header, values, kind = TYPES[what]
    assert one_field(tmp_path, header, values)["type"] == kind


def test_native_cells_are_typed_too(tmp_path):
    rows = [
        ["Day", "Sum", "Ok", "Note"],
        *([dt.datetime(2026, 1, 1 + n % 28), n + 0.5, n % 2 == 0, f"w{n}"] for n in range(30)),
    ]
    found = specs(drafted(tmp_path, {"a.xlsx": {"Sheet1": rows}}))
    assert {name: spec["type"] for name, spec in found.items()} == {
        "day": "date",
        "sum": "money",
        "ok": "boolean",
        "note": "text",
    }
    assert "formats" not in found["day"]


def test_a_few_slips_make_a_warning_and_a_question(tmp_path):
    values = [*map(str, range(200)), "abc", "def"]
    document = drafted(tmp_path, {"a.csv": [["Stock", "remark"], *([v, f"w{n}"] for n, v in enumerate(values))]})
    spec = specs(document)["stock"]
    assert (spec["type"], spec["severity"]) == ("integer", "warning")
    assert "all but 2 whole numbers" in document["fields"][0]["evidence"]
    assert [q["kind"] for q in document["questions"] if q["field"] == "stock"] == ["type"]


def test_columns_of_other_headers_are_one_field_with_synonyms(tmp_path):
    def rows(*headers):
        return [list(headers), *([f"M{n:06}", f"{n % 28 + 1:02}.01.2026", f"{n}.50"] for n in range(30))]

    document = drafted(
        tmp_path,
        {
            "en.csv": rows("Member #", "Start", "Pay"),
            "de.csv": rows("Mitgliedsnummer", "Beginn", "Gehalt"),
            "x.csv": rows("Member ID", "Start date", "Pay"),
        },
    )
    found = specs(document)
    assert list(found) == ["member_number", "start", "pay"]
    assert found["member_number"]["synonyms"] == ["Mitgliedsnummer", "Member ID"]
    assert found["member_number"]["pattern"] == "M[0-9]{6}"
    assert (found["member_number"]["unique"], found["member_number"]["required"]) == (True, True)
    assert found["start"]["formats"] == ["%d.%m.%Y"]
    assert document["fields"][0]["evidence"].startswith("3 samples, 90 values: ")


def test_a_column_that_one_sample_lacks_is_optional(tmp_path):
    both = table(25, id=lambda n: f"A{n:04}", extra=lambda n: f"word {n}")
    found = specs(drafted(tmp_path, {"a.csv": both, "b.csv": [[*row[:1], "z"] for row in both]}))
    assert found["extra"]["optional"] is True
    assert "required" not in found["extra"]


def test_allowed_values_need_saturation_over_samples(tmp_path):
    def rows(words):
        return [["Status", "remark"], *([words[few(n, len(words))], f"w{n}"] for n in range(40))]

    same = {f"{n}.csv": rows(["open", "closed", "paid"]) for n in range(3)}
    assert specs(drafted(tmp_path, same))["status"]["allowed"] == ["closed", "open", "paid"]
    later = {**same, "3.csv": rows(["open", "closed", "paid", "lost"])}
    document = drafted(tmp_path, later)
    assert "allowed" not in specs(document)["status"], "a value of one sample only: more may come"
    (question,) = [q for q in document["questions"] if q["field"] == "status"]
    assert (question["kind"], question["change"]["allowed"]) == ("allowed", ["closed", "lost", "open", "paid"])


@pytest.mark.parametrize(
    ("header", "make"),
    [
        ("Name", lambda n: f"{FIRST[few(n, 4)]} {LAST[few(n, 3)]}"),
        ("Contact", lambda n: f"{FIRST[few(n, 4)]} {LAST[few(n, 3)]}"),
        ("Betreuer", lambda n: LAST[few(n, 4)]),
        ("E-Mail", lambda n: f"a{few(n, 3)}@example.com"),
        ("Who", lambda n: f"a{few(n, 3)}@example.com"),
        ("Telefon", lambda n: f"030 123456{few(n, 3)}"),
        ("Straße", lambda n: f"Hauptstraße {few(n, 3)}"),
        ("Geburtsname", lambda n: LAST[few(n, 4)]),
        ("IBAN", lambda n: f"DE0210010010000682010{few(n, 3)}"),
    ],
)
def test_nothing_personal_is_in_a_draft(header, make, tmp_path):
    body = [[header, "remark"], *([make(n), f"w{n}"] for n in range(120))]
    document = drafted(tmp_path, {"a.csv": body, "b.csv": body, "c.csv": body})
    field = document["fields"][0]
    assert field["personal"]
    assert "allowed" not in field["spec"]
    values = {make(n) for n in range(120)}
    text = json.dumps([field["spec"], field["evidence"]], ensure_ascii=False)
    assert not [value for value in values if value in text]


def test_only_a_key_in_the_first_column_is_unique_and_only_over_several_samples(tmp_path):
    body = table(
        40,
        **{"Order ID": lambda n: f"A-{n:05}", "Customer number": lambda n: f"C-{n:05}", "Item": lambda n: f"i{n % 5}"},
    )
    document = drafted(tmp_path, {"a.csv": body, "b.csv": body})
    assert [name for name, spec in specs(document).items() if spec.get("unique")] == ["order_id"]
    assert [(q["kind"], q["field"]) for q in document["questions"] if q["kind"] == "unique"] == [
        ("unique", "customer_number")
    ]
    assert "unique" not in specs(drafted(tmp_path, {"a.csv": body}))["order_id"]
    assert "unique" not in specs(drafted(tmp_path, {"a.csv": body[:12], "b.csv": body[:12]}))["order_id"]


def test_an_open_order_of_day_and_month_is_a_question(tmp_path):
    body = [["Due date", "remark"], *([f"{n % 12 + 1:02}/{(n * 5) % 12 + 1:02}/2026", f"w{n}"] for n in range(40))]
    document = drafted(tmp_path, {"a.csv": body})
    assert not {"formats", "day_first"} & set(specs(document)["due_date"])
    (question,) = [q for q in document["questions"] if q["kind"] == "date_order"]
    assert question["change"] == {"day_first": True, "formats": ["%d/%m/%Y"]}
    assert question["refusal"] == {"day_first": False, "formats": ["%m/%d/%Y"]}


@pytest.mark.parametrize("value", ["Ann Lee {}", "Ann{}", "ann.lee{}"])
def test_no_word_of_a_person_is_in_a_pattern(tmp_path, value):
    field = one_field(tmp_path, "Employee", [value.format(n) for n in range(10, 90)], samples=2)
    assert "nn" not in json.dumps(field), field


def test_bounds_leave_room(tmp_path):
    spec = one_field(tmp_path, "Qty", [str(n + 1) for n in range(60)])
    assert (spec["min"], spec["max"]) == (0, 1000)
    spec = one_field(tmp_path, "Date", [f"2025-0{n % 9 + 1}-10" for n in range(60)])
    assert (spec["min"], spec["max"]) == ("2015-01-01", "2035-12-31")


def test_a_second_table_with_other_columns_is_left_out_and_noted(tmp_path):
    orders = table(30, order=lambda n: f"A{n}", qty=lambda n: n, price=lambda n: n + 0.5)
    sheets = {"Orders": orders, "Regions": [["code", "city"], ["N", "Oslo"], ["S", "Rome"], ["W", "Bonn"]]}
    document = drafted(tmp_path, {"a.xlsx": sheets})
    assert list(specs(document)) == ["order", "qty", "price"]
    assert any("Regions" in note for note in document["notes"])


def test_a_target_gives_names_and_order_and_samples_give_the_rest(tmp_path):
    target = [
        {"name": "amount", "label": "Amount", "type": "decimal"},
        {"name": "member", "label": "Member no"},
        {"name": "region"},
    ]
    body = [["Mitgliedsnummer", "Betrag", "Zusatz"], *([f"M{n:04}", f"{n},5", "x"] for n in range(30))]
    document = drafted(tmp_path, {"a.csv": body}, fields=target, known_only=True)
    found = specs(document)
    assert list(found) == ["amount", "member", "region"]
    assert (found["amount"]["type"], found["amount"]["synonyms"]) == ("decimal", ["Betrag"])
    assert found["region"] == {"name": "region", "optional": True}
    assert any("Zusatz" in note for note in document["notes"])


def test_a_contract_keeps_its_rules_and_samples_only_say_how_things_are_written(tmp_path):
    contract = [
        {"name": "day", "type": "date", "required": True, "min": "2020-01-01"},
        {"name": "qty", "type": "integer"},
    ]
    body = [["Day", "Qty"], *([f"{n % 28 + 1:02}.01.2026", str(n)] for n in range(40))]
    found = specs(drafted(tmp_path, {"a.csv": body}, fields=contract, known_only=True, rules=False))
    assert found["day"] == {
        "name": "day",
        "label": "Day",
        "formats": ["%d.%m.%Y"],
        "type": "date",
        "required": True,
        "min": "2020-01-01",
    }
    assert found["qty"] == {"name": "qty", "label": "Qty", "type": "integer"}


def test_a_person_may_say_that_two_headers_are_one_field(tmp_path):
    files = {
        "a.csv": table(30, Foo=lambda n: f"x{n}", Bar=lambda n: n),
        "b.csv": table(30, Quux=lambda n: f"x{n}", Bar=lambda n: n),
    }
    assert list(specs(drafted(tmp_path, files))) == ["foo", "bar", "quux"]
    found = specs(drafted(tmp_path, files, same={"Quux": "Foo"}))
    assert list(found) == ["foo", "bar"]
    assert found["foo"]["synonyms"] == ["Quux"]


def test_a_column_with_the_words_of_another_sample_s_field_is_asked_about(tmp_path):
    words = ("open", "paid", "late", "cancelled")
    files = {
        "a.csv": table(60, Status=lambda n: words[few(n, 4)], Level=lambda n: few(n, 4)),
        "b.csv": table(60, State=lambda n: words[few(n, 4)].upper(), Rank=lambda n: few(n, 4)),
        "c.csv": table(60, Province=lambda n: ("Lima", "Cusco", "Puno")[few(n, 3)], Rank=lambda n: few(n, 4)),
    }
    asked = [q for q in drafted(tmp_path, files)["questions"] if q["kind"] == "same_column"]
    assert [q["change"] for q in asked] == [{"same": {"State": "Status"}}]
    twice = {**files, "a.csv": [[*row, row[0]] for row in files["a.csv"]]}
    twice["a.csv"][0][-1] = "Former status"
    asked = [q for q in drafted(tmp_path, twice)["questions"] if q["kind"] == "same_column"]
    assert all("State" not in q["change"]["same"] for q in asked), "which of two fields it is cannot be told"


def test_every_draft_validates_and_reports_no_error_on_its_samples(tmp_path):
    body = table(
        60, **{"Member #": lambda n: f"M{n:04}", "名前": lambda n: f"山田{n}", "Ort": lambda n: ("Bonn", "Köln")[n % 2], "1. Wert": lambda n: n,
               "a" * 80: lambda n: f"{n} %", "Notes; etc.": lambda n: "n/a" if n % 3 else "two  words", "Flag": lambda n: "x" if n % 2 else ""}
    )  # fmt: skip
    document = drafted(tmp_path, {"in.csv": body})
    manifest = parse_manifest(
        json.dumps({"manifest": 1, "name": "m", "fields": [one["spec"] for one in document["fields"]]}).encode()
    )
    order = {
        "order": 1, "manifest": manifest.model_dump(mode="json"), "outputs": {n: n for n in ("normalized.xlsx", "artifact.json")},
        "inputs": [{"role": "primary", "name": "in.csv", "path": "in.csv", "size": 1, "sha256": "0" * 64}],
    }  # fmt: skip
    outcome = run_order(order, tmp_path)
    assert [f for f in outcome.findings if f["severity"] == "error"] == []
    assert set(outcome.mapped().values()) == {one["spec"]["name"] for one in document["fields"]}


def test_samples_without_a_table_end_with_a_reason(tmp_path):
    with pytest.raises(EngineStop, match="no table was found"):
        drafted(tmp_path, {"a.csv": []})


@pytest.mark.parametrize(
    ("texts", "pattern"),
    [
        ([f"INV-{n:04}" for n in range(20)], "INV-[0-9]{4}"),
        ([f"INV-{n + 1000}" for n in range(20)], "INV-[0-9]{4,}"),
        ([f"{a}{b}" for a in "ABCDE" for b in "XYZ"], "[A-Z]{2}"),
        ([f"{n}%" for n in range(20)] + ["empty"] * 6, "[0-9]+%|empty"),
        ([f"{n}%" for n in range(20)] + ["empty"], None),
        ([str(n) for n in range(200)], None),
        ([f"word{'x' * n}" for n in range(20)], None),
        ([f"Ann Lee {n}" for n in range(20)], None),
        (["A1", "B2"], None),
    ],
)
def test_patterns_are_for_codes_not_for_words(texts, pattern):
    counts = {text: texts.count(text) for text in texts}
    assert pattern_of(counts) == pattern


@pytest.mark.parametrize(
    ("texts", "kind", "formats"),
    [
        (["31.12.2025", "01.02.2026"], "date", ("%d.%m.%Y",)),
        (["12/31/2025", "01/02/2026"], "date", ("%m/%d/%Y",)),
        (["01/02/2026"], "date", ("%d/%m/%Y", "%m/%d/%Y")),
        (["2026-01-02 10:00", "2026-01-02 23:59"], "datetime", ("%Y-%m-%d %H:%M",)),
        (["10:00", "9:30 pm"], "time", ()),
    ],
)
def test_formats_fit_every_text(texts, kind, formats):
    assert formats_of(texts, kind).formats == formats


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("Member #", "member_number"),
        ("Straße / Nr.", "strasse_nr"),
        ("日付", "date"),
        ("2. Wert", "column_2_wert"),
        ("§§", "column_c"),
        ("MemberID", "member_id"),
    ],
)
def test_names_of_fields_are_the_words_of_their_headers(header, name):
    assert field_name(header, "C") == name


def test_a_list_that_each_item_repeats_is_no_list_of_allowed_values(tmp_path):
    """Each month under each account: the next file may have other months, however many accounts there are."""
    files = {f"{n}.csv": table(90, level=lambda i: ("low", "middle", "high")[i % 3]) for n in range(3)}
    found = drafted(tmp_path, files)
    assert "allowed" not in specs(found)["level"]
    assert [question["kind"] for question in found["questions"]] == ["allowed"]
    files["3.csv"] = table(90, level=lambda _: "")
    assert "allowed" not in specs(drafted(tmp_path, files))["level"]


def test_samples_that_write_dates_in_different_orders_are_told(tmp_path):
    day, month = ("%d/%m/%Y", "%m/%d/%Y")
    when = lambda n: dt.date(2026, n % 12 + 1, n % 27 + 2)  # noqa: E731
    files = {f"{n}.csv": table(day=lambda i, form=form: when(i).strftime(form)) for n, form in enumerate((day, month))}
    (field,) = drafted(tmp_path, files)["fields"]
    assert "formats" not in field["spec"]
    assert "some samples write the day first" in field["evidence"]


@pytest.mark.parametrize("header", ["Signed by", "Approved by", "Erfasst von", "Initials", "Buyer", "Case worker"])
def test_short_names_of_people_are_no_allowed_values(tmp_path, header):
    files = {f"{n}.csv": table(60, **{header: lambda i: ("jsmith", "mjones", "kbrown")[few(i, 3)]}) for n in range(3)}
    found = drafted(tmp_path, files)
    assert "allowed" not in found["fields"][0]["spec"]
    assert found["questions"] == []


def test_amounts_in_several_currencies_are_told(tmp_path):
    (field,) = drafted(tmp_path, {"a.csv": table(price=lambda n: f"{'$€£'[n % 3]}{n}.50")})["fields"]
    assert (field["spec"]["type"], "3 currencies" in field["evidence"]) == ("money", True)


def test_columns_beyond_the_most_fields_are_one_note(tmp_path):
    found = drafted(
        tmp_path, {"a.csv": [[f"c{n}" for n in range(510)], *([str(n) for n in range(510)] for _ in range(3))]}
    )
    beyond = [note for note in found["notes"] if "beyond" in note]
    assert beyond == ["a.csv: columns SG to SP: beyond 500 fields, left out"]


def test_a_copy_of_a_sample_proves_nothing_more(tmp_path):
    rows = table(id=lambda n: f"A{n:03}", plan=lambda n: "abc"[few(n, 3)])
    copied = drafted(tmp_path, {"a.csv": rows, "copy of a.csv": rows}, hashed=True)
    assert copied["samples"] == 1
    assert "copy of a.csv: has the same content as a.csv, so it counts once" in copied["notes"]
    alone = drafted(tmp_path, {"a.csv": rows}, hashed=True)
    assert copied["fields"] == alone["fields"]
    assert "unique" not in specs(copied)["id"]


def test_of_thousands_of_columns_the_first_are_used_and_the_rest_is_noted(tmp_path):
    rows = [[f"c{n}" for n in range(1003)], *([""] * 1000 + ["1", "2", "3"] for _ in range(2)), ["1", *[""] * 1002]]
    notes = drafted(tmp_path, {"a.csv": rows})["notes"]
    assert any(note.endswith("of 1,003 columns only the first 1,000 were used") for note in notes), notes


def test_notes_about_columns_name_the_sample(tmp_path):
    twice = {name: [["A", "A", ""], *([n, n, n] for n in range(5))] for name in ("x.csv", "y.csv")}
    assert drafted(tmp_path, twice)["notes"] == [
        f"{name}: column {what}, so it was left out"
        for name in twice
        for what in ("B has the same header as column A", "C has no header")
    ]


def test_a_sample_without_rows_proves_nothing_and_is_noted(tmp_path):
    files = {f"{n}.csv": table(90, status=lambda n: ("open", "paid", "late")[few(n, 3)], n=str) for n in range(2)}
    alone = drafted(tmp_path, files)
    assert "allowed" in specs(alone)["status"]
    with_blanks = drafted(tmp_path, {**files, "header.csv": [["status", "n"]], "blank.csv": []})
    assert with_blanks["fields"] == alone["fields"]
    assert with_blanks["samples"] == 2
    assert with_blanks["notes"] == [
        "blank.csv: no table was found, so it was not used",
        "header.csv: has a header and no rows, so it was not used",
    ]


def test_a_field_is_required_only_if_many_rows_have_no_blank(tmp_path):
    def found(rows):
        return specs(drafted(tmp_path, {"a.csv": table(rows, code=lambda n: f"A{n:04}", remark=lambda n: f"word{n}")}))

    assert ["required" in spec for spec in found(99).values()] == [True, False]
    assert ["required" in spec for spec in found(100).values()] == [True, True]


def test_letters_that_vary_under_a_header_that_says_nothing_are_a_question(tmp_path):
    codes = [f"{10 + n}{chr(65 + n % 26)}{chr(65 + n % 17)}" for n in range(60)]
    plain = drafted(tmp_path, {"a.csv": [["Order number", "n"], *zip(codes, range(60), strict=True)]})
    assert specs(plain)["order_number"]["pattern"] == "[0-9]{2,}[A-Z]{2}"
    odd = drafted(tmp_path, {"a.csv": [["Gro laid", "n"], *zip(codes, range(60), strict=True)]})
    assert "pattern" not in specs(odd)["gro_laid"]
    (question,) = [q for q in odd["questions"] if q["kind"] == "pattern"]
    assert question["change"] == {"pattern": "[0-9]{2,}[A-Z]{2}"}


def test_a_single_value_shows_no_type(tmp_path):
    rows = table(40, name=lambda n: f"word{n}", remark=lambda n: "https://example.com" if n == 7 else "")
    assert specs(drafted(tmp_path, {"a.csv": rows}))["remark"]["type"] == "text"
