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
_MEANT_TOGETHER: Final = {
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
SAME_ESSENCE: Final = 0.97  # without what is in brackets
SAME_WORDS: Final = 0.95
FUZZY: Final = 0.9
DISTINGUISHING: Final = 1.5  # weight of words that together tell a field from others
SIMILAR: Final = 0.7  # what a word counts that often stands for another
LEAST_LIKENESS: Final = 0.2
PART: Final = 0.95  # the last part of a stacked header says a little less than the whole
SUBJECT: Final = 3  # fields that have the word for what all rows are about
_KINDS_OF_NAMES: Final = ("name", "label", "synonym")
_RANKS_OF_WHOLE: Final = 4  # ranks of last parts come after those of whole headers
REPLACED: Final = 0.5  # what is left of a likeness where each side has a word that the other has not


@lru_cache(maxsize=8192)
def words(text: str) -> frozenset[str]:
    """Return the set of telling words of a header or name: abbreviations spelled out, plurals cut, fillers left out,
    numbers apart (`Address2` has two)."""
    spelled = [_singular(w) for w in understood(text).words]
    if len(spelled) > 1:
        spelled = ["number" if w == "n" else w for w in spelled]
    content_words: list[str] = []
    at = 0
    while at < len(spelled):
        for size in (3, 2, 1):
            pair = _MEANT_TOGETHER.get(tuple(spelled[at : at + size]))
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
    """Return the words of a header in order and in their usual spelling (`Chk Date`, `Loc`); unlike `words`, no filler
    is left out and no pair becomes one word."""
    return tuple(
        _singular(word) for part in LETTERS_OR_DIGITS.findall(normalized(text)) for word in usual_spelling(part)
    )


def bare_words(header: str) -> frozenset[str]:
    """Return the words of a header without what is in brackets, if anything is left then and it does not qualify
    them."""
    bare = essence(header)
    return words(bare if bare and bare != normalized(header) else header)


def _singular(word: str) -> str:
    """Return a word without the s of a plural."""
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] not in "su" else word


def likeness(header: str, name: str, stems: _Stems = NO_STEMS) -> float:
    """Measure from 0 to 1 how alike a header and a field's name are: 1 for the same words in the same order, less for
    fewer words in common. `stems`: as in `overlap`."""
    spelled_name = normalized(name)
    if not normalized(header) or not spelled_name:
        return 0.0
    if joined(header) == joined(name):
        return EXACT
    bare = essence(header)
    if bare and bare in (spelled_name, without_asides(spelled_name)):  # `Energy in kWh` is the energy_kwh
        return SAME_ESSENCE
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
    """Name the way in which a header has the words of a name, as a number of matcher.NAMES; None if in none of these
    ways.

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
    """Whether each word of one side is a slip of each of the other's; True if a side has none."""
    return all(is_slip(a, b) for a in words_of_one for b in words_of_other)


def _is_specific(words: Iterable[str]) -> bool:
    """Whether one of the words is not generic."""
    return any(_weight(word) == 1 for word in words)


def are_numbered_alike(header: str, other: str) -> bool:
    """Whether two headers mean the same and have the same words but for a number each: `Phone 1` and `Phone 2`."""
    return are_numbered(header, other) and concepts_of(header) == concepts_of(other)


def are_numbered(header: str, other: str) -> bool:
    """Whether two headers have the same words except for one number each, numbered lines included: `Address 1` and
    `Address 2`."""
    header_words, other_words = bare_words(header), bare_words(other)
    if not any(map(str.isdecimal, header_words)) or not any(map(str.isdecimal, other_words)):
        return False
    differ = header_words ^ other_words
    return bool(differ) and all(map(str.isdecimal, differ))


def extra_words(header: str, name: str) -> frozenset[str] | None:
    """Return the words that a header has more than a name, but for numbers and words such as `primary`; None if it
    lacks a word of the name that is not generic."""
    _, header_only, name_only = _compare_words(bare_words(header), words(name))
    return None if _is_specific(name_only) else unqualified(frozenset(header_only))


def count_specific(header_words: frozenset[str], name_words: frozenset[str]) -> int:
    """Return how many words that are not generic only one side has."""
    _, header_only, name_only = _compare_words(header_words, name_words)
    return sum(_weight(word) == 1 for word in header_only | name_only)


class _ComparedWords(NamedTuple):
    """The words of a header and a name."""

    shared: dict[str, float]  # with their weights
    header_only: set[str]
    name_only: set[str]


