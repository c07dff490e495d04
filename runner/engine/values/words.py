# ruff: noqa: RUF001  # words as people type them
"""Parses booleans, email addresses, phone numbers and URLs; the declared cleaning steps; the parsing memo."""

import re
import unicodedata
from collections.abc import Callable
from typing import Any, Final, cast

from runner.engine.common.patterns import LazyPattern

MAX_MEMO: Final = 20_000  # texts of a column that are parsed once


class Bad:
    """Marks a text that is not of the declared type. Singleton: `BAD`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "BAD"


BAD: Final = Bad()


class ParsingMemo(dict[str | None, Any]):
    """`memo[text]` is the result of `parse(text)`, parsed once and remembered; None for None.

    `bad` is True from the first text on that does not parse: until then, chunks need no search for bad cells.
    """

    __slots__ = ("bad", "parse")

    def __init__(self, parse: Callable[[str], Any]) -> None:
        """Start with None alone in the memo; `parse` is called for each new text."""
        super().__init__()
        self.parse = parse
        self.bad = False
        self[None] = None

    def __missing__(self, text: str) -> Any:
        """Parse a text that is not in the memo and remember the result; sets `bad` if it does not parse, and starts
        over when full."""
        if len(self) > MAX_MEMO:
            self.forget()
        value = self[text] = self.parse(text)
        if value is BAD:
            self.bad = True
        return value

    def forget(self) -> None:
        """Clear the memo, so that its texts are parsed again; its `bad` stays."""
        self.clear()
        self[None] = None


_TRUE = (
    "true t yes y 1 1.0 on x active enabled ✓ ✔ ☑ ✅ ● ■ ○ 〇 v j s o "
    "ja wahr oui vrai si sí sì verdadero vero sim verdadeiro waar tak prawda kyllä ano áno igen evet da "
    "да истина так ναι 是 真 有 はい 예 نعم כן ya"
)
_FALSE = (
    "false f no n 0 0.0 off inactive disabled ✗ ✘ ❌ ☐ □ × "
    "nein falsch non faux falso não nao nee onwaar nie fałsz nej nei ei ne nem hayır hayir nu "
    "нет ложь ні όχι 否 假 偽 無 いいえ 아니요 아니오 لا לא tidak"
)
# A sign that is false beside one of these: by itself a circle is Japanese for true, a crossed box may be either.
HOLLOW: Final = {"○": "●◉⬤", "◯": "●◉⬤", "☐": "☒", "□": "■▪☒", "☆": "★"}
BOOLEANS: Final = dict.fromkeys(_TRUE.split(), True) | dict.fromkeys(_FALSE.split(), False)
NOTHING: Final = frozenset(
    {
        "",
        "-",
        "--",
        "---",
        "\u2013",
        "\u2014",
        ".",
        "..",
        "...",
        "n/a",
        "na",
        "n.a.",
        "#n/a",
        "null",
        "none",
        "nil",
        "nan",
    }
)
_EMAIL = LazyPattern(r"[^\s@<>()\[\],;:\\\"]{1,64}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+[^\W\d_][\w-]{0,61}[^\W_]")
# Fast path: texts that are already in their final form.
COMMON_EMAIL = re.compile(r"[A-Za-z0-9_-]{1,24}(?:\.[A-Za-z0-9_-]{1,24})?@[a-z0-9]{1,60}(?:\.[a-z]{2,24}){1,2}")
_PHONE = LazyPattern(
    r"(\+|00)?\s*([0-9()\s./\-\u2010-\u2015\u00a0]{5,40}?)(?:\s*(?:ext\.?|x|#)\s*([0-9]{1,6}))?",
    re.IGNORECASE,
)
# Texts of digits and dots or dashes that are numbers or dates, not phone numbers.
_FLOAT = LazyPattern(r"([0-9]{5,})\.([0-9]{1,2})")
_ISO_DAY = LazyPattern(r"(?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")
_URL = LazyPattern(
    r"(?:(https?|ftp)://)?((?:[^\s/?#@:]+(?::[^\s/?#@]*)?@)?[^\s/?#@:]+(?::[0-9]{1,5})?)([/?#]\S*)?",
    re.IGNORECASE,
)
_HOST = LazyPattern(
    r"(?:[^\s.]+\.)+[^\s.0-9][^\s.]*|localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[[0-9a-f:.]+\]", re.IGNORECASE
)
MAX_ADDRESS: Final = 2048
_LONGEST_EMAIL: Final = 320  # characters, with 64 before the @
_SHORTEST_PHONE, _LONGEST_PHONE = 7, 15  # digits; E.164 allows no more
_LONGEST_PHONE_TEXT: Final = 60  # characters, with blanks and an extension


def parse_boolean(text: str) -> bool | Bad | None:
    """Parse a word or sign for true or false in any known language; None for a blank, BAD for another text."""
    word = text.strip().casefold()
    if not word.isascii():
        word = unicodedata.normalize("NFC", word)
    return BOOLEANS.get(word, BAD) if word else None


def parse_email(text: str) -> str | Bad | None:
    """Parse an email address and lower its domain; None for a blank, BAD for another text.

    `Name <address>` and `mailto:` are unwrapped.
    """
    text = text.strip()
    if not text:
        return None
    if len(text) > _LONGEST_EMAIL or "@" not in text:
        return BAD
    if text[-1] == ">" and "<" in text:
        text = text[text.rindex("<") + 1 : -1]
    if text[:7].casefold() == "mailto:":
        text = text[7:]
    if not _EMAIL.fullmatch(text) or ".." in text or text[0] == "." or ".@" in text:
        return BAD
    name, _, domain = text.rpartition("@")
    return f"{name}@{domain.lower()}"


def parse_phone(text: str) -> str | Bad | None:
    """Parse a phone number to its digits, + in front if it has a country code, an extension as ` x12`.

    None for a blank, BAD for another text, for two numbers in one cell, and for dates.
    """
    text = text.strip()
    if not text:
        return None
    if len(text) < _SHORTEST_PHONE:
        return BAD
    if number := _FLOAT.fullmatch(text):  # a number that a program wrote as 5551234567.0
        whole, decimals = number.groups()
        if decimals.strip("0"):
            return BAD
        text = whole
    phone = _PHONE.fullmatch(text.removeprefix("tel:")) if len(text) <= _LONGEST_PHONE_TEXT else None
    if phone is None or _ISO_DAY.fullmatch(text):
        return BAD
    country, body, extension = phone.groups()
    if country and "(0)" in body:
        body = body.replace("(0)", "", 1)
    digits = _digits(body)
    if not _SHORTEST_PHONE <= len(digits) <= _LONGEST_PHONE or _holds_two_numbers(body, has_country=bool(country)):
        return BAD
    return ("+" if country else "") + digits + (f" x{extension}" if extension else "")


def _digits(text: str) -> str:
    """Return the ASCII digits of a text."""
    return "".join(c for c in text if "0" <= c <= "9")


def _holds_two_numbers(body: str, *, has_country: bool) -> bool:
    """Whether a phone number's text has the digits of two numbers, or of one with two endings (030 1234567/68)."""
    for parts in (re.split(r"[\s\u00a0]+", body), re.split(r"[^0-9]+", body)):
        if sum(len(_digits(part)) >= _SHORTEST_PHONE for part in parts) > 1:
            return True
    before, slash, _ = body.partition("/")
    return bool(slash) and len(_digits(before)) >= _SHORTEST_PHONE + 2 * has_country  # an area code is shorter


