"""One spelling for a header: words in lower case without accents, humps and signs."""

import re
import unicodedata
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


def joined(text: str) -> str:
    """What two spellings of one name have in common: `Start date`, `start_date` and `startdate`."""
    return normalized(text).replace(" ", "")
