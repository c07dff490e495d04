"""What was learnt, as the matcher asks for it: the same header, then its words, then its letters.

A memory is data from outside, so it is read with care: a wrong one ends the job with words (docs/mapping.md has the
format; core/memories.py writes it). The index over letters holds only runs of letters that the table's own headers
have, so that a large memory costs little.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log
from pathlib import Path
from typing import Any, Final, NamedTuple

from runner.engine.mapping.spelling import joined, normalized
from runner.engine.protocol import EngineStop

MAX_BYTES: Final = 8 * 1024 * 1024
MAX_ENTRIES: Final = 20_000
_LONGEST: Final = 500
_SIZE: Final = 3  # letters of a run
_CLOSE: Final = 40  # confirmed headers that are compared with a header as a whole
_STRENGTH: Final = 1.0  # of what fields are like in general, against what a run of letters says
_NONE: Final = ""  # the label of headers that are no field


class Confirmed(NamedTuple):
    """What was said about one header: field (`""`: none) -> how often."""

    counts: Mapping[str, int]
    said: str | None  # the newest word of a person, if any
    senders: frozenset[str]

    def share(self, field: str) -> float:
        if self.said is not None:
            return float(self.said == field)
        return self.counts.get(field, 0) / sum(self.counts.values())

    def count(self, field: str) -> int:
        return self.counts.get(field, 0)


class Likely(NamedTuple):
    """What headers of other spelling say about a header."""

    chances: Mapping[str, float]  # label -> log of how much more likely than without knowing the header
    nearest: Mapping[str, tuple[float, str]]  # label -> how alike the most similar confirmed header is, and its text
    best: tuple[str, float, float] = ("", 0.0, 0.0)  # the likeliest label, its chance, and the chance of the next
    closest: tuple[str, float, float] = ("", 0.0, 0.0)  # the same for how alike they are

    def other_chance(self, label: str) -> float:
        """The chance of the likeliest other label."""
        return self.best[2] if self.best[0] == label else self.best[1]

    def other_near(self, label: str) -> float:
        return self.closest[2] if self.closest[0] == label else self.closest[1]


NOTHING: Final = Likely({}, {})


def _top(values: Mapping[str, float]) -> tuple[str, float, float]:
    ranked = sorted(values.items(), key=lambda item: -item[1])[:2]
    if not ranked:
        return "", 0.0, 0.0
    return ranked[0][0], ranked[0][1], ranked[1][1] if len(ranked) > 1 else 0.0


class Recall:
    """All memories of a job, the most specific last."""

    def __init__(self, entries: Iterable[Mapping[str, Any]] = ()) -> None:
        self._confirmed: dict[str, Confirmed] = {}
        self._text: dict[str, str] = {}
        newest: dict[str, str] = {}
        for entry in entries:
            key = joined(entry["header"]) or entry["header"].casefold()
            field = entry["field"] or _NONE
            old = self._confirmed.get(key) or Confirmed({}, None, frozenset())
            counts = {**old.counts, field: old.counts.get(field, 0) + entry.get("count", 1)}
            said, at = old.said, entry.get("said_at") or ""
            if at and at >= newest.get(key, ""):
                said, newest[key] = field, at
            self._confirmed[key] = Confirmed(counts, said, old.senders | set(entry.get("senders") or ()))
            self._text.setdefault(key, entry["header"])

    def __len__(self) -> int:
        return len(self._confirmed)

    def exact(self, header: str) -> Confirmed | None:
        return self._confirmed.get(joined(header) or header.casefold())

    def likely(self, headers: Sequence[str]) -> list[Likely]:
        """What the memory says about each header, apart from what it says about that very header."""
        if not self._confirmed:
            return [NOTHING] * len(headers)
        keys = [joined(h) for h in headers]
        runs = [_runs(key) for key in keys]
        words = [frozenset(normalized(h).split()) for h in headers]
        index = _Index(self._confirmed, frozenset().union(*runs), self._text, frozenset().union(*words))
        return [index.look_up(key, run, word) for key, run, word in zip(keys, runs, words, strict=True)]


class _Index:
    """The confirmed headers that share a run of letters with one of those that are asked for."""

    def __init__(
        self, confirmed: Mapping[str, Confirmed], wanted: frozenset[str], text: Mapping[str, str], words: frozenset[str]
    ) -> None:
        self._keys = list(confirmed)
        self._labels: list[dict[str, float]] = []
        self._sizes: list[int] = []
        self._holding: dict[str, list[int]] = {}
        self._with_word: dict[str, list[int]] = {}
        self._text = text
        self._said: dict[tuple[bool, str], tuple[float, dict[str, float]]] = {}
        prior: Counter[str] = Counter()
        for n, key in enumerate(self._keys):
            one = confirmed[key]
            weight = 1.0 + log(sum(one.counts.values()))
            labels = {one.said: 1.0} if one.said is not None else {f: one.share(f) for f in one.counts}
            self._labels.append({f: share * weight for f, share in labels.items()})
            for field, share in self._labels[-1].items():
                prior[field] += share  # type: ignore[assignment]
            mine = _runs(key)
            self._sizes.append(len(mine))
            for run in mine & wanted:
                self._holding.setdefault(run, []).append(n)
        whole = sum(prior.values())
        self._prior = {field: count / whole for field, count in prior.items()}
        for n, key in enumerate(self._keys) if words else ():
            for word in words.intersection(normalized(text[key]).split()):
                self._with_word.setdefault(word, []).append(n)

    def look_up(self, key: str, runs: frozenset[str], words: frozenset[str]) -> Likely:
        chances: dict[str, float] = {}
        shared: Counter[int] = Counter()
        own = next((n for n in self._holding.get(min(runs, default=""), ()) if self._keys[n] == key), None)
        rest = 0.0  # of labels that a run says nothing for
        for holding, pieces, strength in ((self._holding, runs, 1.0), (self._with_word, words, 2.0)):
            for piece in pieces:
                found = holding.get(piece)
                if not found:
                    continue
                if holding is self._holding:
                    shared.update(found)
                base, lifts = self._lifts(piece, found, word=holding is self._with_word)
                rest += strength * base
                for field, lift in lifts.items():
                    chances[field] = chances.get(field, 0.0) + strength * lift
        chances = {field: rest + chances.get(field, 0.0) for field in self._prior}
        seen = max(1, len(runs))
        nearest: dict[str, tuple[float, str]] = {}
        for n, count in shared.most_common(_CLOSE):
            if n == own:
                continue
            alike = 2 * count / (seen + self._sizes[n])
            for field, weight in self._labels[n].items():
                if alike > nearest.get(field, (0.0, ""))[0] and weight > 0:
                    nearest[field] = (alike, self._text[self._keys[n]])
        chances = {f: c / seen**0.5 for f, c in chances.items()}
        return Likely(chances, nearest, _top(chances), _top({f: alike for f, (alike, _) in nearest.items()}))

    def _lifts(self, piece: str, found: Sequence[int], *, word: bool) -> tuple[float, dict[str, float]]:
        """What a piece says about every label, and what it says more about those that it was seen with."""
        known = self._said.get((word, piece))
        if known is not None:
            return known
        counts: dict[str, float] = {}
        for n in found:
            for field, weight in self._labels[n].items():
                counts[field] = counts.get(field, 0.0) + weight
        base = log(_STRENGTH / (sum(counts.values()) + _STRENGTH))
        lifts = {f: log(1 + count / (_STRENGTH * self._prior[f])) for f, count in counts.items()}
        self._said[word, piece] = base, lifts
        return base, lifts


def _runs(key: str) -> frozenset[str]:
    """Runs of letters of a header, with a sign for where it starts and ends."""
    marked = f"^{key}$"
    return frozenset([marked[n : n + _SIZE] for n in range(len(marked) - _SIZE + 1)])


def read_memories(paths: Sequence[tuple[Path, str]]) -> list[dict[str, Any]]:
    """The header entries of memories; each path comes with the name that a message calls it by."""
    entries: list[dict[str, Any]] = []
    for path, name in paths:
        entries += _entries(path, name)
    return entries


def _entries(path: Path, name: str) -> list[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            body = file.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        raw = json.loads(body)
        if not isinstance(raw, dict) or raw.get("memory") != 1:
            raise ValueError("it is no memory of version 1")
        given = raw.get("headers") or []
        if not isinstance(given, list) or len(given) > MAX_ENTRIES:
            raise ValueError(f"its headers are no list of at most {MAX_ENTRIES}")
        for n, entry in enumerate(given):
            if not _is_entry(entry):
                raise ValueError(f"entry {n} of its headers is not one")
    except OSError as error:
        raise _refused(name, f"it cannot be read: {error.strerror}") from None
    except RecursionError:
        raise _refused(name, "it is nested too deep") from None
    except ValueError as error:
        words = "it is not JSON" if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)) else str(error)
        raise _refused(name, words) from None
    else:
        return given


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    header, field, count = entry.get("header"), entry.get("field"), entry.get("count", 1)
    senders = entry.get("senders") or []
    return (
        isinstance(header, str)
        and 0 < len(header) <= _LONGEST
        and (field is None or (isinstance(field, str) and len(field) <= _LONGEST))
        and type(count) is int
        and 0 < count <= 10**9
        and isinstance(entry.get("said_at") or "", str)
        and isinstance(senders, list)
        and all(isinstance(s, str) for s in senders)
    )


def _refused(name: str, why: str) -> EngineStop:
    return EngineStop(
        "rule_error",
        f"the memory {name} was refused: {why}",
        remedy="put back a version that `ade memory show` reads, or take it away; without it the job runs as before",
    )
