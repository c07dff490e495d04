"""Split outputs: the rows once more, in files by a declared value; all other rows share one file."""

import csv
import io
import json
import random
import re
import zipfile

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ManifestInvalid
from core.manifests import parse_manifest
from runner.boxes import Isolation
from runner.engine.contract import MAX_SPLIT_FILES, OTHER, Order, SplitBy, is_split_file
from runner.engine.job import run as run_engine
from runner.engine.protocol import BadOutput
from runner.engine.verifying.split_column import SplitColumn
from runner.engine.verifying.workbook_check import _SplitCells
from runner.engine.writing.parquet import gzipped, page_body
from runner.engine.writing.typed import ColumnType, TypedColumn
from runner.staging import box_outputs
from tests.support.effort import examples
from tests.support.engine_jobs import run_job
from tests.support.outputs import order_to_verify

ALL = ["xlsx", "csv", "jsonl", "parquet"]
REGIONS = ["North", "South", "Nord/Süd", "=A1", "+x", "北", "a&b <c>", 'O\'Neil, "Q"', "null", "5"]
DIRTY = [
    "NORTH",
    "south ",
    "../../etc/passwd",
    "N0rth",
    "N\u043erth",
    "North\u200b",
    "",
    None,
    5,
    5.0,
    7,
    True,
    "x" * 300,
    "_other",
]


def manifest(allowed, **more):
    return {
        "manifest": 1,
        "name": "test",
        "fields": [{"name": "id", "type": "integer"}, {"name": "region", "type": "enum", "allowed": allowed}],
        "output": {"formats": ALL, "split_by": "region"},
    } | more


def split_job(folder, values, **more):
    """A job over one row for each value."""
    fields = manifest(REGIONS)["fields"] + [{"name": "note"}]
    rows = [["id", "region", "note"], *([n, value, f"n{n}"] for n, value in enumerate(values, 1))]
    return run_job(folder, rows, fields=fields, output={"formats": ALL, "split_by": "region"}, **more)


def read(folder, stem):
    """The rows of all formats of one output, which have to be the same: those of the JSON lines."""
    lines = (folder / f"{stem}.jsonl").read_bytes().decode().splitlines()
    rows = [tuple(json.loads(line).values()) for line in lines]
    table = list(csv.reader(io.StringIO((folder / f"{stem}.csv").read_bytes().decode(), newline="")))
    assert [tuple(cells) for cells in table[1:]] == [tuple(map(_csv_text, row)) for row in rows]
    sheet = openpyxl.load_workbook(folder / f"{stem}.xlsx").worksheets[0]
    cells = [tuple(row) for row in sheet.iter_rows(min_row=2, values_only=True)]
    assert cells == rows
    body = page_body(TypedColumn("region", ColumnType.TEXT), [row[1] for row in rows])
    parquet = (folder / f"{stem}.parquet").read_bytes()
    assert not rows or gzipped(body) in parquet
    return rows


def _csv_text(value):
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(("=", "+")) else text


def stem(label):
    return f"normalized-{label}"


@pytest.mark.parametrize("seed", range(6))
def test_the_parts_together_are_the_whole_cell_by_cell(tmp_path, seed):
    draw = random.Random(seed)
    values = [draw.choice(REGIONS if draw.random() < 0.7 else DIRTY) for _ in range(draw.randint(1, 80))]
    done = split_job(tmp_path, values)
    whole = read(tmp_path, "normalized")
    assert len(whole) == len(values)
    split = SplitBy(field="region", values=tuple(REGIONS))
    parts = {label: read(tmp_path, stem(label)) for label in split.labels}
    for label, value in zip(split.labels, (*REGIONS, None), strict=True):
        mine = [row for row in whole if (row[1] == value if value is not None else row[1] not in REGIONS)]
        assert parts[label] == mine, label
    assert sorted(row for rows in parts.values() for row in rows) == sorted(whole, key=lambda row: row[0])
    assert done.artifact["output"]["split"]["rows"] == {label: len(rows) for label, rows in parts.items()}


