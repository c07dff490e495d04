"""Finds the rows that may be totals, by their words and their places; totals.py then adds up."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from runner.engine.structure import outlines
from runner.engine.structure.bands import Draft
from runner.engine.structure.column_sums import EXACT
from runner.engine.structure.facts import CellKind, Mark, Row
from runner.engine.structure.outlines import number_of
from runner.engine.structure.tables import Clarity, Label, Suspicion
from runner.engine.structure.total_words import row_clarity

ADDENDS = 3  # so many numbers do not add up by chance
ALWAYS = 0.9  # share of the records that fill a column
RARELY = 0.1  # share of negative numbers in a column whose sum grows with its rows
STATISTICS = 12  # the most rows at the end that may be sums, means, bounds or counts
FEW = 3  # rows
_NUMBER = bytes([CellKind.NUMBER])
SAMPLE = 200  # records whose columns are counted
# Balances among transactions, and parts of the row above: no records of their own, but not proven to be none.
_BALANCE = re.compile(
    r"\s*(?:opening|closing|beginning|ending|start|initial|final|previous|new)\s*-?balance\b|"
    r"\s*(?:balance |bal\.? ?)?(?:brought|carried) (?:forward|down)\b|balance (?:brought|carried)|"
    r"\s*(?:balance|bal\.?)? ?[bc] ?/ ?[fd]\b|"
    r"\s*(?:begin|eind|anfangs|schluss|end|start|ingående|utgående|alter|neuer)\s?saldo\b|"
    r"\s*(?:solde|saldo)\s(?:initial|final|inicial|précédent|nouveau|iniziale|finale|anterior|początkowe|końcowe|"
    r"reporté)\b|\s*(?:anfangs|end)bestand\b|\s*kontostand\b|\s*(?:počáteční|konečný) zůstatek\b",
    re.IGNORECASE,
).match
_PART = re.compile(
    r"\s*(?:of which|thereof|of whom|including|incl\.|davon|darunter|dont|de los cuales|de las cuales|di cui|waarvan|"
    r"w tym|z toho|varav|herav|heraf|joista|в том числе|из них)\b",
    re.IGNORECASE,
).match
# What the footers of invoices and statements add to a sum or take off.
_CHARGE = re.compile(
    r"\s*(?:plus |less |zzgl\.? |abzgl\.? |\+ ?|- ?)?(?:shipping|freight|postage|delivery|handling|packing|carriage|"
    r"insurance|(?:sales )?tax|vat|gst|hst|pst|duty|discount|rebate|surcharge|tip|service charge|rounding|deposit|"
    r"paid|payments?|amount paid|balance due|amount due|versand(?:kosten)?|fracht|lieferung|verpackung|mwst|ust|"
    r"umsatzsteuer|mehrwertsteuer|steuer|rabatt|skonto|nachlass|anzahlung|rundung|port|frais(?: de \w+)?|livraison|tva|"
    r"remise|acompte|envío|gastos de envío|iva|descuento|anticipo|spedizione|trasporto|sconto|acconto|verzendkosten|"
    r"verzending|btw|korting|moms|fragt|frakt|rabat|dostawa|wysyłka|doprava|dph|sleva|ндс|"
    r"доставка|скидка|difference|"
    r"differenz|différence|diferencia|differenza|verschil|skillnad|różnica|rozdíl|saldo|solde|turnout|in %|shares?|"
    r"anteil|percent|prozent)\b|\s*%\s*$",
    re.IGNORECASE,
).match


# What a first row says that states the highest value that each column can have.
_MOST = re.compile(
    r"\s*max(?:imum|imal\w*|\.)?\s*(?:points?|punkte\w*|score|marks?|pkte?\.?|pts?\.?|puntos|punti|punten|poäng|bodů|punktów)\b|"
    r"\s*(?:full marks|points possible|out of|mögliche punkte|erreichbar\w*|barème|puntos posibles)\b",
    re.IGNORECASE,
).match


_MAXIMUM = re.compile(r"\s*max(?:imum|\.)?\s*:?\s*$", re.IGNORECASE).match  # Max is also a name


def find_suspects(draft: Draft, known: frozenset[int]) -> dict[int, Suspicion]:
    """Find the rows that may be totals, by number; `known`: numbers of rows that are something else."""
    rows = draft.rows
    records = _Records.of(draft, [at for at in draft.band.body if rows[at].number not in known])
    suspicions: dict[int, Suspicion] = {}
    for place, at in enumerate(records.body):
        if (why := _suspicion(records, place)) is not None:
            suspicions[rows[at].number] = why
    plain = [at for at in records.body if records.clarities[at] is Clarity.NOTHING]
    may_be_outline = not any(rows[at].number in suspicions for at in plain)
    heads = outlines.heads(draft, plain) if may_be_outline else []
    return {rows[at].number: Suspicion(Clarity.NOTHING, heads=True) for at in heads} | suspicions


@dataclass(frozen=True, slots=True)
class _Records:
    """The rows of a body, and what tells its records from its totals; all by index into the draft's rows."""

    draft: Draft
    body: list[int]
    clarities: dict[int, Clarity]
    always: list[int]  # columns that nearly all records fill
    names: list[int]  # those of them that hold names or dates
    lacking: dict[int, list[int]]  # the columns of `always` that a row leaves blank
    sums: set[int]  # rows with a number that sums up the rows above
    under: set[int]  # rows right below a total that lack all that it lacks
    ending: set[int]  # rows of the footer

    @classmethod
    def of(cls, draft: Draft, body: list[int]) -> "_Records":
        """Describe these rows of a draft."""
        rows = draft.rows
        clarities = {at: row_clarity(rows[at].values[draft.left : draft.right + 1])[0] for at in body}
        sums = set(outlines.running_sums(draft, body))
        always = _always_filled(
            draft, body, {at: max(c, Clarity.HINT) if at in sums else c for at, c in clarities.items()}
        )
        lacking = {at: _blank_columns(rows[at], always) for at in body}
        return cls(
            draft,
            body,
            clarities,
            always,
            names=[at for at in always if _holds_names(draft, body, at)],
            lacking=lacking,
            sums=sums,
            under=_rows_under_totals(body, clarities, lacking),
            ending=_footer_rows(body, clarities, lacking),
        )

    def outweighs(self, at: int) -> bool:
        """Whether a row's numbers can be sums of the others."""
        return _outweighs(self.draft, self.body, at)


