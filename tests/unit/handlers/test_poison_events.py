"""One event that breaks its reader keeps no other back: not in a poll, not in a batch, not on the wire."""

import gc
import http.client
import io
import json
import socket
import threading
from contextlib import ExitStack, closing, suppress

import pytest

from core.errors import CallRefused
from handlers.events import UnknownEvent, decode, newest
from handlers.planning import Report
from handlers.sources.arrivals import Arrivals
from handlers.sources.aws_lambda import LambdaHandler
from handlers.sources.event_queue import Poller
from handlers.sources.webhook import Webhook
from infra.aws.sqs_events import RawEvent
from infra.local.sqlite import Database
from infra.logs import Log
from infra.telemetry import Telemetry

TOKEN = "a secret of some length"
LOG = Log(stream=io.StringIO())


def s3_record(**changed):
    found = {"key": "inbox/acme/a.csv", "sequencer": "0A"} | changed
    return {
        "eventVersion": "2.1",
        "eventName": "ObjectCreated:Put",
        "s3": {"bucket": {"name": "drops"}, "object": found},
    }


def s3_body(**changed):
    return json.dumps({"Records": [s3_record(**changed)]})


def bridge(**changed):
    found = {"key": "inbox/acme/a.csv", "sequencer": "0A"} | changed
    detail = {"bucket": {"name": "drops"}, "object": found}
    return json.dumps({"source": "aws.s3", "detail-type": "Object Created", "detail": detail})


POISON = {
    "deep list": "[" * 200_000,
    "deep object": '{"a":' * 100_000,
    "deep inside": json.dumps({"Type": "Notification", "Message": "[" * 200_000}),
    "key null": s3_body(key=None),
    "key number": s3_body(key=7),
    "bridge key null": bridge(key=None),
    "bucket null": s3_body().replace('"drops"', "null"),
    "records of numbers": '{"Records": [1, 2]}',
    "event name null": s3_body().replace('"ObjectCreated:Put"', "null"),
    "weed times": json.dumps(
        {
            "event_type": "create",
            "key": "/buckets/drops/inbox/acme/a.csv",
            "message": {"new_entry": {"chunks": [{"modified_ts_ns": "x"}]}},
        }
    ),
    "not text": "\udcff",
}


class Looks:
    telemetry = Telemetry()

    def __init__(self):
        self.keys = []

    def changed(self, keys):
        self.keys += keys
        return Report()


@pytest.mark.parametrize("name", POISON)
def test_poison_is_an_event_that_nobody_knows(name):
    with pytest.raises(UnknownEvent):
        decode(POISON[name])


@pytest.mark.parametrize("body", [s3_body(sequencer=None), s3_body(sequencer=7), bridge(sequencer=None)])
def test_an_event_without_a_sequencer_is_still_a_hint(body):
    assert [change.key for change in newest([*decode(body), *decode(s3_body())])] == ["inbox/acme/a.csv"]


class Events:
    def __init__(self, *bodies, refuses=True):
        self.bodies = [RawEvent(body, str(n), 1) for n, body in enumerate(bodies)]
        self.done, self.refused, self.refuses = [], [], refuses

    def receive(self):
        return self.bodies

    def done_all(self, events):
        self.done += [event.receipt for event in events]

    def refuse(self, body, reason):
        if not self.refuses:
            raise CallRefused("too long")
        self.refused.append(reason)


@pytest.mark.parametrize("name", POISON)
@pytest.mark.parametrize("refuses", [True, False], ids=["told", "not even that"])
def test_the_poller_sets_poison_aside_and_takes_the_rest(name, refuses):
    looks, events = Looks(), Events(POISON[name], s3_body(), refuses=refuses)
    assert Poller(events, Arrivals(looks, "drops"), LOG).once() == 1
    assert looks.keys == ["inbox/acme/a.csv"]
    assert events.done == (["0", "1"] if refuses else ["1"])


@pytest.mark.parametrize("name", POISON)
def test_a_batch_of_lambda_gives_back_only_its_poison(name):
    looks = Looks()
    records = [
        {"eventSource": "aws:sqs", "messageId": "bad", "body": POISON[name]},
        {"eventSource": "aws:sqs", "messageId": "good", "body": s3_body()},
    ]
    answer = LambdaHandler(Arrivals(looks, "drops"), LOG)({"Records": records})
    assert answer == {"batchItemFailures": [{"itemIdentifier": "bad"}]}
    assert looks.keys == ["inbox/acme/a.csv"]


