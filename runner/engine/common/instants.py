"""Instants, as memories and decisions write them."""

from datetime import UTC, datetime


def instant(at: object) -> datetime | None:
    """When a person said something; times are written in any zone, with or without fractions of a second."""
    try:
        moment = datetime.fromisoformat(at) if isinstance(at, str) and at else None
        return moment and (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
