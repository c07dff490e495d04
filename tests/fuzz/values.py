# ruff: noqa: RUF001  # signs of many scripts
"""Random texts through every parser of values: none raises, and what samples a column and what converts it agree.

python -m tests.fuzz.values [--texts 2000000] [--seed 1] [--jobs 2] [--engine 0.01]

A column of texts of many alphabets, digits, signs and exponents is tallied and converted as each type; one column in a
few dozen (`--engine`) also goes through the whole engine, as `ade try` runs it. The oracle reads every text by itself under
each convention: decimal point or comma, day or month first, share or percent. Prints what was tried; exit 1 and one
line per difference if anything differs, with the seed that makes it again.
"""

import argparse
import csv
import io
import json
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Final

import openpyxl

from core.fields import Clean, FieldType
from core.manifests import parse_manifest
from runner.engine.common.fields import Field
from runner.engine.job import run as run_engine
from runner.engine.mapping.sample import Sample
from runner.engine.reading.number_formats import format_of, shower_of
from runner.engine.values import numbers, words
from runner.engine.values.convention_choices import Convention
from runner.engine.values.convert import REMARKS, Converter, fold, text_of
from runner.engine.values.decisions import decide_convention, tally_values
from runner.engine.values.tallies import DateTally, NumberTally, TruthTally
from runner.engine.values.words import BAD

# Signs of every kind; each line is an alphabet of its own.
ALPHABETS: Final = (
    "0123456789", "0123456789.,", "0123456789.,-+ eE", "0123456789/-. :", "0123456789:.,TZ+- ", "٠١٢٣٤٥٦٧٨٩٫٬",
    "०१२३४५६७८९.", "０１２３４５６７８９．，／：－", "²³¹⁴⁵½¼¾⅓①②③⑴⒈Ⅷ〇零", "𝟎𝟏𝟐𝟑𝟜𝟝", "()[]{}<>%‰％$€£¥₹₽kgKČzł",
    "abcdefghijklmnopqrstuvwxyz", "ABCXYZ -_#/", "äöüßéèñçøåłşğıİſ", "абвгдежзия", "αβγδε", "日月年元令和平成昭和", "نعملا", "אבגד",
    "\u0301\u0308\u200b\u200d\u200e\u202e\u2066\ufeff\u00ad", " \t\u00a0\u2009\u202f\u3000\x1f\x0b\x85\u2028", "\n\r",
    "\ud800\udfff\udc80", "\x00\x01\x7f\ufffe\uffff", "😀👍🏽🇩🇪", "@.:/?#www", "'’`´\"«»", "−–—‐‑＋±~", "xX×✓✗☐",
)  # fmt: skip
# What people write; mutated, cut and glued together.
SEEDS: Final = (
    "1234.56", "1,234.56", "1.234,56", "1 234,56", "1'234.50", "12,34,567.89", "1.234", "1,234", "0.5", "0,5", "100,-", "50.—",
    "(12.50)", "-7", "7-", "5+", "+3", "1e5", "1.2E+15", "1E-400", "1e999", "12345.A1", "12345.6 kg", "11357.5(A)HS", "$1,234.50",
    "€ 5,00", "5,00 €", "USD 3.000", "12 %", "12,5%", "(45%)", "0.45", "45", "1", "1.0", "0", "-0", "00012", "9" * 16, "9" * 70,
    "2026-01-31", "31/12/2025", "12/31/2025", "01/02/2025", "1.2.2025", "01.02.25", "31.12.99", "25/12/31", "1-2-03", "2026-31-01",
    "20260131", "260131", "45123", "45123.5", "1769853600", "1769853600000", "202601311015", "2026-W05-1", "31 Jan 2026", "Jan 31, 2026",
    "Mon, 05/01/2026", "5. März 2026", "1er janvier 2026", "令和8年3月1日", "R8.3.1", "2026年3月1日", "2026-01-31T10:15:00Z", "10:15",
    "10:15:30.123456789", "3 pm", "15h30", "10:15-11:00", "24:00", "2026-01-31 10:15 CET", "9999-12-31", "0000-00-00", "29.02.2025",
    "yes", "No", "x", "X", "✓", "ja", "0.0", "TRUE", "нет", "n/a", "-", "#N/A", "NaN", "inf", "-Infinity", "None", "null", "",
    "ann@example.com", "Ann <ann@EXAMPLE.com>", "mailto:a@b.co", "a@b", "@", "+49 (0)30 1234567", "030 1234567/68", "5551234567.0",
    "555-1234 ext. 12", "tel:+1 555 123 4567", "www.example.com", "https://user:pw@host:8080/x?y#z", "http://[::1]/", "ftp://a.b",
)  # fmt: skip
TYPES: Final = tuple(str(kind) for kind in FieldType)
FORMATS: Final = (
    "%Y-%m-%d",
    "%d/%m/%Y",
    "%m/%d/%y",
    "%d.%m.%Y %H:%M",
    "%y%m%d",
    "%d-%b-%Y",
    "%I:%M %p",
    "%j/%Y",
    "%Y%m%dT%H%M%S",
)
LONGEST: Final = 32_767
SHOWN: Final = 20  # differences that are printed


