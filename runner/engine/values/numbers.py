"""Parses numbers: signs, currencies, brackets, thousands, decimal points and decimal commas.

A text is split into a sign, a currency and a body. The body is read with a decimal point and with a decimal comma, as
far as its form allows. If both readings are possible and differ (`1.234`), the column's convention decides.
"""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple

from runner.engine.common.patterns import LazyPattern
from runner.engine.values.words import BAD, Bad

_CURRENCY = (
    r"(?:US\$|CA\$|AU?\$|NZ\$|HK\$|R\$|C\$|S\$|[$\u00a2-\u00a5\u058f\u060b\u09f3\u0e3f\u17db\ufdfc\uff04\uffe0\uffe1\uffe5\uffe6\u20a0-\u20cf]|kr\.?|z[łl]|Kč|Ft|Rs\.?|SFr\.?|CHF|Fr\.|"
    r"USD|EUR|GBP|JPY|CNY|RMB|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN|TRY|RUB|BRL|MXN|ZAR|SGD|HKD|KRW|"
    r"ILS|AED|SAR|THB|IDR|MYR|PHP|VND|円|元|원|руб\.?|грн\.?|лв\.?|lei)"  # noqa: RUF001
)
_AMOUNT = LazyPattern(
    rf"([-+]?)\s*({_CURRENCY}?)\s*([-+]?)\s*"
    r"((?:[0-9][0-9., ']*|[.,][0-9]+)(?:[eE][-+]?[0-9]{1,3})?)"
    rf"\s*([-+]?)\s*({_CURRENCY}?)\s*([-+]?)",
    re.IGNORECASE,
)
_BRACKETED = LazyPattern(rf"({_CURRENCY}?)\s*\(([^()]+)\)\s*({_CURRENCY}?)", re.IGNORECASE)
_PLAIN = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
# Fast path: the form of most amounts with each decimal sign.
_COMMON: Final = {
    ".": re.compile(r"(\(?)[$€£]?([1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+\.[0-9]+)(\)?)"),
    ",": re.compile(r"(\(?)[€]?([1-9][0-9]{0,2}(?:\.[0-9]{3})+(?:,[0-9]+)?|[0-9]+,[0-9]+)(\)?)"),
}
_DIGIT = re.compile(r"\d")
# 100,- and 50.— are whole amounts: the dash replaces the decimals and is not a sign.
_DASH_DECIMALS = LazyPattern(rf"(?<=[0-9])([.,])\s?[-\u2212\u2010-\u2015]{{1,2}}(?=\s*{_CURRENCY}?\)?$)", re.IGNORECASE)
_USUAL_SIGNS: Final = str.maketrans(
    {
        **dict.fromkeys("\u2212\u2013\u2010\u2011\ufe63\uff0d", "-"),
        **dict.fromkeys("\u00a0\u2007\u2009\u202f\u2008\u3000\t", " "),
        **dict.fromkeys("\u2019\u02bc\u00b4\u2032\uff07", "'"),
        **dict.fromkeys("\u066b\uff0e", "."),
        **dict.fromkeys("\u066c\uff0c", ","),
        "\uff0b": "+",
        "\uff08": "(",
        "\uff09": ")",
        **dict.fromkeys("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", None),
    }
)
# Digits in groups of three; {0}: the sign between the groups.
_GROUPED: Final = r"[1-9][0-9]{{0,2}}(?:{0}[0-9]{{3}})+"
_BODY: Final = {
    # lakh and crore group by two digits, only with a decimal point
    ".": re.compile(
        rf"(?:[0-9]+|{_GROUPED.format(',')}|[1-9][0-9]?(?:,[0-9]{{2}})+,[0-9]{{3}}|{_GROUPED.format(' ')}|"
        rf"{_GROUPED.format(chr(39))})(?:\.[0-9]*)?|\.[0-9]+"
    ),
    ",": re.compile(
        rf"(?:[0-9]+|{_GROUPED.format('[.]')}|{_GROUPED.format(' ')}|{_GROUPED.format(chr(39))})(?:,[0-9]*)?|,[0-9]+"
    ),
}
_DEGROUP: Final = {".": str.maketrans("", "", ", '"), ",": str.maketrans(",", ".", ". '")}
MAX_TEXT: Final = 60
EXACT_DIGITS: Final = 15  # significant digits that every spreadsheet keeps

Number = float | int | Decimal


