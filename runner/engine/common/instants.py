"""Instants, as memories and decisions write them."""

from datetime import UTC, datetime


def instant(at: object) -> datetime | None:
    """Parse the moment that a text names, to UTC; None if it is not one.

    Times are written in any zone, with or without fractions of a second; without a zone they are in UTC.
    """
    if not isinstance(at, str) or not at:
        return None
    try:
        moment = datetime.fromisoformat(at)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
