"""What the samples say about a field: its type, how its values are written, and rules that later files will keep.

A rule is written only if the samples leave little doubt; a person may be asked about others.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from math import ceil, log10
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from runner.engine.common.fields import NUMERIC, TEMPORAL
from runner.engine.drafting.field_facts import FieldFacts
from runner.engine.drafting.sample_columns import ColumnFacts
from runner.engine.drafting.written_shapes import formats_of, pattern_of
from runner.engine.mapping.knowledge import head_classes
from runner.engine.values.words import BOOLEANS

Spec = dict[str, Any]  # a field as the manifest writes it
NEVER_TWICE: Final = "never twice in one sample"
_FEW_ROWS: Final = 20  # rows without a blank that a key needs to be required
_ALONE_ROWS: Final = 50  # the same for a single sample
_FULL_ROWS: Final = 100  # the same for other fields: where 3 % are blank, so many rows nearly always show it
_FEW_TYPED: Final = 5  # values that show a type in a column that is mostly blank
_KEY_ROWS: Final = 30  # rows that a key needs without a repeat
_CODES_FOR_PATTERN: Final = 50  # values that a pattern needs
_MOST_SLIPS: Final = 0.02  # share of values that may not be of the type, which then is a warning
_SLIPS_ROWS: Final = 50
_MOST_ALLOWED: Final = 60
_LONGEST_ALLOWED: Final = 100
_FEW_VALUES: Final = 3
_EACH_OFTEN: Final = 3  # how often each allowed value occurs at least
_OFTEN_IN_TWO_FILES: Final = 10  # how often it occurs on average, with two samples
_OFTEN_EACH_FILE: Final = 5  # the same with more
_OPEN_CLASSES: Final = (
    "place",
    "district",
    "company",
    "person",
    "text",
    "text_short",
    "identifier",
)  # new ones always come
_RANGE_VALUES: Final = 30
_MONEY_VALUES: Final = 200
_TENTHS: Final = 10  # a bound leaves room for ten times as much
_LEAST_YEARS: Final = 10
_SHORT_NUMBER: Final = 3  # digits of a count or a position; numbers of documents have more
_MOST_SYNONYMS: Final = 50
_NONNEGATIVE_CLASSES: Final = ("quantity", "small_number", "year", "latitude", "longitude")
_SIGNED_CLASSES: Final = ("latitude", "longitude")
_NAMED_TYPES: Final = ("date", "time", "money", "email", "phone", "url", "boolean")  # that a header may name
_FLAG_WORDS: Final = frozenset({"0", "1", "0.0", "1.0"})


class DraftQuestion(NamedTuple):
    """Something that a person knows better than the samples: the safe answer is to change nothing."""

    kind: str
    field: str
    text: str
    change: Spec  # what a yes changes in the field
    examples: tuple[str, ...] = ()
    refusal: Mapping[str, Any] = MappingProxyType({})  # what a no of a person changes, where it says as much as a yes


class Inference:
    """Drafts one field from its columns: `spec`, `evidence` and `questions` are complete once it is made.

    Each step may read what the steps before it set in `spec`: the type comes first.
    """

    def __init__(self, facts: FieldFacts, files: int) -> None:
        """Draft the field, step by step. `files`: how many samples there are, with the field or without."""
        self._facts = facts
        self._files = files
        self.spec: Spec = {"name": facts.name, "type": "text"}
        self.evidence: list[str] = []  # in words, without a value
        self.questions: list[DraftQuestion] = []
        if facts.label != facts.name:
            self.spec["label"] = facts.label
        self._set_type()
        self._set_cleaning()
        self._set_date_order()
        self._set_presence()
        self._set_key()
        self._set_allowed()
        self._set_pattern()
        self._set_range()
        spelled = {facts.name.casefold(), facts.label.casefold()}
        if synonyms := [header for header in facts.headers if header.casefold() not in spelled]:
            self.spec["synonyms"] = synonyms[:_MOST_SYNONYMS]

    def _set_type(self) -> None:
        """Set the first type that all values fit; one that nearly all fit with a warning; text otherwise."""
        facts = self._facts
        if facts.declared.get("type"):
            self.spec["type"] = facts.declared["type"]
            return
        if not facts.values:
            self.spec["type"] = next((kind for kind in _NAMED_TYPES if facts.is_about(kind)), "text")
            self.evidence.append("no values, so the type is a guess by the header")
            return
        for kind, is_meant in _CANDIDATES:
            if not is_meant(facts) or (bad := facts.bad(kind)) == facts.values:
                continue
            field_type = _field_type(kind, facts)
            if facts.values < _FEW_TYPED and 2 * facts.values < facts.rows and not facts.is_about(field_type):
                continue  # a few values in a column that is mostly blank
            if not bad:
                self.spec["type"] = field_type
                self.evidence.append(f"all {_VALUES_OF_TYPE[field_type]}")
                currencies = {code for column in facts.columns for code in column.currencies}
                if field_type == "money" and len(currencies) > 1:
                    self.evidence.append(f"in {len(currencies)} currencies, which are not kept: text would keep them")
                return
            if bad <= _MOST_SLIPS * facts.values and facts.values >= _SLIPS_ROWS:
                self.spec.update({"type": field_type, "severity": "warning"})
                self.evidence.append(f"all but {bad:,} {_VALUES_OF_TYPE[field_type]}, so this is a warning")
                strict = {"severity": "error"}
                text = f"{bad:,} of {facts.values:,} values are not {_VALUES_OF_TYPE[field_type]}: are those errors?"
                self.questions.append(DraftQuestion("type", facts.name, text, strict))
                return
        self.spec["type"] = "text"
        if facts.any_of("zeros"):
            self.evidence.append("digits with leading zeros, so text")
        else:
            self.evidence.append("texts" if facts.bad("integer") else "numbers that name things, so text")

    def _set_cleaning(self) -> None:
        """Set the cleaning steps that the values need, if they need more than the default."""
        facts = self._facts
        steps = ["strip"]
        kind: str = self.spec["type"]
        if kind == "text" and facts.any_of("inner_blanks"):
            steps.append("collapse")
        if facts.nothings and facts.values:
            steps.append("nullify")
            self.evidence.append(f"{facts.nothings:,} cells such as n/a are read as blank")
        if len(steps) > 1 and "clean" not in facts.declared:
            self.spec["clean"] = steps

    def _set_date_order(self) -> None:
        """Set the one format that all dates have; ask for the order of day and month where it is open.

        A job tries formats first, and still reads dates that are written in other ways.
        """
        facts = self._facts
        kind: str = self.spec["type"]
        if kind not in TEMPORAL or facts.kinds()["date"] == facts.values or "formats" in facts.declared:
            return
        texts = [text for text in facts.counts if not text.replace(".", "", 1).isdecimal() or len(text) == 8]
        formats = formats_of(texts, kind).formats
        if len(formats) == 1:
            self.spec["formats"] = list(formats)
            self.evidence.append(f"written as {formats[0]}")
            if formats[0].startswith(("%d/%m", "%m/%d", "%d-%m", "%m-%d")) and kind != "time":
                self.spec["day_first"] = formats[0].startswith("%d")
        elif orders := self._report_mixed_orders(kind):
            self.evidence.append(orders)
        elif len(formats) > 1:
            day_form = next((form for form in formats if form.startswith("%d")), formats[0])
            month_form = next((form for form in formats if form.startswith("%m")), formats[-1])
            self.evidence.append("nothing shows whether the day or the month comes first")
            text = "does the day come before the month?"
            day, month = ({"day_first": form == day_form, "formats": [form]} for form in (day_form, month_form))
            self.questions.append(DraftQuestion("date_order", facts.name, text, day, _example_values(facts), month))

    def _report_mixed_orders(self, kind: str) -> str:
        """Say in words that the samples write dates in different orders; empty if they do not."""
        forms = [formats_of(list(column.counts), kind).formats for column in self._facts.columns]
        firsts = {form[0][:2] for form in forms if len(form) == 1 and form[0][2:3] in "/-"}
        if not {"%d", "%m"} <= firsts:
            return ""
        return "some samples write the day first and others the month: say day_first in an overlay for each sender"

    def _set_presence(self) -> None:
        """Set whether the field is required, or its column optional, and note why as evidence."""
        facts = self._facts
        blank = facts.rows - facts.values
        if len(facts.files) < self._files:
            self.spec["optional"] = True
            self.evidence.append(f"{self._files - len(facts.files)} of {self._files} samples have no such column")
        elif not blank and facts.rows >= self._full_rows():
            self.spec["required"] = True
            self.evidence.append("never blank")
        elif blank:
            self.evidence.append(f"{blank:,} blank")

    def _full_rows(self) -> int:
        """Return how many rows without a blank show that the field is never blank; a key shows it sooner."""
        if self._facts.is_identifier and not self._facts.any_of("repeats"):
            return _FEW_ROWS if self._files > 1 else _ALONE_ROWS
        return _FULL_ROWS

    def _set_key(self) -> None:
        """Set `unique` for a column that names its rows, without a repeat in any sample; ask if the rows are few."""
        facts = self._facts
        kind: str = self.spec["type"]
        if facts.any_of("repeats") or kind not in ("text", "integer") or not facts.is_identifier:
            return
        if facts.hints_at("postcode", "phone", "house_number"):
            return
        is_full = facts.values > 0 and facts.values >= facts.rows
        if not is_full or any(fit.fractions for fit in facts.fit("decimal")):
            return
        several = len(facts.files) > 1
        if several and facts.rows >= _KEY_ROWS and min(column.rows for column in facts.columns) >= _FEW_ROWS:
            self.spec["unique"] = True
            self.evidence.append(NEVER_TWICE)
        else:
            text = f"no value occurs twice in {facts.rows} rows: is it unique in every file?"
            self.questions.append(DraftQuestion("unique", facts.name, text, {"unique": True}, _example_values(facts)))

    def _set_allowed(self) -> None:
        """Set a list of allowed values where more rows and samples would bring no new ones; ask where they might."""
        facts = self._facts
        if self.spec["type"] != "text" or facts.is_personal or facts.overflow or "unique" in self.spec:
            return
        counts = facts.counts
        different = {value.casefold() for value in counts}
        if not 2 <= len(different) <= _MOST_ALLOWED or max(map(len, counts)) > _LONGEST_ALLOWED:
            return
        if facts.bad("decimal") * 2 < facts.values:  # numbers, but for some that are none
            return
        values = sorted(counts)
        if _is_saturated(facts, len(different)) and not facts.hints_at(*_OPEN_CLASSES):
            self.spec.update({"type": "enum", "allowed": values})
            self.evidence.append(f"{len(different)} different values, each in every sample")
        elif facts.values >= _OFTEN_EACH_FILE * len(different):
            text = f"are these {len(different)} values all that may occur?"
            change = {"type": "enum", "allowed": values}
            self.questions.append(DraftQuestion("allowed", facts.name, text, change, tuple(values[:10])))

    def _set_pattern(self) -> None:
        """Set the pattern of codes that all values match, if need be after writing them in capitals.

        Where letters vary under a header that says nothing, the values may be words as well: then it asks.
        """
        facts = self._facts
        kind: str = self.spec["type"]
        if (
            kind not in ("text", "phone")
            or facts.overflow
            or "pattern" in facts.declared
            or facts.values < _CODES_FOR_PATTERN
        ):
            return
        counts: Mapping[str, int] = facts.counts
        if kind == "phone" and not all(text.isdecimal() for text in counts):
            return  # phone numbers are normalized before they are compared
        counted = not facts.is_about("postcode", "phone")
        fillers = 0 if facts.is_personal else 2
        pattern, in_capitals = pattern_of(counts, counted=counted, most_fillers=fillers), False
        if pattern is None and kind == "text" and facts.is_identifier:
            capitals = Counter[str]()
            for text, times in counts.items():
                capitals[text.upper()] += times
            pattern, in_capitals = pattern_of(capitals, counted=counted, most_fillers=fillers), True
        if pattern is None or (facts.is_personal and _has_word(pattern)):
            return
        change: Spec = {"pattern": pattern}
        if in_capitals:
            change["clean"] = [*self.spec.get("clean", ["strip"]), "upper"]
        if "[A-Z]" in pattern and not facts.is_understood:
            text = f"all {facts.values:,} values match {pattern}: must every value?"
            self.questions.append(DraftQuestion("pattern", facts.name, text, change, _example_values(facts)))
            return
        self.spec.update(change)
        self.evidence.append(f"all match {pattern}" + (" in capitals" if in_capitals else ""))

    def _set_range(self) -> None:
        """Set wide bounds that only mistakes exceed: ten times as much, decades apart."""
        facts = self._facts
        kind: str = self.spec["type"]
        if kind not in NUMERIC | TEMPORAL or kind == "time" or facts.values < _RANGE_VALUES or "severity" in self.spec:
            return
        fits = facts.fit({"money": "decimal"}.get(kind, kind))
        lows = [fit.low for fit in fits if fit.low is not None]
        highs = [fit.high for fit in fits if fit.high is not None]
        if not lows:
            return
        low, high = min(lows), max(highs)
        bounds = _days_around(low, high, kind) if kind in TEMPORAL else _numbers_around(facts, kind, low, high)
        self.spec.update(bounds)
        if bounds:
            self.evidence.append("the bounds leave room")


def _field_type(kind: str, facts: FieldFacts) -> str:
    """Return the type for values that fit a tried type: whole numbers may be amounts, dates may have a time."""
    if kind in ("integer", "decimal"):
        is_amount = facts.is_about("money") and not facts.is_about("quantity")
        if is_amount or facts.any_of("currencies") or any(_is_money(c.units) for c in facts.columns):
            return "money"
        whole = not any(fit.fractions for fit in facts.fit("decimal"))
        return "integer" if whole and kind == "integer" else "decimal"
    if kind == "date" and any(fit.timed for fit in facts.fit("datetime")):
        return "datetime"
    return kind


def _is_money(units: frozenset[str]) -> bool:
    """Whether number formats show a currency."""
    return any(unit.strip(",. ").upper() in _CURRENCIES for unit in units)


_CURRENCIES: Final = frozenset(
    {"€", "$", "£", "¥", "₹", "EUR", "USD", "GBP", "CHF", "JPY", "CAD", "AUD", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF"}
)


def _is_flag(facts: FieldFacts) -> bool:
    """Whether the values are flags: cells of true and false, or words for both; 0 and 1, or words for one of them, only
    if the header says so."""
    if facts.kinds()["boolean"]:
        return True
    words = {value.casefold() for value in facts.counts}
    means = {BOOLEANS[word] for word in words if word in BOOLEANS}
    if words <= _FLAG_WORDS:
        return facts.is_about("boolean")
    return len(means) == 2 or (len(means) == 1 and facts.is_about("boolean"))


def _is_day(facts: FieldFacts) -> bool:
    """Whether cells are dates, or texts that are more than a number; digits alone only if the header says so."""
    if facts.kinds()["date"]:
        return True
    bare = sum(count for text, count in facts.counts.items() if text.replace(".", "", 1).isdecimal())
    return not bare or (facts.is_about("date") and facts.bad("date") == 0)


def _is_number(facts: FieldFacts) -> bool:
    """Whether digits are numbers, and not names of things, which may lose zeros as numbers."""
    if facts.any_of("zeros") or facts.any_of("digits") or facts.is_about("postcode", "phone", "house_number", "uuid"):
        return False
    if not facts.is_identifier:
        return True
    all_are_numbers = facts.kinds()["number"] == facts.values
    if all_are_numbers and not facts.is_about("identifier"):
        return True
    return max(map(len, facts.counts)) <= _SHORT_NUMBER and len(facts.counts) < facts.values  # a count or a position


def _is_percent(facts: FieldFacts) -> bool:
    """Whether each column shows percents, in its texts or by its number formats."""
    shown = [column for column in facts.columns if column.percents or "%" in column.units]
    return len(shown) == len(facts.columns)


def _is_phone(facts: FieldFacts) -> bool:
    """Whether a field has phone numbers, by its headers or its values."""
    if facts.is_about("phone", least=0.5) or any("phone" in head_classes(header) for header in facts.headers):
        return True
    with_plus = sum(count for text, count in facts.counts.items() if text.startswith("+"))
    return with_plus * 2 > facts.values


# The types that are tried, in this order, and whether each may be meant at all.
_CANDIDATES: Final[tuple[tuple[str, Callable[[FieldFacts], bool]], ...]] = (
    ("boolean", _is_flag),
    ("email", lambda _: True),
    ("url", lambda _: True),
    ("phone", _is_phone),
    ("percent", _is_percent),
    ("integer", _is_number),
    ("decimal", _is_number),
    ("date", _is_day),
    ("datetime", _is_day),
    ("time", lambda facts: not facts.kinds()["number"]),
)
_VALUES_OF_TYPE: Final = {
    "boolean": "yes/no values", "email": "email addresses", "url": "web addresses", "phone": "phone numbers",
    "percent": "percentages", "integer": "whole numbers", "decimal": "numbers", "money": "amounts of money",
    "date": "dates", "datetime": "dates with a time", "time": "times of day",
}  # fmt: skip


def _is_saturated(facts: FieldFacts, different: int) -> bool:
    """Whether a value that was never seen is unlikely to come, so that the values seen are a complete list.

    There must be several samples, all values must be frequent, and each must be in all samples. Two values say little,
    unless the header names a choice. Rows count as draws only if they could have come out otherwise. A list that is
    repeated under each item is one draw, however many rows it has: the next file may have another list.
    """
    if len(facts.files) < 2 or min(facts.counts.values()) < _EACH_OFTEN:
        return False
    closed = different >= _FEW_VALUES or facts.is_about("category", "status", "boolean")
    everywhere = all(len(column.counts) == len(facts.counts) for column in facts.columns)
    often = _OFTEN_EACH_FILE if len(facts.files) > 2 else _OFTEN_IN_TWO_FILES
    return closed and everywhere and facts.values >= often * different and not all(map(_is_even, facts.columns))


def _is_even(column: ColumnFacts) -> bool:
    """Whether all values occur equally often, as in a list that is repeated."""
    times = column.counts.values()
    return max(times) - min(times) <= 1


def _numbers_around(facts: FieldFacts, kind: str, low: float, high: float) -> Spec:
    """Choose `min` and `max` well around the numbers that were seen; empty if none can be said.

    Numbers below zero are only ruled out where they mean nothing, or where many values have none.
    """
    if kind == "decimal" and facts.is_about(*_SIGNED_CLASSES):
        limit = 90 if facts.is_about("latitude") else 180
        return {"min": -limit, "max": limit} if -limit <= low and high <= limit else {}
    if kind == "percent":
        return {"min": 0} if low >= 0 and facts.values >= _MONEY_VALUES else {}
    power_of_ten = 10 ** ceil(log10(max(abs(low), abs(high), 1.0)) + 1)
    bounds: Spec = {"max": power_of_ten}
    if low < 0:
        bounds["min"] = -power_of_ten
    elif kind != "money" and (facts.is_about(*_NONNEGATIVE_CLASSES) or facts.values >= _MONEY_VALUES):
        bounds["min"] = 0
    return bounds


def _has_word(pattern: str) -> bool:
    """Whether a pattern of codes spells out a word in small letters."""
    return re.search("[a-z]{2}", re.sub(r"\[[^\]]*\]", "", pattern)) is not None


def _days_around(low: Any, high: Any, kind: str) -> Spec:
    """Choose `min` and `max` well around the dates that were seen, in whole years."""
    years = max(_LEAST_YEARS, high.year - low.year)
    first, last = max(1, low.year - years), min(9999, high.year + years)
    first_day: date = date(first, 1, 1)
    last_day: date = date(last, 12, 31)
    if kind == "datetime":
        first_day, last_day = datetime.combine(first_day, time()), datetime.combine(last_day, time(23, 59, 59))
    return {"min": first_day.isoformat(), "max": last_day.isoformat()}


def _example_values(facts: FieldFacts) -> tuple[str, ...]:
    """Return the most frequent values, cut, as examples for a question."""
    return tuple(text[:40] for text, _ in facts.counts.most_common(3))
