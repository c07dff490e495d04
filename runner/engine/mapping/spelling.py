"""One spelling for a header: words in lower case without accents, humps and signs."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+", re.UNICODE)
LETTERS_OR_DIGITS: Final = re.compile(r"\d+|[^\W\d_]+", re.UNICODE)
_SIGNS: Final = str.maketrans({"#": " number ", "№": " number ", "%": " percent ", "&": " and ", "@": " at "})


@lru_cache(maxsize=16384)
def normalized(text: str) -> str:
    """Words in lower case, one blank between them: `MemberID ` and `member_id` are both `member id`."""
    text = _HUMP.sub(" ", text.strip())
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in text if not unicodedata.combining(c))
    return " ".join(_WORD.findall(text.translate(_SIGNS).casefold()))


_SIGN_WORDS: Final = (("#", " number "), ("%", " percent "), ("&", " and "), ("@", " at "))
_PLAIN: Final = {n: ord(chr(n).lower()) if chr(n).isalnum() else ord("\n") if n == 10 else 32 for n in range(128)}


def all_normalized(texts: Sequence[str]) -> list[str]:
    """`normalized` of many texts at once, but for the number of blanks: a large memory's headers in one go."""
    return _all(texts, normalized, humps=True)


def all_joined(texts: Sequence[str]) -> list[str]:
    """`joined` of many texts at once."""
    return _all(texts, joined, humps=False)


def _all(texts: Sequence[str], one: Callable[[str], str], *, humps: bool) -> list[str]:
    whole = "\n".join([text.replace("\n", " ") for text in texts if text.isascii()])
    if humps:
        whole = _HUMP.sub(" ", whole)
    for sign, word in _SIGN_WORDS:
        whole = whole.replace(sign, word)
    whole = whole.translate(_PLAIN)
    plain = iter((whole if humps else whole.replace(" ", "")).split("\n"))
    return [next(plain) if text.isascii() else one(text) for text in texts]


def joined(text: str) -> str:
    """What two spellings of one name have in common: `Start date`, `start_date` and `startdate`."""
    return normalized(text).replace(" ", "")
