"""A second stranger: hotels, farms, museums, stations, clubs; rows and tables as they come from them."""

from datetime import date, timedelta
from random import Random
from typing import Any

from tests.truth.cases import Case
from tests.truth.strangers.kit import Col, Draft, Loc, each, person, size, stranger

PLACES = {
    "en": Loc("en", ",", ".", ",", "%Y-%m-%d", "yes", "no", "Total"),
    "pt": Loc("pt", ";", ",", ".", "%d/%m/%Y", "sim", "não", "Total geral"),
    "cs": Loc("cs", ";", ",", " ", "%d.%m.%Y", "ano", "ne", "Celkem"),
    "da": Loc("da", ";", ",", ".", "%d-%m-%Y", "ja", "nej", "I alt"),
    "tr": Loc("tr", ";", ",", ".", "%d.%m.%Y", "evet", "hayır", "Toplam"),
    "fi": Loc("fi", ";", ",", " ", "%d.%m.%Y", "kyllä", "ei", "Yhteensä"),
    "hu": Loc("hu", ";", ",", " ", "%Y-%m-%d", "igen", "nem", "Összesen"),
    "ru": Loc("ru", ";", ",", " ", "%d.%m.%Y", "да", "нет", "Итого"),
}
ROOMS = each("Garden|Sea view|Attic|Family|Twin|Suite|Single")
CROPS = each("Barley|Winter wheat|Maize|Rapeseed|Clover|Potatoes|Sugar beet|Oats|Rye")
FIELDS_ = each("Long Acre|Mill Field|Upper Ten|Church Side|Brook|Old Orchard|Hill Top|Lower Ten|Station")
TITLES = each(
    "Notes on a Scandal|Source Code|Total Recall|The Sum of All Fears|Page Eight|A Note of Hope|See Under: Love|The Average American Male|"
    "Remarks on Colour|As of Yesterday|Legend|Subtotal Eclipse|End of File|Contents May Vary|Prepared by Nobody|Middlemarch|Emma|Dune|"
    "Grand Hotel|Minimum Wage|Balance of Power|Confidential Clerk"
)
PARTS = each("Brake pad|Air filter|Oil 5W-30|Wiper blade|Spark plug|Tyre 205/55|Battery 70Ah|Bulb H7")
DOGS = each("Rex|Luna|Bella|Max|Nala|Balu|Kira|Toby|Mia|Odin")
STATIONS = each("North pier|Harbour|Airfield|Summit|Valley|Old mill|Dam")


def _named(field: str, kind: str, heads: str, make: Any, **spec: Any) -> Col:
    return Col(field, kind, dict(p.split("=", 1) for p in heads.split("|")), make, spec)


def day(rng: Random, n: int = 0) -> date:
    return date(2025, 1, 3) + timedelta(days=rng.randrange(500))


def cents(rng: Random, n: int = 0) -> float:
    return rng.randrange(205, 98000) / 100


