"""How alike a header and a field's names are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from runner.engine.common.fields import Field
from runner.engine.common.spelling import LETTERS_OR_DIGITS, distance, joined, normalized, without_asides
from runner.engine.mapping.knowledge import (
    concepts_of,
    essence,
    is_word,
    qualifiers_of,
    roles_of,
    similar_to,
    understood,
    unqualified,
    usual_spelling,
)

# Words that follow each other -> the word that they mean together.
_PAIRS: Final = {
    ("mail",): ("email",),
    ("e", "mailing"): ("email",),
    ("e", "mailing", "address"): ("email",),
    ("email", "address"): ("email",),
    ("first", "name"): ("firstname",),
    ("last", "name"): ("lastname",),
    ("postal", "code"): ("postcode",),
    ("url", "site"): ("url",),
    ("address", "row"): ("address",),
}
_FILLERS: Final = frozenset(
    {"the", "of", "a", "an", "and", "for", "in", "on", "your", "please", "enter"}
    | {"de", "la", "le", "du", "des", "d", "del", "della", "di", "da", "do", "el", "van", "der", "am", "im"}
)
GENERIC: Final = frozenset(
    {"count", "name", "date", "id", "number", "code", "type", "value", "amount", "status", "total"}
)
_Stems = Mapping[str, frozenset[int]]  # word -> the fields that have it
_NOWHERE: Final = frozenset[int]()
NO_STEMS: Final[_Stems] = {}
# Likeness of a header that is a name, has its words, or shares them all but for slips.
EXACT: Final = 1.0
SAME_WORDS: Final = 0.95
FUZZY: Final = 0.9
DISTINGUISHING: Final = 1.5  # weight of words that together tell a field from others
SIMILAR: Final = 0.7  # what a word counts that often stands for another
LEAST_LIKENESS: Final = 0.2
PART: Final = 0.95  # the last part of a stacked header says a little less than the whole
SUBJECT: Final = 3  # fields that have the word for what all rows are about
_KINDS: Final = ("name", "label", "synonym")
_PARTS: Final = 4  # ranks of last parts come after those of whole headers
REPLACED: Final = 0.5  # what is left of a likeness where each side has a word that the other has not


@lru_cache(maxsize=8192)
def words(text: str) -> frozenset[str]:
    """Return the telling words of a header, abbreviations spelled out, plurals cut, numbers apart: `Address2` has
    two."""
    spelled = [_singular(w) for w in understood(text).words]
    if len(spelled) > 1:
        spelled = ["number" if w == "n" else w for w in spelled]
    content_words: list[str] = []
    at = 0
    while at < len(spelled):
        for size in (3, 2, 1):
            pair = _PAIRS.get(tuple(spelled[at : at + size]))
            if pair is not None and at + size <= len(spelled):
                content_words += pair
                at += size
                break
        else:
            content_words.append(spelled[at])
            at += 1
    return frozenset(w for w in content_words if w not in _FILLERS)


@lru_cache(maxsize=8192)
def spelled_out(text: str) -> tuple[str, ...]:
    """Return the words of a header one by one in their usual spelling, whatever they mean together: `Chk Date`,
    `Loc`."""
    return tuple(
        _singular(word) for part in LETTERS_OR_DIGITS.findall(normalized(text)) for word in usual_spelling(part)
    )


def bare_words(header: str) -> frozenset[str]:
    """The words of a header without what is in brackets, if anything is left then and it does not qualify them."""
    bare = essence(header)
    return words(bare if bare and bare != normalized(header) else header)


def _singular(word: str) -> str:
    """A word without the s of a plural."""
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] not in "su" else word


def likeness(header: str, name: str, stems: _Stems = NO_STEMS) -> float:
    """Measure how alike a header and a name are: 1 for the same words in the same order, less for fewer words in
    common, 0 for none. `stems`: as in `overlap`."""
    spelled_name = normalized(name)
    if not normalized(header) or not spelled_name:
        return 0.0
    if joined(header) == joined(name):
        return EXACT
    bare = essence(header)
    if bare and bare in (spelled_name, without_asides(spelled_name)):  # `Energy in kWh` is the energy_kwh
        return 0.97
    header_words, name_words = bare_words(header), words(name)
    if not header_words or not name_words:
        return 0.0
    if header_words == name_words:
        return SAME_WORDS
    if spelled_out(header) == spelled_out(name):
        return FUZZY
    return round(FUZZY * overlap(header_words, name_words, stems), 4)


def overlap(header_words: frozenset[str], name_words: frozenset[str], stems: _Stems = NO_STEMS) -> float:
    """Divide the weight of shared words by the weight of all words; words that are one typing slip apart count as
    shared.

    A generic word more or less says little (`Plan code` is the plan), a word in place of another says a lot: `Agent
    city` is not the `agent_name`, and `Address 1` is not `address_2`. Where one side has a telling word to itself, only
    shared words count that together distinguish the field from others: `stems` has the fields of a word.
    """
    common, header_only, name_only = _compare_words(header_words, name_words)
    shared = sum(common.values())
    if _is_specific(header_only | name_only) and common and stems:
        shared *= _rarity(len(frozenset.intersection(*(stems.get(word, _NOWHERE) for word in common))))
    if not shared:
        return 0.0
    if not header_only or not name_only:
        return shared / (shared + sum(map(_weight, header_only | name_only)))
    have_different_numbers = any(map(str.isdecimal, header_only)) and any(map(str.isdecimal, name_only))
    if have_different_numbers:
        return 0.0
    return REPLACED * shared / (shared + len(header_only) + len(name_only))


def coverage(header_words: frozenset[str], name_words: frozenset[str], stems: _Stems = NO_STEMS) -> str | None:
    """How a header has the words of a name, as the name of a number in matcher.NAMES; None if in none of these ways.

    It has them with slips (`nearly_same`) or in other words (`similar_words`), but for generic ones
    (`generic_differs`), all of several and more (`covers`), lacks some of them (`inside`), or tells it from another one
    of its kind (`replaced`: the billing phone is not the shipping phone). Where it lacks some, those that it has must
    distinguish the field from others.
    """
    common, header_only, name_only = _compare_words(header_words, name_words)
    if not common:
        return None
    if "without" in header_only or (qualifiers_of(frozenset(header_only)) and _is_specific(name_only)):
        return "replaced"
    if not header_only and not name_only:
        return "nearly_same" if _are_slips(header_words - name_words, name_words - header_words) else "similar_words"
    if not _is_specific(header_only | name_only) and _is_specific(common):
        return "generic_differs"
    if len(common) < 2 or (header_only and name_only):
        return None
    if header_only:
        return "covers"
    return "inside" if _is_distinct(common, stems) else None


def _is_distinct(common: Mapping[str, float], stems: _Stems) -> bool:
    """Whether few other fields have these words."""
    return sum(w * _rarity(len(stems.get(word, _NOWHERE))) for word, w in common.items()) >= DISTINGUISHING


def _are_slips(words_of_one: frozenset[str], words_of_other: frozenset[str]) -> bool:
    """Whether each word is a slip of each of the others."""
    return all(is_slip(a, b) for a in words_of_one for b in words_of_other)


def _is_specific(words: Iterable[str]) -> bool:
    """Whether one of the words is not generic."""
    return any(_weight(word) == 1 for word in words)


def are_numbered_alike(header: str, other: str) -> bool:
    """Whether two headers mean the same and have the same words but for a number each: `Phone 1` and `Phone 2`."""
    return are_numbered(header, other) and concepts_of(header) == concepts_of(other)


def are_numbered(header: str, other: str) -> bool:
    """Whether two headers have the same words but for a number each, be it of lines: `Address 1` and `Address 2`."""
    header_words, other_words = bare_words(header), bare_words(other)
    if not any(map(str.isdecimal, header_words)) or not any(map(str.isdecimal, other_words)):
        return False
    differ = header_words ^ other_words
    return bool(differ) and all(map(str.isdecimal, differ))


def extra_words(header: str, name: str) -> frozenset[str] | None:
    """What a header says more than a name, but for words such as `primary`; None if it lacks something."""
    _, header_only, name_only = _compare_words(bare_words(header), words(name))
    return None if _is_specific(name_only) else unqualified(frozenset(header_only))


def count_specific(header_words: frozenset[str], name_words: frozenset[str]) -> int:
    """How many words that are not generic only one side has."""
    _, header_only, name_only = _compare_words(header_words, name_words)
    return sum(_weight(word) == 1 for word in header_only | name_only)


def _compare_words(
    header_words: frozenset[str], name_words: frozenset[str]
) -> tuple[dict[str, float], set[str], set[str]]:
    """Compare words: return those that the name and the header share, with their weights; those that only the header
    has; and those that only the name has."""
    shared = {word: _weight(word) for word in header_words & name_words}
    header_only, name_only = set(header_words - name_words), set(name_words - header_words)
    for word in sorted(header_only):
        twin, share = next(((w, 0.9) for w in sorted(name_only) if is_slip(word, w)), (None, 0.0))
        if twin is None:
            twin, share = next(((w, SIMILAR) for w in sorted(name_only) if w in similar_to(word)), (None, 0.0))
        if twin is not None:
            header_only.discard(word)
            name_only.discard(twin)
            shared[twin] = share * _weight(word)
    if "1" in name_only and not any(word.isdecimal() for word in header_only):
        name_only.discard("1")  # the only one is the first
    shared_words = name_words - name_only
    header_only = {
        word for word in header_only if similar_to(word).isdisjoint(shared_words)
    }  # `State/Province` is the state
    return shared, header_only, name_only


def _rarity(fields: int) -> float:
    """Return how much words count that so many fields have."""
    if fields <= 1:
        return 1.0
    return 0.75 if fields == 2 else 0.0


def _weight(word: str) -> float:
    """How much a word says: 1, and less if it is generic."""
    return 0.4 if word in GENERIC else 1.0


def _is_cut(a: str, b: str) -> bool:
    """Whether a word of no meaning of its own is the start of another: `Sez.` and `sezione`."""
    return len(b) > len(a) + 1 and len(a) > 2 and b.startswith(a) and not is_word(a) and not a.isdecimal()


@lru_cache(maxsize=8192)
def is_slip(a: str, b: str) -> bool:
    """Whether two longer words differ by one slip (two in long words): a letter more, less, other or swapped; or the
    first was cut off.
    """
    if _is_cut(a, b):
        return True
    have_like_lengths = min(len(a), len(b)) >= 4 and abs(len(a) - len(b)) <= 2
    if not have_like_lengths or a[0] != b[0] or a.isdecimal() or b.isdecimal():
        return False
    if is_word(a) and is_word(b):
        return a == b
    most = 1 if min(len(a), len(b)) < 8 else 2
    return len(set(a) ^ set(b)) <= 2 * most and distance(a, b) <= most  # a slip changes two letters at most


class Likeness(NamedTuple):
    """A header and the field's name that is most like it."""

    alike: float
    name: str = ""
    word: str = ""  # what kind of name it is
    exact: int | None = None  # its rank, if the header is that name


