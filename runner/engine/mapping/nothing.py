"""What a job says that found none of its fields, or none for a file of rules, in any table."""

from collections.abc import Collection, Sequence
from typing import Final

from runner.engine.fields import Field
from runner.engine.mapping.headers import joined, likeness
from runner.engine.mapping.table_mapping import MappedTable
from runner.engine.protocol import EngineStop

_SHOWN: Final = 20  # columns that the message names
_LONGEST: Final = 60
_COMPARED: Final = 200
_SIMILAR: Final = 0.6
_HEADER: Final = (
    "check that this is the right file; add its headers as synonyms of the fields, "
    'or name the header row: "reading": {"header_rows": [3]}'
)
_NO_HEADER: Final = (
    'no header row was found; name it: "reading": {"header_rows": [3]}, '
    'or name the columns by their letters: {"name": "city", "synonyms": ["B"]}'
)


def expects_columns(fields: Sequence[Field], computed: Collection[str | None]) -> bool:
    """Whether a field can get its values from nowhere but a column."""
    return any(f.constant is None and f.name not in computed for f in fields)


def unused_rules(tables: Sequence[MappedTable], fields: Sequence[Field], computed: Collection[str]) -> list[str]:
    """Fields that only a file in columns/ speaks of and that no table has."""
    found = {name for table in tables for name in table.fields}
    return [f.name for f in fields if not f.declared and f.name not in found and f.name not in computed and tables]


def nothing_mapped(tables: Sequence[MappedTable], fields: Sequence[Field], *, redact: bool) -> EngineStop:
    """The end of such a job: the headers that were seen, each with the field it is most like."""
    seen = [(table, n) for table in tables for n in range(len(table.choices))]
    named = [_column(table, n, fields, redact=redact) for table, n in seen[:_SHOWN]]
    more = f" and {len(seen) - _SHOWN} more" if len(seen) > _SHOWN else ""
    inputs = {t.source.place.input for t in tables}
    place = tables[0].source.place
    headless = all(t.source.table.generated_header for t in tables)
    one = len(tables) == 1
    return EngineStop(
        "nothing_mapped",
        f"no column is one of the declared fields; columns seen: {', '.join(named)}{more}",
        input=place.input if len(inputs) == 1 else None,
        sheet=place.sheet if one else None,
        table=place.table if one else None,
        remedy=_NO_HEADER if headless else _HEADER,
    )


def _column(table: MappedTable, n: int, fields: Sequence[Field], *, redact: bool) -> str:
    column, name = table.source.columns[n], table.letters(n)
    if column.generated:
        return name
    if not redact and table.header_is_certain:
        text = " ".join(column.name.encode(errors="replace").decode().split())
        name += f" “{text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}”"
    near = _nearest(column.name, fields)
    return name + (f" (nearest: {near})" if near else "")


def _nearest(header: str, fields: Sequence[Field]) -> str | None:
    """The field whose names have the most words or letters in common with a header."""
    from difflib import SequenceMatcher  # noqa: PLC0415  # only on the way out

    best, nearest = 0.0, None
    for field in fields[:_COMPARED]:
        for name, _ in field.names:
            letters = SequenceMatcher(None, joined(header)[:_LONGEST], joined(name)[:_LONGEST]).ratio()
            alike = max(likeness(header, name), letters if letters >= _SIMILAR else 0.0)
            if alike > best:
                best, nearest = alike, field.name
    return nearest
