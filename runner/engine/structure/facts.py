# ruff: noqa: RUF001  # dashes and signs as people type them
"""The facts about cells, texts and rows that all later steps use."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from enum import IntEnum, IntFlag
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

NUMBER = re.compile(
    r"[<>~≈±]?\s*[(+\-−–]?\s*(?:[$€£¥₹]|us\$|eur|usd|gbp|rs\.?)?\s*[(+\-−]?\s*"
    r"(?:\d[\d,. '\u00a0\u202f]*|\.\d+)(?:e[+\-]?\d+)?\s*\)?\s*"
    r"(?:%|[$€£¥]|\*{1,3}|±\s*[\d.,]+|[a-z]|\s?\(?[a-z0-9]\)|[¹²³†‡]+|\\\d|/\d)?\s*\)?",
    re.IGNORECASE,
)
FILLER = re.compile(
    r"[-–—.…*#?xX:/~]{1,3}|[(\[]?n\.?\s?/?\s?[ads]\.?[)\]]?|"
    r"[(\[]?(?:[xzsdbcy]|null|none|nan|nil|na|nsa|nc|np)[)\]]|null|none|nan|nil|#n/a|tbd|tba|"
    r"unknown|not available|not applicable|missing",
    re.IGNORECASE,
)
YEAR = re.compile(
    r"(?:fy|cy|year|q[1-4])?\s?'?(?:1[6-9]|20)\d\d(?:\.0)?(?:\s?[-/–]\s?(?:(?:1[6-9]|20)\d\d|\d\d))?"
    r"\s?(?:\(?[a-z0-9]\)?|\*|\\\d|/\d|q[1-4])?",
    re.IGNORECASE,
)
DATE = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ t]\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?\s?(?:[ap]m)?z?)?|"
    r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?\s?(?:[ap]m)?|"
    r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)?(?:day)?,?\s?"
    r"\d{1,2}(?:st|nd|rd|th)?[-/ ](?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?,?[-/ ]\d{2,4}|"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4}",
    re.IGNORECASE,
)
PERIOD = re.compile(
    r"(?:(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)|january|february|march|april|june|"
    r"july|august|"
    r"september|october|november|december|mon|tues?|wed|thur?s?|fri|sat|sun|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|q[1-4]|[1-4](?:st|nd|rd|th)? (?:quarter|qtr)|"
    r"quarter [1-4]|h[12]|week \d+|ytd|ytg)"
    r"\.?(?:[-/ ',]{0,2}(?:\d\d|\d{4}))?",
    re.IGNORECASE,
)
TOTAL = re.compile(
    r"\b(?:sub-?\s?totals?|grand totals?|totals?|sum|sums|average|averages|avg|mean|median|overall|"
    r"net change|"
    r"gesamt|summe|insgesamt|celkem|totaux|totale|moyenne|"
    r"all (?:persons|ages|races|items|industries|regions|states))\b|^(?:all|united states|net|balance)\b",
    re.IGNORECASE,
)
NOTE = re.compile(
    r"[*†‡]*\s*(?:notes?|sources?|n\.?b\.?|remarks?|comments?|legend|key|symbols?|footnotes?|see|contact|"
    r"inquir\w+|for (?:more|further|additional|definitions?|details)|http|www\.|copyright|©|"
    r"last (?:modified|updated?)|updated|published|prepared|includes?|excludes?|data (?:are|is|from|in)|"
    r"the (?:data|figures|following|number|percent)|these|this|standard errors?|abbreviations?|"
    r"suggested citation|released?|"
    r"disclaimer|quelle|anmerkung|pozn|return to|back to|go to|internet|director in charge|print|page \d)",
    re.IGNORECASE,
)
TITLE = re.compile(
    r"(?:table|tab\.|figure|fig\.|chart|annex|appendix|exhibit|schedule|sheet|section|part|report|"
    r"statistics)\s*"
    r"[\dA-Z]*[\d.:\-]",
    re.IGNORECASE,
)
FOOTNOTE = re.compile(r"(?:\(?[\da-z]{1,2}[).\]/]|\[[\da-z]{1,2}\]|\\?\d{1,2}|[*†‡#]+|\\\d+)\s*[\\]?\s*[A-Za-z]{2}")
UNIT = re.compile(
    r"[(\[].*[)\]]|%|[$€£]\s?(?:m|bn|k|000s?|million|billion|thousands?)?|.{0,12}(?:percent|pct)\.?",
    re.IGNORECASE,
)
RULE = re.compile(r"[-=_~*.\s|+]{4,}")
CODE = re.compile(r"[A-Za-z]+(?:_[A-Za-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]*)+|[A-Za-z]+\d+[A-Za-z\d]*")

# Common words of column names. A short text with one of them and without a digit may name a column.
NAME = re.compile(
    r"\b(?:"
    r"names?|surname|title|id|ids|code|codes|key|number|no|nr|num|ref|reference|index|rank|type|kind|"
    r"class|category|group|description|desc|details|comments?|notes|remarks?|status|state|city|town|"
    r"county|country|region|district|area|location|address|street|zip|postcode|post code|postal code|"
    r"phone|telephone|tel|fax|mobile|e-?mail|url|website|date|day|week|month|quarter|year|years|period|"
    r"time|hour|hours|start|end|begin|from|to|until|duration|age|sex|gender|amount|amt|price|cost|costs|"
    r"fee|rate|value|values|balance|budget|salary|pay|tax|revenue|sales|currency|unit|units|uom|qty|"
    r"quantity|count|frequency|size|length|width|height|weight|volume|capacity|percent|percentage|pct|"
    r"share|ratio|score|change|difference|total|mean|average|median|min|max|customer|client|supplier|"
    r"vendor|company|firm|employer|employee|member|person|contact|owner|manager|department|dept|office|"
    r"position|role|job|occupation|product|item|material|brand|model|project|program|programme|account|"
    r"order|invoice|source|latitude|longitude|lat|lon|lng|nom|prénom|ville|pays|montant|prix|datum|anzahl|"
    r"betrag|ort|land|preis|menge|bezeichnung|fecha|nombre|importe|cantidad|precio"
    r")\b|[#%]",
    re.IGNORECASE,
)


# Words of column names, alone in their cell and as people write them: a row of such words may be a header.
_LONE_NAMES = (
    "id sku name title code key number type kind category group description status city country region address phone "
    "email date day month year amount price cost value quantity qty unit customer client supplier vendor company brand "
    "member contact employee department product item material model project account order invoice currency colour "
    "produkt lieferant marke artikel bezeichnung kunde firma menge preis betrag währung ort land plz straße vorname "
    "nachname telefon datum farbe nummer kategorie status abteilung "
    "produit fournisseur marque article client société quantité prix montant devise ville pays adresse nom prénom "
    "téléphone couleur numéro catégorie code "
    "producto proveedor marca artículo cliente empresa cantidad precio importe moneda ciudad país dirección nombre "
    "apellido teléfono fecha color número categoría "
    "prodotto fornitore articolo azienda quantità prezzo importo valuta città paese indirizzo nome cognome telefono "
    "data colore numero produto fornecedor artigo quantidade preço valor moeda cidade endereço telefone categoria "
    "leverancier merk klant bedrijf aantal prijs bedrag stad adres naam voornaam achternaam telefoon kleur "
    "produkt dostawca marka klient firma ilość cena kwota waluta miasto kraj adres imię nazwisko telefon kolor "
)
LONE_NAMES = frozenset(
    form for word in _LONE_NAMES.split() for form in (word, word.upper(), word.capitalize(), f"{word}:")
)


class CellKind(IntEnum):
    """What a cell holds."""

    BLANK = 0
    TEXT = 1
    NUMBER = 2
    DATE = 3
    BOOL = 4
    ERROR = 5
    FILLER = 6  # marks a missing value: "-", "..", "n/a"


class Mark(IntFlag):
    """What a text or a number shows beside its kind."""

    YEAR = 1  # 1999, "1999-2000", "FY 2001"
    PERIOD = 2  # a month, a weekday, a quarter
    TOTAL = 4  # mentions a total, a mean, a sum
    NOTE = 8  # opens a note, a source, a legend
    TITLE = 16  # "Table 3", "Figure 2", "Sheet 1 of 3"
    COLON = 32  # ends with a colon
    SENTENCE = 64  # ends with a full stop or is long
    CAPS = 128  # all letters are upper-case
    CAPITAL = 256  # starts with an upper-case letter
    FOOTNOTE = 512  # starts like "1 Includes", "(a) Not", "* Less", "[3] see"
    UNIT = 1024  # in brackets, a percent sign, a currency: the content of a unit row
    INDENT = 2048  # starts with blanks
    RULE = 4096  # a line drawn with characters: "-----"
    CODE = 8192  # an identifier: snake_case, camelCase, or letters with digits
    DIGITS = 16384  # text with a digit
    NAME = 32768  # has a common word of column names: "Start date", "Qty"


CellFacts = tuple[int, int, int, int]  # kind, length, marks, number of words

LONG = 60
SHORT, FEW = 40, 5  # characters and words of a text that may name a column
BLANK: CellFacts = (0, 0, 0, 0)
# Plain integers: enum members are several times slower in the loops over cells.
_TEXT = int(CellKind.TEXT)
_NUMBER: CellFacts = (int(CellKind.NUMBER), 8, 0, 1)
_YEAR: CellFacts = (int(CellKind.NUMBER), 8, int(Mark.YEAR), 1)
_DATE: CellFacts = (int(CellKind.DATE), 10, 0, 1)
_BOOL: CellFacts = (int(CellKind.BOOL), 5, 0, 1)
_ERROR: CellFacts = (int(CellKind.ERROR), 8, 0, 1)

_SHAPES = (
    (24, YEAR, CellKind.NUMBER, Mark.YEAR),
    (30, NUMBER, CellKind.NUMBER, Mark(0)),
    (32, DATE, CellKind.DATE, Mark(0)),
    (16, FILLER, CellKind.FILLER, Mark(0)),
    (200, RULE, CellKind.TEXT, Mark.RULE),
)
_WHOLE = ((24, PERIOD, Mark.PERIOD), (40, UNIT, Mark.UNIT), (40, CODE, Mark.CODE))
_OPENING = ((NOTE, Mark.NOTE), (TITLE, Mark.TITLE), (FOOTNOTE, Mark.FOOTNOTE))


@lru_cache(maxsize=20_000)
def _text_facts(text: str) -> CellFacts:
    """Return the facts about a text; one that is written like a number, a date or a blank counts as such."""
    bare = text.strip()
    if not bare:
        return BLANK
    length = len(bare)
    for longest, pattern, kind, mark in _SHAPES:
        if length <= longest and pattern.fullmatch(bare):
            return (int(kind), length, int(mark), 1)
    words = bare[:80].count(" ") + 1
    return (_TEXT, length, _marks(text, bare, words), words)


def _marks(text: str, bare: str, words: int) -> int:
    """Return the marks of a text as bits; `bare`: the text without outer blanks."""
    head = bare[:80]
    length = len(bare)
    marks = Mark(0)
    for longest, pattern, mark in _WHOLE:
        if length <= longest and pattern.fullmatch(bare):
            marks |= mark
    for pattern, mark in _OPENING:
        if pattern.match(head):
            marks |= mark
    digits = any(map(str.isdigit, head))
    is_short = length <= SHORT and words <= FEW and not digits
    tests = (
        (TOTAL.search(head) is not None, Mark.TOTAL),
        (bare[-1] == ":", Mark.COLON),
        ((bare[-1] in ".;" and words > 3) or length > LONG, Mark.SENTENCE),
        (head.upper() == head and head.lower() != head, Mark.CAPS),
        (head[0].isupper(), Mark.CAPITAL),
        (text[0] in " \t\u00a0", Mark.INDENT),
        (digits, Mark.DIGITS),
        (is_short and NAME.search(head.replace("_", " ")) is not None, Mark.NAME),
    )
    for holds, mark in tests:
        if holds:
            marks |= mark
    return int(marks)


def cell_facts(value: object) -> CellFacts:
    """Return kind, length, marks and words of a value; text that parses as a number or a date counts as one."""
    if value is None:
        return BLANK
    if type(value) is str:
        return _text_facts(value if len(value) <= 200 else value[:200])
    if isinstance(value, bool):
        return _BOOL
    if isinstance(value, int | float):
        is_year = 1600 <= value < 2100 and value == int(value)
        return _YEAR if is_year else _NUMBER
    if isinstance(value, date | time | timedelta):
        return _DATE
    return _ERROR  # an error cell, or a formula without a stored result


COMMON = 0.2  # share of a column's texts from which a style is usual
READ = 8  # words from which a text is prose
SEEN = 2  # texts from which an exact form is known


class TextShape(NamedTuple):
    """The shape of a text."""

    form: str  # its characters by class, runs collapsed: "Sue Smith" is "Aa Aa", "SKU-017" is "A-9"
    style: str  # lower, upper, title, sentence, none
    digits: bool
    signs: frozenset[str]  # signs that distinguish addresses, codes and paths from words
    words: int
    length: int


_SIGNS = frozenset('@_/\\#=|<>[]{}$%&*:;"')


def _class(char: str) -> str:
    """Return the sign that stands for a character's class: 9 for digits, A and a for letters."""
    if char.isdigit():
        return "9"
    if char.isalpha():
        return "A" if char.isupper() else "a" if char.islower() else "x"
    return " " if char.isspace() else char


