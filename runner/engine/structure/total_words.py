# ruff: noqa: RUF001  # words as people type them
"""The words for totals, means, counts and bounds in many languages, and how clearly a text is one of them."""

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Final

from runner.engine.structure.tables import Clarity

# What printed pages carry over.
CARRIED: Final = (
    "carried forward", "carry forward", "brought forward", "c/f", "b/f", "übertrag", "uebertrag", "à reporter",
    "a reporter", "suma y sigue", "suma anterior", "riporto", "a riportare", "a transportar", "do przeniesienia",
    "z przeniesienia",
)  # fmt: skip
TOTALS: Final = (
    *CARRIED,
    # English, German, Dutch, the North
    "total", "totals", "sum", "sum total", "σ", "∑", "summe", "gesamt", "gesamtsumme", "gesamtbetrag", "gesamtergebnis",
    "insgesamt", "zwischensumme", "teilsumme", "endsumme", "ergebnis", "gesamttotal", "totaal", "subtotaal",
    "eindtotaal", "som", "summa", "totalt", "totalsum", "totalsumma", "hovedtotal", "delsumma", "delsum", "i alt",
    "ialt", "yhteensä", "välisumma", "kokonaissumma", "loppusumma", "samtals", "kokku", "kopā", "iš viso",
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
    "合計", "小計", "総計", "総合計", "累計", "集計", "合计", "小计", "总计", "总和", "总数", "共计", "汇总", "總計",
    "總和", "匯總", "計", "합계", "소계", "총계", "총합계", "총합", "요약", "المجموع", "الإجمالي", "مجموع", "إجمالي",
    'סה"כ', "סך הכל", "סהכ", "कुल", "योग", "รวม", "ผลรวม", "ยอดรวม", "tổng", "tổng cộng", "cộng", "jumlah",
    "jumlah total",
)  # fmt: skip
MEANS: Final = (
    "average", "averages", "avg", "mean", "durchschnitt", "mittelwert", "mittel", "moyenne", "promedio", "média",
    "gemiddelde", "średnia", "průměr", "priemer", "átlag", "среднее", "средно", "середнє", "genomsnitt", "gennemsnit",
    "gjennomsnitt", "keskiarvo", "ortalama", "μέσος όρος", "平均", "平均値", "平均值", "평균", "prosek", "prosjek",
    "ø", "∅",
)  # fmt: skip
COUNTS: Final = ("count", "anzahl", "件数", "number of rows", "number of records", "records")
BOUNDS: Final = ("min", "minimum", "max", "maximum", "min.", "max.")
SPREADS: Final = (
    "sd",
    "std",
    "stdev",
    "std dev",
    "standard deviation",
    "standardabweichung",
    "median",
    "variance",
    "rsd",
    "cv",
)
BEFORE: Final = ("sub", "sub-", "grand", "overall", "net", "sous-", "sous", "final", "running", "page", "group")
AFTER: Final = (
    "general", "général", "geral", "generale", "complessivo", "amount", "sum", "all", "overall", "częściowa", "końcowa",
    "ogólna", "parziale", "partiel", "partielle", "parcial", "parciales", "intermédiaire", "intermedio", "intermedia",
)  # fmt: skip
_ENDINGS: Final = tuple(f" {word}" for word in AFTER)

_EDGES: Final = " \t\u00a0:.;-–—=*()[]>"
_WORDS: Final = frozenset((*TOTALS, *MEANS, *COUNTS, *BOUNDS, *SPREADS))
_STRONG: Final = frozenset((*TOTALS, *MEANS))


class Sort(IntEnum):
    """What a total states about its rows."""

    SUM = 0
    MEAN = 1
    COUNT = 2
    BOUND = 3
    SPREAD = 4  # not computed, so it never adds up


@lru_cache(maxsize=4096)
def label_clarity(text: str) -> tuple[Clarity, Sort]:
    """Judge how clearly a text labels a total, and of which sort."""
    bare = " ".join(text[:80].casefold().strip(_EDGES).split())
    if not bare:
        return (Clarity.HINT if is_total_mark(text) else Clarity.NOTHING), Sort.SUM
    core = _without_qualifier(bare)
    if core in _WORDS:
        sort = _sort_of(core)
        return (Clarity.HINT if sort in (Sort.BOUND, Sort.SPREAD) else Clarity.PLAINLY), sort  # Max is also a name
    words = bare.split(" ")
    for word in (words[0].strip(_EDGES), words[-1].strip(_EDGES), " ".join(words[:2]), " ".join(words[-2:])):
        core = _without_qualifier(word)
        if core in _STRONG and len(words) <= _MOST_LABEL_WORDS:
            sort = _sort_of(core)
            return (Clarity.NAMED if sort is Sort.SUM else Clarity.HINT), sort
    if words[-1] == _LAST and 1 < len(words) <= _MOST_LABEL_WORDS:
        return Clarity.NAMED, Sort.SUM
    if any(bare.startswith(word) or bare.endswith(word) for word in _UNSPACED):
        return Clarity.NAMED, Sort.SUM
    return (Clarity.HINT if _HINT.search(bare) else Clarity.NOTHING), Sort.MEAN if _MEAN.search(bare) else Sort.SUM


