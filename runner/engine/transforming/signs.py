"""Reports amounts whose sign is in another column, as banks and ledgers write it: D and C, Soll and Haben, + and -."""

from collections.abc import Sequence
from typing import Any, Final

from runner.engine.common.fields import Field
from runner.engine.common.findings import Findings
from runner.engine.mapping.table_mapping import MappedTable

_SIGNED_TYPES: Final = frozenset({"money", "decimal"})
_PAIRS: Final = frozenset(
    frozenset(pair.split("|"))
    for pair in (
        "+|-", "+|\u2212", "+|\u2013", "d|c", "dr|cr", "db|cr", "dbit|crdt", "debit|credit", "debits|credits", "s|h",
        "soll|haben", "débit|crédit", "debe|haber", "dare|avere", "debet|credit", "debet|kredit", "wn|ma", "winien|ma",
        "má dáti|dal", "дебет|кредит", "расход|приход", "借|貸", "借方|貸方", "借|贷", "借方|贷方", "차변|대변",
        "af|bij", "out|in", "withdrawal|deposit", "ausgabe|einnahme", "ausgang|eingang", "lastschrift|gutschrift",
        "rechnung|gutschrift", "invoice|credit note", "sale|refund", "payment|refund", "expense|income",
        "dépense|recette", "gasto|ingreso", "uscita|entrata",
    )
)  # fmt: skip
_NEGATIVE_STARTS: Final = ("-", "\u2212", "\u2013", "(")
_MESSAGE: Final = (
    "column {} marks amounts as positive or negative and is no field; they are read without these signs; to settle it: "
    '{{"name": "sign", "synonyms": [the header of that column]}}, and compute what it means'
)


def report_signs(tables: Sequence[MappedTable], fields: Sequence[Field], findings: Findings) -> None:
    """Report amounts without a negative one beside a column of signs that no field takes."""
    signed_fields = {field.name for field in fields if field.type in _SIGNED_TYPES}
    for table in tables:
        used = {position for _, position in table.read_as()}
        amounts = [
            (name, position)
            for name, position in table.fields.items()
            if name in signed_fields and position < len(table.source.columns) and _are_positive(table.samples[position])
        ]
        for position, column in enumerate(table.source.columns) if amounts else ():
            if position in used or not _are_signs(table.samples[position]):
                continue
            for name, _ in amounts:
                findings.add(
                    "sign_ignored", "warning", _MESSAGE.format(table.letters(position)), place=table.source.place,
                    row=max(table.source.table.header_rows, default=None), column=column.index, field=name,
                    rule="reading",
                )  # fmt: skip


def _are_signs(values: Sequence[Any]) -> bool:
    """Whether a column's values are two marks, one for amounts that are negative and one for the others."""
    filled = [value for value in values if value is not None]
    if not all(value.__class__ is str for value in filled):
        return False
    return frozenset(value.strip().casefold() for value in filled) in _PAIRS


def _are_positive(values: Sequence[Any]) -> bool:
    """Whether a column has numbers and none of them is written as a negative one."""
    texts = [str(value).strip() for value in values if value is not None]
    return bool(texts) and not any(text.startswith(_NEGATIVE_STARTS) or text.endswith("-") for text in texts)
