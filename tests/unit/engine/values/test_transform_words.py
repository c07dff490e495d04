"""Booleans, addresses, phones and cleaning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.engine.values.words import BAD, cleaner, parse_boolean, parse_email, parse_phone, parse_url


@pytest.mark.parametrize(
    ("text", "truth"),
    [("yes", True), ("NO", False), (" Y ", True), ("0", False), ("ja", True), ("✓", True), ("", None), ("maybe", BAD)],
)
def test_words_of_truth(text, truth):
    assert parse_boolean(text) is truth


def test_a_truth_that_a_program_wrote_as_a_float_is_read():
    """A data frame with blanks writes its booleans as 1.0 and 0.0."""
    assert parse_boolean("1.0") is True
    assert parse_boolean("0.0") is False
    assert parse_boolean("0.5") is BAD


@pytest.mark.parametrize(
    "text",
    [
        "555 1234 / 555 5678",
        "5551234/5555678",
        "555-1234 555-5678",
        "5551234 5555678",
        "5551234-5555678",
        "0171 1234567/68",
        "030 1234567 / 0171 12",
    ],
)
def test_two_phone_numbers_in_a_cell_are_not_joined_into_one(text):
    assert parse_phone(text) is BAD


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("030/1234567", "0301234567"),
        ("+49 3375/123456", "+493375123456"),
        ("0049 1701234567", "+491701234567"),
        ("0551/12345-13", "05511234513"),
        ("(030) 1234567", "0301234567"),
    ],
)
def test_a_slash_after_an_area_code_is_part_of_one_phone_number(text, number):
    assert parse_phone(text) == number


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("Ada@Example.COM", "Ada@example.com"),
        (" a.b+c@d-e.co.uk ", "a.b+c@d-e.co.uk"),
        ("Ada <ada@example.com>", "ada@example.com"),
        ("mailto:ada@example.com", "ada@example.com"),
        ("jörg@müller.de", "jörg@müller.de"),
        ("", None),
    ],
)
def test_an_email_address_is_read(text, address):
    assert parse_email(text) == address


@pytest.mark.parametrize(
    "text", ["ada", "ada@", "@b.de", "a@b", "a b@c.de", "a..b@c.de", ".a@b.de", "a@b..de", "a@-b.de", "a@b.de, c@d.de"]
)
def test_what_is_no_email_address_is_refused(text):
    assert parse_email(text) is BAD


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("+1 (555) 123-4567", "+15551234567"),
        ("0049 30 1234567", "+49301234567"),
        ("+44 (0)20 7946 0958", "+442079460958"),
        ("555-123-4567 x12", "5551234567 x12"),
        ("030/1234567", "0301234567"),
        ("", None),
        ("12", BAD),
        ("call me", BAD),
        ("1234567890123456", BAD),
    ],
)
def test_a_phone_number_keeps_its_digits(text, number):
    assert parse_phone(text) == number


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("HTTPS://Example.com/A?b=C#d", "https://example.com/A?b=C#d"),
        ("www.example.com", "https://www.example.com"),
        ("http://localhost:8080/x", "http://localhost:8080/x"),
        ("", None),
        ("example", BAD),
        ("javascript:alert(1)", BAD),
        ("http://", BAD),
        ("http://a b.com", BAD),
    ],
)
def test_a_web_address_is_read(text, address):
    assert parse_url(text) == address


@pytest.mark.parametrize(
    ("steps", "before", "after"),
    [
        (("strip",), " \u200ba\u00a0", "a"),
        (("collapse",), "a \t\n b", "a b"),
        (("upper",), "aß", "ASS"),
        (("lower",), "AB", "ab"),
        (("title",), "o'neil mc-donald 3rd", "O'Neil Mc-Donald 3rd"),
        (("digits",), "M-00 12", "0012"),
        (("unaccent",), "Çédille", "Cedille"),
        (("nullify",), " N/A ", ""),
        (("strip", "upper", "digits"), " a1 ", "1"),
        ((), " a ", " a "),
    ],
)
def test_each_cleaning_step(steps, before, after):
    assert cleaner(steps)(before) == after


@given(st.text(max_size=60))
def test_no_text_breaks_a_parser(text):
    for parse in (parse_boolean, parse_email, parse_phone, parse_url):
        assert parse(text) is BAD or isinstance(parse(text), (str, bool, type(None)))
