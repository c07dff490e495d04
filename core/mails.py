"""E-mail notices: which addresses a tenant may name, what a mail says, and when it goes. Pure; `infra/mails.py` sends.

The first notice about a sender goes at once. What follows within `every_minutes` is gathered and goes as one mail when
they are over, so however many files a sender drops, a mailbox gets a few mails an hour.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from posixpath import dirname
from typing import Final

from core.errors import SettingsError
from core.jobs import Job, Notice
from core.notices import Refusal

PREFIX: Final = "mailto:"
# One plain mailbox: no quotes, comments, lists, options or line ends.
ADDRESS: Final = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?"
SECURITY: Final = {"starttls": 587, "tls": 465, "none": 25}  # and their ports
MAX_LINES: Final = 50  # notices that a mail lists
_KEYS: Final = frozenset(
    {
        "host",
        "port",
        "security",
        "user",
        "password_file",
        "password_env",
        "from",
        "tenants",
        "every_minutes",
        "per_hour",
    }
)
_HOUR_SECONDS: Final = 3600.0
_LONGEST_NAME: Final = 200
_KINDS: Final = {
    "succeeded": "succeeded",
    "errors": "succeeded, with errors",
    "failed": "failed",
    "review": "waits for a decision",
    "missing": "did not come",
}
_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True, slots=True)
class MailServer:
    """The operator's SMTP server, and who may be written to."""

    host: str
    port: int
    security: str
    sender: str
    tenants: Mapping[str, tuple[str, ...]]  # addresses, or *@domain, by tenant; `*`: for all
    user: str = ""
    password_file: str = ""
    password_env: str = ""
    every_seconds: float = 900.0  # between two mails about one sender to one address
    per_hour: int = 60  # mails to one address, about whomever

    def refusal(self, tenant: str, address: str) -> Refusal | None:
        """Why a notice of a tenant may not go to an address; None: it may."""
        if re.fullmatch(ADDRESS, address) is None:
            return Refusal("its address is not a plain e-mail address")
        allowed = (*self.tenants.get(tenant, ()), *self.tenants.get("*", ()))
        if any(_covers(one.lower(), address.lower()) for one in allowed):
            return None
        return Refusal(f"ADE_MAIL_FILE does not allow this address to tenant {tenant}")


def _covers(entry: str, address: str) -> bool:
    return address.partition("@")[2] == entry[2:] if entry.startswith("*@") else entry == address


