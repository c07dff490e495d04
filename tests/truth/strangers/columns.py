"""Headers that say something else than the field: opposites, units, scales, the other one of two."""

from random import Random
from typing import Any

from tests.truth.cases import Shown
from tests.truth.strangers.judging import Stranger
from tests.truth.strangers.kit import COLS, any_of, col, draft, size, stranger


def one_column(
    rng: Random, header: str, field: dict[str, Any], make: Any, *, tell: bool, kinds: str = "book csv", want: Any = None
) -> Stranger:
    """A key and one column whose header is not quite the field."""
    d = draft(rng, "member_no name", "en")
    kind = field.get("type", "text")
    d.cols = [*d.cols, col(field["name"], kind, f"en={header}", make)]
    d.fields = [{"name": "member_no"}, {"name": "name"}, field]
    d.header()
    for n in range(size(rng, least=4)):
        row = d.values(n)
        d.record(row, {field["name"]: any_of(row[2], None) if want is None else want(row[2])})
    if tell:
        d.tell(field["name"])
    d.note = f"{header} for {field['name']}"
    return d.any(kinds)


def flag(r: Random, n: int) -> bool:
    return r.random() < 0.5


def number(r: Random, n: int) -> float:
    return r.randrange(100, 90000) / 100


@stranger("opposite_flags", right=False)
def opposite_flags(rng: Random) -> Stranger:
    header, name = rng.choice((
        ("Inactive", "active"), ("Not paid", "paid"), ("Unpaid", "paid"), ("Unsubscribed", "subscribed"), ("Opt-out", "opt_in"), ("Disabled", "enabled"),
        ("Non-smoker", "smoker"), ("Invalid", "valid"), ("Incomplete", "complete"), ("Unverified", "verified"), ("Closed", "open"), ("Nicht aktiv", "aktiv"),
    ))  # fmt: skip
    return one_column(
        rng, header, {"name": name, "type": "boolean"}, flag, tell=True, want=lambda v: any_of(v, None, not v)
    )


@stranger("opposite_flags_asked_for", plain=True)
def opposite_flags_asked_for(rng: Random) -> Stranger:
    header, name = rng.choice(
        (
            ("Inactive", "inactive"),
            ("Not paid", "not_paid"),
            ("Opt-out", "opt_out"),
            ("Unsubscribed", "unsubscribed"),
            ("Closed", "closed"),
        )
    )
    return one_column(rng, header, {"name": name, "type": "boolean"}, flag, tell=False, want=lambda v: v)


@stranger("other_units", right=False)
def other_units(rng: Random) -> Stranger:
    header, name = rng.choice((
        ("Weight (lb)", "weight_kg"), ("Weight [g]", "weight_kg"), ("Height (in)", "height_cm"), ("Temp (°F)", "temp_c"), ("Distance (miles)", "distance_km"),
        ("Length ft", "length_m"), ("Area (sq ft)", "area_m2"), ("Volume (gal)", "volume_l"), ("Energy (MWh)", "energy_kwh"), ("Duration (min)", "duration_hours"),
        ("Pressure (psi)", "pressure_bar"), ("Speed mph", "speed_kmh"),
    ))  # fmt: skip
    return one_column(rng, header, {"name": name, "type": "decimal"}, number, tell=True, kinds="book")


@stranger("same_units_spelt", plain=True)
def same_units_spelt(rng: Random) -> Stranger:
    header, name = rng.choice(
        (
            ("Weight (kg)", "weight_kg"),
            ("Height [cm]", "height_cm"),
            ("Temp °C", "temp_c"),
            ("Distance, km", "distance_km"),
            ("Energy in kWh", "energy_kwh"),
            ("Area (m²)", "area_m2"),
        )
    )
    return one_column(
        rng, header, {"name": name, "type": "decimal"}, number, tell=False, kinds="book", want=lambda v: v
    )


@stranger("other_currency", right=False)
def other_currency(rng: Random) -> Stranger:
    header, name = rng.choice(
        (
            ("Price (USD)", "price_eur"),
            ("Amount in GBP", "amount_eur"),
            ("Fee CHF", "fee_eur"),
            ("Price €", "price_usd"),
            ("Salary (SEK)", "salary_nok"),
            ("Betrag $", "betrag_eur"),
        )
    )
    return one_column(rng, header, {"name": name, "type": "money"}, number, tell=True, kinds="book")


