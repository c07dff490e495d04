"""E-mail notices over a real SMTP server: who gets them, what they say, and how many."""

import email
import json
import ssl
import subprocess
import threading

import pytest

from core.errors import SettingsError
from core.jobs import State
from core.mails import Thread, mail_subject, parse_mail_server, shown
from core.verdicts import Verdict
from infra.mails import MailHeld, Mails
from tests.support.smtp_server import SmtpServer
from tests.support.world import World

OPS = "ops@acme.example"


@pytest.fixture
def server():
    made = SmtpServer()
    yield made
    made.close()


def mail_file(folder, server, **more):
    facts = {"host": "127.0.0.1", "port": server.port, "security": "none", "from": "ade@example.com",
             "tenants": {"acme": [OPS, "*@data.acme.example"]}, **more}  # fmt: skip
    file = folder / "mail.json"
    file.write_text(json.dumps(facts))
    return file


@pytest.fixture
def world(tmp_path, server):
    made = World(tmp_path / "data", mail_file=mail_file(tmp_path, server))
    yield made
    made.close()


def drop(world, to=f"mailto:{OPS}", **more):
    world.intake.changed(world.drop(notify=[{"to": to}], **more))


def once(world):
    """One job and one try to deliver its notices."""
    runner = world.runner()
    world.handle_one(runner)
    runner.janitor.chores()
    return runner


def texts(server):
    return [email.message_from_bytes(mail.body) for mail in server.mails]


def logged(world):
    return world.log._stream.getvalue()


def test_a_result_is_mailed_once_to_who_is_allowed(world, server):
    drop(world)
    world.work_off(world.runner())
    (job,) = world.jobs()
    assert (job.state, job.notices) == (State.SUCCEEDED, ())
    (mail,) = server.mails
    assert mail.recipients == [OPS]
    (text,) = texts(server)
    assert (text["To"], text["Subject"], text["Auto-Submitted"]) == (
        OPS,
        "ade-drop: 1 notice about acme",
        "auto-generated",
    )
    assert text.get_content_type() == "text/plain"
    assert not text.is_multipart(), "no attachment"
    words = text.get_payload(decode=True).decode()
    assert "d/a.csv: succeeded" in words
    assert job.job_id in words
    assert "result.json" in words


@pytest.mark.parametrize(
    "to", ["ceo@acme.example", "ops@other.example", f"{OPS},x@y.example", "*@data.acme.example", "x"]
)
def test_an_address_that_the_operator_does_not_allow_the_tenant_gets_nothing(world, server, to):
    drop(world, f"mailto:{to}")
    world.work_off(world.runner())
    assert (server.mails, world.jobs()[0].notices) == ([], ())
    assert "notice_refused" in logged(world)


def test_the_addresses_of_one_tenant_are_not_anothers(world, server):
    drop(world, tenant="other")
    drop(world, "mailto:any.one@data.acme.example")
    world.work_off(world.runner())
    assert [mail.recipients for mail in server.mails] == [["any.one@data.acme.example"]]


def test_without_a_server_nobody_is_mailed(tmp_path, server):
    made = World(tmp_path)
    drop(made)
    made.work_off(made.runner())
    assert made.jobs()[0].notices == ()
    assert "ADE_MAIL_FILE is not set" in logged(made)
    made.close()


def test_many_drops_of_one_sender_make_one_mail_at_once_and_one_digest(world, server):
    runner = world.runner()
    for n in range(12):
        drop(world, name=f"a{n}.csv")
        world.work_off(runner)
    assert len(server.mails) == 1
    assert sum(len(job.notices) for job in world.jobs()) == 11, "the rows hold them until they went"
    world.clock.move(16 * 60)
    for _ in range(3):
        runner.janitor.chores()
    assert [text["Subject"] for text in texts(server)] == [
        "ade-drop: 1 notice about acme",
        "ade-drop: 11 notices about acme",
    ]
    assert all(f"d/a{n}.csv" in texts(server)[1].get_payload(decode=True).decode() for n in range(1, 12))
    assert sum(len(job.notices) for job in world.jobs()) == 0


def test_an_address_gets_so_many_mails_an_hour_whoever_sends(tmp_path, server):
    made = World(tmp_path / "data", mail_file=mail_file(tmp_path, server, per_hour=3, every_minutes=0))
    runner = made.runner()
    for n in range(8):
        made.put(f"inbox/acme/s{n}/a.csv", b"id\n1\n")
        key = made.put(f"inbox/acme/s{n}/manifest.json", {"manifest": 1, "name": "members", "fields": [{"name": "id"}],
                                                          "notify": [{"to": f"mailto:{OPS}"}]})  # fmt: skip
        made.intake.changed([key])
        made.work_off(runner)
    assert len(server.mails) == 3
    made.clock.move(3601)
    runner.janitor.chores()
    assert len(server.mails) == 6
    made.close()