_MOST_LABEL_WORDS: Final = 8  # longer texts are sentences
_LAST: Final = "result"  # in SAP's reports, behind the name of a group; alone it is a name
_UNSPACED: Final = (
    "合計", "小計", "総計", "集計", "合计", "小计", "总计", "汇总", "總計", "匯總", "합계", "소계", "총계", "요약",
)  # fmt: skip
_MARKS: Final = re.compile(r"\*{1,4}")  # how SAP marks totals of several levels
_HINT: Final = re.compile(
    r"\b(?:median|overall|net change|balance|net|media|all (?:persons|ages|races|items|industries|regions|states))\b"
)
_MEAN: Final = re.compile(r"\b(?:media|median|mean)\b")


def is_carried_over(text: str) -> bool:
    """Whether a text says that a printed page carries its sum over, so that records follow."""
    return text.casefold().strip(_EDGES) in CARRIED


def is_total_mark(text: str) -> bool:
    """Whether a text is only stars, with which SAP marks totals."""
    return _MARKS.fullmatch(text.strip()) is not None


def _without_qualifier(bare: str) -> str:
    """Remove a word that only qualifies a total; a text that is no total without it stays as it is."""
    if bare.startswith(BEFORE):  # one check for all: hardly any text does
        for word in BEFORE:
            rest = bare.removeprefix(word)
            if rest != bare and rest.strip(" -") in _WORDS:
                return rest.strip(" -")
    if bare.endswith(_ENDINGS):
        for ending in _ENDINGS:
            rest = bare.removesuffix(ending)
            if rest != bare and rest in _WORDS:
                return rest
    return bare


def _sort_of(word: str) -> Sort:
    """Return what a word for a total states."""
    if word in MEANS:
        return Sort.MEAN
    if word in SPREADS:
        return Sort.SPREAD
    return Sort.COUNT if word in COUNTS else Sort.BOUND if word in BOUNDS else Sort.SUM


def row_clarity(values: Sequence[object], first: int = 3) -> tuple[Clarity, Sort]:
    """Judge how clearly one of the first `first` filled cells of a row labels it as a total."""
    best = Clarity.NOTHING, Sort.SUM
    seen = 0
    for value in values:
        if value is None or value == "":
            continue
        if isinstance(value, str):
            best = max(best, label_clarity(value), key=lambda label: label[0])
        seen += 1
        if seen == first:
            break
    return best


# Cheap checks for every row of a long sheet: does its first text start like a total? Is the word in a column?
_OPENINGS: Final = sorted({*TOTALS, *MEANS, "sub-total", "sub total", "subtotal", "sous-total", "grand total"}, key=len)
_OPEN: Final = re.compile(
    rf"\s*[(\[*]?(?:{'|'.join(re.escape(word) for word in reversed(_OPENINGS))})", re.IGNORECASE
).match
STARTS: Final = frozenset(
    before + start
    for word in _OPENINGS
    for form in (word, word.upper(), word.capitalize())
    for before, start in (("", form[:3]), *((mark, form[:2]) for mark in " \u00a0([*"))
)  # the beginnings of texts that start like a total
SHORT: Final = frozenset(word[0] for word in _OPENINGS if len(word) < 3)  # the same for words of one or two characters
ENDS: Final = frozenset(
    (form + end)[-3:]
    for word in (*_STRONG, _LAST)
    for form in (word, word.upper(), word.title())
    for end in ("", ":")
    if len(form + end) > 2
)  # the ends of texts that end like a total
SHORT_ENDS: Final = frozenset(_UNSPACED)
_SPELLINGS: Final = frozenset(
    form + end
    for word in _OPENINGS
    for form in (word, word.upper(), word.title(), word.capitalize())
    for end in ("", ":")
)


def opens(text: str) -> bool:
    """Whether a text starts like a total; not cheap: first check that its beginning is in STARTS or SHORT."""
    return _OPEN(text) is not None


def closes(text: str) -> bool:
    """Whether a text ends like a total: North Total. Not cheap: first check that its end is in ENDS or SHORT_ENDS."""
    return label_clarity(text)[0] >= Clarity.NAMED


def in_column(column: Sequence[object]) -> bool:
    """Whether a cell of a column is just a word for a total: one check for thousands of cells."""
    return not _SPELLINGS.isdisjoint(column)
