"""How a column is written is decided from all its values; whatever could be read otherwise is told.

The oracle is what the texts were made from, by formatters of this file's own.
"""

import csv
import io
import json
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.manifests import parse_manifest
from runner.engine.common.fields import Field
from runner.engine.reading.spool import Room
from runner.engine.values.convention_choices import ColumnSurroundings
from runner.engine.values.convert import Converter
from runner.engine.values.dates import DateReader
from runner.engine.values.decisions import decide_convention, tally_values
from tests.support.effort import examples
from tests.support.engine_jobs import Outcome, run_job, run_order, workbook


def run_csv(folder: Path, rows: list[list[str]], fields: list[dict[str, Any]], delimiter: str = ",") -> Outcome:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    (folder / "in.csv").write_text(text.getvalue(), encoding="utf-8")
    manifest = parse_manifest(json.dumps({"manifest": 1, "name": "test", "fields": fields}).encode())
    order = {
        "order": 1,
        "job": {"job_id": "acme-test-1", "tenant": "acme", "workflow": "test", "attempt": 1},
        "manifest": manifest.model_dump(mode="json"),
        "params": {},
        "inputs": [{"role": "primary", "name": "in.csv", "path": "in.csv", "size": 1, "sha256": "0" * 64}],
        "config": {"path": None, "digest": "0" * 8},
        "outputs": {n: n for n in ("normalized.xlsx", "artifact.json")},
        "sandbox": {"driver": "process", "level": "limits", "rungs": {"rlimits": True}},
    }
    return run_order(order, folder)


def codes(done: Outcome) -> set[str]:
    return {f["code"] for f in done.findings}


class Read(NamedTuple):
    values: list[Any]
    told: list[bool]  # whether something is said of the cell or of its column
    warned: bool  # whether the column's convention is a guess


def read_column(kind: str, texts: list[str], delimiter: str | None = None, **spec: Any) -> Read:
    field = Field({"name": "x", "type": kind, **spec})
    convention, choices = decide_convention(field, tally_values(field, texts), ColumnSurroundings(delimiter=delimiter))
    converter = Converter(field, (), convention)
    values, bad = converter.convert(list(texts))
    warned = any(not c.sure for c in choices)
    told = [warned or n in bad or text in converter.remarks for n, text in enumerate(texts)]
    return Read(values, told, warned)


def silent(read: Read, wanted: list[Any]) -> list[int]:
    """The cells that came out as something else with no word about it."""
    pairs = enumerate(zip(read.values, wanted, read.told, strict=True))
    return [n for n, (value, want, told) in pairs if not told and value != want]


# --- numbers -------------------------------------------------------------------------------------------------------

LOCALES = {  # decimal sign, group sign, delimiter of the files of that country
    "us": (".", ",", ","),
    "uk": (".", ",", None),
    "de": (",", ".", ";"),
    "fr": (",", "\u202f", ";"),
    "se": (",", " ", "\t"),
    "ch": (".", "'", ";"),
    "us, bare": (".", "", ","),
    "de, bare": (",", "", ";"),
}


def written(units: int, places: int, decimal: str, group: str) -> str:
    """`units` hundredths, thousandths and so on, as a person of a country writes them."""
    digits = str(abs(units)).rjust(places + 1, "0")
    whole, fraction = (digits[:-places], digits[-places:]) if places else (digits, "")
    groups = []
    while len(whole) > 3 and group:
        whole, last = whole[:-3], whole[-3:]
        groups.insert(0, last)
    return ("-" if units < 0 else "") + group.join([whole, *groups]) + (decimal + fraction if places else "")


def value_of(units: int, places: int) -> float:
    return float(f"{units}e-{places}")


