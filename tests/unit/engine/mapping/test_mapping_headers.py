"""How alike a header and a name are."""

import pytest

from runner.engine.common.spelling import normalized
from runner.engine.mapping.headers import likeness


@pytest.mark.parametrize("header", ["Member ID", "member_id", "MemberID", " MEMBER-ID ", "member id:", "Mémber Id"])
def test_spelling_does_not_count(header):
    assert normalized(header) == "member id"


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("Gross pay (USD)", "gross_pay"),
        ("E-Mail", "email"),
        ("Email Address", "email"),
        ("Member No.", "member #"),
        ("Birth date", "Date of Birth"),
        ("DOB", "date_of_birth"),
        ("Surname", "last_name"),
        ("Phone Numbers", "phone number"),
        ("startdate", "start_date"),
    ],
)
def test_the_same_words_are_nearly_the_same_header(header, name):
    assert likeness(header, name) >= 0.9


@pytest.mark.parametrize(
    ("header", "name"), [("Membr ID", "member_id"), ("Deparment", "department"), ("Plan code", "plan")]
)
def test_a_slip_or_a_generic_word_more_still_passes_the_threshold(header, name):
    assert 0.5 <= likeness(header, name) < 0.95


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("Last name", "first_name"),
        ("End date", "start_date"),
        ("Birth date", "start_date"),
        ("Total", "plan"),
        ("ID", "name"),
        ("", "x"),
    ],
)
def test_strangers_stay_below_the_threshold(header, name):
    assert likeness(header, name) < 0.5
