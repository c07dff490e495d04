"""Which column is given to which field: a header that is a field's name always wins, leftovers are given to nobody."""

import random
import re
from datetime import date

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from runner.engine.common.fields import Field
from runner.engine.mapping.evidence import PER_POINT, Contribution, Weigher
from runner.engine.mapping.matcher import model, weighed
from runner.engine.mapping.score import IN_FULL, IN_SHORT, THRESHOLD, ColumnIn, Sample, choose
from runner.engine.memory.recall import Recall
from tests.support.effort import examples
from tests.support.engine_jobs import run_job
from tools.made_tables import cases

WORDS = ("agent", "attorney", "name", "city", "firm", "date", "start", "end", "amount", "email", "id", "2", "plan")
VALUES = {
    "text": ["ada", "bob", "cy", "dee"],
    "email": ["a@a.de", "b@b.de", "c@c.de", "d@d.de"],
    "number": [1, 2.5, 3, 4],
    "date": [date(2026, 1, n) for n in range(1, 5)],
    "blank": [None, None, None, None],
}
phrases = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
spellings = st.sampled_from([str, str.upper, str.title, lambda s: s.replace(" ", "_"), lambda s: f" {s} "])
values = st.sampled_from(sorted(VALUES))
types = st.sampled_from(["text", "email", "date", "integer", "money", "boolean"])


def bare(text):
    """The oracle's own idea of one spelling."""
    return re.sub("[^a-z0-9]", "", text.lower())


def chosen(headers, fields, samples=None, **more):
    samples = samples or [VALUES["text"]] * len(headers)
    columns = [ColumnIn(n, (h,), Sample(s), chr(65 + n)) for n, (h, s) in enumerate(zip(headers, samples, strict=True))]
    declared = [Field(f if isinstance(f, dict) else {"name": f}) for f in fields]
    options = {"threshold": THRESHOLD, "detected": {}, "allowed": lambda _: None} | more
    return choose(columns, declared, **options)


def mapped(headers, fields, samples=None, **more):
    return {headers[c.position]: c.field for c in chosen(headers, fields, samples, **more)}


def test_a_header_that_is_a_field_is_not_traded_for_a_greater_total():
    fields = ["agent_attorney_firm_name", "agent_attorney_name"]
    headers = ["AGENT_ATTORNEY_NAME", "AGENT_ATTORNEY_CITY"]
    assert mapped(headers, fields) == {"AGENT_ATTORNEY_NAME": "agent_attorney_name", "AGENT_ATTORNEY_CITY": None}


@given(st.data())
def test_a_column_with_the_name_of_a_field_gets_that_field(data):
    fields = data.draw(st.lists(phrases, min_size=1, max_size=6, unique_by=bare), label="fields")
    wanted = data.draw(st.sampled_from(fields), label="wanted")
    others = data.draw(st.lists(phrases.filter(lambda h: bare(h) != bare(wanted)), max_size=6), label="others")
    headers = data.draw(st.permutations([data.draw(spellings)(wanted), *others]), label="headers")
    specs = [{"name": f.replace(" ", "_"), "type": data.draw(types)} for f in fields]
    samples = [VALUES[data.draw(values)] for _ in headers]
    found = [c.field for c in chosen(headers, specs, samples) if bare(headers[c.position]) == bare(wanted)]
    assert found == [wanted.replace(" ", "_")]


@given(st.data())
def test_the_order_of_columns_and_fields_does_not_matter_but_for_ties(data):
    fields = data.draw(st.lists(phrases, min_size=1, max_size=5, unique_by=sorted_words), label="fields")
    columns = data.draw(
        st.lists(st.tuples(phrases, values), min_size=1, max_size=6, unique_by=lambda c: sorted_words(c[0])),
        label="columns",
    )
    specs = [{"name": f.replace(" ", "_"), "type": data.draw(types)} for f in fields]
    other_columns = data.draw(st.permutations(columns), label="columns again")
    other_specs = data.draw(st.permutations(specs), label="fields again")

    def run(columns, specs):
        headers = [h for h, _ in columns]
        found = chosen(headers, specs, [VALUES[v] for _, v in columns])
        assume(not any(c.note and c.note.startswith("tie") for c in found))
        return {headers[c.position]: c.field for c in found}

    assert run(columns, specs) == run(other_columns, other_specs)


