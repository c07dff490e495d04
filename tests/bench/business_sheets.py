"""How well the matcher knows the sheets of many businesses: bare field names, nothing learnt.

    python -m tests.bench.business_sheets                 # the half to tune on, with what is wrong and missed
    python -m tests.bench.business_sheets --half held     # the half to judge by: do not tune on what it prints
    python -m tests.bench.business_sheets --sheets stranger   # of other businesses, written before the knowledge was
    python -m tests.bench.business_sheets --sheets form --half all --learn   # what one year's form teaches of another

`business_sheets.txt`, `stranger_sheets.txt` and `form_sheets.txt` hold the sheets. They are made up, and alternately
one is tuned on and one is held back.
"""

import argparse
import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from runner.engine.common.fields import Field
from runner.engine.mapping.column_evidence import ColumnIn
from runner.engine.mapping.evidence import EMPTY
from runner.engine.mapping.sample import Sample
from runner.engine.mapping.score import choose
from runner.engine.memory.recall import Recall

ROWS = 25
SURE = 0.8
DATES = {"en": "%m/%d/%Y", "de": "%d.%m.%Y", "pl": "%d.%m.%Y", "tr": "%d.%m.%Y", "ru": "%d.%m.%Y", "ja": "%Y/%m/%d", "zh": "%Y-%m-%d", "sv": "%Y-%m-%d", "nl": "%d-%m-%Y", "ar": "%d/%m/%Y"}  # fmt: skip
POINTED = {"en", "ja", "zh", "ar"}
WORDS = {
    "first": "Anna,Peter,Maria,John,Lucia,Sven,Paul,Eva,Marco,Julie",
    "last": "Smith,Müller,Garcia,Rossi,Novak,Jansen,Larsen,Dupont,Silva,Brown",
    "company": "Acme Ltd,Muster GmbH,Nordic AB,Blue Sky Inc,Rossi S.r.l.,Delta BV,Omega SA,Kaya Ltd,Iron & Co,Vega SL",
    "street": "12 Main St,Bahnhofstr. 4,Rue de la Gare 7,Calle Mayor 3,Via Roma 21,88 Oak Ave,Storgatan 5,Kerkstraat 9",
    "streetname": "Bahnhofstr.,Hauptstraße,Lindenweg,Am Markt,Gartenstr.,Ringstraße",
    "city": "Springfield,Berlin,Lyon,Sevilla,Torino,Utrecht,Porto,Malmö,Ankara,Boston",
    "state": "NY,CA,TX,TO,MI,SE,WA,OR",
    "country": "Germany,USA,FR,Spain,IT,NL,Sweden",
    "currency": "EUR,EUR,EUR,USD,GBP",
    "product": "Steel bolt M8,Office chair,Printer paper A4,LED lamp,Garden hose,Desk 120 cm,Water pump",
    "text": "checked,see file,urgent,monthly fee,spare parts,visit in May,,,",
    "status": "Active,Closed,Open,Standard,Premium,Web,Pending",
    "terms": "Net 30,Net 14,2/10 net 30,Due on receipt",
    "method": "Card,Cash,Transfer,Cheque",
    "unit": "pcs,kg,m,box,l",
    "dept": "Sales,IT,HR,Finance,Logistics",
    "job": "Engineer,Clerk,Manager,Analyst,Driver,Accountant",
    "gender": "M,F,M,F",
    "zgender": "男,女",
    "bool": "Yes,No",
    "salutation": "Herr,Frau",
    "subject": "Maths,Physics,History,Biology",
    "fuel": "Diesel,Petrol,Electric",
    "make": "Ford,VW,Volvo,Toyota,Fiat",
    "model": "Focus,Golf,V60,Corolla,Panda",
    "grade": "A,B,C,D,E",
    "airport": "JFK,LHR,FRA,CDG,MAD,LAX",
    "icd": "E11.9,I10,J45.0,M54.5",
    "jname": "田中太郎,佐藤花子,王伟,李娜,鈴木一郎",
    "jtext": "東京商事,標準品,北京路12号,上海公司,部品A",
    "rlast": "Иванов,Петров,Сидорова,Кузнецов",
    "rfirst": "Иван,Мария,Пётр,Анна",
    "rcity": "Москва,Казань,Самара,Пермь",
    "aname": "محمد,القاهرة,فاطمة,الرياض",
    "rtext": "Болт,Фильтр,Ромашка,Лампа,Северсталь",
    "gfirst": "Γιώργος,Μαρία,Νίκος,Ελένη",
    "glast": "Παπαδόπουλος,Νικολάου,Γεωργίου,Δήμου",
    "gperson": "Γιώργος Νικολάου,Μαρία Δήμου,Νίκος Παππάς",
    "gcity": "Αθήνα,Πάτρα,Βόλος,Λάρισα",
    "title": "The Long Road,Der Prozess,Les Misérables,A Short History,Green Hills,Night Train",
    "range": "3.5 - 5.1,12-16,< 200,0.4-1.0,70 x 50 cm",
    "visa": "H-2A,H-2B",
    "decision": "Certified,Denied,Withdrawn,Partial",
    "flag": "Master,Sub,Individual",
    "suite": "Suite 200,,PO Box 12,,,Apt 4",
}
SHAPES = {
    "phone": "+## ### #######", "email": "@@@@@.@@@@@@example.com", "postcode": "#####", "zip": "#####", "account": "4#####", "iban": "DE####################",
    "bic": "ABCDDEFF", "ean": "40###########", "taxid": "DE#########", "plate": "AB-#### ", "vin": "WVWZZZ1JZ#W######", "flight": "LH###", "url": "https://example.com/###",
    "houseno": "##", "digit": "#", "isbn": "978-3-##-######-#", "ip": "10.0.##.1##",
}  # fmt: skip
RANGES = {"money": (5, 4000, 2), "rate": (5, 21, 0), "qty": (1, 400, 0), "hours": (4, 40, 1), "weight": (1, 90, 1), "minutes": (5, 60, 0), "sqft": (500, 2500, 0), "sqm": (30, 160, 1), "km": (1000, 160000, 0), "gpa": (2, 4, 2), "year": (2015, 2025, 0), "month": (1, 12, 0)}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Sheet:
    name: str
    language: str
    fields: list[dict[str, str]]
    columns: list[tuple[str, str | None, str]]  # header, field, kind of values


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one column."""

    sheet: str
    header: str
    want: str | None
    got: str | None
    nearest: str | None
    probability: float


def sheets(kind: str = "business") -> Iterator[Sheet]:
    text = Path(__file__).with_name(f"{kind}_sheets.txt").read_text()
    for block in text.split("\n== ")[1:]:
        head, fields, *columns = [line for line in block.splitlines() if line]
        name, language = head.split()
        parts = [line.split(" | ") for line in columns]
        yield Sheet(
            name=name,
            language=language,
            fields=[dict(zip(("name", "type"), one.split(":"), strict=False)) for one in fields.split()],
            columns=[(header, None if field == "-" else field, kind) for header, field, kind in parts],
        )


def values(kind: str, language: str, rng: random.Random) -> list[str]:
    """A column's cells, as a text file of that language writes them."""

    def number(value: float, places: int) -> str:
        written = f"{value:.{places}f}"
        return written if language in POINTED else written.replace(".", ",")

    def shaped(pattern: str) -> str:
        return "".join(
            rng.choice("0123456789") if c == "#" else rng.choice("abcdeilmnorst") if c == "@" else c for c in pattern
        )

    day = date(1955, 1, 1) if rng.random() < 0.2 else date(2023, 1, 1)
    prefix = rng.choice(["", "", "A-", "K", "2024-"])
    make: dict[str, Callable[[int], str]] = {
        "date": lambda _: (day + timedelta(days=rng.randint(0, 700))).strftime(DATES.get(language, "%d/%m/%Y")),
        "datetime": lambda _: (
            f"{day + timedelta(days=rng.randint(0, 700))} {rng.randint(8, 18):02}:{rng.randint(0, 59):02}:00"
        ),
        "time": lambda _: f"{rng.randint(6, 19):02}:{rng.randint(0, 59):02}",
        "code": lambda n: f"{prefix}{100200 + 7 * n + rng.randint(0, 6)}",
        "person": lambda _: f"{rng.choice(WORDS['first'].split(','))} {rng.choice(WORDS['last'].split(','))}",
    }
    if kind in WORDS:
        words = WORDS[kind].split(",")
        return [rng.choice(words) for _ in range(ROWS)]
    if kind in SHAPES:
        return [
            shaped(SHAPES[kind]).strip().replace("example.com", "@example.com" if kind == "email" else "example.com")
            for _ in range(ROWS)
        ]
    if kind in RANGES:
        low, high, places = RANGES[kind]
        return [number(rng.uniform(low, high), places) for _ in range(ROWS)]
    return [make[kind](n) for n in range(ROWS)]


