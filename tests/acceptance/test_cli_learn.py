"""`ade learn` and `ade memory`: what was confirmed goes into a memory and helps with the next file."""

import json

import openpyxl
import pytest

from tests.acceptance.ade import Ade

MANIFEST = {
    "manifest": 1,
    "name": "addresses",
    "fields": [{"name": "street"}, {"name": "city"}, {"name": "plan", "type": "enum", "allowed": ["gold", "silver"]}],
    "mapping": {"unmapped": "keep"},
}
CSV = "Street,Qzx,Vwk,plan\nMayor,a1,Lugo,gold\nSol,b2,Vigo,gld\nLuna,c3,Lugo,silver\n"


@pytest.fixture
def ade(tmp_path):
    ade = Ade(tmp_path, {"ADE_SANDBOX": "process"}, within=True)
    ade.write("manifest.json", MANIFEST)
    ade.write("june.csv", CSV)
    return ade


def learnt(ade, *source, to=("--memory", "m.json"), expect=0):
    return ade("learn", *source, "--manifest", "manifest.json", *to, expect=expect)


def mapped(ade):
    found = ade("map", "june.csv", "--manifest", "manifest.json", "--memory", "m.json", "--json").json
    return {c["header"]: c["field"] for c in found["tables"][0]["columns"]}


def known(ade, *place):
    lines = ade("memory", "show", *(place or ("--memory", "m.json")), "--json").out.splitlines()
    return {(e["header"], e["field"], e["by"]) for e in map(json.loads, lines)}


def tried(ade):
    ade("try", "june.csv", "--manifest", "manifest.json", "--out", "out")
    return ade.home / "out"


def test_an_artifact_teaches_the_columns_that_became_fields(ade):
    tried(ade)
    learnt(ade, "out/artifact.json")
    assert known(ade) == {("Street", "street", ""), ("plan", "plan", "")}


def test_headers_that_were_corrected_in_the_result_are_learnt_with_who_said_so(ade):
    book = openpyxl.load_workbook(tried(ade) / "normalized.xlsx")
    headers = {cell.value: cell for cell in book.worksheets[0][1]}
    headers["city"].value, headers["Vwk"].value = "city_empty", "city"
    book.save(ade.home / "out" / "normalized.xlsx")
    learnt(ade, "out/normalized.xlsx", "--by", "ann")
    assert ("Vwk", "city", "ann") in known(ade)
    assert mapped(ade) == {"Street": "street", "Qzx": None, "Vwk": "city", "plan": "plan"}


def corrected(ade, change):
    """The result of june.csv, changed by a person."""
    path = tried(ade) / "normalized.xlsx"
    book = openpyxl.load_workbook(path)
    change(book.worksheets[0])
    book.save(path)


def test_headers_that_are_labels_are_read_as_their_fields(ade):
    fields = [{"name": "street", "label": "Street name"}, {"name": "city", "label": "Town"}]
    ade.write("manifest.json", MANIFEST | {"fields": fields, "output": {"header": "label"}})
    corrected(ade, lambda sheet: [setattr(c, "value", " town ") for c in sheet[1] if c.value == "Vwk"])
    assert "are both called" in learnt(ade, "out/normalized.xlsx", "--by", "ann", expect=2).err
    corrected(
        ade, lambda sheet: [setattr(c, "value", {"Vwk": " TOWN ", "Town": "x"}.get(c.value, c.value)) for c in sheet[1]]
    )
    assert "Vwk is city" in learnt(ade, "out/normalized.xlsx", "--by", "ann").err
    assert known(ade) == {("Street", "street", "ann"), ("Vwk", "city", "ann")}


@pytest.mark.parametrize(
    ("moved", "unmapped"), [("inserted", "drop"), ("deleted", "drop"), ("rotated", "drop"), ("deleted", "keep")]
)
def test_a_result_whose_columns_were_moved_is_refused_and_teaches_nothing(ade, moved, unmapped):
    def change(sheet):
        rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
        for n, row in enumerate(rows, 1):
            new = {"inserted": ["x", *row], "deleted": [*row[1:], None], "rotated": [*row[1:], row[0]]}[moved]
            for at, value in enumerate(new, 1):
                sheet.cell(n, at).value = value

    ade.write("manifest.json", MANIFEST | {"mapping": {"unmapped": unmapped}})
    corrected(ade, change)
    said = learnt(ade, "out/normalized.xlsx", "--by", "ann", expect=2).err
    assert "columns were moved, added or removed" in said
    assert "change only texts of the header row" in said
    assert not (ade.home / "m.json").exists()


def test_the_files_of_one_tenant_teach_no_other(ade):
    artifact = json.loads((tried(ade) / "artifact.json").read_text())
    artifact["job"]["tenant"] = "globex"
    ade.write("out/artifact.json", artifact)
    said = learnt(ade, "out/artifact.json", to=("--tenant", "acme"), expect=2).err
    assert "is of tenant globex" in said
    learnt(ade, "out/artifact.json", to=("--key", "configs/_shared/a.memory.json"))
    learnt(ade, "out/artifact.json", to=("--tenant", "globex"))


POOR = "Liste,Juni\nStreet,Vwk\nMayor,Lugo\nSol,Vigo\nLuna,Leon\n"
BARE = {"manifest": 1, "name": "addresses", "fields": [{"name": "f1"}, {"name": "f2"}], "mapping": {"unmapped": "keep"}}


