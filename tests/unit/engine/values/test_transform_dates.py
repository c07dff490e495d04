"""Dates and times as people write them."""

from datetime import date, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.engine.common.fields import Field
from runner.engine.values.date_orders import decide_order
from runner.engine.values.dates import DateReader, NumericDate, from_number
from runner.engine.values.decisions import decide_convention, tally_values
from runner.engine.values.tallies import DateTally
from runner.engine.values.words import BAD

US = DateReader((), day_first=False)
EU = DateReader((), day_first=True)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31", "2026/1/31", "2026.01.31", "20260131", "1/31/2026", "01/31/26", "31.01.2026", "31.1.26",
        "31-Jan-2026", "31 January 2026", "31st Jan 2026", "Jan 31, 2026", "January 31st, 2026", "Jan 31 '26",
        "Sat, 31 Jan 2026", "2026-Jan-31", "31/Jan/2026", "31Jan2026", " 2026-01-31 ", "2026-01-31T00:00:00",
        "2026-01-31 00:00", "46053",
    ],
)  # fmt: skip
def test_a_written_date_is_read(text):
    assert US.day(text) == date(2026, 1, 31)


def test_digits_that_lack_the_first_zero_of_the_day_are_a_date_and_a_year_lacks_none():
    assert DateReader(("%d%m%y",), day_first=False).day("10226") == date(2026, 2, 1)
    assert DateReader(("%Y%m%d",), day_first=False).day("2021231") is BAD


@pytest.mark.parametrize(
    ("numbers", "first"),
    [((13, 5), "day"), ((5, 13), "month"), ((13, 0), "neither"), ((32, 5), "neither"), ((13, 14), "neither")],
)
def test_the_order_of_a_date_is_told_by_numbers_that_can_be_one(numbers, first):
    assert NumericDate(*numbers, "/", "2026", None).comes_first == first


def test_the_column_decides_what_comes_first():
    assert US.day("02/03/2026") == date(2026, 2, 3)
    assert EU.day("02/03/2026") == date(2026, 3, 2)


def test_a_day_over_twelve_is_no_month_whatever_the_order():
    assert EU.day("1/31/2026") == date(2026, 1, 31)


@pytest.mark.parametrize(
    "text",
    ["soon", "2026-02-30", "13/13/2026", "2026", "1/2", "2026-01-31x", "31 Foo 2026", "0", "99999999", "-", "1.5"],
)
def test_what_is_no_date_is_refused(text):
    assert US.day(text) is BAD


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31T10:20:30", datetime(2026, 1, 31, 10, 20, 30)),
        ("2026-01-31T10:20:30Z", datetime(2026, 1, 31, 10, 20, 30)),
        ("2026-01-31T10:20:30+02:00", datetime(2026, 1, 31, 8, 20, 30)),
        ("2026-01-31 10:20:30.5", datetime(2026, 1, 31, 10, 20, 30, 500000)),
        ("2026-01-31T10:20:30.123456", datetime(2026, 1, 31, 10, 20, 30, 123456)),
        ("2026-01-31T10:20:30.1234Z", datetime(2026, 1, 31, 10, 20, 30, 123400)),
        ("1/31/2026 3:05 PM", datetime(2026, 1, 31, 15, 5)),
        ("31.01.2026 23:59", datetime(2026, 1, 31, 23, 59)),
    ],
)
def test_a_written_moment_is_read(text, moment):
    assert US.moment(text) == moment


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        ("9:05", time(9, 5)),
        ("09:05:30", time(9, 5, 30)),
        ("9 pm", time(21)),
        ("12:00 AM", time(0)),
        ("12:30 p.m.", time(12, 30)),
    ],
)
def test_a_written_time_is_read(text, clock):
    assert US.clock(text) == clock


@pytest.mark.parametrize("text", ["25:00", "9", "noon", "13:00 PM", "9:61"])
def test_what_is_no_time_is_refused(text):
    assert US.clock(text) is BAD


def test_given_formats_come_first():
    assert DateReader(("%d/%m/%Y",), day_first=False).day("02/03/2026") == date(2026, 3, 2)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("%Y/%m/%d", "2026/01/31"),
        ("%d-%b-%Y", "31-Jan-2026"),
        ("%d %B %y", "31 January 26"),
        ("%m.%d.%Y %H:%M", "01.31.2026 00:00"),
        ("Week of %Y-%m-%d", "Week of 2026-01-31"),
        ("%Y-%j", "2026-031"),
        ("%Y%m%d%%", "20260131%"),
    ],
)
def test_each_format_reads_what_strptime_reads(form, text):
    assert DateReader((form,), day_first=None).day(text) == datetime.strptime(text, form).date()


