"""A second stranger: text files of many programs, what cells show, and what columns are called."""

from datetime import date, time
from random import Random
from typing import Any

from tests.truth.cases import Case, Shown
from tests.truth.strangers.judging import Stranger
from tests.truth.strangers.kit import Draft, Raw, any_of, each, say, size, stranger
from tests.truth.strangers.second import FARM, FLEET, HOTEL, MINE, VET, _named, start, trade

# Shapes of text files


def lines(d: Draft, rows: list[str], name: str = "data.csv", encoding: str = "utf-8") -> Stranger:
    return d.text_file("".join(r + "\n" for r in rows).encode(encoding), name)


@stranger("second_sep_line", plain=True)
def _(rng: Random) -> Case:
    d = trade(rng)
    d.line("sep=;")
    d.header()
    d.records(size(rng, 3, 35))
    return d.csv(pad=False, delimiter=";")


@stranger("second_delimiter_at_each_end", plain=True)
def _(rng: Random) -> Case:
    d = trade(rng, "cs da hu")
    d.header()
    d.records(size(rng, 3, 35))
    return lines(d, [";".join(r) + ";" for r in d.texts()])


@stranger("second_unicode_text", plain=True)
def _(rng: Random) -> Case:
    """What a spreadsheet program calls Unicode text: UTF-16 with tabs."""
    d = trade(rng)
    d.header()
    d.records(size(rng, 3, 35))
    return d.csv(delimiter="\t", encoding="utf-16-le", bom=b"\xff\xfe", ending="\r\n")


@stranger("second_hash_before_the_header", plain=True)
def _(rng: Random) -> Case:
    d = trade(rng, "en")
    d.line("#" + d.heads[0], *d.heads[1:])
    d.records(size(rng, 3, 35))
    return d.csv(delimiter=rng.choice((",", "\t")))


@stranger("second_cells_of_several_lines", plain=True)
def _(rng: Random) -> Case:
    """Quoted cells with line breaks, delimiters and quotes."""
    d = start(rng, "chip animal comment charge", "en")
    d.header()
    for n in range(size(rng, 4, 35)):
        row = d.values(n)
        row[2] = rng.choice(
            ('limps, left hind\nx-ray "soon"', "ok", "first line\nsecond line, with comma", '{"a": 1, "b": [2, 3]}')
        )
        d.record(row)
    return d.csv(delimiter=",")


@stranger("second_trailer_record")
def _(rng: Random) -> Case:
    """A bank's file: the last line counts and sums the others."""
    d = start(rng, "plate driver day charge", "en")
    d.header()
    rows = d.records(size(rng, 4, 35))
    kind = rng.randrange(3)
    if kind == 0:
        d.line("TRAILER", str(len(rows)), None, round(sum(r[3] for r in rows), 2), why="trailer")
    elif kind == 1:
        d.line("END OF FILE", why="trailer")
    else:
        d.line("99", f"{len(rows):06}", f"{round(sum(r[3] for r in rows) * 100):012}", why="trailer")
    return d.csv(pad=rng.random() < 0.5)


@stranger("second_decimal_commas_unquoted", right=False)
def _(rng: Random) -> Case:
    """Commas separate the cells, and stand in the amounts."""
    d = start(rng, "plate driver km charge", "en")
    d.header()
    rows = [",".join(d.heads)]
    for n in range(size(rng, 4, 12)):
        row = d.values(n)
        d.record(row)
        rows.append(",".join(say(v, d.loc) for v in row[:3]) + "," + f"{row[3]:.2f}".replace(".", ","))
    return lines(d, rows)


@stranger("second_single_quotes")
def _(rng: Random) -> Case:
    d = trade(rng, "en")
    d.header()
    d.records(size(rng, 4, 35))
    rows = [",".join("'" + c.replace("'", "''") + "'" for c in r) for r in d.texts()]
    return lines(d, rows)