def test_a_process_that_dies_with_held_notices_loses_none(world, server):
    first = world.runner()
    for n in range(3):
        drop(world, name=f"a{n}.csv")
        world.work_off(first)
    assert len(server.mails) == 1
    world.clock.move(16 * 60)
    second = world.runner()  # remembers nothing of what was gathered
    for _ in range(3):
        second.janitor.chores()
        world.clock.move(16 * 60)
    said = "".join(text.get_payload(decode=True).decode() for text in texts(server))
    assert all(f"d/a{n}.csv" in said for n in range(3))
    assert sum(len(job.notices) for job in world.jobs()) == 0


@pytest.mark.parametrize(
    ("verb", "answer", "again"),
    [("MAIL", "451 later", True), ("RCPT", "450 busy", True), ("DATA", "554 no", True), ("RCPT", "550 nobody", False)],
)
def test_a_server_that_does_not_take_it_is_tried_again_unless_the_mailbox_is_none(world, server, verb, answer, again):
    server.answers[verb] = answer
    drop(world)
    runner = once(world)
    assert len(world.jobs()[0].notices) == again
    server.answers.clear()
    world.clock.move(60)
    runner.janitor.chores()
    assert (len(server.mails), world.jobs()[0].notices) == (1 if again else 0, ())


def test_a_server_that_is_away_is_tried_again(world, server):
    server.close()
    drop(world)
    once(world)
    (notice,) = world.jobs()[0].notices
    assert notice.tries == 1


def test_a_mail_whose_answer_is_lost_comes_twice_with_one_id(world, server):
    server.hangs_up = True
    drop(world)
    runner = once(world)
    assert len(world.jobs()[0].notices) == 1
    server.hangs_up = False
    world.clock.move(60)
    runner.janitor.chores()
    first, second = texts(server)
    assert (first["Message-ID"], world.jobs()[0].notices) == (second["Message-ID"], ())


def test_while_a_server_says_nothing_other_mails_wait_in_their_rows(world, server, monkeypatch):
    monkeypatch.setattr("infra.mails._BUSY_SECONDS", 0.01)
    runner = world.runner()
    for n in range(2):
        drop(world, name=f"a{n}.csv")
        world.handle_one(runner)
    one, other = world.jobs()
    server.speaks.clear()
    mails = runner.janitor.notifier.mails
    slow = threading.Thread(target=mails.send, args=(one, one.notices[0]))
    slow.start()
    server.called.wait()
    with pytest.raises(MailHeld):
        mails.send(other, other.notices[0])
    server.speaks.set()
    slow.join()
    assert len(server.mails) == 1


def test_names_of_files_and_folders_stay_text(world, server):
    world.sandbox.verdict = Verdict.RULE_ERROR
    drop(world, name="Bcc: x@y.example\u202e .csv")
    world.work_off(world.runner())
    (mail,), (text,) = server.mails, texts(server)
    assert mail.recipients == [OPS]
    assert text["Bcc"] is None
    words = text.get_payload(decode=True).decode()
    assert "failed (rule_error; at fault: config)" in words
    assert "\u202e" not in words


def test_a_header_holds_no_line_end_whatever_a_tenant_is_called():
    assert not {"\r", "\n"} & {*mail_subject(Thread("a\r\nBcc: x@y", "", OPS), [])}
    assert not {"\r", "\n"} & {*shown("a\r\nb")}


def test_a_login_goes_only_over_tls(tmp_path):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", tmp_path / "key.pem",
         "-out", tmp_path / "cert.pem"], check=True, capture_output=True,
    )  # fmt: skip
    both = tmp_path / "both.pem"
    both.write_text((tmp_path / "key.pem").read_text() + (tmp_path / "cert.pem").read_text())
    server = SmtpServer(both)
    (tmp_path / "password").write_text("a secret\n")
    file = mail_file(
        tmp_path, server, host="localhost", security="starttls", user="ade", password_file=str(tmp_path / "password")
    )
    made = World(tmp_path / "data", mail_file=file)
    drop(made)
    runner = once(made)
    assert (server.logins, server.mails) == ([], []), "the certificate is nobody's that is trusted"
    runner.janitor.notifier.mails = Mails(
        file, now=made.clock.now, context=ssl.create_default_context(cafile=tmp_path / "cert.pem")
    )
    made.clock.move(60)
    runner.janitor.chores()
    assert (server.secured > 0, len(server.logins), len(server.mails)) == (True, 1, 1)
    assert "a secret" not in logged(made)
    made.close()
    server.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"host": ""}, "host"),
        ({"from": "ade"}, "from"),
        ({"from": "a@b.c\r\nBcc: x@y.z"}, "from"),
        ({"security": "ssl"}, "security"),
        ({"user": "ade"}, "TLS"),
        ({"port": 0}, "port"),
        ({"tenants": ["a@b.c"]}, "tenants"),
        ({"tenants": {"acme": ["*"]}}, "tenants.acme"),
        ({"tenants": {"acme": ["a@b.c, d@e.f"]}}, "tenants.acme"),
        ({"recipients": {}}, "recipients"),
        ({"per_hour": 0}, "per_hour"),
    ],
)
def test_a_wrong_file_names_what_is_wrong(change, said):
    good = {"host": "h", "security": "none", "from": "a@b.c", "tenants": {}}
    parse_mail_server(json.dumps(good))
    with pytest.raises(SettingsError, match=said):
        parse_mail_server(json.dumps(good | change))
