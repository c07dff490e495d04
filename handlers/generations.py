"""In: names of what may have changed. Out: how often it was, read in one request for each scan."""

from collections.abc import Collection

from core.ports import JobTable


class Generations:
    """Those that a scan needs, read when it first asks for one of them (see handlers/workflows.py for why then)."""

    def __init__(self, table: JobTable, names: Collection[str]) -> None:
        self._table = table
        self._names = names
        self._known: dict[str, int] = {}

    def of(self, name: str) -> int:
        if name not in self._known:
            wanted = {name, *self._names} - self._known.keys()
            self._known |= self._table.generations(sorted(wanted))
        return self._known[name]
