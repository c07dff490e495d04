"""Which field is nearest where nothing is plain: rare words, abbreviations, allowed values, descriptions."""

import pytest

from runner.engine.common.fields import Field
from runner.engine.mapping.evidence import Weigher
from runner.engine.mapping.matcher import model, weighed
from runner.engine.mapping.score import IN_FULL, IN_SHORT, THRESHOLD, ColumnIn, Sample, choose
from runner.engine.values.convert import fold

CODES = ["k1", "k2", "k3", "k4", "k5"]
DATES = ["2026-01-05", "2026-01-12", "2026-02-02", "2026-02-09"]
CROWD = [f"{kind}_{what}" for kind in ("case", "sample", "slide", "file") for what in ("hue", "rank", "batch", "kit")]


def columns_of(headers, samples):
    return [ColumnIn(n, (h,), Sample(s), chr(65 + n)) for n, (h, s) in enumerate(zip(headers, samples, strict=True))]


def fields_of(specs):
    return [Field(f if isinstance(f, dict) else {"name": f}) for f in specs]


def allowed(field):
    return None if field.allowed is None else frozenset(map(fold, field.allowed))


def chosen(headers, specs, samples=None, **more):
    options = {"threshold": THRESHOLD, "detected": {}, "allowed": allowed, "shown": IN_FULL} | more
    return choose(columns_of(headers, samples or [CODES] * len(headers)), fields_of(specs), **options)


def nearest(header, specs, values=CODES):
    (choice,) = chosen([header], specs, [values])
    return choice.field or choice.runners_up[0].field


@pytest.mark.parametrize(
    ("header", "field", "rivals"),
    [
        ("Tumor laterality", "specimen_laterality", ["tumor_hue", "tumor_rank", "tumor_kit"]),
        ("Path stage batch", "pathologic_stage", ["clinical_stage", "ann_arbor_stage"]),
        ("Tumor stage pathological", "ajcc_pathologic_stage", ["ajcc_clinical_stage", "tumor_hue"]),
        ("Smkg frequency", "smoking_frequency", ["drinking_frequency", "visit_frequency"]),
        ("LVI", "lymphatic_vascular_invasion", ["lymphatic_spread", "vascular_spread"]),
        ("Body Mass Index", "bmi", ["mass_spectrum", "body_part_of_biopsy"]),
        ("Specimen diag", "specimen_diagnosis", ["specimen_kit", "specimen_hue"]),
    ],
)
def test_the_nearest_field_shares_the_rarest_words_however_they_are_written(header, field, rivals):
    assert nearest(header, [*CROWD, *rivals, field]) == field


def test_a_word_of_its_own_is_no_abbreviation_of_another():
    (choice,) = chosen(["Country"], ["cell_count", "loci_count", *CROWD])
    assert not [r for r in choice.runners_up if any(c.rule == "near" for c in r.contributors)]


def test_values_in_other_words_than_the_allowed_ones_speak_for_a_field():
    status = {"name": "tobacco_status", "type": "enum", "allowed": ["Lifelong Non-Smoker", "Current Reformed Smoker"]}
    grades = {"name": "tumor_grade", "type": "enum", "allowed": ["G1", "G2", "High Grade"]}
    values = ["Current reformed smoker within 15 years", "Lifelong non-smoker: less than 100 cigarettes"] * 3
    assert nearest("Habit", [*CROWD, grades, status], values) == "tobacco_status"
    (choice,) = chosen(["Tobacco habit"], [*CROWD, grades, status], [values])
    reasons = {c.rule for c in choice.runners_up[0].contributors}
    assert (choice.runners_up[0].field, "near" in reasons, "allowed" in reasons) == ("tobacco_status", True, False)


def test_what_is_merely_near_gets_no_field_and_less_than_even_odds():
    (choice,) = chosen(["Tumor laterality"], [*CROWD, "specimen_laterality"], threshold=0.5)
    assert (choice.field, choice.runners_up[0].field) == (None, "specimen_laterality")
    assert choice.probability < 0.5


@pytest.mark.parametrize(("header", "field"), [("Loc", "location"), ("Chk Date", "check_date"), ("Dept", "department")])
def test_a_header_whose_every_word_is_the_abbreviated_one_of_the_name_is_that_field(header, field):
    values = DATES if header.endswith("Date") else ["Main", "Depot", "Main", "North yard"]
    (choice,) = chosen([header], [field, "amount", "employee"], [values])
    assert choice.field == field


