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

_MOST_COMPARED: Final = 16  # confirmed headers that are compared with a header as a whole
_MOST_IN_BYTES: Final = 255
_PRIOR_STRENGTH: Final = 1.0  # of what fields are like in general, against what a run of letters says
_FAR: Final = 0.0  # the likeness of a label without a header
_NO_SPELLINGS: Final[Mapping[str, Any]] = {}


class SimilarHeader(NamedTuple):
    """The confirmed header of a label that is most like another header."""

    likeness: float  # from 0 to 1
    text: str


class BestLabel(NamedTuple):
    """The label with the greatest value, which is empty if there are no labels."""

    label: str = ""
    value: float = 0.0
    next_value: float = 0.0  # of the next best label


class Likely(NamedTuple):
    """What headers of other spelling say about a header; labels are fields, and `""` for no field."""

    chances: Mapping[str, float]  # label -> log of how much more likely than without knowing the header
    nearest: Mapping[str, SimilarHeader]  # by label
    best: BestLabel = BestLabel()  # by chance
    closest: BestLabel = BestLabel()  # by likeness


NOTHING: Final = Likely({}, {})


def _best_and_next(values: Mapping[str, float]) -> BestLabel:
    """Return the label with the greatest of these values, by label, and the next one."""
    if not values:
        return BestLabel()
    best = max(values, key=values.__getitem__)
    return BestLabel(best, values[best], max([value for key, value in values.items() if key != best], default=0.0))


