"""Shapes of a sender's tables that a person confirmed: evidence for the next drop, named, bounded, and never an error."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.memories import Memory, ShapeFact, learn, parse_memory, serialized, shapes_in
from tests.support.engine_jobs import run_job

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CITIES = ["Lugo", "Vigo", "Leon", "Jaca", "Soria", "Teruel", "Huesca"]
FIELDS = [{"name": "street"}, {"name": "city", "allowed": CITIES}]
UNSURE = {"review": "unsure"}
NEVER = {"threshold": 0.4}
# Texts only, few rows, two texts above the header: which row is the header can only be guessed.
POOR = [["Liste", "Juni"], ["Qorra", "Zelt"], ["Mayor", "Lugo"], ["Sol", "Vigo"], ["Luna", "Leon"]]
NEXT = [["Liste", "Juli"], ["Qorra", "Zelt"], ["Este", "Leon"], ["Mar", "Jaca"], ["Rio", "Soria"]]
SHEETS = {
    "Data": [["street", "city"], ["Mayor", "Lugo"], ["Sol", "Vigo"], ["Luna", "Leon"]],
    "Old": [["city", "remark"], ["Jaca", "old"], ["Soria", "new"], ["Teruel", "gone"]],
}


def job(folder, rows, *, memory=None, sender="north", **more):
    mapping = more.pop("mapping", NEVER)
    body = None if memory is None else serialized(memory)
    return run_job(
        folder, rows, fields=list(more.pop("fields", FIELDS)), mapping=mapping, memory=body, sender=sender, **more
    )


def confirmed(done, *, sender="north", decided=True, memory=None):
    """The memory with what a person confirmed by the decision on a job."""
    facts = shapes_in(done.artifact["profile"], sender=sender, by="ann", decided=decided)
    return learn(memory or Memory(), facts, at=NOW)


def remembering(*facts):
    return learn(Memory(), facts, at=NOW)


def shape(headers, rows=(2,), *, sender="north", sheet="", **more):
    return ShapeFact(sender, sheet, rows, headers, "ann", **more)


def tables(done):
    return [(t["header_rows"], t["data_range"]) for s in done.artifact["sheets"] for t in s["tables"]]


def read_poorly(folder, row="2"):
    """Answer the question about the header of the poor sheet."""
    question = next(q for q in job(folder / "asks", POOR, mapping=UNSURE).questions if q["kind"] == "header")
    answers = {"answers": [{"id": question["id"], "value": row}]}
    return job(folder / "answered", POOR, decision=answers)


def asked(folder, rows, **more):
    """The kinds of questions that a job asks."""
    return {q["kind"] for q in job(folder, rows, mapping=UNSURE, **more).questions}


class TestHeaderRows:
    def test_a_header_that_was_asked_about_once_is_found_in_the_next_drop(self, tmp_path):
        assert asked(tmp_path / "alone", NEXT) == {"header"}
        assert tables(job(tmp_path / "wrong", NEXT)) == [([], "A1:B5")]
        memory = confirmed(read_poorly(tmp_path))
        assert asked(tmp_path / "asks less", NEXT, memory=memory) == {"column"}
        done = job(tmp_path / "next", NEXT, memory=memory)
        assert tables(done) == [([2], "A3:B5")]
        (table,) = done.artifact["sheets"][0]["tables"]
        assert table["shape"] == {
            "memory": "k", "version": "v", "sender": "north", "sheet": "", "header_rows": [2], "by": "ann",
            "at": "2026-01-31T12:00:00Z",
        }  # fmt: skip
        assert "its header was confirmed by ann" in table["why"]
        assert "header_assumed" not in done.artifact["validation"]["by_code"]

    def test_it_is_found_where_it_moved_to(self, tmp_path):
        memory = confirmed(read_poorly(tmp_path))
        moved = [["Liste", "Juli"], ["Stand", "heute"], *NEXT[1:]]
        assert tables(job(tmp_path / "next", moved, memory=memory)) == [([3], "A4:B6")]

    def test_it_is_found_in_any_case_and_with_other_blanks(self, tmp_path):
        memory = confirmed(read_poorly(tmp_path))
        spelled = [NEXT[0], ["QORRA ", "  zelt"], *NEXT[2:]]
        assert tables(job(tmp_path / "next", spelled, memory=memory)) == [([2], "A3:B5")]

    def test_yes_confirms_the_header_that_was_found(self, tmp_path):
        rows = [["name", "2023", "2024"], ["Lugo", 2021, 2022], ["Vigo", 2019, 2018]]
        city = {"column": "A", "field": "city"}
        question = next(q for q in job(tmp_path / "asks", rows, mapping=UNSURE).questions if q["kind"] == "header")
        done = job(tmp_path / "yes", rows, decision={"answers": [city, {"id": question["id"], "value": "yes"}]})
        again = job(tmp_path / "next", rows, memory=confirmed(done), mapping=UNSURE, decision={"answers": [city]})
        assert tables(again) == [([1], "A2:C3")]

    def test_it_helps_another_sender_with_the_same_header(self, tmp_path):
        memory = confirmed(read_poorly(tmp_path))
        done = job(tmp_path / "next", NEXT, memory=memory, sender="south")
        assert tables(done) == [([2], "A3:B5")]
        assert done.artifact["sheets"][0]["tables"][0]["shape"]["sender"] == "north"

    def test_another_senders_header_of_more_rows_stays_as_it_is(self, tmp_path):
        rows = [[None, "2023", None, "2024", None], ["city", "Hours", "Pay", "Hours b", "Pay b"]]
        rows += [[city, n, n * 9.5, n + 1, n * 10.5] for n, city in enumerate(CITIES, 30)]
        memory = remembering(shape(tuple(rows[1]), (1,)))
        plain = tables(job(tmp_path / "1", rows))
        assert plain == [([1, 2], "A3:E9")]
        assert tables(job(tmp_path / "2", rows, memory=memory, sender="south")) == plain
        assert tables(job(tmp_path / "3", rows, memory=memory, sender="north")) == [([2], "A3:E9")]

    def test_a_stacked_header_is_found(self, tmp_path):
        head = [["Ort", "Ort", "Qua"], ["Qorra", "Zelt", "Qua"]]
        rows = [["Liste", "Juni"], *head, ["Mayor", "Lugo", "a"], ["Sol", "Vigo", "b"], ["Luna", "Leon", "c"]]
        done = job(tmp_path / "1", rows, decision={"answers": [{"header_rows": [2, 3]}]})
        assert tables(done) == [([2, 3], "A4:C6")]
        again = [
            ["Liste", "Juli"],
            ["Stand", "heute"],
            *head,
            ["Rio", "Jaca", "c"],
            ["Mar", "Leon", "d"],
            ["Sol", "Vigo", "e"],
        ]
        assert tables(job(tmp_path / "2", again, memory=confirmed(done))) == [([3, 4], "A5:C7")]

    def test_a_header_that_was_found_elsewhere_than_a_person_said_is_not_confirmed(self, tmp_path):
        done = job(tmp_path, SHEETS["Data"], decision={"answers": [{"header_rows": [70_000]}]})
        assert (tables(done), confirmed(done).shapes) == ([([1], "A2:B4")], ())

    def test_of_tables_side_by_side_each_is_found_by_its_own_header(self, tmp_path):
        row = ["Qorra", "Zelt", None, "Wum", "Bax"]
        body = [["Mayor", "Lugo", None, "rot", "eins"], ["Sol", "Vigo", None, "blau", "zwei"]]
        memory = remembering(shape(("Qorra", "Zelt")), shape(("Wum", "Bax")))
        done = job(tmp_path, [row, *body], memory=memory, fields=[{"name": "street", "synonyms": ["Qorra"]}])
        assert {r for rows, _ in tables(done) for r in rows} == {1}


class TestNoHeader:
    ROWS = (["anna", "lugo"], ["berta", "vigo"], ["carla", "leon"])
    LATER = (["dora", "jaca"], ["emma", "soria"], ["frida", "teruel"], ["gerda", "huesca"])
    FIELDS = ({"name": "name", "required": True}, {"name": "town", "required": True})

    def answered(self, folder):
        questions = job(folder / "asks", list(self.ROWS), fields=self.FIELDS, mapping=UNSURE).questions
        header = next(q for q in questions if q["kind"] == "header")
        answers = [
            {"id": header["id"], "value": "none"}, {"column": "A", "field": "name"}, {"column": "B", "field": "town"}
        ]  # fmt: skip
        return job(folder / "answered", list(self.ROWS), fields=self.FIELDS, decision={"answers": answers})

    def test_that_there_is_none_and_which_columns_are_which_is_asked_once(self, tmp_path):
        memory = confirmed(self.answered(tmp_path))
        assert asked(tmp_path / "alone", list(self.LATER), fields=self.FIELDS) == {"header", "required"}
        done = job(tmp_path / "next", list(self.LATER), fields=self.FIELDS, memory=memory, mapping=UNSURE)
        assert done.column("name") == ["dora", "emma", "frida", "gerda"]
        assert {c["rule"] for m in done.artifact["mapping"] for c in m["contributors"]} == {"memory:shape"}

    @pytest.mark.parametrize(("name", "known"), [("IN 2026-07.xlsx", True), ("places.xlsx", False)])
    def test_it_says_nothing_about_a_file_of_another_name(self, tmp_path, name, known):
        memory = serialized(confirmed(self.answered(tmp_path)))
        done = run_job(
            tmp_path / "next", files={name: list(self.LATER)}, fields=list(self.FIELDS), mapping=UNSURE, memory=memory,
            sender="north",
        )  # fmt: skip
        assert done.end["ok"] is known

    def test_it_says_nothing_about_another_sender(self, tmp_path):
        memory = confirmed(self.answered(tmp_path))
        assert "header" in asked(tmp_path, list(self.LATER), fields=self.FIELDS, memory=memory, sender="south")

    def test_a_header_that_is_plainly_there_is_not_taken_for_data(self, tmp_path):
        memory = confirmed(self.answered(tmp_path))
        done = job(tmp_path / "next", [["name", "town"], *self.LATER], fields=self.FIELDS, memory=memory)
        assert tables(done) == [([1], "A2:B5")]

    def test_a_table_of_other_width_is_another_one(self, tmp_path):
        memory = confirmed(self.answered(tmp_path))
        wider = [[*row, "x"] for row in self.LATER]
        assert "header" in asked(tmp_path / "next", wider, fields=self.FIELDS, memory=memory)


class TestSheetsLeftOut:
    def left_out(self, folder, *, skip=True, memory=None):
        return job(folder, SHEETS, memory=memory, decision={"answers": [{"sheet": "Old", "skip": skip}]})

    def test_a_sheet_that_a_person_left_out_is_left_out_again_and_told(self, tmp_path):
        assert len(job(tmp_path / "before", SHEETS).rows()) == 7
        first = self.left_out(tmp_path / "first")
        assert len(first.rows()) == 4
        done = job(tmp_path / "next", SHEETS, memory=confirmed(first))
        assert len(done.rows()) == 4
        (table,) = done.artifact["sheets"][1]["tables"]
        assert table["skipped"] == "its sheet is left out: ann left it out of an earlier drop"
        assert table["shape"]["by"] == "ann"
        assert [f["sheet"] for f in done.findings if f["code"] == "table_skipped"] == ["Old"]

    def test_it_is_read_again_when_a_person_says_so(self, tmp_path):
        memory = confirmed(self.left_out(tmp_path / "first"))
        done = self.left_out(tmp_path / "again", skip=False, memory=memory)
        assert len(done.rows()) == 7
        facts = shapes_in(done.artifact["profile"], sender="north", by="bob", decided=True)
        memory = learn(memory, facts, at=NOW.replace(day=1, month=2))
        assert len(job(tmp_path / "next", SHEETS, memory=memory).rows()) == 7

    def test_another_senders_sheet_of_that_name_is_read(self, tmp_path):
        memory = confirmed(self.left_out(tmp_path / "first"))
        assert len(job(tmp_path / "next", SHEETS, memory=memory, sender="south").rows()) == 7

    def test_a_memory_that_would_leave_nothing_does_not_count(self, tmp_path):
        memory = remembering(*(shape((), (), sheet=name, left_out=True) for name in ("Data", "OLD", "")))
        done = job(tmp_path, SHEETS, memory=memory)
        assert len(done.rows()) == 7
        assert done.artifact["validation"]["by_code"]["shape_ignored"] == 2
        assert not any("shape" in t for s in done.artifact["sheets"] for t in s["tables"])
        alone = job(tmp_path / "alone", SHEETS["Data"], memory=memory)
        assert len(alone.rows()) == 4

    def test_a_person_who_leaves_everything_out_gets_an_error_that_says_so(self, tmp_path):
        answers = [{"sheet": name, "skip": True} for name in SHEETS]
        done = job(tmp_path, SHEETS, decision={"answers": answers})
        assert done.error["code"] == "empty_input"
        assert "left out" in done.error["message"]

    def test_the_question_about_a_header_offers_to_leave_the_sheet_out(self, tmp_path):
        sheets = {"Data": SHEETS["Data"], "Notes": [["Qorra", "Zelt"], *POOR[2:], ["Este", "Jaca"]]}
        questions = job(tmp_path / "asks", sheets, mapping=UNSURE | NEVER).questions
        header = next(q for q in questions if q["kind"] == "header")
        assert "skip" in [c["value"] for c in header["candidates"]]
        done = job(tmp_path / "skips", sheets, decision={"answers": [{"id": header["id"], "value": "skip"}]})
        assert len(done.rows()) == 4
        assert len(job(tmp_path / "next", sheets, memory=confirmed(done)).rows()) == 4


class TestWhatDoesNotFit:
    @pytest.mark.parametrize(
        "fact",
        [
            shape(("Other", "Words")),
            shape(("Qorra", "Zelt"), (2, 3)),
            shape(("Qorra",)),
            shape(("Qorra", "Zelt", "More")),
            shape(("Qorra",), sender="south"),
            shape(("", ""), (), sheet="Elsewhere", named=True),
            shape(("Mayor", "Lugo"), sender="south")._replace(headers=("Mayor", "Lugo", "x")),
        ],
        ids=["others", "stacked", "part", "more", "one text of another", "another sheet", "longer"],
    )
    def test_a_shape_that_does_not_fit_changes_nothing(self, tmp_path, fact):
        memory = remembering(fact)
        assert asked(tmp_path / "1", NEXT, memory=memory) == {"header"}
        assert tables(job(tmp_path / "2", NEXT, memory=memory)) == [([], "A1:B5")]
        plain = job(tmp_path / "3", SHEETS)
        assert tables(job(tmp_path / "4", SHEETS, memory=remembering(fact))) == tables(plain)

    @pytest.mark.parametrize("sender", ["north", "south"])
    @pytest.mark.parametrize("entry", [{"header_rows": [2]}, {"headers": []}, {"said_at": "soon", "at": 5}])
    def test_a_shape_that_says_little_changes_nothing(self, tmp_path, entry, sender):
        body = json.dumps({"memory": 1, "shapes": [{"sender": sender, "sheet": "", **entry}]}).encode()
        plain = tables(job(tmp_path / "1", SHEETS))
        assert tables(run_job(tmp_path / "2", SHEETS, fields=FIELDS, memory=body, sender="north")) == plain

    def test_a_table_unlike_the_confirmed_ones_is_used_and_told(self, tmp_path):
        memory = remembering(shape(("street", "city"), (1,), sheet="Data"))
        done = job(tmp_path, SHEETS, memory=memory)
        assert len(done.rows()) == 7
        assert [f["sheet"] for f in done.findings if f["code"] == "table_unknown"] == ["Old"]

    def test_nothing_is_told_of_a_sender_of_whom_no_table_fits(self, tmp_path):
        done = job(tmp_path, SHEETS, memory=remembering(shape(("Other", "Words"))))
        assert "table_unknown" not in done.artifact["validation"]["by_code"]

    def test_a_named_header_does_not_swallow_the_tables_of_another_sheet(self, tmp_path):
        memory = remembering(shape(("street", "city"), (1,), sheet="Elsewhere", named=True))
        assert tables(job(tmp_path, SHEETS, memory=memory)) == tables(job(tmp_path / "2", SHEETS))

    @pytest.mark.parametrize(
        "entry",
        [
            {}, {"sheet": 1}, {"headers": "ab"}, {"headers": [1]}, {"headers": ["x" * 501]}, {"header_rows": [0]},
            {"header_rows": [True], "headers": ["a"]}, {"headers": ["x"] * 2001}, {"by": []}, {"fields": [1]}, {"said_at": 5},
        ],
        ids=lambda entry: next(iter(entry), "empty"),
    )  # fmt: skip
    def test_a_shape_that_is_none_is_refused_with_words(self, tmp_path, entry):
        good = {"sender": "north", "sheet": ""} if entry else {}
        body = json.dumps({"memory": 1, "shapes": [{**good, **entry}]}).encode()
        error = run_job(tmp_path, NEXT, fields=FIELDS, memory=body).error
        assert (error["code"], "entry 0 of its shapes is not one" in error["message"]) == ("config_refused", True)


cells = st.sampled_from([None, "Qorra", "Zelt", "Mayor", "Lugo", "Total", 3, 2.5, "2024", "a / b"])
grids = st.lists(st.lists(cells, min_size=1, max_size=4), min_size=1, max_size=7)


@st.composite
def hostile(draw):
    """A sheet, and shapes that claim any of its rows, or of none, for a header."""
    rows = draw(grids)
    facts = []
    for _ in range(draw(st.integers(1, 3))):
        first = draw(st.integers(0, len(rows) - 1))
        texts = ["" if v is None else str(v) for v in rows[first]]
        head = draw(st.sampled_from([(), (first + 1,), (first + 1, first + 2), (7,)]))
        texts = draw(st.sampled_from([texts, texts[1:], [f"{t} / {t}" for t in texts], [""] * len(texts), []]))
        facts.append(
            ShapeFact(
                draw(st.sampled_from(["north", "south"])), draw(st.sampled_from(["", "Sheet1"])), head, tuple(texts),
                "ann", fields=draw(st.sampled_from([(), ("city",), ("city", "city"), (None, "street", "gone")])),
                named=draw(st.booleans()), left_out=draw(st.booleans()), file=draw(st.sampled_from(["", "in"])),
            )
        )  # fmt: skip
    return rows, facts


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(hostile())
def test_whatever_shapes_claim_the_job_ends_as_jobs_do_and_every_row_is_accounted_for(tmp_path, given):
    rows, facts = given  # run_job verifies the artifact, and with it the account of the rows
    done = job(tmp_path / "x", rows, memory=remembering(*facts), mapping={"threshold": 0.1})
    assert done.end["ok"] or done.error["code"] in ("nothing_mapped", "empty_input", "input_unreadable"), done.end
    if done.end["ok"]:
        plain = job(tmp_path / "y", rows, mapping={"threshold": 0.1})
        read = [s["rows_read"] for s in done.artifact["sheets"]]
        assert not plain.end["ok"] or read == [s["rows_read"] for s in plain.artifact["sheets"]]


class TestSeveralMemories:
    @pytest.mark.parametrize(("own_month", "rows"), [(3, 7), (1, 4)])
    def test_the_newest_word_counts_whichever_memory_it_is_in(self, tmp_path, own_month, rows):
        """A shared memory leaves a sheet out in February; the tenant's own takes it back in, before or after that."""
        shared = learn(Memory(), [shape((), (), sheet="Old", left_out=True)], at=NOW.replace(month=2, day=1))
        own = learn(Memory(), [shape((), (), sheet="old", left_out=False)], at=NOW.replace(month=own_month, day=1))
        merged = {"memory": 1, "shapes": [e.model_dump(mode="json") for m in (shared, own) for e in m.shapes]}
        done = run_job(
            tmp_path, SHEETS, fields=FIELDS, mapping=NEVER, memory=json.dumps(merged).encode(), sender="north"
        )
        assert len(done.rows()) == rows

    def test_of_a_drop_of_several_files_each_table_has_its_own_shape(self, tmp_path):
        memory = remembering(shape(("Qorra", "Zelt"), named=True), shape(("Wumm", "Baxx"), named=True))
        files = {"a.xlsx": NEXT, "b.xlsx": [["Stand", "Juli"], ["Wumm", "Baxx"], ["rot", "eins"], ["blau", "zwei"]]}
        done = run_job(
            tmp_path, files=files, fields=FIELDS, mapping=NEVER, memory=serialized(memory), sender="north",
            inputs={"per": "drop"},
        )  # fmt: skip
        assert [rows for rows, _ in tables(done)] == [[2], [2]]


