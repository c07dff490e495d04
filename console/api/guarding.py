"""Who calls, and whether they may call from there at all. Every request passes here before anything else.

Nothing is answered without a token, except on this machine itself (ADE_CONSOLE_TOKENLESS). There a browser is the
danger: a page of another site may make it call us. So the Host has to be a name of this machine (a name that an
attacker's DNS points here is not), and a request that changes something must not come from another origin.

Where rules may use the network (ADE_RUNTIME_NETWORK_ACCESS), a rule calls from this machine too. Then no address of
this machine proves anything: every caller needs a token, and a proxy has to be another machine.
"""

import asyncio
import contextlib
import errno
import ipaddress
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.requests import Request

from console.api.access import ANYONE, LOCAL, Access, Grant, Principal
from console.api.problems import ProblemError
from core.errors import SettingsError
from core.ports import Clock
from core.settings import Settings

COOKIE = "ade_session"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OURS = frozenset({"same-origin", "none"})
_PASSED_ON = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
_BURST = 2.0  # seconds of its rate that a token may use at once
_BUCKETS = 10_000
THREADS = 8  # that read table and store; more would only take turns
THREADS_OF_ONE = THREADS // 2  # of one tenant or token at a time, so that nobody waits for all that another asks
MOST_OF_ONE = 100  # requests of one token that are at work, streams among them: a tenth of all connections
_GUESSES = 5.0  # wrong tokens a second from one address
_GUESS = "guess "  # before the address of a stranger
_TEXTS = "'self'"
# No script but our own files, nothing from elsewhere, in nobody's frame.
_UPLOADS, _UPLOADS_AT_ONCE = 1 / 60, 20  # by one link: as many at once, then one a minute
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src {_TEXTS}; style-src {_TEXTS}; img-src {_TEXTS} data:; connect-src {_TEXTS}; "
        f"form-action {_TEXTS}; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: browsers would send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class _Bucket:
    left: float
    at: float