def stacked(header: str) -> tuple[str, ...]:
    """A header as mapping sees it: the whole name, then its last row where there are two."""
    rows = header.split(" // ")
    return (" ".join(rows), *rows[1:])


def learnt_from(sheet: Sheet) -> Recall:
    """A memory of one sheet's columns."""
    return Recall(
        [{"header": stacked(header)[0], "field": field} for header, field, _ in sheet.columns if field is not None]
    )


def outcomes(sheet: Sheet, threshold: float, recall: Recall = EMPTY) -> list[Outcome]:
    rng = random.Random(zlib.crc32(sheet.name.encode()))
    order = rng.sample(sheet.columns, len(sheet.columns)) if rng.random() < 0.3 else sheet.columns
    columns = [
        ColumnIn(n, stacked(header), Sample(values(kind, sheet.language, rng)))
        for n, (header, _, kind) in enumerate(order)
    ]
    fields = [Field(spec) for spec in sheet.fields]
    found: list[Any] = choose(columns, fields, threshold=threshold, detected={}, allowed=lambda _: None, recall=recall)
    by_position = {one.position: one for one in found}

    def outcome(position: int, header: str, want: str | None) -> Outcome:
        one = by_position[position]
        nearest, near = one.runners_up[0][:2] if one.runners_up else (None, 0.0)
        probability = one.probability if one.field else near
        return Outcome(
            sheet=sheet.name, header=header, want=want, got=one.field, nearest=nearest, probability=probability
        )

    return [outcome(n, header, want) for n, (header, want, _) in enumerate(order)]


