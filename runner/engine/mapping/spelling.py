"""One spelling for a header: words in lower case without accents, humps and signs."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

_HUMP = re.compile(r"[A-Z](?:(?<=[a-z0-9].)|(?<=[A-Z].)(?=[a-z]))")  # a capital that starts a word
_APART: Final = r" \g<0>"
_WORD = re.compile(r"[^\W_]+", re.UNICODE)
LETTERS_OR_DIGITS: Final = re.compile(r"\d+|[^\W\d_]+", re.UNICODE)
_SIGNS: Final = str.maketrans({"#": " number ", "№": " number ", "%": " percent ", "&": " and ", "@": " at "})


@lru_cache(maxsize=16384)
def normalized(text: str) -> str:
    """Words in lower case, one blank between them: `MemberID ` and `member_id` are both `member id`."""
    text = _HUMP.sub(_APART, text.strip())
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in text if not unicodedata.combining(c))
    return " ".join(_WORD.findall(text.translate(_SIGNS).casefold()))


_SIGN_WORDS: Final = (("#", " number "), ("%", " percent "), ("&", " and "), ("@", " at "))
_PLAIN: Final = {n: ord(chr(n).lower()) if chr(n).isalnum() else ord("\n") if n == 10 else 32 for n in range(128)}


def all_spelled(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """`normalized`, but for the number of blanks, and `joined` of many texts at once: a large memory's headers."""
    odd = [n for n, text in enumerate(texts) if not text.isascii() or "\n" in text]
    plain = list(texts)
    for n in odd:
        plain[n] = ""
    whole = _HUMP.sub(_APART, "\n".join(plain))
    for sign, word in _SIGN_WORDS:
        whole = whole.replace(sign, word)
    whole = whole.translate(_PLAIN)
    words, keys = whole.split("\n"), whole.replace(" ", "").split("\n")
    for n in odd:
        words[n], keys[n] = normalized(texts[n]), joined(texts[n])
    return words, keys


def joined(text: str) -> str:
    """What two spellings of one name have in common: `Start date`, `start_date` and `startdate`."""
    return normalized(text).replace(" ", "")
