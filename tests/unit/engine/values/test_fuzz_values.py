# ruff: noqa: RUF001  # signs of many scripts
"""Random texts through every parser of values; millions of them: see tests/fuzz/values.py."""

import csv
import io
import json
from datetime import date
from pathlib import Path
from time import process_time

import pytest

from core.manifests import parse_manifest
from runner.engine.common.fields import Field
from runner.engine.job import run as run_engine
from runner.engine.reading.dialects import _possible_quotes
from runner.engine.reading.encodings import _scan_as_utf8
from runner.engine.values.decisions import tally_values
from runner.engine.values.tallies import NumberTally
from tests.fuzz.values import SEEDS, Column, differences, fuzz
from tests.support.effort import examples


@pytest.mark.slow
def test_no_text_breaks_a_parser_and_what_is_sampled_is_what_is_converted():
    tried = fuzz(examples(4000), seed=1, engine=0.03)
    assert tried.broken == []
    assert tried.counts["values"] > 100
    assert tried.counts["engine jobs"]


@pytest.mark.parametrize("kind", ["decimal", "money", "percent", "date", "datetime", "boolean", "integer"])
def test_so_do_texts_as_people_write_them(kind):
    column = Column({"name": "a", "type": kind}, SEEDS)
    assert list(differences(column)) == []


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("percent", ["(45%)", "1"]),  # negative by brackets
        ("date", ["１.２.２０２５"]),  # digits of another width
        ("date", ["segunda-feira, 05/01/2026"]),
        ("date", ["25/12/20261015", "01/02/2026"]),  # a time of day without separators
        ("date", ["25/12/20261", "01/02/2026"]),  # digits that are no time of day
        ("date", ["Mon, 05/01/2026", "01/02/2026"]),  # a weekday that fits one order only
        ("datetime", ["Mon 01.05.2026 10:15 cet", "01/02/2026 10:15"]),
        ("datetime", ["2026-01-31 10:15 cet", "2026-01-31 10:15", "2026-01-31 10:15-11:00"]),
        ("decimal", ["12,5%", "1.234"]),  # not a number of this type, so no evidence
        ("money", ["1.5\x1f2,5", "1.234"]),
        ("boolean", ["\u200bx", "yes"]),
    ],
)
def test_what_sampling_once_missed(kind, texts):
    assert list(differences(Column({"name": "a", "type": kind}, texts))) == []


def test_a_weekday_settles_the_order_of_its_column():
    column = Column({"name": "a", "type": "date"}, ["Mon, 05/01/2026", "02/03/2026"])
    assert column.values == [date(2026, 1, 5), date(2026, 3, 2)]
    assert [column.remarks(text) for text in column.texts] == [(), ()]


def test_a_weekday_that_contradicts_its_column_is_read_by_its_own_order_and_reported():
    column = Column({"name": "a", "type": "date"}, ["31/12/2025", "25/11/2025", "Mon, 01/05/2026"])
    assert column.values[2] == date(2026, 1, 5)
    assert column.remarks("Mon, 01/05/2026") == ("date_order_mixed",)


def test_zones_in_small_letters_are_sampled_as_they_are_converted():
    texts = ["2026-01-31 10:15 cet", "2026-01-31 10:15", "2026-01-31 10:15-11:00"]
    tally = tally_values(Field({"name": "a", "type": "datetime"}), texts)
    assert (tally.zoned, tally.unzoned) == (1, 1)  # the last one is from a time to another


def test_a_percent_sign_is_evidence_for_other_columns():
    tally = NumberTally()
    tally.add(["12,5%"])
    assert tally.count_pending().comma == 1
    assert tally_values(Field({"name": "a", "type": "decimal"}), ["12,5%"]).comma == 0


LONG = (4096, 8 * 4096)  # characters: a cell holds 32,767
UNITS = (
    " ", "\t", "0", "9", ".", ",", "(", "'", "' ", "\t'", '""', "a", "A", "z ", "@", "a.", "a@", "-", "1 ", ":", "1:", "0.", "1,1",
    "e", "%", "é", "e\u0301", "١", "日", "😀", "a b", "a-1", "www.a", "Total ", "*", ";'a",
)  # fmt: skip


def cost(size: int, folder: Path, kind: str) -> float:
    """CPU seconds of a job whose cells are this long."""
    sink = io.StringIO()
    writer = csv.writer(sink, quoting=csv.QUOTE_ALL)
    writer.writerow(["id", "code", "qty"])
    writer.writerows([f"r{n}", (unit * size)[:size] + "x", n] for n, unit in enumerate(UNITS))
    (folder / "in.csv").write_text(sink.getvalue(), encoding="utf-8")
    fields = [{"name": "id"}, {"name": "code", "type": kind}, {"name": "qty"}]
    manifest = parse_manifest(json.dumps({"manifest": 1, "name": "long", "fields": fields}).encode())
    order = {
        "order": 1, "job": {"job_id": "long"}, "manifest": manifest.model_dump(mode="json"), "params": {},
        "inputs": [{"role": "primary", "name": "in.csv", "path": "in.csv"}],
        "outputs": {"normalized.xlsx": "normalized.xlsx", "artifact.json": "artifact.json"},
        "sandbox": {"driver": "process", "level": "limits", "rungs": {}},
    }  # fmt: skip
    began, channel = process_time(), io.StringIO()
    run_engine(order, channel, folder=folder)
    assert json.loads(channel.getvalue().splitlines()[-1])["ok"]
    return process_time() - began


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["text", "date"])
def test_cells_eight_times_as_long_cost_about_eight_times_as_much(tmp_path, kind):
    cost(LONG[0], tmp_path, kind)  # what is loaded and cached once
    short, long = (cost(size, tmp_path, kind) for size in LONG)
    assert long < 24 * short, f"{long / short:.0f} times"  # 64 if the cost grew with the square


def growth(run, small, large) -> float:
    def least(given) -> float:
        times = []
        for _ in range(3):
            began = process_time()
            run(given)
            times.append(process_time() - began)
        return min(times)

    return least(large) / max(least(small), 1e-5)


@pytest.mark.parametrize("unit", [" ", "\t", "' ", "\t'", ";'a"])
@pytest.mark.parametrize("delimiter", [";", "\t", " "])
def test_a_long_run_of_blanks_or_quotes_is_searched_once(unit, delimiter):
    small, large = ([f"'{unit * (size // len(unit))}\n"] for size in (4_000, 32_000))
    assert growth(lambda lines: _possible_quotes(lines, delimiter), small, large) < 30


def test_a_long_line_without_accents_is_searched_once():
    small, large = (b"a;b\n\xe9\n" + b"x" * size for size in (4_000, 32_000))
    assert growth(lambda body: _scan_as_utf8(io.BytesIO(body)), small, large) < 30