@lru_cache(maxsize=20_000)
def text_shape(text: str) -> TextShape:
    """Describe the shape of a text; only the beginning of a long one counts."""
    bare = " ".join(text[:200].split())
    form = "".join([char for char, _ in groupby(map(_class, bare))])
    words = bare.split(" ")
    letters = [word[0] for word in words if word[:1].isalpha()]
    if not any(map(str.isalpha, bare)) or bare.lower() == bare.upper():
        style = "none"
    elif bare.lower() == bare:
        style = "lower"
    elif bare.upper() == bare:
        style = "upper"
    elif letters and all(map(str.isupper, letters)):
        style = "title"
    else:
        style = "sentence" if bare[0].isupper() else "mixed"
    return TextShape(form, style, any(map(str.isdigit, bare)), _SIGNS.intersection(bare), len(words), len(bare))


class Profile:
    """The shapes of a column's texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = Counter(" ".join(text.split()) for text in texts)
        shapes = [text_shape(text) for text in self.texts.elements()]
        words, lengths = [shape.words for shape in shapes] or [0], [shape.length for shape in shapes] or [0]
        self.count = len(shapes)
        self.forms = Counter(shape.form for shape in shapes)
        self.styles = Counter((shape.style, shape.digits, shape.signs) for shape in shapes)
        self.words = min(words), max(words)  # of the shortest and of the longest
        self.lengths = min(lengths), max(lengths)
        self.length = sum(lengths) / len(lengths)  # on average

    def has(self, text: str) -> bool:
        return " ".join(text.split()) in self.texts

    def like(self, text: str) -> bool:
        """Whether the text fits among them."""
        if not self.count:
            return False
        if self.has(text):
            return True
        shape = text_shape(text)
        if self.forms[shape.form] >= max(SEEN, COMMON * self.count):
            return True
        is_usual = self.styles[shape.style, shape.digits, shape.signs] >= COMMON * self.count
        if is_usual and self.words[1] > READ and shape.words > READ:
            return True  # prose has any length
        has_as_many_words = self.words[0] <= shape.words <= self.words[1] + (self.words[1] > 3)
        return is_usual and has_as_many_words and self.lengths[0] / 2 <= shape.length <= self.lengths[1] * 1.5


MAX_COLUMNS = 512  # cells beyond only widen the table before them
STORED_TEXT = 256  # characters of a value


@dataclass(slots=True)
class Row:
    """One non-blank row. Columns are 1-based; `kinds[0]` belongs to column 1."""

    number: int
    ordinal: int  # number of non-blank rows above it
    gap: int  # blank rows right above
    kinds: bytes
    marks: tuple[int, ...]
    lengths: tuple[int, ...]
    words: tuple[int, ...]
    values: tuple[object, ...]
    filled: tuple[int, ...]  # 0-based columns
    last: int  # last filled column, 1-based, even beyond MAX_COLUMNS
    width: int = 0  # filled cells, including those beyond MAX_COLUMNS
    skipped: int = 0  # plain data rows right above that were only counted
    bold: float = -1.0  # share of filled cells in bold; -1: not known
    merged: int = 0  # merged ranges of several columns that start here
    plain: bool = False  # like the usual rows; kept only as a neighbour of an unusual one

    @property
    def first(self) -> int:
        return self.filled[0] + 1 if self.filled else 1


def _shortened(value: object) -> object:
    """Cut a text to STORED_TEXT characters; other values are returned as they are."""
    return value[:STORED_TEXT] if isinstance(value, str) and len(value) > STORED_TEXT else value


def row_of(number: int, values: Sequence[object], *, ordinal: int, gap: int) -> Row | None:
    """Describe a row; None if its first columns are blank."""
    facts = [cell_facts(value) for value in values[:MAX_COLUMNS]]
    kinds = bytes([cell[0] for cell in facts])
    filled = tuple([at for at, kind in enumerate(kinds) if kind])
    last = len(values)
    while last and not cell_facts(values[last - 1])[0]:
        last -= 1
    if not filled:
        return None
    beyond = sum(value is not None for value in values[MAX_COLUMNS:last])
    return Row(
        number=number,
        ordinal=ordinal,
        gap=gap,
        kinds=kinds,
        marks=tuple([cell[2] for cell in facts]),
        lengths=tuple([cell[1] for cell in facts]),
        words=tuple([cell[3] for cell in facts]),
        values=tuple([_shortened(value) for value in values]),
        filled=filled,
        last=last,
        width=len(filled) + beyond,
    )
