"""Calls that do several things at once promise what the single ones do."""

from typing import Any

import pytest

from core.ports import JobTable, Message, ObjectStore, WorkQueue
from infra.aws.sqs import SqsWorkQueue
from tests.contract.jobs import a_job


class TestLevel:
    def test_it_names_what_is_there_on_one_level(self, store: ObjectStore):
        for key in ("inbox/a/1.csv", "inbox/a/2.csv", "inbox/a/deep/3.csv", "inbox/b.csv"):
            store.put(key, b"x")
        level = store.level("inbox/a/")
        assert level.keys == ("inbox/a/1.csv", "inbox/a/2.csv")
        assert level.folders == ("inbox/a/deep/",)

    def test_it_reports_a_key_what_head_tells(self, store: ObjectStore):
        store.put("inbox/a/1.csv", b"x")
        (info,), head = store.level("inbox/a/").infos(["inbox/a/1.csv"]), store.head("inbox/a/1.csv")
        assert head is not None
        assert (info.ref, info.modified) == (head.ref, head.modified)

    def test_an_object_that_went_meanwhile_is_left_out_or_as_it_was(self, store: ObjectStore):
        was = store.put("inbox/a/1.csv", b"x")
        level = store.level("inbox/a/")
        store.delete("inbox/a/1.csv")
        assert [info.ref for info in level.infos(["inbox/a/1.csv", "inbox/a/never.csv"])] in ([], [was.ref])

    def test_nothing_there_is_empty(self, store: ObjectStore):
        level = store.level("inbox/nothing/")
        assert (level.keys, level.folders) == ((), ())


def test_several_objects_go_at_once_whether_they_are_there_or_not(store: ObjectStore):
    for key in ("work/j/1/a", "work/j/1/b", "work/j/2/c"):
        store.put(key, b"x")
    store.delete_all(["work/j/1/a", "work/j/1/b", "work/j/1/never"])
    assert list(store.keys("work/")) == ["work/j/2/c"]


class TestTable:
    def test_of_several_jobs_those_that_are_there_come_back(self, table: JobTable):
        jobs = {job.job_id: job for job in (table.add(a_job(name))[0] for name in ("a", "b"))}
        assert table.get_all([*jobs, *jobs, "acme-members-never"]) == jobs

    def test_a_generation_counts_what_was_advanced(self, table: JobTable):
        assert table.generations(["acme"]) == {"acme": 0}
        table.advance("acme")
        table.advance("acme")
        assert table.generations(["acme", "globex", "acme"]) == {"acme": 2, "globex": 0}


@pytest.mark.parametrize("many", [1, 23])
def test_messages_sent_together_all_come(queue: WorkQueue, many: int):
    sent = [Message(job_id=f"j{n}", tenant="acme") for n in range(many)]
    queue.send_all([(message, 0.0) for message in sent])
    got: set[str] = set()
    for _ in range(10 * many):
        got |= {d.message.job_id for d in queue.receive(most=10, wait=1, visibility=60)}
        if len(got) == many:
            return
    raise AssertionError(f"{many - len(got)} of {many} messages did not come")


def test_what_sqs_could_not_take_of_a_batch_is_sent_again(queue: WorkQueue, monkeypatch: pytest.MonkeyPatch):
    if not isinstance(queue, SqsWorkQueue):
        pytest.skip("only SQS answers for each message of a batch")
    real, asked = queue._sqs.send_message_batch, []

    def partly(**request: Any) -> dict[str, Any]:
        asked.append([entry["Id"] for entry in request["Entries"]])
        if len(asked) > 1:
            return real(**request)
        refused = request["Entries"][1::2]
        real(**request | {"Entries": request["Entries"][::2]})
        return {"Failed": [{"Id": entry["Id"], "SenderFault": False, "Code": "InternalError"} for entry in refused]}

    monkeypatch.setattr(queue._sqs, "send_message_batch", partly)
    queue.send_all([(Message(job_id=f"j{n}", tenant="acme"), 0.0) for n in range(5)])
    assert asked == [["0", "1", "2", "3", "4"], ["1", "3"]]
