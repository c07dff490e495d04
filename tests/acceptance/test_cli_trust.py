"""`ade test`, `ade diff` and `ade explain`: cases of a package, two results, one cell; at the desk and over the bucket."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from console.desk.cases import write_case
from core.errors import UsageError
from core.settings import Settings
from tests.acceptance.ade import CSV, MEMBERS, Ade, Terminal

SEEN = CSV.replace("12.50", "99.50")


@pytest.fixture
def ade(tmp_path):
    # What untrusted rules would need is no matter here: cases are the author's own.
    return Ade(tmp_path, {"ADE_SANDBOX_MIN_LEVEL": "isolated"}, within=True)


@pytest.fixture
def package(ade):
    ade.write("manifest.json", MEMBERS)
    ade.write("tests/first/input.csv", CSV)
    return ade.home


@pytest.mark.slow
def test_a_case_goes_from_new_to_expected_to_failed_and_back(ade, package):
    assert "nothing is expected of it yet" in ade("test", expect=1).out
    refused = ade("test", "--update", expect=2)
    assert "input!4,M000001,12.5" in refused.out
    assert "ade test --update --yes" in refused.err
    assert not (package / "tests/first/expected.csv").exists()
    ade("test", "--update", "--yes")
    assert (package / "tests/first/expected.csv").read_text().splitlines() == [
        "source,member_id,gross_pay",
        "input!4,M000001,12.5",
        "input!5,M000002,7",
    ]
    assert "1 case: 1 passed" in ade("test").out
    ade.write("tests/first/input.csv", SEEN)
    failed = ade("test", "--junit", "report.xml", expect=1)
    assert "B2 (from input!4) gross_pay: expected 12.5, got 99.5" in failed.out
    (case,) = ET.parse(package / "report.xml").iter("testcase")
    assert case.get("name") == "first"
    assert "expected 12.5, got 99.5" in case.find("failure").text
    (one,) = ade("test", "--json", expect=1).json["cases"]
    assert (one["verdict"], one["differences"]["cells_by_column"]) == ("failed", {"gross_pay": 1})
    assert ade("test", "--update", "--yes", "--json").json["changed"] == ["first"]
    ade("test")


def test_on_a_terminal_an_update_asks(ade, package):
    with Terminal(ade, "test", "--update") as terminal:
        terminal.until("from now on? [y/N]")
        terminal.type("y\r")
        assert terminal.end() == 0
    assert (package / "tests/first/expected.json").exists()


def test_failures_sweeps_and_several_files_are_cases_too(ade, package):
    ade.write("tests/first/input.csv", "")
    ade.write("tests/other/input/a.csv", CSV)
    ade.write("tests/other/input/b.csv", CSV)
    swept = MEMBERS | {"inputs": {"per": "drop"}, "params": {"fixed": 1}, "sweep": {"rate": [1, 2]}}
    ade.write("manifest.json", swept)
    ade("test", "--update", "--yes")
    names = {path.name for path in (package / "tests/other").iterdir()}
    assert names == {"input", *(f"expected-rate={n}.{end}" for n in (1, 2) for end in ("csv", "json"))}
    rows = (package / "tests/other/expected-rate=1.csv").read_text().splitlines()
    assert rows[1].startswith("a.csv/a!4,")
    assert json.loads((package / "tests/first/expected-rate=1.json").read_text())["status"] == "FAILED (empty_input)"
    assert "4 cases: 4 passed" in ade("test").out
    ade.write("manifest.json", swept | {"sweep": {"rate": [1, 3]}})
    told = ade("test", "--case", "other", expect=1).out
    assert "expected-rate=2.json belongs to no job of this case" in told
    assert "3 cases: 1 passed, 1 new, 1 broken" in told


def test_a_case_that_cannot_be_run_is_broken_and_says_why(ade, package):
    ade.write("tests/first/input.tsv", "a\tb\n1\t2\n")
    ade.write("tests/second/members.csv", CSV)
    ade.write("tests/unit/test_rules.py", "")
    told = ade("test", expect=1).out
    assert "takes one file at a time" in told
    assert "tests/second has no input; call its file input.xlsx" in told
    assert "2 cases: 2 broken" in told


@pytest.mark.parametrize(
    ("words", "why"),
    [(("test", "nowhere"), "manifest nowhere: no such file or folder"), (("test", "--case", "x*"), "there are: first")],
)
def test_what_is_not_there_is_named(ade, package, words, why):
    assert why in ade(*words, expect=2).err


def test_cases_are_no_part_of_the_config(ade, package):
    ade.write("manifest.json", MEMBERS | {"config": "."})
    ade.write("columns/member_id.py", "def transform(*, value):\n    return value\n")

    def digest():
        ade("try", "tests/first/input.csv", "--manifest", "manifest.json", "--out", "out")
        return json.loads((package / "out/result.json").read_text())["config_digest"]

    before = digest()
    ade("test", "--update", "--yes")
    assert digest() == before


def test_a_sample_becomes_a_case(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps(MEMBERS))
    (tmp_path / "Members June.csv").write_text(CSV)
    settings = Settings.from_env({"ADE_STORAGE_DATA_DIR": str(tmp_path / "data")})
    sample = tmp_path / "Members June.csv"
    written = write_case(tmp_path / "manifest.json", sample, settings=settings)
    assert [path.relative_to(tmp_path) for path in written] == [
        Path("tests/sample/input.csv"),
        Path("tests/sample/expected.json"),
        Path("tests/sample/expected.csv"),
    ]
    with pytest.raises(UsageError, match="exists already"):
        write_case(tmp_path / "manifest.json", sample, settings=settings)


def test_two_results_are_compared_and_a_cell_is_explained_from_folders_and_jobs(ade, package):
    job = ade.dropped()
    ade("run", "--drain")
    ade.write("seen.csv", SEEN)
    ade("try", "seen.csv", "--manifest", "manifest.json", "--out", "out")
    found = ade("diff", job, "out", "--json", expect=1).json
    assert found["breaking"] is True
    assert found["cells_by_column"] == {"gross_pay": 1}
    assert "no differences" in ade("diff", "out", "out").out
    told = ade("explain", job, "B2").out
    assert "cell B4" in told
    assert "is gross_pay" in told
    assert "no row 9" in ade("explain", "out", "B9", expect=2).err
    assert "no result.json" in ade("diff", "tests", "out", expect=2).err
    assert "no such folder" in ade("explain", "a/b", "B2", expect=2).err


def test_a_case_has_its_rows_whatever_formats_the_manifest_asks_for(ade, package):
    ade.write("manifest.json", MEMBERS | {"output": {"formats": ["csv"]}})
    ade("test", "--update", "--yes")
    assert len((package / "tests/first/expected.csv").read_text().splitlines()) == 3
    ade("try", "tests/first/input.csv", "--manifest", "manifest.json", "--out", "out")
    assert "no normalized.xlsx" in ade("diff", "out", "out", expect=2).err


def test_jobs_are_listed_by_their_outcome(ade, package):
    ade.write("manifest.json", MEMBERS)
    good = ade.dropped()
    bad = ade.dropped(tenant="other", csv=CSV.replace("7\n", "seven\n"))
    ade("run", "--drain")
    assert [job["job_id"] for job in ade("jobs", "--outcome", "errors", "--json").json] == [bad]
    assert [job["job_id"] for job in ade("jobs", "--outcome", "clean", "--json").json] == [good]
    assert re.search(r"^outcome +errors$", ade("status", bad).out, re.MULTILINE)
