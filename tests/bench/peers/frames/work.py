"""The work every peer does, in plain Python: ten fields, their types, required, patterns."""

import re
from datetime import date, datetime

HEADER_ROW = 3
FIELDS = {
    "Member ID": ("member_id", "text"),
    "First name": ("first_name", "text"),
    "Last name": ("last_name", "text"),
    "E-mail": ("email", "email"),
    "Start date": ("start_date", "date"),
    "Birth date": ("birth_date", "date"),
    "Gross pay": ("gross_pay", "money"),
    "Hours": ("hours", "decimal"),
    "Plan": ("plan", "enum"),
    "Active": ("active", "boolean"),
}
REQUIRED = {"member_id", "last_name", "start_date"}
PLANS = {"gold": "Gold", "silver": "Silver", "bronze": "Bronze"}
ID = re.compile(r"M[0-9]{7}")
EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[a-z]{2,}")
TRUE, FALSE = {"yes", "y", "true", "1"}, {"no", "n", "false", "0"}
FORMATS = {"date": "yyyy-mm-dd", "money": "#,##0.00"}


def parse_date(value):
    if isinstance(value, datetime):
        return value.date(), True
    if isinstance(value, date):
        return value, True
    for form in ("%Y-%m-%d", "%m/%d/%Y"):
        try:
            return datetime.strptime(value.strip(), form).date(), True
        except ValueError:
            pass
    return value, False


def parse_number(value):
    if isinstance(value, (int, float)):
        return value, True
    text = value.strip().replace("$", "").replace(",", "")
    if text.startswith("(") and text.endswith(")"):
        text = "-" + text[1:-1]
    try:
        return float(text), True
    except ValueError:
        return value, False


def convert(name, kind, value):
    """The value, and whether it is of its type and passes its rules."""
    if value is None or value == "":
        return None, name not in REQUIRED
    if kind == "date":
        return parse_date(value)
    if kind in ("money", "decimal"):
        return parse_number(value)
    text = str(value).strip()
    if not text:
        return None, name not in REQUIRED
    if name == "member_id":
        text = text.upper()
        return text, ID.fullmatch(text) is not None
    if kind == "email":
        return text, EMAIL.fullmatch(text.lower()) is not None
    if kind == "enum":
        found = PLANS.get(text.lower())
        return found or text, found is not None
    if kind == "boolean":
        word = text.lower()
        return (word in TRUE, True) if word in TRUE | FALSE else (text, False)
    return text, True


def convert_frame(frame):
    """Rename and convert the columns of a pandas frame; returns how many cells are not valid."""
    import pandas as pd  # noqa: PLC0415  # the other peers do without

    frame.columns = [FIELDS[str(c).strip()][0] for c in frame.columns]
    findings = 0
    for name, kind in FIELDS.values():
        done = [convert(name, kind, None if value is pd.NaT or value != value else value) for value in frame[name]]
        findings += sum(not fine for _, fine in done)
        frame[name] = pd.Series([value for value, _ in done], dtype=object)
    return findings