numbers = st.tuples(
    st.sampled_from(sorted(LOCALES)),
    st.sampled_from([("integer", 0), ("money", 0), ("money", 2), ("decimal", 0), ("decimal", 1), ("decimal", 3)]),
    st.integers(2, 8).flatmap(lambda size: st.lists(st.integers(-(10**size) // 10, 10**size), min_size=3, max_size=60)),
)


@settings(max_examples=examples(400))
@given(numbers)
def test_a_column_of_numbers_is_read_right_or_reported(case):
    locale, (kind, places), units = case
    decimal, group, delimiter = LOCALES[locale]
    read = read_column(kind, [written(u, places, decimal, group) for u in units], delimiter)
    assert silent(read, [value_of(u, places) for u in units]) == []


@pytest.mark.parametrize("locale", sorted(LOCALES))
@pytest.mark.parametrize("size", [3, 50, 3000])
def test_amounts_with_cents_need_no_telling(locale, size):
    decimal, group, delimiter = LOCALES[locale]
    units = [(n * 7_919 + 31) % 12_345_678 for n in range(size)]
    read = read_column("money", [written(u, 2, decimal, group) for u in units], delimiter)
    assert read.values == [value_of(u, 2) for u in units]
    assert not any(read.told)


@pytest.mark.parametrize("at", [300, 2100, 4101, 5003])
@pytest.mark.parametrize("kind", ["decimal", "money"])
def test_one_sign_among_thousands_of_bare_numbers_is_reported_wherever_it_is(kind, at, tmp_path):
    """The rest of a column that looks uniform is spot-checked: what the spot checks miss is seen when it is read."""
    rows = [["id", "n"], *([f"r{n}", str(100 + n % 900)] for n in range(6000))]
    rows[at][1] = "1.234"
    done = run_csv(tmp_path, rows, [{"name": "id"}, {"name": "n", "type": kind}], "\t")
    assert "decimal_assumed" in codes(done)


@pytest.mark.parametrize("at", [0, 1, 199, 200, 201, 1999, 2047, 2048, 2999])
def test_one_cell_that_proves_the_sign_counts_wherever_it_is(at):
    texts = [f"{n % 9 + 1}.{n % 1000:03}" for n in range(3000)]
    texts[at] = "2.345,50"
    read = read_column("money", texts)
    assert read.values[:at] + read.values[at + 1 :] == [
        float(t.replace(".", "")) for n, t in enumerate(texts) if n != at
    ]
    assert read.values[at] == 2345.5


@pytest.mark.parametrize(
    ("kind", "texts", "delimiter", "values", "warned"),
    [
        ("integer", ["2.000", "12.000"], ";", [2000, 12000], True),
        ("integer", ["2.000", "12.000"], ",", [2000, 12000], True),
        ("money", ["2.000", "12.000"], ",", [2000, 12000], True),
        ("integer", ["1.500", "2.250"], ";", [1500, 2250], False),
        ("integer", ["1.500", "800", "12.000"], None, [1500, 800, 12000], False),
        ("integer", ["1,500", "800", "12,000"], ",", [1500, 800, 12000], False),
        ("money", ["1.234", "2.500", "12.000"], ";", [1234, 2500, 12000], True),
        ("money", ["1,234", "2,500", "950"], ",", [1234, 2500, 950], False),
        ("money", ["$1,234", "$2,511"], None, [1234, 2511], True),
        ("decimal", ["1.234", "2.511"], ",", [1.234, 2.511], False),
        ("decimal", ["1,234", "2,511"], ";", [1.234, 2.511], False),
        ("decimal", ["1.234", "0.511"], ";", [1.234, 0.511], False),
    ],
)
def test_three_digits_after_a_sign(kind, texts, delimiter, values, warned):
    read = read_column(kind, texts, delimiter)
    assert (read.values, read.warned) == (values, warned)


def test_other_columns_decide_what_a_column_leaves_open(tmp_path):
    rows = [["id", "amount", "rate"], ["1", "1.234", "12,5"], ["2", "2.500", "7,25"], ["3", "12.000", "3,1"]]
    fields = [{"name": "id"}, {"name": "amount", "type": "money"}, {"name": "rate", "type": "decimal"}]
    done = run_csv(tmp_path, rows, fields, ";")
    assert done.column("amount") == [1234, 2500, 12000]
    assert codes(done) == set()


def test_a_sign_that_contradicts_its_column_is_reported_by_its_cell(tmp_path):
    rows = [["id", "amount"], *([str(n), f"{n}.25"] for n in range(20)), ["x", "12,75"], ["y", "1,250"]]
    done = run_csv(tmp_path, rows, [{"name": "id"}, {"name": "amount", "type": "money"}])
    assert done.column("amount")[-2:] == [12.75, 1250]
    assert done.cells("decimal_mixed") == ["B22"]


def test_a_guess_names_its_count_and_its_remedy(tmp_path):
    done = run_csv(tmp_path, [["id", "amount"], ["1", "1.234"], ["2", "2.500"]], [{"name": "amount", "type": "money"}])
    (told,) = [f for f in done.findings if f["code"] == "decimal_assumed"]
    assert told["severity"] == "warning"
    assert told["message"].startswith("2 numbers")
    assert '"decimal": ","' in told["message"]
    assert "on field amount" in told["message"]
    (reading,) = [r for r in done.artifact["readings"] if r["kind"] == "decimal"]
    assert reading["evidence"]["either"] == 2


def test_a_declared_sign_settles_it(tmp_path):
    fields = [{"name": "amount", "type": "money", "decimal": "."}]
    done = run_csv(tmp_path, [["id", "amount"], ["1", "1.234"], ["2", "2.500"]], fields)
    assert done.column("amount") == [1.234, 2.5]
    assert codes(done) == set()


def test_numbers_of_more_digits_than_a_spreadsheet_keeps_stay_text(tmp_path):
    texts = ["12345678901234567890", "9007199254740993", "1234567890.123456789", "0.30000000000000004"]
    rows = [["id", "v", "p"], *([str(n), t, f"{t}%"] for n, t in enumerate(texts))]
    done = run_csv(tmp_path, rows, [{"name": "v", "type": "decimal"}, {"name": "p", "type": "percent"}])
    assert done.column("v") == [*texts[:3], 0.30000000000000004]
    assert [c for c in done.cells("kept_as_text") if c.startswith("B")] == ["B2", "B3", "B4"]
    assert done.column("p")[:3] == ["123456789012345678.90", "90071992547409.93", "12345678.90123456789"]


def test_currencies_that_get_lost_are_reported(tmp_path):
    rows = [["id", "amount"], ["1", "5 €"], ["2", "$5"], ["3", "EUR 7"], ["4", "USD 9"]]
    done = run_csv(tmp_path, rows, [{"name": "amount", "type": "money"}])
    assert done.column("amount") == [5, 5, 7, 9]
    (told,) = [f for f in done.findings if f["code"] == "currency_mixed"]
    assert "2 currencies" in told["message"]


def test_one_currency_in_two_spellings_is_one():
    assert not read_column("money", ["5 €", "EUR 7", "12"]).warned
    assert not read_column("money", ["$5", "USD 7", "US$ 12"]).warned


@pytest.mark.parametrize(
    ("texts", "shares", "warned"),
    [
        (["45%", "7.5 %", "(5%)", "12.345%"], [0.45, 0.075, -0.05, 0.12345], False),
        (["0.45", "0.5", "1"], [0.45, 0.5, 1], False),
        (["45", "12.5", "80"], [0.45, 0.125, 0.8], True),
        (["45%", "45", "50"], [0.45, 0.45, 0.5], True),
        (["33.3%", "66.7%"], [0.333, 0.667], False),
    ],
)
def test_what_a_percentage_counts(texts, shares, warned):
    read = read_column("percent", texts)
    assert (read.values, read.warned) == (shares, warned)


def test_a_declared_unit_settles_what_a_percentage_counts(tmp_path):
    rows = [["id", "a", "b"], ["x", 45, 45], ["y", 0.5, 0.5]]
    fields = [{"name": "a", "type": "percent", "unit": "percent"}, {"name": "b", "type": "percent", "unit": "share"}]
    done = run_job(tmp_path, rows, fields=fields)
    assert (done.column("a"), done.column("b")) == ([0.45, 0.005], [45, 0.5])
    assert codes(done) == set()


# --- dates ---------------------------------------------------------------------------------------------------------

ORDERS = {
    "day/": lambda d: f"{d.day:02}/{d.month:02}/{d.year}",
    "day-": lambda d: f"{d.day}-{d.month}-{d.year}",
    "day.": lambda d: f"{d.day:02}.{d.month:02}.{d.year}",
    "month/": lambda d: f"{d.month}/{d.day}/{d.year}",
    "month-": lambda d: f"{d.month:02}-{d.day:02}-{d.year}",
    "year": lambda d: f"{d.year}-{d.month:02}-{d.day:02}",
    "month/ with time": lambda d: f"{d.month}/{d.day}/{d.year} 0:00",
    "weekday day/": lambda d: (
        f"{['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'][d.weekday()]} {d.day:02}/{d.month:02}/{d.year}"
    ),
}
days = st.dates(min_value=date(1950, 1, 1), max_value=date(2049, 12, 31))


@settings(max_examples=examples(400))
@given(st.sampled_from(sorted(ORDERS)), st.lists(days, min_size=3, max_size=60), st.sampled_from([",", ";", None]))
def test_a_column_of_dates_is_read_right_or_reported(order, wanted, delimiter):
    assert silent(read_column("date", [ORDERS[order](d) for d in wanted], delimiter), wanted) == []


@pytest.mark.parametrize("order", sorted(ORDERS))
@pytest.mark.parametrize("size", [60, 3000])
def test_dates_of_a_year_need_no_telling(order, size):
    wanted = [date(2025, 1, 1) + timedelta(days=n * 11 % 365) for n in range(size)]
    read = read_column("date", [ORDERS[order](d) for d in wanted])
    assert read.values == wanted
    assert not any(read.told)


@pytest.mark.parametrize("at", [0, 199, 200, 2047, 2048, 2999])
def test_some_dates_that_prove_the_order_count_wherever_they_stand(at, tmp_path):
    wanted = [date(2026, n % 12 + 1, n % 11 + 1) for n in range(3000)]
    for n in range(at - 20, at + 20):
        wanted[n % 3000] = date(2026, 3, 31)
    rows = [["id", "when"], *([str(n), ORDERS["day/"](d)] for n, d in enumerate(wanted))]
    done = run_csv(tmp_path, rows, [{"name": "id"}, {"name": "when", "type": "date"}])
    assert [d.date() for d in done.column("when")] == wanted
    assert codes(done) == set()


@pytest.mark.parametrize("room", [(0, 0), (10**8, 0), (10**8, 10**8)], ids=["read again", "packed", "loose"])
def test_the_order_is_decided_from_all_rows_however_they_were_set_aside(room, tmp_path, monkeypatch):
    monkeypatch.setattr("runner.engine.job.Room", lambda: Room(*room))
    wanted = [date(2026, n % 12 + 1, n % 11 + 1) for n in range(5000)] + [date(2026, 3, 31)] * 30
    rows = [["id", "when", "pay"], *([str(n), ORDERS["day/"](d), "1.500"] for n, d in enumerate(wanted))]
    rows[-1][2] = "2.500,75"
    done = run_csv(tmp_path, rows, [{"name": "when", "type": "date"}, {"name": "pay", "type": "money"}], ";")
    assert [d.date() for d in done.column("when")] == wanted
    assert done.column("pay") == [1500] * 5029 + [2500.75]
    assert codes(done) == set()


@pytest.mark.parametrize(
    "length", [40, pytest.param(1500, marks=pytest.mark.slow), pytest.param(9000, marks=pytest.mark.slow)]
)
def test_a_column_that_changes_its_ways_deep_inside_is_reported(length, tmp_path):
    """Two exports one below the other: what the second one leaves open is never silently read as the first would."""
    rows = [["id", "rate", "when"], *([str(n), f"{n % 90 + 1}.25", f"{n % 16 + 13}/05/2026"] for n in range(6000))]
    rows += [[f"b{n}", "1.234" if n % 2 else "2,5", f"5/{n % 16 + 13 if n % 2 else 7}/2026"] for n in range(length)]
    rows += [[f"c{n}", "7.25", "31/05/2026"] for n in range(2500)]
    fields = [{"name": "rate", "type": "decimal"}, {"name": "when", "type": "date"}]
    done = run_csv(tmp_path, rows, fields, "\t")
    by_code = done.artifact["validation"]["by_code"]
    assert {"decimal_assumed", "date_order_assumed"} <= set(by_code)
    assert by_code.get("decimal_mixed", 0) + by_code.get("date_order_mixed", 0) >= min(length, 6000)


def test_a_date_that_contradicts_its_column_is_reported_by_its_cell(tmp_path):
    rows = [["id", "when"], *([str(n), f"{n}/12/2025"] for n in range(13, 31)), ["x", "12/13/2025"], ["y", "1/2/2025"]]
    done = run_csv(tmp_path, rows, [{"name": "when", "type": "date"}])
    assert [d.date() for d in done.column("when")[-2:]] == [date(2025, 12, 13), date(2025, 2, 1)]
    assert done.cells("date_order_mixed") == ["B20"]
    assert "date_order_assumed" not in codes(done)


@pytest.mark.parametrize("mark", ["\u200e", " ", "\u00a0", "\ufeff", "\u202a", "\t"])
def test_invisible_marks_hide_no_proof(mark):
    read = read_column("date", [f"{mark}31/12/2025", f"{mark}01/02/2025{mark}"])
    assert (read.values, read.told) == ([date(2025, 12, 31), date(2025, 2, 1)], [False, False])
    read = read_column("money", [f"{mark}1.234", f"{mark}12,50{mark}"])
    assert (read.values, read.told) == ([1234, 12.5], [False, False])


def test_a_column_that_mixes_both_orders_evenly_is_a_guess():
    assert read_column("date", ["31/12/2025", "12/31/2025", "01/02/2025"]).warned


def test_another_date_column_decides_the_order(tmp_path):
    rows = [["id", "from", "until"], ["a", "01/02/2026", "28/02/2026"], ["b", "01/03/2026", "31/03/2026"]]
    fields = [{"name": "from", "type": "date"}, {"name": "until", "type": "date"}]
    done = run_csv(tmp_path, rows, fields)
    assert done.column("from")[0].date() == date(2026, 2, 1)
    assert codes(done) == set()
    assert [r["chosen"] for r in done.artifact["readings"] if r.get("field") == "from"] == ["day first"]


def test_a_decimal_comma_beside_them_says_that_the_day_comes_first(tmp_path):
    rows = [["id", "when", "pay"], ["a", "01/02/2026", "12,50"], ["b", "01/03/2026", "13,75"]]
    done = run_csv(tmp_path, rows, [{"name": "when", "type": "date"}, {"name": "pay", "type": "money"}], ";")
    assert done.column("when")[0].date() == date(2026, 2, 1)
    assert codes(done) == set()


def test_short_years_of_either_century_are_reported():
    read = read_column("date", ["31/12/58", "30/11/72", "29/10/85", "28/09/03"])
    assert [d.year for d in read.values] == [1958, 1972, 1985, 2003]
    assert read.warned
    assert not read_column("date", ["31/12/24", "30/11/25", "29/10/25", "28/09/26"]).warned


@pytest.mark.parametrize("name", ["born", "Geburtsdatum", "date_of_birth"])
def test_a_birth_is_not_decades_ahead_and_a_hundred_years_are_reported(tmp_path, name):
    years = ["85", "03", "97", "29", "08", "31"]
    rows = [["id", name], *([str(n), f"{n + 13}.09.{year}"] for n, year in enumerate(years))]
    done = run_csv(tmp_path, rows, [{"name": "id"}, {"name": name, "type": "date"}], ";")
    assert [d.year for d in done.column(name)][5] == 1931
    assert codes(done) == {"century_assumed"}
    done = run_csv(tmp_path, rows[:-1], [{"name": "id"}, {"name": name, "type": "date"}], ";")
    assert codes(done) == {"century_assumed"}, "1929 or 2029"


def test_short_years_of_births_and_of_other_days_without_doubt_are_not_reported(tmp_path):
    rows = [
        ["id", "born", "paid"],
        ["a", "31.12.98", "28-Feb-27"],
        ["b", "30.11.72", "28-Feb-29"],
        ["c", "13.05.11", "31-Jan-01"],
    ]
    fields = [{"name": "id"}, {"name": "born", "type": "date"}, {"name": "paid", "type": "date"}]
    done = run_csv(tmp_path, rows, fields, ";")
    assert [d.year for d in done.column("born")] == [1998, 1972, 2011]
    assert codes(done) == set()


def test_short_years_that_come_first_are_reported():
    read = read_column("date", [f"25/12/{n:02}" for n in range(1, 31)])
    assert read.values[4] == date(2025, 12, 5)
    assert read.warned


def test_a_time_of_day_that_a_date_drops_is_reported(tmp_path):
    rows = [["id", "when"], ["a", "2026-01-31 10:20"], ["b", "2026-01-31 00:00"], ["c", "2026-01-31T23:30:00+02:00"]]
    done = run_csv(tmp_path, rows, [{"name": "when", "type": "date"}])
    assert {d.date() for d in done.column("when")} == {date(2026, 1, 31)}
    assert done.cells("time_dropped") == ["B2", "B4"]


def test_a_zone_is_reported_once_a_column(tmp_path):
    rows = [["id", "at"], *([str(n), f"2026-01-31T10:{n:02}:00+02:00"] for n in range(10))]
    done = run_csv(tmp_path, rows, [{"name": "at", "type": "datetime"}])
    assert done.column("at")[0].hour == 8
    assert done.cells("zone_converted") == ["B2"]


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("%Y-%m-%dT%H:%M:%S%z", "2026-01-31T10:20:30+0200", "2026-01-31 08:20:30"),
        ("%d.%m.%Y %H:%M %z", "31.01.2026 23:30 -05:00", "2026-02-01 04:30:00"),
        ("%Y-%m-%dT%H:%M:%S%z", "2026-01-31T10:20:30Z", "2026-01-31 10:20:30"),
    ],
)
def test_a_zone_of_a_declared_format_is_converted_as_any_other(form, text, expected):
    dates = DateReader((form,), day_first=None)
    assert str(dates.moment(text)) == expected
    assert dates.clock(text).tzinfo is None
    assert dates.remarks == ["zone_converted", "zone_dropped"]
    assert dates.day(text) == date(2026, 1, 31), "a day is as it is written"


MONTH_NAMES = {
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "de short": "Jan. Feb. Mrz. Apr. Mai Jun. Jul. Aug. Sep. Okt. Nov. Dez.",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "fr short": "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "es short": "ene feb mar abr may jun jul ago sep oct nov dic",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "it short": "gen feb mar apr mag giu lug ago set ott nov dic",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "pt short": "jan fev mar abr mai jun jul ago set out nov dez",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "nl short": "jan feb mrt apr mei jun jul aug sep okt nov dec",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "pl short": "sty lut mar kwi maj cze lip sie wrz paź lis gru",
    "sv": "januari februari mars april maj juni juli augusti september oktober november december",
    "cs": "ledna února března dubna května června července srpna září října listopadu prosince",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "fi": (
        "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta syyskuuta lokakuuta "
        "marraskuuta joulukuuta"
    ),
}


@pytest.mark.parametrize("language", sorted(MONTH_NAMES))
@pytest.mark.parametrize(
    "shape", ["{d} {m} {y}", "{d}. {m} {y}", "{d:02}-{m}-{y}", "{d} de {m} de {y}", "{M} {d}, {y}"]
)
def test_months_are_read_by_their_names(language, shape):
    names = MONTH_NAMES[language].split()
    wanted = [date(2026, n, day) for n in range(1, 13) for day in (1, 9, 28)]
    texts = [shape.format(d=d.day, m=names[d.month - 1], M=names[d.month - 1].upper(), y=d.year) for d in wanted]
    read = read_column("date", texts)
    assert read.values == wanted
    assert not any(read.told)


@pytest.mark.parametrize(
    "text",
    ["Sonntag, 1. März 2026", "dimanche 1er mars 2026", "domingo, 1 de marzo de 2026", "domenica 1º marzo 2026",
     "zondag 1 maart 2026", "niedziela, 1 marca 2026", "Sun, 1 Mar 2026", "So, 01.03.2026", "2026年3月1日",
     "2026年3月1日(日)", "令和8年3月1日", "2026년 3월 1일", "2026. március 1.", "1. 3. 2026"],
)  # fmt: skip
def test_weekdays_and_eastern_dates_are_read(text):
    assert read_column("date", [text]).values == [date(2026, 3, 1)]


# --- cells ---------------------------------------------------------------------------------------------------------


def test_an_error_cell_is_reported_once(tmp_path):
    kinds = ["text", "integer", "money", "date", "boolean", "email"]
    rows = [[*kinds, "n"], *([*["#N/A"] * len(kinds), n] for n in range(2))]
    done = run_job(tmp_path, rows, fields=[{"name": k, "type": k, "unique": True} for k in kinds])
    assert done.artifact["validation"]["by_code"] == {"cell_error": 2 * len(kinds)}


@pytest.mark.parametrize(
    ("texts", "values", "bad"),
    [
        (["x", "X", ""], [True, True, None], []),
        (["x", "no", "yes"], [True, False, True], []),
        (["✓", "x", "X"], [True, "x", "X"], [1, 2]),
        (["✓", "✗"], [True, False], []),
    ],
)
def test_an_x_beside_check_marks_may_be_a_cross(texts, values, bad):
    field = Field({"name": "ok", "type": "boolean"})
    assert Converter(field, texts).convert(texts) == (values, bad)


def test_a_date_that_a_time_drops_is_reported(tmp_path):
    rows = [["id", "at"], ["a", datetime(2026, 1, 31, 10, 30)], ["b", time(9)]]
    done = run_job(tmp_path, rows, fields=[{"name": "at", "type": "time"}])
    assert done.column("at") == [time(10, 30), time(9)]
    assert done.cells("date_dropped") == ["B2"]


def test_dates_with_points_keep_the_day_first_beside_dates_of_the_other_order():
    read = read_column("date", ["1/31/2026", "02.03.2026", "3/4/2026"])
    assert read.values == [date(2026, 1, 31), date(2026, 3, 2), date(2026, 3, 4)]
    assert read.warned


def test_a_duration_in_a_text_field_is_what_the_cell_shows(tmp_path):
    book = openpyxl.load_workbook(workbook(tmp_path / "in.xlsx", {"S": [["spent", "n"], [None, 1], [None, 2]]}))
    for row, value in ((2, timedelta(hours=30)), (3, timedelta(hours=100, minutes=5, seconds=7))):
        book["S"].cell(row, 1, value).number_format = "[h]:mm"
    book.save(tmp_path / "in.xlsx")
    assert run_job(tmp_path, fields=[{"name": "spent"}]).column("spent") == ["30:00:00", "100:05:07"]


def test_a_phone_number_that_was_a_number_keeps_its_digits(tmp_path):
    rows = [["id", "tel"], ["a", "5551234567.0"], ["b", "2025550123.00"], ["c", "2025550124"], ["d", "12345678.5"]]
    done = run_csv(tmp_path, rows, [{"name": "tel", "type": "phone"}])
    assert done.column("tel") == ["5551234567", "2025550123", "2025550124", "12345678.5"]
    assert done.cells("type_error") == ["B5"]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("می\u200cخواهم", "می\u200cخواهم"),  # noqa: RUF001
        ("क्\u200dष", "क्\u200dष"),
        ("❤\ufe0f", "❤\ufe0f"),
        ("\u200b\ufeff a\u00a0b \u200f\u200d", "a\u00a0b"),
        ("mem\u200bber", "member"),
    ],
)
def test_strip_takes_dirt_and_no_letters(text, clean):
    assert Converter(Field({"name": "x"})).convert([text])[0] == [clean]


