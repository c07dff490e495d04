"""`ade try`, `ade init` and `ade scan`: work at the desk, with no bucket."""

import importlib.util
import json
import zipfile

import pytest

from tests.acceptance.ade import CSV, MEMBERS, Ade

NAMES = {"normalized.xlsx", "artifact.json", "report.html", "logs.txt", "result.json"}
PLANS = {
    **MEMBERS,
    "inputs": {"auxiliary": [{"name": "plans", "path": "lookups/plans.csv"}]},
    "fields": [
        {"name": "member_id", "synonyms": ["member #"]},
        {"name": "plan", "type": "enum", "allowed": {"lookup": "plans", "column": "code"}},
    ],
}


@pytest.fixture
def ade(tmp_path):
    return Ade(tmp_path, {"ADE_SANDBOX_MIN_LEVEL": "limits"}, within=True)


def tried(ade, *files, expect=0, **env):
    return ade("try", *files, "--manifest", "manifest.json", "--out", "out", expect=expect, **env)


def result(ade, place="out"):
    return json.loads((ade.home / place / "result.json").read_text())


def test_a_try_writes_what_outputs_would_hold_and_touches_no_bucket(ade):
    ade.write("m.csv", CSV)
    ade.write("manifest.json", MEMBERS)
    tried(ade, "m.csv")
    assert {path.name for path in (ade.home / "out").iterdir()} == NAMES
    assert result(ade)["status"] == "SUCCEEDED"
    assert not ade.data.exists()


def test_a_try_explains_its_decisions(ade):
    ade.write("m.csv", CSV)
    ade.write("manifest.json", MEMBERS)
    assert "“Member #” is member_id" in tried(ade, "m.csv").out


def test_several_files_get_a_folder_each(ade):
    ade.write("a.csv", CSV)
    ade.write("b.csv", CSV)
    ade.write("manifest.json", MEMBERS)
    tried(ade, "a.csv", "b.csv")
    assert [result(ade, f"out/{name}")["subject"] for name in ("a.csv", "b.csv")] == ["a.csv", "b.csv"]


def test_a_manifest_per_drop_makes_one_result_of_several_files(ade):
    ade.write("a.csv", CSV)
    ade.write("b.csv", CSV)
    ade.write("manifest.json", {**MEMBERS, "inputs": {"per": "drop"}})
    tried(ade, "a.csv", "b.csv")
    assert [i["name"] for i in result(ade)["inputs"]] == ["a.csv", "b.csv"]


def test_a_sweep_gives_a_result_per_combination(ade):
    ade.write("m.csv", CSV)
    ade.write("manifest.json", {**MEMBERS, "sweep": {"rate": [1, 2]}})
    done = ade("try", "m.csv", "--manifest", "manifest.json", "--out", "out", "--json").json
    assert sorted(one["result"]["params"]["rate"] for one in done) == [1, 2]
    assert len({one["out"] for one in done}) == 2


def test_file_names_do_not_have_to_match_at_the_desk(ade):
    ade.write("old copy.csv", CSV)
    ade.write("manifest.json", {**MEMBERS, "inputs": {"primary": ["members-*.xlsx"]}})
    said = tried(ade, "old copy.csv").out
    assert result(ade)["status"] == "SUCCEEDED"
    assert "A drop of old copy.csv would not be selected: inputs.primary is members-*.xlsx." in said


RULE = "def on_job_start(*, log):\n    print('the rule ran')\n"


def test_a_config_folder_beside_the_manifest_is_used_unnamed(ade):
    ade.write("m.csv", CSV)
    ade.write("manifest.json", MEMBERS)
    ade.write("config/hooks/hello.py", RULE)
    tried(ade, "m.csv")
    assert (ade.home / "out/logs.txt").read_text() == "the rule ran\n"


def test_a_config_zip_beside_the_manifest_is_used_unnamed(ade):
    ade.write("m.csv", CSV)
    ade.write("manifest.json", MEMBERS)
    with zipfile.ZipFile(ade.home / "config.zip", "w") as archive:
        archive.writestr("hooks/hello.py", RULE)
    tried(ade, "m.csv")
    assert (ade.home / "out/logs.txt").read_text() == "the rule ran\n"


def test_a_rule_that_raises_fails_the_try_and_is_named(ade):
    ade.write("m.csv", CSV)
    ade.write("manifest.json", {**MEMBERS, "on_rule_error": "fail"})
    ade.write("config/hooks/broken.py", "def on_job_start(*, log):\n    raise ValueError('x')\n")
    done = tried(ade, "m.csv", expect=1)
    assert result(ade)["error"]["fault"] == "config"
    assert "broken.py" in done.out


def test_a_failed_try_leaves_no_workbook_of_an_earlier_one(ade):
    ade.write("m.csv", CSV)
    ade.write("manifest.json", MEMBERS)
    tried(ade, "m.csv")
    (ade.home / "m.xlsx").write_bytes(b"PK\x03\x04 no workbook")
    tried(ade, "m.xlsx", expect=1)
    assert not (ade.home / "out/normalized.xlsx").exists()


