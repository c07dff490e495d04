# ruff: noqa: RUF001  # words as people type them
"""Words for totals, means and counts in many languages: a hint, never proof. What adds up is settled in `sums`."""

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Final

TOTALS: Final = (
    # English, German, Dutch, the North
    "total", "totals", "sum", "sum total", "summe", "gesamt", "gesamtsumme", "gesamtbetrag", "gesamtergebnis",
    "insgesamt", "zwischensumme", "teilsumme", "endsumme", "totaal", "subtotaal", "eindtotaal", "som", "summa",
    "totalt", "delsumma", "delsum", "i alt", "ialt", "yhteensä", "välisumma", "kokonaissumma", "samtals", "kokku",
    "kopā", "iš viso",
    # French, Spanish, Portuguese, Italian, Romanian
    "totaux", "somme", "suma", "soma", "totale", "totali", "subtotale", "somma", "subtotales", "totales", "totais",
    "sumă",
    # Polish, Czech, Slovak, Hungarian, South Slavic, Turkish, Greek
    "razem", "ogółem", "łącznie", "podsuma", "celkem", "součet", "mezisoučet", "spolu", "súčet", "medzisúčet",
    "összesen", "részösszeg", "végösszeg", "mindösszesen", "ukupno", "skupaj", "zbroj", "zbir", "toplam",
    "ara toplam", "genel toplam", "σύνολο", "άθροισμα", "γενικό σύνολο", "μερικό σύνολο",
    # Cyrillic
    "итого", "всего", "итог", "сумма", "подытог", "подитог", "промежуточный итог", "общий итог", "всього", "разом",
    "підсумок", "усього", "общо", "сума", "укупно",
    # Asia and the Middle East
    "合計", "小計", "総計", "総合計", "累計", "合计", "小计", "总计", "总和", "总数", "共计", "總計", "總和", "計",
    "합계", "소계", "총계", "총합계", "총합", "المجموع", "الإجمالي", "مجموع", "إجمالي", 'סה"כ', "סך הכל", "סהכ",
    "कुल", "योग", "รวม", "ผลรวม", "ยอดรวม", "tổng", "tổng cộng", "cộng", "jumlah", "jumlah total",
)  # fmt: skip
MEANS: Final = (
    "average", "averages", "avg", "mean", "durchschnitt", "mittelwert", "mittel", "moyenne", "promedio", "média",
    "gemiddelde", "średnia", "průměr", "priemer", "átlag", "среднее", "средно", "середнє", "genomsnitt", "gennemsnit",
    "gjennomsnitt", "keskiarvo", "ortalama", "μέσος όρος", "平均", "平均値", "平均值", "평균", "prosek", "prosjek",
)  # fmt: skip
COUNTS: Final = ("count", "anzahl", "件数", "number of rows", "number of records", "records")
BOUNDS: Final = ("min", "minimum", "max", "maximum")
BEFORE: Final = ("sub", "sub-", "grand", "overall", "net", "sous-", "sous", "final", "running", "page", "group")
AFTER: Final = (
    "general", "général", "geral", "generale", "complessivo", "amount", "sum", "all", "overall", "częściowa", "końcowa",
    "ogólna", "parziale", "partiel", "partielle", "parcial", "parciales", "intermédiaire", "intermedio", "intermedia",
)  # fmt: skip

_EDGES: Final = " \t\u00a0:.;-–—=*()[]>"
_WORDS: Final = frozenset((*TOTALS, *MEANS, *COUNTS, *BOUNDS))
_STRONG: Final = frozenset((*TOTALS, *MEANS))


class Says(IntEnum):
    """How plainly a row calls itself a total."""

    NOTHING = 0
    HINT = 1  # a word that may mean one: "Mean Well PSU", "Balance", "All regions"
    NAMED = 2  # a total of something: "Total North", "Summe Nord"
    PLAINLY = 3  # the word and nothing else


class Sort(IntEnum):
    SUM = 0
    MEAN = 1
    COUNT = 2
    BOUND = 3