class NumberParts(NamedTuple):
    """A number split into parts, with its plain form for each decimal sign: None if its form rules that sign out."""

    point: str | None  # plain, read with a decimal point
    comma: str | None  # plain, read with a decimal comma
    body: str  # digits and separators as written
    currency: str  # in upper case; empty if it has none

    @property
    def decimal_sign(self) -> str:
        """Return the decimal sign that the number proves; `?` if both readings fit and differ, empty if the sign does
        not matter."""
        if self.point is None:
            return ","
        if self.comma is None:
            return "."
        return "" if self.point == self.comma else "?"


@lru_cache(maxsize=4096)  # a column is read as several types, to see which one it has
def number_parts(text: str) -> NumberParts | None:
    """Split a text that is a number into its parts; None if it is not one with either decimal sign. Cached by text."""
    text = text.strip()
    if not text or len(text) > MAX_TEXT or _DIGIT.search(text) is None:
        return None
    text, outside, is_bracketed = _strip_brackets(_normalize_signs(text))
    amount = _AMOUNT.fullmatch(text)
    if amount is None:
        return None
    sign_first, currency_before, sign_before, body, sign_behind, currency_behind, sign_last = amount.groups()
    if outside and (currency_before or currency_behind):
        return None
    signs = sign_first + sign_before + sign_behind + sign_last
    if len(signs) > (0 if is_bracketed else 1):
        return None
    digits, exponent = _split_exponent(body)
    if sign_behind + sign_last == "+" and digits.isdecimal():
        return None  # 5+ is five and more; 5.00+ is how some programs write it
    minus = "-" if is_bracketed or signs == "-" else ""
    point, comma = (_plain_form(digits, sign, minus, exponent) for sign in ".,")
    if point is None and comma is None:
        return None
    return NumberParts(point, comma, digits, (currency_behind or currency_before or outside).upper())


def _normalize_signs(text: str) -> str:
    """Replace digits of other scripts by ASCII ones, odd signs by usual ones, and the dash of `100,-` by zeros."""
    if text.isascii():  # of the odd signs it can have tabs only
        return (_DASH_DECIMALS.sub(r"\g<1>00", text).strip() if "-" in text else text).replace("\t", " ")
    return _ascii_digits(_DASH_DECIMALS.sub(r"\g<1>00", text)).strip().translate(_USUAL_SIGNS)


class _Unbracketed(NamedTuple):
    """An amount without the brackets around it, which mean minus."""

    amount: str
    currency: str  # outside the brackets
    is_bracketed: bool


def _strip_brackets(text: str) -> _Unbracketed:
    """Strip the brackets that make an amount negative, as in `€ (1,200)`."""
    brackets = _BRACKETED.fullmatch(text) if "(" in text else None
    if brackets is None:
        return _Unbracketed(text, "", is_bracketed=False)
    before, amount, after = brackets.groups()
    return _Unbracketed(amount.strip(), before + after, is_bracketed=True)


def _split_exponent(body: str) -> tuple[str, str]:
    """Split the digits of a number from its exponent, which includes the letter E; empty if it has none."""
    letter = max(body.find("e"), body.find("E"))
    return (body[:letter], body[letter:]) if letter > 0 else (body.strip(), "")


def _ascii_digits(text: str) -> str:
    """Replace the decimal digits of any script by ASCII digits; superscripts and fractions stay."""
    return "".join(str(int(c)) if c.isdecimal() else c for c in text)


def _plain_form(body: str, decimal: str, minus: str, exponent: str) -> str | None:
    """Write a number with a decimal point and without grouping; None if `body` is not a number with this decimal
    sign."""
    return minus + body.translate(_DEGROUP[decimal]) + exponent if _BODY[decimal].fullmatch(body) else None


class PlainNumber(NamedTuple):
    """A number with a decimal point and without grouping, as `float` takes it."""

    numeral: str
    is_doubtful: bool  # it contradicts its column, or needs a convention that is missing


def plain_number(text: str, decimal: str | None = None, column_sign: str | None = None) -> PlainNumber | Bad | None:
    """Parse a number to its plain form; None for a blank, BAD for another text.

    `decimal`: from the manifest, the only sign allowed. Without it the form decides, then `column_sign`.
    """
    parts = number_parts(text)
    if parts is None:
        return BAD if text.strip() else None
    point, comma = parts.point, parts.comma
    if decimal is not None:
        numeral = point if decimal == "." else comma
        return BAD if numeral is None else PlainNumber(numeral, is_doubtful=False)
    if point is None or comma is None:
        proven = "." if comma is None else ","
        return PlainNumber(point or comma or "", is_doubtful=column_sign is not None and column_sign != proven)
    return PlainNumber(comma if column_sign == "," else point, is_doubtful=column_sign is None and point != comma)


