"""Who may be told, how it is signed, how long it is tried, and when a drop is missing. Pure decisions."""

import hashlib
import hmac
import json
import re
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ManifestInvalid
from core.jobs import (
    Job,
    JobError,
    Lease,
    Notice,
    NotifyRule,
    ObjectRef,
    Review,
    State,
    ask,
    decided,
    job_dict,
    move,
    start,
)
from core.manifests import parse_manifest
from core.notices import (
    MOST_TRIES,
    Allowed,
    Refusal,
    body,
    check_addresses,
    delivered,
    is_public,
    key_of,
    last_deadline,
    pending,
    postponed,
    signature,
)
from core.verdicts import Verdict

HOOK = "https://hooks.example.com/ade"
ALL = ("succeeded", "failed", "review", "missing")
TOPIC = "arn:aws:sns:eu-west-1:1:ops"


def job(state=State.RUNNING, **more):
    rules = (NotifyRule(to=HOOK, on=ALL), NotifyRule(to=TOPIC, on=("failed",)))
    lease = Lease(owner="r", expires=9.0) if state is State.RUNNING else None
    base = Job(job_id="acme-m-1", identity="x", tenant="acme", workflow="m", subject="d/a.csv", notify=rules)
    return replace(base, state=state, lease=lease, **more)


def kinds(row):
    return [(notice.kind, notice.to) for notice in row.notices]


def test_each_receiver_gets_a_notice_of_what_it_asked_for():
    assert kinds(move(job(), State.FAILED, now=1.0)) == [("failed", HOOK), ("failed", TOPIC)]
    assert kinds(move(job(), State.TIMED_OUT, now=1.0)) == [("failed", HOOK), ("failed", TOPIC)]
    assert kinds(move(job(State.PUBLISHING), State.SUCCEEDED, now=1.0)) == [("succeeded", HOOK)]


@pytest.mark.parametrize("to", [State.CANCELLED, State.SKIPPED, State.QUEUED, State.PUBLISHING])
def test_of_other_states_nobody_is_notified(to):
    assert move(job(), to, now=1.0).notices == ()


def test_a_review_that_was_answered_before_its_notice_went_out_is_no_news():
    asked = ask(job(), now=1.0, review=Review(questions=1, on_expiry="fail"), expires=60.0, key="k")
    assert kinds(asked) == [("review", HOOK)]
    answer = ObjectRef(key="k", version="1", digest="d", size=1)
    assert decided(asked, answer, now=2.0, at=2.0).notices == ()


def test_what_was_not_reported_yet_survives_a_retry():
    failed = move(job(), State.FAILED, now=1.0)
    again = move(failed, State.QUEUED, now=2.0)
    assert again.notices == failed.notices
    assert start(again, owner="r", now=3.0, lease_seconds=30.0).notices == failed.notices


def test_an_expired_job_says_nothing_any_more():
    assert move(move(job(), State.FAILED, now=1.0), State.EXPIRED, now=2.0).notices == ()


def test_nothing_is_due_before_the_result_is_in_the_bucket():
    failed = move(job(), State.FAILED, now=1.0)
    assert failed.unpublished
    assert pending(failed) is None
    assert pending(replace(failed, unpublished=False)) == 1.0


def test_each_failure_waits_longer_and_the_last_gives_up():
    row, now, waits = move(job(State.PUBLISHING), State.SUCCEEDED, now=0.0), 0.0, []
    (first,) = row.notices
    while row.notices:
        (notice,) = row.notices
        assert notice.id == first.id
        now = notice.next_at
        row = postponed(row, notice.id, now=now, jitter=0.5)
        waits += [n.next_at - now for n in row.notices]
    assert len(waits) == MOST_TRIES - 1
    assert waits == sorted(waits)
    assert 18 * 3600 < sum(waits) < 48 * 3600 - 3600, "given up before the outputs expire"


def test_a_notice_that_is_gone_changes_nothing():
    row = move(job(State.PUBLISHING), State.SUCCEEDED, now=0.0)
    assert delivered(row, "another") is None
    assert postponed(row, "another", now=1.0, jitter=0.0) is None


