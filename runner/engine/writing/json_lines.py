"""normalized.jsonl: one JSON object per row, with every column in it; a blank is null."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat
from json.encoder import encode_basestring
from typing import IO, Any, Final

from runner.engine.writing.delimited_file import iso
from runner.engine.writing.typed import ColumnType, TypedColumn, decimal_text

_NULL: Final = "null"


class JsonLines:
    """Writes normalized.jsonl chunk by chunk."""

    def __init__(self, file: IO[bytes], columns: Sequence[TypedColumn]) -> None:
        """Prepare to write rows of these columns; nothing is written yet."""
        self._file = file
        self._formatters = [_make_formatter(column) for column in columns]
        keys = [f"{encode_basestring(column.name)}: " for column in columns]
        self._texts_before = [repeat(f"{', ' if n else '{'}{key}") for n, key in enumerate(keys)]

    def write(self, columns: Sequence[list[Any]]) -> None:
        """Append rows, given as one list of fitted values per column."""
        texts = [formatted(values) for formatted, values in zip(self._formatters, columns, strict=True)]
        pieces = [piece for pair in zip(self._texts_before, texts, strict=True) for piece in pair]
        rows = zip(*pieces, repeat("}\n"), strict=False)
        self._file.write("".join(chain.from_iterable(rows)).encode(errors="replace"))

    def close(self) -> None:
        """Write what is buffered; the file itself stays open."""
        self._file.flush()


def _make_formatter(column: TypedColumn) -> Callable[[list[Any]], Iterable[str]]:
    """Return a function that writes values of a column as JSON; None becomes null."""
    text = _make_encoder(column)
    return lambda values: [_NULL if v is None else text(v) for v in values]


def _make_encoder(column: TypedColumn) -> Callable[[Any], str]:
    """Return a function that writes a value of a column, which is not None, as JSON."""
    kind, scale = column.type, column.scale
    if kind is ColumnType.TEXT:
        return encode_basestring
    if kind is ColumnType.DECIMAL:
        return lambda v: decimal_text(v, scale)
    if kind is ColumnType.BOOLEAN:
        return lambda v: "true" if v else "false"
    return repr if kind in (ColumnType.INTEGER, ColumnType.NUMBER) else (lambda v: f'"{iso(v)}"')
