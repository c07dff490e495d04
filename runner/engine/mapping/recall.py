"""What was learnt, as the matcher asks for it: the same header, then its words, then its letters.

The index over letters holds only runs of letters that the table's own headers have, and headers of one kind (the same
field, said as often) are counted together, so that a large memory costs little.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import accumulate, chain
from math import log
from typing import Any, Final, NamedTuple

from runner.engine.mapping.learnt import instant
from runner.engine.mapping.spelling import all_joined, all_normalized, joined, normalized

_SIZE: Final = 3  # letters of a run
_CLOSE: Final = 40  # confirmed headers that are compared with a header as a whole
_STRENGTH: Final = 1.0  # of what fields are like in general, against what a run of letters says
_NONE: Final = ""  # the label of headers that are no field


class Confirmed(NamedTuple):
    """What was said about one header: field (`""`: none) -> how often."""

    counts: Mapping[str, int]
    said: str | None  # the newest word of a person, if any

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


NOTHING: Final = Likely({}, {})


def _top(values: Mapping[str, float]) -> tuple[str, float, float]:
    ranked = sorted(values.items(), key=lambda item: -item[1])[:2]
    if not ranked:
        return "", 0.0, 0.0
    return ranked[0][0], ranked[0][1], ranked[1][1] if len(ranked) > 1 else 0.0


class Recall:
    """All memories of a job, the most specific last."""

    def __init__(
        self, entries: Sequence[Mapping[str, Any]] = (), spellings: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """`spellings`: field -> folded text -> the allowed value that it means."""
        self._spellings = spellings or {}
        self._first: dict[str, Mapping[str, Any]] = {}
        self._more: dict[str, list[Mapping[str, Any]]] = {}  # where a header has several entries: the others
        headers = [entry["header"] for entry in entries]
        for key, entry in zip(all_joined(headers), entries, strict=True):
            of = key or entry["header"].casefold()
            if self._first.setdefault(of, entry) is not entry:
                self._more.setdefault(of, []).append(entry)

    def __len__(self) -> int:
        return len(self._first)

    def spelled(self, field: str) -> Mapping[str, Any]:
        """Folded texts that were confirmed to mean an allowed value of a field."""
        return self._spellings.get(field, {})

    def exact(self, header: str) -> Confirmed | None:
        key = joined(header) or header.casefold()
        return self._confirmed(key) if key in self._first else None

    def _confirmed(self, key: str) -> Confirmed:
        counts: dict[str, int] = {}
        said: str | None = None
        newest: datetime | None = None
        for entry in (self._first[key], *self._more.get(key, ())):
            field = entry["field"] or _NONE
            counts[field] = counts.get(field, 0) + entry.get("count", 1)
            at = instant(entry.get("said_at"))
            if at is not None and (newest is None or at >= newest):
                said, newest = field, at
        return Confirmed(counts, said)

    def likely(self, headers: Sequence[str]) -> list[Likely]:
        """What the memory says about each header, apart from what it says about that very header."""
        if not self._first:
            return [NOTHING] * len(headers)
        index = _Index(self, headers)
        return [index.look_up(header) for header in headers]

    def texts(self) -> list[str]:
        return [entry["header"] for entry in self._first.values()]

    def keys(self) -> list[str]:
        return list(self._first)

    def kinds(self) -> tuple[list[int], list[dict[str, float]]]:
        """For each header the number of its kind, and for each kind its labels with their weights."""
        numbers: dict[tuple[str, int], int] = {}
        labels: list[dict[str, float]] = []
        out: list[int] = []
        for key, entry in self._first.items():
            if key in self._more:
                one = self._confirmed(key)
                weight = 1.0 + log(sum(one.counts.values()))
                shares = {one.said: 1.0} if one.said is not None else {f: one.share(f) for f in one.counts}
                out.append(len(labels))
                labels.append({f: share * weight for f, share in shares.items()})
                continue
            kind = (entry["field"] or _NONE, entry.get("count", 1))
            number = numbers.get(kind)
            if number is None:
                number = numbers[kind] = len(labels)
                labels.append({kind[0]: 1.0 + log(kind[1])})
            out.append(number)
        return out, labels


class _Index:
    """The confirmed headers that share a run of letters or a word with one of those that are asked for."""

    def __init__(self, recall: Recall, headers: Sequence[str]) -> None:
        self._keys = recall.keys()
        self._texts = recall.texts()
        self._kinds, self._labels = recall.kinds()
        self._said: dict[tuple[bool, str], tuple[float, dict[str, float]]] = {}
        self._found: dict[str, Likely] = {}
        self._sizes: dict[int, int] = {}
        prior: dict[str, float] = {}
        for kind, count in Counter(self._kinds).items():
            for field, weight in self._labels[kind].items():
                prior[field] = prior.get(field, 0.0) + weight * count
        whole = sum(prior.values())
        self._prior = {field: count / whole for field, count in prior.items()}
        self._holding = self._with_runs({run for header in headers for run in _runs(joined(header))})
        self._with_word = self._with_words({word for header in headers for word in normalized(header).split()})

    def _with_runs(self, wanted: set[str]) -> dict[str, list[int]]:
        """Run of letters -> the headers that have it."""
        holding: dict[tuple[str, ...], list[int]] = {tuple(run): [-1] for run in wanted}
        whole = f"^{'$^'.join(self._keys)}$"
        runs = zip(whole, whole[1:], whole[2:], strict=False)
        ends = list(accumulate([len(key) + 2 for key in self._keys]))
        at, end = 0, ends[0]
        for n, held in enumerate(map(holding.get, runs)):
            if held is not None:
                while n >= end:
                    at += 1
                    end = ends[at]
                if held[-1] != at:
                    held.append(at)
        return {"".join(run): held[1:] for run, held in holding.items() if len(held) > 1}

    def _with_words(self, wanted: set[str]) -> dict[str, list[int]]:
        """Word -> the headers that have it, between blanks or signs."""
        out: dict[str, list[int]] = {}
        for n, text in enumerate(all_normalized(self._texts)):
            for word in wanted.intersection(text.split()):
                out.setdefault(word, []).append(n)
        return out

    def _size(self, n: int) -> int:
        """How many different runs of letters a header has: those inside, and one at each end."""
        size = self._sizes.get(n)
        if size is None:
            key = self._keys[n]
            size = self._sizes[n] = len(set(zip(key, key[1:], key[2:], strict=False))) + min(2, len(key))
        return size

    def look_up(self, header: str) -> Likely:
        if header not in self._found:
            key = joined(header)
            self._found[header] = self._look_up(key, _runs(key), tuple(dict.fromkeys(normalized(header).split())))
        return self._found[header]

    def _look_up(self, key: str, runs: Sequence[str], words: Sequence[str]) -> Likely:
        chances: dict[str, float] = {}
        rest = 0.0  # of labels that a run says nothing for
        held = [(run, found) for run in runs if (found := self._holding.get(run))]
        shared = Counter(chain.from_iterable([found for _, found in held]))
        told = [(1.0, self._lifts(run, found, word=False)) for run, found in held]
        told += [(2.0, self._lifts(word, found, word=True)) for word in words if (found := self._with_word.get(word))]
        for strength, (base, lifts) in told:
            rest += strength * base
            for field, lift in lifts.items():
                chances[field] = chances.get(field, 0.0) + strength * lift
        seen = max(1, len(runs))
        root = seen**0.5
        chances = {field: (rest + chances.get(field, 0.0)) / root for field in self._prior}
        nearest: dict[str, tuple[float, str]] = {}
        for n in _most(shared, _CLOSE):
            if self._keys[n] == key:
                continue
            alike = 2 * shared[n] / (seen + self._size(n))
            for field, weight in self._labels[self._kinds[n]].items():
                if alike > nearest.get(field, (0.0, ""))[0] and weight > 0:
                    nearest[field] = (alike, self._texts[n])
        return Likely(chances, nearest, _top(chances), _top({f: alike for f, (alike, _) in nearest.items()}))

    def _lifts(self, piece: str, found: Sequence[int], *, word: bool) -> tuple[float, dict[str, float]]:
        """What a piece says about every label, and what it says more about those that it was seen with."""
        known = self._said.get((word, piece))
        if known is not None:
            return known
        counts: dict[str, float] = {}
        for kind, times in Counter(map(self._kinds.__getitem__, found)).items():
            for field, weight in self._labels[kind].items():
                counts[field] = counts.get(field, 0.0) + weight * times
        base = log(_STRENGTH / (sum(counts.values()) + _STRENGTH))
        lifts = {f: log(1 + count / (_STRENGTH * self._prior[f])) for f, count in counts.items()}
        self._said[word, piece] = base, lifts
        return base, lifts


def _most(counts: Mapping[int, int], most: int) -> list[int]:
    """The headers with the greatest counts; of equal ones the first."""
    least, more = 0, most
    for count, times in sorted(Counter(counts.values()).items(), reverse=True):
        least, more = count, more - times
        if more <= 0:
            break
    ranked = sorted([(-count, n) for n, count in counts.items() if count >= least])
    return [n for _, n in ranked[:most]]


@lru_cache(maxsize=8192)
def _runs(key: str) -> tuple[str, ...]:
    """Different runs of letters of a header, with a sign for where it starts and ends."""
    marked = f"^{key}$"
    return tuple(dict.fromkeys([marked[n : n + _SIZE] for n in range(len(marked) - _SIZE + 1)]))
