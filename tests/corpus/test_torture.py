"""Real files that break readers: each is read or refused cleanly, in seconds, in little memory.

One child process reads them all, so that its peak memory bounds every one of them.
"""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.keeper import made_once

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
TORTURE, MESSY = CORPUS / "torture", CORPUS / "messy"
SECONDS, MEGABYTES, AGREEMENT = 10, 512, 0.95

# Texts with raised footnote marks or struck-out parts, which those who kept the values joined to the rest.
RUNS = {"poi__45540_classic_Header.xlsx": 23, "poi__58315.xlsx": 1}

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not TORTURE.exists(), reason="the shared corpus is not here"),
]

READER = """
import json, sys, time
from runner.engine.reading import CellError, InputUnreadable, open_book

for line in sys.stdin:
    path = line.rstrip("\\n")
    start = time.process_time()
    one = {"file": path, "sheets": []}
    try:
        with open_book(path, name=path) as book:
            one["format"] = book.format
            for sheet in book.sheets:
                sheet.layout()
                rows = [
                    [number, [v if isinstance(v, str) and not isinstance(v, CellError) else None for v in values]]
                    for number, values in sheet.rows()
                ]
                one["sheets"].append(rows)
    except InputUnreadable as error:
        one |= {"code": error.code, "message": error.message, "remedy": error.remedy}
    except Exception as error:
        one["crash"] = repr(error)
    one["seconds"] = time.process_time() - start
    status = open("/proc/self/status").read()  # getrusage would count the parent before exec
    one["peak_mb"] = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(json.dumps(one), flush=True)
"""


def listed(folder):
    with (folder / "index.csv").open(newline="", encoding="utf-8") as index:
        return {row["file"]: row for row in csv.DictReader(index)}


@pytest.fixture(scope="module")
def outcomes():
    """What became of every file, by its path; read once for all processes of the run."""
    return json.loads(made_once("torture.json", lambda path: path.write_text(json.dumps(_read_all()))).read_text())


def _read_all():
    paths = [str(folder / name) for folder in (TORTURE, MESSY) for name in listed(folder)]
    done = subprocess.run(
        [sys.executable, "-c", READER],
        input="\n".join(paths),
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(paths), (
        f"the reader died after {found[-1]['file'] if found else 'nothing'}: {done.stderr[-500:]}"
    )
    return {one["file"]: one for one in found}


def test_no_file_crashes_the_reader(outcomes):
    assert {path: one["crash"] for path, one in outcomes.items() if "crash" in one} == {}


def test_no_file_takes_long(outcomes):
    assert {path: one["seconds"] for path, one in outcomes.items() if one["seconds"] > SECONDS} == {}


def test_no_file_takes_much_memory(outcomes):
    assert max(one["peak_mb"] for one in outcomes.values()) < MEGABYTES


def test_every_outcome_is_the_expected_one(outcomes):
    wrong = {}
    for name, row in listed(TORTURE).items():
        one, expected = outcomes[str(TORTURE / name)], row["expected_outcome"]
        code = one.get("code")
        if expected == "read":
            right = code is None
        elif expected == "reject: encrypted":
            right = code == "encrypted"
        elif expected == "reject: empty file":
            right = code == "empty"
        elif expected == "reject: not a zip":
            right = code == "not_a_spreadsheet"
        else:
            right = True  # read or refused: either is clean
        if not right:
            wrong[name] = (expected, code)
    assert wrong == {}


def test_every_messy_file_is_read(outcomes):
    assert {
        name: outcomes[str(MESSY / name)].get("code") for name in listed(MESSY) if "code" in outcomes[str(MESSY / name)]
    } == {}


def test_every_refusal_says_what_to_do(outcomes):
    refusals = [one for one in outcomes.values() if "code" in one]
    assert len(refusals) >= 10
    assert all(one["message"] and one["remedy"] for one in refusals)


def test_texts_are_those_that_were_expected(outcomes):
    """Cells with text, sheet by sheet, against the values kept with the files, where those are trustworthy."""
    wrong, compared = {}, 0
    for name, row in listed(TORTURE).items():
        agreement = re.match(r"[0-9.]+", row["expected_agreement"])
        if not agreement or float(agreement[0]) < AGREEMENT:
            continue
        sheets = outcomes[str(TORTURE / name)]["sheets"]
        known = read = 0
        for expected in row["expected_values"].split():
            position = re.search(r"\.(\d+)\.csv$", expected)
            texts = [
                text.strip() for _, values in sheets[int(position[1]) if position else 0] for text in values if text
            ]
            cells = {text.strip() for line in expected_rows(TORTURE / expected) for text in line}
            read += len([text for text in texts if text])
            known += sum(text in cells for text in texts if text)
            known += RUNS.get(name, 0)
        compared += read
        if known < AGREEMENT * read:
            wrong[name] = f"{known} of {read}"
    assert wrong == {}
    assert compared > 2_000


def expected_rows(path):
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    return list(csv.reader(text.splitlines(keepends=True), delimiter="," if "," in text else ";"))


def test_text_files_hold_what_their_authors_say(outcomes):
    wrong = {}
    for name, row in listed(TORTURE).items():
        if not row["expected_values"].endswith(".json"):
            continue
        expected = json.loads((TORTURE / row["expected_values"]).read_text("utf-8"))
        if isinstance(expected, dict):
            continue  # one object, with another telephone number than the file it stands beside
        if expected and isinstance(expected[0], dict):
            expected = [list(expected[0]), *(list(line.values()) for line in expected)]
        wanted = [[text or None for text in line] for line in expected if any(line)]
        read = [values for _, values in outcomes[str(TORTURE / name)]["sheets"][0]]
        if expected and read != wanted:
            wrong[name] = (len(read), len(wanted))
    assert wrong == {}