UNLIKE: Final = Likeness(0.0)


class FieldNames:
    """The names, labels and synonyms of all fields, to find those that a header is like."""

    def __init__(self, fields: Sequence[Field], *, wide: bool) -> None:
        """Index the names of all fields. `wide`: there are too many columns and names to compare each with each; only
        equal ones are found."""
        self._fields = fields
        self._index = _index(fields)
        self._wide = wide
        self._having: dict[str, list[int]] = {}  # word -> fields of which a name has it
        self._spelled: dict[tuple[str, ...], list[int]] = {}  # a name's words -> fields
        for n, field in enumerate(fields):
            for name, _ in field.names:
                self._spelled.setdefault(spelled_out(name), []).append(n)
                for word in words(name):
                    self._having.setdefault(word, []).append(n)
        self._starting: dict[str, list[str]] = {}  # first letter -> the words of the fields
        for word in self._having:
            self._starting.setdefault(word[0], []).append(word)
        self._stems = {word: frozenset(fields_with_it) for word, fields_with_it in self._having.items()}
        self._close: dict[str, list[int]] = {}

    def of_role(self, headers: tuple[str, ...]) -> frozenset[int] | None:
        """Return the fields that name a role which the header names (`Owner street`, `Emergency phone`); None: it has
        none."""
        roles = roles_of(bare_words(headers[0])) if headers else None
        if not roles:
            return None
        akin = roles.union(*map(similar_to, roles))
        return frozenset(n for word in akin for n in self._having.get(word, ()))

    def like(self, headers: tuple[str, ...]) -> dict[int, Likeness]:
        """Return how alike each field is that has a name like one of a column's headers."""
        of_role = self.of_role(headers)
        likenesses = self._named(headers, of_role)
        near = {n for header in headers for n in self._near(header)} if not self._wide else set[int]()
        for n in sorted(near - likenesses.keys()):
            near_likeness = self._likeness(headers if of_role is None or n in of_role else headers[:1], self._fields[n])
            if near_likeness.alike >= LEAST_LIKENESS or self._is_replaced(headers[0], self._fields[n]):
                likenesses[n] = near_likeness
        return likenesses

    def _is_replaced(self, header: str, field: Field) -> bool:
        """Whether a header has a word in place of one of the field's: what it is without, or of what kind."""
        header_words = bare_words(header)
        return bool("without" in header_words or qualifiers_of(header_words)) and all(
            coverage(header_words, words(name)) == "replaced" for name, _ in field.names
        )

    def numbers(self, headers: tuple[str, ...], best: Likeness) -> dict[str, float]:
        """Turn how alike a header and a name are into numbers of matcher.NAMES; `best`: what `like` found."""
        if best.exact is not None:
            return {"exact": best.alike}
        if best.alike >= SAME_WORDS * PART:
            return {"same_words": 1.0}
        numbers = (
            {"alike": best.alike, "alike_squared": best.alike * best.alike} if best.alike >= LEAST_LIKENESS else {}
        )
        header_words, name_words = bare_words(headers[0]), words(best.name)
        if how := coverage(header_words, name_words, self._stems):
            numbers[how] = 1.0
        if how in {None, "inside"} and self._lacks_only_the_subject(header_words, name_words):
            numbers["subject"] = 1.0
        return numbers

    def _lacks_only_the_subject(self, header_words: frozenset[str], name_words: frozenset[str]) -> bool:
        """Whether a header says everything but what all rows are about: `STATUS` where fields are called `case_number`,
        `case_date` and `case_status`; or names one of two that always come together, such as `agent_attorney`.
        """
        _, header_only, name_only = _compare_words(header_words, name_words)
        shared_words = name_words - name_only
        if header_only or not name_only or not shared_words:
            return False
        owners = [self._stems.get(word, _NOWHERE) for word in shared_words]
        for word in name_only:
            fields_with_it = self._stems.get(word, _NOWHERE)
            bound = len(fields_with_it) > 1 and fields_with_it in owners
            if not bound and (
                len(fields_with_it) < max(SUBJECT, len(self._fields) // 20) or roles_of(frozenset((word,)))
            ):
                return False
        rivals = owners[0].intersection(*owners[1:])
        fewest = min(len(words(self._fields[n].name) - shared_words) for n in rivals) if rivals else 0
        return len(rivals) == 1 or fewest == len(name_only) == 1

    def _near(self, header: str) -> Iterator[int]:
        """Yield the fields with a word like one of a header's: the same, similar or misspelled."""
        yield from self._spelled.get(spelled_out(header), ())
        for word in bare_words(header):
            if word not in self._close:
                slips = [other for other in self._starting.get(word[0], ()) if is_slip(word, other)]
                akin = {word, *similar_to(word), *slips} & self._having.keys()
                self._close[word] = [n for other in akin for n in self._having[other]]
            yield from self._close[word]

    def _named(self, headers: tuple[str, ...], of_role: frozenset[int] | None) -> dict[int, Likeness]:
        """Return the fields whose name, label or synonym a header is; its last part is not, below somebody's role."""
        likenesses: dict[int, Likeness] = {}
        for part, header in enumerate(headers):
            for n, kind, name in self._index.get(joined(header), ()):
                if part and of_role is not None and n not in of_role:
                    continue
                same = kind == 1 and header.strip().casefold() == self._fields[n].name.casefold()
                rank = kind - same + _PARTS * part
                known = likenesses.get(n, UNLIKE).exact
                if known is None or rank < known:
                    likenesses[n] = Likeness(PART if part else EXACT, name, _KINDS[kind - 1], rank)
        return likenesses

    def _likeness(self, headers: tuple[str, ...], field: Field) -> Likeness:
        """Return the name of a field that is most like one of the headers, and how much."""
        best = UNLIKE
        for n, header in enumerate(headers):
            for name, word in field.names:
                alike = round(likeness(header, name, self._stems) * (PART if n else 1.0), 4)
                if alike > best.alike:
                    best = Likeness(alike, name, word)
        return best


def _index(fields: Sequence[Field]) -> dict[str, list[tuple[int, int, str]]]:
    """Map every name of every field to the field, its rank and the name itself."""
    index: dict[str, list[tuple[int, int, str]]] = {}
    for n, field in enumerate(fields):
        for name, kind in field.names:
            if key := joined(name):
                index.setdefault(key, []).append((n, 1 + _KINDS.index(kind), name))
    return index
