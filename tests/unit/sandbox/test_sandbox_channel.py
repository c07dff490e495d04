"""The result channel: what a box says is taken only in the one form that an engine of ours writes."""

import json
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.engine.contract import MAX_LINE, FinalEvent, PassProgress, escape_controls
from runner.sandbox.claims import Channel, ChannelViolation, parse_line
from runner.sandbox.session import read_ready

END = b'{"event": "end", "ok": true, "summary": {"rows_out": 3}}\n'


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b'"text"',
        b"{}",
        b'{"event": 3}',
        b'{"event": "progress", "pass": "cooking", "done": 1}',
        b'{"event": "progress", "pass": "write", "done": -1}',
        b'{"event": "progress", "pass": "write", "done": true}',
        b'{"event": "progress", "pass": "write", "done": 1.5}',
        b'{"event": "log", "fields": []}',
        b'{"event": "end"}',
        b'{"event": "end", "ok": 1}',
        b'{"event": "end", "ok": true, "summary": []}',
        b'{"event": "end", "ok": false}',
        b'{"event": "end", "ok": false, "error": {"code": "party"}}',
        b'{"event": "end", "ok": false, "error": {"code": "rule_error", "where": []}}',
        b'{"event": "verified"}',
        b'{"event": "verified", "ok": true, "summary": []}',
        b'{"event": "verified", "ok": true}\n{"event": "verified", "ok": true}',
        b'{"event": "end", "ok": true}\n{"event": "verified", "ok": true}',
        b'{"event": "x", "n": NaN}',
        b'{"event": "x", "n": Infinity}',
        b'{"event": "x", "n": 1e999}',
        b'{"event": "x", "n": ' + b"9" * 40 + b"}",
        b'{"event": "x", "event": "y"}',
        b'{"event": "x", "s": "\\ud800"}',
        b'{"event": "x", "s": "\xff"}',
        b'{"event": "x", "n": ' + b"[" * 17 + b"]" * 17 + b"}",
        b"[" * 30000,
        b'{"event": "x", "s": "' + b"a" * MAX_LINE + b'"}',
    ],
)
def test_a_line_that_no_engine_writes_is_a_violation(line):
    with pytest.raises(ChannelViolation):
        Channel().feed(line + b"\n")


def feed_again_and_again(data, times):
    channel = Channel()
    for _ in range(times):
        channel.feed(data)


def test_an_unfinished_line_may_not_grow_for_ever():
    with pytest.raises(ChannelViolation):
        feed_again_and_again(b"x" * 1024, 100)


def test_nothing_may_follow_the_closing_line():
    with pytest.raises(ChannelViolation):
        Channel().feed(END + END)


def test_a_last_line_without_its_end_is_a_violation():
    channel = Channel()
    channel.feed(END[:-1])
    with pytest.raises(ChannelViolation):
        channel.close()


def test_the_whole_of_what_is_reported_is_capped():
    line = b'{"event": "x", "s": "' + b"a" * 60000 + b'"}\n'
    with pytest.raises(ChannelViolation):
        feed_again_and_again(line, 1000)


def test_unknown_events_are_ignored():
    assert Channel().feed(b'{"event": "party", "guests": [1, 2]}\n') == []


def test_a_closing_error_keeps_only_what_is_known_of_its_place():
    line = {"code": "rule_error", "message": "m", "where": {"rule": "r", "line": 3, "cell": None, "value": "secret"}}
    channel = Channel()
    channel.feed(json.dumps({"event": "end", "ok": False, "error": line}).encode() + b"\n")
    assert channel.end.error.where == {"rule": "r", "line": 3}


def test_a_long_message_is_cut():
    line = {"event": "end", "ok": False, "error": {"code": "rule_error", "message": "m" * 9999}}
    channel = Channel()
    channel.feed(json.dumps(line).encode() + b"\n")
    assert len(channel.end.error.message) == 2000


@given(st.lists(st.integers(1, 40), max_size=20))
def test_events_are_the_same_however_the_bytes_are_cut(sizes):
    data = b'{"event": "progress", "pass": "write", "done": 1, "total": null}\n' * 3 + END
    channel, events, at = Channel(), [], 0
    for size in [*sizes, len(data)]:
        events += channel.feed(data[at : at + size])
        at += size
    channel.close()
    assert [type(event) for event in events] == [PassProgress, PassProgress, PassProgress, FinalEvent]


@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_raise_a_violation(data):
    try:
        parse_line(data)
    except ChannelViolation:
        return


def test_control_characters_of_a_log_line_are_made_visible():
    shown = escape_controls("a\x1b[31mred\u202eb\x00\u009b\ttab")
    assert shown == "a\\x1b[31mred\\u202eb\\x00\\x9b\ttab"


@given(st.text())
def test_a_printable_line_is_one_line_without_escapes(text):
    shown = escape_controls(text)
    assert "\x1b" not in shown
    assert len(shown.splitlines()) <= 1


def test_a_box_that_was_killed_before_it_read_everything_ends_the_channel():
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)
        assert read_ready(ours.fileno()) is None
        theirs.send(b"last words")
        ours.send(b"an order that nobody reads")
        theirs.close()
        found = [read_ready(ours.fileno()) for _ in range(2)]
    assert found[-1] == b"", "an error at the end of a killed box is the end"