def test_a_last_name_below_a_heading_is_nearer_to_the_last_name_than_to_a_class():
    people = [["Lee", "Chan", "Diaz", "Egan"], ["Ann", "Bo", "Cy", "Di"]]
    last, first = chosen(["Student / Last", "Student / First"], ["class", "first_name", "last_name"], people)
    assert [c.field or c.runners_up[0].field for c in (last, first)] == ["last_name", "first_name"]


def test_a_field_that_only_its_values_would_allow_is_not_called_near():
    wages = ["21.00", "15.50", "30.10", "11.11"]
    (choice,) = chosen(["Basic Wage Rate From"], ["job_title", "employer_name", "city"], [wages])
    assert (choice.field, choice.note) == (None, "no field is like it")


def test_the_limit_of_a_range_is_what_the_range_is_of():
    wages = ["21.00", "15.50", "30.10", "11.11"]
    (choice,) = chosen(["Basic Wage Rate From"], ["job_title", "wage_rate_from"], [wages])
    assert choice.field == "wage_rate_from"


def test_what_follows_a_preposition_does_not_say_what_the_values_are():
    values = ["Poland", "Ukraine", "Poland", "Norway"]
    (choice,) = chosen(["Country"], ["country_of_residence_at_enrollment", "enrollment_date"], [values])
    assert (choice.field or choice.runners_up[0].field) == "country_of_residence_at_enrollment"


def test_the_nearest_field_that_is_named_is_free():
    groups = {"name": "race", "type": "enum", "allowed": ["white", "asian", "black or african american"]}
    values = ["White", "Asian", "Caucasian", "white"]
    _, other = chosen(
        ["Ethnicity", "Ethnicity self identify"],
        [*CROWD, "ethnicity", groups],
        [["Hispanic", "Latino", "None"], values],
    )
    assert other.note == f"nearest is race with {other.probability:.2f}, below the threshold 0.70"


def test_a_name_is_not_guessed_from_numbers():
    (choice,) = chosen(["Experiment"], ["experiment_name", "city"], [["1", "2", "3", "4", "5", "6"]])
    assert choice.field is None


CHEQUE = {"name": "f1", "description": "Date the cheque was issued; see the bank's handbook, section 4"}
ORDER = {"name": "f2", "description": "Whether the order was shipped to the customer in one parcel or in several"}


class TestDescriptions:
    def test_one_that_has_the_words_of_the_header_and_little_else_makes_a_field_of_it(self):
        (choice,) = chosen(["Cheque date"], [CHEQUE, ORDER], [DATES])
        assert choice.field == "f1"
        assert "description" in {c.rule for c in choice.contributors}

    def test_one_that_merely_mentions_it_does_not(self):
        (choice,) = chosen(["Parcel"], [CHEQUE, ORDER])
        assert choice.field is None
        assert choice.runners_up[0].field == "f2"

    def test_only_its_first_sentence_counts(self):
        (choice,) = chosen(["Handbook section"], [CHEQUE, ORDER])
        assert not [r for r in choice.runners_up if any(c.rule == "description" for c in r.contributors)]


@pytest.mark.parametrize(("shown", "most"), [(IN_FULL, 10), (IN_SHORT, 3)])
def test_as_many_runners_up_are_listed_as_asked_for_the_likeliest_first(shown, most):
    stages = [
        f"{kind}_stage"
        for kind in ("ajcc", "figo", "uicc", "cog", "inss", "inrg", "ann", "masa", "ensat", "irs", "dukes")
    ]
    (choice,) = chosen(["Tumor stage"], stages, shown=shown)
    assert len(choice.runners_up) == most
    found = [r.probability for r in choice.runners_up]
    assert found == sorted(found, reverse=True)
    assert min(found) > 0


def test_log_odds_are_the_sum_of_what_is_reported_whatever_the_size_of_the_target():
    many = [f"{kind}_{n}" for kind in ("marker_level", "dose_given", "visit_note") for n in range(40)]
    columns = columns_of(["Marker lvl", "Dose", "Weight"], [CODES, ["1.5", "2.25", "3.0"], ["70", "81", "66", "90"]])
    weigher = Weigher(columns, fields_of([*many, {"name": "weight", "type": "decimal"}, "amount"]), allowed)
    for at, mine in weigher.totals().items():
        for n, total in mine.items():
            numbers = weigher.evidence(at, n).numbers
            assert total == pytest.approx(model().pair["prior"] + weighed(numbers)), (at, n, dict(numbers))