def _suspicion(records: _Records, place: int) -> Suspicion | None:
    """Return why the row at this place of the body may be a total.

    None if it has neither a label nor the place and the gaps of a total, or no number and no label that is only the
    word. `place`: its index in the body; `at`: its index in the draft's rows.
    """
    draft, body, at = records.draft, records.body, records.body[place]
    row, clarity, lacks = draft.rows[at], records.clarities[at], records.lacking[at]
    if CellKind.NUMBER not in row.kinds and clarity is not Clarity.PLAINLY:
        return None
    label = next((str(row.values[column]) for column in row.filled if row.kinds[column] == CellKind.TEXT), "")
    is_full = _is_full(draft, body, at, records.names, lacks)
    why = Suspicion(
        clarity,
        lacks=len(lacks),
        is_last=_is_last(draft.rows, body, place),
        charge=not is_full and _is_charge(row),
        is_part=_PART(label) is not None,
        tops=not place and len(body) > ADDENDS and records.outweighs(at),
        under=at in records.under,
        counts=at in records.ending and _counts_marks(draft, body[:place], row),
    )
    is_most = not place and (_MOST(label) or (not is_full and _MAXIMUM(label) and _tops_all(draft, body, at)))
    if _is_balance(row, label) or is_most:
        return why._replace(clarity=Clarity.PLAINLY)
    if clarity > Clarity.NOTHING:
        return why._replace(full=is_full, named=clarity is Clarity.NAMED and _likeliest(draft, at) is Label.TOTAL)
    return why if _is_placed_as_total(records, place, why) else None


