"""General knowledge of headers, from `knowledge.json`: spellings of words, and which words mean what.

`words` lists spellings of a word: abbreviations, other languages, compounds. `understood` takes a header apart into
such words, also where they are written without blanks (`HOUSENO`, `CERTBEGINDATE`) or are cut off (`MUNICIPALI`).
Spellings in `alone` count only as whole words (`KST`, `DR`), those in `sayings` are several words (`fällig am`).
`concepts` lists phrases of these words that mean one thing, whatever a manifest calls it; many of them (`owner`,
`object id`) are there so that a column is known to be something else. What a concept `is` (a net amount is an amount)
holds in that direction only.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from runner.engine.common.spelling import LETTERS_OR_DIGITS, normalized, without_asides

_LONGEST_COMPOUND: Final = 40  # letters of a word that is taken apart
_SHORTEST_COMPOUND: Final = 4
_COST_OF_UNKNOWN_LETTER: Final = 1.3  # what a letter costs that is part of no word
_LETTERS_OF_CUT_WORD: Final = 3  # letters that are left of a word that was cut off
_EXACT_SCORE, _MODIFIED_SCORE, _NUMBERED_SCORE = 1.0, 0.9, 0.8
_AMBIGUOUS_SCORE: Final = 0.6
_LESSER_SCORE: Final = 0.54  # what a header may mean, but a field of this name does not
_PREFIXED_SCORE: Final = 0.7  # a phrase behind initials that are no word: `NPC submitted date`
_INITIALS: Final = re.compile("[bcdfghjklmnpqrstvwxz]{2,4}")
_PART_SCORE: Final = 0.55  # a phrase beside words of another meaning
_GENERAL_SCORE: Final = 0.7  # a special meaning as the general one: a net amount as an amount
_OF_HEADS: Final = frozenset(
    {"date", "email", "phone", "url", "time", "place", "region", "postcode", "country", "money"}
)
_BOUNDS: Final = frozenset({"start", "end"})  # where a range begins and ends: also `from` and `to`
_PREPOSITIONS: Final = frozenset({"of", "at", "in", "for", "by", "on", "per", "with"})
_WEAK_OPPOSITES: Final = frozenset({"to", "new", "current", "primary"})  # opposites that say little by themselves
_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})


class Concept(NamedTuple):
    """Something that headers mean, whatever a manifest calls it."""

    domain: str
    values: str  # the class of values that it has


class Meaning(NamedTuple):
    """A header in known words."""

    words: tuple[str, ...]
    known: float  # the share of its letters that are part of known words


class _Knowledge(NamedTuple):
    """knowledge.json, laid out to be looked up."""

    spellings: Mapping[str, tuple[str, ...]]  # a spelling without blanks -> the words that it means
    alone: Mapping[str, tuple[str, ...]]  # spellings that are part of no compound
    accented: Mapping[str, str]  # spellings that are others without their accents
    sayings: Mapping[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]  # first word -> runs, what they mean
    by_start: Mapping[str, tuple[str, ...]]  # first letters -> words that may be cut off
    concepts: Mapping[str, Concept]
    kinds: Mapping[str, tuple[str, ...]]  # concept -> what it is in general
    phrases: Mapping[frozenset[str], tuple[str, ...]]  # words -> the concepts that they name together
    holding: Mapping[str, tuple[frozenset[str], ...]]  # word -> phrases that have it
    modifiers: frozenset[str]  # words that change little about what a header means
    ambiguous: Mapping[str, Mapping[str, float]]  # headers that say too little to mean one thing
    preferred: frozenset[str]  # modifiers of the one of several columns that is usually meant
    qualifiers: frozenset[str]  # words that tell columns of one kind apart: billing and shipping, start and end
    opposites: Mapping[str, frozenset[str]]  # word -> words that contradict it
    tails: Mapping[str, tuple[str, ...]]  # ends of compounds whose start is no known word
    roles: frozenset[str]  # words for somebody or something beside whom a row is about
    technical: frozenset[str]  # what programs write for themselves
    similar: Mapping[str, frozenset[str]]  # word -> words that often stand for it
    vocabulary: Mapping[str, frozenset[str]]  # name of a vocabulary -> its words
    partners: Mapping[str, frozenset[str]]  # concept -> those that are often beside it


def _index_spellings(raw: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Index how words are spelled in headers, from knowledge.json: a spelling without blanks -> the words that are
    meant."""
    spellings: dict[str, tuple[str, ...]] = {}
    for phrase, others in raw["words"].items():
        words = tuple(phrase.split())
        for other in (*([phrase] if len(words) == 1 else ()), *others.split()):
            for spelled in _spelled(other):
                spellings.setdefault(spelled.replace(" ", ""), words)
    for concept in raw["concepts"].values():
        for phrase in concept["phrases"].split(", "):
            for word in phrase.split():
                spellings.setdefault(word, (word,))
    for word in " ".join((raw["qualifiers"], *raw["opposites"])).replace("/", " ").split():
        if len(word) > 2:
            spellings.setdefault(word, (word,))
    return spellings


