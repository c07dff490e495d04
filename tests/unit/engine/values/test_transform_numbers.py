"""Numbers as people write them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.engine.values.numbers import number_parts, parse_integer, parse_number
from runner.engine.values.words import BAD


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12.0),
        ("-12.5", -12.5),
        ("+3", 3.0),
        (" 7 ", 7.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("$1,234.50", 1234.5),
        ("1.234,50 €", 1234.5),
        ("EUR 1.234,50", 1234.5),
        ("1 234,50", 1234.5),
        ("1\u00a0234.50", 1234.5),
        ("1'234.50", 1234.5),
        ("CHF 1\u2019234.50", 1234.5),
        ("(1,234.00)", -1234.0),
        ("($5)", -5.0),
        ("(12,00) €", -12.0),
        ("$ (1,200.50)", -1200.5),
        ("EUR (5)", -5.0),
        ("-$5", -5.0),
        ("$-5", -5.0),
        ("5-", -5.0),
        ("−5", -5.0),  # noqa: RUF001  # a true minus sign
        ("1,234", 1234.0),
        ("1,234,567", 1234567.0),
        ("12,34,567.5", 1234567.5),
        ("1.234.567", 1234567.0),
        ("0,5", 0.5),
        ("12,5", 12.5),
        ("1,2345", 1.2345),
        ("1.234", 1.234),
        ("kr 99", 99.0),
        ("", None),
        ("   ", None),
    ],
)
def test_a_written_number_is_read(text, number):
    assert parse_number(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "abc",
        "1,23,4",
        "1.2.3",
        "12 apples",
        "--5",
        "(-5)",
        "$",
        ",",
        ".",
        "1e999",
        "nan",
        "inf",
        "5 - 3",
        "1,,2",
        "0x10",
    ],
)
def test_what_is_no_number_is_refused(text):
    assert parse_number(text) is BAD


def test_a_given_decimal_comma_decides_what_the_shape_leaves_open():
    assert parse_number("1.234", ",") == 1234.0
    assert parse_number("1,234", ",") == 1.234


def test_a_given_decimal_point_refuses_a_decimal_comma():
    assert parse_number("12,5", ".") is BAD


@pytest.mark.parametrize(
    ("text", "sign"),
    [("1.234", "?"), ("1,234", "?"), ("12,50", ","), ("12.50", "."), ("0.500", "."), ("1234.567", "."), ("12", ""),
     ("1 234", ""), ("1 234,567", ","), ("1.234.567", ","), ("1,23,456", "."), ("50.-", "."), ("50,-", ",")],
)  # fmt: skip
def test_a_number_shows_its_decimal_sign_as_far_as_it_can(text, sign):
    assert number_parts(text).decimal_sign == sign


@pytest.mark.parametrize(
    ("text", "number"),
    [("100,-", 100), ("1.200,-", 1200), ("50.-", 50), ("100,–", 100), ("CHF 50.—", 50), ("-100,-", -100),  # noqa: RUF001
     ("100,--", 100), ("50,- €", 50), ("100-", -100), ("100- €", -100)],
)  # fmt: skip
def test_a_dash_for_the_decimals_is_no_sign(text, number):
    assert parse_number(text) == parse_integer(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [("１２３", 123), ("１，２３４．５", 1234.5), ("١٢٣", 123), ("१२३", 123), ("½", BAD), ("5²", BAD), ("1 2 3", BAD),  # noqa: RUF001
     ("2025 12", BAD), ("1,5 Mio", BAD), ("1e3", 1000), ("1e-999", BAD), ("$5 USD", 5)],
)  # fmt: skip
def test_digits_of_any_script_are_read_and_nothing_else_is(text, number):
    assert parse_number(text) == number


@pytest.mark.parametrize(
    "text",
    ["12345678901234567890", "9007199254740993", "1234567890.123456789", "0.12345678901234567891", "4582726464100680"],
)
def test_no_digit_is_lost(text):
    assert str(parse_number(text)) == text


@pytest.mark.parametrize("text", ["0.30000000000000004", "0.10000000000000001", "100000000000000.0000", "1e20"])
def test_what_a_float_stands_for_stays_one(text):
    assert isinstance(parse_number(text), float)


@given(st.floats(min_value=-1e12, max_value=1e12).map(lambda f: round(f, 2)))
def test_both_worlds_write_the_same_number(number):
    point = f"{number:,.2f}"
    comma = point.translate(str.maketrans(",.", ".,"))
    assert parse_number(point, ".") == parse_number(comma, ",") == number


@given(st.text(max_size=80))
def test_any_text_gives_a_number_or_nothing_or_bad(text):
    assert parse_number(text) is BAD or isinstance(parse_number(text), (float, int, Decimal, type(None)))