def test_no_value_of_a_cell_becomes_a_name_or_leaves_the_data_files(tmp_path):
    canary = ["../../canary-one", "canary-two", "Canary Three"]
    done = split_job(tmp_path, [*canary, "North"])
    names = {path.name for path in tmp_path.iterdir()}
    known = set(box_outputs(parse_manifest(json.dumps(manifest(REGIONS)).encode())))
    assert {name for name in names if is_split_file(name)} == {name for name in known if is_split_file(name)}
    assert "canary" not in json.dumps(done.artifact).casefold()
    assert "canary" not in json.dumps(done.events).casefold()
    assert len(read(tmp_path, stem(OTHER))) == len(canary)


def test_rows_without_a_declared_value_are_a_finding_that_counts_them(tmp_path):
    found = [f for f in split_job(tmp_path, ["North", "Atlantis", None]).findings if f["code"] == "split_other"]
    assert [(f["severity"], f["field"]) for f in found] == [("warning", "region")]
    assert " 2 rows" in found[0]["message"]


def test_a_clean_file_has_no_such_finding_and_every_name_all_the_same(tmp_path):
    done = split_job(tmp_path, ["North", "South"])
    assert "split_other" not in [f["code"] for f in done.findings]
    assert read(tmp_path, stem(OTHER)) == []
    assert read(tmp_path, stem("5")) == []


def test_sorted_deduped_and_rejected_rows_are_split_as_they_are_written(tmp_path):
    values = ["South", "North", "Atlantis", "North", "South"]
    done = split_job(
        tmp_path, values, row_shape={"sort": ["-id"], "dedupe": {"key": ["region"]}}, on_error="keep"
    )  # fmt: skip
    assert [row[0] for row in read(tmp_path, "normalized")] == [3, 2, 1]
    assert read(tmp_path, stem("north")) == [(2, "North", "n2")]
    assert done.artifact["output"]["split"]["rows"][OTHER] == 1


def test_what_a_rule_makes_of_a_value_decides(tmp_path):
    rules = {"columns/region.py": "def transform(*, value):\n    return {'value': 5 if value == 'South' else value}\n"}
    split_job(tmp_path, ["South", "North"], rules=rules)
    assert [row[1] for row in read(tmp_path, stem("5"))] == ["5"]
    assert [row[1] for row in read(tmp_path, "normalized")] == ["5", "North"]


def test_a_job_that_fails_has_no_parts(tmp_path):
    done = split_job(tmp_path, ["Atlantis"], max_error_rate=0.1)
    assert done.error["code"] == "rows_rejected"
    assert "split" not in done.artifact["output"]


# The verification


def verified(folder, fields=None):
    """What the verifier says of the outputs in a folder."""
    checked = parse_manifest(json.dumps(manifest(REGIONS, fields=fields)).encode())
    order = Order.decode(
        {
            "order": 1,
            "job": {"job_id": "acme-test-1", "tenant": "acme", "workflow": "test", "attempt": 1},
            "manifest": checked.model_dump(mode="json"),
            "params": {},
            "inputs": [{"role": "primary", "name": "in.xlsx", "path": "in.xlsx", "size": 1, "sha256": "0" * 64}],
            "config": {"path": None, "digest": "0" * 8},
            "outputs": {},
            "sandbox": {"driver": "process", "level": "limits"},
        }
    )
    # As the runner collects them: a file without a byte was not written.
    names = [
        n for n in box_outputs(checked) if n != "review.json" and (folder / n).exists() and (folder / n).stat().st_size
    ]
    box = Isolation(driver="process", level="limits", rungs={}, gaps=())
    channel = io.StringIO()
    run_engine(order_to_verify(order, names, box).encode(), channel, folder=folder)
    return json.loads(channel.getvalue())


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """The outputs of a job with as many rows in one part as in another, and in the rest."""
    folder = tmp_path_factory.mktemp("honest")
    split_job(folder, ["North", "South", "Atlantis", "North", "South", None])
    return {path.name: path.read_bytes() for path in folder.iterdir()}