@stranger("scale_words", right=False)
def scale_words(rng: Random) -> Stranger:
    header, name = rng.choice((
        ("Revenue (k€)", "revenue"), ("Revenue in Mio. EUR", "revenue"), ("Budget ('000)", "budget"), ("Turnover (mn)", "turnover"), ("Cost in thousands", "cost"),
        ("Umsatz in T€", "umsatz"), ("Montant (milliers d'euros)", "montant"), ("Importe (miles)", "importe"), ("Omsättning (tkr)", "omsattning"), ("Kwota (tys. zł)", "kwota"),
        ("Revenue bn USD", "revenue"), ("Population (x1000)", "population"),
    ))  # fmt: skip
    return one_column(rng, header, {"name": name, "type": "money"}, number, tell=True, kinds="book")


@stranger("scale_in_title_line", right=False)
def scale_in_title_line(rng: Random) -> Stranger:
    d = draft(rng, "city amount", "en de fr")
    d.line(
        {"en": "Budget of the municipalities", "de": "Haushalt der Gemeinden", "fr": "Budget des communes"}[d.loc.lang]
    )
    d.line(
        rng.choice(
            (
                {"en": "in thousand euro", "de": "in Tausend Euro", "fr": "en milliers d'euros"}[d.loc.lang],
                "(in TEUR)",
                "EUR '000",
                "all figures in EUR million",
            )
        )
    )
    d.line()
    d.header()
    d.records(size(rng, least=4))
    d.tell("amount")
    return d.any("book csv")


@stranger("scale_in_format", right=False)
def scale_in_format(rng: Random) -> Stranger:
    """Stored 1234567, shown as 1,235 or 1.2 M."""
    d = draft(rng, "city amount")
    d.header()
    form, show = rng.choice(
        (
            ("#,##0,", lambda v: f"{v / 1e3:,.0f}"),
            ('0.0,,"M"', lambda v: f"{v / 1e6:.1f}M"),
            ('#,##0,"k"', lambda v: f"{v / 1e3:,.0f}k"),
        )
    )
    for n in range(size(rng, least=4)):
        row = d.values(n)
        value = rng.randrange(10**5, 10**8)
        d.record(
            [row[0], value],
            {"amount": any_of(value, round(value / 1e3), round(value / 1e6, 1))},
            cells=[row[0], Shown(value, form, show(value))],
        )
    d.tell("amount")
    return d.book("openpyxl xlsxwriter raw_xml xlwt")


@stranger("words_by_number_format", right=False)
def words_by_number_format(rng: Random) -> Stranger:
    """1 and 0 shown as words: a text field takes what a person sees, or says so."""
    d = draft(rng, "member_no name remark")
    d.header()
    form = rng.choice(('"open";;"closed"', '"yes";"no";"no"', '[=1]"male";[=2]"female";0', '"Class "0'))
    for n in range(size(rng, least=4)):
        row = d.values(n)
        value = rng.randrange(1, 3) if form[0] == "[" or "Class" in form else rng.randrange(2)
        text = {'"open"': ("closed", "open"), '"yes"': ("no", "yes"), "[=1]": ("", "male", "female")}.get(
            form.split(";")[0].split('"male')[0] if form[0] == "[" else form.split(";")[0]
        )
        want = text[value] if text else f"Class {value}"
        d.record([*row[:2], want], cells=[*row[:2], Shown(value, form, want)])
    return d.book("openpyxl xlsxwriter raw_xml xlwt")


PAIRS = (
    ("Qty ordered", "Qty shipped", "quantity", "integer"), ("Net amount", "Gross amount", "amount", "money"), ("Old price", "New price", "price", "money"),
    ("Amount due", "Amount paid", "amount", "money"), ("Temp min", "Temp max", "temperature", "decimal"), ("Budget", "Actual", "cost", "money"),
    ("Gross weight", "Tare weight", "weight", "decimal"), ("Planned hours", "Actual hours", "hours", "decimal"), ("Sales 2023", "Sales 2024", "sales", "money"),
    ("Reading start", "Reading end", "reading", "decimal"), ("Systolic", "Diastolic", "blood_pressure", "integer"), ("Goals home", "Goals away", "goals", "integer"),
)  # fmt: skip


