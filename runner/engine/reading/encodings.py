# ruff: noqa: RUF001  # signs that look like others are what this module is about
"""Detects a text's encoding: by its byte-order mark, UTF-8 if it is valid, else the likeliest legacy encoding.

Legacy encodings are ranked by chardet's language models, weighted by how common each is and by how many implausible
words it gives: mixed scripts, capitals or signs in the middle of a word. If the second one is close and gives a
different text, the choice is a guess (`sure` is False).
"""

import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import BinaryIO, Final, NamedTuple

from runner.engine.imports import own_libraries


class _Classes(dict[int, str]):
    """A character's class as one letter: its script and case, or a sign that occurs in or beside words."""

    def __missing__(self, code: int) -> str:
        self[code] = character_class = _class_of(chr(code))
        return character_class


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


def _class_of(char: str) -> str:
    """Return the class of a character, by its script and case or as a sign."""
    if char.isascii():
        return _ascii_class_of(char)
    if char in _SIGNS:
        return _SIGNS[char]
    category = unicodedata.category(char)
    if category in ("Cc", "Co", "Cn", "Cs") or char == "\ufffd":
        return "x"
    if category in ("Mn", "Mc", "Lm"):
        return "m"
    if category == "Zs":
        return " "
    script = next((letters for limit, letters in _SCRIPTS if ord(char) < limit), "ee")
    if category[0] == "L" or script in ("ee", "ww"):
        return script[category == "Lu"]
    return "0" if category == "Nd" else "s"


def _ascii_class_of(char: str) -> str:
    """Return the class of an ASCII character: a small letter, a capital, a digit, a blank or a sign."""
    if char.isalpha():
        return "a" if char.islower() else "A"
    if char.isdigit():
        return "0"
    return " " if char in "\n " else "."


_CLASSES: Final = _Classes()
_IMPLAUSIBLE: Final = re.compile(
    "x"
    "|[aAlL][gGcChrtw]|[gGcChrtw][aAlL]|[gG][cChrtew]|[cC][gGhrtew]|h[gGcCrtew]|r[gGcChtew]|t[gGcChrew]"
    "|e[gGcChrt]|w[gGcChrt]"
    "|[aAlLgGcChrt]v|v[aAlLgGcChrt]|[aAlLgGcChrt][sq][aAlLgGcChrt]|s[aAlLgGcC]|[alcg]s(?=[ .]|$)|f[aAlLgGcChrt]"
    "|(?<![^ ])k[aAlLgGcC]"
    "|[al]L|lA|cC|gG|(?<![^ .])AL[al]"
    "|[aA][ew][aA]|[aA]ef|se"
)
_WORD: Final = re.compile("[^ ]+")
_ASCII_CLASSES: Final = frozenset("aA0.")


class WordCount(NamedTuple):
    """How many words of a text have non-ASCII characters."""

    words: int
    implausible: int  # of these words, those that no language writes so


def count_words(text: str) -> WordCount:
    """Count the words of a text that have non-ASCII characters, and those of them that no language writes so."""
    words = [word for word in _WORD.findall(text.translate(_CLASSES)) if not _ASCII_CLASSES.issuperset(word)]
    return WordCount(len(words), sum(_IMPLAUSIBLE.search(word) is not None for word in words))


def _has_implausible_words(text: str) -> bool:
    """Whether any word of a text is one that no language writes so."""
    return count_words(text).implausible > 0


# The non-ASCII letters of each language, with those it borrows: é in names is common everywhere.
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


# A file may contain names of many countries; such regions count less, and so do rare languages.
_REGIONS: Final = (
    (frozenset("áðéíóúýþæö"), 0.8),  # Iceland, whose letters share their codes with Turkish ones
    (frozenset("àáâãäåæçèéêëìíîïñòóôõöøœùúûüÿßºª"), 0.95),  # Western Europe
    (frozenset("áâäăąćčçďđéęěëíîĺľłńňóôöőŕřśšşșťţțúůüűýźżžß"), 0.9),  # Central Europe
    (frozenset("āąčēęėģīįķļņšūųžäõöü"), 0.9),  # the Baltic states
)