def _is_balance(row: Row, label: str) -> bool:
    """Whether a row states a balance between transactions. With a column of balances it is an entry."""
    return _BALANCE(label) is not None and row.kinds.count(CellKind.NUMBER) == 1


def _is_placed_as_total(records: _Records, place: int, why: Suspicion) -> bool:
    """Whether a row that nothing names a total has the place and the gaps of a total, or numbers as large as one."""
    at = records.body[place]
    if why.tops or why.under or why.counts:
        return True
    if place and (why.is_part or at in records.sums):
        return True
    if place > 1 and (why.charge or _is_bare_as_total(records, at, why)):
        return True
    return at == records.body[-1] and place >= ADDENDS and records.outweighs(at)


def _is_bare_as_total(records: _Records, at: int, why: Suspicion) -> bool:
    """Whether a row lacks what records have, and ends them or lacks the first column, too."""
    lacks = records.lacking[at]
    return bool(lacks) and (at in records.ending or why.is_last or records.always[0] in lacks)


def _rows_under_totals(body: Sequence[int], clarities: dict[int, Clarity], lacking: dict[int, list[int]]) -> set[int]:
    """Return the rows right below a total that lack all that it lacks: what footers add, and last year's figures."""
    under: set[int] = set()
    lacks_of_total: set[int] = set()
    for at in body:
        if lacks_of_total and lacks_of_total.issubset(lacking[at]):
            under.add(at)
        else:
            lacks_of_total = set(lacking[at]) if clarities[at] >= Clarity.NAMED else set()
    return under


def _footer_rows(body: Sequence[int], clarities: dict[int, Clarity], lacking: dict[int, list[int]]) -> set[int]:
    """Return the last rows, as far as they lack what records have, or are labelled; and the very last."""
    footer = set(body[-1:])
    for at in reversed(body[-STATISTICS:]):
        if not lacking[at] and not clarities[at]:
            break
        footer.add(at)
    return footer


def _blank_columns(row: Row, columns: Sequence[int]) -> list[int]:
    """Return those of the columns, in order, that are blank in a row."""
    if columns and len(row.kinds) > columns[-1] and CellKind.BLANK not in row.kinds[columns[0] : columns[-1] + 1]:
        return []
    return [column for column in columns if not _fills(row, column)]


def _is_full(draft: Draft, body: Sequence[int], at: int, names: Sequence[int], lacks: Sequence[int]) -> bool:
    """Whether a row has the names and dates that records have; it may lack what another record lacks, too."""
    filled_names = sum(column not in lacks for column in names)
    if filled_names <= 1 or not lacks:
        return filled_names > 1
    others = [draft.rows[other] for other in body[:SAMPLE] if other != at]
    return all(any(not _fills(row, column) and row.width > filled_names for row in others) for column in lacks)


def _counts_marks(draft: Draft, above: Sequence[int], row: Row) -> bool:
    """Whether a row's numbers stand among texts, and each is how often the commonest of them occurs above it."""
    counted = [at for at in row.filled if row.kinds[at] == CellKind.NUMBER and draft.left <= at <= draft.right]
    if len(counted) < 2 or len(above) < ADDENDS or any(draft.rows[at].skipped for at in above[1:]):
        return False
    for column in counted:
        texts = Counter(str(draft.rows[at].values[column]) for at in above if _fills(draft.rows[at], column))
        has_numbers = any(draft.rows[at].kinds[column : column + 1] == _NUMBER for at in above)
        if has_numbers or number_of(row.values[column], max) not in (texts.total(), *texts.values()):
            return False
    return True


