"""The confirmed headers of all memories of a job, as `Recall` asks for them.

`ConfirmedHeaders` are made of the memories' entries. With a large memory that takes longer than mapping a table, so the
runner does it once for the content of a job's memories and gives the box a file (`indexed`) with everything that does
not depend on the table: which headers have which runs of letters and which words. `IndexedHeaders` read it as it is,
and only what a table asks for becomes Python objects.
"""

import json
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import accumulate, chain, compress, pairwise, repeat
from mmap import mmap
from typing import Any, Final, NamedTuple, TypeVar
from zlib import crc32

from runner.engine.common.instants import instant
from runner.engine.common.spelling import spell_all

END: Final = "|"  # marks where a header starts and where it ends
_LENGTH_BYTES: Final = 8  # bytes at the start of an index: how long its head is
_NO_FIELD: Final = ""  # the label of headers that are no field
_WHOLE_HEADER: Final = "="  # before a whole header
_MOST_LETTERS: Final = 1_000_000  # of all headers: an index of more is too large to be made outside of the box

Entry = Mapping[str, Any]  # as a memory has it, checked by memory/learnt.py


class StoredShape(NamedTuple):
    """A shape of a table, as a memory has it."""

    entry: Entry
    memory: str
    version: str  # of the memory


_Piece = TypeVar("_Piece")


class Confirmed(NamedTuple):
    """What was said about one header: field (`""`: none) -> how often."""

    counts: Mapping[str, int]
    person_field: str | None  # the newest word of a person, if any

    def share(self, field: str) -> float:
        """Return the share of what was confirmed that is this field, from 0 to 1: all or nothing if a person said
        it."""
        if self.person_field is not None:
            return float(self.person_field == field)
        return self.counts.get(field, 0) / sum(self.counts.values())

    def count(self, field: str) -> int:
        """Return how often this field was said."""
        return self.counts.get(field, 0)

    def labels(self) -> Iterable[str]:
        """Return the fields that count, `""` for none: what a person said last, else all."""
        return self.counts if self.person_field is None else (self.person_field,)


class Owners(NamedTuple):
    """The headers that have a run of letters or a word, by number, and how many there are of each kind."""

    numbers: Sequence[int]
    kinds: Iterable[tuple[int, int]]  # each kind, and how many of the headers are of it; to be read once


NOBODY: Final = Owners((), ())


class _IndexedPieces(NamedTuple):
    """What an index is made of."""

    headers_by_piece: dict[str, list[int]]  # numbers of the headers that have a run of letters or a word
    sizes: list[int]  # how many runs each header has
    signs_only: dict[str, int]  # headers without letters, by spelling: nobody asks for their runs