MINE = {
    c.field: c
    for c in (
        _named("guest", "text", "en=Guest|pt=Hóspede|cs=Host|da=Gæst|tr=Misafir|fi=Vieras|hu=Vendég|ru=Гость", lambda r, n: person(r)),
        _named("room", "text", "en=Room|pt=Quarto|cs=Pokoj|da=Værelse|tr=Oda|fi=Huone|hu=Szoba|ru=Номер", lambda r, n: f"{r.choice(ROOMS)} {r.randrange(1, 30)}"),
        _named("arrival", "date", "en=Arrival|pt=Chegada|cs=Příjezd|da=Ankomst|tr=Giriş|fi=Saapuminen|hu=Érkezés|ru=Заезд", day),
        _named("nights", "integer", "en=Nights|pt=Noites|cs=Noci|da=Nætter|tr=Gece|fi=Yöt|hu=Éjszaka|ru=Ночей", lambda r, n: r.randrange(1, 15)),
        _named("charge", "money", "en=Charge|pt=Valor|cs=Částka|da=Beløb|tr=Tutar|fi=Summa|hu=Összeg|ru=Сумма", cents),
        _named("plot", "text", "en=Plot|pt=Parcela|cs=Pole|da=Mark|tr=Tarla|fi=Lohko|hu=Tábla|ru=Поле", lambda r, n: f"{r.choice(FIELDS_)} {n + 1}"),
        _named("crop", "text", "en=Crop|pt=Cultura|cs=Plodina|da=Afgrøde|tr=Ürün|fi=Viljelykasvi|hu=Növény|ru=Культура", lambda r, n: r.choice(CROPS)),
        _named("hectares", "decimal", "en=Hectares|pt=Hectares|cs=Hektary|da=Hektar|tr=Hektar|fi=Hehtaarit|hu=Hektár|ru=Гектары", lambda r, n: r.randrange(20, 4000) / 100),
        _named("harvest", "decimal", "en=Harvest t|pt=Colheita t|cs=Sklizeň t|da=Høst t|tr=Hasat t|fi=Sato t|hu=Termés t|ru=Урожай т", lambda r, n: r.randrange(100, 9000) / 10),
        _named("title", "text", "en=Title|pt=Título|cs=Název|da=Titel|tr=Başlık|fi=Nimeke|hu=Cím|ru=Название", lambda r, n: r.choice(TITLES)),
        _named("author", "text", "en=Author|pt=Autor|cs=Autor|da=Forfatter|tr=Yazar|fi=Tekijä|hu=Szerző|ru=Автор", lambda r, n: person(r)),
        _named("year", "integer", "en=Year|pt=Ano|cs=Rok|da=År|tr=Yıl|fi=Vuosi|hu=Év|ru=Год", lambda r, n: r.randrange(1950, 2024)),
        _named("shelf", "text", "en=Shelf|pt=Estante|cs=Regál|da=Hylde|tr=Raf|fi=Hylly|hu=Polc|ru=Полка", lambda r, n: f"{r.choice('ABCDEF')}{r.randrange(10, 60)}"),
        _named("inventory_no", "text", "en=Inventory no|pt=N.º inventário|cs=Inv. číslo|da=Inventarnr.|tr=Envanter no|fi=Inventaarionro|hu=Leltári szám|ru=Инв. номер", lambda r, n: f"MU{1900 + n}.{r.randrange(1, 99)}"),
        _named("part", "text", "en=Part|pt=Peça|cs=Díl|da=Del|tr=Parça|fi=Osa|hu=Alkatrész|ru=Деталь", lambda r, n: r.choice(PARTS)),
        _named("pieces", "integer", "en=Pieces|pt=Peças|cs=Kusů|da=Stk.|tr=Adet|fi=Kpl|hu=Darab|ru=Шт.", lambda r, n: r.randrange(1, 40)),
        _named("plate", "text", "en=Plate|pt=Matrícula|cs=SPZ|da=Nummerplade|tr=Plaka|fi=Rekisterinro|hu=Rendszám|ru=Госномер", lambda r, n: f"{r.choice('ABKT')}{r.choice('XYZ')} {1000 + n}"),
        _named("driver", "text", "en=Driver|pt=Condutor|cs=Řidič|da=Chauffør|tr=Sürücü|fi=Kuljettaja|hu=Sofőr|ru=Водитель", lambda r, n: person(r)),
        _named("km", "integer", "en=Km|pt=Km|cs=Km|da=Km|tr=Km|fi=Km|hu=Km|ru=Км", lambda r, n: r.randrange(900, 90000)),
        _named("animal", "text", "en=Animal|pt=Animal|cs=Zvíře|da=Dyr|tr=Hayvan|fi=Eläin|hu=Állat|ru=Животное", lambda r, n: r.choice(DOGS)),
        _named("chip", "text", "en=Chip|pt=Chip|cs=Čip|da=Chip|tr=Çip|fi=Siru|hu=Chip|ru=Чип", lambda r, n: f"Z{276000 + n}"),
        _named("keeper", "text", "en=Keeper|pt=Dono|cs=Majitel|da=Ejer|tr=Sahip|fi=Omistaja|hu=Gazda|ru=Владелец", lambda r, n: person(r)),
        _named("visit", "date", "en=Visit|pt=Visita|cs=Návštěva|da=Besøg|tr=Ziyaret|fi=Käynti|hu=Látogatás|ru=Визит", day),
        _named("station", "text", "en=Station|pt=Estação|cs=Stanice|da=Station|tr=İstasyon|fi=Asema|hu=Állomás|ru=Станция", lambda r, n: r.choice(STATIONS)),
        _named("day", "date", "en=Day|pt=Dia|cs=Den|da=Dag|tr=Gün|fi=Päivä|hu=Nap|ru=День", lambda r, n: date(2025, 3, 1) + timedelta(days=n)),
        _named("rain", "decimal", "en=Rain|pt=Chuva|cs=Déšť|da=Regn|tr=Yağış|fi=Sade|hu=Eső|ru=Осадки", lambda r, n: r.randrange(0, 400) / 10),
        _named("wind", "decimal", "en=Wind|pt=Vento|cs=Vítr|da=Vind|tr=Rüzgar|fi=Tuuli|hu=Szél|ru=Ветер", lambda r, n: r.randrange(10, 900) / 10),
        _named("flat", "text", "en=Flat|pt=Apartamento|cs=Byt|da=Lejlighed|tr=Daire|fi=Asunto|hu=Lakás|ru=Квартира", lambda r, n: f"{n // 3 + 1}{'abc'[n % 3]}"),
        _named("tenant", "text", "en=Tenant|pt=Inquilino|cs=Nájemce|da=Lejer|tr=Kiracı|fi=Vuokralainen|hu=Bérlő|ru=Жилец", lambda r, n: person(r)),
        _named("rent", "money", "en=Rent|pt=Renda|cs=Nájem|da=Husleje|tr=Kira|fi=Vuokra|hu=Bérleti díj|ru=Аренда", lambda r, n: float(r.randrange(300, 1600))),
        _named("comment", "text", "en=Comment|pt=Comentário|cs=Komentář|da=Kommentar|tr=Yorum|fi=Huomautus|hu=Megjegyzés|ru=Комментарий", lambda r, n: r.choice(("late", "paid by card", "called twice", "ok"))),
    )
}  # fmt: skip
HOTEL = "guest room arrival nights charge"
FARM = "plot crop hectares harvest"
BOOKS_ = "title author year shelf"
FLEET = "plate driver km charge"
VET = "chip animal keeper visit charge"
HOUSE = "flat tenant rent"
WEATHER = "station day rain wind"


