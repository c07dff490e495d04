"""Several corrections of one drop: whatever order they come and end in, the last result has the rows of all of them."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from tests.acceptance.ade import Ade

BOX = {"ADE_SANDBOX": "process", "ADE_SANDBOX_MIN_LEVEL": "limits"}
MANIFEST = {
    "manifest": 1,
    "name": "members",
    "subscribe": ["**/*.xlsx", "**/*.csv"],
    "fields": [
        {"name": "member_id", "required": True},
        {"name": "email", "type": "email"},
        {"name": "plan", "type": "enum", "allowed": ["gold", "silver"]},
    ],
    "output": {"rejects": True},
    "on_error": "split",
}
WRONG = (2, 5, 8)  # rows of the sheet whose email is wrong; the plan of the last one is wrong too


class Sender:
    """Drops files of one tenant, and reads what comes back."""

    def __init__(self, ade: Ade) -> None:
        self.ade = ade
        self.standing(MANIFEST)

    def standing(self, manifest: dict[str, Any]) -> None:
        self.put("configs/acme/members/manifest.json", json.dumps(manifest).encode())

    def put(self, key: str, body: bytes) -> None:
        path = self.ade.bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)

    def drop(self, name: str, body: bytes) -> None:
        self.put(f"inbox/acme/d/{name}", body)
        self.ade("sweep")

    def job(self, name: str) -> dict[str, Any]:
        """The newest job of a file, once everything that is to do now is done."""
        self.ade("run", "--drain")
        return next(j for j in self.ade("jobs", "--json").json if j["subject"] == f"d/{name}")

    def folder(self, job: dict[str, Any]) -> Path:
        return self.ade.bucket / job["outputs"]

    def first(self) -> Path:
        """The rejects of a file of ten rows, three of them wrong."""
        lines = [["Member ID", "Email", "Plan"]]
        for row in range(2, 12):
            lines.append([f"M{row}", "nobody" if row in WRONG else f"m{row}@b.com", "tin" if row == 8 else "gold"])
        text = io.StringIO()
        csv.writer(text).writerows(lines)
        self.drop("members.csv", text.getvalue().encode())
        return self.folder(self.job("members.csv")) / "rejects.xlsx"

    def latest(self, name: str = "members.csv") -> dict[str, Any]:
        return json.loads((self.ade.bucket / f"outputs/acme/d/{name}/members/latest.json").read_text())

    def emails(self) -> dict[str, tuple[str, str]]:
        """What the first file's latest result says about the rows that were wrong."""
        path = self.ade.bucket / self.latest()["result"]
        book = openpyxl.load_workbook(path.parent / "normalized.xlsx")
        rows = list(book.worksheets[0].iter_rows(min_row=2, values_only=True))
        return {row[0]: row[1:3] for row in rows if int(row[0][1:]) in WRONG}


@pytest.fixture
def sender(tmp_path):
    return Sender(Ade(tmp_path, BOX, within=True))


def mended(rejects: Path, **said: str) -> bytes:
    """A copy of rejects.xlsx with cells of members corrected: M2="a@b.com", or M8_plan="gold"."""
    book = openpyxl.load_workbook(rejects)
    for row in book.worksheets[0].iter_rows(min_row=2):
        for name, value in said.items():
            member, _, field = name.partition("_")
            if row[0].value == member:
                row[2 if field == "plan" else 1].value = value
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


ALL = {"M2": ("ann@b.com", "gold"), "M5": ("bob@b.com", "gold"), "M8": ("bob8@b.com", "silver")}


def test_two_people_who_correct_copies_of_one_rejects_lose_nothing_of_each_other(sender):
    rejects = sender.first()
    ann, bob = mended(rejects, M2="ann@b.com", M8_plan="silver"), mended(rejects, M5="bob@b.com", M8="bob8@b.com")
    sender.drop("ann.xlsx", ann)
    assert sender.job("ann.xlsx")["state"] == "SUCCEEDED"
    sender.drop("bob.xlsx", bob)
    job = sender.job("bob.xlsx")
    assert (job["state"], sender.latest()["job_id"]) == ("SUCCEEDED", job["job_id"]), job["error"]
    assert sender.emails() == ALL
    assert job["summary"]["rows_with_errors"] == 0


@pytest.mark.long
def test_two_who_overwrite_each_others_file_lose_nothing_either(sender):
    rejects = sender.first()
    ann, bob = mended(rejects, M2="ann@b.com"), mended(rejects, M5="bob@b.com", M8="bob8@b.com", M8_plan="silver")
    sender.drop("corrected.xlsx", ann)
    assert sender.job("corrected.xlsx")["state"] == "SUCCEEDED"
    sender.drop("corrected.xlsx", bob)
    sender.job("corrected.xlsx")
    assert sender.emails() == ALL


@pytest.mark.long
def test_both_waiting_at_once_end_in_one_whole_result_whichever_runs_first(sender):
    rejects = sender.first()
    sender.drop("b.xlsx", mended(rejects, M5="bob@b.com", M8="bob8@b.com"))
    sender.drop("a.xlsx", mended(rejects, M2="ann@b.com", M8_plan="silver"))
    assert {sender.job(name)["state"] for name in ("a.xlsx", "b.xlsx")} == {"SUCCEEDED"}
    assert sender.emails() == ALL