def coherence(text: str) -> float:
    """Return the share of non-ASCII letters that the likeliest language or region uses; 1 if there are no Latin
    ones."""
    letters = Counter(letter for letter in text.lower() if "\x7f" < letter < "\u0250" and letter.isalpha())
    total = letters.total()
    if not total:
        return 1.0
    shares = [float(sum(letters[letter] for letter in alphabet)) for alphabet in _ALPHABETS]
    shares += [weight * sum(letters[letter] for letter in alphabet) for alphabet, weight in _REGIONS]
    return max(shares) / total


_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# The encodings that chardet may choose from, by its own names, and how common each is among equals.
_WEIGHT_OF_OLDER: Final = {
    "cp1252": 1.2, "iso8859-15": 1.2, "mac-roman": 1.0, "cp850": 1.0,
    "cp1250": 1.1, "iso8859-2": 1.1, "cp852": 1.0,
    "cp1251": 1.1, "koi8-r": 1.0, "koi8-u": 0.98, "cp866": 1.0, "iso8859-5": 1.0, "mac-cyrillic": 0.8,
    "cp1253": 1.0, "iso8859-7": 1.0, "cp1254": 1.1, "iso8859-9": 1.1, "cp857": 0.7,
    "cp1255": 1.0, "iso8859-8": 1.0, "cp1256": 1.0, "iso8859-6": 1.0,
    "cp1257": 1.1, "iso8859-13": 1.1, "cp1258": 0.9, "cp874": 1.0,
    "cp932": 1.0, "euc_jis_2004": 1.0, "gb18030": 1.0, "big5hkscs": 1.0, "cp949": 1.0,
}  # fmt: skip
_PLACE_OF_OLDER: Final = {name: n for n, name in enumerate(_WEIGHT_OF_OLDER)}
_EAST_ASIAN: Final = ("cp932", "euc_jp", "euc_jis_2004", "gb18030", "cp950", "big5hkscs", "cp949")
_COMMON_SUBSET: Final = {"big5hkscs": "cp950", "euc_jis_2004": "euc_jp"}  # the common encoding of such files
_WINDOWS_TWIN: Final = {  # Windows and ISO: nearly the same letters, a few at other codes
    "iso8859-15": "cp1252", "iso8859-2": "cp1250", "iso8859-7": "cp1253", "iso8859-9": "cp1254",
    "iso8859-13": "cp1257", "iso8859-8": "cp1255",
}  # fmt: skip
_BLOCK_BYTES: Final = 1024 * 1024
_SAMPLE_BYTES: Final = 24 * 1024  # bytes that are ranked: distinct lines with non-ASCII bytes
_CLOSE_SHARES: Final = ((30, 0.85), (8, 0.5), (0, 0.3))  # non-ASCII bytes, and which share of the best score is close
_WEIGHT_OF_COHERENCE: Final = 4  # weight of the evidence that one language uses all the letters
_FEW_HIGH_BYTES: Final = 8  # non-ASCII bytes
_NEIGHBOURS: Final = (("cp1252", "cp1250"), ("cp850", "cp852"))
_FEW_WIDE: Final = 30  # East Asian characters; fewer are valid in each other's encodings
_MIN_WIDE: Final = 2
# Tried only where a line begins: a long line without such bytes would be searched from each of its bytes.
_LINE_WITH_HIGH_BYTE: Final = re.compile(rb"(?<![^\r\n])[^\r\n\x80-\xff]*+[\x80-\xff][^\r\n]*")
_MANY_CHARACTERS: Final = 20  # UTF-8 characters that outweigh as many invalid places
_HIGH_RUN: Final = re.compile(rb"[\x80-\xff]+")
_COMMON_SIGNS: Final = frozenset("€£°§©®™“”‘’–—…½¼²³\xa0•·«»±µ×")
_INNER_LETTER: Final = re.compile(r"[A-Za-z](?=[^\W\d_a-zA-Z])|[^\W\d_a-zA-Z](?=[A-Za-z])")
_CONTROLS: Final = bytes(set(range(32)) - {10})
_ESCAPES: Final = re.compile(rb"\x1b(?:\$[@B]|\$\([DOPQ]|\([IJ])")  # of ISO-2022-JP
_ENCODINGS_WITH_ESCAPES: Final = ("iso2022_jp", "iso2022_jp_ext", "iso2022_jp_2004")


