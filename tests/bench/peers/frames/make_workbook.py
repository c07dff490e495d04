"""Make the workbook that everyone reads: ten mixed columns, title rows above, some dirt. Always the same."""

import random
import sys
from datetime import date, timedelta

import xlsxwriter
from work import FIELDS

FIRST = ["Ada", "Alan", "Barbara", "Dennis", "Edsger", "Grace", "John", "Ken", "Linus", "Margaret", "Niklaus", "Radia"]
LAST = [
    "Backus",
    "Dijkstra",
    "Hamilton",
    "Hopper",
    "Kernighan",
    "Knuth",
    "Lamport",
    "Liskov",
    "Lovelace",
    "Perlman",
    "Ritchie",
    "Turing",
    "Wirth",
]


def main(target, rows):
    pick = random.Random(7)
    book = xlsxwriter.Workbook(target, {"constant_memory": int(rows) > 300_000})
    sheet = book.add_worksheet("Members")
    day = book.add_format({"num_format": "dd.mm.yyyy"})
    sheet.write_string(0, 0, "Members, as exported")
    for column, header in enumerate(FIELDS):
        sheet.write_string(2, column, header)
    start = date(2015, 1, 1)
    for n in range(int(rows)):
        row = n + 3
        first, last = pick.choice(FIRST), pick.choice(LAST)
        sheet.write_string(row, 0, f"m{n:07d} " if n % 7 == 0 else f"M{n:07d}")
        sheet.write_string(row, 1, first)
        if n % 997:
            sheet.write_string(row, 2, f" {last}" if n % 11 == 0 else last)
        sheet.write_string(row, 3, f"{first}.{last}{n % 5000}@example.com" if n % 499 else "not given")
        when = start + timedelta(days=pick.randrange(4000))
        if n % 3 == 0:
            sheet.write_string(row, 4, when.strftime("%m/%d/%Y"))
        else:
            sheet.write_datetime(row, 4, when, day)
        sheet.write_datetime(row, 5, start - timedelta(days=pick.randrange(18000)), day)
        pay = pick.randrange(100_000, 900_000) / 100
        if n % 5 == 0:
            sheet.write_string(row, 6, f"${pay:,.2f}" if n % 10 else f"({pay:,.2f})")
        else:
            sheet.write_number(row, 6, pay)
        if n % 13:
            sheet.write_number(row, 7, pick.randrange(0, 320) / 2)
        sheet.write_string(row, 8, pick.choice(("gold", "Silver", "bronze ", "Gold")) if n % 1009 else "tin")
        sheet.write_string(row, 9, pick.choice(("yes", "no", "Y", "N")))
    book.close()


main(*sys.argv[1:])
