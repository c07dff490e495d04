"""From three samples to fifty senders without a line of JSON: draft, test, share, drop."""

import csv
import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import openpyxl
import pytest

from tests.acceptance.ade import Ade, Terminal
from tests.support.effort import FULL
from tests.support.engine_jobs import workbook

PLANS = ("basic", "family", "student", "senior")
NAMES = ("Ann Lee", "Bob Fox", "Eva Ray", "Tom Kim", "Mia Cruz")
# How senders head their columns, write dates and numbers, and separate cells.
WAYS = (
    (("Member #", "Name", "Start", "Gross pay", "Plan", "ZIP"), "%Y-%m-%d", ".", ","),
    (("Mitgliedsnummer", "Name", "Beginn", "Gehalt", "Plan", "PLZ"), "%d.%m.%Y", ",", ";"),
    (("Member ID", "Full name", "Start date", "Salary", "Plan", "Zip code"), "%m/%d/%Y", ".", ","),
    (("MEMBER NO", "NAME", "START DATE", "PAY", "PLAN", "ZIPCODE"), "%d/%m/%Y", ".", "\t"),
)


def records(seed, rows=40):
    """What a sender means: number, name, day, pay, plan, postcode."""
    rng = random.Random(seed)
    numbers = rng.sample(range(10**6), rows)
    return [
        (f"M{number:06}", rng.choice(NAMES), (rng.randint(2019, 2025), rng.randint(1, 12), rng.randint(13, 28)),
         rng.randint(100_00, 9000_00) / 100, PLANS[n % len(PLANS)], f"{rng.randrange(100_000):05}")
        for n, number in enumerate(numbers)
    ]  # fmt: skip


def write(path, seed, way, rows=40):
    """A file of a sender, in its own way; with a title and a total, as such files have them."""
    headers, form, decimal, delimiter = WAYS[way]
    known = records(seed, rows)
    body = []
    for number, name, (year, month, day), pay, plan, postcode in known:
        written = form.replace("%Y", f"{year}").replace("%m", f"{month:02}").replace("%d", f"{day:02}")
        body.append([number, name, written, f"{pay:.2f}".replace(".", decimal), plan, postcode])
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".xlsx":
        workbook(path, {"Members": [["Members 2026"], [], list(headers), *body]})
    else:
        with path.open("w", newline="", encoding="utf-8") as out:
            csv.writer(out, delimiter=delimiter).writerows([headers, *body])
    return known


@pytest.fixture
def ade(tmp_path):
    return Ade(tmp_path, {"ADE_SANDBOX_MIN_LEVEL": "limits", "ADE_QUEUE_SIZE": "1000"}, within=True)


@pytest.mark.slow
def test_three_samples_become_a_tested_workflow_that_fifty_senders_share(ade):
    """With ADE_TEST_FULL=1 there are fifty, otherwise fifteen: each is a job."""
    for way in range(3):
        write(ade.home / f"sample{way}.csv", way, way)
    ade("init", "members", "--from", "sample0.csv", "sample1.csv", "sample2.csv", "--shared")
    assert "1 passed" in ade("test", "members").out
    shutil.copytree(ade.home / "members", ade.bucket / "configs" / "_shared" / "members")
    known = {}
    for n in range(50 if FULL else 15):
        way = n % len(WAYS)
        path = ade.bucket / "inbox" / f"tenant{n}" / "members" / f"june-{n}{'.xlsx' if n % 5 == 4 else '.csv'}"
        known[path] = write(path, 1000 + n, way, rows=10 + n % 7)
    ade("sweep")
    ade("run", "--drain")
    for path, records_sent in known.items():
        place = ade.bucket / "outputs" / path.relative_to(ade.bucket / "inbox") / "members"
        latest = json.loads((place / "latest.json").read_bytes())
        book = openpyxl.load_workbook(place / latest["job_id"] / "normalized.xlsx")
        header, *rows = book.worksheets[0].iter_rows(values_only=True)
        assert header == ("member_number", "name", "start", "gross_pay", "plan", "zip"), path
        got = [(r[0], r[1], (r[2].year, r[2].month, r[2].day), r[3], r[4], r[5]) for r in rows]
        assert got == records_sent, path
        artifact = json.loads((place / latest["job_id"] / "artifact.json").read_bytes())
        assert artifact["validation"]["by_severity"].get("error", 0) == 0, path


