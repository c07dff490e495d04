"""A hint names a setting that does what the person wants: with the line applied, the finding is gone."""

import json
import re
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from core.errors import ManifestInvalid
from core.fields import directives
from core.manifests import parse_manifest
from tests.support.engine_jobs import Outcome, run_job

ON_FIELD = re.compile(r"(\"[a-z_]+\": (?:\[\"[^\]]*\]|\"[^\"]*\"|true|false))(?: \(or [^)]*\))? on field (\w+)")
READING = re.compile(r"\"reading\": (\{[^{}]*\})")
SYNONYM = re.compile(r"\{\"name\": \"(\w+)\", \"synonyms\": \[[^\]]*\]\}")
NAMES = ["ann", "bob", "cid", "dan", "eva", "fay", "gus", "hal"]


def column(kind: str, values: list[Any], **field: Any) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """A sheet of a name and one more column, and the fields of both."""
    rows = [["name", "x"], *([NAMES[n], value] for n, value in enumerate(values))]
    return rows, [{"name": "name"}, {"name": "x", "type": kind, **field}]


CAPTIONS = [["name", "x"], ["North", None], ["ann", 1], ["bob", 2], ["South", None], ["cid", 3], ["dan", 4]]
GROUPS = [[f"Region: {row[0]}", None] if row[1] is None else row for row in CAPTIONS]
TOTALS = [["name", "x"], ["ann", 1], ["bob", 2], ["cid", 4], ["Total", 7]]
PLAIN = [{"name": "name"}, {"name": "x", "type": "integer"}]
CASES: dict[str, tuple[list[list[Any]], list[dict[str, Any]]]] = {
    "decimal_assumed": column("decimal", ["1.234", "2.345", "5.678"]),
    "date_order_assumed": column("date", ["01/02/2025", "03/04/2025", "05/06/2025"]),
    "date_form_assumed": column("date", [10203, 20304, 30405]),
    "unit_assumed": column("percent", ["45", "12", "0.5"]),
    "currency_mixed": column("money", ["$5.00", "€6.00", "£7.00"]),
    "rows_group": (GROUPS, PLAIN),
    "rows_doubtful": (CAPTIONS, PLAIN),
    "rows_total": (TOTALS, PLAIN),
    "field_unmapped": ([["name", "Betrg"], ["ann", 1], ["bob", 2]], [{"name": "name"}, {"name": "amount"}]),
    "total_assumed": (
        [["name", "x"], ["Bolt", 110.5], ["Nut", 220.25], [None, 330.75]],
        [{"name": "name"}, {"name": "x", "type": "money"}],
    ),
    "header_assumed": (
        [["Ann", "Oslo", "Norway"], ["Bob", "Rome", "Italy"], ["Cid", "Lima", "Peru"], ["Dora", "Bonn", "Germany"]],
        [{"name": "name"}, {"name": "city"}, {"name": "country"}],
    ),
    "mapping_doubtful": (
        [["name", "Worksite location city"], ["ann", "Rome"], ["bob", "Bonn"], ["cid", "Oslo"]],
        [{"name": "name"}, {"name": "worksite_city"}],
    ),
}


def applied(finding: dict[str, Any], rows: list[list[Any]], fields: list[dict[str, Any]]) -> dict[str, Any]:
    """The manifest's keys with the line of a finding in them."""
    said = re.split(r"; to (?:settle it|keep|leave out):", finding["message"], maxsplit=1)[1]
    if found := READING.search(said):
        return {"fields": fields, "reading": json.loads(found[1])}
    if found := ON_FIELD.search(said):
        change, name = json.loads(f"{{{found[1]}}}"), found[2]
    else:
        found = SYNONYM.search(said)
        assert found is not None, f"no manifest line in: {said}"
        letter = re.match("[A-Z]+", finding["cell"])[0]
        change, name = {"synonyms": [rows[0][ord(letter) - 65]]}, found[1]
    return {"fields": [{**f, **change} if f["name"] == name else f for f in fields]}


def codes(done: Outcome) -> set[str]:
    return {f["code"] for f in done.findings}


