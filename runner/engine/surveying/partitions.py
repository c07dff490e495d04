"""Parts of a sheet that can be cut into tables in two ways: reports them, and applies what somebody said about them.

Detection names the second best partition where it is close (`Table.alternative`). A decision chooses one of the two; a
memory does where the two differ in a way that has a word, so that it fits the sender's next file as well.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final, NamedTuple, Protocol

from runner.engine.common.a1 import CellRange
from runner.engine.common.findings import FindingPlace, Findings
from runner.engine.options import ReadingOptions, TableCut
from runner.engine.reading.spool import SpooledSheet
from runner.engine.structure import Table
from runner.engine.structure.stated_cuts import Detect, ranges_without_table, stated_tables
from runner.engine.structure.tables import RememberedShape

FOUND, OTHER = "found", "other"  # answers where no word tells the two partitions apart
_MOST_NAMED: Final = 6  # ranges that a message names
_MOST_LISTED: Final = 12  # ranges that a line of the manifest lists
_NUMBER_WORDS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class PartitionDoubt(NamedTuple):
    """A part of a sheet, the tables that were found there, and those that could be there instead."""

    input: str
    sheet: str
    chosen: tuple[CellRange, ...]  # the tables that were found
    other: tuple[CellRange, ...]  # those that could be there
    probability: float  # of the other partition

    @property
    def values(self) -> tuple[str, str]:
        """Return the answer that chooses the found partition, and the one that chooses the other: words, if they
        differ."""
        words = word_of(self.chosen), word_of(self.other)
        return words if words[0] != words[1] else (FOUND, OTHER)

    @property
    def area(self) -> CellRange:
        """Return the part of the sheet that both partitions together cover."""
        every = (*self.chosen, *self.other)
        return CellRange(
            min(r.top for r in every), min(r.left for r in every),
            max(r.bottom for r in every), max(r.right for r in every),
        )  # fmt: skip

    @property
    def question(self) -> str:
        """Write what a person is asked, as the end of a sentence: "one table or two"."""
        few, many = sorted((len(self.chosen), len(self.other)))
        counts = (
            f"{_count_in_words(few)} or {_count_in_words(many)}"
            if few != many
            else f"{_count_in_words(few)} these or other"
        )
        return f"{counts} tables" if few != 1 or many == 1 else f"one table or {_count_in_words(many)}"


class PartitionAnswers(Protocol):
    """What a person decided (deciding/answers.py)."""

    def partition(self, doubt: PartitionDoubt) -> str | None:
        """Return the answer to a doubt; None if there is none."""
        ...


def word_of(ranges: Sequence[CellRange]) -> str:
    """Name the way in which a partition cuts its part of a sheet: not at all, between columns, between rows, or
    both."""
    if len(ranges) < 2:
        return "one"
    share_rows = [a.top <= b.bottom and b.top <= a.bottom for a, b in combinations(ranges, 2)]
    if all(share_rows):
        return "columns"
    return "both" if any(share_rows) else "rows"


def name_ranges(ranges: Sequence[CellRange], most: int = _MOST_NAMED) -> str:
    """List the ranges in a message: the first ones, and how many more."""
    more = f" and {len(ranges) - most} more" if len(ranges) > most else ""
    return ", ".join(cell_range.a1 for cell_range in ranges[:most]) + more


def apply_answers(
    tables: list[Table],
    sheet: SpooledSheet,
    reading: ReadingOptions,
    detect: Detect,
    *,
    input_name: str,
    answers: PartitionAnswers,
    remembered: RememberedShape | None,
) -> tuple[list[Table], list[PartitionDoubt]]:
    """Cut the tables of a sheet as a decision or a memory says where they are in doubt; return also the doubts left
    open.

    `detect`: reads the tables of another partition. `remembered`: how the sender's earlier drop was cut.
    """
    open_doubts: list[PartitionDoubt] = []
    for doubt in _find_doubts(tables, input_name, sheet.name):
        answer, why_cut = answers.partition(doubt), "cut as a person decided"
        if answer is None and remembered is not None:
            answer, why_cut = remembered.cut, f"cut as confirmed by {remembered.by or 'somebody'} for an earlier drop"
        if answer not in doubt.values:
            open_doubts.append(doubt)
            continue
        tables_in_doubt = [table for table in tables if table.range in doubt.chosen]
        tables = [table for table in tables if table not in tables_in_doubt]
        if answer == doubt.values[0]:
            tables_in_doubt = [replace(table, alternative=None) for table in tables_in_doubt]
        else:
            cut = TableCut("ranges", tuple(cell_range.a1 for cell_range in doubt.other))
            tables_in_doubt = stated_tables(sheet, cut, reading, detect)
        tables += [replace(table, why=(*table.why, why_cut)) for table in tables_in_doubt]
    return sorted(tables, key=lambda table: (table.range.top, table.range.left)), open_doubts


def _find_doubts(tables: Sequence[Table], input_name: str, sheet: str) -> list[PartitionDoubt]:
    """Find the parts of a sheet with two partitions: tables that name the same alternative are of one part."""
    by_alternative: dict[tuple[CellRange, ...], list[Table]] = {}
    for table in tables:
        if table.alternative is not None and table.alternative.ranges:
            by_alternative.setdefault(table.alternative.ranges, []).append(table)
    return [
        PartitionDoubt(
            input_name,
            sheet,
            tuple(t.range for t in tables_in_doubt),
            ranges,
            _alternative_probability(tables_in_doubt),
        )
        for ranges, tables_in_doubt in by_alternative.items()
    ]


def _alternative_probability(tables: Sequence[Table]) -> float:
    """Return how likely the alternative is that these tables name."""
    return max(table.alternative.probability for table in tables if table.alternative is not None)


def report_doubts(
    doubts: Sequence[PartitionDoubt],
    tables: Sequence[Table],
    findings: Findings,
    place: Callable[[CellRange], FindingPlace],
) -> None:
    """Report parts of a sheet that could be cut otherwise; `tables`: all of the sheet; `place` locates a range."""
    for doubt in doubts:
        beside = [table.range for table in tables if table.range not in doubt.chosen]
        findings.chose(
            "tables", word_of(doubt.chosen), sure=False,
            evidence={"found": len(doubt.chosen), "other": len(doubt.other)},
            message=f"{doubt.area.a1} may be {doubt.question}: {name_ranges(doubt.chosen)} was read, "
            f"but it could be {name_ranges(doubt.other)} (probability {doubt.probability:.2f})",
            settle=f"{_manifest_line(doubt.sheet, beside, doubt.chosen)} as read, "
            f"or {_manifest_line(doubt.sheet, beside, doubt.other)}",
            place=place(doubt.chosen[0]), row=doubt.area.top, column=doubt.area.left,
        )  # fmt: skip


def _manifest_line(sheet: str, beside: Sequence[CellRange], ranges: Sequence[CellRange]) -> str:
    """Write the line of a manifest that names these tables, and those beside them."""
    if len(ranges) > _MOST_LISTED and not beside:
        cut = f'"split": "{word_of(ranges)}"'
    else:
        every = sorted([*beside, *ranges], key=lambda cell_range: (cell_range.top, cell_range.left))
        listed = ", ".join(f'"{cell_range.a1}"' for cell_range in every)
        cut = f'"ranges": [{listed}]'
    return f'"reading": {{"tables": [{{"sheet": "{sheet}", {cut}}}]}}'


def report_unmet(ranges: Sequence[str], tables: Sequence[Table], findings: Findings, place: FindingPlace) -> None:
    """Report ranges that the manifest names as tables, but that hold no table."""
    for area in ranges_without_table(ranges, tables):
        message = f"reading.tables names {area} of this sheet as a table, and nothing that is one is there"
        findings.add("no_table", "warning", message, place=place, rule="structure")


def _count_in_words(count: int) -> str:
    """Write a count in words, if it is small."""
    return _NUMBER_WORDS[count] if count < len(_NUMBER_WORDS) else str(count)
