"""Notices on their way: a real HTTP server takes them, refuses them, redirects and hangs; processes die in between."""

import contextlib
import hashlib
import hmac
import http.server
import json
import socket
import threading
import time

import boto3
import pytest

from core.jobs import State
from core.notices import NOTICE_ID, SIGNATURE, TIMESTAMP, Refusal
from core.verdicts import Verdict
from infra.deliveries import Deliveries, NotDelivered
from tests.contract import servers
from tests.support.world import Crash, World

SECRET = "a secret of many characters"
NINE = 1_790_000_000.0  # some moment; the world's clock starts elsewhere


class Hook:
    """A receiver that answers as told and keeps what it got."""

    def __init__(self):
        self.got, self.statuses = [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                outer.got.append((self.path, dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(outer.statuses.pop(0) if outer.statuses else 204)
                self.send_header("Location", f"{outer.origin}/elsewhere")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        self.url = f"{self.origin}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def kinds(self):
        return [json.loads(body)["data"]["kind"] for _, _, body in self.got]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def hook():
    made = Hook()
    yield made
    made.close()


@pytest.fixture
def world(tmp_path, hook):
    made = World(tmp_path, notify_allow=hook.origin, notify_secret=SECRET)
    yield made
    made.close()


def drop(world, hook, **more):
    world.intake.changed(world.drop(notify=[{"to": hook.url}], **more))


def test_a_success_is_reported_once_signed_and_after_its_result(world, hook):
    drop(world, hook)
    world.work_off(world.runner())
    (job,) = world.jobs()
    assert (job.state, job.notices) == (State.SUCCEEDED, ())
    ((path, headers, body),) = hook.got
    event = json.loads(body)
    told = event["data"]
    assert headers["Content-Type"] == "application/cloudevents+json; charset=utf-8"
    assert (event["specversion"], event["id"], event["type"]) == ("1.0", told["id"], "dev.ade-drop.notice.succeeded")
    assert (event["source"], event["subject"]) == ("ade-drop/acme/members", "d/a.csv")
    assert (path, told["kind"], told["job_id"]) == ("/hook", "succeeded", job.job_id)
    assert world.store.head(told["result"]) is not None
    key = hmac.new(SECRET.encode(), b"127.0.0.1", hashlib.sha256).hexdigest()
    signed = hmac.new(key.encode(), headers[TIMESTAMP].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert headers[SIGNATURE] == f"v1={signed}"
    assert headers[NOTICE_ID] == told["id"]


def test_a_failure_is_reported_with_whose_fault_it_was(world, hook):
    world.sandbox.verdict = Verdict.RULE_ERROR
    drop(world, hook)
    world.work_off(world.runner())
    told = json.loads(hook.got[0][2])["data"]
    assert (told["kind"], told["verdict"], told["fault"]) == ("failed", "rule_error", "config")


def test_a_review_is_reported_once_its_questions_are_published(world, hook):
    world.sandbox.asks = True
    drop(world, hook, mapping={"review": "always"})
    runner = world.runner()
    world.handle_one(runner)
    runner.janitor.chores()
    assert hook.kinds() == ["review"]
    assert world.store.head(json.loads(hook.got[0][2])["data"]["review"]) is not None
    assert world.jobs()[0].state is State.REVIEW


@pytest.mark.parametrize("status", [301, 307, 400, 404, 500, 503])
def test_a_receiver_that_does_not_take_it_gets_it_again_with_the_same_id(world, hook, status):
    hook.statuses = [status]
    drop(world, hook)
    world.work_off(world.runner())
    assert [path for path, _, _ in hook.got] == ["/hook", "/hook"], "and no redirect is followed"
    assert len({headers[NOTICE_ID] for _, headers, _ in hook.got}) == 1
    assert world.jobs()[0].notices == ()


@pytest.mark.parametrize("step", range(8))
def test_whoever_dies_after_the_end_was_written_loses_no_notice(world, hook, step):
    drop(world, hook)
    first = world.runner()
    world.handle_one(first)
    assert len(world.jobs()[0].notices) == 1, "written with the end, not yet delivered"
    world.crasher.arm(step, after=True)
    with contextlib.suppress(Crash):
        first.janitor.chores()
    world.crasher.arm(None)
    world.work_off(world.runner())
    assert set(hook.kinds()) == {"succeeded"}
    assert len({headers[NOTICE_ID] for _, headers, _ in hook.got}) == 1
    assert world.jobs()[0].notices == ()


def test_a_receiver_that_nobody_allowed_gets_nothing(tmp_path, hook):
    world = World(tmp_path, notify_allow="hooks.example.com", notify_secret=SECRET)
    drop(world, hook)
    world.work_off(world.runner())
    assert hook.got == []
    assert world.jobs()[0].notices == ()
    assert "ADE_NOTIFY_ALLOW does not name" in world.log._stream.getvalue()
    world.close()


def test_without_a_secret_no_webhook_is_called(tmp_path, hook):
    world = World(tmp_path, notify_allow=hook.origin)
    drop(world, hook)
    world.work_off(world.runner())
    assert hook.got == []
    world.close()


def test_a_receiver_that_is_down_delays_nothing_and_is_given_up_after_a_day(world, hook):
    hook.statuses = [500] * 100
    drop(world, hook)
    runner = world.runner()
    world.handle_one(runner)
    assert world.result(world.jobs()[0])["status"] == "SUCCEEDED"
    for _ in range(40):
        runner.janitor.chores()
        world.clock.move(3600)
    assert world.jobs()[0].notices == ()
    assert 10 < len(hook.got) < 20
    assert "notice_given_up" in world.log._stream.getvalue()


def test_in_threads_of_their_own_deliveries_clear_their_rows(world, hook):
    drop(world, hook)
    runner = world.runner()
    world.handle_one(runner)
    runner.janitor.notifier.start()
    runner.janitor.chores()
    runner.janitor.notifier.stop()
    assert hook.kinds() == ["succeeded"]
    assert world.jobs()[0].notices == ()


@contextlib.contextmanager
def answering(head: bytes, more: bytes = b""):
    """A server that answers each call with these bytes, the last of them without end; its origin, and the calls."""
    calls = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            with contextlib.suppress(OSError):
                while True:
                    taken, _ = server.accept()
                    with contextlib.suppress(OSError), taken:
                        calls.append(taken.recv(65536))
                        taken.sendall(head)
                        while more:
                            taken.sendall(more)

        threading.Thread(target=answer, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", calls


def deliveries(hook, allow="", **more):
    return Deliveries(allow or hook.origin, SECRET, now=lambda: NINE, **more)


class TestSending:
    def test_the_checked_address_is_the_one_that_is_called(self, hook):
        """A name that answers otherwise the second time is asked once only."""
        answers = [["127.0.0.1"], ["10.0.0.1"]]
        port = hook.server.server_port
        sender = deliveries(hook, f"http://rebound.example:{port}", resolve=lambda _host, _port: answers.pop(0))
        assert sender.send(f"http://rebound.example:{port}/x", "i", "failed", b"{}") is None
        assert len(answers) == 1
        assert hook.got[0][1]["Host"] == f"rebound.example:{port}"

    def test_a_public_name_with_a_private_address_is_refused(self, hook):
        sender = deliveries(hook, "hooks.example.com", resolve=lambda *_: ["169.254.169.254"])
        assert isinstance(sender.send("https://hooks.example.com/", "i", "failed", b"{}"), Refusal)
        assert hook.got == []

    def test_an_answer_that_is_no_http_is_not_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as server:

            def nonsense():
                taken, _ = server.accept()
                taken.sendall(b"\x00\xff" * 5000 + b"\n")
                taken.close()

            threading.Thread(target=nonsense, daemon=True).start()
            origin = f"http://127.0.0.1:{server.getsockname()[1]}"
            with pytest.raises(NotDelivered):
                Deliveries(origin, SECRET, now=lambda: NINE).send(f"{origin}/", "i", "failed", b"{}")

    def test_an_answer_that_trickles_is_cut_off(self):
        self.check_cut_off("http", b"HTTP/1.1 200 OK\r\n", b"x: y\r\n")

    def test_a_tls_handshake_that_trickles_is_cut_off(self):
        hello = b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc"  # a long server hello, byte by byte
        self.check_cut_off("https", hello, b"\x03")

    def check_cut_off(self, scheme: str, head: bytes, more: bytes):
        with socket.create_server(("127.0.0.1", 0)) as server:

            def trickle():
                taken, _ = server.accept()
                with contextlib.suppress(OSError), taken:
                    taken.sendall(head)
                    while True:  # until it is cut
                        taken.sendall(more)
                        threading.Event().wait(0.05)

            threading.Thread(target=trickle, daemon=True).start()
            origin = f"{scheme}://127.0.0.1:{server.getsockname()[1]}"
            with pytest.raises(NotDelivered):
                Deliveries(origin, SECRET, now=lambda: NINE, seconds=0.3).send(f"{origin}/", "i", "failed", b"{}")

    @pytest.mark.parametrize("to", ["{inner}/", "//{host}/", "file:///etc/passwd", "/again", "http://169.254.169.254/"])
    def test_no_redirect_is_followed_wherever_it_leads(self, hook, to):
        inner = to.format(inner=hook.origin, host=hook.origin.removeprefix("http://"))
        for status in (301, 302, 303, 307, 308):
            head = f"HTTP/1.1 {status} Moved\r\nLocation: {inner}\r\nContent-Length: 0\r\n\r\n"
            with answering(head.encode()) as (origin, calls), pytest.raises(NotDelivered, match=str(status)):
                Deliveries(origin, SECRET, now=lambda: NINE).send(f"{origin}/", "i", "failed", b"{}")
            assert (len(calls), hook.got) == (1, [])

    @pytest.mark.parametrize(
        ("head", "more"),
        [
            (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
            (b"HTTP/1.1 200 ", b"x" * 9000),
            (b"HTTP/1.1 200 OK\r\n", b"x: " + b"y" * 9000 + b"\r\n"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;", b"x" * 9000),
        ],
    )
    def test_an_answer_without_end_is_cut_off(self, head, more):
        with answering(head, more) as (origin, _), pytest.raises(NotDelivered):
            Deliveries(origin, SECRET, now=lambda: NINE, seconds=0.3).send(f"{origin}/", "i", "failed", b"{}")

    @pytest.mark.parametrize("words", [b"Content-Encoding: gzip", b"Content-Length: 99999999999999", b"x: y"])
    def test_of_a_body_without_end_little_is_read(self, words):
        with answering(b"HTTP/1.1 200 OK\r\n" + words + b"\r\n\r\n", b"\x1f\x8b" * 9000) as (origin, _):
            assert Deliveries(origin, SECRET, now=lambda: NINE).send(f"{origin}/", "i", "failed", b"{}") is None

    def test_nobody_there_is_not_taken(self, hook):
        hook.close()
        with pytest.raises(NotDelivered):
            deliveries(hook).send(hook.url, "i", "failed", b"{}")

    def test_a_topic_and_a_bus(self, hook):
        calls = []

        class Client:
            def publish(self, **given):
                calls.append(given)
                return {}

            def put_events(self, **given):
                calls.append(given)
                return {"FailedEntryCount": 0, "Entries": [{}]}

        topic, bus = "arn:aws:sns:eu-west-1:1:ops", "arn:aws:events:eu-west-1:1:event-bus/x"
        wanted = []
        sender = deliveries(hook, f"{topic},{bus}", clients=lambda *asked: wanted.append(asked) or Client())
        for to in (topic, bus):
            assert sender.send(to, "i", "failed", b'{"notice": 1}') is None
        assert wanted == [("sns", "eu-west-1"), ("events", "eu-west-1")]
        assert (calls[0]["TopicArn"], json.loads(calls[0]["Message"])) == (topic, {"notice": 1})
        assert calls[0]["MessageAttributes"]["id"]["StringValue"] == "i"
        (entry,) = calls[1]["Entries"]
        assert (entry["EventBusName"], entry["DetailType"]) == (bus, "notice failed")

    @pytest.mark.slow
    def test_they_arrive_at_a_topic_and_a_bus_of_a_server(self, hook, monkeypatch):
        """With boto3's own clients, over HTTP; queues listen to both."""
        with servers.credentials(server := servers.moto()):
            monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
            sns, sqs, events = (boto3.client(name, region_name="eu-west-1") for name in ("sns", "sqs", "events"))
            topic = sns.create_topic(Name="notices")["TopicArn"]
            bus = events.create_event_bus(Name="notices")["EventBusArn"]
            queues = {to: sqs.create_queue(QueueName=f"notices-{n}")["QueueUrl"] for n, to in enumerate((topic, bus))}
            arns = {
                to: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
                for to, url in queues.items()
            }
            sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arns[topic])
            rule = {"Name": "failures", "EventBusName": "notices"}
            events.put_rule(**rule, EventPattern=json.dumps({"source": ["ade-drop"], "detail-type": ["notice failed"]}))
            events.put_targets(Rule="failures", EventBusName="notices", Targets=[{"Id": "q", "Arn": arns[bus]}])
            sender = deliveries(hook, f"{topic},{bus}")
            for to in (topic, bus):
                assert sender.send(to, "i", "failed", b'{"notice": 1}') is None
            got = {
                to: json.loads(sqs.receive_message(QueueUrl=url, WaitTimeSeconds=5)["Messages"][0]["Body"])
                for to, url in queues.items()
            }
            assert (json.loads(got[topic]["Message"]), got[topic]["MessageAttributes"]["kind"]["Value"]) == (
                {"notice": 1},
                "failed",
            )
            assert (got[bus]["source"], got[bus]["detail-type"], got[bus]["detail"]) == (
                "ade-drop",
                "notice failed",
                {"notice": 1},
            )
            with pytest.raises(NotDelivered, match="refused"):
                deliveries(hook, "arn:aws:sns:*").send(f"{topic}-none", "i", "failed", b"{}")

    def test_a_service_that_fails_is_tried_again(self, hook):
        class Client:
            def put_events(self, **_):
                return {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "ThrottlingException"}]}

        bus = "arn:aws:events:eu-west-1:1:event-bus/x"
        with pytest.raises(NotDelivered, match="Throttling"):
            deliveries(hook, bus, clients=lambda *_: Client()).send(bus, "i", "failed", b"{}")
        with pytest.raises(NotDelivered):
            deliveries(hook, "arn:aws:sns:*", clients=lambda *_: None).send("arn:aws:sns:x:1:t", "i", "failed", b"{}")


class TestExpectedDrops:
    def expects(self, world, hook):
        """A workflow that expects a drop every day, deployed two days ago."""
        manifest = {"manifest": 1, "name": "members", "fields": [{"name": "id"}], "subscribe": ["**/*.csv"]}
        more = {"notify": [{"to": hook.url, "on": ["missing"]}], "expect": {"by": "09:00", "tz": "Europe/Berlin"}}
        world.put("configs/acme/members.manifest.json", manifest | more)
        world.clock.move(time.time() - world.clock.now() + 2 * 86400)  # files have the time of this machine

    def missing(self, world):
        return [job for job in world.jobs() if job.params.get("expected")]

    def test_one_that_does_not_come_is_reported_once(self, world, hook):
        self.expects(world, hook)
        runner = world.runner()
        for _ in range(3):
            world.sweep()
            runner.janitor.chores()
        assert hook.kinds() == ["missing"]
        (row,) = self.missing(world)
        assert row.state is State.AWAITING
        assert json.loads(hook.got[0][2])["data"]["expected"] == row.params["expected"]

    def test_the_next_day_it_is_reported_again_and_the_old_row_goes(self, world, hook):
        self.expects(world, hook)
        runner = world.runner()
        for _ in range(2):
            world.sweep()
            runner.janitor.chores()
            world.clock.move(86400)
        assert hook.kinds() == ["missing", "missing"]
        assert len(self.missing(world)) == 1

    def test_an_arrival_clears_it(self, world, hook):
        self.expects(world, hook)
        world.sweep()
        assert len(self.missing(world)) == 1
        world.intake.changed([world.put("inbox/acme/a.csv", b"id\n1\n")])
        world.sweep()
        assert self.missing(world) == []
        world.work_off(world.runner())
        assert hook.got == []

    def test_a_drop_in_time_is_not_missed(self, world, hook):
        self.expects(world, hook)
        world.intake.changed([world.put("inbox/acme/a.csv", b"id\n1\n")])
        world.sweep()
        assert self.missing(world) == []

    def test_a_workflow_that_is_younger_than_its_deadline_misses_nothing(self, world, hook):
        self.expects(world, hook)
        world.clock.move(-2 * 86400)
        world.sweep()
        assert self.missing(world) == []

    def test_without_its_manifest_nothing_is_expected(self, world, hook):
        self.expects(world, hook)
        world.sweep()
        world.store.delete("configs/acme/members.manifest.json")
        world.sweep()
        assert self.missing(world) == []
