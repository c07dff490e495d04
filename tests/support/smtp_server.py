"""A small SMTP server on a socket: keeps what it was sent, and answers as told."""

import contextlib
import socket
import ssl
import threading
from pathlib import Path
from typing import NamedTuple


class Mail(NamedTuple):
    sender: str
    recipients: list[str]
    body: bytes


class SmtpServer:
    """`answers`: what a command is answered instead of the usual, by its first word; `hangs_up`: it takes a mail and does
    not say so; it says nothing at all until `speaks`."""

    def __init__(self, certificate: Path | None = None) -> None:
        self.mails: list[Mail] = []
        self.logins: list[str] = []
        self.secured = 0
        self.answers: dict[str, str] = {}
        self.hangs_up = False
        self.speaks = threading.Event()
        self.speaks.set()
        self.called = threading.Event()
        self._certificate = certificate
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self.speaks.set()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            try:
                self._talk(connection)
            except (OSError, ValueError):
                pass
            finally:
                connection.close()

    def _talk(self, connection: socket.socket) -> None:
        with contextlib.ExitStack() as opened:
            self._converse(connection, opened)

    def _converse(self, connection: socket.socket, opened: contextlib.ExitStack) -> None:
        file = opened.enter_context(connection.makefile("rb"))
        sender, recipients = "", []

        def say(text: str) -> None:
            self.speaks.wait()
            connection.sendall(f"{text}\r\n".encode())

        self.called.set()
        say("220 test")
        while line := file.readline():
            words = line.decode("ascii").strip()
            verb = words.split(" ")[0].split(":")[0].upper()
            if verb in self.answers:
                say(self.answers[verb])
            elif verb == "EHLO":
                offers = ["250-test", *(["250-STARTTLS"] if self._certificate else []), "250 AUTH PLAIN"]
                connection.sendall("".join(f"{offer}\r\n" for offer in offers).encode())
            elif verb == "STARTTLS" and self._certificate is not None:
                say("220 go")
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(self._certificate)
                connection = opened.enter_context(context.wrap_socket(connection, server_side=True))
                file = opened.enter_context(connection.makefile("rb"))
                self.secured += 1
            elif verb == "AUTH":
                self.logins.append(words)
                say("235 ok")
            elif verb == "MAIL":
                sender, recipients = words, []
                say("250 ok")
            elif verb == "RCPT":
                recipients.append(words.split(":", 1)[1].strip("<> "))
                say("250 ok")
            elif verb == "DATA":
                say("354 go on")
                body = b""
                while (part := file.readline()) and part != b".\r\n":
                    body += part
                self.mails.append(Mail(sender, recipients, body))
                if self.hangs_up:
                    return
                say("250 ok")
            elif verb == "QUIT":
                say("221 bye")
                return
            else:
                say("250 ok")
