"""Drift: profiles of drops, how two differ, and what a job makes of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from runner.engine.memory import drift
from runner.engine.memory.drift import (
    Shares,
    choose_likest,
    compare_columns,
    compare_columns_values,
    compare_rows,
    make_profile,
    read_profile,
    read_profiles,
)
from tests.support.engine_jobs import Outcome, run_job, run_order

FIELDS = [{"name": "id", "required": True}, {"name": "email", "type": "email", "synonyms": ["mail"]}, {"name": "n"}]


def made(
    *columns: tuple[str, str | None], rows: int = 100, blank: float = 0.0, types: tuple[str, ...] = ("text",)
) -> Any:
    return {
        "profile": 1,
        "rows": rows,
        "columns": [
            {"header": h, "field": f, "at": n, "types": list(types), "blank": blank, "wrong": 0.0}
            for n, (h, f) in enumerate(columns, 1)
        ],
    }


def changes(before: Any, now: Any) -> dict[str, list[Any]]:
    return {kind: found for kind, found in compare_columns(before, now).items() if found}


class TestColumns:
    def test_the_same_columns_have_not_drifted(self):
        assert changes(made(("Id", "id"), ("Mail", "email")), made((" ID ", "id"), ("mail", "email"))) == {}

    def test_new_and_gone_columns(self):
        found = changes(made(("Id", "id"), ("Old", None)), made(("Id", "id"), ("New", None)))
        assert found == {"new": [{"header": "New", "field": None}], "gone": [{"header": "Old", "field": None}]}

    def test_another_header_for_the_same_field_is_a_new_name(self):
        found = changes(made(("Mail", "email")), made(("E-Mail", "email")))
        assert found == {"renamed": [{"from": "Mail", "to": "E-Mail", "field": "email"}]}

    def test_a_column_that_moved_past_others_is_the_one_that_moved(self):
        before = made(("A", None), ("B", None), ("C", None), ("D", None))
        found = changes(before, made(("D", None), ("A", None), ("B", None), ("C", None)))
        assert found == {"moved": [{"header": "D", "from": 4, "to": 1}]}

    def test_columns_of_several_tables_have_not_moved_whichever_table_comes_first(self):
        tables = [([("A", None), ("B", None)], None), ([("C", None), ("D", None)], None)]
        both, turned = make_profile(tables), make_profile(tables[::-1])
        assert changes(both, both) == {}
        assert changes(both, turned) == {}

    def test_columns_pushed_aside_by_a_new_one_have_not_moved(self):
        assert "moved" not in changes(made(("A", None), ("B", None)), made(("X", None), ("A", None), ("B", None)))

    def test_another_field_for_the_same_header(self):
        found = changes(made(("N", "n")), made(("N", None)))
        assert found == {"remapped": [{"header": "N", "from": "n", "to": None}]}

    def test_a_second_column_with_the_same_header_is_new_and_can_be_gone(self):
        one, two = made(("Id", "id"), ("Phone", "phone")), made(("Id", "id"), ("Phone", "phone"), ("phone", None))
        assert changes(one, two) == {"new": [{"header": "phone", "field": None}]}
        assert changes(two, one) == {"gone": [{"header": "phone", "field": None}]}
        assert list(changes(two, made(("Id", "id"), ("phone", None), ("Phone", "phone")))) == ["moved"]

    def test_headers_that_differ_after_two_hundred_characters_differ(self):
        long = "x" * 250
        before, now = (make_profile([([(long + end, None)], None)]) for end in ("a", "b"))
        assert set(changes(before, now)) == {"new", "gone"}
        assert changes(before, before) == {}
        assert read_profile(json.dumps(now).encode()) == now


class TestKinds:
    MEMBERS = made(("Id", "id"), ("Email", "email"), ("Plan", "plan"))
    PAYMENTS = made(("Account", "account"), ("Amount", "amount"), ("Id", "id"))

    def kept(self, *profiles: Any) -> bytes:
        return b"".join(
            json.dumps({"kept": 1, "job_id": f"j{n}", "order": [n, n, ""]}).encode()
            + b"\n"
            + json.dumps(p).encode()
            + b"\n"
            for n, p in enumerate(profiles)
        )

    def test_a_drop_is_compared_with_the_last_one_of_its_kind(self):
        kept = read_profiles(self.kept(self.MEMBERS, self.PAYMENTS))
        for now, job in ((self.MEMBERS, "j0"), (self.PAYMENTS, "j1")):
            (one, same) = choose_likest(kept, now)
            assert (one.job, same, changes(one.profile, now)) == (job, True, {})

    def test_a_drop_of_a_new_kind_is_compared_with_the_newest(self):
        (one, same) = choose_likest(
            read_profiles(self.kept(self.MEMBERS, self.PAYMENTS)), made(("X", None), ("Y", None))
        )
        assert (one.job, same) == ("j1", False)

    def test_other_headers_for_the_same_fields_are_the_same_kind(self):
        german = made(("Nummer", "id"), ("Mail", "email"), ("Tarif", "plan"))
        (one, same) = choose_likest(read_profiles(self.kept(self.MEMBERS, self.PAYMENTS)), german)
        assert (one.job, same, len(changes(one.profile, german)["renamed"])) == ("j0", True, 3)

    def test_lines_that_cannot_be_read_are_left_out(self):
        body = b"nonsense\n" + self.kept(self.MEMBERS) + b'{"kept": 1}\n[]\n' + json.dumps(self.PAYMENTS).encode()
        assert [one.profile for one in read_profiles(body)] == [self.MEMBERS, self.PAYMENTS]
        assert read_profiles(b"") == []


class TestValues:
    def test_blank_shares_and_kinds_out_of_range(self):
        before, now = made(("A", "a")), made(("A", "a"), blank=0.5, types=("number", "text"))
        assert [(v["what"], v["before"], v["now"]) for v in compare_columns_values(before, now)] == [
            ("types", ["text"], ["number", "text"]),
            ("blank", 0.0, 0.5),
        ]

    def test_a_column_under_another_header_is_still_compared(self):
        before, now = made(("Mail", "email"), ("Id", "id")), made(("E-Mail", "email"), ("Id", "id"), blank=0.5)
        assert [(d["header"], d["what"]) for d in compare_columns_values(before, now)] == [
            ("Id", "blank"),
            ("E-Mail", "blank"),
        ]

    def test_few_rows_say_nothing(self):
        assert compare_columns_values(made(("A", "a"), rows=3), made(("A", "a"), rows=3, blank=1.0)) == []

    @pytest.mark.parametrize(
        ("old", "new", "out"), [(100, 200, False), (100, 201, True), (100, 49, True), (3, 9, False)]
    )
    def test_rows_out_of_range(self, old, new, out):
        assert compare_rows(made(rows=old), made(rows=new))["out_of_range"] is out


def test_tables_of_one_header_are_one_column():
    one, two = Shares(1), Shares(1)
    one.add([["a", None]], 2)
    two.add([[1, 2]], 2)
    found = make_profile([([("A", "a")], one), ([("a", "a")], two)])
    assert (found["rows"], len(found["columns"])) == (4, 1)
    assert (found["columns"][0]["blank"], found["columns"][0]["types"]) == (0.25, ["number", "text"])


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{", b'{"profile": 2, "rows": 1, "columns": []}', b'{"profile": 1, "rows": -1, "columns": []}',
        b'{"profile": 1, "rows": 1, "columns": [{"header": 7}]}', b'{"profile": 1, "rows": 1, "columns": 7}',
        b'{"profile": 1, "rows": 1, "columns": [{"header": "a", "field": null, "at": 1, "types": [{}], "blank": 0, "wrong": 0}]}',
        b" " * (drift.MAX_BYTES + 1), b"[" * 100_000,
    ],
)  # fmt: skip
def test_anything_but_a_profile_is_not_compared_with(body):
    assert read_profile(body) is None


def rerun(
    folder: Path,
    first: Outcome,
    rows: list[list[Any]],
    *,
    decision: dict[str, Any] | None = None,
    left_by: str = "a",
    **manifest: Any,
) -> Outcome:
    """A second drop of the same sender, whose last profile is that of the first."""
    head = {"kept": 1, "job_id": left_by, "order": [1, 1, "a"]}
    kept = json.dumps(head).encode() + b"\n" + json.dumps(first.artifact["profile"]).encode()
    again = run_job(folder / "second", rows, fields=FIELDS, **manifest)  # writes the input and shows what is ordered
    (folder / "second" / "previous.json").write_bytes(kept)
    order = {
        "order": 1,
        "job": {"job_id": "acme-test-1", "tenant": "acme", "workflow": "test", "attempt": 1},
        "manifest": {"name": "test", "fields": FIELDS, **manifest},
        "params": {},
        "inputs": [{"role": "primary", "name": "in.xlsx", "path": "in.xlsx", "size": 1, "sha256": "0" * 64}],
        "config": {"path": None, "digest": "0" * 8},
        "previous": {"path": "previous.json", "key": "outputs/acme/test/profile.json", "sha256": "1" * 64},
        "outputs": {n: n for n in ("normalized.xlsx", "artifact.json", "review.json")},
        "sandbox": {"driver": "process", "level": "limits", "rungs": {"rlimits": True}},
    }
    assert again.end["ok"]
    if decision is not None:
        (folder / "second" / "decision.json").write_text(json.dumps({"decision": 1, "by": "ann", **decision}))
        order["decision"] = {"path": "decision.json", "key": "k", "version": "v", "sha256": "0" * 64, "by": "ann"}
    return run_order(order, folder / "second")


ROWS = [["Id", "Email", "N"], *([f"k{n}", f"{n}@b.com", n] for n in range(30))]
OTHER = [["Id", "Mail", "Fresh"], *([f"k{n}", f"{n}@b.com" if n % 2 else None, n] for n in range(90))]


class TestJobs:
    def test_a_first_drop_is_compared_with_nothing(self, tmp_path):
        done = run_job(tmp_path, ROWS, fields=FIELDS)
        assert "drift" not in done.artifact
        assert [c["field"] for c in done.artifact["profile"]["columns"]] == ["id", "email", "n"]

    def test_a_later_one_says_how_it_differs_in_artifact_and_report(self, tmp_path):
        done = rerun(tmp_path, run_job(tmp_path, ROWS, fields=FIELDS), OTHER)
        found = done.artifact["drift"]
        assert found["previous"]["key"] == "outputs/acme/test/profile.json"
        assert found["columns"]["renamed"] == [{"from": "Email", "to": "Mail", "field": "email"}]
        assert [c["header"] for c in found["columns"]["new"]] == ["Fresh"]
        assert found["rows"] == {"before": 30, "now": 90, "out_of_range": True}
        assert {"drift_columns", "drift_rows"} <= set(done.artifact["validation"]["by_code"])
        page = (tmp_path / "second" / "report.html").read_text()
        assert "What changed since the last file" in page
        assert "Column “Email” is now called “Mail”" in page

    def test_a_job_that_runs_again_is_not_compared_with_itself(self, tmp_path):
        done = rerun(tmp_path, run_job(tmp_path, ROWS, fields=FIELDS), OTHER, left_by="acme-test-1")
        assert "drift" not in done.artifact

    def test_columns_that_are_accepted_are_a_note(self, tmp_path):
        done = rerun(tmp_path, run_job(tmp_path, ROWS, fields=FIELDS), OTHER)
        (finding,) = [f for f in done.findings if f["code"] == "drift_columns"]
        assert finding["severity"] == "info"

    def test_a_person_is_asked_about_columns_for_review_and_the_answer_settles_it(self, tmp_path):
        first = run_job(tmp_path, ROWS, fields=FIELDS)
        asked = rerun(tmp_path, first, OTHER, drift={"columns": "review"})
        (question,) = asked.questions
        assert (question["kind"], [c["value"] for c in question["candidates"]]) == ("drift", ["accept"])
        answer = {"answers": [{"id": question["id"], "value": "accept"}]}
        done = rerun(tmp_path, first, OTHER, drift={"columns": "review"}, decision=answer)
        assert {f["code"]: f["severity"] for f in done.findings}["drift_columns"] == "warning"
        assert done.artifact["drift"]["columns"]["renamed"]

    def test_columns_that_are_not_accepted_fail_the_job_with_its_audit(self, tmp_path):
        done = rerun(tmp_path, run_job(tmp_path, ROWS, fields=FIELDS), OTHER, drift={"columns": "fail"})
        assert done.error["code"] == "drifted"
        assert "renamed: Email → Mail" in done.error["message"]
        assert done.artifact["summary"]["rows_out"] == 0

    def test_a_profile_holds_no_values_and_no_redacted_headers(self, tmp_path):
        rows = [["Id", "Geheim"], ["wert", "wert2"]]
        done = run_job(tmp_path, rows, fields=FIELDS, redact_headers=True)
        told = json.dumps(done.artifact["profile"])
        assert "wert" not in told
        assert "Geheim" not in told
        assert [c["header"] for c in done.artifact["profile"]["columns"]] == ["id", "column B"]
