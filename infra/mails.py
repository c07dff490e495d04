"""Sends e-mail notices over the operator's SMTP server. In: a notice of a job's row. Out: sent, refused, or held.

What is held stays in its row, which is the truth; only the text of the next mail is gathered here. A process that dies
forgets that, and sends each held notice again when it is due. A mail that went and whose answer was lost goes twice.
"""

import os
import ssl
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.errors import SettingsError
from core.jobs import Job, Notice
from core.keys import result_key
from core.mails import (
    PREFIX,
    MailLine,
    MailServer,
    Thread,
    mail_id,
    mail_line,
    mail_subject,
    mail_text,
    opens_at,
    parse_mail_server,
    thread_of,
)
from core.notices import Refusal
from infra.deliveries import NotDelivered

if TYPE_CHECKING:
    import smtplib
    from email.message import EmailMessage

MAIL_SECONDS: Final = 20.0  # of each step of an exchange
_PERMANENT: Final = 500
_BUSY_SECONDS: Final = 1.0
_MOST_THREADS: Final = 10_000
_MOST_GATHERED: Final = 1_000  # notices of one mail
_MOST_REPORTED: Final = 100_000


class MailHeld(Exception):
    """The mail of a notice goes later, together with others."""

    def __init__(self, until: float) -> None:
        super().__init__("gathered for a digest")
        self.until = until


class Mails:
    """The mails of a process. Safe to share between threads."""

    def __init__(
        self,
        file: Path | None,
        *,
        now: Callable[[], float],
        env: Mapping[str, str] = os.environ,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._now = now
        self._env = env
        self._context = context
        self._server = cache(lambda: None if file is None else _read(file))
        self._lock = threading.Lock()
        self._last: OrderedDict[Thread, float] = OrderedDict()  # when a thread's last mail went
        self._sent: dict[str, deque[float]] = {}  # when mails went, by address
        self._gathered: dict[Thread, dict[str, MailLine]] = {}
        self._with_others: OrderedDict[str, None] = OrderedDict()  # notices that a digest has reported

    def send(self, job: Job, notice: Notice) -> Refusal | None:
        """Send a notice, alone or with those that were gathered; raises NotDelivered or MailHeld."""
        try:
            server = self._server()
        except SettingsError as error:
            raise NotDelivered(str(error)) from None
        if server is None:
            return Refusal("ADE_MAIL_FILE is not set")
        refused = server.refusal(job.tenant, notice.to.removeprefix(PREFIX))
        if refused is not None:
            return refused
        thread = thread_of(job, notice)
        # One mail after the other; whoever would wait comes back later, so that a slow server delays no webhook.
        if not self._lock.acquire(timeout=_BUSY_SECONDS):
            raise MailHeld(self._now() + MAIL_SECONDS)
        try:
            if notice.id in self._with_others:
                del self._with_others[notice.id]
                return None
            return self._send(server, thread, self._line(job, notice))
        finally:
            self._lock.release()

    def _line(self, job: Job, notice: Notice) -> MailLine:
        ended = notice.kind in ("succeeded", "errors", "failed")
        return mail_line(job, notice, result_key(job) if ended else None)

    def _send(self, server: MailServer, thread: Thread, line: MailLine) -> Refusal | None:
        now = self._now()
        sent = self._sent.setdefault(thread.address, deque(maxlen=server.per_hour))
        gathered = self._gathered.setdefault(thread, {})
        until = opens_at(server, self._last.get(thread), tuple(sent), now)
        if until > now:
            if len(gathered) < _MOST_GATHERED:  # others go with the mail after the next
                gathered[line.notice_id] = line
            raise MailHeld(until)
        lines = list((gathered | {line.notice_id: line}).values())
        refused = self._exchange(server, thread, lines)
        if refused is None:
            sent.append(now)
            self._last[thread] = now
            self._last.move_to_end(thread)
            self._with_others.update(dict.fromkeys(one.notice_id for one in lines if one is not line))
        del self._gathered[thread]
        while len(self._last) > _MOST_THREADS:
            self._last.popitem(last=False)
        while len(self._with_others) > _MOST_REPORTED:
            self._with_others.popitem(last=False)
        return refused

    def _exchange(self, server: MailServer, thread: Thread, lines: list[MailLine]) -> Refusal | None:
        import smtplib  # noqa: PLC0415 - a runner starts faster without it

        try:
            with self._connected(server) as connection:
                connection.send_message(_message(server, thread, lines), server.sender, [thread.address])
        except smtplib.SMTPRecipientsRefused as error:
            code = max(answer[0] for answer in error.recipients.values())
            if code >= _PERMANENT:
                return Refusal(f"the mail server refused the recipient ({code})")
            raise NotDelivered(f"the mail server put it off ({code})") from None
        except smtplib.SMTPResponseException as error:  # its text is the server's own
            raise NotDelivered(f"the mail server answered {error.smtp_code}") from None
        except (smtplib.SMTPException, OSError, ValueError) as error:
            raise NotDelivered(f"{type(error).__name__} while it was mailed") from None
        return None

    def _connected(self, server: MailServer) -> "smtplib.SMTP":
        import smtplib  # noqa: PLC0415 - as above

        context = self._context or ssl.create_default_context()
        if server.security == "tls":
            made: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=MAIL_SECONDS, context=context)
        else:
            made = smtplib.SMTP(server.host, server.port, timeout=MAIL_SECONDS)
        try:
            if server.security == "starttls":
                made.starttls(context=context)
            if server.user:
                made.login(server.user, self._password(server))
        except BaseException:
            made.close()
            raise
        return made

    def _password(self, server: MailServer) -> str:
        if server.password_env:
            return self._env.get(server.password_env, "")
        return Path(server.password_file).read_text().strip() if server.password_file else ""


def _read(file: Path) -> MailServer:
    try:
        return parse_mail_server(file.read_text())
    except OSError as error:
        raise SettingsError(f"ADE_MAIL_FILE cannot be read: {error.strerror}") from None


def _message(server: MailServer, thread: Thread, lines: list[MailLine]) -> "EmailMessage":
    """A plain text without attachments; the library refuses headers with line ends."""
    from email.message import EmailMessage  # noqa: PLC0415 - as above
    from email.utils import formatdate  # noqa: PLC0415 - as above

    made = EmailMessage()
    made["From"], made["To"] = server.sender, thread.address
    made["Subject"] = mail_subject(thread, lines)
    made["Date"] = formatdate(localtime=False)
    made["Message-ID"] = f"<{mail_id(lines)}@ade-drop>"
    made["Auto-Submitted"] = "auto-generated"
    made.set_content(mail_text(thread, lines))
    return made
