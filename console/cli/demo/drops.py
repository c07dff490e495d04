"""Three drops as offices send them: titles above, notes below, tables off the corner, values as people type them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from openpyxl import Workbook

Cell = str | float | datetime | None


@dataclass(frozen=True, slots=True)
class DemoDrop:
    tenant: str
    folder: str
    file: str
    mess: str  # what is messy about it
    write: Callable[[Path], None]
    manifest: dict[str, object]

    def manifest_text(self) -> str:
        return json.dumps(self.manifest, indent=2, ensure_ascii=False) + "\n"


def _members(path: Path) -> None:
    """Two title rows, the table from C5 on, a total and a note below it."""
    book = Workbook()
    sheet = book.worksheets[0]
    sheet.title = "Q1 roster"
    sheet["C1"] = "Acme Benefits: member roster"
    sheet["C2"] = "prepared by HR on 3 April 2026, internal use only"
    rows: list[tuple[Cell, ...]] = [
        ("Member #", "Full Name", "E-Mail", "Start", "Gross Pay", "Remarks"),
        ("m000417", "  Ada   Byron", "ada@acme.example", "2026/01/05", "$4,200.00", None),
        ("M000418", "Grace Hopper ", "grace@acme.example", "05-Jan-2026", "5,150.5", "part time"),
        ("M000419", "Alan Turing", "alan(at)acme.example", datetime(2026, 1, 12), 3999, None),  # noqa: DTZ001 - as in a sheet
        ("M000420", "Edsger Dijkstra", "edsger@acme.example", "2026/02/30", "4800", "date?"),
        ("M000418", "Barbara Liskov", "barbara@acme.example", "2026/02/02", "(120.00)", "same number twice"),
        ("", "Donald Knuth", "donald@acme.example", "2026/03/02", "n/a", None),
        ("Total", None, None, None, 18029.5, None),
    ]
    for n, row in enumerate(rows):
        for m, value in enumerate(row):
            sheet.cell(row=5 + n, column=3 + m, value=value)
    sheet["C15"] = "Source: payroll export, figures not audited"
    book.save(path)


def _stock(path: Path) -> None:
    """A cover sheet, then stacked headers, a sub-heading inside the data and a grand total."""
    book = Workbook()
    cover = book.worksheets[0]
    cover.title = "Read me"
    cover["B2"] = "Stock take of the northern depots"
    cover["B4"] = "Count sheet is the second tab"
    sheet = book.create_sheet("Count")
    rows: list[tuple[Cell, ...]] = [
        ("STOCK TAKE NORTH",),
        (),
        (None, "Article", None, "Counted", None),
        (None, "SKU", "Description", "Units", "Unit cost"),
        (None, "ab-1001", "Hinge, brass", 120, "1,25 €"),
        (None, "AB-1002", "Hinge, steel", "95 ", "0,98 €"),
        (None, "AB-2001", "Lock", -4, "12,40 €"),
        (None, "AB-2002 ", "Lock, keyed", "37", "15.00"),
        (None, "XX", "Unknown item", 1, None),
        (None, "Grand total", None, 249, None),
    ]
    for row in rows:
        sheet.append(row)
    book.save(path)


def _orders(path: Path) -> None:
    """A text export: semicolons, decimal commas, days first, a title line and a footer line."""
    path.write_text(
        "Bestellungen März 2026;;;;\n"
        ";;;;\n"
        "Auftrag;Kunde;Datum;Betrag;bezahlt\n"
        "2026-0101;Müller GmbH;02.03.2026;1.249,90;ja\n"
        "2026-0102;Schmidt & Söhne;17.03.2026;89,00;nein\n"
        "2026-0103;Café Central;31.04.2026;310,5;ja\n"
        "2026-0104;;20.03.2026;2.000,00;JA\n"
        "Summe;;;3.649,40;\n",
        encoding="utf-8",
    )


DROPS = (
    DemoDrop(
        tenant="acme",
        folder="2026-04/hr",
        file="members.xlsx",
        mess="title rows, a table from C5 on, a total and a note below, dates in three spellings, an id twice",
        write=_members,
        manifest={
            "manifest": 1,
            "name": "members",
            "fields": [
                {
                    "name": "member_id",
                    "type": "text",
                    "required": True,
                    "unique": True,
                    "synonyms": ["member #", "employee id"],
                    "pattern": "M[0-9]{6}",
                    "clean": ["strip", "upper"],
                },
                {"name": "name", "synonyms": ["full name"], "clean": ["strip", "collapse"]},
                {"name": "email", "type": "email", "synonyms": ["e-mail"]},
                {"name": "start_date", "type": "date", "synonyms": ["start"], "formats": ["%Y/%m/%d", "%d-%b-%Y"]},
                {"name": "gross_pay", "type": "money", "min": 0},
            ],
        },
    ),
    DemoDrop(
        tenant="globex",
        folder="stock",
        file="stock-north.xlsx",
        mess="a cover sheet, stacked headers, prices with a currency sign, a grand total",
        write=_stock,
        manifest={
            "manifest": 1,
            "name": "stock",
            "fields": [
                {
                    "name": "sku",
                    "label": "SKU",
                    "required": True,
                    "pattern": "AB-[0-9]{4}",
                    "clean": ["strip", "upper"],
                },
                {"name": "description"},
                {"name": "units", "type": "integer", "min": 0},
                {"name": "unit_cost", "type": "money", "synonyms": ["unit cost"], "required": True},
            ],
            "output": {"sheet": "Stock", "findings_sheet": True},
        },
    ),
    DemoDrop(
        tenant="initech",
        folder="orders/march",
        file="orders.csv",
        mess="semicolons, decimal commas, German headers, a title line and a sum line",
        write=_orders,
        manifest={
            "manifest": 1,
            "name": "orders",
            "inputs": {"primary": ["*.csv"]},
            "fields": [
                {"name": "order_id", "required": True, "unique": True, "synonyms": ["auftrag"]},
                {"name": "customer", "required": True, "synonyms": ["kunde"]},
                {"name": "ordered_on", "type": "date", "synonyms": ["datum"], "day_first": True},
                {"name": "amount", "type": "money", "synonyms": ["betrag"], "decimal": ","},
                {"name": "paid", "type": "boolean", "synonyms": ["bezahlt"]},
            ],
            "mapping": {"unmapped": "drop"},
        },
    ),
)
