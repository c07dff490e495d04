"""Tables with known rows, made from nothing but a seed: the oracle of the structure pass, sharing no code with it."""

import csv
import random
from datetime import date, timedelta

import openpyxl

FIRST = [
    "Ann",
    "Bob",
    "Cid",
    "Dora",
    "Eve",
    "Finn",
    "Gus",
    "Hana",
    "Ivo",
    "Jan",
    "Kim",
    "Lea",
    "Max",
    "Nia",
    "Olaf",
    "Pia",
    "Rosa",
    "Sue",
    "Tom",
    "Uma",
    "Vic",
    "Wim",
    "Xia",
    "Zoe",
]
LAST = [
    "Lee",
    "Ray",
    "Fox",
    "May",
    "Sun",
    "Oak",
    "Elm",
    "Ito",
    "Smith",
    "Jones",
    "Meyer",
    "Novak",
    "Rossi",
    "Silva",
    "Dubois",
    "Larsen",
    "Berg",
    "Stone",
    "Hill",
]
CITIES = ["Oslo", "Rome", "Lima", "Bonn", "Paris", "York", "Bath", "Cork", "Graz", "Linz", "Brno", "Tokyo", "Osaka"]
CITIES += ["New York", "Rio de Janeiro", "Bad Homburg", "St. Gallen", "Aix-en-Provence", "Frankfurt am Main"]
LANDS = ["Norway", "Italy", "Peru", "Germany", "France", "United States", "Brazil", "Japan", "Austria"]
GOODS = ["Bolt", "Nut", "Washer", "Screw M4", "Hex key", "Mean Well PSU", "Balance bike", "Hammer", "Paint red"]
WORDS = [
    "the",
    "order",
    "was",
    "late",
    "and",
    "we",
    "sent",
    "a",
    "new",
    "one",
    "please",
    "call",
    "back",
    "before",
    "noon",
    "about",
    "delivery",
    "and",
    "invoice",
]


def sentence(dice, least, most):
    return " ".join(dice.choice(WORDS) for _ in range(dice.randint(least, most))).capitalize() + dice.choice(["", "."])


# What a column holds, by the names it may have.
COLUMNS = {
    "email": lambda dice, n: f"{dice.choice(FIRST).lower()}{dice.randint(1, 999)}@{dice.choice(LAST).lower()}.example",
    "city": lambda dice, n: dice.choice(CITIES),
    "country": lambda dice, n: dice.choice(LANDS),
    "name": lambda dice, n: f"{dice.choice(FIRST)} {dice.choice(LAST)}",
    "first name": lambda dice, n: dice.choice(FIRST),
    "product": lambda dice, n: dice.choice(GOODS),
    "sku": lambda dice, n: f"SKU-{n:05}",
    "status": lambda dice, n: dice.choice(["open", "closed", "pending"]),
    "id": lambda dice, n: n + 1,
    "qty": lambda dice, n: dice.randint(0, 5000),
    "price": lambda dice, n: round(dice.uniform(1, 9000), 2),
    "date": lambda dice, n: date(2020, 1, 1) + timedelta(dice.randint(0, 2000)),
    "phone": lambda dice, n: f"+49 {dice.randint(30, 999)} {dice.randint(100000, 999999)}",
    "comment": lambda dice, n: sentence(dice, 6, 40),
    "review": lambda dice, n: sentence(dice, 30, 120),
}
TEXTS = ["name", "city", "country", "first name", "product", "email", "sku", "status"]
NUMBERS = ["qty", "price"]


def rows_of(dice, columns, count, *, blank=0.0, lone=0.0):
    """Records; `blank` is the share of cells without a value, `lone` of records with nothing but their key."""
    out = []
    for n in range(count):
        row = [COLUMNS[name](dice, n) for name in columns]
        row = [value if at == 0 or dice.random() >= blank else None for at, value in enumerate(row)]
        if dice.random() < lone:
            row = [row[0], *[None] * (len(row) - 1)]
        out.append(row)
    return out


def as_text(value):
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def written(folder, lines, kind):
    """The lines as a file of this kind."""
    path = folder / f"table.{kind}"
    if kind == "csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([[as_text(value) for value in line] for line in lines])
    else:
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet("Sheet1")
        for line in lines:
            sheet.append(line)
        book.save(path)
    return path


def dice_of(*seed):
    return random.Random(repr(seed))