def _compare_words(header_words: frozenset[str], name_words: frozenset[str]) -> _ComparedWords:
    """Compare the words of a header with those of a name; slips and synonyms count as shared, at a lower weight."""
    shared = {word: _weight(word) for word in header_words & name_words}
    header_only, name_only = set(header_words - name_words), set(name_words - header_words)
    for word in sorted(header_only):
        twin, twin_weight = next(((w, FUZZY) for w in sorted(name_only) if is_slip(word, w)), (None, 0.0))
        if twin is None:
            twin, twin_weight = next(((w, SIMILAR) for w in sorted(name_only) if w in similar_to(word)), (None, 0.0))
        if twin is not None:
            header_only.discard(word)
            name_only.discard(twin)
            shared[twin] = twin_weight * _weight(word)
    if "1" in name_only and not any(word.isdecimal() for word in header_only):
        name_only.discard("1")  # the only one is the first
    shared_words = name_words - name_only
    # `State/Province` is the state: a synonym of a shared word says nothing more.
    header_only = {word for word in header_only if similar_to(word).isdisjoint(shared_words)}
    return _ComparedWords(shared, header_only, name_only)


def _rarity(field_count: int) -> float:
    """Return the factor by which shared words count that `field_count` fields have: words of many fields tell none
    apart."""
    if field_count <= 1:
        return 1.0
    return 0.75 if field_count == 2 else 0.0


def _weight(word: str) -> float:
    """Return how much a word says: 1, and less if it is generic."""
    return 0.4 if word in GENERIC else 1.0


def _is_cut(a: str, b: str) -> bool:
    """Whether a word of no meaning of its own is the start of another: `Sez.` and `sezione`."""
    return len(b) > len(a) + 1 and len(a) > 2 and b.startswith(a) and not is_word(a) and not a.isdecimal()


