"""What a corrected file belongs to: the inputs of the first drop, and the other corrections of it."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from core.jobs import CorrectionOf, InputRef, JobError, State
from core.manifests import parse_manifest
from core.verdicts import Verdict
from runner.engine.contract import InputFile, Order
from runner.origins import MAX_CORRECTIONS, OriginInputs, Origins, correction_of, stage_origin
from runner.staging import Staged, StagingFailed
from tests.contract.jobs import a_job

FILE_MB = 1


def recorded(world, name, *files, stamp=1.0, **more):
    """A job over files that are in the inbox."""
    items = []
    for file in files:
        info = world.store.head(world.put(f"inbox/acme/d/{file}", file.encode()))
        items.append(InputRef(role="primary", name=file, ref=info.ref))
    job = replace(a_job(name), tenant="acme", workflow="members", subject=f"d/{files[0]}", inputs=tuple(items))
    return world.table.add(replace(job, stamp=stamp, **more))[0]


def corrects(world, job, claim):
    """What an attempt at a job finds; its end is recorded as a success."""
    found = Origins(world.table).find(job, {job.inputs[0].ref.key: claim.job_id})
    ended(world, job, State.SUCCEEDED, mends=correction_of({job.inputs[0].ref.key: claim.job_id}, found))
    return found


def ended(world, job, state, **more):
    row = world.table.get(job.job_id)
    assert world.table.replace(row, replace(row, state=state, **more))


def names(found):
    return [file.item.name for file in found.corrected]


def staged(world, job, found, folder):
    inputs = [
        InputFile(role="primary", name=i.name, path=Path("in", str(n)), size=1, sha256="0")
        for n, i in enumerate(job.inputs)
    ]
    manifest = parse_manifest(b'{"manifest": 1, "name": "members", "fields": [{"name": "id"}]}')
    (folder / "in").mkdir(parents=True, exist_ok=True)
    made = stage_origin(
        world.store,
        job,
        Staged(manifest, Order(manifest={}, inputs=tuple(inputs)), None, None),
        found,
        folder,
        file_mb=FILE_MB,
    )
    return made.order


def test_the_inputs_of_a_drop_of_several_files_are_staged_apart(world, tmp_path):
    first = recorded(world, "f", "a.csv", "b.csv")
    job = recorded(world, "c", "c.xlsx", stamp=2.0)
    order = staged(world, job, corrects(world, job, first), tmp_path)
    held = {i.name: (tmp_path / i.path).read_bytes() for i in order.primary}
    assert held == {"a.csv": b"a.csv", "b.csv": b"b.csv"}


def test_what_a_person_decided_about_the_first_file_counts_for_its_corrections(world, tmp_path):
    body = b'{"decision": 1, "by": "ann", "remember": false, "accept": true}'
    ref = world.store.head(world.put("inbox/acme/d/a.csv.decision.json", body)).ref
    first = recorded(world, "f", "a.csv", decision=ref)
    job = recorded(world, "c", "c.xlsx", stamp=2.0)
    order = staged(world, job, corrects(world, job, first), tmp_path)
    assert (order.decision.key, order.decision.by, order.sender) == (ref.key, "ann", "d")
    assert (tmp_path / order.decision.path).read_bytes() == body
    foreign = world.store.head(world.put("inbox/acme/d/a.csv.decision.json", body[:-1] + b', "job": "another"}')).ref
    other = recorded(world, "g", "b.csv", decision=foreign)
    again = recorded(world, "h", "h.xlsx", stamp=3.0)
    assert staged(world, again, corrects(world, again, other), tmp_path / "again").decision is None


def test_a_later_attempt_has_all_corrections_from_the_oldest_upload_to_the_newest(world):
    first = recorded(world, "f", "a.csv")
    new, old = recorded(world, "n", "new.xlsx", stamp=9.0), recorded(world, "o", "old.xlsx", stamp=5.0)
    assert names(corrects(world, new, first)) == ["new.xlsx"]
    found = corrects(world, old, first)
    assert names(found) == ["old.xlsx", "new.xlsx"]
    assert [(f.earlier, f.knows) for f in found.corrected] == [(False, ()), (True, ())]
    assert world.table.get(old.job_id).mends.place > world.table.get(new.job_id).mends.place


def test_a_second_round_knows_what_its_rejects_were_made_of(world):
    first = recorded(world, "f", "a.csv")
    one, other = recorded(world, "o", "one.xlsx", stamp=2.0), recorded(world, "p", "other.xlsx", stamp=3.0)
    corrects(world, one, first)
    corrects(world, other, first)
    two = recorded(world, "t", "two.xlsx", stamp=4.0)
    found = corrects(world, two, world.table.get(one.job_id))
    assert [(f.item.name, f.knows, f.needed) for f in found.corrected] == [
        ("one.xlsx", (), True), ("other.xlsx", (), False), ("two.xlsx", (0,), True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "verdict", "counts", "lost"),
    [
        (State.CANCELLED, None, False, False),
        (State.SKIPPED, None, False, False),
        (State.FAILED, Verdict.ROWS_REJECTED, True, False),
        (State.FAILED, Verdict.STORE_FAILED, True, False),
        (State.FAILED, Verdict.MEMORY, False, True),
        (State.FAILED, Verdict.INPUT_UNREADABLE, False, True),
        (State.RUNNING, None, True, False),
        (State.EXPIRED, None, True, False),
    ],
)
def test_what_became_of_a_correction_says_whether_it_counts_for_the_next(world, state, verdict, counts, lost):
    first = recorded(world, "f", "a.csv")
    one = recorded(world, "o", "one.xlsx", stamp=2.0)
    corrects(world, one, first)
    error = JobError(verdict=verdict, message="") if verdict else None
    ended(world, one, state, error=error)
    found = corrects(world, recorded(world, "t", "two.xlsx", stamp=3.0), first)
    assert ("one.xlsx" in names(found), found.lost == ["one.xlsx"]) == (counts, lost)


def test_an_attempt_that_is_repeated_is_listed_once_and_last(world):
    first = recorded(world, "f", "a.csv")
    one, two = recorded(world, "o", "one.xlsx", stamp=2.0), recorded(world, "t", "two.xlsx", stamp=3.0)
    for job in (one, two, one):
        corrects(world, job, first)
    assert [(c.job_id, c.place) for c in world.table.get(first.job_id).corrections] == [
        (two.job_id, 2), (one.job_id, 3),
    ]  # fmt: skip


def test_results_of_before_there_was_a_list_are_listed_with_their_corrections(world):
    first = recorded(world, "f", "a.csv")
    one = recorded(world, "o", "one.xlsx", stamp=2.0)
    facts = CorrectionOf(
        files=((one.inputs[0].ref.key, first.job_id),),
        job_id=first.job_id,
        subject="d/a.csv",
        stamp=1.0,
        created_at=1.0,
    )
    ended(world, one, State.SUCCEEDED, mends=facts)
    found = corrects(world, recorded(world, "t", "two.xlsx", stamp=3.0), world.table.get(one.job_id))
    assert (names(found), found.place) == (["one.xlsx", "two.xlsx"], 2)
    assert found.corrected[1].knows == (0,)


def test_a_needed_file_that_is_gone_fails_the_job_and_another_correction_is_only_named(world, tmp_path):
    first = recorded(world, "f", "a.csv")
    one, two = recorded(world, "o", "one.xlsx", stamp=2.0), recorded(world, "t", "two.xlsx", stamp=3.0)
    corrects(world, one, first)
    found = corrects(world, two, first)
    world.store.delete("inbox/acme/d/one.xlsx")
    order = staged(world, two, found, tmp_path)
    assert (list(order.lost), [i.name for i in order.corrections]) == (
        ["one.xlsx"],
        ["two.xlsx"],
    )
    again = recorded(world, "u", "three.xlsx", stamp=4.0)
    with pytest.raises(StagingFailed, match=r"one\.xlsx is needed .* drop the whole file again"):
        staged(world, again, corrects(world, again, world.table.get(one.job_id)), tmp_path)


def test_a_correction_whose_job_is_forgotten_is_reported(world):
    first = recorded(world, "f", "a.csv")
    one, two = recorded(world, "o", "one.xlsx", stamp=2.0), recorded(world, "t", "two.xlsx", stamp=3.0)
    corrects(world, one, first)
    world.table.remove(world.table.get(one.job_id))
    found = corrects(world, two, first)
    assert (names(found), found.lost) == (["two.xlsx"], [f"job {one.job_id}"])


def test_each_job_on_the_way_is_read_once_however_many_files_name_it(world, monkeypatch):
    behind, many = recorded(world, "f", "a.csv"), 8
    for n in range(5):
        job = recorded(world, f"r{n}", *(f"{n}-{file}.xlsx" for file in range(many)), stamp=2.0 + n)
        claims = {item.ref.key: behind.job_id for item in job.inputs}
        found = Origins(world.table).find(job, claims)
        ended(world, job, State.SUCCEEDED, mends=correction_of(claims, found))
        behind = job
    read: list[str] = []
    get = world.table.get
    monkeypatch.setattr(world.table, "get", lambda job_id: read.append(job_id) or get(job_id))
    assert len(Origins(world.table).find(job, claims).corrected) == 5 * many
    assert max(Counter(read).values()) <= 2, "once for what is behind it, and the first one to list the correction"


def test_a_file_that_was_replaced_in_the_same_drop_as_its_correction_is_not_passed_over(world):
    first = recorded(world, "f", "a.csv", "b.csv")
    old = first.inputs[1]
    job = recorded(world, "c", "a.csv", "b.csv", "c.xlsx", stamp=2.0)
    new = replace(old, ref=replace(old.ref, version="2", digest="other"))
    job = replace(job, inputs=(job.inputs[0], new, job.inputs[2]))
    with pytest.raises(StagingFailed, match=r"b\.csv of that job was replaced in this drop; take c\.xlsx out of it"):
        Origins(world.table).find(job, {job.inputs[2].ref.key: first.job_id})


def test_a_drop_that_was_corrected_too_often_is_refused_in_words(world):
    first = recorded(world, "f", "a.csv")
    for n in range(MAX_CORRECTIONS):
        corrects(world, recorded(world, f"n{n}", f"{n}.xlsx", stamp=2.0 + n), first)
    with pytest.raises(StagingFailed, match="64 files corrected before; drop the whole file again"):
        corrects(world, recorded(world, "last", "last.xlsx", stamp=99.0), first)
    corrects(world, world.table.get(world.table.get(first.job_id).corrections[0].job_id), first)


def test_a_correction_that_is_listed_runs_again_though_those_it_was_made_of_fill_the_list(world):
    first = recorded(world, "f", "a.csv")
    for n in range(MAX_CORRECTIONS - 1):
        corrects(world, recorded(world, f"n{n}", f"{n}.xlsx", stamp=2.0 + n), first)
    before = recorded(world, "b", "before.xlsx", stamp=80.0)  # listed by no program before this one
    claims = {before.inputs[0].ref.key: first.job_id}
    ended(world, before, State.SUCCEEDED, mends=correction_of(claims, OriginInputs(roots=[first])))
    last = recorded(world, "l", "last.xlsx", stamp=99.0)
    for _ in range(2):
        assert "last.xlsx" in names(corrects(world, last, world.table.get(before.job_id)))