@lru_cache(maxsize=4096)
def says(text: str) -> tuple[Says, Sort]:
    """How plainly a text speaks of a total, and of which sort."""
    bare = " ".join(text[:80].casefold().strip(_EDGES).split())
    if not bare:
        return Says.NOTHING, Sort.SUM
    core = _core(bare)
    if core in _WORDS:
        sort = _sort(core)
        return (Says.HINT if sort is Sort.BOUND else Says.PLAINLY), sort  # Max is a name as well
    words = bare.split(" ")
    for word in (words[0].strip(_EDGES), words[-1].strip(_EDGES), " ".join(words[:2])):
        if _core(word) in _STRONG and len(words) <= _MOST:
            sort = _sort(_core(word))
            return (Says.NAMED if sort is Sort.SUM else Says.HINT), sort
    if any(bare.startswith(word) or bare.endswith(word) for word in _UNSPACED):
        return Says.NAMED, Sort.SUM
    return (Says.HINT if _HINT.search(bare) else Says.NOTHING), Sort.MEAN if _MEAN.search(bare) else Sort.SUM


_MOST: Final = 8  # words of a label
_UNSPACED: Final = ("合計", "小計", "総計", "合计", "小计", "总计", "總計", "합계", "소계", "총계")
_HINT: Final = re.compile(
    r"\b(?:median|overall|net change|balance|net|media|all (?:persons|ages|races|items|industries|regions|states))\b"
)
_MEAN: Final = re.compile(r"\b(?:media|median|mean)\b")


def _core(bare: str) -> str:
    """The text without words that only say which total it is."""
    for word in BEFORE:
        rest = bare.removeprefix(word)
        if rest != bare and rest.strip(" -") in _WORDS:
            return rest.strip(" -")
    for word in AFTER:
        rest = bare.removesuffix(" " + word)
        if rest != bare and rest in _WORDS:
            return rest
    return bare


def _sort(word: str) -> Sort:
    if word in MEANS:
        return Sort.MEAN
    return Sort.COUNT if word in COUNTS else Sort.BOUND if word in BOUNDS else Sort.SUM


def row_says(values: Sequence[object], first: int = 3) -> tuple[Says, Sort]:
    """How plainly one of a row's first cells speaks of a total."""
    best = Says.NOTHING, Sort.SUM
    seen = 0
    for value in values:
        if value is None or value == "":
            continue
        if isinstance(value, str):
            best = max(best, says(value), key=lambda one: one[0])
        seen += 1
        if seen == first:
            break
    return best


# Cheap questions to every row of a long sheet: does its first text open like a total? Is the word in a column?
_OPENINGS: Final = sorted({*TOTALS, *MEANS, "sub-total", "sub total", "subtotal", "sous-total", "grand total"}, key=len)
_OPEN: Final = re.compile(
    rf"\s*[(\[*]?(?:{'|'.join(re.escape(word) for word in reversed(_OPENINGS))})", re.IGNORECASE
).match
STARTS: Final = frozenset(
    before + start
    for word in _OPENINGS
    for form in (word, word.upper(), word.capitalize())
    for before, start in (("", form[:3]), *((mark, form[:2]) for mark in " \u00a0([*"))
)  # what a text that opens like a total starts with
SHORT: Final = frozenset(word[0] for word in _OPENINGS if len(word) < 3)  # the same for words of a character or two
_SPELLINGS: Final = frozenset(
    form + end
    for word in _OPENINGS
    for form in (word, word.upper(), word.title(), word.capitalize())
    for end in ("", ":")
)


def opens(text: str) -> bool:
    """Whether a text opens like a total; ask only of those with a start in STARTS or SHORT, it is not cheap."""
    return _OPEN(text) is not None


def in_column(column: Sequence[object]) -> bool:
    """Whether a cell of a column is a word for a total and nothing else: one look for thousands of cells."""
    return not _SPELLINGS.isdisjoint(column)