def start(rng: Random, names: str, places: str = "") -> Draft:
    place = PLACES[rng.choice(places.split() or list(PLACES))]
    return Draft(rng, place, [MINE[n] for n in names.split()])


def trade(rng: Random, places: str = "") -> Draft:
    """Some trade's list."""
    return start(rng, rng.choice((HOTEL, FARM, FLEET, VET)), places)


def spread(row: list[Any], kept: set[int]) -> list[Any]:
    return [v if n in kept else None for n, v in enumerate(row)]


def total(d: Draft, rows: list[list[Any]], label: Any = None, at: int = 0) -> list[Any]:
    """A line of sums over the numeric columns."""
    line: list[Any] = [None] * len(d.cols)
    for n, c in enumerate(d.cols):
        if c.type in ("money", "integer", "decimal") and c.field != "year":
            made = sum(r[n] for r in rows if r[n] is not None)
            line[n] = round(made, 2) if c.type != "integer" else made
    line[at] = label if label is not None else d.loc.total
    return line


# Rows that end a list, or stand between


@stranger("second_trade_list", plain=True)
def _(rng: Random) -> Case:
    d = trade(rng)
    d.header()
    d.records(size(rng, 3, 120))
    return d.any()


@stranger("second_titles_like_remarks", plain=True)
def _(rng: Random) -> Case:
    d = start(rng, BOOKS_)
    d.header()
    d.records(size(rng, 5, 60))
    return d.any()


@stranger("second_titles_alone_at_the_end")
def _(rng: Random) -> Case:
    """The last books are wishes: a title only."""
    d = start(rng, BOOKS_)
    d.header()
    rows = size(rng, 6, 35)
    d.records(rows)
    for n in range(rng.randrange(1, 3)):
        d.record(spread(d.values(rows + n), {0}))
    return d.any()


@stranger("second_first_rows_hold_a_name_only")
def _(rng: Random) -> Case:
    d = start(rng, rng.choice((HOTEL, BOOKS_)))
    d.header()
    for n in range(rng.randrange(1, 4)):
        d.record(spread(d.values(n), {0}))
    d.records(size(rng, 6, 35), start=5)
    return d.any()


@stranger("second_seasons_apart_by_blank_rows")
def _(rng: Random) -> Case:
    """Two or three blank rows between the seasons, no caption, the columns go on."""
    d = trade(rng)
    d.header()
    n = 0
    for _part in range(rng.randrange(2, 5)):
        made = rng.randrange(1, 7)
        d.records(made, start=n)
        n += made
        for _gap in range(rng.randrange(1, 4)):
            d.line()
    d.records(1, start=n)
    return d.any()


