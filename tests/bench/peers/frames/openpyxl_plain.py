"""The script people write first: openpyxl, whole workbook in, whole workbook out."""

import sys

import openpyxl
from openpyxl.styles import Font, PatternFill
from work import FIELDS, FORMATS, HEADER_ROW, convert


def main(source, target):
    sheet = openpyxl.load_workbook(source, data_only=True).active
    rows = sheet.iter_rows(min_row=HEADER_ROW, values_only=True)
    fields = [FIELDS[str(h).strip()] for h in next(rows)]
    book = openpyxl.Workbook()
    out = book.active
    out.title = "Normalized"
    out.append([name for name, _ in fields])
    findings = 0
    for number, row in enumerate(rows, 2):
        for column, ((name, kind), value) in enumerate(zip(fields, row, strict=True), 1):
            done, fine = convert(name, kind, value)
            findings += not fine
            if done is not None:
                cell = out.cell(number, column, done)
                if kind in FORMATS:
                    cell.number_format = FORMATS[kind]
    for cell in out[1]:
        cell.font = Font(bold=True, color="FFFFFF")
        cell.fill = PatternFill("solid", fgColor="1F3864")
    out.freeze_panes = "A2"
    out.auto_filter.ref = out.dimensions
    book.save(target)
    return findings


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