def test_the_body_names_and_counts_and_quotes_nothing():
    error = JobError(verdict=Verdict.RULE_ERROR, message="cell B2 is 'secret'", where={"cell": "B2"})
    row = move(job(), State.FAILED, now=1.0, error=error, summary={"rows_in": 3, "rows_out": 2, "cell": "secret"})
    event = json.loads(body(row, row.notices[0]))
    told = event["data"]
    # Attributes of a CloudEvent are of small letters and digits, and these are the required ones.
    assert all(re.fullmatch(r"[a-z0-9]{1,20}", name) for name in event)
    assert {"specversion", "id", "source", "type"} <= event.keys()
    assert "secret" not in json.dumps(told)
    assert (told["verdict"], told["fault"]) == ("rule_error", "config")
    assert told["counts"] == {"rows_in": 3, "rows_out": 2}
    assert told["result"] == "outputs/acme/d/a.csv/m/acme-m-1/result.json"
    assert told["id"] == row.notices[0].id


def test_the_source_of_an_event_is_a_uri_whatever_the_names_are():
    row = move(job(tenant="Ä b/c"), State.FAILED, now=1.0)
    assert json.loads(body(row, row.notices[0]))["source"] == "ade-drop/%C3%84%20b%2Fc/m"


def test_the_subject_of_an_event_has_no_character_that_events_must_not_have():
    name = "d/\x85\ufffe\U0001ffffé☃.csv"
    row = move(job(subject=name), State.FAILED, now=1.0)
    event = json.loads(body(row, row.notices[0]))
    assert (event["subject"], event["data"]["subject"]) == ("d/\ufffd\ufffd\ufffdé☃.csv", name)


def test_the_signature_is_what_the_docs_say():
    key = hmac.new(b"s" * 32, b"hooks.example.com", hashlib.sha256).hexdigest()
    assert key_of("s" * 32, "hooks.example.com") == key
    expected = hmac.new(key.encode(), b"1700000000.{}", hashlib.sha256).hexdigest()
    assert signature(key, "1700000000", b"{}") == f"v1={expected}"
    assert key_of("s" * 32, "other.example.com") != key


ALLOW = (
    "hooks.example.com, *.corp.example, http://127.0.0.1:9000, https://inner.example:8443, arn:aws:sns:eu-west-1:1:*"
)


@pytest.mark.parametrize(
    ("to", "private"),
    [
        (HOOK, False),
        ("https://HOOKS.example.com:443/x?y=1", False),
        ("https://a.b.corp.example/", False),
        ("http://127.0.0.1:9000/x", True),
        ("https://inner.example:8443", True),
        (TOPIC, False),
    ],
)
def test_what_the_operator_allows(to, private):
    found = Allowed(ALLOW).receiver(to)
    assert not isinstance(found, Refusal), found
    assert found.private is private


@pytest.mark.parametrize(
    "to",
    [
        "http://hooks.example.com/",
        "https://hooks.example.com:8443/",
        "https://evil.example/",
        "https://hooks.example.com.evil.example/",
        "https://hooks.example.com@evil.example/",
        "https://evil.example\\@hooks.example.com/",
        "https://evil.example#@hooks.example.com/",
        "https://corp.example/",
        "https://evilcorp.example/",
        "https://xcorp.example/",
        "http://127.0.0.1:9001/",
        "http://127.0.0.1/",
        "https://[::1]/",
        "https://hooks.example.com\n/",
        "https://hooks.example.com:99999999/",
        "file:///etc/passwd",
        "arn:aws:sns:eu-west-1:2:ops",
        "arn:aws:sqs:eu-west-1:1:ops",
        "arn:aws:events:eu-west-1:1:event-bus/x",
    ],
)
def test_what_the_operator_does_not_allow(to):
    assert isinstance(Allowed(ALLOW).receiver(to), Refusal)


def test_unless_the_operator_says_so_nothing_is_allowed():
    for to in (HOOK, TOPIC, "http://127.0.0.1:9000/"):
        assert isinstance(Allowed("").receiver(to), Refusal)


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_a_refusal(text):
    for to in (text, f"https://{text}", f"arn:aws:sns:{text}"):
        Allowed(ALLOW).receiver(to)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1", "::1", "fe80::1", "fd00:ec2::254", "::ffff:10.0.0.1", "2002:a00:1::", "::", "x", "64:ff9b::a00:1", "64:ff9b:1::a00:1", "::10.0.0.1", "::ffff:0:a00:1", "fec0::1", "2001:0:a00:1::", "100::1"],
)  # fmt: skip
def test_addresses_that_are_not_of_the_internet(address):
    assert not is_public(address)
    assert isinstance(check_addresses(["93.184.215.14", address], private=False), Refusal)
    assert check_addresses([address], private=True) == address