@stranger("second_late_records_below_the_total")
def _(rng: Random) -> Case:
    d = trade(rng)
    d.header()
    rows = d.records(size(rng, 4, 20))
    d.line(*total(d, rows), why="total")
    if rng.random() < 0.7:
        d.line()
    d.records(rng.randrange(1, 4), start=50)
    return d.any()


@stranger("second_waiting_list_below")
def _(rng: Random) -> Case:
    """A word, then more records in the same columns."""
    d = start(rng, HOTEL, "en da pt")
    d.header()
    d.records(size(rng, 4, 20))
    if rng.random() < 0.5:
        d.line()
    d.line({"en": "Waiting list:", "da": "Venteliste:", "pt": "Lista de espera:"}[d.loc.lang], why="caption")
    d.records(rng.randrange(1, 5), start=60)
    return d.any()


@stranger("second_closed_days")
def _(rng: Random) -> Case:
    """A till's days: on closed ones only the day, or zeros, or a word."""
    d = start(rng, "day pieces charge comment")
    d.header()
    rows = size(rng, 8, 35)
    for n in range(rows):
        row = d.values(n)
        how = rng.random()
        if how < 0.15 or n == rows - 1:
            row = spread(row, {0})
        elif how < 0.3:
            row = [row[0], None, None, "closed"]
        elif how < 0.4:
            row = [row[0], 0, 0.0, None]
        d.record(row)
    return d.any()


@stranger("second_sparse_survey", plain=True)
def _(rng: Random) -> Case:
    """An inspection: every row has its key and a few other cells."""
    d = start(rng, "inventory_no title shelf year comment")
    d.header()
    for n in range(size(rng, 8, 60)):
        d.record(spread(d.values(n), {0, rng.randrange(1, 5), rng.randrange(1, 5)}))
    return d.any()


@stranger("second_same_ticket_twice", plain=True)
def _(rng: Random) -> Case:
    """Equal records are records: five equal tickets were sold."""
    d = start(rng, "day room pieces charge")
    d.header()
    for n in range(size(rng, 5, 20)):
        row = d.values(n)
        for _again in range(rng.choice((1, 1, 1, 2, 3))):
            d.record(list(row))
    return d.any()


@stranger("second_small_numbers_that_add_up", plain=True)
def _(rng: Random) -> Case:
    """Counts of one digit: some row is the sum of those above, by chance."""
    d = start(rng, "animal keeper pieces")
    d.header()
    made = []
    for n in range(size(rng, 5, 20)):
        row = d.values(n)
        row[2] = rng.randrange(1, 6)
        made.append(row)
    made[-1][2] = made[-2][2] + made[-3][2]
    for row in made:
        d.record(row)
    return d.any()


@stranger("second_one_column_with_gaps")
def _(rng: Random) -> Case:
    """Scanned codes, one below the other, a blank row after each box."""
    d = start(rng, rng.choice(("chip", "plate", "inventory_no")))
    d.header()
    n = 0
    for _box in range(rng.randrange(2, 5)):
        for _code in range(rng.randrange(1, 6)):
            d.record(d.values(n))
            n += 1
        d.line()
    d.record(d.values(n))
    return d.any("book book csv")


@stranger("second_one_column", plain=True)
def _(rng: Random) -> Case:
    d = start(rng, rng.choice(("chip", "plate", "inventory_no")))
    d.header()
    d.records(size(rng, 4, 60))
    return d.any("book book csv")


@stranger("second_dictionary_of_columns", plain=True)
def _(rng: Random) -> Case:
    """The records are names of columns: a data dictionary."""
    d = Draft(rng, PLACES["en"], [
        _named("field", "text", "en=Field", lambda r, n: ""),
        _named("type", "text", "en=Type", lambda r, n: ""),
        _named("description", "text", "en=Description", lambda r, n: ""),
    ])  # fmt: skip
    d.header()
    rows = [
        ["id", "integer", "the key"], ["name", "text", "as in the passport"], ["field", "text", "which field it is"],
        ["type", "text", "one of the types"], ["total", "money", "sum of all lines"], ["description", "text", "free text"],
        ["note", "text", "remarks of the clerk"], ["date", "date", "day of entry"], ["page", "integer", "where it stands"],
    ]  # fmt: skip
    rng.shuffle(rows)
    for row in rows[: rng.randrange(5, 10)]:
        d.record(row)
    return d.any("book csv")