def parse_url(text: str) -> str | Bad | None:
    """Parse a web address, and put its scheme and host in lower case; None for a blank, BAD for another text.

    A bare `www.` name gets https:// in front.
    """
    text = text.strip()
    if not text:
        return None
    if "://" not in text and "www." not in text.casefold():
        return BAD
    address = _URL.fullmatch(text) if len(text) <= MAX_ADDRESS else None
    if address is None:
        return BAD
    scheme, authority, path = address.groups()
    host = authority if authority.startswith("[") else authority.rpartition("@")[2].partition(":")[0]
    if not _HOST.fullmatch(host) or (scheme is None and not host.casefold().startswith("www.")):
        return BAD
    user, separator, server = authority.rpartition("@")
    return f"{(scheme or 'https').lower()}://{user}{separator}{server.lower()}{path or ''}"


_BLANKS = re.compile(r"\s+")
# Never part of a word: the zero-width space, the word joiner, the byte-order mark, the soft hyphen.
_DIRT: Final = dict.fromkeys(map(ord, "\u200b\u2060\ufeff\u00ad"))
# Many scripts and emoji need joiners; joiners and direction marks are dirt only at the ends.
_ENDS: Final = (
    "".join(c for c in map(chr, range(0x3001)) if c.isspace())
    + "\u200c\u200d\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


def _strip_unseen(text: str) -> str:
    """Strip blanks from the ends of a text, and signs that nobody sees, such as a zero-width space."""
    return text.strip() if text.isascii() else text.translate(_DIRT).strip(_ENDS)


def _unaccent(text: str) -> str:
    """Return a text without the accents of Latin and Greek letters; in other scripts a mark makes a different
    letter."""
    if text.isascii():
        return text
    letters: list[str] = []
    is_latin_or_greek = False  # of the letter that marks follow
    for char in unicodedata.normalize("NFD", text):
        if not unicodedata.combining(char):
            is_latin_or_greek = char.isascii() or "\u0370" <= char <= "\u03ff"
        elif is_latin_or_greek and "\u0300" <= char <= "\u036f":
            continue
        letters.append(char)
    return unicodedata.normalize("NFC", "".join(letters))


STEPS: Final[dict[str, Callable[[str], str]]] = {
    "strip": _strip_unseen,
    "collapse": lambda text: _BLANKS.sub(" ", text),
    "upper": str.upper,
    "lower": str.lower,
    "title": lambda text: re.sub(r"(?<![^\W_])[^\W\d_]+", lambda word: word[0].capitalize(), text),
    "digits": lambda text: "".join(c for c in text if "0" <= c <= "9"),
    "unaccent": _unaccent,
    "nullify": lambda text: "" if text.strip().casefold() in NOTHING else text,
}


_ASCII: Final[dict[str, Callable[[str], str]]] = {"strip": str.strip, "upper": str.upper, "lower": str.lower}


def column_cleaner(steps: tuple[str, ...]) -> Callable[[list[str | None]], list[str | None]]:
    """Return a function that applies the declared cleaning steps to a chunk of texts and blanks, whole chunks at once
    where possible."""
    clean = cleaner(steps)
    functions = [_ASCII[name] for name in steps if name in _ASCII]

    def clean_each(values: list[str | None]) -> list[str | None]:
        return [text and clean(text) for text in values]

    def clean_by_step(values: list[str | None]) -> list[str | None]:
        """Clean a chunk one step after the other, which is faster but needs ASCII texts without blanks; else cell by
        cell."""
        texts = cast("list[str]", values)
        if None in values or not all(map(str.isascii, texts)):
            return clean_each(values)
        for function in functions:
            texts = list(map(function, texts))
        return list(texts)

    return clean_by_step if len(functions) == len(steps) else clean_each


def cleaner(steps: tuple[str, ...]) -> Callable[[str], str]:
    """Return a function that applies the declared cleaning steps to one text, in order."""
    functions = [STEPS[name] for name in steps]
    if not functions:
        return str
    if len(functions) == 1:
        return functions[0]

    def clean(text: str) -> str:
        for function in functions:
            text = function(text)
        return text

    return clean