@stranger("one_of_two_numbers", right=False)
def one_of_two_numbers(rng: Random) -> Stranger:
    first, second, name, kind = rng.choice(PAIRS)
    make = (lambda r, n: r.randrange(1, 900)) if kind == "integer" else number
    d = draft(rng, "member_no", "en")
    d.cols = [*d.cols, col(name, kind, f"en={first}", make), col("?other", kind, f"en={second}", make)]
    d.fields = [{"name": "member_no"}, {"name": name, "type": kind}]
    d.header()
    for n in range(size(rng, least=4)):
        row = d.values(n)
        number_ = d.line(*row)
        d.want(number_, {"member_no": row[0], name: any_of(row[1], row[2], None)})
    for t in d.tables:
        t.columns.pop("?other", None)
    d.tell(name)
    d.note = f"{first} or {second} for {name}"
    return d.any("book csv")


TEXT_PAIRS = (
    ("Last name", "First name", "name", "text"), ("Home phone", "Work phone", "phone", "text"), ("Billing city", "Shipping city", "city", "text"),
    ("Home team", "Away team", "team", "text"), ("Address 1", "Address 2", "address", "text"), ("Sender", "Recipient", "contact", "text"),
    ("Mother", "Father", "parent", "text"), ("From", "To", "station", "text"), ("Buyer name", "Seller name", "party_name", "text"),
)  # fmt: skip


@stranger("one_of_two_texts", right=False)
def one_of_two_texts(rng: Random) -> Stranger:
    first, second, name, kind = rng.choice(TEXT_PAIRS)
    makers = {
        "phone": COLS["phone"].make,
        "city": COLS["city"].make,
        "team": COLS["team"].make,
        "address": COLS["street"].make,
        "station": COLS["city"].make,
    }
    make = makers.get(name, COLS["name"].make)
    both = (COLS["last_name"].make, COLS["first_name"].make) if name == "name" else (make, make)
    d = draft(rng, "member_no", "en")
    d.cols = [*d.cols, col(name, kind, f"en={first}", both[0]), col("?other", kind, f"en={second}", both[1])]
    d.fields = [{"name": "member_no"}, {"name": name, "type": kind}]
    d.header()
    for n in range(size(rng, least=4)):
        row = d.values(n)
        at = d.line(*row)
        d.want(
            at, {"member_no": row[0], name: any_of(row[1], row[2], f"{row[1]} {row[2]}", f"{row[2]} {row[1]}", None)}
        )
    for t in d.tables:
        t.columns.pop("?other", None)
    d.tell(name)
    d.note = f"{first} or {second} for {name}"
    return d.any("book csv")


@stranger("the_other_party", right=False)
def the_other_party(rng: Random) -> Stranger:
    """Only the other one of two is there: supplier for customer, billing for shipping, 2 for 1."""
    header, name, make = rng.choice((
        ("Supplier ID", "customer_id", COLS["member_no"].make), ("Phone 2", "phone_1", COLS["phone"].make), ("Billing street", "shipping_street", COLS["street"].make),
        ("Emergency contact", "contact_email", COLS["name"].make), ("Date of birth", "date_of_hire", COLS["date"].make), ("End date", "start_date", COLS["date"].make),
        ("Second name", "first_name", COLS["last_name"].make), ("Sales 2023", "sales_2024", number), ("Q3", "q4", number), ("Street 2", "street_1", COLS["street"].make),
        ("Approved by", "requested_by", COLS["name"].make), ("Max temp", "min_temp", number),
    ))  # fmt: skip
    kind = "date" if make is COLS["date"].make else "decimal" if make is number else "text"
    return one_column(rng, header, {"name": name, "type": kind}, make, tell=True, kinds="book")


@stranger("the_right_ordinal", plain=True)
def the_right_ordinal(rng: Random) -> Stranger:
    """Both are there and both asked for."""
    d = draft(rng, "member_no phone name", "en")
    d.cols = [
        d.cols[0],
        col("phone_1", "phone", "en=Phone 1", COLS["phone"].make),
        col("phone_2", "phone", "en=Phone 2", COLS["phone"].make),
        col("sales_2023", "money", "en=Sales 2023", number),
        col("sales_2024", "money", "en=Sales 2024", number),
    ]
    d.fields = [{"name": c.field, "type": c.type} for c in d.cols]
    order = list(range(5))
    rng.shuffle(order)
    d.cols = [d.cols[i] for i in order]
    d.header()
    d.records(size(rng, least=4))
    return d.any("book csv")


