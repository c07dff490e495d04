"""`ade listen`: receive bucket events from the events queue and the webhook, and record the drops."""

import argparse
import contextlib
import sys
import threading

from console.cli import wire
from console.cli.guard import Exit
from console.cli.output import Printer
from console.cli.signals import LAST_SECONDS, Signals
from core.errors import UsageError
from handlers.sources.listening import event_sources


def arguments(_parser: argparse.ArgumentParser) -> None:
    pass


def run(_args: argparse.Namespace, out: Printer) -> int:
    settings = wire.load_settings()
    if not settings.events_url and not settings.webhook_token:
        raise UsageError("nothing to listen to: set ADE_EVENTS_URL (a queue) or ADE_WEBHOOK_TOKEN (the webhook)")
    if not settings.store_url:
        raise UsageError("ADE_STORE_URL is not set: a folder bucket sends no events; use `ade up`, which watches it")
    log = wire.make_log(settings, stream=sys.stdout if out.as_json else None)
    with wire.opened(settings, log, role="listener") as stack, Signals() as signals, contextlib.ExitStack() as parts:
        parts.enter_context(wire.metrics_shown(stack))
        for name, source in event_sources(stack, log, parts).items():
            thread = threading.Thread(target=source.run, name=name, daemon=True)
            thread.start()
            # Finish the events that were received before exiting.
            parts.callback(thread.join)
            parts.callback(source.stop)
        webhook = settings.webhook_listen if settings.webhook_token else ""
        log.info("listening", events=settings.events_url, webhook=webhook)
        signals.wait()
        signals.end_within(settings.drain_seconds + LAST_SECONDS)
    return Exit.OK