@pytest.mark.parametrize("code", CASES)
def test_the_line_that_a_finding_names_settles_it(tmp_path, code):
    rows, fields = CASES[code]
    done = run_job(tmp_path / "told", rows, fields=fields)
    finding = next(f for f in done.findings if f["code"] == code)
    again = run_job(tmp_path / "settled", rows, **applied(finding, rows, fields))
    left = [f["message"] for f in again.findings if f["code"] == code and " to keep: " in f["message"]]
    assert not left if code == "rows_group" else code not in codes(again)


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("encoding_assumed", "name,x\nJosé,1\nÅke,2\n".encode("cp1252")),
        ("delimiter_assumed", b"id;name,n\n" + b"".join(b"x%d;y%d,z%d\n" % (i, i, i) for i in range(9))),
    ],
)
def test_so_does_that_of_a_text_file(tmp_path, code, body):
    def text_job(folder: Path, **manifest: Any) -> Outcome:
        folder.mkdir(exist_ok=True)
        (folder / "in.xlsx").write_bytes(body)
        return run_job(folder, None, fields=PLAIN, **manifest)

    done = text_job(tmp_path / "told")
    finding = next(f for f in done.findings if f["code"] == code)
    again = text_job(tmp_path / "settled", reading=json.loads(READING.search(finding["message"])[1]))
    assert code not in codes(again)


def test_hidden_rows_and_columns_can_be_left_out(tmp_path):
    def hidden(folder: Path, **manifest: Any) -> Outcome:
        folder.mkdir()
        book = openpyxl.Workbook()
        for row in [["name", "x", "y"], ["ann", 1, 5], ["bob", 2, 6], ["cid", 3, 7], ["dan", 4, 8]]:
            book.active.append(row)
        book.active.row_dimensions[3].hidden = True
        book.active.column_dimensions["C"].hidden = True
        book.save(folder / "in.xlsx")
        return run_job(folder, None, fields=PLAIN, **manifest)

    done = hidden(tmp_path / "told")
    lines = [READING.search(f["message"])[1] for f in done.findings if f["code"] == "hidden_read"]
    assert len(lines) == 2
    again = hidden(tmp_path / "settled", reading=json.loads(lines[0]) | json.loads(lines[1]))
    assert "hidden_read" not in codes(again)


def test_captions_that_fill_a_column_are_not_told_to_fill_it(tmp_path):
    done = run_job(tmp_path, GROUPS, fields=PLAIN, reading={"group_rows": "fill"})
    (said, *_) = [f["message"] for f in done.findings if f["code"] == "rows_group"]
    assert "to keep" not in said
    assert "column" in said


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("string", "text"), ("number", "decimal"), ("float", "decimal"), ("int", "integer"), ("bool", "boolean"), ("currency", "money"),
        ("timestamp", "datetime"), ("tel", "phone"), ("choice", "enum"), ("dat", "date"), ("Varchar", "text"),
    ],
)  # fmt: skip
def test_a_type_of_another_system_is_understood(given, meant):
    assert f"did you mean {meant}?" in problem({"fields": [{"name": "a", "type": given}]})


@pytest.mark.parametrize(
    ("given", "meant"), [("=", "=="), ("<>", "!="), ("=>", ">="), ("eq", "=="), ("blank", "empty")]
)
def test_so_is_an_operator(given, meant):
    rule = {"name": "r", "then": {"field": "a", "op": given, "value": 1}}
    assert f"did you mean {meant}?" in problem({"fields": [{"name": "a", "type": "integer"}], "rules": [rule]})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("DD.MM.YYYY", "%d.%m.%Y"), ("yyyy-mm-dd", "%Y-%m-%d"), ("MM/DD/YY", "%m/%d/%y"), ("dd-MMM-yyyy", "%d-%b-%Y"),
        ("YYYY-MM-DD HH24:MI:SS", "%Y-%m-%d %H:%M:%S"), ("yyyy-MM-ddTHH:mm:ss", "%Y-%m-%dT%H:%M:%S"), ("d.m.yyyy", "%d.%m.%Y"),
        ("whatever", None), ("", None),
    ],
)  # fmt: skip
def test_a_format_in_letters_is_understood(given, meant):
    assert directives(given) == meant
    if meant:
        assert f"did you mean {meant}?" in problem({"fields": [{"name": "a", "type": "date", "formats": [given]}]})


def problem(manifest: dict[str, Any]) -> str:
    with pytest.raises(ManifestInvalid) as refused:
        parse_manifest(json.dumps({"manifest": 1, "name": "m", **manifest}).encode())
    return str(refused.value)


def test_a_rule_that_wants_the_network_is_told_how_to_ask_for_it(tmp_path):
    rule = "from urllib.error import URLError\ndef transform(*, value):\n    raise URLError('no')\n"
    rows, fields = column("text", ["a", "b"])
    done = run_job(tmp_path, rows, fields=fields, rules={"columns/x.py": rule})
    assert "runtime_network_access" in done.findings[0]["message"]
