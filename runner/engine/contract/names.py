"""The names and codes that both sides of the box use: files, ends, roles of inputs, passes, inspections."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from runner.engine.contract.decoding import require
from runner.engine.contract.splits import is_split_file


class OutputName(StrEnum):
    """Every file that a job writes, by the name that it has in the box, while staged and where it is published."""

    WORKBOOK = "normalized.xlsx"
    CSV = "normalized.csv"
    JSONL = "normalized.jsonl"
    PARQUET = "normalized.parquet"
    SCHEMA = "schema.json"  # of the three before it
    ARTIFACT = "artifact.json"
    REPORT = "report.html"
    REJECTED_ROWS = "rejects.jsonl"  # the box's description of REJECTS
    SHOWN_VALUES = "values.json"  # that REPORT shows; never published
    REJECTS = "rejects.xlsx"
    REVIEW = "review.json"
    REVIEW_PAGE = "review.html"
    PROFILE = "profile.json"
    DRAFT = "draft.json"  # of an order that asks for a draft of a manifest; never published
    LOG = "logs.txt"
    RESULT = "result.json"


# What the engine may write, what is written where its outputs are verified, and what a job's folder may hold.
ENGINE_FILES: Final = (OutputName.ARTIFACT, OutputName.REVIEW)
DATA_FORMATS: Final = {
    "xlsx": OutputName.WORKBOOK,
    "csv": OutputName.CSV,
    "jsonl": OutputName.JSONL,
    "parquet": OutputName.PARQUET,
}
DATA_FILES: Final = frozenset({*DATA_FORMATS.values(), OutputName.SCHEMA})
VERIFIED_FILES: Final = (OutputName.REPORT, OutputName.REVIEW_PAGE, OutputName.PROFILE)
REVIEW_FILES: Final = (OutputName.REVIEW, OutputName.REVIEW_PAGE)
AUDIT_FILES: Final = (OutputName.ARTIFACT, OutputName.REPORT, OutputName.REJECTS)
PUBLISHED_FILES: Final = frozenset({*DATA_FILES, OutputName.LOG, *AUDIT_FILES, *REVIEW_FILES})
_CORRECTED: Final = re.compile(r"corrected(-[0-9]{1,6})?(\.[a-z0-9]{1,10})?")  # a copy of an input (core/keys.py)


class EndCode(StrEnum):
    """How an engine says that a job ended without its workbook."""

    INPUT_UNREADABLE = "input_unreadable"
    NOTHING_MAPPED = "nothing_mapped"
    EMPTY_INPUT = "empty_input"
    ROWS_REJECTED = "rows_rejected"
    DRIFTED = "drifted"
    CORRECTS = "mends"  # an input holds corrected rows of another job's rejects
    NEEDS_REVIEW = "needs_review"
    RULE_ERROR = "rule_error"
    CONFIG_REFUSED = "config_refused"
    OUT_OF_MEMORY = "out_of_memory"
    BAD_OUTPUT = "bad_output"  # only from a box that verifies another's outputs
    ENGINE_ERROR = "engine_error"


# Ends without a workbook whose other outputs are published: they show what was found, or what is asked.
# The verdicts of these ends (core/verdicts.py) have the same values.
EXPLAINED: Final[frozenset[str]] = frozenset(
    {
        EndCode.NOTHING_MAPPED,
        EndCode.EMPTY_INPUT,
        EndCode.ROWS_REJECTED,
        EndCode.DRIFTED,
        EndCode.NEEDS_REVIEW,
    }
)

PRIMARY, AUXILIARY, CORRECTED = "primary", "auxiliary", "mended"  # roles of inputs
ROLES: Final = frozenset({PRIMARY, AUXILIARY, CORRECTED})
REPORTED_PASSES: Final = frozenset({"structure", "mapping", "transform", "validate", "write"})
TIMED_PASSES: Final = ("structure", "mapping", "read", "transform", "validate", "write")


class InspectName(StrEnum):
    """Every file that an inspection of finished results reads or writes."""

    COMPARISON = "comparison.json"
    EXPECTED_ROWS = "expected.csv"
    EXPECTED = "expected.json"
    EXPLANATION = "explanation.json"
    CELLS = "cells.json"
    SPOOL = "spool"  # rows that do not fit in memory while two results are compared


COMPARE, DESCRIBE, EXPLAIN, SHOW = "compare", "describe", "explain", "show"  # what an inspection does
BY_KEY, BY_SOURCE = "key", "source"  # how the rows of two results are paired
INSPECTIONS: Final = frozenset({COMPARE, DESCRIBE, EXPLAIN, SHOW})


def check_published(names: Iterable[str], *, succeeded: bool) -> None:
    """Check the names of files that are to be published; raises ContractBroken.

    Before they are staged, when the attempt is committed, and again when they are copied: no other name may ever reach
    a job's folder, and only a success has files with data.
    """
    listed = list(names)
    for name in listed:
        known = name in PUBLISHED_FILES or is_split_file(name) or _CORRECTED.fullmatch(name)
        require(known, "a file that no job publishes")
    require(len(set(listed)) == len(listed), "a file twice")
    require(succeeded or not any(map(is_data, listed)), "data of a job that did not succeed")


def is_data(name: str) -> bool:
    """Whether a file holds rows of the output, or describes them."""
    return name in DATA_FILES or is_split_file(name)


def data_files(formats: Iterable[str]) -> tuple[OutputName, ...]:
    """Return the files that these formats give; whatever is not a workbook comes with its schema."""
    named = tuple(DATA_FORMATS[name] for name in formats)
    return named if set(named) <= {OutputName.WORKBOOK} else (*named, OutputName.SCHEMA)