@stranger("second_backslash_escapes")
def _(rng: Random) -> Case:
    r"""A database's dump: \" inside of quotes, \N for nothing."""
    d = start(rng, "plate part pieces comment", "en")
    d.header()
    rows = [",".join(f'"{h}"' for h in d.heads)]
    for n in range(size(rng, 5, 35)):
        row = d.values(n)
        row[1] = rng.choice((row[1], 'Pipe 5" long', 'Sheet 2" x 4"', 'Hose, 3/4"'))
        row[3] = rng.choice((row[3], None))
        d.record(row, {"comment": any_of(row[3], "\\N") if row[3] is None else row[3]})
        made = [c.replace('"', '\\"') for c in (say(v, d.loc) for v in row)]
        rows.append(",".join("\\N" if v is None else f'"{c}"' for v, c in zip(row, made, strict=True)))
    return lines(d, rows)


@stranger("second_equals_before_quotes")
def _(rng: Random) -> Case:
    """A web shop keeps zeros in front: ="00123"."""
    d = start(rng, FLEET, "en")
    d.cols[0] = _named("card", "text", "en=Card", lambda r, n: f"00{4100 + n}")
    d.header()
    rows = [",".join(d.heads)]
    for n in range(size(rng, 4, 35)):
        row = d.values(n)
        d.record(row)
        rows.append(f'="{row[0]}",' + ",".join(say(v, d.loc) for v in row[1:]))
    return lines(d, rows)


@stranger("second_pipe_table")
def _(rng: Random) -> Case:
    """A table as documents and shells draw it."""
    d = trade(rng, "en")
    d.header()
    d.records(size(rng, 3, 20))
    texts = d.texts()
    wide = [max(len(r[n]) for r in texts) for n in range(len(d.cols))]
    drawn = ["| " + " | ".join(c.ljust(w) for c, w in zip(r, wide, strict=True)) + " |" for r in texts]
    style = rng.randrange(2)
    rule = (
        "|" + "|".join("-" * (w + 2) for w in wide) + "|"
        if style
        else "+" + "+".join("-" * (w + 2) for w in wide) + "+"
    )
    body = [drawn[0], rule, *drawn[1:]] if style else [rule, drawn[0], rule, *drawn[1:], rule]
    shift = 1 if style else 2
    for t in d.tables:
        t.rows = [r._replace(number=r.number + shift) for r in t.rows]
    return lines(d, body, rng.choice(("data.csv", "data.txt")))


@stranger("second_joined_exports")
def _(rng: Random) -> Case:
    """Two exports put together; in the second the columns stand in another order."""
    d = trade(rng, "en fi")
    d.header()
    d.records(size(rng, 4, 20))
    order = list(range(len(d.cols)))[::-1]
    d.line(*[d.heads[n] for n in order], why="second header")
    for n in range(rng.randrange(3, 9)):
        row = d.values(50 + n)
        d.record(row, cells=[row[o] for o in order])
    return d.csv()


@stranger("second_blank_below_equal", plain=True)
def _(rng: Random) -> Case:
    """A report names the keeper once for several visits."""
    d = start(rng, "keeper animal visit charge")
    d.header()
    last = None
    for n in range(size(rng, 6, 35)):
        row = d.values(n)
        if last is not None and rng.random() < 0.4:
            row[0] = None
        last = row[0]
        d.record(row)
    return d.any("csv book")


@stranger("second_fixed_columns")
def _(rng: Random) -> Case:
    """A mainframe's list: blanks make the columns."""
    d = start(rng, "chip animal keeper charge", "en")
    d.header()
    d.records(size(rng, 4, 35))
    texts = d.texts()
    wide = [max(len(r[n]) for r in texts) + 3 for n in range(len(d.cols))]
    return lines(d, ["".join(c.ljust(w) for c, w in zip(r, wide, strict=True)).rstrip() for r in texts], "data.txt")


# What a cell shows