def _is_charge(row: Row) -> bool:
    """Whether one of a row's first cells is called what footers add to a sum or take off."""
    texts = (str(row.values[at]) for at in row.filled[:3] if row.kinds[at] in (CellKind.TEXT, CellKind.FILLER))
    return any(_CHARGE(text) for text in texts)


def _is_last(rows: Sequence[Row], body: Sequence[int], place: int) -> bool:
    """Whether a row is the last of the table, or the last before a blank row or a drawn line."""
    if place == len(body) - 1:
        return True
    below = body[place + 1]
    return rows[below].gap > 0 or (
        below > body[place] + 1 and bool(rows[below - 1].marks[rows[below - 1].filled[0]] & Mark.RULE)
    )


def _always_filled(draft: Draft, body: Sequence[int], clarities: dict[int, Clarity]) -> list[int]:
    """Return the columns that nearly all records fill: those above the first total, as the rows below may be its
    footer."""
    several = [at for at in body if draft.rows[at].width > 1]
    body = several if len(several) > 1 else body  # what a single cell leaves blank says nothing
    labelled = [n for n, at in enumerate(body) if clarities[at] >= Clarity.NAMED]
    above = body[: labelled[0]] if labelled and labelled[0] > 1 else [at for at in body if not clarities[at]]
    if len(above) < 2:  # words for totals are what names are made of here
        above = body
    above = above[: len(above) - min(FEW, len(above) // 3)]  # the last ones may be no records
    sample = [draft.rows[at] for at in above[:SAMPLE]]
    most = max(1, int((1 - ALWAYS) * len(sample)))  # rows that may lack it
    counts = {column: sum(_fills(row, column) for row in sample) for column in range(draft.left, draft.right + 1)}
    return [column for column, count in counts.items() if count > 1 and len(sample) - count <= most]


def _holds_names(draft: Draft, body: Sequence[int], column: int) -> bool:
    """Whether a column has several values, mostly texts or dates."""
    filled = [draft.rows[at] for at in body[:SAMPLE] if _fills(draft.rows[at], column)]
    others = sum(1 for row in filled if row.kinds[column] != CellKind.NUMBER)
    return others * 2 > len(filled) and len({str(row.values[column]) for row in filled}) > 1


def _outweighs(draft: Draft, body: Sequence[int], at: int) -> bool:
    """Whether a row's numbers can be sums of the others: none is below what the stored rows of its column add up to."""
    row = draft.rows[at]
    others = [draft.rows[other] for other in body if other != at]
    compared = 0
    for column in row.filled:
        if draft.left <= column <= draft.right and row.kinds[column] == CellKind.NUMBER:
            candidate = number_of(row.values[column], max)
            cells = [number_of(other.values[column], min) for other in others if _fills(other, column)]
            numbers = [number for number in cells if number is not None]
            if candidate is None or len(numbers) < ADDENDS or len(numbers) * 2 < len(cells):
                return False
            negative = sum(1 for number in numbers if number < 0)
            if negative <= RARELY * len(numbers) and candidate < sum(numbers) * (1 - EXACT):
                return False
            compared += 1
    return compared > 0


def _tops_all(draft: Draft, body: Sequence[int], at: int) -> bool:
    """Whether a row has numbers and none of the stored rows has a larger one in the column of any of them."""
    row = draft.rows[at]
    counted = [column for column in row.filled if row.kinds[column] == CellKind.NUMBER]
    rest = [draft.rows[other] for other in body if other != at]
    for column in counted:
        most = number_of(row.values[column], max)
        numbers = [number_of(other.values[column], min) for other in rest if _fills(other, column)]
        if most is None or any(number is not None and number > most for number in numbers):
            return False
    return bool(counted)


def _fills(row: Row, column: int) -> bool:
    """Whether a row has a value in a column."""
    return column < len(row.kinds) and row.kinds[column] != CellKind.BLANK


def _likeliest(draft: Draft, at: int) -> Label:
    """Return the likeliest label of the row by itself."""
    chances = draft.chances[at]
    return max(Label, key=chances.__getitem__)
