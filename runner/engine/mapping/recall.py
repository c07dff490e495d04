"""What was learnt, as the matcher asks for it: the same header, then its words, then its letters.

The index over letters holds only runs of letters that the table's own headers have, and headers of one kind (the same
field, said as often) are counted together, so that a large memory costs little.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain, compress, repeat
from math import log
from typing import Any, Final, NamedTuple, TypeVar

from runner.engine.mapping.learnt import instant
from runner.engine.mapping.spelling import all_spelled, joined, normalized

_CLOSE: Final = 16  # confirmed headers that are compared with a header as a whole
_STRENGTH: Final = 1.0  # of what fields are like in general, against what a run of letters says
_END: Final = "|"  # marks where a header starts and where it ends
_NONE: Final = ""  # the label of headers that are no field
_FAR: Final = (0.0, "")
_NO_SPELLINGS: Final[Mapping[str, Any]] = {}
_Run = tuple[str, ...]  # of three letters
_Piece = TypeVar("_Piece")


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

    def labels(self) -> Iterable[str]:
        return self.counts if self.said is None else (self.said,)


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
        self, entries: Sequence[Mapping[str, Any]] = (), spellings: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """`spellings`: field -> folded text -> the allowed value that it means."""
        self._spellings = spellings or {}
        self._first: dict[str, Mapping[str, Any]] = {}
        self._more: dict[str, list[Mapping[str, Any]]] = {}  # where a header has several entries: the others
        self._words: list[str] = []
        headers = [entry["header"] for entry in entries]
        for entry, words, key in zip(entries, *all_spelled(headers), strict=True) if headers else ():
            of = key or entry["header"].casefold()
            if self._first.setdefault(of, entry) is entry:
                self._words.append(words)
            else:
                self._more.setdefault(of, []).append(entry)

    def __len__(self) -> int:
        return len(self._first)

    def spelled(self, field: str) -> Mapping[str, Any]:
        """Folded texts that were confirmed to mean an allowed value of a field."""
        return self._spellings.get(field, _NO_SPELLINGS)

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

    def words(self) -> list[list[str]]:
        return [text.split() for text in self._words]

    def kinds(self) -> tuple[list[int], list[list[tuple[str, float]]]]:
        """For each header the number of its kind, and for each kind its labels with their weights."""
        kinds = [(entry["field"] or _NONE, entry.get("count", 1)) for entry in self._first.values()]
        numbers: dict[tuple[str, int], int] = {}
        out = [numbers.setdefault(kind, len(numbers)) for kind in kinds]
        labels = [[(field, 1.0 + log(count))] for field, count in numbers]
        for n, key in enumerate(self._first if self._more else ()):
            if key in self._more:
                one = self._confirmed(key)
                weight = 1.0 + log(sum(one.counts.values()))
                out[n] = len(labels)
                labels.append([(field, one.share(field) * weight) for field in one.labels()])
        return out, labels


class _Index:
    """The confirmed headers that share a run of letters or a word with one of those that are asked for."""

    def __init__(self, recall: Recall, headers: Sequence[str]) -> None:
        self._keys = recall.keys()
        self._texts = recall.texts()
        self._kinds, self._labels = recall.kinds()
        self._said: dict[str | _Run, tuple[float, dict[str, float]]] = {}
        self._found: dict[str, Likely] = {}
        self._sizes: dict[int, int] = {}
        prior: dict[str, float] = {}
        for kind, count in Counter(self._kinds).items():
            for field, weight in self._labels[kind]:
                prior[field] = prior.get(field, 0.0) + weight * count
        whole = sum(prior.values())
        self._prior = {field: count / whole for field, count in prior.items()}
        letters = _marked(_END.join(self._keys))
        runs = zip(letters, letters[1:], letters[2:], strict=False)
        sizes = [len(key) + 1 for key in self._keys]  # with one that reaches into the next header: nobody asks for it
        self._with_run = _holding({run for header in headers for run in _runs(joined(header))}, runs, sizes)
        words = recall.words()
        wanted = {word for header in headers for word in normalized(header).split()}
        self._with_word = _holding(wanted, chain.from_iterable(words), [len(mine) for mine in words])

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

    def _look_up(self, key: str, runs: Sequence[_Run], words: Sequence[str]) -> Likely:
        held = [(run, found) for run in runs if (found := self._with_run[run])]
        told = [(1.0, *self._lifts(run, found)) for run, found in held]
        told += [(2.0, *self._lifts(word, found)) for word in words if (found := self._with_word[word])]
        seen = max(1, len(runs))
        root = seen**0.5
        sums = dict.fromkeys(self._prior, sum([strength * base for strength, base, _ in told]))
        for strength, _, lifts in told:
            for field, lift in lifts.items():
                sums[field] += strength * lift
        chances = {field: x / root for field, x in sums.items()}
        nearest: dict[str, tuple[float, str]] = {}
        shared = Counter(chain.from_iterable([found for _, found in held]))
        for n in _most(shared, _CLOSE):
            if self._keys[n] == key:
                continue
            for field, weight in self._labels[self._kinds[n]]:
                known = nearest.get(field, _FAR)[0]
                if 2 * shared[n] / (seen + shared[n]) > known:
                    alike = 2 * shared[n] / (seen + self._size(n))
                    if alike > known and weight > 0:
                        nearest[field] = (alike, self._texts[n])
        return Likely(chances, nearest, _top(chances), _top({f: alike for f, (alike, _) in nearest.items()}))

    def _lifts(self, piece: str | _Run, found: Sequence[int]) -> tuple[float, dict[str, float]]:
        """What a piece says about every label, and what it says more about those that it was seen with."""
        known = self._said.get(piece)
        if known is not None:
            return known
        counts: dict[str, float] = {}
        for kind, times in Counter(map(self._kinds.__getitem__, found)).items():
            for field, weight in self._labels[kind]:
                counts[field] = counts.get(field, 0.0) + weight * times
        base = log(_STRENGTH / (sum(counts.values()) + _STRENGTH))
        lifts = {f: log(1 + count / (_STRENGTH * self._prior[f])) for f, count in counts.items()}
        self._said[piece] = base, lifts
        return base, lifts


def _holding(wanted: Iterable[_Piece], pieces: Iterable[_Piece], sizes: Sequence[int]) -> dict[_Piece, list[int]]:
    """Piece -> the headers that have it. `pieces` are those of all headers, `sizes` how many each of them has."""
    held: dict[_Piece, list[int]] = {piece: [-1] for piece in wanted}
    told = list(map(held.get, pieces))
    owners = chain.from_iterable(map(repeat, range(len(sizes)), sizes))
    for mine, at in zip(filter(None, told), compress(owners, told), strict=True):
        if mine[-1] != at:
            mine.append(at)
    return {piece: mine[1:] for piece, mine in held.items()}


def _most(counts: Mapping[int, int], most: int) -> list[int]:
    """The headers with the greatest counts; of equal ones the first."""
    ranked = sorted([(-count, n) for n, count in counts.items() if count > 1])
    if len(ranked) < most:
        ranked += sorted([(-1, n) for n, count in counts.items() if count == 1])
    return [n for _, n in ranked[:most]]


def _marked(letters: str) -> str:
    return f"{_END}{letters}{_END}"


@lru_cache(maxsize=8192)
def _runs(key: str) -> tuple[_Run, ...]:
    """Different runs of letters of a header, with a sign for where it starts and ends."""
    marked = _marked(key)
    return tuple(dict.fromkeys(zip(marked, marked[1:], marked[2:], strict=False)))