@pytest.mark.parametrize(
    ("texts", "order", "sure"),
    [
        (["13/01/2026", "1/2/2026"], True, True),
        (["1/13/2026", "1/2/2026"], False, True),
        (["1/2/2026"], False, False),
        (["1/2/2026", "3/2/2026", "4/2/2026"], True, False),
        ([], None, None),
        (["2026-01-31"], None, None),
    ],
)
def test_a_column_shows_its_order(texts, order, sure):
    tally = DateTally()
    tally.add(texts)
    chosen, choice = decide_order(tally.count_pending().slashed, "when")
    assert chosen is order
    assert (choice and choice.sure) is sure


def test_a_serial_is_a_day_and_a_bare_year_is_not():
    assert from_number(46053) == datetime(2026, 1, 31)
    assert from_number(46053.5) == datetime(2026, 1, 31, 12)
    assert from_number(20260131) == datetime(2026, 1, 31)
    assert from_number(2026) is BAD
    assert from_number(-1) is BAD
    assert from_number(9e9) is BAD


@pytest.mark.parametrize("number", [260131, 991231, 1122025, 1312026, 10101231, 123456])
def test_digits_that_only_resemble_a_day_number_are_no_date(number):
    """Dates written yymmdd, dmmyyyy or mddyyyy would be days of the years 2200 to 9999."""
    assert from_number(number) is BAD


def test_the_last_day_of_the_calendar_is_read_in_every_spelling():
    assert from_number(2958465) == datetime(9999, 12, 31)
    assert from_number(99991231) == datetime(9999, 12, 31)
    assert US.day("99991231") == date(9999, 12, 31)


def test_a_compact_date_that_a_program_wrote_as_a_float_is_read():
    assert US.day("20251201.0") == date(2025, 12, 1)
    assert US.day("20251201.05") is BAD


@pytest.mark.parametrize("text", ["31/01/2569", "31 Jan 2569", "2569-01-31"])
def test_a_year_that_the_buddhist_calendar_may_have_counted_is_reported(text):
    reader = DateReader((), day_first=True)
    assert reader.day(text) == date(2569, 1, 31)
    assert reader.remarks == ["calendar_assumed"]


@given(st.dates(min_value=date(1970, 1, 1), max_value=date(2068, 12, 31)))
def test_iso_and_written_out_dates_round_trip(day):
    for form in ("%Y-%m-%d", "%d %B %Y", "%b %d, %Y", "%d.%m.%Y"):
        assert US.day(day.strftime(form)) == day


@given(st.text(max_size=70))
def test_any_text_is_a_date_nothing_or_bad(text):
    assert US.moment(text) is BAD or isinstance(US.moment(text), (datetime, type(None)))
    assert US.clock(text) is BAD or isinstance(US.clock(text), (time, type(None)))


@pytest.mark.parametrize(
    "text", ["12345.A1", "12345.6 kg", "11357.5(A)HS", "12345.", "12345..6", "1234567890 x", "260131 kg", "45000.5.1"]
)
def test_a_text_that_only_begins_like_a_day_number_counts_no_days(text):
    tally = tally_values(Field({"name": "a", "type": "date"}), [text, "x"])
    assert (tally.serials, tally.past_serials, tally.unix) == (0, 0, 0)


def test_what_is_counted_as_a_day_number_is_what_the_converter_reads():
    tally = tally_values(
        Field({"name": "a", "type": "date"}), ["45123", "45123.5", "1769853600", "1769853600000", "260131"]
    )
    assert (tally.serials, tally.unix, tally.past_serials) == (2, 2, 1)


@pytest.mark.parametrize("formats", [[], ["%d.%m.%Y"]])
def test_unix_times_are_recorded_whatever_formats_the_field_has(formats):
    field = Field({"name": "at", "type": "datetime", "formats": formats})
    convention, choices = decide_convention(field, tally_values(field, ["1769853600", "1769853661"]))
    assert convention.numbers == "seconds"
    assert [choice.chosen for choice in choices] == ["Unix times, in UTC"]