def quick_number(text: str, decimal: str) -> float | None:
    """Parse a number in one of the commonest forms with this decimal sign; None for other texts, which `plain_number`
    parses."""
    if len(text) > EXACT_DIGITS:
        return None
    if decimal == "." and _PLAIN.fullmatch(text):
        return float(text)
    if common := _COMMON[decimal].fullmatch(text):
        opening, amount, closing = common.groups()
        if len(opening) == len(closing):
            number = float(amount.translate(_DEGROUP[decimal]))
            return -number if opening else number  # brackets mean minus
    return None


class PercentText(NamedTuple):
    """A text without its percent sign."""

    number: str
    has_sign: bool = False
    is_negative: bool = False  # by brackets around the number and its sign


def strip_percent(text: str) -> PercentText:
    """Strip a percent sign, and the brackets around number and sign: `(5 %)` is negative."""
    bare = text.strip()
    is_bracketed = bare[:1] == "(" and bare[-2:] in ("%)", "\uff05)")
    if is_bracketed:
        bare = bare[1:-1]
    has_sign = bare[-1:] in ("%", "\uff05")
    return PercentText(bare[:-1] if has_sign else bare, has_sign, is_bracketed)


_SHORTENED: Final = LazyPattern(r"-?[1-9](?:[.,][0-9]{1,5})?E\+(?:1[1-9]|[2-9][0-9])")


def is_shortened(text: str) -> bool:
    """Whether a text is what spreadsheet programs show for a number of twelve digits and more: 1.23457E+15."""
    return "E+" in text and _SHORTENED.fullmatch(text.strip()) is not None


def number_of_digits(text: str) -> float | None:
    """Parse a text of ASCII digits only, at most 15; None for others, which `plain_number` parses."""
    return float(text) if text.isdecimal() and text.isascii() and len(text) <= EXACT_DIGITS else None


def to_number(numeral: str) -> Number | Bad:
    """Convert a plain numeral to a number without losing digits; BAD if it is too large or too small for a float.

    With more than 15 significant digits, a whole number stays an int, and a fraction that no float represents stays a
    Decimal. Both are written as text, because a spreadsheet would round them.
    """
    number = float(numeral)
    if number in (float("inf"), float("-inf")):
        return BAD
    if len(numeral) <= EXACT_DIGITS and number:
        return number
    exact = Decimal(numeral)
    if not number:  # too small for a float
        return number if not exact else BAD
    if "e" not in numeral.lower() and exact == exact.to_integral_value():
        return int(exact) if abs(exact) >= 10**EXACT_DIGITS else number
    if len(exact.normalize().as_tuple().digits) <= EXACT_DIGITS:
        return number
    return number if exact in (Decimal(repr(number)), Decimal(f"{number:.17g}")) else exact


def to_whole(numeral: str) -> int | Bad:
    """Convert a plain numeral of any length to its exact whole number; BAD for one with decimals."""
    if "e" in numeral.lower():
        exact = Decimal(numeral)
        return int(exact) if exact.adjusted() < MAX_TEXT and exact == exact.to_integral_value() else BAD
    whole, _, decimals = numeral.partition(".")
    return int(whole or "0") if not decimals.strip("0") and whole not in ("", "-") else BAD


def parse_integer(text: str, decimal: str | None = None, column_sign: str | None = None) -> int | Bad | None:
    """Parse a whole number of any length, exactly; None for a blank, BAD for another text. `decimal` and `column_sign`:
    as in `plain_number`."""
    plain = plain_number(text, decimal, column_sign)
    return to_whole(plain.numeral) if isinstance(plain, PlainNumber) else plain


def parse_number(text: str, decimal: str | None = None, column_sign: str | None = None) -> Number | Bad | None:
    """Parse a number; None for a blank, BAD for another text. `decimal` and `column_sign`: as in `plain_number`."""
    plain = plain_number(text, decimal, column_sign)
    return to_number(plain.numeral) if isinstance(plain, PlainNumber) else plain