@stranger("second_zeros_by_format")
def _(rng: Random) -> Case:
    """Postcodes and cards are numbers that a format fills with zeros."""
    d = start(rng, FLEET, "en")
    d.cols[0] = _named("card", "text", "en=Card", lambda r, n: 0)
    d.header()
    for n in range(size(rng, 4, 35)):
        row = d.values(n)
        number = rng.randrange(12, 99999)
        row[0] = Shown(number, "00000", f"{number:05}")
        d.record(row, {"card": f"{number:05}"})
    return d.book("openpyxl xlsxwriter raw_xml xlwt")


@stranger("second_hours_as_times", right=False)
def _(rng: Random) -> Case:
    """Hours worked, as times of day; the field counts hours."""
    d = start(rng, "driver day km", "en")
    d.cols[2] = _named("hours", "decimal", "en=Hours", lambda r, n: 0)
    d.header()
    for n in range(size(rng, 4, 35)):
        row = d.values(n)
        worked = time(rng.randrange(2, 11), rng.choice((0, 15, 30, 45)))
        row[2] = worked if rng.random() < 0.5 else Raw(worked.strftime("%-H:%M"))
        d.record(row, {"hours": worked.hour + worked.minute / 60})
    return d.book("openpyxl xlsxwriter xlwt")


@stranger("second_check_marks")
def _(rng: Random) -> Case:
    d = start(rng, "chip animal keeper", "en")
    d.cols.append(_named("vaccinated", "boolean", "en=Vaccinated", lambda r, n: r.random() < 0.6))
    yes, no = rng.choice((("✓", "✗"), ("☑", "☐"), ("✔", "✘"), ("x", "-"), ("1", "0"), ("Y", "N"), ("●", "○")))
    d.header()
    for n in range(size(rng, 5, 35)):
        row = d.values(n)
        d.record(row, cells=[*row[:3], Raw(yes if row[3] else no)])
    return d.any()


@stranger("second_soll_and_haben")
def _(rng: Random) -> Case:
    """The side of the account stands behind the amount."""
    d = start(rng, "plate driver day charge", "en")
    d.header()
    minus, plus = rng.choice(((" DR", " CR"), (" S", " H"), (" Dr", " Cr"), ("D", "C")))
    for n in range(size(rng, 5, 35)):
        row = d.values(n)
        taken = rng.random() < 0.5
        d.record(
            row,
            {"charge": -row[3] if taken else row[3]},
            cells=[*row[:3], Raw(f"{row[3]:.2f}{minus if taken else plus}")],
        )
    return d.any("csv book")


@stranger("second_grams_and_kilos", right=False)
def _(rng: Random) -> Case:
    d = start(rng, "inventory_no title shelf", "en")
    d.cols.append(_named("weight_kg", "decimal", "en=Weight", lambda r, n: r.randrange(2, 900) / 10))
    d.header()
    for n in range(size(rng, 5, 35)):
        row = d.values(n)
        kind = rng.randrange(3)
        said = f"{row[3]:.1f} kg" if kind else f"{round(row[3] * 1000)} g"
        d.record(row, cells=[*row[:3], Raw(said)])
    return d.any("csv book")


@stranger("second_about_and_below")
def _(rng: Random) -> Case:
    """Some readings are not exact: below a limit, about, estimated."""
    d = start(rng, "station day rain", "en")
    d.header()
    for n in range(size(rng, 6, 35)):
        row = d.values(n)
        how = rng.choice(("{}", "{}", "{}", "<{}", "~{}", "{}*", "ca. {}", "{} (est.)", ">{}", "{}?", "{}e"))
        said = how.format(row[2])
        d.record(row, {"rain": row[2] if how == "{}" else said}, cells=[*row[:2], row[2] if how == "{}" else Raw(said)])
    return d.any("csv book")