@pytest.mark.parametrize("odd", [None, 7, {}, {"eventSource": "aws:sqs"}, {"eventSource": "aws:sqs", "messageId": "b"}])
def test_a_record_that_is_no_message_does_not_block_the_others(odd):
    looks = Looks()
    good = {"eventSource": "aws:sqs", "messageId": "good", "body": s3_body()}
    answer = LambdaHandler(Arrivals(looks, "drops"), LOG)({"Records": [odd, good]})
    assert "good" not in str(answer)
    assert looks.keys == ["inbox/acme/a.csv"]


# On the wire


@pytest.fixture
def hook():
    looks = Looks()
    webhook = Webhook("127.0.0.1:0", TOKEN, Arrivals(looks, "drops"), LOG)
    thread = threading.Thread(target=webhook.serve)
    thread.start()
    yield webhook.address.removeprefix("http://"), looks
    webhook.stop()
    thread.join(20)
    assert not thread.is_alive()


def post(address, body, token=TOKEN):
    with closing(http.client.HTTPConnection(address, timeout=20)) as connection:
        connection.request("POST", "/events", body, {"Authorization": f"Bearer {token}"})
        return connection.getresponse().status


def slow(address, opened, sent):
    host, _, port = address.partition(":")
    client = opened.enter_context(closing(socket.create_connection((host, int(port)), timeout=20)))
    client.sendall(sent)


HALF_A_REQUEST = f"POST /events HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 100\r\n\r\n{{".encode()


@pytest.mark.parametrize("sent", [b"", b"POST /ev", HALF_A_REQUEST], ids=["nothing", "half a line", "half a body"])
@pytest.mark.parametrize("clients", [150, 450])
def test_slow_clients_cost_no_threads_and_keep_nobody_out(hook, clients, sent):
    address, looks = hook
    before = threading.active_count()
    with ExitStack() as opened:
        for _ in range(clients):
            slow(address, opened, sent)
        assert post(address, s3_body()) == 204
        assert threading.active_count() - before <= 16
    assert looks.keys == ["inbox/acme/a.csv"]


@pytest.mark.parametrize(
    "sent", [b"nonsense\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"POST /events HTTP/1.1\r\nno colon\r\n\r\n", b"x" * 40_000]
)
def test_what_is_no_http_is_answered_or_dropped(hook, sent):
    address, _ = hook
    with ExitStack() as opened:
        slow(address, opened, sent)
        assert post(address, s3_body()) == 204


def test_a_connection_that_is_being_accepted_when_the_server_stops_is_closed():
    webhook = Webhook("127.0.0.1:0", TOKEN, Arrivals(Looks(), "drops"), LOG)
    thread = threading.Thread(target=webhook.serve)
    thread.start()
    webhook._begun.wait()
    host, _, port = webhook.address.removeprefix("http://").partition(":")
    clients = []

    def connect() -> None:
        """In one round of the loop; the next accepts the connection right after it was told to stop."""
        clients.append(socket.create_connection((host, int(port)), timeout=20))
        webhook._loop.call_soon(webhook._stopping.set)

    webhook._loop.call_soon_threadsafe(connect)
    thread.join(20)
    assert not thread.is_alive()
    webhook.stop()
    with clients.pop() as client, suppress(ConnectionResetError):
        assert client.recv(1) == b""
    gc.collect()  # complains of a socket that nobody closed


@pytest.mark.parametrize("name", POISON)
def test_poison_on_the_wire_is_refused(hook, name):
    address, _ = hook
    assert post(address, POISON[name].encode("utf-8", "surrogateescape")) == 400
    assert post(address, s3_body()) == 204


def test_connections_of_threads_that_ended_are_closed(tmp_path):
    with closing(Database(tmp_path / "ade.sqlite")) as database:
        for _ in range(50):
            thread = threading.Thread(target=database.read)
            thread.start()
            thread.join()
        database.read()
        assert len(database._all) <= 3
