"""Words that nobody writes: what a text looks like when it was decoded by the wrong encoding."""

# ruff: noqa: RUF001  # signs that look like others are what this module is about

import re
import unicodedata
from collections import Counter
from typing import Final


class _Classes(dict[int, str]):
    """A character's class in one letter: its script, in capitals or not; a sign that may stand in or by words."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _class_of(chr(code))
        return found


_SIGNS: Final = {
    **dict.fromkeys("«»“”„‘‚…°§•¿¡№、。「」\u3000・", "q"),  # beside words, not inside them
    **dict.fromkeys("€£¥", "v"),  # beside numbers
    **dict.fromkeys("–—·\u00ad\u200c\u200d\u200e\u200f", "."),
    **dict.fromkeys("™®ºª²³¹", "f"),  # after words only
    "’": "k",
    "ƒ": "s",
}
_SCRIPTS: Final = (
    (0x250, "lL"), (0x370, "mm"), (0x400, "gG"), (0x530, "cC"), (0x590, "ss"), (0x600, "hh"), (0x700, "rr"),
    (0xE00, "ss"), (0xE80, "tt"), (0x1E00, "ss"), (0x1F00, "lL"), (0x2000, "gG"), (0x3000, "ss"), (0xFB00, "ee"),
    (0xFE00, "rr"), (0xFF61, "ee"), (0xFFA0, "ww"), (0xFFF0, "ee"),
)  # fmt: skip


def _class_of(one: str) -> str:
    if one.isascii():
        return (
            "a" if one.islower() else "A" if one.isupper() else "0" if one.isdigit() else " " if one in "\n " else "."
        )
    if one in _SIGNS:
        return _SIGNS[one]
    category = unicodedata.category(one)
    if category in ("Cc", "Co", "Cn", "Cs") or one == "\ufffd":
        return "x"
    if category in ("Mn", "Mc", "Lm"):
        return "m"
    if category == "Zs":
        return " "
    script = next((letters for limit, letters in _SCRIPTS if ord(one) < limit), "ee")
    if category[0] == "L" or script in ("ee", "ww"):
        return script[category == "Lu"]
    return "0" if category == "Nd" else "s"


_CLASSES: Final = _Classes()
_ODD: Final = re.compile(
    "x"
    "|[aAlL][gGcChrtw]|[gGcChrtw][aAlL]|[gG][cChrtew]|[cC][gGhrtew]|h[gGcCrtew]|r[gGcChtew]|t[gGcChrew]"
    "|e[gGcChrt]|w[gGcChrt]"
    "|[aAlLgGcChrt]v|v[aAlLgGcChrt]|[aAlLgGcChrt][sq][aAlLgGcChrt]|s[aAlLgGcC]|[alcg]s(?=[ .]|$)|f[aAlLgGcChrt]"
    "|(?<![^ ])k[aAlLgGcC]"
    "|[al]L|lA|cC|gG|(?<![^ .])AL[al]"
    "|[aA][ew][aA]|[aA]ef|se"
)
_WORD: Final = re.compile("[^ ]+")
_PLAIN: Final = frozenset("aA0.")


def odd_words(text: str) -> tuple[int, int]:
    """How many words with something past ASCII nobody would write, and how many there are."""
    words = [word for word in _WORD.findall(text.translate(_CLASSES)) if not _PLAIN.issuperset(word)]
    return sum(_ODD.search(word) is not None for word in words), len(words)


# What each language writes past ASCII, besides letters that it borrows: é in names is at home everywhere.
_ALPHABETS: Final = tuple(
    frozenset(letters)
    for letters in (
        "àâæçéèêëîïôœùûüÿ",  # French
        "äöüßé",  # German
        "áéíñóúüº",  # Spanish
        "àèéìíîòóùú",  # Italian
        "áâãàçéêíóôõúü",  # Portuguese
        "àçèéíïòóúü·",  # Catalan
        "åäöé",  # Swedish, Finnish
        "æøåé",  # Danish, Norwegian
        "éëïóöü",  # Dutch
        "ąćęłńóśźż",  # Polish
        "áčďéěíňóřšťúůýž",  # Czech
        "áäčďéíĺľňóôŕšťúýž",  # Slovak
        "áéíóöőúüű",  # Hungarian
        "ăâîșțşţ",  # Romanian
        "čćđšž",  # Croatian, Serbian, Slovenian
        "çğıiöşüâî",  # Turkish
        "ąčęėįšųūž",  # Lithuanian
        "āčēģīķļņšūž",  # Latvian
        "äõöüšž",  # Estonian
        "çëé",  # Albanian
        "ăâđêôơưàảãáạèéẻẽẹìíỉĩịòóỏõọùúủũụỳýỷỹỵ",  # Vietnamese
    )
)


# Names of many countries stand in one file as well; they say less. So does a language that few write.
_REGIONS: Final = (
    (frozenset("áðéíóúýþæö"), 0.8),  # Iceland, whose own letters stand where Turkish has its own
    (frozenset("àáâãäåæçèéêëìíîïñòóôõöøœùúûüÿßºª"), 0.95),  # Western Europe
    (frozenset("áâäăąćčçďđéęěëíîĺľłńňóôöőŕřśšşșťţțúůüűýźżžß"), 0.9),  # Central Europe
)


def coherence(text: str) -> float:
    """The share of letters past ASCII that the likeliest language or region writes; 1 where no Latin ones are."""
    letters = Counter(one for one in text.lower() if "\x7f" < one < "\u0250" and one.isalpha())
    total = letters.total()
    if not total:
        return 1.0
    shares = [float(sum(letters[one] for one in alphabet)) for alphabet in _ALPHABETS]
    shares += [weight * sum(letters[one] for one in alphabet) for alphabet, weight in _REGIONS]
    return max(shares) / total