@stranger("second_two_values_in_a_cell")
def _(rng: Random) -> Case:
    """Two pieces in one row, the counts below each other in the cell."""
    d = start(rng, "plate part pieces", "en")
    d.header()
    rows = size(rng, 5, 35)
    twice = rng.randrange(rows)
    for n in range(rows):
        row = d.values(n)
        if n == twice:
            said = rng.choice(("3\n4", "3 / 4", "3+4", "3 4", "3; 4", "3 & 4"))
            d.record(row, {"pieces": said}, cells=[*row[:2], Raw(said)])
        else:
            d.record(row)
    return d.any("csv book")


@stranger("second_era_dates")
def _(rng: Random) -> Case:
    """Japanese eras, full-width digits, month names without a day."""
    d = start(rng, "chip animal visit", "en")
    kind = rng.randrange(4)
    d.header()
    for n in range(size(rng, 5, 20)):
        row = d.values(n)
        w: date = row[2]
        era = f"令和{w.year - 2018}年{w.month}月{w.day}日"
        short = f"R{w.year - 2018}.{w.month}.{w.day}"
        wide = f"{w.year}年{w.month}月{w.day}日".translate(str.maketrans("0123456789", "０１２３４５６７８９"))
        said = (era, short, wide, f"{w:%B} {w.year}")[kind]
        d.record(row, {"visit": any_of(w, said) if kind < 3 else said}, cells=[*row[:2], Raw(said)])
    return d.any("csv book")


@stranger("second_three_ways_of_percent", right=False)
def _(rng: Random) -> Case:
    d = start(rng, "plot crop", "en")
    d.cols.append(_named("moisture", "percent", "en=Moisture", lambda r, n: r.randrange(8, 30)))
    d.header()
    for n in range(size(rng, 6, 35)):
        row = d.values(n)
        said: Any = (f"{row[2]}%", row[2] / 100, row[2])[n % 3]
        d.record(row, {"moisture": row[2] / 100}, cells=[*row[:2], Raw(str(said)) if isinstance(said, str) else said])
    return d.book()


@stranger("second_days_that_are_none")
def _(rng: Random) -> Case:
    """31 June, 00.00.0000, 9999-12-31 and 1900-01-00 stand for unknown days."""
    d = start(rng, "chip animal visit charge", "da")
    d.header()
    for n in range(size(rng, 6, 35)):
        row = d.values(n)
        said = rng.choice(("", "", "", "31-06-2025", "00-00-0000", "30-02-2025"))
        d.record(row, {"visit": said or row[2]}, cells=[*row[:2], Raw(said) if said else row[2], row[3]])
    return d.csv()


# What a column is called


def bare(d: Draft, fields: list[dict[str, Any]]) -> None:
    """Fields as a manifest's author writes them, without this sender's spellings."""
    d.fields = fields


@stranger("second_not_paid")
def _(rng: Random) -> Case:
    """The column says the opposite of the field, in some language."""
    d = start(rng, "flat tenant rent", "en")
    good, bad, yes, no = rng.choice((
        ("Paid", "Unpaid", "yes", "no"), ("Delivered", "Not delivered", "yes", "no"), ("Pago", "Não pago", "sim", "não"),
        ("Zaplaceno", "Nezaplaceno", "ano", "ne"), ("Betalt", "Ikke betalt", "ja", "nej"), ("Maksettu", "Maksamatta", "kyllä", "ei"),
        ("Оплачено", "Не оплачено", "да", "нет"), ("Insured", "Uninsured", "yes", "no"), ("Bezahlt", "Unbezahlt", "ja", "nein"),
        ("Complete", "Incomplete", "yes", "no"), ("Valid", "Invalid", "yes", "no"), ("Fizetve", "Nem fizetett", "igen", "nem"),
    ))  # fmt: skip
    field = "paid" if good not in ("Delivered", "Insured", "Complete", "Valid") else good.lower()
    bare(d, [
        {"name": "flat"}, {"name": "tenant"}, {"name": "rent", "type": "money"},
        {"name": field, "type": "boolean", "synonyms": [good]},
    ])  # fmt: skip
    d.line(*d.heads, bad)
    for n in range(size(rng, 5, 35)):
        row = d.values(n)
        said = rng.random() < 0.4
        d.record(row, {field: any_of(None, not said)}, cells=[*row, Raw(yes if said else no)])
    d.tables[0].columns[field] = 4
    return d.any("book csv")


