"""Whether a server that refuses a connection will always refuse it: a wrong password, yes; a server that starts, no.

The driver passes on what the server says while connecting, in the server's language, but not its SQLSTATE. So where
the words are not known, we connect once more and read the code from libpq's trace (version 18 and later have it).
"""

import os
import re
import selectors
import time

import psycopg
from psycopg import errors, pq

_FOR_GOOD = (
    errors.InvalidPassword,
    errors.InvalidAuthorizationSpecification,
    errors.InvalidCatalogName,
    errors.InsufficientPrivilege,
)
_WORDS = (
    "authentication failed",
    "no pg_hba.conf entry",
    "does not exist",
    "no password supplied",
    "not permitted to log in",
)
_SERVER_WORDS = re.compile(r"failed: \S+:  ")  # a severity in whatever language, then the server's words
_TRACED = re.compile(rb'\tErrorResponse\t.* C "(\w{5})"')
_LONGEST_SECONDS = 3.0
_UNDER_WAY: dict[int, int] = {
    pq.PollingStatus.READING: selectors.EVENT_READ,
    pq.PollingStatus.WRITING: selectors.EVENT_WRITE,
}


class Refusals:
    """Of one database; each text is looked into once."""

    def __init__(self) -> None:
        self._last = ("", False)

    def hold(self, error: psycopg.Error, conninfo: str, seconds: float) -> bool:
        """Whether trying again will not change this error of connecting; may connect once more to find out."""
        text = str(error)
        if isinstance(error, _FOR_GOOD) or (error.sqlstate is None and any(words in text for words in _WORDS)):
            return True
        if error.sqlstate is not None or not _SERVER_WORDS.search(text):
            return False  # something else, or of the network
        if text != self._last[0]:
            self._last = text, _code(conninfo, min(seconds, _LONGEST_SECONDS)) in _CODES
        return self._last[1]


_CODES = {one.sqlstate for one in _FOR_GOOD}


def _code(conninfo: str, seconds: float) -> str | None:
    """The SQLSTATE with which a server refuses a connection; None: it does not, or libpq does not tell."""
    until = time.monotonic() + seconds
    status: int = pq.PollingStatus.WRITING
    traced = os.memfd_create("trace")  # in memory only: a password may be in it
    written = os.dup(traced)
    try:
        conn = pq.PGconn.connect_start(conninfo.encode())
        try:
            conn.trace(written)
            while status in _UNDER_WAY and (left := until - time.monotonic()) > 0:
                with selectors.DefaultSelector() as ready:
                    ready.register(conn.socket, _UNDER_WAY[status])
                    ready.select(left)
                status = conn.connect_poll()
            conn.untrace()
        finally:
            conn.finish()
        codes = _TRACED.findall(os.pread(traced, 1 << 20, 0))
        return codes[-1].decode() if codes else None
    except (psycopg.Error, OSError, ValueError):
        return None
    finally:
        os.close(written)
        os.close(traced)