class Recall:
    """All memories of a job, the most specific last."""

    def __init__(
        self,
        headers: ConfirmedHeaders | Sequence[Entry] = (),
        spellings: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Know the confirmed headers of all memories; `spellings`: field -> folded text -> the allowed value that it
        means."""
        self._headers = headers if isinstance(headers, ConfirmedHeaders) else ConfirmedHeaders(headers)
        self._spellings = spellings or {}

    def __len__(self) -> int:
        return len(self._headers)

    def spelled(self, field: str) -> Mapping[str, Any]:
        """Return the folded texts that were confirmed to mean an allowed value of a field, with that value; empty
        without any."""
        return self._spellings.get(field, _NO_SPELLINGS)

    def exact(self, header: str) -> Confirmed | None:
        """Return what was confirmed about this very header, however it is spelled; None if nothing was."""
        number = self._headers.number(joined(header) or header.casefold())
        return None if number is None else self._headers.confirmed(number)

    def find_likely(self, headers: Sequence[str]) -> list[Likely]:
        """Return what the memory says about each header, apart from what it says about that very header."""
        if not len(self):
            return [NOTHING] * len(headers)
        lookup = _Lookup(self._headers, headers)
        return [lookup.find_likely(header) for header in headers]


class _Lookup:
    """The confirmed headers that share a run of letters or a word with one of those that are asked for."""

    def __init__(self, confirmed: ConfirmedHeaders, headers: Sequence[str]) -> None:
        """Look up the runs of letters and words of all these headers at once."""
        self._confirmed, self._kinds = confirmed, confirmed.kinds
        self._labels = [_weighed_labels(confirmed_header) for confirmed_header in confirmed.by_kind]
        self._weight_of_piece: dict[str, _PieceWeight] = {}
        self._likely: dict[str, Likely] = {}  # by header
        prior: dict[str, float] = {}
        for kind, count in confirmed.count_by_kind().items():
            for field, weight in self._labels[kind]:
                prior[field] = prior.get(field, 0.0) + weight * count
        whole = sum(prior.values())
        self._prior = {field: count / whole for field, count in prior.items()}
        self._strong_prior = {field: _PRIOR_STRENGTH * share for field, share in self._prior.items()}
        runs = {run for header in headers for run in _runs_of_letters(joined(header))}
        words = {word for header in headers for word in _words_of(header)}
        self._owners = confirmed.owners(runs, words)

    def find_likely(self, header: str) -> Likely:
        """Return what other headers say about one; worked out once for each header."""
        if header not in self._likely:
            key = joined(header)
            self._likely[header] = self._weigh(key, _runs_of_letters(key), _words_of(header))
        return self._likely[header]

    def _weigh(self, key: str, runs: Sequence[str], words: Sequence[str]) -> Likely:
        """Weigh what runs of letters and words say about a header, and find the headers most like it."""
        known_runs = [(run, owners) for run in runs if (owners := self._owners[run]).numbers]
        pieces = [(1.0, *self._weigh_piece(run, owners)) for run, owners in known_runs]
        pieces += [(2.0, *self._weigh_piece(word, owners)) for word in words if (owners := self._owners[word]).numbers]
        run_count = max(1, len(runs))
        scale = run_count**0.5
        sums = dict.fromkeys(self._prior, sum([strength * base for strength, base, _ in pieces]))
        for strength, _, lifts in pieces:
            for field, lift in lifts.items():
                sums[field] += strength * lift
        chances = {field: total / scale for field, total in sums.items()}
        nearest = self._find_nearest(key, [owners.numbers for _, owners in known_runs], run_count)
        return Likely(
            chances,
            nearest,
            _best_and_next(chances),
            _best_and_next({label: similar.likeness for label, similar in nearest.items()}),
        )

    def _find_nearest(
        self, key: str, headers_by_run: Sequence[Sequence[int]], run_count: int
    ) -> dict[str, SimilarHeader]:
        """For each label, find its other header that is most like this one; labels without a similar one are absent."""
        nearest: dict[str, SimilarHeader] = {}
        itself = self._confirmed.number(key)
        for number, shared in _headers_in_most(headers_by_run, len(self._kinds)):
            if number == itself:
                continue
            for field, weight in self._labels[self._kinds[number]]:
                closest = nearest[field].likeness if field in nearest else _FAR
                if 2 * shared / (run_count + shared) > closest:
                    likeness = 2 * shared / (run_count + self._confirmed.size(number))
                    if likeness > closest and weight > 0:
                        nearest[field] = SimilarHeader(likeness, self._confirmed.text(number))
        return nearest

    def _weigh_piece(self, piece: str, owners: Owners) -> "_PieceWeight":
        """Weigh a run of letters or a word; worked out once for each. `owners`: the headers that have it."""
        cached = self._weight_of_piece.get(piece)
        if cached is not None:
            return cached
        counts: dict[str, float] = {}
        labels, prior = self._labels, self._strong_prior
        for kind, times in owners.kinds:
            for field, weight in labels[kind]:
                if field in counts:
                    counts[field] += weight * times
                else:
                    counts[field] = weight * times
        base = log(_PRIOR_STRENGTH / (sum(counts.values()) + _PRIOR_STRENGTH))
        lifts = {field: log(1 + count / prior[field]) for field, count in counts.items()}
        weighed = self._weight_of_piece[piece] = _PieceWeight(base, lifts)
        return weighed


class _PieceWeight(NamedTuple):
    """What a run of letters or a word says, as logs of how much more likely it makes a label."""

    base: float  # for every label
    lifts: dict[str, float]  # label that it was seen with -> what it adds


def _weighed_labels(confirmed: Confirmed) -> list[tuple[str, float]]:
    """Return the labels of a kind of headers, and how much each header of the kind counts for them."""
    weight = 1.0 + log(sum(confirmed.counts.values()))
    return [(field, confirmed.share(field) * weight) for field in confirmed.labels()]


def _headers_in_most(owners: Sequence[Sequence[int]], size: int) -> list[tuple[int, int]]:
    """Return the _MOST_COMPARED headers that are in most of the lists, and in how many; of equal ones the first."""
    if len(owners) > _MOST_IN_BYTES:
        counts = Counter(chain.from_iterable(owners))
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST_COMPARED]
    shared = bytearray(size)
    for number in chain.from_iterable(owners):
        shared[number] += 1
    most: list[tuple[int, int]] = []
    for count in range(len(owners), 0, -1):
        header = shared.find(count)
        while header >= 0 and len(most) < _MOST_COMPARED:
            most.append((header, count))
            header = shared.find(count, header + 1)
    return most


@lru_cache(maxsize=8192)
def _runs_of_letters(key: str) -> tuple[str, ...]:
    """Split a header into its different runs of three letters, with a sign for where it starts and ends."""
    marked = f"{END}{key}{END}"
    return tuple(dict.fromkeys(map("".join, zip(marked, marked[1:], marked[2:], strict=False))))


@lru_cache(maxsize=8192)
def _words_of(header: str) -> tuple[str, ...]:
    """Split a header into its different words, each with a blank before it."""
    return tuple(dict.fromkeys(f" {word}" for word in normalized(header).split()))
