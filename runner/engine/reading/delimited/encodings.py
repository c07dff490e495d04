"""Which encoding a text is in: as marked, UTF-8 if all of it decodes, else the likeliest of the old ones."""

# ruff: noqa: RUF001  # letters of other scripts are what this module is about

import codecs
import re
from dataclasses import dataclass
from typing import BinaryIO

from runner.engine.reading.sniffing import is_wide

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BLOCK = 1024 * 1024
_SAMPLE = 64 * 1024
_COMMON = "’‘“”–—…€£§°©®™«»·• ºª²³½¿¡´"
_LATIN = "éèêëàâäáãåçùûüúôöóõòîïíìñßæøœÉÈÊÀÂÄÁÅÇÜÚÔÖÓÎÍÑÆØ"
_LETTERS = {
    "cp1252": _LATIN + _COMMON,
    "cp1250": "ąćęłńóśźżĄĆĘŁŃÓŚŹŻáčďéěíňřšťúůýžÁČĎÉÍŇŘŠŤÚÝŽőűŐŰăâîșțĂÂÎöüäÖÜÄß" + _COMMON,
    "cp1251": "абвгдежзийклмнопрстуфхцчшщъыьэюяАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЭЮЯёЁіїєґІЇЄҐ№" + _COMMON,
    "cp1253": "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ" + _COMMON,
    "cp1254": "çğıöşüÇĞİÖŞÜâ" + _COMMON,
    "cp1255": "אבגדהוזחטיךכלםמןנסעףפץצקרשת" + _COMMON,
    "cp1256": "ابتثجحخدذرزسشصضطظعغفقكلمنهويىةءأإؤئآ،؟" + _COMMON,
    "koi8-r": "абвгдежзийклмнопрстуфхцчшщъыьэюяАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЭЮЯёЁ",
    "cp866": "абвгдежзийклмнопрстуфхцчшщъыьэюяАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЭЮЯёЁ№",
    "mac-roman": _LATIN + _COMMON,
    "cp850": _LATIN,
}
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_SWAPPED_CASE = re.compile("[а-яё][А-ЯЁ]")


@dataclass(frozen=True, kw_only=True)
class Encoding:
    name: str
    sure: bool  # False: more than one would do, this one is the likeliest
    errors: str = "strict"


def detect(file: BinaryIO) -> Encoding:
    """Reads the whole file once where nothing else tells, and holds none of it."""
    file.seek(0)
    head = file.read(4096)
    for mark, name in _MARKS:
        if head.startswith(mark):
            return Encoding(name=name, sure=True, errors="replace")
    if wide := is_wide(head):
        return Encoding(name=wide, sure=False, errors="replace")
    sample, broken, valid = _look(file)
    if not broken:
        return Encoding(name="utf-8", sure=True)
    if valid > 10 * broken:  # UTF-8 with a few bytes spoiled
        return Encoding(name="utf-8", sure=False, errors="replace")
    return Encoding(name=_likeliest(sample), sure=False, errors="replace")


def _look(file: BinaryIO) -> tuple[bytes, int, int]:
    """Lines with bytes past ASCII, how many places are not UTF-8, how many are."""
    file.seek(0)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    sample = bytearray()
    broken = valid = 0
    while block := file.read(_BLOCK):
        text = decoder.decode(block)
        if block.isascii():
            continue
        bad = text.count("\ufffd") - block.count(b"\xef\xbf\xbd")
        broken += max(bad, 0)
        valid += len(text) - len(text.encode("ascii", "ignore")) - bad
        if len(sample) < _SAMPLE:
            sample += b"\n".join(line for line in block.split(b"\n") if not line.isascii())
    broken += decoder.decode(b"", final=True).count("\ufffd")
    return bytes(sample[:_SAMPLE]), broken, valid


def _likeliest(sample: bytes) -> str:
    return _east_asian(sample) or max(_LETTERS, key=lambda name: _plausible(sample, name))


def _plausible(sample: bytes, name: str) -> float:
    """The share of characters past ASCII that people write in this encoding; ties go to the first."""
    high = b" ".join(_HIGH_RUN.findall(sample)).decode(name, "replace").replace(" ", "")
    if not high:
        return 0.0
    known = _LETTERS[name]
    score = sum(1 if one in known else -1 for one in high) / len(high)
    if name in ("cp1251", "koi8-r", "cp866"):
        text = sample.decode(name, "replace")
        score -= 2 * len(_SWAPPED_CASE.findall(text)) / len(high)
    elif name in ("mac-roman", "cp850", "cp1254"):
        score -= 0.1  # rarer than their twins
    return score


def _east_asian(sample: bytes) -> str | None:
    runs = _HIGH_RUN.findall(sample)
    high = sum(map(len, runs))
    paired = sum(len(one) for one in runs if len(one) % 2 == 0)
    together = sum(len(one) for one in runs if len(one) > 1)
    for name, first, last, share in (
        ("shift_jis", "\u3040", "\u30ff", 0.25),
        ("euc_jp", "\u3040", "\u30ff", 0.25),
        ("cp949", "\uac00", "\ud7a3", 0.6),
        ("gb18030", "\u4e00", "\u9fff", 0.6),
        ("big5", "\u4e00", "\u9fff", 0.6),
    ):
        mixed = name in ("shift_jis", "big5")  # the second byte of a character may be an ASCII one
        if high < 8 or (together < 0.5 * high if mixed else paired < 0.8 * high):
            continue
        try:
            text = sample.decode(name)
        except UnicodeDecodeError:
            continue
        wide = [one for one in text if one > "\x7f"]
        expected = sum(first <= one <= last for one in wide)
        if len(wide) >= 4 and expected >= share * len(wide) and (name != "gb18030" or _is_gb2312(wide)):
            return name
    return None


def _is_gb2312(characters: list[str]) -> bool:
    """Everyday Chinese stays within the old set; Big5 text read as GB does not."""
    return len("".join(characters).encode("gb2312", "ignore")) >= 2 * 0.95 * len(characters)