@stranger("swapped_columns", right=False)
def swapped_columns(rng: Random) -> Stranger:
    """The headers of two columns changed places: e-mails under Name."""
    d = draft(
        rng,
        rng.choice(
            ("member_no name email", "member_no street phone", "member_no city date", "order_no product amount")
        ),
        "en",
    )
    kinds = [c.type for c in d.cols]
    kinds[1] = kinds[2] = "text"
    d.fields = [{"name": c.field, "type": k, "synonyms": [c.heads["en"]]} for c, k in zip(d.cols, kinds, strict=True)]
    d.header()
    for n in range(size(rng, least=4)):
        row = d.values(n)
        if not isinstance(row[2], str):
            row[2] = str(row[2])
        d.record(
            [row[0], row[2], row[1]], {d.cols[1].field: any_of(row[2], row[1]), d.cols[2].field: any_of(row[1], row[2])}
        )
    d.tell(d.cols[1].field)
    return d.any("book csv")


@stranger("names_under_code", right=False)
def names_under_code(rng: Random) -> Stranger:
    d = draft(rng, "staff_no department", "en")
    d.cols = [col("employee_code", "text", "en=Employee code", COLS["name"].make), *d.cols[1:]]
    d.fields = [{"name": "employee_code"}, {"name": "department"}]
    d.header()
    d.records(size(rng, least=6))
    d.tell("employee_code")
    return d.any("book csv")


@stranger("declared_field_without_column", right=False)
def declared_field_without_column(rng: Random) -> Stranger:
    """A header with a typing error, or no such column: a declared field must not come out empty without a word."""
    d = draft(rng, "order_no name amount", "en")
    lost = rng.choice(("Xyz", "Sparte", "col7"))
    d.cols = [*d.cols[:2], col("delivery_date", "date", f"en={lost}", lambda r, n: r.choice(("A", "B", "C")))]
    d.fields = [{"name": "order_no"}, {"name": "name"}, {"name": "delivery_date", "type": "date"}]
    d.header()
    for n in range(size(rng, least=4)):
        row = d.values(n)
        d.record(row, {"delivery_date": None})
    d.tell("delivery_date")
    return d.any("book csv")


@stranger("same_header_twice", right=False)
def same_header_twice(rng: Random) -> Stranger:
    d = draft(rng, "order_no name amount", "en")
    d.line(d.heads[0], d.heads[1], d.heads[2], d.heads[2])
    for n in range(size(rng, least=4)):
        row = d.values(n)
        other = d.values(n)[2]
        d.record(row, {"amount": any_of(row[2], other)}, cells=[*row, other])
    d.tell("amount")
    return d.any("book csv")


@stranger("header_over_two_columns", right=False)
def header_over_two_columns(rng: Random) -> Stranger:
    """`Name` merged over first and last name."""
    d = draft(rng, "member_no name city")
    d.line(d.heads[0], d.heads[1], None, d.heads[2])
    d.page.merges.append((1, 2, 1, 3))
    for n in range(size(rng, least=4)):
        row = d.values(n)
        first, last = row[1].split(" ", 1)
        d.record(row, {"name": any_of(row[1])}, cells=[row[0], first, last, row[2]])
    d.tell("name")
    for t in d.tables:
        t.columns["city"] = 4
    return d.book("openpyxl xlsxwriter raw_xml xlwt")


@stranger("two_header_rows_merged")
def two_header_rows_merged(rng: Random) -> Stranger:
    """Person over Last and First, Address over Street and City."""
    d = draft(rng, "member_no last_name first_name street city", "en")
    d.cols = [
        d.cols[0].called("No"),
        d.cols[1].called("Last"),
        d.cols[2].called("First"),
        d.cols[3].called("Street"),
        d.cols[4].called("City"),
    ]
    d.fields = [
        {"name": "member_no", "synonyms": ["No"]}, {"name": "last_name", "synonyms": ["Person Last", "Last"]}, {"name": "first_name", "synonyms": ["Person First", "First"]},
        {"name": "street", "synonyms": ["Address Street"]}, {"name": "city", "synonyms": ["Address City"]},
    ]  # fmt: skip
    d.line(None, "Person", None, "Address", None)
    d.page.merges += [(1, 2, 1, 3), (1, 4, 1, 5)]
    d.header()
    d.records(size(rng, least=4))
    return d.book("openpyxl xlsxwriter raw_xml xlwt")


