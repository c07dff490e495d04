"""Whether values plainly contradict what a text field is: email addresses under `name`, dates under `city`.

A field with a type has it tried on the values; a text field takes any. Only what is plain counts: nearly all values are
of a kind that such a field never has. A customer, an owner or an id may well be an email address or a number.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from runner.engine.common.fields import Field
from runner.engine.common.spelling import normalized
from runner.engine.mapping.headers import words
from runner.engine.mapping.knowledge import is_word, understood

FEWEST_VALUES: Final = 4  # values
_MOST_VALUES: Final = 0.8
_NEARLY_ALL: Final = 0.95
_NAMES: Final = frozenset({"person", "company", "first_name", "last_name"})  # classes of what has a name
_NAME_WORDS: Final = frozenset({"name", "firstname", "lastname"})
_NAME_ENDS: Final = ("name", "namen", "nom", "nome", "nombre", "naam", "namn", "navn")
_TOWNS: Final = frozenset({"city", "town", "municipality"})
_PLACES: Final = frozenset({"place"})
_AREAS: Final = frozenset({"region", "country", "district"})
_REACHED: Final = frozenset({"email", "phone", "url"})
_DIGITS: Final = frozenset(
    {"phone", "postcode", "date", "money", "decimal", "latitude", "longitude", "year", "quantity"}
)
_AMOUNTS: Final = frozenset({"money", "decimal", "quantity"})
_GOODS: Final = frozenset({"product", "description"})
_CODES: Final = frozenset({"code", "number", "id"})
# Kind of values -> the classes that never have it.
_NEVER_OF_CLASSES: Final[Mapping[str, frozenset[str]]] = {
    "email addresses": _NAMES | _PLACES | _AREAS | _DIGITS | {"street", "url"},
    "web addresses": _NAMES | _PLACES | _AREAS | _DIGITS | {"street", "email"},
    "dates": _NAMES | _PLACES | _AREAS | _REACHED | {"street", "postcode", "money", "decimal", "quantity"},
    "phone numbers": _NAMES | _PLACES | _AREAS | {"email", "url", "street"},
    "numbers": _NAMES | _PLACES | {"email", "url", "street"},
    "words": frozenset({"phone", "postcode", "date", "email"}),
    "countries": _PLACES,
}


def odd_kind(field: Field, classes: frozenset[str], seen: Mapping[str, float], *, is_known: bool) -> str:
    """Name the kind that most values are of (`dates`, `email addresses`) if a text field of this name never has such
    values; empty if it may.

    `classes`: what values of the field look like in general. `seen`: the shares of a column's profile. `is_known`: all
    words of the field's name say what it is, not only the last one.
    """
    tokens = normalized(field.name).split()
    name = words(field.name)
    last = understood(field.name).words[-1:]
    if not _CODES.isdisjoint(last) and _are_people(seen):
        return "names of people"
    is_name = not name.isdisjoint(_NAME_WORDS) and "user" not in name
    if is_name and not classes and tokens[-1].endswith(_NAME_ENDS):
        classes = frozenset({"person"})  # whatever has a name
    elif not _are_whole_words(tokens):
        return ""
    kind = _plain_kind(seen)
    if _may_be_written_as(kind, classes, name, is_name=is_name):
        return ""
    if seen["decimal"] >= _MOST_VALUES and not name.isdisjoint(_GOODS):
        return "amounts"
    return kind if classes and _never_has(classes, kind, is_known=is_known) else ""


def _never_has(classes: frozenset[str], kind: str, *, is_known: bool) -> bool:
    """Whether no class that the field's values may have includes values of this kind; False for a kind that is not
    known."""
    if kind == "words" and is_known and classes <= _AMOUNTS:
        return True
    return classes <= _NEVER_OF_CLASSES.get(kind, frozenset())


def _are_whole_words(tokens: Sequence[str]) -> bool:
    """Whether a name is made of whole words: what is read from parts of words is no more than likely."""
    return all(len(token) > 3 and is_word(token) for token in tokens if not token.isdecimal())


def _may_be_written_as(kind: str, classes: frozenset[str], name: frozenset[str], *, is_name: bool) -> bool:
    """Whether values of this kind are usual for such a field all the same: a manager as an email address or a number, a
    place as a rank."""
    if not is_name and classes & _NAMES and kind != "dates":
        return True
    return kind == "numbers" and bool(classes & _PLACES) and name.isdisjoint(_TOWNS)


def _plain_kind(seen: Mapping[str, float]) -> str:
    """Name the kind that nearly all values are of, by the shares of their profile; empty if they are of no kind in
    particular."""
    shares = {
        "email addresses": seen["email"],
        "web addresses": seen["url"],
        "dates": seen["date"],
        "countries": seen["vocabulary_country"],
        "numbers": seen["integer"] + seen["decimal"],
        "phone numbers": seen["phone"],
        "words": seen["words_only"] if not seen["truth"] else 0.0,
    }
    return next((kind for kind, share in shares.items() if share >= _MOST_VALUES), "")


def _are_people(seen: Mapping[str, float]) -> bool:
    """Whether the values look like names of many people: two or three words of letters each, with capitals."""
    spelled = seen["words_only"] >= _NEARLY_ALL and seen["two_words"] + seen["many_words"] >= _MOST_VALUES
    return spelled and seen["title"] >= _MOST_VALUES and seen["distinct"] >= _MOST_VALUES