@lru_cache(maxsize=8192)
def is_slip(a: str, b: str) -> bool:
    """Whether two longer words differ by one typing slip (two in long words): a letter added, lost, changed or swapped;
    or whether the first is the second cut off."""
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
        """Index the names of all fields by word and by spelling. `wide`: the table is too wide to compare every header
        with every name, so that `like` finds equal ones only."""
        self._fields = fields
        self._names_by_spelling = _index_names(fields)
        self._wide = wide
        self._fields_by_word: dict[str, list[int]] = {}  # word -> fields of which a name has it
        self._fields_by_spelling: dict[tuple[str, ...], list[int]] = {}  # a name's words -> fields
        for n, field in enumerate(fields):
            for name, _ in field.names:
                self._fields_by_spelling.setdefault(spelled_out(name), []).append(n)
                for word in words(name):
                    self._fields_by_word.setdefault(word, []).append(n)
        self._words_by_first_letter: dict[str, list[str]] = {}  # first letter -> the words of the fields
        for word in self._fields_by_word:
            self._words_by_first_letter.setdefault(word[0], []).append(word)
        self._stems = {word: frozenset(fields_with_it) for word, fields_with_it in self._fields_by_word.items()}
        self._fields_by_header_word: dict[str, list[int]] = {}

    def of_role(self, headers: tuple[str, ...]) -> frozenset[int] | None:
        """Return the fields that name the same role as a column's header (`Owner street`, `Emergency phone`); None if
        the header names no role."""
        roles = roles_of(bare_words(headers[0])) if headers else None
        if not roles:
            return None
        akin = roles.union(*map(similar_to, roles))
        return frozenset(n for word in akin for n in self._fields_by_word.get(word, ()))

    def like(self, headers: tuple[str, ...]) -> dict[int, Likeness]:
        """Find the fields with a name like one of a column's headers: field -> how alike, and by which name."""
        of_role = self.of_role(headers)
        likenesses = self._fields_called(headers, of_role)
        near = {n for header in headers for n in self._fields_with_like_words(header)} if not self._wide else set[int]()
        for n in sorted(near - likenesses.keys()):
            near_likeness = self._most_like_name(
                headers if of_role is None or n in of_role else headers[:1], self._fields[n]
            )
            if near_likeness.alike >= LEAST_LIKENESS or self._is_replaced(headers[0], self._fields[n]):
                likenesses[n] = near_likeness
        return likenesses

    def _is_replaced(self, header: str, field: Field) -> bool:
        """Whether a header has a qualifier or a "without" in place of a word of every name of the field: `Billing
        phone` for `shipping_phone`."""
        header_words = bare_words(header)
        return bool("without" in header_words or qualifiers_of(header_words)) and all(
            coverage(header_words, words(name)) == "replaced" for name, _ in field.names
        )

    def numbers(self, headers: tuple[str, ...], likeness_found: Likeness) -> dict[str, float]:
        """Convert the likeness that `like` found between a column and a field into named numbers for the matcher."""
        if likeness_found.exact is not None:
            return {"exact": likeness_found.alike}
        if likeness_found.alike >= SAME_WORDS * PART:
            return {"same_words": 1.0}
        numbers = (
            {"alike": likeness_found.alike, "alike_squared": likeness_found.alike * likeness_found.alike}
            if likeness_found.alike >= LEAST_LIKENESS
            else {}
        )
        header_words, name_words = bare_words(headers[0]), words(likeness_found.name)
        if kind_of_coverage := coverage(header_words, name_words, self._stems):
            numbers[kind_of_coverage] = 1.0
        if kind_of_coverage in {None, "inside"} and self._lacks_only_the_subject(header_words, name_words):
            numbers["subject"] = 1.0
        return numbers

    def _lacks_only_the_subject(self, header_words: frozenset[str], name_words: frozenset[str]) -> bool:
        """Whether a header says everything but what all rows are about (`STATUS` where fields are called `case_number`,
        `case_date`, `case_status`), or names one of two words that always come together (`agent_attorney`)."""
        _, header_only, name_only = _compare_words(header_words, name_words)
        shared_words = name_words - name_only
        if header_only or not name_only or not shared_words:
            return False
        owners = [self._stems.get(word, _NOWHERE) for word in shared_words]
        for word in name_only:
            fields_with_it = self._stems.get(word, _NOWHERE)
            always_comes_along = len(fields_with_it) > 1 and fields_with_it in owners
            is_in_few_fields = len(fields_with_it) < max(SUBJECT, len(self._fields) // 20)
            if not always_comes_along and (is_in_few_fields or roles_of(frozenset((word,)))):
                return False
        rivals = owners[0].intersection(*owners[1:])
        fewest_other_words = min(len(words(self._fields[n].name) - shared_words) for n in rivals) if rivals else 0
        return len(rivals) == 1 or fewest_other_words == len(name_only) == 1

    def _fields_with_like_words(self, header: str) -> Iterator[int]:
        """Yield the fields that have a word of the header, the same, a synonym or a misspelled one; what a word leads
        to is remembered."""
        yield from self._fields_by_spelling.get(spelled_out(header), ())
        for word in bare_words(header):
            if word not in self._fields_by_header_word:
                slips = [other for other in self._words_by_first_letter.get(word[0], ()) if is_slip(word, other)]
                akin = {word, *similar_to(word), *slips} & self._fields_by_word.keys()
                self._fields_by_header_word[word] = [n for other in akin for n in self._fields_by_word[other]]
            yield from self._fields_by_header_word[word]

    def _fields_called(self, headers: tuple[str, ...], of_role: frozenset[int] | None) -> dict[int, Likeness]:
        """Find the fields whose name, label or synonym is exactly one of a column's headers, by the best rank. Below a
        role (`of_role`) the last part of a stacked header names only fields of that role."""
        likenesses: dict[int, Likeness] = {}
        for part, header in enumerate(headers):
            for n, rank_of_kind, name in self._names_by_spelling.get(joined(header), ()):
                if part and of_role is not None and n not in of_role:
                    continue
                is_name_itself = rank_of_kind == 1 and header.strip().casefold() == self._fields[n].name.casefold()
                rank = rank_of_kind - is_name_itself + _RANKS_OF_WHOLE * part
                known_rank = likenesses.get(n, UNLIKE).exact
                if known_rank is None or rank < known_rank:
                    kind = _KINDS_OF_NAMES[rank_of_kind - 1]
                    likenesses[n] = Likeness(PART if part else EXACT, name, kind, rank)
        return likenesses

    def _most_like_name(self, headers: tuple[str, ...], field: Field) -> Likeness:
        """Compare a column's headers with all names of a field and return the most alike pair of them."""
        best = UNLIKE
        for part, header in enumerate(headers):
            for name, kind_of_name in field.names:
                alike = round(likeness(header, name, self._stems) * (PART if part else 1.0), 4)
                if alike > best.alike:
                    best = Likeness(alike, name, kind_of_name)
        return best


class _IndexedName(NamedTuple):
    """A name of a field."""

    field: int
    rank: int  # of that kind of name: 1 for names, 2 for labels, 3 for synonyms
    name: str  # as declared


def _index_names(fields: Sequence[Field]) -> dict[str, list[_IndexedName]]:
    """Map every name of every field, joined as headers are to be compared, to the fields that have it."""
    index: dict[str, list[_IndexedName]] = {}
    for n, field in enumerate(fields):
        for name, kind in field.names:
            if key := joined(name):
                index.setdefault(key, []).append(_IndexedName(n, 1 + _KINDS_OF_NAMES.index(kind), name))
    return index