@stranger("created_by_and_created", plain=True)
def created_by_and_created(rng: Random) -> Stranger:
    """The better of two: `Created by` is no date."""
    d = draft(rng, "order_no name date amount", "en")
    d.cols = [
        d.cols[0],
        col("created_by", "text", "en=Created by", COLS["name"].make),
        col("created", "date", "en=Created", COLS["date"].make),
        d.cols[3],
    ]
    d.fields = [{"name": "order_no"}, {"name": "created", "type": "date"}, {"name": "amount", "type": "money"}]
    d.header()
    for n in range(size(rng, least=4)):
        row = d.values(n)
        at = d.line(*row)
        d.want(at, {"order_no": row[0], "created": row[2], "amount": row[3]})
    for t in d.tables:
        t.columns.pop("created_by", None)
    return d.any("book csv")


@stranger("mixed_currencies", right=False)
def mixed_currencies(rng: Random) -> Stranger:
    d = draft(rng, "order_no name amount", "en")
    kind = rng.choice(("money", "decimal"))
    d.cols = [*d.cols[:2], col("amount", kind, "en=Amount", number)]
    d.header()
    for n in range(size(rng, least=5)):
        row = d.values(n)
        sign = ("€ {}", "$ {}", "{} EUR", "£{}")[n % rng.choice((2, 3, 4)) if n > 1 else n]
        text = sign.format(f"{row[2]:.2f}")
        d.record(row, {"amount": any_of(row[2], text)}, cells=[*row[:2], text])
    d.tell("amount")
    return d.any("book csv")


@stranger("currency_column_beside", plain=True)
def currency_column_beside(rng: Random) -> Stranger:
    d = draft(rng, "order_no amount remark", "en")
    d.cols = [*d.cols[:2], col("currency", "text", "en=Currency", lambda r, n: r.choice(("EUR", "USD", "CHF")))]
    d.header()
    d.records(size(rng))
    return d.any("book csv")


@stranger("shares_among_percents", right=False)
def shares_among_percents(rng: Random) -> Stranger:
    """Most say 45, some say 0.45."""
    d = draft(rng, "member_no name", "en")
    d.cols = [*d.cols, col("rate", "percent", "en=Rate", lambda r, n: r.randrange(5, 96))]
    d.header()
    n = size(rng, least=6)
    for i in range(n):
        row = d.values(i)
        odd = i % 5 == 3
        cell: Any = row[2] / 100 if odd else row[2]
        d.record([*row[:2], cell], {"rate": any_of(row[2] / 100, cell, cell / 100)})
    d.tell("rate")
    return d.any("book csv")


@stranger("unit_column_beside")
def unit_column_beside(rng: Random) -> Stranger:
    """A unit column that changes, kWh here, MWh there; it stays beside the numbers."""
    d = draft(rng, "meter consumption", "en")
    d.header()
    d.page.rows[0].append("Unit")
    for n in range(size(rng, least=5)):
        row = d.values(n)
        d.record(row, cells=[*row, "MWh" if n % 4 == 2 else "kWh"])
    return d.any("book csv")


@stranger("long_headers", plain=True)
def long_headers(rng: Random) -> Stranger:
    """Survey questions as headers that differ only at the end."""
    stem = "On a scale from one to ten, how satisfied were you during the past twelve months, all things considered, with the following aspect of our service, namely the "
    d = draft(rng, "member_no", "en")
    parts = ("speed of delivery", "friendliness of the staff", "price")
    d.cols = [
        *d.cols,
        *[col(p.split()[0], "integer", f"en={stem}{p}?", lambda r, n: r.randrange(1, 11)) for p in parts],
    ]
    d.header()
    d.records(size(rng, least=4))
    return d.any("book csv")
