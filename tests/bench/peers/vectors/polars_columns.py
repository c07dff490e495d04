"""polars: fastexcel (calamine) reads, expressions convert and check whole columns, xlsxturbo or xlsxwriter writes.

python polars_columns.py SOURCE TARGET [xlsxwriter]
"""

import sys

import fastexcel
import polars as pl

FIELDS = {
    "Member ID": "member_id",
    "First name": "first_name",
    "Last name": "last_name",
    "E-mail": "email",
    "Start date": "start_date",
    "Birth date": "birth_date",
    "Gross pay": "gross_pay",
    "Hours": "hours",
    "Plan": "plan",
    "Active": "active",
}
PLANS = ["Gold", "Silver", "Bronze"]
HEADER_ROW = 3


def text(name):
    return pl.col(name).str.strip_chars()


def day(name):
    """Either a date cell, which comes as ISO text, or text in the American order."""
    iso = text(name).str.head(10).str.to_date("%Y-%m-%d", strict=False)
    return pl.coalesce(iso, text(name).str.to_date("%m/%d/%Y", strict=False)).alias(name)


def amount(name):
    """Plain numbers, and text with a currency sign, thousands or the brackets of a negative amount."""
    digits = text(name).str.replace_all(r"[$,()]", "").cast(pl.Float64, strict=False)
    return pl.when(text(name).str.starts_with("(")).then(-digits).otherwise(digits).alias(name)


def plan(name):
    known = text(name).str.to_lowercase().replace_strict({p.lower(): p for p in PLANS}, default=None)
    return pl.coalesce(known, text(name)).alias(name)


def findings():
    """How many cells break a rule."""
    checks = [
        ~pl.col("member_id").str.contains(r"^M[0-9]{7}$"),
        pl.col("member_id").is_duplicated(),
        pl.col("last_name").is_null(),
        ~pl.col("email").str.to_lowercase().str.contains(r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$"),
        pl.col("start_date").is_null(),
        ~pl.col("plan").is_in(PLANS),
    ]
    return pl.sum_horizontal(check.fill_null(True).sum() for check in checks)


def write(frame, target, how):
    if how == "xlsxwriter":
        frame.write_excel(target, worksheet="Normalized", column_formats={"gross_pay": "#,##0.00"}, freeze_panes=(1, 0))
        return
    import xlsxturbo  # noqa: PLC0415  # the other way does without

    formats = {"gross_pay": {"num_format": "#,##0.00"}}
    xlsxturbo.df_to_xlsx(
        frame, target, sheet_name="Normalized", freeze_panes=True, autofilter=True, column_formats=formats
    )


def main(source, target, how="xlsxturbo"):
    sheet = fastexcel.read_excel(source).load_sheet(0, header_row=HEADER_ROW - 1, dtypes="string")
    raw = sheet.to_polars().rename(FIELDS)
    done = raw.select(
        text("member_id").str.to_uppercase(),
        text("first_name"),
        text("last_name"),
        text("email"),
        day("start_date"),
        day("birth_date"),
        amount("gross_pay"),
        pl.col("hours").cast(pl.Float64, strict=False),
        plan("plan"),
        text("active").str.to_lowercase().is_in(["yes", "y", "true", "1"]).alias("active"),
    )
    write(done, target, how)
    print(done.select(findings()).item())


main(*sys.argv[1:])
