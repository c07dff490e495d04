"""Split outputs: the same rows once more, in files by the value that one field has.

The names are made from the values that the manifest declares, never from a cell: so they are known before a file is
read, their number is bounded, and no data reaches a key, a log or the table.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from runner.engine.contract.decoding import Json, JsonObject, require

OTHER: Final = "_other"  # the label of the rows whose value is not declared; no value's label begins so
MAX_SPLIT_FILES: Final = 100  # of all formats together: each is open while a job writes, and once more to be verified
LONGEST_LABEL: Final = 24
_NOT_IN_LABELS: Final = re.compile(r"[^a-z0-9]+")
_SPLIT_NAME: Final = re.compile(r"normalized-(?P<label>_other|[a-z0-9][a-z0-9-]{0,29})\.(?:xlsx|csv|jsonl|parquet)")


@dataclass(frozen=True, kw_only=True)
class SplitBy:
    """Into which files the rows are split: one for each declared value of a field, and one for all other rows."""

    field: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check that there are values, each once and printable, and not too many."""
        require(self.values, "a split without values")
        require(len(set(self.values)) == len(self.values), "a value of a split twice")
        require(len(self.values) < MAX_SPLIT_FILES, "a split into too many files")
        require(all(value and value.isprintable() for value in self.values), "a value that no file can be named after")

    @property
    def labels(self) -> tuple[str, ...]:
        """What the files are called after: a label for each value, then that of the other rows."""
        return (*_label_values(self.values), OTHER)

    def files(self, formats: Iterable[str]) -> tuple[str, ...]:
        """Return the names of all files, by label and then by format."""
        kinds = tuple(formats)
        return tuple(split_name(label, kind) for label in self.labels for kind in kinds)

    def encode(self) -> Json:
        """Return the JSON form of this `SplitBy`, which `decode` reads back."""
        return {"field": self.field, "values": list(self.values)}

    @classmethod
    def decode(cls, read: JsonObject) -> Self:
        """Check and read the JSON form of a `SplitBy`; raises ContractBroken if a part is missing or of another
        type."""
        return cls(field=read.text("field"), values=read.texts("values"))


def split_name(label: str, kind: str) -> str:
    """Return the name of the split file of a label in a format, which is the ending (`csv`)."""
    return f"normalized-{label}.{kind}"


def is_split_file(name: str) -> bool:
    """Whether a name is that of a split file."""
    return _SPLIT_NAME.fullmatch(name) is not None


def label_of(name: str) -> str | None:
    """Return the label of a split file; None for another file."""
    match = _SPLIT_NAME.fullmatch(name)
    return None if match is None else match["label"]


def _label_values(values: Iterable[str]) -> list[str]:
    """Make a label for each value, in plain letters, that no other has; of those that would be alike, later ones are
    numbered."""
    used: dict[str, None] = {}
    for value in values:
        plain = unicodedata.normalize("NFKD", value.casefold())
        wanted = _NOT_IN_LABELS.sub("-", "".join(c for c in plain if not unicodedata.combining(c))).strip("-")
        wanted = wanted[:LONGEST_LABEL].rstrip("-") or "value"
        label, number = wanted, 1
        while label in used:
            number += 1
            label = f"{wanted}-{number}"
        used[label] = None
    return list(used)