def sorted_words(text):
    return tuple(sorted(set(text.split())))


@given(st.lists(phrases, min_size=1, max_size=5, unique_by=bare), st.lists(phrases, max_size=6))
def test_a_column_is_never_given_to_a_field_with_which_it_shares_no_word(fields, headers):
    for column in chosen(headers, [f.replace(" ", "_") for f in fields]):
        if column.field is not None:
            assert set(headers[column.position].split()) & set(column.field.split("_"))


@pytest.mark.parametrize(
    ("headers", "fields", "expected"),
    [
        (["Name", "Agent name"], ["name", "firm_name"], ["name", None]),
        (["Email", "Manager email"], ["email", "second_email"], ["email", None]),
        (["Start date", "Certification date"], ["start_date", "end_date"], ["start_date", None]),
        (["Address 1", "Address 2"], ["address_1", "address_line_2"], ["address_1", "address_line_2"]),
        (["Address2"], ["address1"], [None]),
        (["Sales 2024"], ["sales_2025"], [None]),
    ],
)
def test_a_column_gets_no_field_only_because_its_own_went_to_another(headers, fields, expected):
    assert list(mapped(headers, fields).values()) == expected


def test_values_that_fit_two_fields_alike_choose_neither_of_them():
    fields = [{"name": "mail", "type": "email"}, {"name": "second", "type": "email"}]
    samples = [VALUES["email"], VALUES["email"]]
    assert mapped(["Mail", "Column X"], fields, samples) == {"Mail": "mail", "Column X": None}


def test_a_header_that_names_two_fields_is_given_to_neither_and_reported():
    (choice,) = chosen(["Firm plan"], ["firm", "plan"])
    assert choice.field is None


def test_a_header_that_names_two_fields_and_means_one_of_them_is_that_one():
    assert mapped(["Street number"], ["street", "number"]) == {"Street number": "number"}


def test_a_name_goes_before_a_label_and_a_label_before_a_synonym():
    fields = [{"name": "a", "synonyms": ["plan"]}, {"name": "b", "label": "Plan"}, {"name": "plan"}]
    assert mapped(["PLAN"], fields) == {"PLAN": "plan"}
    assert mapped(["PLAN"], fields[:2]) == {"PLAN": "b"}


def test_columns_that_are_named_after_several_fields_serve_as_many_as_possible():
    fields = [{"name": "x", "synonyms": ["number", "no of x"]}, {"name": "y", "synonyms": ["number"]}]
    assert mapped(["Number", "No of x"], fields) == {"Number": "y", "No of x": "x"}


def test_two_spellings_of_one_name_meet_their_own():
    assert mapped(["a_b", "a b"], ["a b", "a_b"]) == {"a_b": "a_b", "a b": "a b"}


def test_a_rule_that_gives_a_point_says_as_much_as_the_name():
    said = {1: {"plan": [type("C", (), {"delta": 2.0, "rule": "columns.plan.detect"})()]}}
    assert mapped(["plan", "other"], ["plan"], detected=said) == {"plan": None, "other": "plan"}


def test_a_rule_that_speaks_against_a_name_counts():
    said = {0: {"plan": [type("C", (), {"delta": -1.0, "rule": "columns.plan.detect"})()]}}
    assert mapped(["plan"], ["plan"], detected=said) == {"plan": None}


def test_of_two_columns_with_the_name_the_first_with_values_is_taken_and_the_other_reported(tmp_path):
    rows = [["plan", "n", "Plan", "PLAN"], [None, 1, "a", "x"], [None, 2, "b", "y"], [None, 3, "c", "z"]]
    done = run_job(tmp_path, rows, fields=[{"name": "plan"}])
    assert done.column("plan") == ["a", "b", "c"]
    assert done.cells("duplicate_header") == ["A1", "D1"]


def test_values_that_contradict_a_name_do_not_take_its_field_away_but_are_reported(tmp_path):
    rows = [["amount", "n"], ["a@a.de", 1], ["b@b.de", 2], ["c@c.de", 3]]
    done = run_job(tmp_path, rows, fields=[{"name": "amount", "type": "money"}, {"name": "n", "type": "integer"}])
    assert done.mapped() == {"amount": "amount", "n": "n"}
    assert done.cells("mapping_doubtful") == ["A1"]
    (reading,) = [r for r in done.artifact["readings"] if r["kind"] == "mapping"]
    assert (reading["field"], reading["sure"]) == ("amount", False)