class Encoding(NamedTuple):
    """How a file's bytes are read as text."""

    name: str
    sure: bool  # False: another encoding gives a different, equally plausible text
    errors: str = "strict"
    evidence: Mapping[str, int] = MappingProxyType({})  # encoding -> plausible words in it
    declared: bool = False


def detect(file: BinaryIO, *, declared: str | None = None) -> Encoding:
    """Detect the encoding. A byte-order mark decides; otherwise the file is streamed once, in constant memory."""
    file.seek(0)
    head = file.read(8192)
    for mark, name in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return Encoding(name=name, sure=True, errors="replace")
    if declared is not None:
        name = codecs.lookup(declared).name
        return Encoding(name=name, sure=True, errors="surrogateescape" if name == "utf-8" else "replace", declared=True)
    if wide := is_wide(head):
        return Encoding(name=wide, sure=True, errors="replace")
    scanned = _scan_as_utf8(file)
    valid, broken = scanned.valid, scanned.broken
    if not broken:
        return Encoding(name=_detect_escapes(file, scanned.sample) or "utf-8", sure=True)
    if valid > 10 * broken or valid >= max(broken, _MANY_CHARACTERS):  # some bytes are broken, or pasted in
        return Encoding(name="utf-8", sure=True, errors="surrogateescape")
    return _choose_likeliest(scanned.sample)


class _Scanned(NamedTuple):
    """What a file shows if it is read as UTF-8."""

    sample: bytes  # lines with non-ASCII bytes
    broken: int  # places that are not valid
    valid: int  # non-ASCII characters that are


def _scan_as_utf8(file: BinaryIO) -> _Scanned:
    """Read a whole file as UTF-8, in constant memory; return what that shows."""
    file.seek(0)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    lines: dict[bytes, None] = {}
    size = broken = valid = 0
    while block := file.read(_BLOCK_BYTES):
        text = decoder.decode(block)
        if block.isascii():
            if not lines and _ESCAPES.search(block):
                lines[b"\x1b"] = None
            continue
        bad = max(text.count("\ufffd") - block.count(b"\xef\xbf\xbd"), 0)
        broken += bad
        valid += len(text) - len(text.encode("ascii", "ignore")) - bad
        if size < _SAMPLE_BYTES:
            lines |= dict.fromkeys(_LINE_WITH_HIGH_BYTE.findall(block))
            size = sum(map(len, lines))
    broken += decoder.decode(b"", final=True).count("\ufffd")
    return _Scanned(b"\n".join(lines), broken, valid)


def _detect_escapes(file: BinaryIO, sample: bytes) -> str | None:
    """Detect seven-bit Japanese between escapes, as mail and old Unix tools write it."""
    if sample != b"\x1b":
        return None
    for name in _ENCODINGS_WITH_ESCAPES:
        decoder = codecs.getincrementaldecoder(name)("strict")
        file.seek(0)
        try:
            while block := file.read(_BLOCK_BYTES):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            continue
        return name
    return None


class _Rival(NamedTuple):
    """An encoding that the sample may be in, and the text that it gives."""

    name: str
    score: float
    text: str
    implausible: int
    words: int


def _choose_likeliest(sample: bytes) -> Encoding:
    """Choose the likeliest older encoding of lines with non-ASCII bytes."""
    sample = _whole_characters(sample)
    lines = sample.count(b"\n") + 1
    if _is_signs(sample):
        read_otherwise = any(_reads_well(sample, name) for name in ("cp850", "mac-roman"))
        return _guess("cp1252", sure=not read_otherwise, evidence={"cp1252": lines})
    for name in ("cp932", "euc_jp"):
        if _is_kana(sample, name):
            return _guess(name, sure=True, evidence={name: lines})
    rivals = _rank_encodings(sample)
    if not rivals or (rivals[0].implausible and _is_half_width(sample)):
        name = "cp932" if _is_half_width(sample) else "cp1252"
        return _guess(name, sure=False, evidence=_evidence(rivals[:1]))
    if rivals[0].name not in _EAST_ASIAN and _is_hangul(sample):
        return _guess("cp949", sure=False, evidence={"cp949": rivals[0].words} | _evidence(rivals[:1]))
    return _choose_best(rivals, sample)


