"""What was learnt, as the matcher asks for it: the same header, then its words, then its letters.

Only the runs of letters and the words that the table's own headers have are looked up, and headers of one kind (the
same field, said as often) are counted together, so that a large memory costs little.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from math import log
from typing import Any, Final, NamedTuple

from runner.engine.common.spelling import joined, normalized
from runner.engine.memory.confirmed import END, Confirmed, ConfirmedHeaders, Entry, Owners

_CLOSE: Final = 16  # confirmed headers that are compared with a header as a whole
_MOST_IN_BYTES: Final = 255
_STRENGTH: Final = 1.0  # of what fields are like in general, against what a run of letters says
_FAR: Final = (0.0, "")
_NO_SPELLINGS: Final[Mapping[str, Any]] = {}


class Likely(NamedTuple):
    """What headers of other spelling say about a header."""

    chances: Mapping[str, float]  # label -> log of how much more likely than without knowing the header
    nearest: Mapping[str, tuple[float, str]]  # label -> how alike the most similar confirmed header is, and its text
    best: tuple[str, float, float] = ("", 0.0, 0.0)  # the likeliest label, its chance, and the chance of the next
    closest: tuple[str, float, float] = ("", 0.0, 0.0)  # the same for how alike they are


NOTHING: Final = Likely({}, {})


def _top(values: Mapping[str, float]) -> tuple[str, float, float]:
    if not values:
        return "", 0.0, 0.0
    best = max(values, key=values.__getitem__)
    return best, values[best], max([x for field, x in values.items() if field != best], default=0.0)


class Recall:
    """All memories of a job, the most specific last."""

    def __init__(
        self,
        headers: ConfirmedHeaders | Sequence[Entry] = (),
        spellings: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """`spellings`: field -> folded text -> the allowed value that it means."""
        self._headers = headers if isinstance(headers, ConfirmedHeaders) else ConfirmedHeaders(headers)
        self._spellings = spellings or {}

    def __len__(self) -> int:
        return len(self._headers)

    def spelled(self, field: str) -> Mapping[str, Any]:
        """Folded texts that were confirmed to mean an allowed value of a field."""
        return self._spellings.get(field, _NO_SPELLINGS)

    def exact(self, header: str) -> Confirmed | None:
        n = self._headers.number(joined(header) or header.casefold())
        return None if n is None else self._headers.confirmed(n)

    def likely(self, headers: Sequence[str]) -> list[Likely]:
        """What the memory says about each header, apart from what it says about that very header."""
        if not len(self):
            return [NOTHING] * len(headers)
        lookup = _Lookup(self._headers, headers)
        return [lookup.likely(header) for header in headers]


class _Lookup:
    """The confirmed headers that share a run of letters or a word with one of those that are asked for."""

    def __init__(self, confirmed: ConfirmedHeaders, headers: Sequence[str]) -> None:
        self._confirmed, self._kinds = confirmed, confirmed.kinds
        self._labels = [_weighed_labels(one) for one in confirmed.by_kind]
        self._lifts_of: dict[str, tuple[float, dict[str, float]]] = {}
        self._found: dict[str, Likely] = {}
        prior: dict[str, float] = {}
        for kind, count in confirmed.times().items():
            for field, weight in self._labels[kind]:
                prior[field] = prior.get(field, 0.0) + weight * count
        whole = sum(prior.values())
        self._prior = {field: count / whole for field, count in prior.items()}
        self._strong_prior = {field: _STRENGTH * share for field, share in self._prior.items()}
        runs = {run for header in headers for run in _runs(joined(header))}
        words = {word for header in headers for word in _words(header)}
        self._owners = confirmed.owners(runs, words)

    def likely(self, header: str) -> Likely:
        if header not in self._found:
            key = joined(header)
            self._found[header] = self._weigh(key, _runs(key), _words(header))
        return self._found[header]

    def _weigh(self, key: str, runs: Sequence[str], words: Sequence[str]) -> Likely:
        held = [(run, found) for run in runs if (found := self._owners[run]).numbers]
        pieces = [(1.0, *self._lifts(run, found)) for run, found in held]
        pieces += [(2.0, *self._lifts(word, found)) for word in words if (found := self._owners[word]).numbers]
        seen = max(1, len(runs))
        root = seen**0.5
        sums = dict.fromkeys(self._prior, sum([strength * base for strength, base, _ in pieces]))
        for strength, _, lifts in pieces:
            for field, lift in lifts.items():
                sums[field] += strength * lift
        chances = {field: x / root for field, x in sums.items()}
        nearest: dict[str, tuple[float, str]] = {}
        itself = self._confirmed.number(key)
        for n, shared in _most([found.numbers for _, found in held], len(self._kinds)):
            if n == itself:
                continue
            for field, weight in self._labels[self._kinds[n]]:
                known = nearest.get(field, _FAR)[0]
                if 2 * shared / (seen + shared) > known:
                    alike = 2 * shared / (seen + self._confirmed.size(n))
                    if alike > known and weight > 0:
                        nearest[field] = (alike, self._confirmed.text(n))
        return Likely(chances, nearest, _top(chances), _top({f: alike for f, (alike, _) in nearest.items()}))

    def _lifts(self, piece: str, found: Owners) -> tuple[float, dict[str, float]]:
        """What a piece says about every label, and what it says more about those that it was seen with."""
        known = self._lifts_of.get(piece)
        if known is not None:
            return known
        counts: dict[str, float] = {}
        labels, prior = self._labels, self._strong_prior
        for kind, times in found.kinds:
            for field, weight in labels[kind]:
                if field in counts:
                    counts[field] += weight * times
                else:
                    counts[field] = weight * times
        base = log(_STRENGTH / (sum(counts.values()) + _STRENGTH))
        lifts = {field: log(1 + count / prior[field]) for field, count in counts.items()}
        self._lifts_of[piece] = base, lifts
        return base, lifts


def _weighed_labels(one: Confirmed) -> list[tuple[str, float]]:
    """The labels of a kind of headers, and what each header counts for them."""
    weight = 1.0 + log(sum(one.counts.values()))
    return [(field, one.share(field) * weight) for field in one.labels()]


def _most(owners: Sequence[Sequence[int]], size: int) -> list[tuple[int, int]]:
    """The _CLOSE headers that are in most of the lists, and in how many; of equal ones the first."""
    if len(owners) > _MOST_IN_BYTES:
        counts = Counter(chain.from_iterable(owners))
        return sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:_CLOSE]
    shared = bytearray(size)
    for n in chain.from_iterable(owners):
        shared[n] += 1
    found: list[tuple[int, int]] = []
    for count in range(len(owners), 0, -1):
        at = shared.find(count)
        while at >= 0 and len(found) < _CLOSE:
            found.append((at, count))
            at = shared.find(count, at + 1)
    return found


@lru_cache(maxsize=8192)
def _runs(key: str) -> tuple[str, ...]:
    """Different runs of three letters of a header, with a sign for where it starts and ends."""
    marked = f"{END}{key}{END}"
    return tuple(dict.fromkeys(map("".join, zip(marked, marked[1:], marked[2:], strict=False))))


@lru_cache(maxsize=8192)
def _words(header: str) -> tuple[str, ...]:
    """Different words of a header, each with a blank before it."""
    return tuple(dict.fromkeys(f" {word}" for word in normalized(header).split()))
