"""Decodes JSON of the contract: every access checks a type, and what breaks the contract is named by its key."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

ORDER_VERSION: Final = 1

Json = dict[str, object]  # a JSON object that was just read, or is about to be written
Place = Path | int  # where a file is: its path, or the number of an open descriptor
Where = dict[str, str | int]  # where something went wrong: names and numbers, never a cell's value
T = TypeVar("T")


class ContractBroken(Exception):
    """A side of the contract broke it; the message names the part and holds nothing that a box wrote."""


def require(condition: object, what: str) -> None:
    """Raise ContractBroken unless a condition of the contract holds."""
    if not condition:
        raise ContractBroken(what)


class JsonObject:
    """A JSON object that is being decoded: every access checks a type, and what is wrong is named by its key."""

    __slots__ = ("_key_prefix", "raw")

    def __init__(self, raw: object, name: str = "") -> None:
        """Begin to decode an object; raises ContractBroken for anything else. `name`: the keys that lead to it."""
        if not isinstance(raw, dict):
            raise ContractBroken(f"{name or 'it'} is not an object")
        self.raw = raw
        self._key_prefix = f"{name}." if name else ""

    def _value(self, key: str, kind: type[T], default: T | None) -> T:
        """Return the value of a key, of this type; the default if it is absent and there is one. Raises ContractBroken
        otherwise."""
        value = self.raw.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ContractBroken(
                f"{self._key_prefix}{key} is missing" if value is None else f"{self._key_prefix}{key} is of no use"
            )
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Return the text of a key; raises ContractBroken if it is absent and has no default, or is of another type."""
        return self._value(key, str, default)

    def optional(self, key: str) -> str | None:
        """Return the text of a key; None if it is absent."""
        return None if self.raw.get(key) is None else self.text(key)

    def count(self, key: str, default: int | None = None) -> int:
        """Return the whole number of a key, 0 or more; raises ContractBroken as `text` does."""
        value = self._value(key, int, default)
        require(value >= 0, f"{self._key_prefix}{key} is below zero")
        return value

    def flag(self, key: str) -> bool:
        """Return the true or false of a key; false if it is absent."""
        return self._value(key, bool, False)

    def object(self, key: str, *, is_required: bool = False) -> Json:
        """Copy the object of a key as it is; empty if it is absent, unless `is_required`."""
        return dict(self._value(key, dict, None if is_required else {}))

    def child(self, key: str) -> "JsonObject | None":
        """Return the object of a key, to be decoded; None if it is absent. Raises ContractBroken for anything else."""
        return None if self.raw.get(key) is None else JsonObject(self.raw[key], f"{self._key_prefix}{key}")

    def children(self, key: str, *, is_required: bool = False) -> "list[JsonObject]":
        """Return the list of objects of a key, to be decoded; empty if it is absent, unless `is_required`."""
        items = self._value(key, list, None if is_required else [])
        return [JsonObject(item, f"{self._key_prefix}{key}[{index}]") for index, item in enumerate(items)]

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the list of texts of a key; empty if it is absent."""
        items = self._value(key, list, [])
        require(all(isinstance(item, str) for item in items), f"{self._key_prefix}{key} is not a list of texts")
        return tuple(items)

    def texts_of(self, *keys: str) -> dict[str, str]:
        """Return the texts of several keys, by key."""
        return {key: self.text(key) for key in keys}

    def counts(self, key: str) -> tuple[int, ...]:
        """Return the list of counts of a key; empty if it is absent."""
        items = self._value(key, list, [])
        are_counts = all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in items)
        require(are_counts, f"{self._key_prefix}{key} is not a list of counts")
        return tuple(items)

    def path(self, key: str = "path") -> Path:
        """Return the path of a key, which must be there."""
        return Path(self.text(key))

    def place(self, key: str = "path") -> Place:
        """Return the path or the open descriptor of a key, which must be there."""
        value = self.raw.get(key)
        return self.count(key) if isinstance(value, int) else self.path(key)

    def places(self, key: str, *, is_required: bool = False) -> dict[str, Place]:
        """Return the places in the object of a key, by name; empty if it is absent, unless `is_required`."""
        children = JsonObject(self.object(key, is_required=is_required), f"{self._key_prefix}{key}")
        return {name: children.place(name) for name in children.raw}


def written_place(place: Place) -> str | int:
    """Return a place as an order writes it."""
    return place if isinstance(place, int) else str(place)


def all_below(folder: Path, places: Mapping[str, Place]) -> dict[str, Place]:
    """Copy places, with relative paths below a folder; open descriptors and absolute paths stay."""
    return {name: place if isinstance(place, int) else folder / place for name, place in places.items()}


def check_version(raw: JsonObject) -> None:
    """Raise OtherVersion unless an order is of the version that this code knows."""
    if raw.count("order") != ORDER_VERSION:
        raise OtherVersion("the order has another version")


class OtherVersion(ContractBroken):
    """The order is of a version that this engine does not know."""