class Rates:
    """A bucket of requests for each caller, refilled as time goes by.

    Those of strangers are counted apart: whoever has many addresses makes us forget strangers, and nobody else.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._strangers: dict[str, _Bucket] = {}
        self._callers: dict[str, _Bucket] = {}
        self._lock = threading.Lock()

    def left(self, who: str, rate: float, burst: float) -> float:
        now, known = self._clock.steady(), self._buckets(who).get(who)
        return burst if known is None else min(burst, known.left + (now - known.at) * rate)

    def wait(self, who: str, rate: float, burst: float) -> float:
        """Take one; 0, or the seconds after which there will be one."""
        with self._lock:
            buckets = self._buckets(who)
            if len(buckets) > _BUCKETS:
                buckets.clear()
            left = self.left(who, rate, burst)
            allowed = left >= 1.0
            buckets[who] = _Bucket(left - 1.0 if allowed else left, self._clock.steady())
            return 0.0 if allowed else (1.0 - left) / rate

    def _buckets(self, who: str) -> dict[str, _Bucket]:
        return self._strangers if who.startswith(_GUESS) else self._callers


class Guard:
    """Judges requests. Safe to share between threads."""

    def __init__(self, settings: Settings, access: Access, clock: Clock) -> None:
        self._settings = settings
        self._access = access
        self._rates = Rates(clock)
        self._at_work: Counter[str] = Counter()  # requests by caller
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._proxies = _networks(settings.console_proxies)
        self._hosts = {name.lower() for name in _words(settings.console_hosts)}

    def check_origin(self, request: Request) -> None:
        """Refuse what a page of another site makes a browser send."""
        host = request.headers.get("host", "")
        name = _host_name(host)
        # A proxy on this machine is no proof: a page may name itself the same by its headers.
        near = self._is_local(request) or (_is_loopback(_peer(request)) and self.is_proxy(request))
        if not (_is_loopback(name) or name in self._hosts) and (self._hosts or near):
            raise ProblemError(
                HTTPStatus.MISDIRECTED_REQUEST,
                f"host {name[:100]!r} is not a name of this console; use 127.0.0.1 or add it to ADE_CONSOLE_HOSTS",
            )
        if request.method in _SAFE:
            return
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
        if (origin is not None and _origin_host(origin) != host.lower()) or site not in (None, *_OURS):
            raise ProblemError(
                HTTPStatus.FORBIDDEN, "this request comes from a page of another site; send it from the console itself"
            )

    def principal(self, request: Request) -> Principal | None:
        """Who calls; None: nobody whom we know. A wrong token is never taken for no token."""
        token = token_of(request)
        if token is not None:
            return self.signed_in(request, token)
        if self.is_proxy(request):
            # Some proxies add their header behind one that the caller sent: who is named twice is nobody.
            named = request.headers.getlist(self._settings.console_proxy_header)
            user = named[0].strip() if len(named) == 1 else ""
            return self._access.person(user) if user else None
        if self._settings.tokenless and self._is_local(request):
            return LOCAL
        return None

    def signed_in(self, request: Request, token: str) -> Principal:
        """The holder of a token; whoever tries many wrong ones has to wait, and nobody else at their address."""
        holder = self._access.holder(token)
        if holder is None:
            self._slow_down(f"{_GUESS}{_peer(request)}", _GUESSES, _GUESSES * 4)
            raise unauthorized("the token is not known, was revoked or has expired; ask an operator for another")
        return holder

    def holder_of_link(self, request: Request, links: Access, token: str) -> Grant:
        """What an upload link is for. One that is wrong, revoked or expired does not exist: all are answered alike."""
        grant = links.grant(token)
        if grant is None:
            self._slow_down(f"{_GUESS}{_peer(request)}", _GUESSES, _GUESSES * 4)
            raise ProblemError(HTTPStatus.NOT_FOUND, "there is no such upload link, or it is over; ask for another")
        # Counted apart: what refills views of the page would refill uploads.
        if request.method == "POST":
            self._slow_down(f"upload by {grant.id}", _UPLOADS, _UPLOADS_AT_ONCE)
        else:
            self._slow_down(f"page of {grant.id}", 5, 50)
        return grant

    def limit_rate(self, principal: Principal) -> None:
        if principal is not LOCAL:
            rate = float(self._settings.console_rate)
            self._slow_down(principal.id, rate, rate * _BURST)

    @contextlib.contextmanager
    def at_work(self, principal: Principal) -> Iterator[None]:
        """Count a request until its answer is out: nobody takes all connections or threads. For one event loop."""
        if principal is not LOCAL and self._at_work[principal.id] >= MOST_OF_ONE:
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"{MOST_OF_ONE} requests of this token are not answered in full yet; wait for them, or close some",
                headers={"Retry-After": "10"},
            )
        self._at_work[principal.id] += 1
        try:
            yield
        finally:
            self._at_work[principal.id] -= 1
            if not self._at_work[principal.id]:
                del self._at_work[principal.id]

    def turn(self, principal: Principal) -> contextlib.AbstractAsyncContextManager[None]:
        """A thread for one request: others of the caller, or of its tenant, wait while they have as many as allowed."""
        if principal in (LOCAL, ANYONE):
            return contextlib.nullcontext()
        who = principal.id if principal.tenant is None else f"tenant {principal.tenant}"
        return self._turns.setdefault(who, asyncio.Semaphore(THREADS_OF_ONE))

    def is_proxy(self, request: Request) -> bool:
        """Whether a proxy that we trust passed the request on."""
        try:
            peer = ipaddress.ip_address(_peer(request))
        except ValueError:
            return False
        if not any(peer in network for network in self._proxies):
            return False
        return not (self._settings.runtime_network_access and _is_own(peer))

    def is_secure(self, request: Request) -> bool:
        """Whether the browser speaks TLS, with us or a proxy. Whoever lies about it only harms their own session."""
        return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", "").strip().lower())

    def _is_local(self, request: Request) -> bool:
        """Whether the caller is on this machine and nothing in between says that it passes on others' requests."""
        passed_on = any(name in request.headers for name in _PASSED_ON)
        return _is_loopback(_peer(request)) and not passed_on

    def _slow_down(self, who: str, rate: float, burst: float) -> None:
        wait = self._rates.wait(who, rate, burst)
        if wait > 0:
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"too many requests; at most {rate:g} a second, so wait {wait:.2f} seconds",
                headers={"Retry-After": str(int(wait) + 1)},
            )


def token_of(request: Request) -> str | None:
    """The token that came with a request: as Bearer, or in the cookie of a browser's session."""
    kind, _, word = request.headers.get("authorization", "").partition(" ")
    if kind:
        if kind.lower() != "bearer":
            raise unauthorized("this Authorization is not understood; send `Authorization: Bearer <token>`")
        return word.strip()
    try:
        cookie = SimpleCookie(request.headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return cookie.value if cookie is not None and cookie.value else None


def unauthorized(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.UNAUTHORIZED, detail, headers={"WWW-Authenticate": 'Bearer realm="ade"'})


def _peer(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def _origin_host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _host_name(host: str) -> str:
    """The name in a Host header, without its port."""
    name = host.strip().lower()
    if name.startswith("["):
        inner, closed, port = name[1:].partition("]")
        return inner if closed and (not port or port.startswith(":")) else name
    return name.rpartition(":")[0] if name.count(":") == 1 else name


def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _is_own(peer: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address is one of this machine: only those can be bound."""
    family = socket.AF_INET if peer.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(peer), 0))
        except OSError as error:
            return error.errno != errno.EADDRNOTAVAIL
    return True


def _networks(text: str) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    try:
        return [ipaddress.ip_network(word, strict=False) for word in _words(text)]
    except ValueError as error:
        raise SettingsError(f"ADE_CONSOLE_PROXIES: {error}; give addresses or networks, such as 10.0.0.0/8") from None


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