def test_an_artifact_teaches_the_shape_of_the_senders_tables(ade):
    ade.write("manifest.json", BARE)
    ade.write("june.csv", POOR)
    ade.write("june.csv.decision.json", {
        "decision": 1, "by": "ann", "remember": False,
        "answers": [{"header_rows": [2]}, {"column": "A", "field": "f1"}, {"column": "B", "field": "f2"}],
    })  # fmt: skip
    tried(ade)
    assert "the shape of 1 table" in learnt(ade, "out/artifact.json", "--by", "ann", "--sender", "north").out
    (shape,) = [
        json.loads(line) for line in ade("memory", "show", "--memory", "m.json", "--shapes", "--json").out.splitlines()
    ]
    assert (shape["sender"], shape["header_rows"], shape["headers"]) == ("north", [2], ["Street", "Vwk"])
    assert "Street, Vwk" in ade("memory", "show", "--memory", "m.json", "--shapes").out
    ade.write("july.csv", POOR.replace("Juni", "Juli") + "Mar,Jaca\n")
    memory = ("--memory", "m.json", "--sender", "north")
    found = ade("map", "july.csv", "--manifest", "manifest.json", *memory, "--json").json
    assert found["tables"][0]["header_rows"] == [2]
    assert ade("memory", "forget", "--memory", "m.json", "--sender", "north", "--json").json["forgotten"] == 3


def test_a_corrected_workbook_without_its_artifact_is_refused_with_the_way_out(ade):
    tried(ade)
    (ade.home / "out" / "artifact.json").unlink()
    assert "ade outputs JOB --to DIR" in learnt(ade, "out/normalized.xlsx", expect=2).err


def test_what_is_learnt_into_the_bucket_is_used_by_the_next_job_and_named_in_its_artifact(ade):
    ade.write(
        "said.jsonl",
        '{"header": "Vwk", "field": "city"}\n{"field": "plan", "value": "GLD", "means": "gold"}\n',
    )
    learnt(ade, "said.jsonl", "--by", "ann", to=("--tenant", "acme"))
    place = ("--tenant", "acme", "--workflow", "addresses")
    assert known(ade, *place) == {("Vwk", "city", "ann")}
    ade("drop", "june.csv", "--manifest", "manifest.json", "--tenant", "acme")
    ade("run", "--drain")
    (job,) = ade("jobs", "--json").json
    artifact = json.loads((ade.bucket / job["outputs"] / "artifact.json").read_text())
    assert {m["header"]: m["target"] for m in artifact["mapping"]}["Vwk"] == "city"
    assert [m["key"] for m in artifact["memories"]] == ["configs/acme/addresses.memory.json"]
    assert artifact["validation"]["by_code"] == {"spelling_learnt": 1}


def test_what_is_forgotten_no_longer_counts(ade):
    ade.write("said.jsonl", '{"header": "Vwk", "field": "city"}\n{"header": "Qzx", "field": null}\n')
    learnt(ade, "said.jsonl", "--by", "ann")
    assert mapped(ade)["Vwk"] == "city"
    assert ade("memory", "forget", "--memory", "m.json", "--header", "VWK", "--json").json["forgotten"] == 1
    assert mapped(ade)["Vwk"] is None
    assert "--header" in ade("memory", "forget", "--memory", "m.json", expect=2).err


def test_headers_that_are_one_to_jobs_are_shown_and_forgotten_together(ade):
    ade.write("a.jsonl", '{"header": "HOUSE_NO", "field": "street"}\n')
    ade.write("b.jsonl", '{"header": "House no", "field": "city"}\n')
    learnt(ade, "a.jsonl", "--by", "ann")
    learnt(ade, "b.jsonl", "--by", "ben")
    lines = ade("memory", "show", "--memory", "m.json").out.splitlines()
    assert ["outvoted" in line for line in lines if "HOUSE_NO" in line or "House no" in line] == [False, True]
    assert "2 forgotten" in ade("memory", "forget", "--memory", "m.json", "--header", "HouseNo").out


def test_a_header_may_hold_signs_that_end_a_line_elsewhere(ade):
    ade.write("said.jsonl", '{"header": "V\u2028w\u0085k", "field": "city"}\r\n')
    learnt(ade, "said.jsonl")
    assert known(ade) == {("V w k", "city", "")}
    assert "'..' part" in ade("memory", "show", "--key", "configs/acme/../../x.memory.json", expect=2).err


def test_an_exported_memory_is_the_memory(ade):
    ade.write("said.jsonl", '{"header": "Vwk", "field": "city", "count": 3}\n')
    learnt(ade, "said.jsonl", to=("--tenant", "acme"))
    ade("memory", "export", "--tenant", "acme", "--workflow", "addresses", "--to", "m.json")
    stored = (ade.bucket / "configs/acme/addresses.memory.json").read_bytes()
    assert (ade.home / "m.json").read_bytes() == stored
    shown = ade("memory", "show", "--memory", "m.json", "--field", "city").out
    assert ("Vwk" in shown, "3" in shown) == (True, True)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"field": "street", "value": "Mayor", "means": "Sol"}', "has no allowed values"),
        ('{"field": "plan", "value": "x", "means": "bronze"}', "not one of the allowed values"),
        ('{"header": "Vwk", "field": "town"}', "no field of the manifest"),
        ('{"header": 7, "field": "city"}', "is a text"),
        ("nonsense", "line 1 is not JSON"),
        ('{"header": "Vwk", "field": ["city"]}', "no field of the manifest"),
        ('{"header": "Vwk", "field": "plan", "value": "gld", "means": "gold"}', "line 1: write"),
        ('{"header": "Vwk", "field": "plan", "value": "gld"}', "line 1: write"),
        ('{"field": "plan", "value": " ", "means": "gold"}', "line 1: write"),
        ('{"field": "plan", "value": "Gold", "means": "silver"}', "means itself"),
    ],
)
def test_a_fact_that_cannot_be_learnt_is_refused_and_nothing_is_written(ade, line, said):
    ade.write("said.jsonl", line)
    assert said in learnt(ade, "said.jsonl", expect=2).err
    assert not (ade.home / "m.json").exists()
