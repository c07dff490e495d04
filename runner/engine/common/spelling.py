"""One spelling for a header: words in lower case without accents, humps and signs."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

_HUMP = re.compile(r"[A-Z](?:(?<=[a-z0-9].)|(?<=[A-Z].)(?=[a-z]))")  # a capital that starts a word
_WITH_BLANK_BEFORE: Final = r" \g<0>"
_WORD = re.compile(r"[^\W_]+", re.UNICODE)
LETTERS_OR_DIGITS: Final = re.compile(r"\d+|[^\W\d_]+", re.UNICODE)
_PLAIN_LETTERS: Final = str.maketrans(
    {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE", "\u0131": "i", "đ": "d", "œ": "oe"}
)
# Letters of other scripts that look like Latin ones: read as such in words that have Latin letters as well.
_LATIN_TWINS: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf",
    "aeopcxyiABEKMHOPCTXABEZHIKMNOPTYXo",
)
_LATIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_UNSEEN_SIGNS: Final = dict.fromkeys([0xAD, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF])
_SIGNS_IN_WORDS: Final = str.maketrans({"#": " number ", "№": " number ", "%": " percent ", "&": " and ", "@": " at "})
_ASIDE: Final = re.compile(r"\s*[(\[][^)\]]*[)\]]\s*")
# A unit behind the words, as brackets may hold it: `Budget in TEUR`, `Margin %`, `Weight / kg` of a header of two rows.
_UNIT: Final = re.compile(
    r"(?:\s*/\s*|\s+in\s+|\s+)(?:[tkm]?(?:eur|usd|gbp|chf|€|\$|£)|jpy|cny|inr|aud|cad|nzd|sek|nok|dkk|pln|czk|huf|%|kg|g|mg|lbs?|"
    r"oz|km|cm|mm|km/h|m/s|m²|m³|m2|m3|kwh|mwh|kw|°[cf]|hrs|pcs|thousands|millions|tsd\.?|mio\.?)\s*$|\s*[%€$£]\s*$|"
    r"\s*/\s*(?:m|t|l|s|h|min|sec|h|days?|hours?|units?)\s*$|\s+in\s+(?:m|t|l|s|h|min|sec|days|hours|units|percent)\s*$",
    re.IGNORECASE,
)


def _in_one_script(word: re.Match[str]) -> str:
    """Replace letters of other scripts that look like Latin ones, in a word that has Latin letters as well."""
    return word[0] if _LATIN.isdisjoint(word[0]) else word[0].translate(_LATIN_TWINS)


@lru_cache(maxsize=16384)
def normalized(text: str) -> str:
    """Return words in lower case, one blank between them: `MemberID ` and `member_id` are both `member id`."""
    if not text.isascii():
        text = _WORD.sub(_in_one_script, text.translate(_UNSEEN_SIGNS))
    text = _HUMP.sub(_WITH_BLANK_BEFORE, text.strip())
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in text if not unicodedata.combining(c)).translate(_PLAIN_LETTERS)
    return " ".join(_WORD.findall(text.translate(_SIGNS_IN_WORDS).casefold()))


def without_asides(header: str) -> str:
    """Return the words of a header without what is in brackets, and without a unit at its end."""
    return normalized(_UNIT.sub("", _ASIDE.sub(" ", header).rstrip()))


_SIGN_WORDS: Final = (("#", " number "), ("%", " percent "), ("&", " and "), ("@", " at "))
_PLAIN_ASCII: Final = {n: ord(chr(n).lower()) if chr(n).isalnum() else ord("\n") if n == 10 else 32 for n in range(128)}


def spell_all(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Spell many texts at once, such as a large memory's headers: return each as `normalized` does, but for the number
    of blanks, and each as `joined` does."""
    unusual = [index for index, text in enumerate(texts) if not text.isascii() or "\n" in text]
    plain = list(texts)
    for index in unusual:
        plain[index] = ""
    whole = _HUMP.sub(_WITH_BLANK_BEFORE, "\n".join(plain))
    for sign, word in _SIGN_WORDS:
        whole = whole.replace(sign, word)
    whole = whole.translate(_PLAIN_ASCII)
    words, keys = whole.split("\n"), whole.replace(" ", "").split("\n")
    for index in unusual:
        words[index], keys[index] = normalized(texts[index]), joined(texts[index])
    return words, keys


def joined(text: str) -> str:
    """Return what two spellings of one name have in common: `startdate` for `Start date`, `start_date` and
    `startdate`."""
    return normalized(text).replace(" ", "")


def distance(text: str, other: str) -> int:
    """Count the letters that two texts differ in: one more, one less, another one, or two neighbours swapped."""
    costs_two_before: list[int] = []
    costs_before = list(range(len(other) + 1))  # up to the letter before, for each start of the other text
    for i, letter in enumerate(text, 1):
        costs = [i]
        for j, other_letter in enumerate(other, 1):
            cost = min(costs_before[j] + 1, costs[j - 1] + 1, costs_before[j - 1] + (letter != other_letter))
            if i > 1 and j > 1 and letter == other[j - 2] and text[i - 2] == other_letter:
                cost = min(cost, costs_two_before[j - 2] + 1)
            costs.append(cost)
        costs_two_before, costs_before = costs_before, costs
    return costs_before[-1]