def report(found: list[Outcome], *, brief: bool) -> None:
    right = sum(o.want is not None and o.got == o.want for o in found)
    given, wanted = sum(o.got is not None for o in found), sum(o.want is not None for o in found)
    precision, recall = right / max(1, given), right / max(1, wanted)
    f1 = 2 * precision * recall / max(1e-9, precision + recall)
    wrong = sorted((o for o in found if o.got is not None and o.got != o.want), key=lambda o: -o.probability)
    if not brief:
        for o in found:
            if o.want is not None and o.got is None:
                print(f"missed  {o.sheet:18} {o.header!r} is {o.want} (nearest {o.nearest}, {o.probability:.2f})")
    for o in wrong:
        print(f"wrong   {o.sheet:18} {o.header!r} became {o.got}, is {o.want or 'no field'} ({o.probability:.2f})")
    files = Counter(o.sheet for o in wrong)
    print(f"columns {len(found)}, wanted {wanted}: P {precision:.3f} R {recall:.3f} F1 {f1:.3f}, wrong {len(wrong)} in {len(files)} of {len({o.sheet for o in found})} sheets, {sum(o.probability >= SURE for o in wrong)} of them at {SURE} or more")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", choices=["tune", "held", "all"], default="tune")
    parser.add_argument("--sheets", choices=["business", "stranger", "form"], default="business")
    parser.add_argument("--learn", action="store_true", help="learn from each sheet in turn, and map the others")
    parser.add_argument("--threshold", type=float, default=0.7)
    parser.add_argument("--brief", action="store_true", help="leave out what was missed")
    options = parser.parse_args()
    every = list(enumerate(sheets(options.sheets)))
    chosen = [sheet for n, sheet in every if options.half == "all" or (n % 2 == 0) == (options.half == "tune")]
    if options.learn:
        found = [
            outcome
            for taught in chosen
            for sheet in chosen
            if sheet is not taught
            for outcome in outcomes(sheet, options.threshold, learnt_from(taught))
        ]
    else:
        found = [o for sheet in chosen for o in outcomes(sheet, options.threshold)]
    report(found, brief=options.brief)


if __name__ == "__main__":
    main()