@stranger("second_units_of_other_places")
def _(rng: Random) -> Case:
    d = start(rng, "station day", "en")
    field, head = rng.choice((
        ("temp_c", "Temp (°F)"), ("duration_min", "Duration (h)"), ("speed_kmh", "Speed (mph)"), ("pressure_bar", "Pressure (psi)"),
        ("area_ha", "Area (acres)"), ("volume_l", "Volume (gal)"), ("depth_m", "Depth (ft)"), ("rain_mm", "Rain (in)"),
        ("price_eur", "Price (CHF)"), ("energy_kwh", "Energy (MJ)"), ("distance_km", "Distance (miles)"), ("length_cm", "Length [mm]"),
    ))  # fmt: skip
    bare(d, [{"name": "station"}, {"name": "day", "type": "date"}, {"name": field, "type": "decimal"}])
    d.line(*d.heads, head)
    for n in range(size(rng, 5, 35)):
        row = d.values(n)
        d.record(row, {field: None}, cells=[*row, rng.randrange(40, 990) / 10])
    d.tables[0].columns[field] = 3
    return d.any("book csv")


@stranger("second_units_as_asked", plain=True)
def _(rng: Random) -> Case:
    d = start(rng, "station day", "en")
    field, head = rng.choice((
        ("temp_c", "Temp (°C)"), ("duration_min", "Duration (min)"), ("speed_kmh", "Speed (km/h)"), ("pressure_bar", "Pressure (bar)"),
        ("area_ha", "Area (ha)"), ("volume_l", "Volume (l)"), ("depth_m", "Depth (m)"), ("rain_mm", "Rain (mm)"),
        ("price_eur", "Price (EUR)"), ("energy_kwh", "Energy (kWh)"), ("distance_km", "Distance (km)"),
    ))  # fmt: skip
    d.cols.append(_named(field, "decimal", f"en={head}", lambda r, n: r.randrange(401, 990) / 10))
    bare(d, [{"name": "station"}, {"name": "day", "type": "date"}, {"name": field, "type": "decimal"}])
    d.header()
    d.records(size(rng, 5, 35))
    return d.any("book csv")


@stranger("second_the_other_end")
def _(rng: Random) -> Case:
    """The field is the one end, the column the other."""
    d = start(rng, "guest room", "en")
    field, head = rng.choice((
        ("check_in", "Check-out"), ("date_of_birth", "Date of death"), ("valid_from", "Valid to"), ("start_date", "End date"),
        ("date_opened", "Date closed"), ("departure_date", "Arrival date"), ("hire_date", "Termination date"), ("order_date", "Delivery date"),
        ("invoice_date", "Due date"), ("date_sent", "Date received"), ("created_on", "Modified on"),
    ))  # fmt: skip
    bare(d, [{"name": "guest"}, {"name": "room"}, {"name": field, "type": "date"}])
    d.line(*d.heads, head)
    for n in range(size(rng, 5, 35)):
        row = d.values(n)
        d.record(row, {field: None}, cells=[*row, MINE["arrival"].make(rng, n)])
    d.tables[0].columns[field] = 3
    return d.any("book csv")