FIELDS = [*manifest(REGIONS)["fields"], {"name": "note"}]


def forged(tmp_path, bodies, **changed):
    for name, body in {**bodies, **changed}.items():
        if body is not None:
            (tmp_path / name).write_bytes(body)
    return verified(tmp_path, FIELDS)


def test_what_the_engine_wrote_is_accepted(tmp_path, honest):
    assert forged(tmp_path, honest)["ok"]


def test_a_result_without_rows_has_no_json_lines_and_is_accepted(tmp_path):
    split_job(tmp_path, [], min_rows=0)
    said = verified(tmp_path, FIELDS)
    assert said["ok"], said


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(("one", "other"), [("north", "south"), ("north", OTHER), (OTHER, "south")])
def test_rows_of_another_part_are_refused(tmp_path, honest, kind, one, other):
    swapped = {
        f"{stem(one)}.{kind}": honest[f"{stem(other)}.{kind}"],
        f"{stem(other)}.{kind}": honest[f"{stem(one)}.{kind}"],
    }
    said = forged(tmp_path, honest | swapped)
    assert said["error"]["code"] == "bad_output"
    assert re.match(r"normalized-[a-z_]+\.", said["error"]["message"]), said


@pytest.mark.parametrize("kind", ALL)
def test_a_part_that_lacks_rows_or_is_missing_is_refused(tmp_path, honest, kind):
    name = f"{stem('north')}.{kind}"
    said = forged(tmp_path, honest | {name: honest[f"{stem('null')}.{kind}"]})["error"]["message"]
    assert "counts 2 rows" in said or "did not write" in said
    (tmp_path / name).unlink()
    assert f"did not write {name}" in forged(tmp_path, honest | {name: None})["error"]["message"]


def test_another_spelling_of_a_declared_value_does_not_hide_it_among_the_rest(tmp_path, honest):
    name = f"{stem(OTHER)}.jsonl"
    spelled = honest[name].replace(b'"Atlantis"', b'"\\u004eorth"')
    assert spelled != honest[name]
    assert forged(tmp_path, honest | {name: spelled})["error"]["code"] == "bad_output"


def test_a_formula_in_a_part_is_refused(tmp_path, honest):
    name = f"{stem('north')}.csv"
    assert forged(tmp_path, honest | {name: honest[name].replace(b"n1", b"=1")})["error"]["code"] == "bad_output"


def _artifact(honest, **split):
    document = json.loads(honest["artifact.json"])
    document["output"]["split"] |= split
    return {"artifact.json": json.dumps(document).encode()}


def test_an_artifact_with_another_split_is_refused(tmp_path, honest):
    rows = json.loads(honest["artifact.json"])["output"]["split"]["rows"]
    for wrong in (
        {"field": "note"},
        {"rows": rows | {"north": 3}},
        {"rows": dict(reversed(rows.items()))},
        {"rows": {}},
    ):
        assert forged(tmp_path, honest | _artifact(honest, **wrong))["error"]["code"] == "bad_output", wrong


def test_a_cell_that_names_another_row_is_refused(tmp_path, honest):
    """A workbook whose cell says that it is in another row would be read differently by different readers."""
    book = zipfile.ZipFile(io.BytesIO(honest[f"{stem('north')}.xlsx"]))
    sheet = book.read("xl/worksheets/sheet1.xml").partition(b'<row r="2">')[2].partition(b"</sheetData>")[0]
    column = SplitColumn(1, frozenset(REGIONS), "North")
    for good, bad in ((b"B2", b"B3"), (b"North", b"South"), (b'r="B2"', b'r="C2"')):
        with pytest.raises(BadOutput, match="another file"):
            check_cells(column, b'<row r="2">' + sheet.replace(good, bad, 1))