def test_columns_that_fit_a_field_equally_well_are_reported(tmp_path):
    rows = [["Amount (USD)", "Amount (EUR)"], [1, 2], [3, 4], [5, 6]]
    done = run_job(tmp_path, rows, fields=[{"name": "amount", "type": "money"}])
    assert done.mapped() == {"Amount (USD)": "amount", "Amount (EUR)": None}
    assert done.cells("mapping_doubtful") == ["A1"]


def test_a_plain_table_has_nothing_to_report(tmp_path):
    rows = [["Member ID", "Start date", "E-Mail"], *([f"M{n}", f"2026-01-{n:02}", f"m{n}@a.de"] for n in range(10, 20))]
    fields = [{"name": "member_id"}, {"name": "start_date", "type": "date"}, {"name": "email", "type": "email"}]
    assert run_job(tmp_path, rows, fields=fields).findings == []


@pytest.mark.parametrize(
    ("header", "field", "told"),
    [
        ("Membr ID", "member_id", False),
        ("Plan code", "plan", False),
        ("E-mail address", "email", False),
        ("Worksite location city", "worksite_city", True),
        ("Home phone", "phone", False),
    ],
)
def test_a_column_whose_header_has_other_words_is_taken_and_reported(header, field, told):
    fields = [{"name": field, "type": "phone"}] if field == "phone" else [field]
    samples = {"phone": [["+49 30 123456", "+49 30 123457", "+49 30 123458"]], "email": [VALUES["email"]]}
    (choice,) = chosen([header], fields, samples.get(field))
    assert (choice.field, choice.doubt is not None) == (field, told)


def test_a_column_that_only_its_values_speak_for_is_taken_and_reported():
    (choice,) = chosen(["Column X"], [{"name": "contact", "type": "email"}], [VALUES["email"]])
    assert (choice.field, choice.doubt.code) == ("contact", "mapping_doubtful")


def test_words_that_many_fields_have_do_not_tell_which_one_it_is():
    stem = ["agent_attorney_name", "agent_attorney_firm_name", "agent_attorney_street", "agent_attorney_firm_city"]
    headers = ["AGENT_ATTORNEY_NAME", "AGENT_ATTORNEY_CITY"]
    assert mapped(headers, stem)["AGENT_ATTORNEY_CITY"] is None
    assert mapped(["Phone"], ["home_phone", "work_phone"]) == {"Phone": None}


def test_of_two_likely_columns_that_fit_equally_well_none_is_taken_and_both_are_reported():
    found = chosen(["Phone 1", "Phone 2"], ["phone"], [["555-0123", "555-0124", "555-0125"]] * 2)
    assert [(c.field, c.doubt.code) for c in found] == [(None, "mapping_doubtful")] * 2


def recalled(*entries):
    return Recall([{"header": h, "field": f} | more for h, f, *rest in entries for more in (rest or [{}])])


def test_a_confirmed_header_is_its_field():
    known = recalled(("XQ17", "plan"))
    assert mapped(["xq_17"], ["plan", "city"], recall=known) == {"xq_17": "plan"}


def test_a_header_like_confirmed_ones_is_their_field():
    known = recalled(*((f"velkrano{n}", "plan", {"count": 5}) for n in ("A", "B", "C")))
    (choice,) = chosen(["VELKRANO"], ["plan", "city"], recall=known)
    assert choice.runners_up[0][:2] == ("plan", choice.probability) or choice.field == "plan"
    assert choice.probability > chosen(["VELKRANO"], ["plan", "city"])[0].probability


def test_the_newest_word_of_a_person_beats_what_was_counted():
    known = recalled(("XQ17", "plan", {"count": 900}), ("XQ17", "city", {"said_at": "2026-01-31T00:00:00Z"}))
    assert mapped(["XQ17"], ["plan", "city"], recall=known) == {"XQ17": "city"}


def test_counts_alone_do_not_make_a_programs_own_number_an_identifier():
    known = recalled(("OBJECTID", "id", {"count": 50}))
    ids = [[1, 2, 3, 4, 5, 6]]
    assert mapped(["OBJECTID"], [{"name": "id", "label": "Identifier"}], ids, recall=known) == {"OBJECTID": None}
    said = recalled(("OBJECTID", "id", {"said_at": "2026-01-31T00:00:00Z"}))
    assert mapped(["OBJECTID"], [{"name": "id", "label": "Identifier"}], ids, recall=said) == {"OBJECTID": "id"}


