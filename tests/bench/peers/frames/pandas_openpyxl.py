"""pandas with openpyxl on both sides."""

import sys

import pandas as pd
from work import FIELDS, FORMATS, HEADER_ROW, convert_frame


def main(source, target):
    frame = pd.read_excel(source, header=HEADER_ROW - 1, dtype=object, engine="openpyxl")
    findings = convert_frame(frame)
    with pd.ExcelWriter(target, engine="openpyxl", date_format="yyyy-mm-dd") as writer:
        frame.to_excel(writer, sheet_name="Normalized", index=False, freeze_panes=(1, 0))
        sheet = writer.sheets["Normalized"]
        for column, (_, kind) in enumerate(FIELDS.values(), 1):
            if kind == "money":
                for cell in sheet.iter_rows(min_row=2, min_col=column, max_col=column):
                    cell[0].number_format = FORMATS["money"]
        sheet.auto_filter.ref = sheet.dimensions
    print(findings)


main(*sys.argv[1:])