@pytest.mark.long
def test_of_two_corrections_of_one_cell_the_newest_wins_and_an_older_one_that_runs_later_does_not(sender):
    rejects = sender.first()
    sender.drop("old.xlsx", mended(rejects, M2="old@b.com", M8_plan="gold"))
    old = sender.ade("jobs", "--json").json[0]
    sender.ade("cancel", old["job_id"])
    sender.drop("new.xlsx", mended(rejects, M2="new@b.com"))
    assert sender.job("new.xlsx")["state"] == "SUCCEEDED"
    assert sender.emails() == {"M2": ("new@b.com", "gold")}, "a correction that was cancelled does not count"
    sender.ade("retry", old["job_id"])
    assert sender.job("old.xlsx")["state"] == "SUCCEEDED"
    assert sender.latest()["job_id"] == old["job_id"], "the result with the rows of both"
    assert sender.emails() == {"M2": ("new@b.com", "gold")}
    sender.drop("last.xlsx", mended(rejects, M5="last@b.com", M8="last8@b.com"))
    sender.job("last.xlsx")
    assert sender.emails() == {
        "M2": ("new@b.com", "gold"), "M5": ("last@b.com", "gold"), "M8": ("last8@b.com", "gold"),
    }  # fmt: skip


@pytest.mark.long
def test_a_correction_that_fails_for_the_rows_that_are_left_is_completed_by_the_next(sender):
    sender.standing(MANIFEST | {"on_error": "reject"})
    rejects = sender.first()
    sender.drop("ann.xlsx", mended(rejects, M2="ann@b.com", M8_plan="silver"))
    ann = sender.job("ann.xlsx")
    assert (ann["state"], ann["error"]["verdict"]) == ("FAILED", "rows_rejected")
    sender.drop("bob.xlsx", mended(rejects, M5="bob@b.com", M8="bob8@b.com"))
    assert sender.job("bob.xlsx")["state"] == "SUCCEEDED"
    assert sender.emails() == ALL


@pytest.mark.long
def test_a_correction_of_an_old_rejects_does_not_undo_what_a_second_round_corrected(sender):
    rejects = sender.first()
    sender.drop("one.xlsx", mended(rejects, M2="ann@b.com", M5="still wrong"))
    second = sender.folder(sender.job("one.xlsx")) / "rejects.xlsx"
    sender.drop("two.xlsx", mended(second, M5="bob@b.com", M8_plan="silver"))
    sender.job("two.xlsx")
    sender.drop("late.xlsx", mended(rejects, M8="bob8@b.com"))  # by somebody who still had the first one
    sender.job("late.xlsx")
    assert sender.emails() == ALL


@pytest.mark.long
def test_a_sibling_that_is_gone_without_a_copy_is_reported_and_its_rows_come_back(sender):
    rejects = sender.first()
    sender.drop("ann.xlsx", mended(rejects, M2="ann@b.com"))
    ann = sender.job("ann.xlsx")
    (sender.ade.bucket / "inbox/acme/d/ann.xlsx").unlink()
    (sender.folder(ann) / "corrected.xlsx").unlink()
    sender.drop("bob.xlsx", mended(rejects, M5="bob@b.com"))
    bob = sender.job("bob.xlsx")
    artifact = json.loads((sender.folder(bob) / "artifact.json").read_text())
    assert artifact["validation"]["by_code"]["mend_lost"] == 1
    left = openpyxl.load_workbook(sender.folder(bob) / "rejects.xlsx").worksheets[0]
    assert [row[0] for row in left.iter_rows(min_row=2, values_only=True)] == ["M2", "M8"]


@pytest.mark.long
def test_a_removed_correction_lets_the_first_drops_latest_name_the_one_before(sender):
    rejects = sender.first()
    sender.drop("ann.xlsx", mended(rejects, M2="ann@b.com"))
    ann = sender.job("ann.xlsx")
    sender.drop("bob.xlsx", mended(rejects, M5="bob@b.com"))
    bob = sender.job("bob.xlsx")
    (sender.ade.bucket / "inbox/acme/d/bob.xlsx").unlink()
    sender.ade("remove", bob["job_id"], "--keep-input")
    assert sender.latest()["job_id"] == ann["job_id"]


@pytest.mark.long
def test_a_drop_of_several_files_is_corrected_from_another_folder(sender):
    (sender.ade.bucket / "configs/acme/members/manifest.json").unlink()
    several = {k: v for k, v in MANIFEST.items() if k != "subscribe"} | {
        "inputs": {"primary": ["*.csv", "*.xlsx"], "per": "drop"}
    }
    for folder in ("d", "e"):
        sender.put(f"inbox/acme/{folder}/manifest.json", json.dumps(several).encode())
    sender.put("inbox/acme/d/a.csv", b"Member ID,Email,Plan\nM1,nobody,gold\nM2,a@b.com,gold\nM3,nobody,gold\n")
    sender.drop("b.csv", b"Member ID,Email,Plan\nM4,b@b.com,tin\nM5,b@b.com,gold\n")
    sender.ade("run", "--drain")
    (first,) = [j for j in sender.ade("jobs", "--json").json if j["subject"] == "d"]
    book = openpyxl.load_workbook(sender.folder(first) / "rejects.xlsx")
    book["a"]["B2"], book["a"]["B3"], book["b"]["C2"] = "m1@b.com", "m3@b.com", "gold"
    book.save(sender.ade.home / "c.xlsx")
    sender.put("inbox/acme/e/c.xlsx", (sender.ade.home / "c.xlsx").read_bytes())
    sender.ade("sweep")
    sender.ade("run", "--drain")
    (job,) = [j for j in sender.ade("jobs", "--json").json if j["subject"] == "e"]
    assert job["state"] == "SUCCEEDED", job["error"]
    written = openpyxl.load_workbook(sender.folder(job) / "normalized.xlsx").worksheets[0].values
    assert [row[0] for row in written] == ["member_id", "M1", "M2", "M3", "M4", "M5"]
    assert job["summary"]["rows_with_errors"] == 0
