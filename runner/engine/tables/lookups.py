"""Lookup tables: auxiliary inputs, read whole and kept by column."""

from typing import Any

from runner.engine.common.fields import Field
from runner.engine.common.findings import FindingPlace, Findings
from runner.engine.common.spelling import normalized
from runner.engine.contract import EndCode, InputFile
from runner.engine.protocol import EngineStop
from runner.engine.reading import InputUnreadable, open_book
from runner.engine.structure import find_tables
from runner.engine.tables.sources import SourceTable, chunks
from runner.engine.values.convert import fold

_REMEDY = "save the lookup table as UTF-8, separated by commas"

Lookup = dict[str, list[Any]]  # header -> values


class Lookups:
    """Auxiliary inputs by name, each read on first use and then remembered."""

    def __init__(self, files: list[InputFile], findings: Findings | None = None) -> None:
        """Know the auxiliary inputs; none is read yet. `findings` receives how each file was read."""
        self._findings = findings
        self._files = {f.name: f for f in files}
        self._tables: dict[str, Lookup] = {}

    def __getitem__(self, name: str) -> Lookup:
        """Return an auxiliary input by its name, read when it is first asked for."""
        if name not in self._tables:
            self._tables[name] = _read_first_table(self._files[name], self._findings)
        return self._tables[name]

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def __iter__(self) -> Any:
        return iter(self._files)

    def column(self, field: Field) -> list[Any] | None:
        """Return the values that a field may have by its lookup table; None if it has none, or if that auxiliary input
        is optional and absent."""
        table_name, column_name = field.lookup or ("", "")
        if table_name not in self._files:
            return None
        return [v for v in self.values(table_name, column_name, field) if v is not None]

    def values(self, table_name: str, column_name: str, field: Field) -> list[Any]:
        """Return a column of a lookup table, blanks included; raises EngineStop, which names `field`, if there is no
        such column."""
        table = self[table_name]
        for header, values in table.items():
            if normalized(header) == normalized(column_name):
                return values
        raise EngineStop(
            EndCode.CONFIG_REFUSED,
            f"field {field.name} looks up column {column_name}, which {table_name} does not have",
            input=table_name,
            field=field.name,
            remedy=f"its columns are: {', '.join(table) or 'none'}",
        )

    def allowed(self, field: Field) -> frozenset[Any] | None:
        """Return the allowed values of a field, folded for comparison; None if any value is allowed."""
        values = field.allowed if field.lookup is None else self.column(field)
        return None if values is None else frozenset(map(fold, values))


def _read_first_table(file: InputFile, findings: Findings | None) -> Lookup:
    """Read the first table of an auxiliary input, by column; raises EngineStop if there is none. Reports how it was
    read."""
    try:
        with open_book(file.path, name=file.hint) as book:
            if findings is not None:
                for choice in book.choices:
                    findings.chose(**choice._asdict() | {"settle": _REMEDY}, place=FindingPlace(file.name, "", ""))
            for sheet in book.sheets:
                for table in find_tables(sheet):
                    place = FindingPlace(file.name, sheet.name, file.name)
                    source = SourceTable(place, sheet, table)
                    columns: list[list[Any]] = [[] for _ in source.columns]
                    for _, rows in chunks([source]):
                        for n, values in enumerate(rows.columns):
                            columns[n] += values
                    names = [c.name for c in source.columns]
                    return {name: columns[names.index(name)] for name in names}  # of two with one name, the first
    except InputUnreadable as error:
        raise EngineStop(
            EndCode.INPUT_UNREADABLE, f"{file.name}: {error.message}", input=file.name, remedy=error.remedy
        ) from None
    raise EngineStop(
        EndCode.INPUT_UNREADABLE,
        f"{file.name} contains no table to look up values in",
        input=file.name,
        remedy="give it a header row and at least one row below it",
    )
