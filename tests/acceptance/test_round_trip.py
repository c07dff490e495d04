"""The round trip with the sender: rejects.xlsx goes out, comes back corrected, and the result is whole."""

import json
from pathlib import Path

import openpyxl
import pytest

pytestmark = pytest.mark.slow

MANIFEST = {
    "manifest": 1,
    "name": "members",
    "inputs": {"primary": ["*.xlsx"]},
    "fields": [
        {"name": "member_id", "required": True, "unique": True},
        {"name": "email", "type": "email"},
        {"name": "plan", "type": "enum", "allowed": ["gold", "silver"]},
        {"name": "gross_pay", "type": "money", "min": 0},
    ],
    "output": {"rejects": True},
    "on_error": "split",
}
ROWS, BAD = 1_000, 37


def members(path: Path) -> Path:
    """A thousand members under a title, 37 of them with an error."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Members of the year"])
    sheet.append(["Member ID", "Email", "Plan", "Gross Pay", "Remarks"])
    for n in range(ROWS):
        wrong = n % 27 == 5 and n // 27 < BAD
        sheet.append([f"M{n:06}", "nobody" if wrong else f"m{n}@example.com", "gold", 10 + n / 2, f"remark {n}"])
    book.save(path)
    return path


def result(ade, job: dict) -> tuple[dict, Path]:
    folder = ade.bucket / ade("outputs", job["job_id"], "--json").json["outputs"]
    return json.loads((folder / "result.json").read_text()), folder


def rows(path: Path) -> list[tuple]:
    return list(openpyxl.load_workbook(path).worksheets[0].iter_rows(min_row=2, values_only=True))


def drop(ade, name: str, *, expect: int = 0) -> dict:
    words = (name, "--manifest", "manifest.json", "--tenant", "acme", "--path", "2026", "--wait", "--json")
    jobs = ade("drop", *words, expect=expect).json["jobs"]
    return next(job for job in jobs if job["subject"] == f"2026/{name}")


def mend(path: Path, to: Path, email: str = "mended{}@example.com") -> int:
    """What a sender does: correct the marked cells and save under another name."""
    book = openpyxl.load_workbook(path)
    sheet, mended = book.worksheets[0], 0
    for row in sheet.iter_rows(min_row=3):
        for cell in row:
            if cell.comment is not None:
                mended += 1
                cell.value = email.format(mended)
    book.save(to)
    return mended


def test_37_bad_rows_of_1000_come_back_mended_and_the_result_is_complete(ade):
    ade.write("manifest.json", MANIFEST)
    members(ade.home / "members.xlsx")
    with ade.up():
        first = drop(ade, "members.xlsx")
        told, folder = result(ade, first)
        assert (told["summary"]["rows_out"], told["summary"]["left_out"]) == (ROWS - BAD, {"rejected": BAD})
        assert len(rows(folder / "normalized.xlsx")) == ROWS - BAD
        assert len(rows(folder / "rejects.xlsx")) == BAD + 1  # the header below the title
        assert mend(folder / "rejects.xlsx", ade.home / "mended.xlsx") == BAD
        second = drop(ade, "mended.xlsx")
        whole, folder = result(ade, second)
        # Once more: a file that corrects some rows only, then one that corrects what is left of them.
        still = mend(result(ade, first)[1] / "rejects.xlsx", ade.home / "half.xlsx", "still wrong {}")
        third = drop(ade, "half.xlsx")
        mend(result(ade, third)[1] / "rejects.xlsx", ade.home / "rest.xlsx", "rest{}@example.com")
        last, _ = result(ade, drop(ade, "rest.xlsx"))
    assert (whole["summary"]["rows_out"], whole["summary"]["rows_with_errors"]) == (ROWS, 0)
    assert whole["mends"] == {"job_id": first["job_id"], "subject": "2026/members.xlsx"}
    written = rows(folder / "normalized.xlsx")
    assert [row[0] for row in written] == [f"M{n:06}" for n in range(ROWS)]
    assert [row[1] for row in written if row[1].startswith("mended")] == [
        f"mended{n}@example.com" for n in range(1, 38)
    ]
    assert still == BAD
    assert (last["summary"]["rows_out"], last["mends"]["job_id"]) == (ROWS, first["job_id"])
    latest = json.loads((ade.bucket / "outputs/acme/2026/members.xlsx/members/latest.json").read_text())
    assert latest["job_id"] == last["job_id"], "the first drop's latest.json names the newest whole result"


def test_keys_of_another_tenant_of_a_lost_job_or_of_a_replaced_file_are_refused_in_words(ade):
    ade.write("manifest.json", MANIFEST)
    members(ade.home / "members.xlsx")
    with ade.up():
        first = drop(ade, "members.xlsx")
        path = result(ade, first)[1] / "rejects.xlsx"
        mend(path, ade.home / "mended.xlsx")
        other = ("mended.xlsx", "--manifest", "manifest.json", "--tenant", "other", "--wait", "--json")
        (stolen,) = ade("drop", *other, expect=1).json["jobs"]
        forged = openpyxl.load_workbook(ade.home / "mended.xlsx")
        for row in forged.worksheets[0].iter_rows():
            for cell in row:
                if isinstance(cell.value, str) and cell.value.startswith("ade: "):
                    cell.value = cell.value.replace(first["job_id"], "acme-members-00000000")
        forged.save(ade.home / "forged.xlsx")
        lost = drop(ade, "forged.xlsx", expect=1)
        ade.write("members.xlsx", "replaced")
        drop(ade, "members.xlsx", expect=1)
        late = drop(ade, "mended.xlsx", expect=1)
    for job in (stolen, lost):
        assert job["error"]["verdict"] == "mends"
        assert "nothing is known any more; drop the whole file again" in job["error"]["message"]
    assert "members.xlsx is needed to put corrected rows back, but is gone or was replaced" in late["error"]["message"]
