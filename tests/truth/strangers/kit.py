"""What the strangers' families are made of: columns in several languages, and a draft on which a sender writes rows."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from random import Random
from typing import Any, NamedTuple

from tests.truth.cases import AnyOf, Formula, Maker, Row, Sheet, Shown, Table, Tell, family
from tests.truth.strangers.judging import Stranger
from tests.truth.writers import BOOKS, as_csv, as_html

Any_ = AnyOf


class Loc(NamedTuple):
    """How people of a place write."""

    lang: str
    delimiter: str
    decimal: str
    group: str
    day: str  # strftime
    yes: str
    no: str
    total: str


LOCS = {
    "en": Loc("en", ",", ".", ",", "%Y-%m-%d", "yes", "no", "Total"),
    "uk": Loc("en", ",", ".", ",", "%d/%m/%Y", "Yes", "No", "Total"),
    "de": Loc("de", ";", ",", ".", "%d.%m.%Y", "ja", "nein", "Summe"),
    "fr": Loc("fr", ";", ",", " ", "%d/%m/%Y", "oui", "non", "Total"),
    "es": Loc("es", ";", ",", ".", "%d/%m/%Y", "sí", "no", "Total"),
    "nl": Loc("nl", ";", ",", ".", "%d-%m-%Y", "ja", "nee", "Totaal"),
    "pl": Loc("pl", ";", ",", " ", "%d.%m.%Y", "tak", "nie", "Razem"),
    "sv": Loc("sv", ";", ",", " ", "%Y-%m-%d", "ja", "nej", "Summa"),
    "it": Loc("it", ";", ",", ".", "%d/%m/%Y", "sì", "no", "Totale"),
}


def some_loc(rng: Random, only: str = "") -> Loc:
    return LOCS[rng.choice(only.split() or list(LOCS))]


def each(text: str) -> list[str]:
    return text.split("|")


FIRST = each(
    "Amelia|Bruno|Chiara|Daan|Edda|Farid|Greta|Hugo|Ines|Jonas|Katja|Luc|Marta|Nils|Olga|Pablo|Rita|Sven|Tessa|Ugo|Wim|Yusuf|Zofia|Émile|Jörg|Åsa"
)
LAST = each(
    "Abbott|Berger|Carlier|Dąbrowska|Eriksson|Ferrari|García|Huber|Ivanova|Jansen|Keller|Lindqvist|Marchetti|Nowak|Ortega|Petit|Quist|Richter|Schmidt|Tanner|Urban|Visser|Wójcik|Ziegler|O'Neill"
)
TOWNS = each(
    "Aachen|Bilbao|Cork|Dijon|Exeter|Faro|Gdynia|Hasselt|Imola|Jena|Kiel|Lyon|Mons|Nice|Örebro|Parma|Reims|Sion|Trier|Ulm|Vigo|Würzburg|York|Zwolle"
)
STREETS = each(
    "Mill Lane|Bahnhofstr.|Rue de la Gare|Calle Mayor|Dorpsstraat|Via Roma|High Street|Am Anger|Storgatan|Church Road"
)
GOODS = each(
    "Desk lamp|Office chair|Filing cabinet|Whiteboard|Coffee filter|Extension cord|Paper A4|Stapler|Notebook|Ring binder|Monitor arm|Keyboard|Headset|Waste bin|Wall clock|Door mat|Toner black|Label printer"
)
TASKS = each(
    "Order new chairs|Call the landlord|Renew the insurance|Send the contract|Book the flights|Update the price list|Ask the bank for a card|Repair the side door|Clean the storeroom|Invite the auditors|Water the plants|Check the fire extinguisher"
)
DEPARTMENTS = each("Sales|Purchasing|Warehouse|Finance|IT|Legal|Marketing|Service")
TESTS = each("Sodium|Potassium|Calcium|Glucose|Creatinine|Urea|Albumin|Ferritin|Cortisol|Bilirubin")
REASONS = each(
    "rent March|invoice 4471|card payment|salary|insurance premium|refund|standing order|cash withdrawal|membership fee|electricity"
)


def person(rng: Random) -> str:
    return f"{rng.choice(FIRST)} {rng.choice(LAST)}"


@dataclass(frozen=True)
class Col:
    field: str
    type: str
    heads: dict[str, str]
    make: Callable[[Random, int], Any]
    spec: dict[str, Any] = field(default_factory=dict)

    def head(self, loc: Loc) -> str:
        return self.heads.get(loc.lang, self.heads["en"])

    def called(self, head: str) -> "Col":
        return replace(self, heads={"en": head})


def _heads(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split("|"))


def col(name: str, kind: str, heads: str, make: Callable[[Random, int], Any], **spec: Any) -> Col:
    return Col(name, kind, _heads(heads), make, spec)


def _money(rng: Random, _n: int = 0) -> float:
    return rng.randrange(150, 10 ** rng.randrange(4, 7)) / 100


def _day(rng: Random, n: int = 0) -> date:
    return date(2024, 1, 2) + timedelta(days=rng.randrange(700))


COLS: dict[str, Col] = {
    c.field: c
    for c in (
        col("name", "text", "en=Name|de=Name|fr=Nom|es=Nombre|nl=Naam|pl=Nazwisko|sv=Namn|it=Nome", lambda r, n: person(r)),
        col("first_name", "text", "en=First name|de=Vorname|fr=Prénom|es=Nombre|nl=Voornaam|pl=Imię|sv=Förnamn|it=Nome", lambda r, n: r.choice(FIRST)),
        col("last_name", "text", "en=Last name|de=Nachname|fr=Nom de famille|es=Apellido|nl=Achternaam|pl=Nazwisko|sv=Efternamn|it=Cognome", lambda r, n: r.choice(LAST)),
        col("city", "text", "en=City|de=Ort|fr=Ville|es=Ciudad|nl=Plaats|pl=Miasto|sv=Ort|it=Città", lambda r, n: r.choice(TOWNS)),
        col("street", "text", "en=Street|de=Straße|fr=Rue|es=Calle|nl=Straat|pl=Ulica|sv=Gata|it=Via", lambda r, n: f"{r.choice(STREETS)} {r.randrange(1, 120)}"),
        col("zip", "text", "en=Postcode|de=PLZ|fr=Code postal|es=Código postal|nl=Postcode|pl=Kod|sv=Postnr|it=CAP", lambda r, n: f"{r.randrange(10000, 99999)}"),
        col("email", "email", "en=E-mail|de=E-Mail|fr=Courriel|es=Correo|nl=E-mail|pl=E-mail|sv=E-post|it=E-mail", lambda r, n: f"{r.choice(FIRST).lower().replace('é', 'e').replace('ö', 'o').replace('å', 'a')}{n}@example.org"),
        col("phone", "phone", "en=Phone|de=Telefon|fr=Téléphone|es=Teléfono|nl=Telefoon|pl=Telefon|sv=Telefon|it=Telefono", lambda r, n: f"+{r.randrange(30, 50)}{r.randrange(10**8, 10**9)}"),
        col("order_no", "text", "en=Order no|de=Bestellnr.|fr=N° commande|es=N.º pedido|nl=Ordernr.|pl=Nr zamówienia|sv=Ordernr|it=N. ordine", lambda r, n: f"B{4100 + n}"),
        col("invoice_no", "text", "en=Invoice no|de=Rechnungsnr.|fr=N° facture|es=N.º factura|nl=Factuurnr.|pl=Nr faktury|sv=Fakturanr|it=N. fattura", lambda r, n: f"R-{2400 + n}"),
        col("member_no", "text", "en=Member no|de=Mitgliedsnr.|fr=N° adhérent|es=N.º socio|nl=Lidnr.|pl=Nr członka|sv=Medlemsnr|it=N. socio", lambda r, n: f"M{1000 + n}"),
        col("staff_no", "text", "en=Staff no|de=Personalnr.|fr=Matricule|es=N.º empleado|nl=Personeelsnr.|pl=Nr pracownika|sv=Anställningsnr|it=Matricola", lambda r, n: f"P{700 + n}"),
        col("sample_id", "text", "en=Sample ID|de=Proben-ID|fr=ID échantillon|es=ID muestra|nl=Monster-ID|pl=ID próbki|sv=Prov-ID|it=ID campione", lambda r, n: f"S-{n + 1:04}"),
        col("patient_id", "text", "en=Patient ID|de=Patienten-ID|fr=ID patient|es=ID paciente|nl=Patiënt-ID|pl=ID pacjenta|sv=Patient-ID|it=ID paziente", lambda r, n: f"PT{30000 + n}"),
        col("sku", "text", "en=SKU|de=Artikelnr.|fr=Référence|es=Referencia|nl=Artikelnr.|pl=Symbol|sv=Artikelnr|it=Codice", lambda r, n: f"{r.choice('ABCK')}{r.choice('WXZ')}-{500 + n}"),
        col("product", "text", "en=Product|de=Artikel|fr=Produit|es=Producto|nl=Product|pl=Towar|sv=Produkt|it=Prodotto", lambda r, n: r.choice(GOODS)),
        col("quantity", "integer", "en=Quantity|de=Menge|fr=Quantité|es=Cantidad|nl=Aantal|pl=Ilość|sv=Antal|it=Quantità", lambda r, n: r.randrange(1, 90)),
        col("unit_price", "money", "en=Unit price|de=Einzelpreis|fr=Prix unitaire|es=Precio unitario|nl=Stukprijs|pl=Cena jedn.|sv=Styckpris|it=Prezzo unitario", _money),
        col("amount", "money", "en=Amount|de=Betrag|fr=Montant|es=Importe|nl=Bedrag|pl=Kwota|sv=Belopp|it=Importo", _money),
        col("date", "date", "en=Date|de=Datum|fr=Date|es=Fecha|nl=Datum|pl=Data|sv=Datum|it=Data", _day),
        col("due", "date", "en=Due|de=Fällig|fr=Échéance|es=Vencimiento|nl=Vervaldatum|pl=Termin|sv=Förfallodag|it=Scadenza", _day),
        col("start_date", "date", "en=Start date|de=Eintritt|fr=Date d'entrée|es=Fecha de alta|nl=Startdatum|pl=Data zatrudnienia|sv=Startdatum|it=Data inizio", _day),
        col("department", "text", "en=Department|de=Abteilung|fr=Service|es=Departamento|nl=Afdeling|pl=Dział|sv=Avdelning|it=Reparto", lambda r, n: r.choice(DEPARTMENTS)),
        col("remark", "text", "en=Remark|de=Bemerkung|fr=Remarque|es=Observación|nl=Opmerking|pl=Uwagi|sv=Anmärkning|it=Nota", lambda r, n: r.choice(("paid in cash", "see letter", "to be checked", "moved", "ok"))),
        col("paid", "boolean", "en=Paid|de=Bezahlt|fr=Payé|es=Pagado|nl=Betaald|pl=Zapłacono|sv=Betald|it=Pagato", lambda r, n: r.random() < 0.6),
        col("active", "boolean", "en=Active|de=Aktiv|fr=Actif|es=Activo|nl=Actief|pl=Aktywny|sv=Aktiv|it=Attivo", lambda r, n: r.random() < 0.6),
        col("task", "text", "en=Task|de=Aufgabe|fr=Tâche|es=Tarea|nl=Taak|pl=Zadanie|sv=Uppgift|it=Attività", lambda r, n: f"{r.choice(TASKS)} ({n + 1})"),
        col("owner", "text", "en=Owner|de=Verantwortlich|fr=Responsable|es=Responsable|nl=Eigenaar|pl=Osoba|sv=Ansvarig|it=Responsabile", lambda r, n: r.choice(FIRST)),
        col("description", "text", "en=Description|de=Buchungstext|fr=Libellé|es=Concepto|nl=Omschrijving|pl=Opis|sv=Text|it=Descrizione", lambda r, n: r.choice(REASONS)),
        col("class", "text", "en=Class|de=Klasse|fr=Classe|es=Clase|nl=Klas|pl=Klasa|sv=Klass|it=Classe", lambda r, n: f"{r.randrange(5, 11)}{r.choice('abc')}"),
        col("score", "integer", "en=Score|de=Punkte|fr=Points|es=Puntos|nl=Punten|pl=Punkty|sv=Poäng|it=Punti", lambda r, n: r.randrange(12, 100)),
        col("analyte", "text", "en=Analyte|de=Analyt|fr=Analyte|es=Analito|nl=Analiet|pl=Analit|sv=Analyt|it=Analita", lambda r, n: r.choice(TESTS)),
        col("result", "decimal", "en=Result|de=Ergebnis|fr=Résultat|es=Resultado|nl=Resultaat|pl=Wynik|sv=Resultat|it=Risultato", lambda r, n: r.randrange(10, 9999) / 100),
        col("meter", "text", "en=Meter|de=Zähler|fr=Compteur|es=Contador|nl=Meter|pl=Licznik|sv=Mätare|it=Contatore", lambda r, n: f"1ESY{20000 + n}"),
        col("consumption", "decimal", "en=Consumption|de=Verbrauch|fr=Consommation|es=Consumo|nl=Verbruik|pl=Zużycie|sv=Förbrukning|it=Consumo", lambda r, n: r.randrange(1000, 99999) / 10),
        col("weight_kg", "decimal", "en=Weight kg|de=Gewicht kg|fr=Poids kg|es=Peso kg|nl=Gewicht kg|pl=Waga kg|sv=Vikt kg|it=Peso kg", lambda r, n: r.randrange(20, 9000) / 10),
        col("shipment", "text", "en=Shipment|de=Sendung|fr=Envoi|es=Envío|nl=Zending|pl=Przesyłka|sv=Sändning|it=Spedizione", lambda r, n: f"SH{880000 + n}"),
        col("account", "text", "en=Account|de=Konto|fr=Compte|es=Cuenta|nl=Rekening|pl=Konto|sv=Konto|it=Conto", lambda r, n: f"{4000 + n}"),
        col("team", "text", "en=Team|de=Mannschaft|fr=Équipe|es=Equipo|nl=Ploeg|pl=Drużyna|sv=Lag|it=Squadra", lambda r, n: f"FC {r.choice(TOWNS)}"),
    )
}  # fmt: skip


def cols(names: str) -> list[Col]:
    return [COLS[n] for n in names.split()]


SIZES = (3, 4, 5, 6, 8, 12, 20, 35, 60, 120, 300, 500)


def size(rng: Random, least: int = 3, most: int = 500) -> int:
    return rng.choice([s for s in SIZES if least <= s <= most] + [s for s in SIZES if least <= s <= min(most, 35)])


def say(value: Any, loc: Loc) -> str:
    """What a text file of that place holds for a value."""
    if value is None:
        return ""
    if isinstance(value, Shown):
        return value.text
    if isinstance(value, bool):
        return loc.yes if value else loc.no
    if isinstance(value, float):
        return f"{value:.2f}".replace(".", loc.decimal)
    if isinstance(value, datetime):
        return value.strftime(loc.day + " %H:%M:%S")
    if isinstance(value, date):
        return value.strftime(loc.day)
    return str(value)


class Raw(NamedTuple):
    """A text that stands in the file as it is, whatever the place."""

    text: str


@dataclass
class Draft:
    """Sheets under the pen: lines that are no records, records with what has to come out."""

    rng: Random
    loc: Loc
    cols: list[Col]
    sheets: list[Sheet] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    left: dict[tuple[str, int], str] = field(default_factory=dict)
    lines: dict[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)
    tells: list[Tell] = field(default_factory=list)
    told: set[str] = field(default_factory=set)
    fields: list[dict[str, Any]] | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    def sheet(self, name: str) -> "Draft":
        self.sheets.append(Sheet(name))
        return self

    @property
    def page(self) -> Sheet:
        if not self.sheets:
            self.sheet("Sheet1")
        return self.sheets[-1]

    def line(self, *cells: Any, why: str = "") -> int:
        """A row that is no record."""
        number = self.page.add(list(cells))
        if why:
            self.left[self.page.name, number] = why
        return number

    @property
    def heads(self) -> list[str]:
        return [c.head(self.loc) for c in self.cols]

    def header(self, at: int = 1) -> int:
        return self.line(*[None] * (at - 1), *self.heads)

    def record(
        self, values: list[Any], wants: dict[str, Any] | None = None, at: int = 1, cells: list[Any] | None = None
    ) -> int:
        """A row that is a record; `wants` says what differs from the values written."""
        number = self.page.add([None] * (at - 1) + (values if cells is None else cells))
        self.want(number, {**{c.field: v for c, v in zip(self.cols, values, strict=False)}, **(wants or {})}, at)
        return number

    def want(self, number: int, wants: dict[str, Any], at: int = 1) -> None:
        name = self.page.name
        table = next((t for t in self.tables if t.sheet == name), None)
        if table is None:
            table = Table(name, {c.field: at + n for n, c in enumerate(self.cols)}, [])
            self.tables.append(table)
        table.rows.append(Row(number, wants))

    def values(self, n: int) -> list[Any]:
        return [c.make(self.rng, n) for c in self.cols]

    def records(self, rows: int, at: int = 1, start: int = 0) -> list[list[Any]]:
        made = [self.values(start + n) for n in range(rows)]
        for row in made:
            self.record(row, at=at)
        return made

    def tell(self, field: str | None = None, row: int | None = None, *codes: str) -> None:
        self.tells.append(Tell(frozenset(codes), field, row))

    # writing

    def _fields(self, *, text: bool) -> list[dict[str, Any]]:
        if self.fields is not None:
            return self.fields
        made = []
        for c in self.cols:
            one: dict[str, Any] = {"name": c.field, "type": c.type, **c.spec}
            if _plain(c.head(self.loc)) != _plain(c.field):
                one["synonyms"] = [c.head(self.loc), *one.get("synonyms", [])]
            if text and c.type in ("money", "decimal", "percent"):
                one.setdefault("decimal", self.loc.decimal)
            if text and c.type in ("date", "datetime") and self.loc.day.startswith("%d"):
                one.setdefault("day_first", True)
            made.append(one)
        return made

    def _case(self, name: str, body: bytes, *, text: bool, note: str) -> Stranger:
        manifest = {"output": {"provenance": True}, **self.manifest}
        return Stranger(
            "", 0, name, body, self._fields(text=text), self.tables, self.left, self.tells, manifest,
            told=frozenset(self.told), note=f"{note} {self.loc.lang} {self.note}".strip(), lines=self.lines,
        )  # fmt: skip

    def book(self, writers: str = "openpyxl xlsxwriter raw_xml xlwt ods") -> Stranger:
        name = self.rng.choice(writers.split())
        ending, write = BOOKS[name]
        if name not in ("openpyxl", "xlsxwriter", "raw_xml"):
            for s in self.sheets:
                s.rows = [[v.cached if isinstance(v, Formula) else v for v in row] for row in s.rows]
        for s in self.sheets:
            s.rows = [[v.text if isinstance(v, Raw) else v for v in row] for row in s.rows]
        return self._case(f"data.{ending}", write(self.sheets), text=False, note=name)

    def texts(self) -> list[list[str]]:
        return [[v.text if isinstance(v, Raw) else say(v, self.loc) for v in row] for row in self.page.rows]

    def csv(self, *, pad: bool = True, delimiter: str = "", **how: Any) -> Stranger:
        """A text file; `pad` fills short rows with delimiters, as spreadsheet programs do."""
        rows = self.texts()
        width = max(map(len, rows))
        if pad:
            rows = [r + [""] * (width - len(r)) for r in rows]
        delimiter = delimiter or self.rng.choice((self.loc.delimiter, self.loc.delimiter, "\t"))
        how.setdefault("ending", self.rng.choice(("\n", "\r\n")))
        return self.text_file(as_csv([list(r) for r in rows], delimiter=delimiter, **how), note=f"csv {delimiter!r}")

    def text_file(self, body: bytes, name: str = "", note: str = "text") -> Stranger:
        name = name or "data.csv"
        self._rename(name.rpartition(".")[0])
        return self._case(name, body, text=True, note=note)

    def html(self) -> Stranger:
        body = as_html(self.texts())
        return self._case("data.xls", body, text=True, note="html")

    def _rename(self, name: str) -> None:
        """The only sheet of a text file has the file's name."""
        for t in self.tables:
            t.sheet = name
        self.left = {(name, n): why for (_, n), why in self.left.items()}
        self.lines = {(name, n): more for (_, n), more in self.lines.items()}

    def any(self, kinds: str = "book book csv csv html") -> Stranger:
        kind = self.rng.choice(kinds.split())
        return {"book": self.book, "csv": self.csv, "html": self.html, "xlsx": self._xlsx}[kind]()

    def _xlsx(self) -> Stranger:
        return self.book("openpyxl xlsxwriter raw_xml")


def _plain(text: str) -> str:
    return "".join(ch for ch in text.lower() if ch.isalnum())


def draft(rng: Random, names: str, locs: str = "") -> Draft:
    return Draft(rng, some_loc(rng, locs), cols(names))


def stranger(name: str, *, plain: bool = False, right: bool = True) -> Callable[[Maker], Maker]:
    """Register a stranger's family; `right=False`: the file leaves it open, so that telling is all one can ask."""
    return family(f"s_{name}", plain=plain, mostly_right=right, stranger=True)


def any_of(*values: Any) -> AnyOf:
    return AnyOf(values)
