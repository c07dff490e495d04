"""The sentences of report.html, by key and language: `catalogue/<language>.json`, one file per language.

An entry is a whole sentence with named parameters, or two of them: `one` for a single thing and `other` for several.
Nothing is put together from parts of sentences, so each language has its own order of words. Every language has the
same keys with the same parameters (tests/unit/engine/test_messages.py).

What a parameter holds may come from a box: callers escape the sentence afterwards.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final

ENGLISH: Final = "en"
LANGUAGES: Final = (ENGLISH, "de", "fr", "es")
_FOLDER: Final = Path(__file__).with_name("catalogue")
_PARAMETER = re.compile(r"\{([a-z_]+)\}")
_GROUPING: Final = {"en": ",", "de": ".", "fr": "\u202f", "es": "."}  # between thousands
_PERCENT: Final = {"en": "%"}  # elsewhere there is a space before it
_UNKNOWN: Final = "…"  # for a parameter that nobody gave

Entry = str | Mapping[str, str]


class Catalogue:
    """The sentences of one language."""

    def __init__(self, language: str, entries: Mapping[str, Entry]) -> None:
        """Know the sentences of a language, one of LANGUAGES, by key."""
        self.language = language
        self._entries = entries

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __call__(self, key: str, *, count: int | None = None, **params: object) -> str:
        """Write the sentence of a key, which must be in the catalogue. `count` chooses between the forms for one and
        for several."""
        return self.fill(key, params if count is None else params | {"count": count})

    def fill(self, key: str, params: Mapping[str, object]) -> str:
        """Write the sentence of a key with parameters from outside; one that is missing does not break the page."""
        entry = self._entries[key]
        if not isinstance(entry, str):
            entry = entry["one" if self._is_singular(params.get("count")) else "other"]
        return _PARAMETER.sub(lambda match: self._format(params.get(match[1], _UNKNOWN)), entry)

    def first_key(self, *keys: str) -> str | None:
        """Return the first of these keys that the catalogue has; None if it has none."""
        return next((key for key in keys if key in self._entries), None)

    def number(self, value: int) -> str:
        """Write a whole number with its thousands apart."""
        return f"{value:,}".replace(",", _GROUPING[self.language])

    def percent(self, value: float) -> str:
        """Write a share of 1 as whole percent."""
        return f"{100 * value:.0f}{_PERCENT.get(self.language, chr(0xA0) + '%')}"

    def date(self, timestamp: float) -> str:
        """Write a moment, in UTC."""
        then = datetime.fromtimestamp(timestamp, UTC)
        month = self(f"page.month.{then.month}")
        return self("page.date", day=str(then.day), month=month, year=str(then.year), time=f"{then:%H:%M}")

    def _format(self, value: object) -> str:
        """Write a parameter as text."""
        return self.number(value) if isinstance(value, int) else str(value)

    def _is_singular(self, count: object) -> bool:
        """Whether a count takes the singular; in French zero does."""
        return count == 1 or (count == 0 and self.language == "fr")


@cache
def catalogue(language: str) -> Catalogue:
    """Load the sentences of a language, once; English for a language that has no catalogue."""
    name = language if language in LANGUAGES else ENGLISH
    return Catalogue(name, json.loads((_FOLDER / f"{name}.json").read_bytes()))