def test_an_address_of_the_internet():
    assert check_addresses(["93.184.215.14", "2606:4700::1111"], private=False) == "93.184.215.14"
    assert isinstance(check_addresses([], private=True), Refusal)


def at(text, zone="Europe/Berlin"):
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("now", "days", "last", "before"),
    [
        ("2026-11-17T09:00", "mon tue wed thu fri sat sun", "2026-11-17T09:00", "2026-11-16T09:00"),
        ("2026-11-17T08:59", "mon tue wed thu fri sat sun", "2026-11-16T09:00", "2026-11-15T09:00"),
        ("2026-11-16T12:00", "mon tue wed thu fri", "2026-11-16T09:00", "2026-11-13T09:00"),
        ("2026-11-15T12:00", "mon", "2026-11-09T09:00", "2026-11-02T09:00"),
        ("2026-03-29T12:00", "mon tue wed thu fri sat sun", "2026-03-29T09:00", "2026-03-28T09:00"),
    ],
)
def test_the_last_deadline_and_the_one_before(now, days, last, before):
    found = last_deadline("09:00", "Europe/Berlin", tuple(days.split()), at(now))
    assert (found.at, found.since) == (at(last), at(before))


@given(st.floats(0, 4e9), st.sampled_from(["02:30", "00:00", "23:59"]), st.sampled_from(["mon", "sun"]))
def test_a_deadline_is_past_and_its_predecessor_a_week_before(now, by, day):
    found = last_deadline(by, "Europe/Berlin", (day,), now)
    assert found.at <= now < found.at + 7 * 86400 + 7200
    assert abs(found.at - found.since - 7 * 86400) <= 3600


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"notify": [{"to": "ftp://x"}]}, "$.notify[0].to"),
        ({"notify": [{"to": HOOK, "on": []}]}, "$.notify[0].on"),
        ({"notify": [{"to": HOOK, "on": ["lost"]}]}, "$.notify[0].on"),
        ({"notify": [{"to": HOOK}] * 11}, "$.notify"),
        ({"expect": {"by": "24:00"}}, "$.expect.by"),
        ({"expect": {"by": "09:00", "tz": "Mars/Base"}}, "$.expect.tz"),
        ({"expect": {"by": "09:00", "tz": "../../etc/passwd"}}, "$.expect.tz"),
        ({"expect": {"by": "09:00", "days": []}}, "$.expect.days"),
    ],
)
def test_a_manifest_that_is_wrong_about_them_says_where(more, where):
    with pytest.raises(ManifestInvalid) as caught:
        parse_manifest(json.dumps({"manifest": 1, "name": "m", "fields": [{"name": "id"}]} | more).encode())
    assert where in [problem.path for problem in caught.value.problems]


def test_a_notice_is_small():
    assert Notice(id="i", kind="failed", to=HOOK, at=1.0, next_at=1.0).tries == 0


def test_the_address_of_a_receiver_is_shown_to_nobody():
    row = move(job(), State.FAILED, now=1.0)
    assert "hooks.example.com" not in json.dumps(job_dict(row))


@pytest.mark.parametrize(("errors", "expected"), [(2, {HOOK: "succeeded", TOPIC: "errors"}), (0, {HOOK: "succeeded"})])
def test_a_result_with_errors_is_reported_once_to_each_receiver(errors, expected):
    rules = (NotifyRule(to=HOOK, on=("succeeded", "errors")), NotifyRule(to=TOPIC, on=("errors",)))
    summary = {"rows_in": 9, "rows_with_errors": 2, "findings": {"error": errors, "warning": 0, "info": 0}}
    done = move(job(State.PUBLISHING, notify=rules, summary=summary), State.SUCCEEDED, now=1.0)
    assert {notice.to: notice.kind for notice in done.notices} == expected
    sent = json.loads(body(done, done.notices[-1]))["data"]
    assert sent["outcome"] == ("errors" if errors else "clean")
    assert sent["result"].endswith("/result.json")