def test_what_is_unsure_is_asked_on_a_terminal(ade):
    body = [["Remark", "Due"], *([f"word {n}", f"{n % 12 + 1:02}/{(n * 5) % 12 + 1:02}/2026"] for n in range(40))]
    with (ade.home / "sample.csv").open("w", newline="") as out:
        csv.writer(out).writerows(body)
    with Terminal(ade, "init", "orders", "--from", "sample.csv") as screen:
        screen.until("does the day come before the month?")
        screen.type("y\n")
        screen.end()
    manifest = json.loads((ade.home / "orders" / "manifest.json").read_text())
    assert manifest["fields"][1]["formats"] == ["%d/%m/%Y"]
    assert manifest["fields"][1]["day_first"] is True


def test_elsewhere_the_safe_choice_is_taken_and_reported(ade):
    body = [["Remark", "Due"], *([f"word {n}", f"{n % 12 + 1:02}/{(n * 5) % 12 + 1:02}/2026"] for n in range(40))]
    with (ade.home / "sample.csv").open("w", newline="") as out:
        csv.writer(out).writerows(body)
    done = ade("init", "orders", "--from", "sample.csv", "--json").json
    (decision,) = [one for one in done["decisions"] if one["kind"] == "date_order"]
    assert (decision["field"], decision["answer"], decision["by"]) == ("due", "no", "the safe choice")
    assert done["files"] == [
        "manifest.json",
        "tests/sample/expected.csv",
        "tests/sample/expected.json",
        "tests/sample/input.csv",
    ]


def test_rules_that_the_samples_break_are_dropped_but_those_of_a_contract_stay(ade):
    ade.write("table.sql", "CREATE TABLE t (id text NOT NULL, qty integer CHECK (qty <= 5));")
    with (ade.home / "sample.csv").open("w", newline="") as out:
        csv.writer(out).writerows([["id", "qty"], *([f"a{n}", n] for n in range(10))])
    done = ade("init", "bound", "--from", "sample.csv", "--contract", "table.sql", "--json").json
    assert "qty: the samples break it (max)" in done["notes"]
    assert json.loads((ade.home / "bound" / "manifest.json").read_text())["fields"][1]["max"] == 5


def test_a_template_is_a_target_and_a_contract_needs_no_samples(ade):
    ade.write("table.sql", "CREATE TABLE t (member_id text PRIMARY KEY, start_date date, pay numeric);")
    ade("init", "members", "--contract", "table.sql")
    ade("template", "members", "--out", "blank.xlsx")
    write(ade.home / "sample.csv", 1, 1)
    ade("init", "again", "--from", "sample.csv", "--target", "blank.xlsx")
    fields = json.loads((ade.home / "again" / "manifest.json").read_text())["fields"]
    assert [(f["name"], f["type"]) for f in fields] == [("member_id", "text"), ("start_date", "date"), ("pay", "money")]
    assert ade("contract", "export", "--to", "postgres", "again").out.startswith('CREATE TABLE "again"')


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--from", "none.csv"), "none.csv: no such file"),
        (("--from", "bad.csv"), "no table was found in the samples"),
        (("--from", "letter.rtf"), "not a spreadsheet. Export the data"),
        (("--contract", "bad.csv"), "bad.csv"),
        (("--target", "bad.csv", "--contract", "bad.csv"), "give one of them"),
        (("--shared",), "--shared is for a draft"),
    ],
)
def test_what_cannot_be_drafted_from_is_refused(ade, words, problem):
    ade.write("bad.csv", "")
    ade.write("letter.rtf", "{\\rtf1 Name}")
    assert problem in ade("init", "package", *words, expect=2).err
    assert not (ade.home / "package").exists()


def test_a_package_that_is_not_there_is_named(ade):
    assert "manifest members: no such file or folder" in ade("test", "members", expect=2).err


def test_a_folder_behind_the_samples_is_asked_for_in_front(ade):
    told = ade("init", "--from", "sample.csv", "members", expect=2).err
    assert "name the new folder first: ade init members --from sample.csv" in told


def test_the_field_that_the_page_shows_is_the_one_that_is_drafted(ade):
    page = (Path(__file__).parents[2] / "docs" / "start" / "from-samples.md").read_text()
    make, draft, *_ = re.findall(r"^```sh\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^```json\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    script = f"set -eu\n{make}{draft}"
    subprocess.run(
        ["bash", "-c", script], cwd=ade.home, env=ade.environment(), check=True, capture_output=True, timeout=120
    )
    manifest = json.loads((ade.home / "members" / "manifest.json").read_text())
    assert manifest["fields"][0] == json.loads(shown)
    assert (manifest["tenants"], manifest["subscribe"]) == (["*"], ["members/**/*.xlsx", "members/**/*.csv"])