def _index_concepts(raw: Mapping[str, Any]) -> dict[str, Mapping[str, str]]:
    """Index the concepts of knowledge.json by name; one with several classes of values becomes several that share their
    phrases."""
    concepts: dict[str, Mapping[str, str]] = {}
    for name, concept in raw["concepts"].items():
        for n, kind in enumerate(concept["values"].split()):
            concepts[f"{name}:{kind}" if n else name] = {**concept, "values": kind}
    return concepts


def _score_ambiguous(names: str) -> dict[str, float]:
    """Parse one entry of `ambiguous` in knowledge.json: concept -> score; concepts behind a semicolon are less
    likely."""
    likely, _, lesser = names.partition("; ")
    scores = dict.fromkeys(likely.split(", "), _AMBIGUOUS_SCORE)
    return scores | dict.fromkeys(lesser.split(", ") if lesser else (), _LESSER_SCORE)


def _spelled(text: str) -> tuple[str, ...]:
    """Return a text as headers are normalized; one with umlauts also with two letters for each."""
    return (text,) if text.isascii() else (normalized(text), normalized(text.translate(_UMLAUTS)))


def _index_sayings(raw: Mapping[str, Any]) -> dict[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]:
    """Index the fixed phrases of knowledge.json by their first word: runs of words, the longest first, each with the
    words that it means."""
    sayings: dict[str, dict[tuple[str, ...], tuple[str, ...]]] = {}
    for meant, texts in raw["sayings"].items():
        for text in texts.split(", "):
            for spelled in _spelled(text):
                run = tuple(LETTERS_OR_DIGITS.findall(spelled))
                sayings.setdefault(run[0], {})[run] = tuple(meant.split())
    return {
        start: tuple(sorted(runs.items(), key=lambda run_and_meaning: -len(run_and_meaning[0])))
        for start, runs in sayings.items()
    }


def _group_members(groups: Iterable[str]) -> dict[str, frozenset[str]]:
    """Map each word to all words of the groups (blank-separated, from knowledge.json) that it is in."""
    akin: dict[str, frozenset[str]] = {}
    for group in groups:
        members = frozenset(group.split())
        akin |= {word: akin.get(word, members) | members for word in members}
    return akin


def _index_opposites(groups: Iterable[str]) -> dict[str, frozenset[str]]:
    """Index the opposites of knowledge.json: word -> the words that contradict it; a `/` separates words that say the
    same."""
    opposites: dict[str, frozenset[str]] = {}
    for group in groups:
        sides = [frozenset(side.split("/")) for side in group.split()]
        everything = frozenset[str]().union(*sides)
        for side in sides:
            opposites |= {word: opposites.get(word, frozenset()) | (everything - side) for word in side}
    return opposites


