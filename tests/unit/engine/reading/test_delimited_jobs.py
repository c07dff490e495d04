"""Text files through a whole job: what the manifest declares is taken, what was a guess is in the artifact."""

import json

import pytest

from core.manifests import parse_manifest
from runner.engine.writing import book
from runner.engine.writing.book import MAX_COLUMNS
from tests.support.engine_jobs import run_order

FIELDS = [{"name": "id", "type": "text"}, {"name": "name", "type": "text"}, {"name": "n", "type": "text"}]


def run(folder, content, *, fields=FIELDS, auxiliary=None, **manifest):
    """One job over one text file, and look-up tables by name."""
    (folder / "in.csv").write_bytes(content)
    spec = {"manifest": 1, "name": "test", "fields": fields, **manifest}
    for name, body in (auxiliary or {}).items():
        (folder / f"{name}.csv").write_bytes(body)
        spec["inputs"] = {"auxiliary": [{"name": name, "path": f"{name}.csv"}]}
    order = {
        "order": 1,
        "job": {"job_id": "acme-test-1", "tenant": "acme", "workflow": "test", "attempt": 1},
        "manifest": parse_manifest(json.dumps(spec).encode()).model_dump(mode="json"),
        "params": {},
        "inputs": [{"role": "primary", "name": "in.csv", "path": "in.csv", "size": 1, "sha256": "0" * 64}]
        + [{"role": "auxiliary", "name": n, "file": f"{n}.csv", "path": f"{n}.csv"} for n in auxiliary or ()],
        "config": {"path": None, "digest": "0" * 8},
        "outputs": {n: n for n in ("normalized.xlsx", "artifact.json", "report.html")},
        "sandbox": {"driver": "process", "level": "limits", "rungs": {"rlimits": True}},
    }
    return run_order(order, folder)


def warnings(outcome):
    return {f["code"]: f for f in outcome.findings if f["severity"] == "warning"}


def test_a_short_file_in_an_older_encoding_is_reported_with_the_line_that_settles_it(tmp_path):
    content = "id,name,n\n1,Žižkov,2\n2,Łódź,3\n".encode("cp1250")
    outcome = run(tmp_path, content)
    told = warnings(outcome).get("encoding_assumed")
    right = outcome.column("name") == ["Žižkov", "Łódź"]
    assert right or told, "neither right nor told"
    if told:
        assert '"reading": {"encoding": "' in told["message"]
    settled = run(tmp_path, content, reading={"encoding": "cp1250"})
    assert settled.column("name") == ["Žižkov", "Łódź"]
    assert "encoding_assumed" not in warnings(settled)


def test_the_choice_of_an_encoding_is_recorded(tmp_path):
    content = ("id,name,n\n" + "".join(f"{i},Müller Köln Größe,{i}\n" for i in range(40))).encode("cp1252")
    outcome = run(tmp_path, content)
    (reading,) = [r for r in outcome.artifact["readings"] if r["kind"] == "encoding"]
    assert (reading["chosen"], reading["sure"]) == ("cp1252", True)
    assert warnings(outcome) == {}


def test_a_declared_delimiter_and_quote_reach_the_reader(tmp_path):
    content = b"id=name=n\n1='a=b'=2\n2='c'=3\n3='d'=4\n"
    outcome = run(tmp_path, content, reading={"delimiter": "=", "quote": "'"})
    assert outcome.rows() == [["id", "name", "n"], ["1", "a=b", "2"], ["2", "c", "3"], ["3", "d", "4"]]


def test_a_toss_up_between_delimiters_is_reported_with_the_line_that_settles_it(tmp_path):
    content = b"id;name,n\n" + b"".join(b"x%d;y%d,z%d\n" % (i, i, i) for i in range(9))
    told = warnings(run(tmp_path, content))["delimiter_assumed"]
    assert '"reading": {"delimiter": "' in told["message"]
    settled = run(tmp_path, content, reading={"delimiter": ";"})
    assert "delimiter_assumed" not in warnings(settled)


def test_an_open_quote_is_reported_with_its_row(tmp_path):
    content = "id,name,n\n" + "".join(f"{i},{chr(34) * (i == 700)}ok,{i}\n" for i in range(1, 1_000))
    outcome = run(tmp_path, content.encode())
    assert outcome.column("id") == [str(i) for i in range(1, 1_000)]
    assert warnings(outcome)["open_quote"]["row"] == 701


def test_no_message_about_a_text_holds_a_value(tmp_path):
    content = 'id,name,n\n1,"sécrêt,2\n2,"a "sécrêt" b",3\n3,sécrêt,4\n'.encode("cp1252")
    outcome = run(tmp_path, content, redact_headers=True)
    assert "sécrêt" not in json.dumps(outcome.artifact, ensure_ascii=False)


def test_a_row_wider_than_the_header_comes_out_whole_or_is_reported(tmp_path):
    content = b"id,name,n\n" + b"1,a,2\n" * 2_500 + b"2,b,3,extra\n"
    outcome = run(tmp_path, content)
    out = [cell for row in outcome.rows() for cell in row]
    assert "extra" in out or [
        f for f in outcome.findings if f.get("row") == 2_502 or f.get("cell", "").endswith("2502")
    ]


def test_many_rows_wider_than_the_header_are_named(tmp_path):
    content = b"id,name,n\n" + b"1,a,2,extra\n" * 30 + b"1,a,2\n" * 4 + b"1,a,2,extra\n"
    (found,) = [f for f in run(tmp_path, content).findings if f["code"] == "wide_row"]
    assert found["message"].startswith("rows 2 to 31, 36 have more cells than the header")


@pytest.mark.parametrize(
    ("unmapped", "most"), [("keep", 100), ("prefix", 100), pytest.param("keep", MAX_COLUMNS, marks=pytest.mark.long)]
)
def test_more_columns_than_a_sheet_holds_are_refused_with_limit_and_remedy(tmp_path, unmapped, most, monkeypatch):
    monkeypatch.setattr(book, "MAX_COLUMNS", most)
    fields = [{"name": name, "type": "text"} for name in ("c5", "x1", "x2")]
    header = ",".join(f"c{n}" for n in range(most))
    body = ",".join("1" * most)
    outcome = run(tmp_path, f"{header}\n{body}\n{body}\n".encode(), fields=fields, mapping={"unmapped": unmapped})
    error = outcome.error
    assert error["code"] == "input_unreadable"
    assert f"the limit of a sheet is {most:,}" in error["message"]
    assert '"unmapped": "drop"' in error["where"]["remedy"]


def test_an_auxiliary_table_says_what_was_a_guess(tmp_path):
    cities = "city,code\nŽižkov,1\nŁódź,2\n".encode("cp1250")
    field = {"name": "city", "type": "enum", "allowed": {"lookup": "cities", "column": "city"}}
    outcome = run(tmp_path, "city,code\nŽižkov,1\nŁódź,2\n".encode(), fields=[field], auxiliary={"cities": cities})
    told = [f for f in outcome.findings if f["code"] == "encoding_assumed"]
    assert told or not [f for f in outcome.findings if f["code"] == "not_allowed"]
    assert all(f["input"] == "cities" for f in told)


@pytest.mark.parametrize("wrapped", ['="007"', '"=""007"""'])
def test_a_field_that_is_wrapped_to_stay_a_text_is_unwrapped(tmp_path, wrapped):
    outcome = run(tmp_path, f'id,name,n\n{wrapped},Ann,="0150"\n="008",Bob,=1+1\n'.encode())
    assert outcome.rows() == [["id", "name", "n"], ["007", "Ann", "0150"], ["008", "Bob", "=1+1"]]