@stranger("second_another_period")
def _(rng: Random) -> Case:
    d = start(rng, "plot crop", "en")
    field, head = rng.choice((
        ("budget_2025", "Budget 2024"), ("sales_q1", "Sales Q2"), ("harvest_this_year", "Harvest last year"), ("target_h1", "Target H2"),
        ("opening_stock", "Closing stock"), ("max_temp", "Min temp"), ("debit", "Credit"), ("income", "Expenses"), ("sold", "Bought"),
        ("price_new", "Price old"), ("home_goals", "Away goals"), ("adults", "Children"), ("planned_hours", "Actual hours"),
    ))  # fmt: skip
    bare(d, [{"name": "plot"}, {"name": "crop"}, {"name": field, "type": "decimal"}])
    d.line(*d.heads, head)
    for n in range(size(rng, 5, 35)):
        row = d.values(n)
        d.record(row, {field: None}, cells=[*row, rng.randrange(40, 990) / 10])
    d.tables[0].columns[field] = 3
    return d.any("book csv")


@stranger("second_thousands_in_words", right=False)
def _(rng: Random) -> Case:
    """The header says in words that the numbers count thousands."""
    d = start(rng, "plot crop", "en")
    head = rng.choice(each(
        "Turnover (bin TL)|Turnover v tis. Kč|Turnover (ezer Ft)|Turnover (t.kr.)|Turnover em milhares de euros|Turnover, тыс. руб.|"
        "Turnover (χιλ. €)|Turnover (1000 €)|Turnover '000|Turnover (kEUR)|Turnover [Mio. CHF]|Turnover (€m)|Turnover in thousands|Turnover (000s)"
    ))  # fmt: skip
    d.cols.append(_named("turnover", "money", f"en={head}", lambda r, n: float(r.randrange(11, 900))))
    bare(d, [{"name": "plot"}, {"name": "crop"}, {"name": "turnover", "type": "money"}])
    d.header()
    d.records(size(rng, 5, 35))
    d.tell("turnover")
    return d.any("book csv")


@stranger("second_columns_changed_places", right=False)
def _(rng: Random) -> Case:
    """Somebody swapped the names of two columns: the codes stand under another name."""
    d = start(rng, VET, "en")
    d.line(*[d.heads[n] for n in (1, 0, 2, 3, 4)])
    for n in range(size(rng, 6, 35)):
        row = d.values(n)
        d.record(row, {"chip": row[1], "animal": row[0]})
    d.fields = [{"name": c.field, "type": c.type} for c in d.cols]
    d.fields[0]["pattern"] = "Z[0-9]{6}"
    d.tell("chip")
    return d.any("book csv")


# Nothing quietly empty


@stranger("second_column_without_a_name", right=False)
def _(rng: Random) -> Case:
    """The name of one column was deleted; its values are there."""
    d = start(rng, FARM, "en")
    gone = rng.randrange(1, 4)
    heads: list[Any] = list(d.heads)
    heads[gone] = None
    d.line(*heads)
    d.records(size(rng, 5, 35))
    return d.any("book csv")


@stranger("second_rows_filtered_away", plain=True)
def _(rng: Random) -> Case:
    """A filter hides rows; they are still records."""
    d = start(rng, HOTEL)
    d.header()
    d.records(size(rng, 8, 35))
    d.page.hidden_rows = set(rng.sample(range(2, len(d.page.rows) + 1), 3))
    return d.book("openpyxl xlsxwriter raw_xml")


@stranger("second_title_sheet_first", plain=True)
def _(rng: Random) -> Case:
    """A cover sheet with a title and a date, then the list."""
    d = trade(rng)
    d.sheet("Cover").line("Annual report of the parish")
    d.line()
    d.line(None, "Version of 3 May 2025")
    d.sheet("List").header()
    d.records(size(rng, 4, 35))
    return d.book()


@stranger("second_asked_for_more_than_there_is")
def _(rng: Random) -> Case:
    """A declared field has no column in this file."""
    d = start(rng, FARM)
    d.header()
    d.records(size(rng, 4, 35))
    made = d._fields(text=False)
    d.fields = [*made, {"name": rng.choice(("soil_type", "seed_supplier", "irrigated")), "type": "text"}]
    d.tell(d.fields[-1]["name"])
    return d.book()