def _spellings_by_start(spellings: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Map the starts of long spellings to those spellings, to recognize words that a header cuts off."""
    by_start: dict[str, list[str]] = {}
    for spelling in spellings:
        if len(spelling) > _LETTERS_OF_CUT_WORD + 1 and spelling.isascii():
            for size in range(_LETTERS_OF_CUT_WORD, len(spelling)):
                by_start.setdefault(spelling[:size], []).append(spelling)
    return {start: tuple(words) for start, words in by_start.items()}


def _index_phrases(
    concepts: Mapping[str, Mapping[str, str]], spellings: Mapping[str, tuple[str, ...]]
) -> dict[frozenset[str], tuple[str, ...]]:
    """Index the phrases of all concepts: the set of a phrase's words -> the concepts that it names."""
    phrases: dict[frozenset[str], tuple[str, ...]] = {}
    for name, concept in concepts.items():
        for phrase in concept["phrases"].split(", "):
            key = frozenset(w for word in phrase.split() for w in spellings[word])
            phrases[key] = tuple(dict.fromkeys((*phrases.get(key, ()), name)))
    return phrases


def _phrases_by_word(phrases: Iterable[frozenset[str]]) -> dict[str, tuple[frozenset[str], ...]]:
    """Map each word to the phrases that contain it."""
    by_word: dict[str, list[frozenset[str]]] = {}
    for phrase in phrases:
        for word in phrase:
            by_word.setdefault(word, []).append(phrase)
    return {word: tuple(keys) for word, keys in by_word.items()}


def _index_partners(pairs: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """Map each concept to the concepts that are often beside it, in both directions."""
    partners: dict[str, set[str]] = {}
    for name, partner in pairs:
        partners.setdefault(name, set()).add(partner)
        partners.setdefault(partner, set()).add(name)
    return {name: frozenset(others) for name, others in partners.items()}


@cache
def _knowledge() -> _Knowledge:
    """Load and index knowledge.json, the general knowledge of headers, once per process."""
    raw: dict[str, Any] = json.loads((Path(__file__).parent / "knowledge.json").read_bytes())
    spellings = _index_spellings(raw)
    alone = {normalized(s): tuple(meant.split()) for meant, text in raw["alone"].items() for s in text.split()}
    concepts = _index_concepts(raw)
    phrases = _index_phrases(concepts, spellings)
    return _Knowledge(
        spellings,
        alone,
        raw["accented"],
        _index_sayings(raw),
        _spellings_by_start(spellings),
        {name: Concept(c["domain"], c["values"]) for name, c in concepts.items()},
        {name: tuple(c["is"].split()) for name, c in concepts.items() if "is" in c},
        phrases,
        _phrases_by_word(phrases),
        frozenset(raw["modifiers"].split()),
        {normalized(short): _score_ambiguous(names) for short, names in raw["ambiguous"].items()},
        frozenset(raw["preferred"].split()),
        frozenset(" ".join((raw["qualifiers"], raw["roles"], *raw["opposites"])).replace("/", " ").split())
        - _WEAK_OPPOSITES,
        _index_opposites(raw["opposites"]),
        {tail: (alone.get(tail) or spellings[tail]) for tail in map(normalized, raw["tails"].split())},
        frozenset(raw["roles"].split()),
        frozenset(raw["technical"].split()),
        _group_members(raw["similar"]),
        {name: frozenset(text.casefold().split()) for name, text in raw["vocabulary"].items()},
        _index_partners(raw["partners"]),
    )


def concept(name: str) -> Concept:
    """Return the concept of a name, which is one of those that are known."""
    return _knowledge().concepts[name]


def is_technical(name: str) -> bool:
    """Whether programs write it for themselves: a row number, a time of editing."""
    return name in _knowledge().technical


def vocabulary(name: str) -> frozenset[str]:
    """Return the words of a vocabulary: streets, first names, countries."""
    return _knowledge().vocabulary[name]


def partners(name: str) -> frozenset[str]:
    """Return the concepts that are often beside a concept: a longitude beside a latitude."""
    return _knowledge().partners.get(name, frozenset())


def roles_of(words: frozenset[str]) -> frozenset[str]:
    """Of a header's words those that name somebody beside whom a row is about: its owner, whom to call, who pays."""
    return words & _knowledge().roles


def qualifiers_of(words: frozenset[str]) -> frozenset[str]:
    """Of a header's words those that tell it from another column of its kind."""
    return words & _knowledge().qualifiers


def are_opposite(some: frozenset[str], others: frozenset[str]) -> bool:
    """Whether some words say the opposite of others, and nothing in `others` says the same: net and gross, planned and
    actual."""
    opposites, similar = _knowledge().opposites, _knowledge().similar
    return any(
        not others.isdisjoint(opposites[word]) and others.isdisjoint(similar.get(word, ()))
        for word in some - others
        if word in opposites
    )


def unqualified(words: frozenset[str]) -> frozenset[str]:
    """Return a header's words without those that say that this is the column which is usually meant, and without
    numbers."""
    return frozenset(w for w in words if w not in _knowledge().preferred and not w.isdecimal())


def similar_to(word: str) -> frozenset[str]:
    """Return the words that often stand for a word, and it for them, with the word itself: type and class, begin and
    start; empty without any."""
    return _knowledge().similar.get(word, frozenset())


def is_word(text: str) -> bool:
    """Whether a text, without blanks, is a known spelling of a word, and so no slip of another one."""
    return text in _knowledge().spellings


@lru_cache(maxsize=8192)
def understood(header: str) -> Meaning:
    """Split a header into words in their usual spelling, also where they are written without blanks, and measure which
    share of its letters is known; cached."""
    words: list[str] = []
    letters = known = 0
    if not header.isascii():
        header = _spelled_out(header)
    if (whole := normalized(header)) in _knowledge().ambiguous:
        return Meaning((whole,), 1.0)
    parts = tuple(LETTERS_OR_DIGITS.findall(whole))
    at = 0
    while at < len(parts):
        part = parts[at]
        part_words: tuple[str, ...] = (part,)
        known_letters = size = len(part)
        if set_phrase := _set_phrase(parts, at):
            run, part_words = set_phrase
            known_letters = size = sum(map(len, run))
            at += len(run) - 1
        elif part == "n" and at == 0 and len(parts) > 1:
            part_words = ("count",)
        elif not part.isdecimal():
            part_words, known_letters = split_words(part, ends_header=at == len(parts) - 1)
        words += part_words
        letters += size
        known += known_letters
        at += 1
    return Meaning(tuple(words), known / letters if letters else 0.0)


def _spelled_out(header: str) -> str:
    """Replace in a header the words that would be other words without their accents: `lön` is pay, `lon` a
    longitude."""
    accented = _knowledge().accented
    words = unicodedata.normalize("NFC", header).casefold().split()
    return " ".join(accented.get(word, word) for word in words) if accented.keys() & set(words) else header


def _set_phrase(parts: tuple[str, ...], at: int) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the longest fixed phrase (`sayings`) that starts `at` one of a header's parts: its parts and the words
    that it means; None if none starts there."""
    runs = _knowledge().sayings.get(parts[at], ())
    return next((phrase for phrase in runs if parts[at : at + len(phrase[0])] == phrase[0]), None)


class SplitWords(NamedTuple):
    """A run of letters, split into words."""

    words: tuple[str, ...]  # in their usual spelling; the run itself if no word is known
    known_letters: int  # how many of its letters are part of known words


@lru_cache(maxsize=8192)
def split_words(part: str, *, ends_header: bool = True) -> SplitWords:
    """Split a run of letters into words; one that `ends_header` may have its last word cut off. Cached."""
    spellings = _knowledge().spellings
    if (whole := _knowledge().alone.get(part) or spellings.get(part)) is not None:
        return SplitWords(whole, len(part))
    singular = part[:-1] if len(part) > 3 and part.endswith("s") else part
    if singular in spellings:
        return SplitWords(spellings[singular], len(part))
    if part in _knowledge().modifiers:
        return SplitWords((part,), len(part))
    if not _SHORTEST_COMPOUND <= len(part) <= _LONGEST_COMPOUND:
        return SplitWords((part,), 0)
    cheapest = _split_cheapest(part, ends_header=ends_header)
    is_mostly_known = len(part) - cheapest.known_letters <= (len(part) - 4) // 4
    return cheapest if is_mostly_known else _with_tail(part)


def usual_spelling(part: str) -> tuple[str, ...]:
    """Return a run of letters or digits in its usual spelling, or the words that it is made of."""
    return (part,) if part.isdecimal() or len(part) < 2 else split_words(part).words


def _with_tail(part: str) -> SplitWords:
    """Split a run of letters into an unknown start and a known end; the run as it is if its end is not known.

    `Ausleihnummer` and `Polisnr` are a number of something, whatever that is.
    """
    tails = _knowledge().tails
    for size in range(min(8, len(part) - 3), 1, -1):
        if (tail := tails.get(part[-size:])) is not None:
            return SplitWords((part[:-size], *tail), size)
    return SplitWords((part,), 0)


def _split_cheapest(part: str, *, ends_header: bool) -> SplitWords:
    """Split a run of letters, for `split_words`, into the cheapest sequence of known words.

    Few words cost less, and so do long ones without letters between them. If it `ends_header`, the last word may be cut
    off.
    """
    spellings, by_start = _knowledge().spellings, _knowledge().by_start
    size = len(part)
    # For each number of letters from the start: the least cost, the letters that are known, and the words.
    best: list[tuple[float, int, tuple[str, ...]]] = [(0.0, 0, ()), *((9e9, 0, ()) for _ in range(size))]
    for at in range(size):
        cost, known, words = best[at]
        if cost > 8e9:
            continue
        if cost + _COST_OF_UNKNOWN_LETTER < best[at + 1][0]:
            best[at + 1] = (cost + _COST_OF_UNKNOWN_LETTER, known, words)
        for end in range(at + 2, size + 1):
            piece = part[at:end]
            here = spellings.get(piece)
            price = 1.0 + (1.2 if end - at == 2 else 0.5 if end - at == 3 else 0.0)
            if here is None and end == size and ends_header and end - at >= _LETTERS_OF_CUT_WORD and piece in by_start:
                whole = by_start[piece]
                meant = {spellings[w] for w in whole}
                if len(meant) == 1 or end - at >= _LETTERS_OF_CUT_WORD + 1:
                    here, price = spellings[min(whole, key=len)], price + 0.7
            if here is not None and cost + price < best[end][0]:
                best[end] = (cost + price, known + end - at, (*words, *here))
    _, known, words = best[size]
    return SplitWords(words, known)


@lru_cache(maxsize=8192)
def essence(header: str) -> str:
    """Return a header without what is in brackets, unless that tells it from another column: `Phone (home)`."""
    bare = without_asides(header)
    if not bare or ("(" not in header and "[" not in header):
        return bare or normalized(header)
    aside = frozenset(understood(header).words) - frozenset(understood(bare).words)
    return normalized(header) if qualifiers_of(aside) else bare


@lru_cache(maxsize=8192)
def concepts_of(header: str) -> tuple[tuple[str, float], ...]:
    """Score the concepts that a header may mean, from 0 to 1 by how plainly it says so, the plainest first; cached."""
    scores = _meanings_of_ambiguous(header) or _meanings_of_synonyms(header) | _meanings_of_whole(header)
    if max(scores.values(), default=0.0) < _EXACT_SCORE and (bare := essence(header)) != normalized(header):
        scores = _meanings_of_ambiguous(bare) or scores | _meanings_of_whole(bare)
    scores = scores or _meanings_of_parts(header)
    for name, score in tuple(scores.items()):
        for kind in _knowledge().kinds.get(name, ()):
            scores[kind] = max(scores.get(kind, 0.0), _GENERAL_SCORE * score)
    return tuple(sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def _meanings_of_ambiguous(header: str) -> dict[str, float]:
    """Return the scored concepts of a header that says too little to mean one thing (`Name`, `No`); empty for any other
    header."""
    if not header.isascii():
        header = _spelled_out(header)
    return dict(_knowledge().ambiguous.get(normalized(header), {}))


def _meanings_of_synonyms(header: str) -> dict[str, float]:
    """Return lesser meanings of a header of one word that is an ambiguous word in another spelling: an `Adresse`, like
    an `Address`, may hold but the street."""
    words = understood(header).words
    meanings = _knowledge().ambiguous.get(words[0], {}) if len(words) == 1 and not words[0].isdecimal() else {}
    return dict.fromkeys(meanings, _LESSER_SCORE)


def _meanings_of_whole(header: str) -> dict[str, float]:
    """Score the concepts that all words of a header mean together, with modifiers, numbers or a prefix left out at a
    price."""
    meaning = understood(header)
    scores: dict[str, float] = {}
    for words, score in _reduced_headers(meaning.words):
        for name in _knowledge().phrases.get(words, ()):
            scores[name] = max(scores.get(name, 0.0), score * meaning.known)
    first, rest = meaning.words[:1], meaning.words[1:]
    if not scores and len(rest) > 1 and _INITIALS.fullmatch(first[0]) and not is_word(first[0]):
        scores = dict.fromkeys(_knowledge().phrases.get(frozenset(rest), ()), _PREFIXED_SCORE)
    return scores


def _meanings_of_parts(header: str) -> dict[str, float]:
    """Score the concepts that only some of a header's words mean, lower for each word that means something else."""
    meaning = understood(header)
    scores: dict[str, float] = {}
    whole = frozenset(meaning.words)
    for phrase in _known_phrases(whole):
        rest = [w for w in whole - phrase if w not in _knowledge().modifiers and not w.isdecimal()]
        score = _PART_SCORE * len(phrase) / (len(phrase) + len(rest)) * meaning.known
        for name in _knowledge().phrases[phrase]:
            scores[name] = max(scores.get(name, 0.0), score)
    return scores


def _head(name: str) -> str:
    """Return a name up to its first preposition: the country of `country_of_residence_at_enrollment`."""
    words = normalized(name).split()
    cut = next((n for n, word in enumerate(words) if n and word in _PREPOSITIONS), len(words))
    return name if cut == len(words) else " ".join(words[:cut])


@lru_cache(maxsize=1024)
def head_classes(name: str) -> frozenset[str]:
    """Return the classes of values that the last word of a field's name implies: an `employer_state` is a state.

    Empty if it implies none.
    """
    head = _head(name)
    words = tuple(w for w in understood(head).words if not w.isdecimal())
    if len(words) < 2 and head == name:
        return frozenset()
    if len(words) > 2 and words[-1] in _BOUNDS and (before := _classes_of(words[:-1])):
        return before  # a `wage_rate_from` is a wage
    return _classes_of(words)


def _classes_of(words: tuple[str, ...]) -> frozenset[str]:
    """Return the classes of values of the concepts that the last two words name, or else the last one; empty for
    classes that a head does not imply."""
    phrases = _knowledge().phrases
    concepts = phrases.get(frozenset(words[-2:]), ()) or phrases.get(frozenset(words[-1:]), ())
    classes = frozenset(concept(name).values for name in concepts)
    return classes if classes <= _OF_HEADS else frozenset()


def _reduced_headers(words: tuple[str, ...]) -> Iterable[tuple[frozenset[str], float]]:
    """Yield the sets of words that a header may be reduced to (without numbers, without modifiers), each with the
    factor by which its meaning is less plain."""
    modifiers = _knowledge().modifiers
    yield frozenset(words), _EXACT_SCORE
    spelled = [w for w in words if not w.isdecimal()]
    if spelled and spelled[-1] == "address":  # what the others say more about
        modifiers -= {"address"}
    plain = frozenset(spelled)
    yield plain, _NUMBERED_SCORE
    yield frozenset(w for w in words if w not in modifiers), _MODIFIED_SCORE
    yield plain - modifiers, _NUMBERED_SCORE * _MODIFIED_SCORE
    for word in plain & modifiers:
        yield plain - {word}, _MODIFIED_SCORE


def _known_phrases(words: frozenset[str]) -> set[frozenset[str]]:
    """Return the longest known phrases that are made of a header's words."""
    holding = _knowledge().holding
    inside = {phrase for word in words for phrase in holding.get(word, ()) if phrase <= words}
    most = max(map(len, inside), default=0)
    return {phrase for phrase in inside if len(phrase) == most}


def folded_words(text: str) -> list[str]:
    """Return the words of a cell's text, for looking them up in a vocabulary."""
    plain = text if text.isascii() else unicodedata.normalize("NFC", text)
    return plain.casefold().replace(",", " ").replace(".", " ").split()