def test_a_value_that_looks_like_an_escape_is_split_and_an_escaped_value_hides_nowhere(tmp_path):
    fields = [{"name": "region", "allowed": ["_x004E_orth", "North"], "default": "_x004E_orth"}, {"name": "id"}]
    output = {"formats": ["xlsx", "jsonl"], "split_by": "region"}
    run_job(tmp_path, [["region", "id"], ["North", 1], [None, 2]], fields=fields, output=output)
    rows = (tmp_path / "normalized-x004e-orth.xlsx").read_bytes()
    sheet = zipfile.ZipFile(io.BytesIO(rows)).read("xl/worksheets/sheet1.xml")
    cells = b'<row r="2">' + sheet.partition(b'<row r="2">')[2].partition(b"</sheetData>")[0]
    check_cells(SplitColumn(0, frozenset(), "_x004E_orth"), cells)
    hidden = cells.replace(b"_x005F_x004E_orth", b"_x004E_orth")
    assert hidden != cells
    for value in (None, "North"):
        with pytest.raises(BadOutput, match="another file"):
            check_cells(SplitColumn(0, frozenset({"North"}), value), hidden)


def check_cells(column, rows):
    cells = _SplitCells(column)
    cells.check(rows)
    cells.end()


# Names


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.text(min_size=1, max_size=40).filter(str.isprintable), min_size=1, max_size=60, unique=True))
def test_every_set_of_values_gives_as_many_names_that_no_file_system_confuses(values):
    split = SplitBy(field="f", values=tuple(values))
    names = split.files(["csv"])
    assert len({name.casefold() for name in names}) == len(values) + 1
    assert all(is_split_file(name) for name in names)
    assert split.labels[-1] == OTHER


def test_names_are_what_a_person_expects():
    split = SplitBy(field="f", values=("North", "Nord-Süd", "north", "São Paulo", "北", "南", "Straße 1", "../x"))
    assert split.labels == ("north", "nord-sud", "north-2", "sao-paulo", "value", "value-2", "strasse-1", "x", OTHER)


# Manifests


def problem(document):
    with pytest.raises(ManifestInvalid) as refused:
        parse_manifest(json.dumps(document).encode())
    return refused.value.problems[0]


@pytest.mark.parametrize(
    ("allowed", "at"),
    [
        ([1, 2], "$.fields[1].allowed[0]"),
        (["North", "North"], "$.fields[1].allowed[1]"),
        (["North", " South"], "$.fields[1].allowed[1]"),
        (["a\nb"], "$.fields[1].allowed[0]"),
        (["x" * 65], "$.fields[1].allowed[0]"),
        ([f"v{n}" for n in range(MAX_SPLIT_FILES // 4)], "$.output.split_by"),
    ],
)
def test_values_that_name_no_file_are_refused(allowed, at):
    assert problem(manifest(allowed)).path == at


@pytest.mark.parametrize(
    "field",
    [
        {"name": "region"},
        {"name": "region", "type": "integer", "allowed": [1]},
        {"name": "region", "type": "enum", "allowed": {"lookup": "plans", "column": "code"}},
        {"name": "other"},
    ],
)
def test_a_field_without_declared_values_is_refused(field):
    document = manifest(REGIONS, fields=[field], inputs={"auxiliary": [{"name": "plans", "path": "plans.csv"}]})
    assert problem(document).path == "$.output.split_by"


def test_as_many_files_as_the_bound_allows_are_written(tmp_path):
    allowed = [f"v{n}" for n in range(MAX_SPLIT_FILES - 1)]
    fields = [{"name": "region", "type": "enum", "allowed": allowed}]
    rows = [["region"], *([f"v{n}"] for n in range(0, MAX_SPLIT_FILES - 1, 7))]
    done = run_job(tmp_path, rows, fields=fields, output={"formats": ["csv"], "split_by": "region"})
    assert sum(done.artifact["output"]["split"]["rows"].values()) == len(rows) - 1
    assert sum(is_split_file(path.name) for path in tmp_path.iterdir()) == MAX_SPLIT_FILES
