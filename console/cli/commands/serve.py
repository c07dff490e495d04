"""`ade serve`: the console and the job API alone. `ade up` starts it beside itself, with a socket of its own."""

import argparse
import os
import socket
import sys
import threading
from typing import TYPE_CHECKING

from console.cli import wire
from console.cli.guard import Exit
from console.cli.output import Printer
from console.cli.signals import Signals
from core.errors import UsageError
from infra.addresses import bind, http_address

if TYPE_CHECKING:
    from console.api.server import ConsoleServer

_PATIENCE_SECONDS = 10.0  # whoever asks would rather know that a service does not answer
_NICER = 5  # whoever watches waits a little rather than those who work


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--socket", metavar="FD", type=int, help=argparse.SUPPRESS)  # of the `ade up` that started us


def run(args: argparse.Namespace, out: Printer) -> int:
    from console.api.server import ConsoleServer  # noqa: PLC0415 - takes a moment that no other command need wait

    settings = wire.load_settings()
    if settings.console_listen == "off" and args.socket is None:
        raise UsageError("ADE_CONSOLE_LISTEN is off; set it to an address, such as 127.0.0.1:8020")
    beside = args.socket is not None
    log = wire.make_log(settings, stream=sys.stdout)
    with wire.opened(settings, log, role="console", patience=_PATIENCE_SECONDS) as stack, Signals() as signals:
        if beside:
            os.nice(_NICER)
            listening = socket.socket(fileno=args.socket)
            threading.Thread(target=_until_left, args=(signals,), daemon=True).start()
        else:
            listening = bind(settings.console_listen, "ADE_CONSOLE_LISTEN")
        server = ConsoleServer(stack, log, listening)
        failed: list[BaseException] = []
        serving = threading.Thread(target=_serve, args=(server, signals, failed), name="server")
        serving.start()
        if not beside:
            log.info("serving", console=http_address(listening))
            if out.terminal:
                out.note(f"open {http_address(listening)}; Ctrl-C ends")
        signals.wait()
        server.stop()
        serving.join()
    return Exit.INTERNAL if failed else Exit.OK


def _serve(server: "ConsoleServer", signals: Signals, failed: list[BaseException]) -> None:
    try:
        server.run()
    except BaseException as error:  # noqa: BLE001 - the main thread ends the process
        failed.append(error)
    signals.wake()


def _until_left(signals: Signals) -> None:
    """Wait until whoever started us closes our standard input, or dies."""
    while os.read(0, 4096):
        pass
    signals.wake()
