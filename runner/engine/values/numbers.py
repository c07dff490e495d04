"""Numbers as people write them: signs, currencies, brackets, thousands and decimals of two worlds."""

import re
from collections.abc import Iterable
from typing import Final

from runner.engine.values.memo import BAD, Bad

_CURRENCY = (
    r"(?:[$€£¥₹₽₩₪₫₴₦₱฿₺¢]|US\$|CA\$|A\$|NZ\$|HK\$|R\$|C\$|S\$|kr\.?|z[łl]|Kč|Ft|Rs\.?|CHF|Fr\.|"
    r"USD|EUR|GBP|JPY|CNY|RMB|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN|TRY|RUB|BRL|MXN|ZAR|SGD|HKD|KRW|"
    r"ILS|AED|SAR|THB|IDR|MYR|PHP|VND)"
)
_MONEY = re.compile(rf"([-+]?)\s*{_CURRENCY}?\s*([-+]?)\s*([0-9.,]+)\s*{_CURRENCY}?\s*([-+]?)", re.IGNORECASE)
_PLAIN = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
# What most amounts look like: told at once, without ambiguity where the point is the decimal sign.
_COMMON = re.compile(r"(\(?)[$€£]?([0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+\.[0-9]+)(\)?)")
_SPACES: Final = str.maketrans("", "", " \u00a0\u2009\u202f'\u2019\u2007")
_MINUS: Final = str.maketrans({"\u2212": "-", "\u2013": "-", "\u2010": "-", "\u2011": "-"})
_POINT_GROUPS = re.compile(r"[0-9]{1,3}(?:,[0-9]{2,3})*,[0-9]{3}(?:\.[0-9]*)?")
_COMMA_GROUPS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{3})+(?:,[0-9]*)?")
_COMMA_SHOWN = re.compile(r"\.[0-9]{3},[0-9]|^[^.,]*,(?:[0-9]{1,2}|[0-9]{4,})\D*$|\.[0-9]{3}\.[0-9]{3}|(?:^|\D)0,[0-9]")
_POINT_SHOWN = re.compile(r",[0-9]{3}\.[0-9]|^[^.,]*\.(?:[0-9]{1,2}|[0-9]{4,})\D*$|,[0-9]{3},[0-9]{3}|(?:^|\D)0\.[0-9]")
MAX_TEXT: Final = 60
EXACT: Final = 2**53  # a float holds every whole number up to here


def decimal_of(texts: Iterable[str]) -> str | None:
    """Which decimal separator a column's texts show; None where they do not tell."""
    comma = point = 0
    for text in texts:
        if len(text) <= MAX_TEXT:
            comma += _COMMA_SHOWN.search(text) is not None
            point += _POINT_SHOWN.search(text) is not None
    return None if comma == point else "," if comma > point else "."


def parse_integer(text: str, decimal: str | None = None, hint: str | None = None) -> int | Bad | None:
    """The whole number a text means, exact whatever its length."""
    bare = text.strip()
    if (
        bare.isascii()
        and bare.lstrip("+-").isdecimal()
        and len(bare) <= MAX_TEXT
        and bare[1:].isdecimal() | (len(bare) == 1)
    ):
        return int(bare)
    number = parse_number(text, decimal, hint)
    if not isinstance(number, float):
        return number
    return int(number) if number.is_integer() and abs(number) < EXACT else BAD


def parse_number(text: str, decimal: str | None = None, hint: str | None = None) -> float | Bad | None:
    """The number a text means. Without a decimal sign given, its own shape decides, then the column's `hint`."""
    pointed = (decimal or hint) != ","
    if pointed and _PLAIN.fullmatch(text):
        return _finite(text)
    if pointed and len(text) <= MAX_TEXT and (common := _COMMON.fullmatch(text)) and len(common[1]) == len(common[3]):
        number = float(common[2].replace(",", ""))
        return -number if common[1] else number
    text = text.strip().translate(_MINUS)
    if not text:
        return None
    if len(text) > MAX_TEXT:
        return BAD
    negative = text[0] == "(" and text[-1] == ")"
    found = _MONEY.fullmatch((text[1:-1] if negative else text).translate(_SPACES))
    if found is None:
        return _finite(text) if pointed and _PLAIN.fullmatch(text) else BAD
    before, inner, digits, after = found.groups()
    signs = before + inner + after
    if len(signs) > 1 or (negative and signs):
        return BAD
    plain = _ungrouped(digits, decimal or _own_decimal(digits, hint))
    if plain is None:
        return BAD
    number = float(plain)
    return -number if negative or signs == "-" else number


def _finite(text: str) -> float | Bad:
    number = float(text)
    return BAD if number in (float("inf"), float("-inf")) else number


def _ungrouped(digits: str, decimal: str) -> str | None:
    """`digits` with a point as its decimal sign and no groups; None where it is no number."""
    group = "," if decimal == "." else "."
    if group in digits:
        shape = _POINT_GROUPS if decimal == "." else _COMMA_GROUPS
        if not shape.fullmatch(digits):
            return None
        digits = digits.replace(group, "")
    plain = digits.replace(",", ".")
    return plain if _PLAIN.fullmatch(plain) else None


def _own_decimal(digits: str, hint: str | None) -> str:
    comma, point = digits.rfind(","), digits.rfind(".")
    if comma < 0 or point < 0:
        sign = "," if comma >= 0 else "."
        if digits.count(sign) > 1:
            return "." if sign == "," else ","
        at = max(comma, point)
        if at < 0 or len(digits) - at != 4 or at > 3 or digits[:at] in ("", "0"):
            return sign
        return hint or "."  # 1,234 and 1.234 can be read both ways
    return "," if comma > point else "."