# What is no record


@stranger("second_totals_of_the_world")
def _(rng: Random) -> Case:
    d = trade(rng)
    d.header()
    rows = d.records(size(rng, 4, 35))
    if rng.random() < 0.4:
        d.line()
    d.line(*total(d, rows, d.loc.total + rng.choice(("", ":", f" ({len(rows)})"))), why="total")
    return d.any()


@stranger("second_total_said_in_the_last_column")
def _(rng: Random) -> Case:
    """The word stands at the right, beside its number."""
    d = start(rng, "chip animal charge comment")
    d.header()
    rows = d.records(size(rng, 4, 35))
    line = total(d, rows)
    d.line(None, None, line[2], d.loc.total, why="total")
    return d.any()


@stranger("second_query_footer")
def _(rng: Random) -> Case:
    """As database shells write: a drawn line below the header, the count of rows at the end."""
    d = trade(rng, "en")
    d.header()
    if rng.random() < 0.6:
        d.line(*["-" * max(3, len(h)) for h in d.heads], why="drawn line")
    rows = size(rng, 3, 35)
    d.records(rows)
    if rng.random() < 0.5:
        d.line()
    d.line(rng.choice((f"({rows} rows affected)", f"({rows} rows)", f"{rows} rows selected.", f"{rows} record(s) found")), why="footer")  # fmt: skip
    return d.csv(pad=rng.random() < 0.5)


@stranger("second_units_below_the_header")
def _(rng: Random) -> Case:
    d = start(rng, "station day rain wind")
    d.header()
    d.line(None, None, rng.choice(("mm", "[mm]", "l/m²")), rng.choice(("km/h", "[km/h]", "m/s")), why="units")
    d.records(size(rng, 4, 35))
    return d.any()


@stranger("second_instructions_below_the_header")
def _(rng: Random) -> Case:
    """A template for uploads: what to enter stands below the names."""
    d = start(rng, HOTEL, "en")
    d.header()
    said = [
        "Full name as in the passport",
        "Name and number of the room",
        "YYYY-MM-DD",
        "Whole number",
        "Numbers only, two decimals",
    ]
    d.line(*said, why="instructions")
    d.records(size(rng, 4, 35))
    return d.any()


@stranger("second_machine_names_below_labels")
def _(rng: Random) -> Case:
    """A marketplace's template: labels, then the names that its program uses."""
    d = start(rng, "inventory_no title year charge", "en")
    d.header()
    d.line("item_inventory_no", "item_title", "item_year", "standard_charge", why="machine names")
    d.records(size(rng, 4, 35))
    return d.any()


@stranger("second_legend_below")
def _(rng: Random) -> Case:
    d = start(rng, "chip animal keeper comment", "en da")
    d.header()
    d.records(size(rng, 4, 35))
    if rng.random() < 0.7:
        d.line()
    d.line("x = vaccinated", None, "o = not yet", why="legend")
    d.line("(x) = vaccinated elsewhere, certificate seen", why="legend")
    return d.any()


@stranger("second_notice_between_records")
def _(rng: Random) -> Case:
    d = trade(rng, "en")
    d.header()
    d.records(rng.randrange(3, 9))
    d.line(rng.choice(("*** closed until 6 January ***", "--- new price list from here on ---", "from here on entered by the night shift")), why="notice")  # fmt: skip
    d.records(rng.randrange(3, 9), start=20)
    return d.any()


@stranger("second_last_year_below_the_total")
def _(rng: Random) -> Case:
    """The total, last year's, and the change."""
    d = trade(rng, "en")
    d.header()
    rows = d.records(size(rng, 4, 20))
    line = total(d, rows, "Total 2025")
    d.line(*line, why="total")
    old = [round(v * 0.9, 2) if isinstance(v, float | int) else v for v in line]
    old[0] = rng.choice(("Total 2024", "Previous year", "Budget"))
    d.line(*old, why="last year")
    d.line("Change", *[0.11 if isinstance(v, float | int) else None for v in line[1:]], why="change")
    return d.any()