class ConfirmedHeaders:
    """Different headers, in the order of the memories. Those of one kind have the same field, said as often."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        """Sort the entries of all memories by header; the most specific memory comes last."""
        headers = [entry["header"] for entry in entries]
        words, keys = spell_all(headers) if headers else ([], [])
        self._numbers: dict[str, int] = {}  # spelling without blanks, case and signs -> number
        firsts: list[int] = []
        repeated: dict[int, list[Entry]] = {}
        for index, key in enumerate(keys):
            number = self._numbers.setdefault(key or headers[index].casefold(), len(firsts))
            if number == len(firsts):
                firsts.append(index)
            else:
                repeated.setdefault(number, [entries[firsts[number]]]).append(entries[index])
        self._texts: list[str] = [headers[index] for index in firsts]
        self.by_kind: list[Confirmed] = []  # what was said about the headers of each kind
        self.kinds: Sequence[int] = []  # the number of each header's kind
        self._names = [entry["header"] for entry in entries if entry["field"] is not None]
        self.by_person: frozenset[int] = frozenset()  # headers of a single entry that a person said
        self._keys = list(self._numbers)
        self._words = [words[index] for index in firsts]
        self._sort_by_kind([repeated.get(number, [entries[index]]) for number, index in enumerate(firsts)])

    def _sort_by_kind(self, about: Sequence[Sequence[Entry]]) -> None:
        """Set `by_kind`, `kinds` and `by_person`; `about`: the entries about each header.

        What several entries say about one header makes a kind of its own.
        """
        numbers: dict[tuple[str, int], int] = {}
        kinds, by_person = [], []
        for number, (entry, *more) in enumerate(about):
            kind = len(self.by_kind)
            if not more:
                kind = numbers.setdefault((entry["field"] or _NO_FIELD, entry.get("count", 1)), kind)
                if entry.get("said_at") and instant(entry["said_at"]) is not None:
                    by_person.append(number)
            if kind == len(self.by_kind):
                summed = _sum_counts(about[number])
                self.by_kind.append(summed if more else summed._replace(person_field=None))
            kinds.append(kind)
        self.kinds, self.by_person = kinds, frozenset(by_person)

    def __len__(self) -> int:
        return len(self.kinds)

    def count_by_kind(self) -> Mapping[int, int]:
        """Count the headers of each kind."""
        return Counter(self.kinds)

    def names(self) -> list[str]:
        """Return the headers that are a field, as they were confirmed."""
        return self._names

    def text(self, number: int) -> str:
        """Return a header as it was first confirmed."""
        return self._texts[number]

    def number(self, key: str) -> int | None:
        """Return the number of a header by its spelling; None if it was never confirmed."""
        return self._numbers.get(key)

    def confirmed(self, number: int) -> Confirmed:
        """Return what was said about the header with this number."""
        of_kind = self.by_kind[self.kinds[number]]
        return Confirmed(of_kind.counts, next(iter(of_kind.counts))) if number in self.by_person else of_kind

    def size(self, number: int) -> int:
        """Count the different runs of letters of a header: those inside, and one at each end."""
        key = self._keys[number]
        return len(set(zip(key, key[1:], key[2:], strict=False))) + min(2, len(key))

    def owners(self, runs: Iterable[str], words: Iterable[str]) -> dict[str, Owners]:
        """Map runs of three letters, and words with a blank before them, to the headers that have them."""
        letters = f"{END}{END.join(self._keys)}{END}"
        sizes = [len(key) + 1 for key in self._keys]  # with one that reaches into the next header: nobody asks for it
        headers_by_run = _find_owners(map(tuple, runs), zip(letters, letters[1:], letters[2:], strict=False), sizes)
        headers_by_piece = {"".join(run): headers for run, headers in headers_by_run.items()}
        words_of_headers = [text.split() for text in self._words]
        with_word = _find_owners(
            (word[1:] for word in words),
            chain.from_iterable(words_of_headers),
            [len(headers) for headers in words_of_headers],
        )
        headers_by_piece |= {f" {word}": headers for word, headers in with_word.items()}
        kind_of = self.kinds.__getitem__
        return {
            piece: Owners(headers, Counter(map(kind_of, headers)).items())
            for piece, headers in headers_by_piece.items()
        }

    def _index_pieces(self) -> _IndexedPieces:
        """List the headers that have each run of letters or word, and count the runs of each header."""
        headers_by_piece: defaultdict[str, list[int]] = defaultdict(list)
        sizes: list[int] = []
        signs_only: dict[str, int] = {}
        for number, (key, words) in enumerate(zip(self._keys, self._words, strict=True)):
            marked = f"{END}{key}{END}"
            runs = {marked[start : start + 3] for start in range(len(key))}
            sizes.append(len(runs))
            if not key.isalnum():  # it has signs only: nobody asks for its runs
                signs_only[key] = number
                continue
            headers_by_piece[_WHOLE_HEADER + key].append(number)
            for piece in (*runs, *{f" {word}" for word in words.split()}):
                headers_by_piece[piece].append(number)
        return _IndexedPieces(headers_by_piece, sizes, signs_only)

    def to_index(self) -> bytes | None:
        """Write the headers as the bytes of a file for a box, which `IndexedHeaders` reads; None if there are too many
        letters."""
        if sum(map(len, self._keys)) > _MOST_LETTERS:
            return None
        headers_by_piece, sizes, signs_only = self._index_pieces()
        pieces = sorted([(crc32(raw := piece.encode()), raw, headers) for piece, headers in headers_by_piece.items()])
        owners = [headers for _, _, headers in pieces]
        texts = [text.encode() for text in self._texts]
        kind_of = self.kinds.__getitem__
        kinds = [Counter(map(kind_of, headers)) if len(headers) > 1 else {kind_of(headers[0]): 1} for headers in owners]
        tables = (
            accumulate(map(len, texts)),
            self.kinds,
            sizes,
            [value for value, _, _ in pieces],
            accumulate([len(raw) for _, raw, _ in pieces]),
            accumulate(map(len, owners)),
            chain.from_iterable(owners),
            accumulate(map(len, kinds)),
            chain.from_iterable(kinds),
            chain.from_iterable(headers.values() for headers in kinds),
        )
        names = json.dumps(self._names, ensure_ascii=False).encode()
        parts = [names, b"".join(texts), b"".join([raw for _, raw, _ in pieces]), *map(_pack_numbers, tables)]
        head = {
            "parts": list(map(len, parts)),
            "times": list(self.count_by_kind().values()),
            "said": self.by_kind,
            "by_person": sorted(self.by_person),
            "odd": signs_only,
        }
        start = json.dumps(head, ensure_ascii=False).encode()
        return b"".join([len(start).to_bytes(_LENGTH_BYTES, "big"), start, *parts])


class IndexedHeaders(ConfirmedHeaders):
    """The same, from the bytes that `to_index` returned; only what is asked for is read."""

    def __init__(self, file: bytes | mmap) -> None:
        """Map the parts of a file that `to_index` wrote; nothing is copied but what is small."""
        super().__init__()
        whole = memoryview(file)
        start = _LENGTH_BYTES + int.from_bytes(whole[:_LENGTH_BYTES], "big")
        head = json.loads(bytes(whole[_LENGTH_BYTES:start]))
        ends = list(accumulate(head["parts"], initial=start))
        self._raw_names, self._raw_texts, self._pieces, *tables = [whole[a:b] for a, b in pairwise(ends)]
        self._text_ends, self.kinds, self._sizes, *tables = map(_unpack_numbers, tables)
        self._hashes, self._piece_ends, self._owner_ends, self._owners, *tables = tables
        self._kind_ends, self._owner_kinds, self._owner_times = tables
        self.by_kind = [Confirmed(counts, person) for counts, person in head["said"]]
        self.by_person = frozenset(head["by_person"])
        self._counts_by_kind = dict(enumerate(head["times"]))
        self._signs_only: dict[str, int] = head["odd"]

    def count_by_kind(self) -> Mapping[int, int]:
        return self._counts_by_kind

    def names(self) -> list[str]:
        names: list[str] = json.loads(bytes(self._raw_names))
        return names

    def text(self, number: int) -> str:
        return str(self._raw_texts[_slice_of(self._text_ends, number)], "utf-8")

    def number(self, key: str) -> int | None:
        place = self._find_piece(_WHOLE_HEADER + key)
        return self._signs_only.get(key) if place is None else self._owners[_slice_of(self._owner_ends, place)][0]

    def size(self, number: int) -> int:
        return self._sizes[number]

    def owners(self, runs: Iterable[str], words: Iterable[str]) -> dict[str, Owners]:
        """Map runs of letters, and words, to the headers that have them; NOBODY for those of no header."""
        owners = {}
        for piece in chain(runs, words):
            place = self._find_piece(piece)
            if place is None:
                owners[piece] = NOBODY
                continue
            kinds_part = _slice_of(self._kind_ends, place)
            kinds = zip(self._owner_kinds[kinds_part].tolist(), self._owner_times[kinds_part].tolist(), strict=True)
            owners[piece] = Owners(self._owners[_slice_of(self._owner_ends, place)].tolist(), kinds)
        return owners

    def _find_piece(self, piece: str) -> int | None:
        """Return the index of a piece of letters among all of them; None if no header has it."""
        raw = piece.encode()
        value = crc32(raw)
        index = bisect_left(self._hashes, value)
        while index < len(self._hashes) and self._hashes[index] == value:
            if self._pieces[_slice_of(self._piece_ends, index)] == raw:
                return index
            index += 1
        return None


def _sum_counts(entries: Iterable[Entry]) -> Confirmed:
    """Add up what all entries say about one header; of several people the newest counts."""
    counts: dict[str, int] = {}
    person_field: str | None = None
    newest: datetime | None = None
    for entry in entries:
        field = entry["field"] or _NO_FIELD
        counts[field] = counts.get(field, 0) + entry.get("count", 1)
        moment = instant(entry.get("said_at"))
        if moment is not None and (newest is None or moment >= newest):
            person_field, newest = field, moment
    return Confirmed(counts, person_field)


def _find_owners(wanted: Iterable[_Piece], pieces: Iterable[_Piece], sizes: Sequence[int]) -> dict[_Piece, list[int]]:
    """Map each wanted piece to the headers that have it; `pieces` are those of all headers, `sizes` how many each
    header has."""
    headers_by_piece: dict[_Piece, list[int]] = {piece: [-1] for piece in wanted}
    lists = list(map(headers_by_piece.get, pieces))
    owners = chain.from_iterable(map(repeat, range(len(sizes)), sizes))
    for headers, header in zip(filter(None, lists), compress(owners, lists), strict=True):
        if headers[-1] != header:
            headers.append(header)
    return {piece: headers[1:] for piece, headers in headers_by_piece.items()}


def _slice_of(ends: Sequence[int], index: int) -> slice:
    """Return where the part with this index is among several, each of which ends at one of `ends`."""
    return slice(ends[index - 1] if index else 0, ends[index])


def _pack_numbers(table: Iterable[int]) -> bytes:
    """Write numbers in as few bytes each as they need, and before them how they are stored."""
    numbers = list(table)
    kind = next(kind for kind in "BHI" if max(numbers, default=0) < 1 << 8 * array(kind).itemsize)
    return kind.encode() + array(kind, numbers).tobytes()


def _unpack_numbers(packed: memoryview) -> "memoryview[int]":
    """Return the numbers that `_pack_numbers` wrote, without a copy."""
    return packed[1:].cast("B" if packed[0] == ord("B") else "H" if packed[0] == ord("H") else "I")
