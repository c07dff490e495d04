"""All families of the strangers; importing this registers them."""

from tests.truth.strangers import (
    accountant,
    cells,
    clerk,
    columns,
    files,
    second,
    second_again,
    second_cells,
    second_more,
    third,
    trades,
)

__all__ = [
    "accountant",
    "cells",
    "clerk",
    "columns",
    "files",
    "second",
    "second_again",
    "second_cells",
    "second_more",
    "third",
    "trades",
]