@dataclass
class Tried:
    """What was tried, and what went wrong."""

    texts: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def add(self, other: "Tried") -> None:
        self.texts += other.texts
        self.counts += other.counts
        self.broken += other.broken


def random_text(rng: Random) -> str:
    chance = rng.random()
    if chance < 0.3:
        return mutated(rng, rng.choice(SEEDS))
    if chance < 0.5:
        return rng.choice(SEEDS)
    if chance < 0.6:
        return rng.choice(SEEDS) + rng.choice(("", " ", "\t", ".", "/")) + rng.choice(SEEDS)
    if chance < 0.6003:
        unit = rng.choice(SEEDS) or " "
        return (unit * (LONGEST // len(unit) + 1))[:LONGEST]
    alphabets = rng.sample(ALPHABETS, rng.randrange(1, 4))
    return "".join(rng.choice(rng.choice(alphabets)) for _ in range(rng.randrange(1, 24)))


def mutated(rng: Random, text: str) -> str:
    """A text with some of its signs replaced, doubled, inserted or taken out; or its digits in another script."""
    for _ in range(rng.randrange(1, 4)):
        at, sign = rng.randrange(len(text) + 1), rng.choice(rng.choice(ALPHABETS))
        how = rng.randrange(5)
        if how == 0:
            text = text[:at] + sign + text[at:]
        elif how == 1:
            text = text[:at] + sign + text[at + 1 :]
        elif how == 2:
            text = text[:at] + text[at + 1 :]
        elif how == 3:
            text = text[:at] + text[at : at + 1] * 2 + text[at + 1 :]
        else:
            zero = ord(rng.choice("٠०０۰๐𝟎"))
            text = "".join(chr(zero + ord(c) - 48) if c in "0123456789" else c for c in text)
    return text


def random_column(rng: Random) -> list[str]:
    """Texts of few kinds: a column in which a convention can be proven, or not."""
    size = rng.choice((1, 3, 10, 40, 100))
    kinds = [random_text(rng) for _ in range(rng.randrange(1, 5))]
    return [_relative(rng, rng.choice(kinds)) if rng.random() < 0.6 else random_text(rng) for _ in range(size)]


def _relative(rng: Random, text: str) -> str:
    """The same form with other digits, as the cells of a column are."""
    return "".join(rng.choice("0123456789") if c in "0123456789" else c for c in text) if len(text) < 100 else text


def random_field(rng: Random, kind: str) -> dict[str, Any]:
    made: dict[str, Any] = {"name": kind, "type": kind}
    if kind == "enum":
        made["allowed"] = rng.sample(SEEDS, 4)
    if rng.random() < 0.1:
        made["clean"] = rng.sample([str(step) for step in Clean], rng.randrange(4))
    if kind in ("date", "datetime", "time") and rng.random() < 0.15:
        made["formats"] = rng.sample(FORMATS, 2)
    return made


class Column:
    """One column under one field, sampled and converted as the engine does it."""

    def __init__(self, spec: dict[str, Any], texts: Sequence[str]) -> None:
        self.field = Field(spec)
        self.texts = list(texts)
        self.tally = tally_values(self.field, texts)
        self.convention = decide_convention(self.field, self.tally)[0] if self.tally is not None else Convention()
        self.converter = Converter(self.field, convention=self.convention)
        self.values = read(self.converter, self.texts)

    def remarks(self, text: str) -> tuple[str, ...]:
        return self.converter.remarks.get(text, ())

    def under(self, convention: Convention, **changes: Any) -> tuple[Converter, list[Any]]:
        """What every text is under another convention."""
        spec = {
            "name": "a",
            "type": self.field.type,
            "clean": list(self.field.clean),
            "formats": list(self.field.formats),
        }
        converter = Converter(Field(spec | changes), convention=convention)
        return converter, read(converter, self.texts)


def read(converter: Converter, texts: Sequence[Any]) -> list[Any]:
    values, bad = converter.convert(list(texts))
    out = list(values)
    for index in bad:
        out[index] = BAD
    return out


def differences(column: Column) -> Iterator[str]:
    """Where sampling and converting disagree about a column."""
    yield from _alone(column)
    if isinstance(column.tally, NumberTally) and column.field.type != "integer":
        yield from _numbers(column)
    if isinstance(column.tally, DateTally):
        yield from _dates(column)
    if isinstance(column.tally, TruthTally):
        yield from _truths(column)


def _alone(column: Column) -> Iterator[str]:
    """A text is the same value in a chunk of texts and beside other kinds of cells."""
    fresh = Converter(column.field, convention=column.convention)
    beside = read(fresh, [None, *column.texts, 5])
    for text, value, other in zip(column.texts, column.values, beside[1:], strict=False):
        if not same(other, value):
            yield f"{text!r} is {value!r} in a chunk of texts and {other!r} beside numbers"
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            yield f"{text!r} is {value!r}"
        if any(code not in REMARKS for code in column.remarks(text)):
            yield f"{text!r} has unknown remarks"


def _numbers(column: Column) -> Iterator[str]:
    tally, sign = column.tally, column.convention.decimal
    assert isinstance(tally, NumberTally)
    convention = column.convention
    _, points = column.under(convention._replace(decimal="."), decimal=".")
    _, commas = column.under(convention._replace(decimal=","), decimal=",")
    seen: Counter[str] = Counter()
    for text, value, point, comma in zip(column.texts, column.values, points, commas, strict=True):
        if "e" in text.casefold():  # an exponent may be too large for a number, whatever the sign
            continue
        kind = _kind(point, comma)
        seen[kind] += 1
        told = "decimal_mixed" in column.remarks(text)
        wanted = {"point": point, "comma": comma, "either": comma if sign == "," else point}.get(kind, point)
        if not same(value, wanted):
            yield f"{text!r}: announced {sign!r}, {point!r} with a point and {comma!r} with a comma, converted to {value!r}"
        if kind in ("point", "comma") and sign not in (None, {"point": ".", "comma": ","}[kind]) and not told:
            yield f"{text!r}: announced {sign!r}, read by another sign and not told"
        if kind == "either" and sign is None and "decimal_assumed" not in column.remarks(text):
            yield f"{text!r}: nothing announced, and not told"
    if not any("e" in text.casefold() for text in column.texts):
        counted = {"point": tally.point, "comma": tally.comma, "either": tally.unclear}
        if counted != {kind: seen[kind] for kind in counted}:
            yield f"sampled {counted}, converted {dict(seen)}: {column.texts!r}"
    if column.field.type == "percent":
        yield from _percents(column)
    for text in column.texts:
        for decimal in (".", ","):
            fast = numbers.quick_number(text, decimal)
            if fast is not None and not same(fast, numbers.parse_number(text, None, decimal)):
                yield f"{text!r}: {fast!r} by the fast path"


def _kind(point: Any, comma: Any) -> str:
    """What a text proves, by its readings with each decimal sign."""
    if point is None or (point is BAD and comma is BAD):
        return "none"
    if point is BAD or comma is BAD:
        return "comma" if point is BAD else "point"
    return "same" if same(point, comma) else "either"


def _percents(column: Column) -> Iterator[str]:
    """Texts that a percent sign settles are those that are counted as signed."""
    assert isinstance(column.tally, NumberTally)
    convention = column.convention
    _, shares = column.under(convention._replace(in_percent=False), unit="share")
    _, percents = column.under(convention._replace(in_percent=True), unit="percent")
    pairs = [(s, p) for s, p in zip(shares, percents, strict=True) if s is not BAD and p is not BAD and s is not None]
    plain = sum(not same(s, p) for s, p in pairs)
    counted = column.tally.shares + column.tally.beyond_one + column.tally.exactly_one
    signed = sum(same(s, p) and bool(s) for s, p in pairs)
    if column.tally.with_percent_sign < signed or (plain and not counted):
        yield f"sampled {column.tally.with_percent_sign} signed and {counted} plain, converted {signed} and {plain}: {column.texts!r}"


def _dates(column: Column) -> Iterator[str]:
    if column.field.formats or column.convention.year_first:
        return
    tally = column.tally
    assert isinstance(tally, DateTally)
    days, day = column.under(column.convention._replace(day_first=True, dots_day_first=True))
    months, month = column.under(column.convention._replace(day_first=False, dots_day_first=False))
    _, dotted = column.under(column.convention._replace(day_first=False, dots_day_first=True))
    seen: Counter[str] = Counter()
    if any("zone_converted" in days.remarks.get(text, ()) and ":" in text for text in column.texts) and not tally.zoned:
        yield f"no zone sampled, some converted: {column.texts!r}"
    for n, text in enumerate(column.texts):
        mixed = ["date_order_mixed" in one.remarks.get(text, ()) for one in (days, months)]
        kind = (
            "none"
            if day[n] is BAD
            else "open"
            if day[n] != month[n]
            else "month"
            if mixed[0]
            else "day"
            if mixed[1]
            else "same"
        )
        seen[kind] += 1
        by_dots = kind == "open" and dotted[n] == day[n]
        order = column.convention.dots_day_first if by_dots else column.convention.day_first
        if kind == "open" and order is None and "date_order_assumed" not in column.remarks(text):
            yield f"{text!r}: no order announced, read {column.values[n]!r} and not told"
        if kind == "open" and order is not None and column.values[n] != (day if order else month)[n]:
            yield f"{text!r}: announced {'day' if order else 'month'} first, converted to {column.values[n]!r}"
        if kind in ("day", "month") and order is not None and order != (kind == "day") and not mixed[not order]:
            yield f"{text!r}: read in another order than announced and not told"
    counted = {
        "day": tally.slashed.day_first + tally.dotted.day_first,
        "month": tally.slashed.month_first + tally.dotted.month_first,
        "open": tally.slashed.unclear + tally.dotted.unclear,
    }
    if any(seen[kind] > count for kind, count in counted.items()):  # it may count dates with something behind them, too
        yield f"sampled {counted}, converted {dict(seen)}: {column.texts!r}"


def _truths(column: Column) -> Iterator[str]:
    known = [words.parse_boolean(words.cleaner(column.field.clean)(text)) for text in column.texts]
    cross = [words.cleaner(column.field.clean)(text).strip().casefold() == "x" for text in column.texts]
    others = {value for value, one in zip(known, cross, strict=True) if not one and isinstance(value, bool)}
    if any(cross) and ("x" in column.convention.marks) is not (others == {True}):
        yield f"crosses beside {others}: sampled {column.convention.marks}: {column.texts!r}"


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def other_parsers(texts: Sequence[str]) -> None:
    """Parsers without a convention to agree on: mapping's samples, number formats, folding."""
    sample = Sample(texts)
    sample.class_log_odds()
    for text in texts:
        fold(text_of(text))
        code = text[:255]
        format_of(code)
        shower_of(code)


def through_engine(rng: Random, texts: Sequence[str], folder: Path) -> Iterator[str]:
    """One file of a column per type; each cell of the output is a reading that was announced, or has a finding."""
    texts = [text.encode(errors="replace").decode().replace("\0", "") or "-" for text in texts if len(text) < 5000]
    fields = [{"name": "id", "required": True, "unique": True}, *(random_field(rng, kind) for kind in TYPES)]
    sink = io.StringIO()
    writer = csv.writer(sink, quoting=csv.QUOTE_ALL)
    writer.writerow([f["name"] for f in fields])
    writer.writerows([f"row {n}", *[text] * len(TYPES)] for n, text in enumerate(texts, 1))
    (folder / "in.csv").write_text(sink.getvalue(), encoding="utf-8", newline="")
    spec = {
        "manifest": 1,
        "name": "fuzz",
        "fields": fields,
        "reading": {"encoding": "utf-8", "delimiter": ",", "quote": '"'},
    }
    manifest = parse_manifest(json.dumps(spec).encode()).model_dump(mode="json")
    order = {
        "order": 1, "job": {"job_id": "fuzz"}, "manifest": manifest, "params": {},
        "inputs": [{"role": "primary", "name": "in.csv", "path": "in.csv"}],
        "outputs": {name: name for name in ("normalized.xlsx", "artifact.json")},
        "sandbox": {"driver": "process", "level": "limits", "rungs": {}},
    }  # fmt: skip
    channel = io.StringIO()
    run_engine(order, channel, folder=folder)
    end = json.loads(channel.getvalue().splitlines()[-1])
    if not end["ok"]:
        if end["error"]["code"] not in ("nothing_mapped", "empty_input"):
            yield f"the job ended as {end['error']}"
        return
    artifact = json.loads((folder / "artifact.json").read_bytes())
    yield from _as_announced(texts, fields, artifact, folder / "normalized.xlsx")


def _as_announced(
    texts: list[str], fields: list[dict[str, Any]], artifact: dict[str, Any], output: Path
) -> Iterator[str]:
    validation = artifact["validation"]
    announced = {t["field"]: t for t in artifact["transforms"]}
    told = {(f.get("field"), f.get("row")) for f in validation["findings"]}
    is_cut = validation["kept"] < validation["total"]  # then a cell may have a finding that is not listed
    header, *rows = openpyxl.load_workbook(output).worksheets[0].iter_rows(values_only=True)
    mapped = {m["target"]: m["header"] for m in artifact["mapping"] if m["target"]}
    for spec in fields[1:]:
        name, kind = spec["name"], spec["type"]
        if mapped.get(name) != name or kind not in ("decimal", "money", "date", "datetime"):
            continue
        said = announced[name]
        order = said["day_first"]
        convention = Convention(said["decimal"], order, said.get("dots_day_first", order))
        unix = any(r.get("field") == name and r["chosen"].startswith("Unix") for r in artifact["readings"])
        converter = Converter(Field(spec), convention=convention._replace(numbers="seconds" if unix else "days"))
        for row in rows:
            number, cell = int(str(row[0]).removeprefix("row ")), row[header.index(name)]
            text = texts[number - 1]
            (value,) = read(converter, [text])
            if value is None or {(name, number + 1), (name, None)} & told or (is_cut and isinstance(cell, str)):
                continue
            if not _holds(cell, value):
                yield f"{text!r} as {kind}: announced {convention}, {value!r} expected, {cell!r} written"


def _holds(cell: Any, value: Any) -> bool:
    """Whether a cell of the output holds a value; days before 1900 and long numbers are texts."""
    if isinstance(value, datetime):
        return isinstance(cell, str) or (isinstance(cell, datetime) and abs((cell - value).total_seconds()) < 1)
    if isinstance(value, date):
        return isinstance(cell, str) or (isinstance(cell, datetime) and cell.date() == value)
    return isinstance(value, (int, float, Decimal)) and (
        Decimal(cell) == Decimal(value) if isinstance(cell, str) else cell is not None and float(cell) == float(value)
    )


def fuzz(texts: int, seed: int, engine: float = 0.01) -> Tried:
    """Try about so many texts, in columns; the same seed tries the same ones."""
    tried = Tried()
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        while tried.texts < texts:
            number += 1
            rng = Random(f"{seed}/{number}")
            column = random_column(rng)
            tried.texts += len(column)
            tried.counts["columns"] += 1
            try:
                other_parsers(column)
                for kind in TYPES:
                    made = Column(random_field(rng, kind), column)
                    tried.counts["values"] += sum(v is not BAD and v is not None for v in made.values)
                    tried.counts["told"] += len(made.converter.remarks)
                    tried.broken += [f"seed {seed}/{number}, {kind}: {one}" for one in differences(made)]
                if rng.random() < engine:
                    tried.counts["engine jobs"] += 1
                    more = [text for _ in range(10) for text in random_column(rng)]
                    tried.texts += len(more)
                    tried.broken += [
                        f"seed {seed}/{number}, engine: {one}" for one in through_engine(rng, more, Path(folder))
                    ]
            except Exception as error:  # noqa: BLE001  # any is what is looked for
                place = traceback.extract_tb(error.__traceback__)[-1]
                said = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
                tried.broken.append(f"seed {seed}/{number}: {said}: {column!r}"[:500])
    return tried


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--texts", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--engine", type=float, default=0.01, help="share of the columns that go through the engine")
    given = parser.parse_args(arguments)
    began, parts = time.monotonic(), max(1, given.jobs) * 8
    tried = Tried()
    with ProcessPoolExecutor(given.jobs) as pool:
        share = -(-given.texts // parts)
        for part in pool.map(
            fuzz, [share] * parts, range(given.seed * 1000, given.seed * 1000 + parts), [given.engine] * parts
        ):
            tried.add(part)
    for line in tried.broken[:SHOWN]:
        print(line.encode(errors="backslashreplace").decode())
    counts = ", ".join(f"{count:,} {name}" for name, count in sorted(tried.counts.items()))
    print(f"{tried.texts:,} texts as {len(TYPES)} types: {counts}; {len(tried.broken)} differences", end="; ")
    print(f"{time.monotonic() - began:.0f} s; again with: --texts {given.texts} --seed {given.seed}")
    return 1 if tried.broken else 0


if __name__ == "__main__":
    sys.exit(main())