def _choose_best(rivals: Sequence[_Rival], sample: bytes) -> Encoding:
    """Choose the encoding of the most plausible text; sure if no other text is nearly as plausible."""
    same = [rival for rival in rivals if rival.text == rivals[0].text]
    best = min(
        same, key=lambda rival: _PLACE_OF_OLDER.get(rival.name, -1)
    )  # of those that give the same text, the most common
    others = [rival for rival in rivals if rival.text != best.text]
    high = _high_bytes(sample)
    near = next(share for few, share in _CLOSE_SHARES if high >= few)
    close = [rival for rival in others if rival.score >= near * rivals[0].score]
    if not close and high < _FEW_HIGH_BYTES and _reads_in_a_neighbour(sample, best):
        return _guess(best.name, sure=False, evidence=_evidence([best, *others[:1]]))
    is_short = best.name in _EAST_ASIAN and _is_short(best, others)
    sure = not close and best.implausible * 4 <= best.words and not is_short
    return _guess(best.name, sure=sure, evidence=_evidence([best, *(close or others)[:2]]))


def _evidence(rivals: Iterable[_Rival]) -> dict[str, int]:
    """Count the plausible words in the text of each encoding, by its name."""
    return {rival.name: rival.words - rival.implausible for rival in rivals}


def _reads_in_a_neighbour(sample: bytes, best: _Rival) -> bool:
    """Whether the encoding that is most often taken for the best one gives other plausible words.

    Asked only of texts with one or two letters beyond ASCII, which say too little by themselves.
    """
    for pair in _NEIGHBOURS:
        for name in pair if best.name in pair else ():
            text = sample.decode(name, "replace")
            if text != best.text and not _has_implausible_words(text):
                return True
    return False


def _guess(name: str, *, sure: bool, evidence: Mapping[str, int]) -> Encoding:
    """Return an encoding that was not declared; bytes that it lacks are replaced."""
    return Encoding(name=name, sure=sure, errors="replace", evidence=evidence)


def _high_bytes(sample: bytes) -> int:
    """Return how many bytes are not ASCII."""
    return len(sample) - len(sample.decode("ascii", "ignore"))


def _is_signs(sample: bytes) -> bool:
    """Whether all non-ASCII characters are single signs of Windows-1252: 5 €, 20°, “so”."""
    runs = _HIGH_RUN.findall(sample)
    if any(len(run) > 1 for run in runs):
        return False
    try:
        signs = b"".join(runs).decode("cp1252")
    except UnicodeDecodeError:
        return False
    return _COMMON_SIGNS.issuperset(signs) and not _has_implausible_words(sample.decode("cp1252", "replace"))


def _reads_well(sample: bytes, name: str) -> bool:
    """Whether the bytes are letters of plausible words in this encoding."""
    text = sample.decode(name, "replace")
    return not _has_implausible_words(text) and _INNER_LETTER.search(text) is not None


def _is_kana(sample: bytes, name: str) -> bool:
    """Whether it is mostly kana, too uniform for chardet; other languages give next to none."""
    try:
        text = sample.decode(name)
    except UnicodeDecodeError:
        return False
    wide = [char for char in text if char > "\x7f"]
    return len(wide) >= 4 and sum("\u3040" <= char <= "\u30ff" for char in wide) > 0.4 * len(wide)


def _is_hangul(sample: bytes) -> bool:
    """Whether it is Korean in common syllables, in words too short for chardet."""
    try:
        wide = [char for char in sample.decode("euc_kr") if char > "\x7f"]
    except UnicodeDecodeError:
        return False
    return len(wide) >= 2 * _MIN_WIDE and all("\uac00" <= char <= "\ud7a3" for char in wide)


def _is_half_width(sample: bytes) -> bool:
    """Whether it is half-width kana, a byte each; capitals of other scripts have higher codes than most."""
    high = b"".join(_HIGH_RUN.findall(sample))
    if not high or max(high) > 0xDF or min(high) < 0xA1:
        return False
    return sum(byte < 0xC0 for byte in high) >= 0.3 * len(high) and not _has_implausible_words(
        sample.decode("cp932", "replace")
    )


def _whole_characters(sample: bytes) -> bytes:
    """Cut the sample to its limit, at a sign that is never part of a multibyte character."""
    if len(sample) <= _SAMPLE_BYTES:
        return sample
    cut = max(sample.rfind(sign, 0, _SAMPLE_BYTES) for sign in (b"\n", b",", b";", b"\t", b" "))
    return sample[: cut if cut > 0 else _SAMPLE_BYTES]


