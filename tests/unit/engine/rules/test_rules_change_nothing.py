"""A rule that returns what it got changes nothing, however its column is written and whichever way it goes."""

from datetime import date, datetime, time

import pytest

from tests.support.engine_jobs import Outcome, run_job

PER_CHUNK = {"columns/x.py": "def transform(*, values):\n    return values\n"}
WAYS = {
    "per chunk": PER_CHUNK,
    "per cell": {"columns/x.py": "def transform(*, value):\n    return value\n"},
    "late": {"columns/x.py": "def transform(*, value, record):\n    return value\n"},
    "hook": {"hooks/h.py": "def after_transform(*, columns):\n    return {'columns': {'x': columns['x']}}\n"},
    "rule and hook": PER_CHUNK
    | {"hooks/h.py": "def after_transform(*, columns):\n    return {'columns': {'x': columns['x']}}\n"},
}
COLUMNS = {
    "percent as numbers": ({"type": "percent", "unit": "percent"}, [45, 12.5, 7, 80]),
    "percent as texts": ({"type": "percent", "unit": "percent"}, ["45", "12,5", "80 %", "about 3"]),
    "percent without a unit": ({"type": "percent"}, ["45", "12.5", "7", "80"]),
    "shares": ({"type": "percent", "unit": "share"}, [0.45, 0.125, 1, 0.8]),
    "decimal comma": ({"type": "decimal"}, ["1.234,50", "7,25", "12", "n/a"]),
    "money": ({"type": "money"}, ["$1.50", "(3.00)", 4, "free"]),
    "integer": ({"type": "integer"}, ["1,234", 7, 8.0, "none"]),
    "day first": ({"type": "date"}, ["03/04/2026", "25/04/2026", 46000, "soon"]),
    "moments": ({"type": "datetime"}, ["2026-03-01T10:00:00+02:00", datetime(2026, 3, 1, 9), 46000.5, "late"]),
    "times": ({"type": "time"}, ["9:30 pm", time(8, 15), 0.5, "noon-ish"]),
    "dates with formats": ({"type": "date", "formats": ["%Y%m%d"]}, ["20260301", 20260302, date(2026, 3, 3), "x"]),
    "signs": ({"type": "boolean"}, ["x", "-", "x", "?"]),
    "enum": ({"type": "enum", "allowed": ["North", "South"]}, ["north", "SOUTH", " North", "East"]),
    "phones": ({"type": "phone"}, ["+49 (30) 1234", "030-1234", 301234, "none"]),
    "texts": ({"type": "text", "clean": ["strip", "upper"]}, [" a1", 7, 0.5, date(2026, 1, 2)]),
    "a default": ({"type": "percent", "unit": "percent", "default": 0.5}, [45, None, 7, None]),
}


def outcome(folder, spec, cells, **more) -> Outcome:
    rows = [["id", "x"], *([f"A{n}", cell] for n, cell in enumerate(cells))]
    return run_job(folder, rows, fields=[{"name": "id"}, {"name": "x", **spec}], **more)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("column", COLUMNS)
def test_a_rule_that_returns_what_it_got_changes_nothing(column, way, tmp_path):
    spec, cells = COLUMNS[column]
    plain, ruled = outcome(tmp_path / "plain", spec, cells), outcome(tmp_path / "ruled", spec, cells, rules=WAYS[way])
    assert ruled.column("x") == plain.column("x")
    assert ruled.cells("type_error") == plain.cells("type_error")


@pytest.mark.parametrize("texts", [["45%", "12.5%"], ["45", "12.5"]])
def test_a_looked_up_value_is_read_once(texts, tmp_path):
    source = {"lookup": "rates", "key": "id", "match": "code", "column": "rate"}
    done = run_job(
        tmp_path,
        [["id", "n"], ["A0", 1], ["A1", 2]],
        fields=[{"name": "id"}, {"name": "x", "type": "percent", "unit": "percent", "from": source}],
        aux={"rates": "code,rate\n" + "".join(f"A{n},{text}\n" for n, text in enumerate(texts))},
    )
    assert done.column("x") == [0.45, 0.125]


def test_what_a_rule_makes_of_a_percent_column_is_a_share_if_it_is_a_number(tmp_path):
    rule = {"columns/x.py": "def transform(*, value):\n    return value * 2 if isinstance(value, float) else '5'\n"}
    done = outcome(tmp_path, {"type": "percent", "unit": "percent"}, [45, "?"], rules=rule)
    assert done.column("x") == [0.9, 0.05]