def test_look_up_tables_are_found_beside_the_manifest(ade):
    ade.write("m.csv", "Member #,Plan\nM1,A\nM2,Z\n")
    ade.write("manifest.json", PLANS)
    ade.write("lookups/plans.csv", "code,title\nA,Basic\n")
    tried(ade, "m.csv")
    assert result(ade)["summary"]["findings"]["error"] == 1


def test_a_look_up_table_that_is_missing_is_named(ade):
    ade.write("m.csv", CSV)
    ade.write("manifest.json", PLANS)
    assert "lookups/plans.csv" in tried(ade, "m.csv", expect=2).err


def test_a_manifest_that_does_not_validate_lists_every_problem(ade):
    ade.write("m.csv", CSV)
    ade.write("manifest.json", {"manifest": 1, "name": "x", "feilds": [], "priority": 99})
    said = tried(ade, "m.csv", expect=2).err
    assert "$.feilds" in said
    assert "$.priority" in said


def test_a_limit_that_is_hit_ends_the_try(ade):
    ade.write("m.csv", CSV)
    ade.write("manifest.json", {**MEMBERS, "limits": {"timeout_seconds": 1}})
    ade.write("config/hooks/slow.py", "import time\ndef on_job_start(*, log):\n    time.sleep(60)\n")
    tried(ade, "m.csv", expect=3)
    assert result(ade)["status"] == "TIMED_OUT"


def test_what_init_makes_works_as_it_is(ade):
    ade("init", "package")
    done = ade("try", "package/sample.csv", "--manifest", "package/manifest.json", "--out", "out")
    found = json.loads((ade.home / "out/artifact.json").read_text())["validation"]
    assert "columns.member_id.detect_by_pattern" in done.out
    assert found["by_code"]["member_id_form"] == 1
    assert "rule_error" not in found["by_code"]


def test_init_does_not_write_over_anything(ade):
    ade.write("package/mine.txt", "x")
    ade("init", "package", expect=2)
    assert [path.name for path in (ade.home / "package").iterdir()] == ["mine.txt"]


def test_init_drafts_from_the_samples_that_have_rows(ade):
    ade.write("-m.csv", CSV)
    ade.write("header.csv", CSV.splitlines()[0] + "\n")
    ade.write("blank.csv", "")
    done = ade("init", "drafted", "--from", "./-m.csv", "header.csv", "blank.csv")
    assert "header.csv: no table was found, so it was not used" in done.out
    assert "blank.csv: no table was found, so it was not used" in done.out
    assert "drafted/tests/m: the first test" in done.out
    assert "ade try ./-m.csv --manifest " in done.err
    ade.write("template.csv", "Name,City,Amount\n")
    refused = ade("init", "other", "--from", "template.csv", expect=2)
    assert "give an empty template with --target instead" in refused.err
    assert not (ade.home / "other").exists()


scans = pytest.mark.skipif(
    importlib.util.find_spec("runner.engine.scan") is None, reason="this build has no structure scan"
)


@scans
def test_a_scan_gives_one_line_a_file_and_goes_on_after_a_bad_one(ade):
    ade.write("a.csv", CSV)
    (ade.home / "b.xlsx").write_bytes(b"PK\x03\x04 no workbook")
    ade.write("c.csv", CSV)
    lines = ade("scan", "a.csv", "b.xlsx", "c.csv", "--json", expect=1).lines
    assert [("error" in line, line["file"]) for line in lines] == [(False, "a.csv"), (True, "b.xlsx"), (False, "c.csv")]


def test_a_map_gives_each_column_its_field_and_goes_on_after_a_bad_file(ade):
    ade.write("m.json", json.dumps({"manifest": 1, "name": "m", "fields": [{"name": "plan"}, {"name": "city"}]}))
    ade.write("a.csv", "Plan,Mystery\ngold,x\ntin,y\n")
    (ade.home / "b.xlsx").write_bytes(b"PK\x03\x04 no workbook")
    found, bad = ade("map", "a.csv", "b.xlsx", "--manifest", "m.json", "--json", expect=1).lines
    columns = {c["header"]: c["field"] for table in found["tables"] for c in table["columns"]}
    assert (columns, "error" in bad) == ({"Plan": "plan", "Mystery": None}, True)
    assert "gold" not in json.dumps(found)


@scans
def test_a_scan_for_people_shows_where_the_table_is(ade):
    ade.write("a.csv", CSV)
    assert "A3:B5" in ade("scan", "a.csv").out


def test_a_file_with_none_of_the_fields_fails_with_the_headers_it_has(ade):
    ade.write("m.csv", "Mystery A,Mystery B\nOslo,2024-01-03\nRome,2024-02-03\nLima,2024-03-03\n")
    ade.write("manifest.json", MEMBERS)
    done = tried(ade, "m.csv", expect=1)
    assert "A “Mystery A”" in done.out
    assert {path.name for path in (ade.home / "out").iterdir()} == NAMES - {"normalized.xlsx"}
    assert result(ade)["error"]["verdict"] == "nothing_mapped"
    assert result(ade)["error"]["fault"] == "input"