class TestWhatIsLearnt:
    def test_only_tables_of_which_something_was_decided_are_confirmed(self, tmp_path):
        decision = {"answers": [{"header": "remark", "sheet": "Old", "field": None}]}
        profile = job(tmp_path, SHEETS, decision=decision).artifact["profile"]
        decided = shapes_in(profile, sender="north", by="ann", decided=True)
        assert [(f.sheet, f.headers) for f in decided] == [("Old", ("city", "remark"))]
        assert len(shapes_in(profile, sender="north", by="ann", decided=False)) == 2

    def test_accepting_what_was_guessed_confirms_nothing(self, tmp_path):
        done = job(tmp_path, [["Qorra", "Zelt"], *POOR[2:], ["Este", "Jaca"]], decision={"accept": True})
        assert shapes_in(done.artifact["profile"], sender="north", by="ann", decided=True) == []

    def test_a_header_that_may_be_data_or_is_redacted_is_not_told(self, tmp_path):
        rows = [["Qorra", "Zelt"], *POOR[2:], ["Este", "Jaca"]]
        assert job(tmp_path / "1", rows).artifact["profile"]["tables"] == []
        hidden = job(tmp_path / "2", SHEETS, redact_headers=True).artifact["profile"]
        assert hidden["tables"] == []

    @pytest.mark.parametrize(
        "profile",
        [None, [], {"tables": 5}, {"tables": [5, {}, {"sheet": "x" * 300}, {"sheet": "", "headers": [1]}]},
         {"tables": [{"sheet": "", "headers": ["a"], "header_rows": list(range(1, 30))}]},
         {"tables": [{"sheet": "", "headers": [""], "header_rows": [1]}]}],
    )  # fmt: skip
    def test_a_profile_that_is_none_teaches_nothing(self, profile):
        assert shapes_in(profile, sender="s", by="ann", decided=False) == []

    def test_a_later_confirmation_replaces_the_place_and_adds_a_count(self):
        memory = learn(remembering(shape(("A", "b"))), [shape(("a ", "B"), (5,))], at=NOW.replace(hour=13))
        (entry,) = parse_memory(serialized(memory)).shapes
        assert (entry.header_rows, entry.count) == ((5,), 2)
