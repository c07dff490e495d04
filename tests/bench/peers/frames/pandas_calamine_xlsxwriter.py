"""pandas with its fastest engines: calamine to read, xlsxwriter to write."""

import sys

import pandas as pd
from work import FIELDS, FORMATS, HEADER_ROW, convert_frame


def main(source, target):
    frame = pd.read_excel(source, header=HEADER_ROW - 1, dtype=object, engine="calamine")
    findings = convert_frame(frame)
    with pd.ExcelWriter(target, engine="xlsxwriter", date_format="yyyy-mm-dd") as writer:
        frame.to_excel(writer, sheet_name="Normalized", index=False, freeze_panes=(1, 0))
        book, sheet = writer.book, writer.sheets["Normalized"]
        money = book.add_format({"num_format": FORMATS["money"]})
        for column, (_, kind) in enumerate(FIELDS.values()):
            sheet.set_column(column, column, 16, money if kind == "money" else None)
        sheet.autofilter(0, 0, len(frame), len(FIELDS) - 1)
    print(findings)


main(*sys.argv[1:])