@stranger("second_weather_extremes_below")
def _(rng: Random) -> Case:
    d = start(rng, WEATHER)
    d.header()
    rows = d.records(size(rng, 5, 35))
    words = {"en": "Max Min Mean", "cs": "max min průměr", "tr": "en_yüksek en_düşük ortalama", "fi": "maksimi minimi keskiarvo", "da": "maks min gennemsnit", "pt": "máximo mínimo média", "hu": "max min átlag", "ru": "макс. мин. среднее"}[d.loc.lang].split()  # fmt: skip
    for word, made in zip(words, (max, min, lambda v: round(sum(v) / len(v), 2)), strict=True):
        d.line(word.replace("_", " "), None, made([r[2] for r in rows]), made([r[3] for r in rows]), why=word)
    return d.any()


@stranger("second_notes_beside_the_rows")
def _(rng: Random) -> Case:
    """Somebody wrote beside the table, in a column without a name."""
    d = trade(rng, "en pt fi")
    d.header()
    for n in range(size(rng, 5, 35)):
        row = d.values(n)
        extra = [None, rng.choice(("ask again", "!", "done 4 May", "??"))] if rng.random() < 0.3 else []
        d.record(row, cells=[*row, *extra])
    return d.any("book csv")


@stranger("second_total_above_the_header")
def _(rng: Random) -> Case:
    d = trade(rng)
    rows = [d.values(n) for n in range(size(rng, 4, 35))]
    d.line(*total(d, rows), why="total")
    if rng.random() < 0.5:
        d.line()
    d.header()
    for row in rows:
        d.record(row)
    return d.any()


# Which table


MONTHS = {
    "en": each("Jan|Feb|Mar|Apr|May"), "pt": each("Janeiro|Fevereiro|Março|Abril|Maio"), "cs": each("leden|únor|březen|duben|květen"),
    "da": each("jan 25|feb 25|mar 25|apr 25|maj 25"), "tr": each("Ocak|Şubat|Mart|Nisan|Mayıs"), "fi": each("tammi|helmi|maalis|huhti|touko"),
    "hu": each("2025.01|2025.02|2025.03|2025.04|2025.05"), "ru": each("Январь|Февраль|Март|Апрель|Май"),
}  # fmt: skip


@stranger("second_rents_by_month_all_equal")
def _(rng: Random) -> Case:
    """The same tenants pay the same every month: each sheet counts."""
    d = start(rng, HOUSE)
    rows = [d.values(n) for n in range(size(rng, 4, 20))]
    for month in MONTHS[d.loc.lang][: rng.randrange(2, 5)]:
        d.sheet(month).header()
        for row in rows:
            d.record(list(row))
    return d.book()


@stranger("second_months", plain=True)
def _(rng: Random) -> Case:
    d = trade(rng)
    for n, month in enumerate(MONTHS[d.loc.lang][: rng.randrange(2, 6)]):
        d.sheet(month).header()
        d.records(rng.randrange(2, 12), start=n * 20)
    return d.book()


@stranger("second_month_with_one_record")
def _(rng: Random) -> Case:
    d = trade(rng)
    quiet = rng.randrange(3)
    for n, month in enumerate(MONTHS[d.loc.lang][:3]):
        d.sheet(month).header()
        d.records(1 if n == quiet else rng.randrange(6, 25), start=n * 30)
    return d.book()


@stranger("second_months_with_titles_and_totals")
def _(rng: Random) -> Case:
    """Month sheets, each with a title and a total, and a sheet that adds the months up."""
    d = start(rng, "guest room nights charge")
    sums = []
    for n, month in enumerate(MONTHS[d.loc.lang][: rng.randrange(2, 5)]):
        d.sheet(month).line(f"Hotel Aurora – {month}")
        d.line()
        d.header()
        rows = d.records(rng.randrange(3, 12), start=n * 20)
        d.line(*total(d, rows), why="total")
        sums.append([month, None, sum(r[2] for r in rows), round(sum(r[3] for r in rows), 2)])
    d.sheet(rng.choice(("Year", "Overview", "Sheet9"))).line(rng.choice(("Month", d.heads[0])), None, *d.heads[2:])
    for line in sums:
        d.line(*line, why="sum of a month")
    return d.book()


@stranger("second_cancelled_sheet")
def _(rng: Random) -> Case:
    """Few records on a sheet of their own, with a column more: they are asked for as well."""
    d = start(rng, HOTEL, "en da pt")
    d.sheet("Bookings").header()
    d.records(size(rng, 8, 35))
    d.sheet("Added by phone").line(*d.heads, "Taken by")
    for n in range(rng.randrange(1, 4)):
        row = d.values(70 + n)
        d.record(row, cells=[*row, "Night desk"])
    return d.book()


