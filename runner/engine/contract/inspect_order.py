"""The order to inspect finished results: compare two, describe one, explain a cell."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from runner.engine.contract.decoding import (
    ORDER_VERSION,
    Json,
    JsonObject,
    Place,
    all_below,
    check_version,
    require,
    written_place,
)
from runner.engine.contract.names import COMPARE, INSPECTIONS
from runner.engine.contract.order_parts import NO_SANDBOX, SandboxFacts


@dataclass(frozen=True, kw_only=True)
class ResultFiles:
    """A finished result: its rows (normalized.xlsx, expected.csv) and its facts (artifact.json, expected.json)."""

    rows: Path | None = None  # None: it ended without rows
    facts: Path | None = None
    status: str = ""  # how the job ended; expected.json has its own

    def below(self, folder: Path) -> Self:
        """Copy the paths, with relative ones below a folder."""
        rows, facts = self.rows, self.facts
        return replace(
            self, rows=None if rows is None else folder / rows, facts=None if facts is None else folder / facts
        )

    def encode(self) -> Json:
        """Return the JSON form of this `ResultFiles`, which `decode` reads back."""
        paths = {"rows": self.rows, "facts": self.facts}
        return {"status": self.status, **{name: str(path) for name, path in paths.items() if path is not None}}

    @classmethod
    def decode(cls, read: JsonObject) -> Self:
        """Check and read the JSON form of a `ResultFiles`; raises ContractBroken if a part is missing or of another
        type."""
        rows, facts = read.optional("rows"), read.optional("facts")
        return cls(
            rows=None if rows is None else Path(rows),
            facts=None if facts is None else Path(facts),
            status=read.text("status", ""),
        )


@dataclass(frozen=True, kw_only=True)
class InspectOrder:
    """An order to read finished results: compare two, describe one as the expected files of a test, explain a cell.

    Or to show cells of an input, which is then the `rows` of the only result.
    """

    what: str
    results: tuple[ResultFiles, ...]
    by: str = ""  # how rows are paired; empty: by key where there is one, else by source
    values: bool = False  # whether a comparison shows the values that differ
    cell: str = ""  # the cell to explain
    request: str = ""  # the cells to show, as JSON: see comparing/shown_cells.py
    outputs: Mapping[str, Place] = field(default_factory=dict)
    sandbox: SandboxFacts = NO_SANDBOX

    def __post_init__(self) -> None:
        """Check that the inspection is known, and has as many results as it compares."""
        require(self.what in INSPECTIONS, "an unknown inspection")
        require(len(self.results) == (2 if self.what == COMPARE else 1), "an inspection of too many or few results")

    def below(self, folder: Path) -> Self:
        """Return the same order with its paths below a folder."""
        results = tuple(result.below(folder) for result in self.results)
        return replace(self, results=results, outputs=all_below(folder, self.outputs))

    def encode(self) -> Json:
        """Return the JSON form of this `InspectOrder`, which `decode` reads back."""
        return {
            "order": ORDER_VERSION,
            "inspect": self.what,
            "results": [result.encode() for result in self.results],
            "by": self.by,
            "values": self.values,
            "cell": self.cell,
            "request": self.request,
            "outputs": {name: written_place(place) for name, place in self.outputs.items()},
            "sandbox": self.sandbox.encode(),
        }

    @classmethod
    def decode(cls, raw: object) -> Self:
        """Check and read the JSON form of an `InspectOrder`; raises ContractBroken if a part is missing or of another
        type."""
        read = JsonObject(raw)
        check_version(read)
        return cls(
            what=read.text("inspect"),
            results=tuple(map(ResultFiles.decode, read.children("results", is_required=True))),
            by=read.text("by", ""),
            values=read.flag("values"),
            cell=read.text("cell", ""),
            request=read.text("request", ""),
            outputs=read.places("outputs"),
            sandbox=SandboxFacts.decode(read.object("sandbox")),
        )