def parse_mail_server(text: str) -> MailServer:
    """The operator's file (ADE_MAIL_FILE); raises SettingsError that names what is wrong."""
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise SettingsError(f"ADE_MAIL_FILE is not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise SettingsError('ADE_MAIL_FILE is not an object such as {"host": "smtp.example.com", …}')
    if unknown := set(raw) - _KEYS:
        raise SettingsError(f"ADE_MAIL_FILE: {min(unknown)} is unknown; known are {', '.join(sorted(_KEYS))}")
    texts = ("host", "security", "user", "password_file", "password_env", "from")
    if wrong := [name for name in texts if not isinstance(raw.get(name, ""), str)]:
        raise SettingsError(f"ADE_MAIL_FILE: {wrong[0]} is not a text")
    security = raw.get("security", "starttls")
    if security not in SECURITY:
        raise SettingsError(f"ADE_MAIL_FILE: security is not one of {', '.join(SECURITY)}")
    if security == "none" and raw.get("user"):
        raise SettingsError("ADE_MAIL_FILE: a password is not sent without TLS; set security to starttls or tls")
    if not re.fullmatch(r"[A-Za-z0-9.:-]{1,253}", raw.get("host", "")):
        raise SettingsError("ADE_MAIL_FILE: host is missing or not a host name")
    if re.fullmatch(ADDRESS, raw.get("from", "")) is None:
        raise SettingsError("ADE_MAIL_FILE: from is missing or not a plain e-mail address")
    return MailServer(
        host=raw["host"],
        port=_number(raw, "port", SECURITY[security], 1, 65_535),
        security=security,
        sender=raw["from"],
        tenants=_tenants(raw.get("tenants")),
        user=raw.get("user", ""),
        password_file=raw.get("password_file", ""),
        password_env=raw.get("password_env", ""),
        every_seconds=60.0 * _number(raw, "every_minutes", 15, 0, 1440),
        per_hour=_number(raw, "per_hour", 60, 1, 10_000),
    )


def _number(raw: Mapping[str, object], name: str, default: int, least: int, most: int) -> int:
    value = raw.get(name, default)
    if type(value) is not int or not least <= value <= most:
        raise SettingsError(f"ADE_MAIL_FILE: {name} is not a whole number from {least} to {most}")
    return value


def _tenants(raw: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(raw, dict) or not all(isinstance(listed, list) for listed in raw.values()):
        raise SettingsError(
            'ADE_MAIL_FILE: tenants is not an object such as {"acme": ["ops@acme.example", "*@acme.example"]}'
        )
    for tenant, listed in raw.items():
        for one in listed:
            if (
                not isinstance(one, str)
                or re.fullmatch(ADDRESS, f"a{one[1:]}" if one.startswith("*@") else one) is None
            ):
                raise SettingsError(f"ADE_MAIL_FILE: tenants.{tenant} has an entry that is not an address or *@domain")
    return {tenant: tuple(listed) for tenant, listed in raw.items()}


@dataclass(frozen=True, slots=True)
class MailLine:
    """What a mail says about one notice: names, states and counts; never a cell's value."""

    notice_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Thread:
    """Notices that share a mail: one tenant's, about one sender, to one address."""

    tenant: str
    sender: str
    address: str


def thread_of(job: Job, notice: Notice) -> Thread:
    return Thread(job.tenant, dirname(job.subject), notice.to.removeprefix(PREFIX))


def mail_line(job: Job, notice: Notice, result: str | None) -> MailLine:
    """`result`: the key of result.json, where there is one."""
    error = job.error if notice.kind == "failed" else None
    why = f" ({error.verdict}; at fault: {error.fault})" if error else ""
    rows = job.summary.get("rows_out")
    counted = f", {rows} rows" if isinstance(rows, int) and notice.kind in ("succeeded", "errors") else ""
    where = f"\n    {shown(result)}" if result else ""
    text = f"{shown(job.subject or job.workflow)}: {_KINDS[notice.kind]}{why}{counted}\n    job {job.job_id}{where}"
    return MailLine(notice.id, text)


def shown(name: str) -> str:
    """A name of a sender's on one line, without marks that hide or turn text."""
    clean = _UNSEEN.sub("\ufffd", name)
    return clean if len(clean) <= _LONGEST_NAME else f"{clean[: _LONGEST_NAME - 1]}…"


def mail_subject(thread: Thread, lines: Sequence[MailLine]) -> str:
    """The subject says how many and about whom; file names, which are a sender's own, are in the text."""
    count = "1 notice" if len(lines) == 1 else f"{len(lines)} notices"
    return f"ade-drop: {count} about {shown(thread.tenant)}"


def mail_text(thread: Thread, lines: Sequence[MailLine]) -> str:
    head = f"Tenant {shown(thread.tenant)}, folder {shown(thread.sender) or '/'}:\n\n"
    listed = "\n".join(line.text for line in lines[:MAX_LINES])
    more = f"\n\nand {len(lines) - MAX_LINES} more; see `ade jobs`." if len(lines) > MAX_LINES else ""
    return f"{head}{listed}{more}\n"


def mail_id(lines: Sequence[MailLine]) -> str:
    """The same for the same notices: a mail that is sent twice is shown once by most readers."""
    return hashlib.sha256("\n".join(line.notice_id for line in lines).encode()).hexdigest()[:32]


def opens_at(server: MailServer, last: float | None, sent: Sequence[float], now: float) -> float:
    """When the next mail of a thread may go. `last`: when its last one went; `sent`: mails to its address, in order."""
    own = now if last is None else last + server.every_seconds
    recent = [at for at in sent if at > now - _HOUR_SECONDS]
    full = recent[-server.per_hour] + _HOUR_SECONDS if len(recent) >= server.per_hour else now
    return max(now, own, full)