def _rank_encodings(sample: bytes) -> list[_Rival]:
    """Return the older encodings that decode the sample, the most plausible first."""
    import chardet  # noqa: PLC0415  # only files in older encodings need it, and it takes a while to load

    judged = b"\n" + sample.translate(None, _CONTROLS)  # keep chardet from seeing a magic number or binary data
    with own_libraries():  # it loads its models by their package's name
        guesses = chardet.detect_all(
            judged, ignore_threshold=True, compat_names=False, include_encodings=list(_WEIGHT_OF_OLDER)
        )
    rivals: list[_Rival] = []
    best = 0.0
    for guess in guesses:  # from the most to the least confident
        name, confidence = str(guess["encoding"]), float(guess["confidence"])
        if confidence * max(_WEIGHT_OF_OLDER.values()) < best / 4:
            break
        for decoder in (_COMMON_SUBSET.get(name, name), name) if name in _WEIGHT_OF_OLDER else ():
            try:
                text = sample.decode(decoder)
            except UnicodeDecodeError:
                continue
            count = count_words(text)
            plausible = 1 - count.implausible / max(count.words, 1)
            score = confidence * _WEIGHT_OF_OLDER[name] * plausible**3 * coherence(text) ** _WEIGHT_OF_COHERENCE
            rivals.append(
                _Rival(name=decoder, score=score, text=text, implausible=count.implausible, words=count.words)
            )
            best = max(best, score)
            break
    return _prefer_better_twin(sorted(rivals, key=lambda guess: -guess.score))


def _prefer_better_twin(rivals: list[_Rival]) -> list[_Rival]:
    """Of two encodings with the same letters, prefer the one with fewer implausible words, whatever their scores."""
    best = rivals[0] if rivals else None
    if best is None:
        return rivals
    pair = {
        best.name,
        _WINDOWS_TWIN.get(best.name),
        *(iso for iso, windows in _WINDOWS_TWIN.items() if windows == best.name),
    }
    twins = [rival for rival in rivals if rival.name in pair]
    better = min(twins, key=lambda rival: rival.implausible)
    lesser = {rival.name for rival in twins if rival.implausible > better.implausible}
    return [better, *(rival for rival in rivals if rival is not better and rival.name not in lesser)]


def _is_short(best: _Rival, others: list[_Rival]) -> bool:
    """Whether there are too few characters to decide: a few ideographs or hangul are valid in each encoding."""
    wide = [char for char in best.text if char > "\x7f"]
    kana = sum("\u3040" <= char <= "\u30ff" for char in wide)
    if len(wide) >= _FEW_WIDE or (len(wide) >= 2 * _MIN_WIDE and kana * 4 >= len(wide)):
        return False
    raw = best.text.encode(best.name)
    for name in ("cp932", "euc_jp", "gb18030", "cp950", "cp949"):
        try:
            text = raw.decode(name)
        except UnicodeDecodeError:
            continue
        if text != best.text and not _has_implausible_words(text):
            return True
    return bool(others and others[0].score > best.score / 2)


def is_wide(head: bytes) -> str:
    """Return the byte order of UTF-16 text without a mark, which has zero bytes at every other place; otherwise empty.

    Digits, blanks and delimiters give any UTF-16 text some zero bytes; other text has none.
    """
    pairs = len(head) // 2
    if pairs < 2:
        return ""
    even_zeros = head[0 : 2 * pairs : 2].count(0)
    odd_zeros = head[1 : 2 * pairs : 2].count(0)
    order, many, few = (
        ("utf-16-le", odd_zeros, even_zeros) if odd_zeros > even_zeros else ("utf-16-be", even_zeros, odd_zeros)
    )
    if many > pairs * 0.7 and few < pairs * 0.05:
        return order
    if many < max(4, pairs * 0.04) or few > many / 8:
        return ""
    text = head[: 2 * pairs].decode(order, "replace").rstrip("\ufffd")
    strange = sum(unicodedata.category(char) in ("Cc", "Cn", "Co", "Cs") for char in set(text) - set("\t\r\n\x1a"))
    return order if ("\n" in text or "\r" in text) and not strange else ""