def test_a_pair_has_the_sum_of_what_it_is_said_to_be_made_of():
    compared = 0
    for case in cases(11, 30):
        rules = {0: {case.fields[0].name: [Contribution("a rule", 0.25)]}}
        weigher = Weigher(case.columns, case.fields, lambda _: None, Recall(case.entries), rules)
        for at, totals in weigher.totals().items():
            for n, total in totals.items():
                one = weigher.evidence(at, n)
                assert total == pytest.approx(model().pair["prior"] + weighed(one.numbers) + PER_POINT * one.rules)
                compared += 1
    assert compared > 1000


def test_types_that_are_not_tried_change_nothing_that_is_reported(monkeypatch):
    dice, weigh_all = random.Random(5), Weigher.totals
    alone = 0
    for case in cases(5, examples(20)):
        names = dice.sample([field.name for field in case.fields], min(len(case.fields), len(case.columns)))
        named = [column._replace(headers=(name,)) for column, name in zip(case.columns, names, strict=False)]
        columns = [*named, *case.columns[len(named) :]]
        for shown in (IN_SHORT, IN_FULL):
            options = {"detected": {}, "allowed": lambda _: None, "shown": shown}
            found = choose(columns, case.fields, **options)
            with monkeypatch.context() as patched:
                patched.setattr(Weigher, "totals", lambda self, _: weigh_all(self))
                assert choose(columns, case.fields, **options) == found
            totals = Weigher(columns, case.fields, lambda _: None).totals(shown.least_likely)
            alone += sum(len(of_column) == 1 for of_column in totals.values())
    assert alone > 20


def test_slips_are_found_though_most_words_are_not_compared_letter_by_letter():
    assert mapped(["Adress"], ["address"]) == {"Adress": "address"}
    assert mapped(["Departmnet"], ["department"]) == {"Departmnet": "department"}


PHONES = ["555-0123", "555-0124", "555-0125", "555-0126"] * 3


@pytest.mark.parametrize(
    ("header", "field", "sample"),
    [
        ("Emergency phone", "phone", PHONES),
        ("Teacher Last Name", "last_name", ["Smith", "Brown", "Jones", "Miller"] * 3),
        ("Owner street", "street", ["Oak Street", "Main Street", "High Street", "Elm Road"] * 3),
        ("Spouse birth date", "birth_date", ["1990-01-02", "1985-03-04", "1977-05-06", "2001-07-08"] * 3),
        ("Notfall Telefon", "telefon", PHONES),
    ],
)
def test_a_header_that_names_somebodys_role_is_not_the_field_without_it(header, field, sample):
    (choice,) = chosen([header], [field], [sample])
    assert (choice.field, choice.runners_up[0][0]) == (None, field)
    role = header.split()[0].casefold()
    assert mapped([header], [f"{role}_{field}"], [sample]) == {header: f"{role}_{field}"}


def test_a_role_that_was_confirmed_is_no_reason_to_doubt():
    known = recalled(("Emergency phone", "phone", {"count": 3}))
    assert mapped(["Emergency phone"], ["phone"], [PHONES], recall=known) == {"Emergency phone": "phone"}


def test_the_last_part_of_a_stacked_header_below_somebodys_role_is_not_its_name():
    column = ColumnIn(0, ("Owner Street", "Street"), Sample(["Oak Street", "Main Street", "High Street"] * 3), "A")
    (choice,) = choose([column], [Field({"name": "street"})], detected={}, allowed=lambda _: None)
    assert choice.field is None


def test_yes_and_no_do_not_make_a_column_the_field_that_allows_them():
    field = {"name": "insured", "type": "enum", "allowed": ["y", "n"]}
    (choice,) = chosen(["Smoker"], [field], [["y", "n", "n", "y"] * 4], allowed=lambda _: frozenset({"y", "n"}))
    assert choice.field is None
    letters = {"name": "sex", "type": "enum", "allowed": ["m", "f"]}
    (choice,) = chosen(["Smoker"], [letters], [["m", "f", "f", "m"] * 4], allowed=lambda _: frozenset({"m", "f"}))
    assert choice.field is None
