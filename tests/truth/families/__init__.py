"""The families of cases; importing this registers them all."""

from tests.truth.families import (
    books,
    dates,
    declared,
    delimited,
    encodings,
    exports,
    numbers,
    odd,
    partitions,
    plain,
    rows,
    shapes,
    sheets,
    texts,
    together,
)

__all__ = [
    "books",
    "dates",
    "declared",
    "delimited",
    "encodings",
    "exports",
    "numbers",
    "odd",
    "partitions",
    "plain",
    "rows",
    "shapes",
    "sheets",
    "texts",
    "together",
]