@stranger("second_lookup_of_codes")
def _(rng: Random) -> Case:
    """A sheet of codes and what they mean, of which the records use some."""
    d = start(rng, "plate driver km charge")
    d.cols.append(_named("code", "text", "en=Code", lambda r, n: r.choice(("F", "R", "T"))))
    d.sheet("Trips").header()
    d.records(size(rng, 6, 35))
    d.sheet("Codes").line("Code", "Meaning", "Account", why="header")
    for code, meaning, account in (
        ("F", "Fuel", 4530),
        ("R", "Repair", 4540),
        ("T", "Toll", 4580),
        ("W", "Car wash", 4590),
    ):
        d.line(code, meaning, account, why="lookup")
    return d.book()


@stranger("second_customers_beside_orders")
def _(rng: Random) -> Case:
    """The owners' own list has a column of the visits' and others."""
    d = start(rng, VET)
    d.sheet("Visits").header()
    rows = d.records(size(rng, 6, 35))
    d.sheet("Owners").line(d.heads[2], "Street", "Phone", why="header")
    for n, name in enumerate(sorted({r[2] for r in rows})):
        d.line(name, f"Mill Lane {n + 1}", f"+45 20{n:06}", why="owner")
    return d.book()


@stranger("second_overdue_sheet")
def _(rng: Random) -> Case:
    """Some rows again, with a column more: those to be called."""
    d = start(rng, VET, "en fi hu")
    d.sheet("All visits").header()
    rows = d.records(size(rng, 8, 35))
    d.sheet("To call").line(*d.heads, "Days late")
    for row in rng.sample(rows, rng.randrange(2, 5)):
        d.line(*row, rng.randrange(3, 90), why="again")
    return d.book()


@stranger("second_edited_copy", right=False)
def _(rng: Random) -> Case:
    """A second version of the sheet, with some cells changed."""
    d = start(rng, FARM)
    rows = [d.values(n) for n in range(size(rng, 6, 35))]
    old = [list(r) for r in rows]
    for row in rng.sample(old, 2):
        row[3] = round(row[3] + rng.randrange(1, 90) / 10, 1)
    d.sheet(rng.choice(("Fields v1", "Sheet1", "Fields (old)"))).header()
    for row in old:
        d.line(*row, why="old version")
    d.sheet(rng.choice(("Fields v2", "Sheet2", "Fields"))).header()
    for row in rows:
        d.record(row)
    return d.book()


@stranger("second_crosstab_sheet")
def _(rng: Random) -> Case:
    d = start(rng, "driver plate day km", "en")
    d.sheet("Trips").header()
    rows = d.records(size(rng, 8, 35))
    d.sheet("By driver").line("Driver", "Mar", "Apr", "May", why="header")
    for name in sorted({r[0] for r in rows}):
        d.line(
            name, *[sum(r[3] for r in rows if r[0] == name and r[2].month == m) or None for m in (3, 4, 5)], why="pivot"
        )
    return d.book()


@stranger("second_two_lists_in_one_sheet")
def _(rng: Random) -> Case:
    """Vehicles above, trips below; the trips are asked for."""
    d = start(rng, "driver day km charge", "en pt da")
    d.line("Vehicle", "Seats", "Colour", why="other list")
    for n in range(rng.randrange(3, 7)):
        d.line(f"Van {n + 1}", rng.randrange(2, 9), rng.choice(("white", "blue", "red")), why="other list")
    d.line()
    if rng.random() < 0.5:
        d.line()
    d.header()
    d.records(size(rng, 4, 35))
    return d.any("book csv")


@stranger("second_two_blocks_side_by_side")
def _(rng: Random) -> Case:
    """A door list in two blocks, to fit on one page."""
    d = start(rng, rng.choice(("guest room", "guest room nights")), "en da fi")
    width, half = len(d.cols), rng.randrange(4, 15)
    d.line(*d.heads, *([None] if rng.random() < 0.7 else []), *d.heads)
    gap = len(d.page.rows[0]) - 2 * width
    for n in range(half):
        left, right = d.values(n), d.values(n + half)
        if n == half - 1 and rng.random() < 0.5:
            d.record(left)
            continue
        number = d.page.add([*left, *[None] * gap, *right])
        d.want(number, {c.field: v for c, v in zip(d.cols, left, strict=True)})
        d.want(number, {c.field: v for c, v in zip(d.cols, right, strict=True)})
    return d.any("book csv")
