"""Small vocabularies and shapes: booleans, e-mail, phone and web addresses, blanks."""

# ruff: noqa: RUF001  # words of several scripts
import re
import unicodedata
from typing import Final

from runner.engine.values.memo import BAD, Bad

_TRUE = (
    "true t yes y 1 on x active enabled ✓ ✔ ☑ ○ 〇 v j s o "
    "ja wahr oui vrai si sí sì verdadero vero sim verdadeiro waar tak prawda kyllä ano áno igen evet da "
    "да истина так ναι 是 真 有 はい 예 نعم כן ya"
)
_FALSE = (
    "false f no n 0 off inactive disabled ✗ ✘ ☐ × "
    "nein falsch non faux falso não nao nee onwaar nie fałsz nej nei ei ne nem hayır hayir nu "
    "нет ложь ні όχι 否 假 偽 無 いいえ 아니요 아니오 لا לא tidak"
)
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
_EMAIL = re.compile(r"[^\s@<>()\[\],;:\\\"]{1,64}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+[^\W\d_][\w-]{0,61}[^\W_]")
# Texts that are already as they should be; a look at the whole is all they need.
COMMON_EMAIL = re.compile(r"[A-Za-z0-9_-]{1,24}(?:\.[A-Za-z0-9_-]{1,24})?@[a-z0-9]{1,60}(?:\.[a-z]{2,24}){1,2}")
_PHONE = re.compile(
    r"(\+|00)?\s*([0-9()\s./\-\u2010-\u2015\u00a0]{5,40}?)(?:\s*(?:ext\.?|x|#)\s*([0-9]{1,6}))?",
    re.IGNORECASE,
)
# Texts of digits and dots or dashes that are numbers or dates, and no phone numbers.
_FLOAT = re.compile(r"([0-9]{5,})\.([0-9]{1,2})")
_ISO_DAY = re.compile(r"(?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")
_URL = re.compile(
    r"(?:(https?|ftp)://)?((?:[^\s/?#@:]+(?::[^\s/?#@]*)?@)?[^\s/?#@:]+(?::[0-9]{1,5})?)([/?#]\S*)?",
    re.IGNORECASE,
)
_HOST = re.compile(
    r"(?:[^\s.]+\.)+[^\s.0-9][^\s.]*|localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[[0-9a-f:.]+\]", re.IGNORECASE
)
MAX_ADDRESS: Final = 2048


def parse_boolean(text: str) -> bool | Bad | None:
    word = unicodedata.normalize("NFC", text.strip().casefold())
    return BOOLEANS.get(word, BAD) if word else None


def parse_email(text: str) -> str | Bad | None:
    """The address with its domain in lower case; `Name <address>` and `mailto:` are unwrapped."""
    text = text.strip()
    if not text:
        return None
    if len(text) > 320:
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
    """Digits with a leading + where the country code is given; an extension follows as ` x12`."""
    text = text.strip()
    if not text:
        return None
    if number := _FLOAT.fullmatch(text):  # a number that a program wrote as 5551234567.0
        if number[2].strip("0"):
            return BAD
        text = number[1]
    found = _PHONE.fullmatch(text.removeprefix("tel:")) if len(text) <= 60 else None
    if found is None or _ISO_DAY.fullmatch(text):
        return BAD
    country, body, extension = found.groups()
    if country and "(0)" in body:
        body = body.replace("(0)", "", 1)
    digits = "".join(c for c in body if "0" <= c <= "9")
    if not 7 <= len(digits) <= 15:
        return BAD
    return ("+" if country else "") + digits + (f" x{extension}" if extension else "")


def parse_url(text: str) -> str | Bad | None:
    """A web address; a bare `www.` name gets https:// in front, scheme and host go to lower case."""
    text = text.strip()
    if not text:
        return None
    found = _URL.fullmatch(text) if len(text) <= MAX_ADDRESS else None
    if found is None:
        return BAD
    scheme, place, rest = found.groups()
    host = place.rpartition("@")[2].partition(":")[0] if not place.startswith("[") else place
    if not _HOST.fullmatch(host) or (scheme is None and not host.casefold().startswith("www.")):
        return BAD
    user, at, server = place.rpartition("@")
    return f"{(scheme or 'https').lower()}://{user}{at}{server.lower()}{rest or ''}"