@given(st.text(alphabet="한글がぎйёé́क्षä", min_size=1, max_size=8))
def test_unaccent_changes_latin_letters_only(text):
    out = Converter(Field({"name": "x", "clean": ["unaccent"]})).convert([text])[0][0]
    assert [c for c in out if c in "한글がぎйёक्ष"] == [c for c in text if c in "한글がぎйёक्ष"]


def test_a_short_year_that_no_look_at_the_column_met_is_reported_at_its_cell(tmp_path):
    rows = [["id", "day"], *([str(n), f"2024-03-{n % 28 + 1:02}"] for n in range(6000))]
    rows[4101][1] = "3-Feb-45"
    done = run_csv(tmp_path, rows, [{"name": "id"}, {"name": "day", "type": "date"}])
    assert "century_assumed" in done.artifact["validation"]["by_code"]


def test_a_short_year_of_a_birth_that_no_look_at_the_column_met_is_reported_at_its_cell(tmp_path):
    rows = [["id", "born"], *([str(n), f"1984-03-{n % 28 + 1:02}"] for n in range(6000))]
    rows[4101][1] = "3-Feb-27"
    done = run_csv(tmp_path, rows, [{"name": "id"}, {"name": "born", "type": "date"}])
    assert "century_assumed" in done.artifact["validation"]["by_code"]


