"""The event sources that the settings name: a queue, a webhook, both or none; each in a thread of its own."""

import contextlib
import threading
from collections.abc import Callable, Iterator

from console.parts import make_intake
from handlers.arrivals import Arrivals
from handlers.intake import Report
from handlers.poller import Poller
from handlers.webhook import Webhook
from infra.addresses import parse_address
from infra.logs import Log
from infra.sqs_events import EventsQueue
from infra.wiring import Stack


@contextlib.contextmanager
def listening(stack: Stack, log: Log, told: Callable[[Report], None]) -> Iterator[None]:
    """Listen for as long as the context lasts; what was taken off a queue is finished before it ends."""
    settings = stack.settings
    with contextlib.ExitStack() as parts:
        if settings.webhook_token:
            webhook = Webhook(settings.webhook_listen, settings.webhook_token, _arrivals(stack, told), log)
            threading.Thread(target=webhook.serve, name="webhook", daemon=True).start()
            parts.callback(webhook.stop)
        if settings.events_url:
            events = parts.enter_context(contextlib.closing(EventsQueue(parse_address(settings.events_url))))
            poller = Poller(events, _arrivals(stack, told), log)
            thread = threading.Thread(target=poller.run, name="events", daemon=True)
            thread.start()
            parts.callback(thread.join)
            parts.callback(poller.stop)
        yield


def _arrivals(stack: Stack, told: Callable[[Report], None]) -> Arrivals:
    return Arrivals(make_intake(stack), parse_address(stack.settings.store_url).name, told)