@pytest.mark.parametrize(
    "rows",
    [
        [["name", "Ann Lee"], ["city", "Oslo"], ["amount", "12.50"], ["start_date", "2026-01-31"]],
        [["name", "Ann", "Bob", "Cid"], ["city", "Oslo", "Rome", "Bonn"], ["amount", "5", "6", "7"]],
    ],
)
def test_a_table_with_its_fields_in_the_first_column_is_reported(tmp_path, rows):
    fields = [
        {"name": "name"},
        {"name": "city"},
        {"name": "amount", "type": "money"},
        {"name": "start_date", "type": "date"},
    ]
    done = run_csv(tmp_path, rows, fields)
    assert "header_assumed" in codes(done), done.findings


def test_a_field_whose_synonym_names_the_scale_is_not_warned_about(tmp_path):
    rows = [["dept", "Revenue in TEUR"], ["A", "100"], ["B", "200"]]
    plain = {"name": "revenue", "type": "money"}
    (tmp_path / "one").mkdir()
    assert "scale_ignored" in codes(run_csv(tmp_path / "one", rows, [{"name": "dept"}, plain]))
    known = {**plain, "synonyms": ["Revenue in TEUR"]}
    assert "scale_ignored" not in codes(run_csv(tmp_path, rows, [{"name": "dept"}, known]))


def test_dates_that_may_have_the_day_before_the_month_are_reported(tmp_path):
    rows = [["when"], ["2026-31-01"], ["2026-15-02"], ["2026-02-03"]]
    assert "date_order_assumed" in codes(run_csv(tmp_path, rows, [{"name": "when", "type": "date"}]))
