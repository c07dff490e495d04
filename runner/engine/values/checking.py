"""Pass 4: the declared rules of fields and rows, checked a chunk at a time.

Each check first tests the whole chunk in one fast call and locates the offending cells only if there are any.
Unique values that do not ascend are kept as 64-bit hashes that differ from run to run; among a million values, two
collide about once in thirty million runs.
"""

import marshal
import operator
import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from isal import isal_zlib

from runner.engine.common.fields import Field, bound
from runner.engine.common.findings import FindingPlace, Findings, FindingText, author_text
from runner.engine.options import DeclaredRule, RowComparison
from runner.engine.reading import CellError
from runner.engine.values.convert import fold, text_of
from runner.engine.values.words import MAX_MEMO

# How a message names a value of each type.
_PHRASE_OF_TYPE: Final = {
    "integer": "a whole number", "decimal": "a number", "money": "an amount of money", "percent": "a percentage",
    "boolean": "a yes/no value", "date": "a valid date", "datetime": "a valid date and time",
    "time": "a valid time of day", "email": "a valid email address", "phone": "a valid phone number",
    "url": "a valid web address",
}  # fmt: skip


_ALLOWED_NAMED: Final = 12
_LONGEST_NAMED: Final = 200  # characters of the constants that a message names
_DIRECTIVES: Final = {
    "%d": "DD", "%m": "MM", "%Y": "YYYY", "%y": "YY", "%H": "hh", "%I": "hh", "%M": "mm", "%S": "ss", "%p": "AM/PM",
    "%b": "Mon", "%B": "Month", "%z": "+00:00",
}  # fmt: skip


def _in_human_letters(format_text: str) -> str:
    """Write a date format of the manifest in the letters that findings show: DD.MM.YYYY for %d.%m.%Y."""
    for directive, letters in _DIRECTIVES.items():
        format_text = format_text.replace(directive, letters)
    return format_text


class CellProblem(NamedTuple):
    """One error of a row, as rejects.xlsx shows it to the sender."""

    column: int | None  # 1-based, in the sheet; None: the whole row
    field: str | None
    code: str
    message: str


SPREAD: Final = 0  # instead of a column: each row's own, where columns became rows

# Where findings are: a column of the sheet (1-based), SPREAD, the column of each row of the chunk, or none.
CellColumn = int | Sequence[int] | None


class ChunkReporter:
    """Reports what is wrong with the rows of one chunk of a table.

    `flag` adds to `findings`, which the whole job shares, and collects errors in `errors` until the chunk is written.
    """

    __slots__ = ("cells_outside_table", "chosen", "errors", "findings", "place", "rows", "value_columns")

    def __init__(
        self,
        findings: Findings,
        place: FindingPlace,
        rows: list[int],
        *,
        value_columns: Sequence[int] = (),
        chosen: Mapping[int, Sequence[int]] | None = None,
        cells_outside_table: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        """Prepare to report on one chunk of a table; `rows` has each row's number in the sheet.

        `value_columns`: after an unpivot, for each row the column of the sheet that its value came from. `chosen`:
        likewise, by output column, for fields that take the first value of several columns. `cells_outside_table`: for
        fields that have one value for all rows, the row and column of its cell.
        """
        self.findings = findings
        self.place = place
        self.rows = rows
        self.value_columns = value_columns
        self.chosen = dict(chosen or {})
        self.cells_outside_table = cells_outside_table or {}
        self.errors: dict[int, list[CellProblem]] = {}  # by the index of the row in the chunk

    def flag(
        self,
        indexes: Iterable[int],
        code: str,
        severity: str,
        message: str,
        *,
        column: CellColumn,
        field: str | None,
        rule: str | None,
        file: str | None = None,
        line: int | None = None,
    ) -> None:
        """Add a finding for each of these rows of the chunk, and store those that are errors in `errors`.

        What is wrong with a cell outside the table becomes one finding about that cell, counted for each row.
        """
        outside_cell = self.cells_outside_table.get(field or "")
        flagged = 0
        for i in indexes:
            sheet_column = self.column_of(column, i)
            if severity == "error":
                self.errors.setdefault(i, []).append(CellProblem(sheet_column, field, code, message))
            flagged += 1
            if outside_cell is None:
                self.findings.add(
                    code, severity, message, place=self.place, row=self.rows[i], column=sheet_column, field=field,
                    rule=rule, file=file, line=line,
                )  # fmt: skip
        if outside_cell is not None and flagged:
            self.findings.add(
                code, severity, message, place=self.place, row=outside_cell[0], column=outside_cell[1], field=field,
                rule=rule, file=file, line=line, count=flagged,
            )  # fmt: skip

    def column_of(self, column: CellColumn, index: int) -> int | None:
        """Return the sheet's column (1-based) in which a row of the chunk has its cell, after an unpivot or a choice
        between columns; None: the whole row."""
        if isinstance(column, Sequence):
            return column[index]
        return self.value_columns[index] if column == SPREAD else column


class ReportCells(Protocol):
    """Flags cells of the column that is being checked."""

    def __call__(self, cells: Sequence[int], code: str, *, what: str, rule: str = "") -> None:
        """Add a finding for the cells at these indexes; `what` is its text. Without a `rule`, the code is named."""


class FieldChecks:
    """Checks the values of one field, chunk by chunk, across all tables of a job.

    It remembers which values a unique field had in earlier chunks, so each chunk must be checked exactly once.
    """

    def __init__(self, field: Field, allowed: frozenset[Any] | None) -> None:
        """Prepare to check one field in all chunks of a job; `allowed` has the folded values of its list or lookup
        table, None if any value is allowed."""
        self.field = field
        self._allowed = allowed
        self._known_allowed: set[Any] = {None}  # values already found to be allowed
        self._seen = SeenValues() if field.unique else None

    def check(self, values: list[Any], bad: list[int], reporter: ChunkReporter, column: CellColumn) -> None:
        """Check one chunk of a field's values against all its rules, and flag each offending cell on the reporter.

        Remembers the values of unique fields, so each chunk is checked once. `bad`: indexes of cells that are not of
        the type; of the other rules only `unique` applies to them.
        """
        field, skip = self.field, set(bad)
        report = partial(self._report, reporter, column)
        if bad:
            self._check_type(values, bad, report)
        if field.required and (blank := [i for i, v in enumerate(values) if v is None]):
            report(blank, "required", what="is blank")
        if field.pattern is not None:
            self._check_pattern(field.pattern, values, skip, report)
        if field.min is not None or field.max is not None:
            self._check_bounds(values, skip, report)
        if field.min_length is not None or field.max_length is not None:
            self._check_length(values, skip, report)
        if self._allowed is not None:
            self._check_allowed(values, skip, report)
        if self._seen is not None:
            repeats = self._seen.repeats(_without_errors(values, skip))
            report(repeats, "duplicate", what="duplicates a value in an earlier row", rule="unique")

    def _report(
        self, reporter: ChunkReporter, column: CellColumn, cells: Sequence[int], code: str, *, what: str, rule: str = ""
    ) -> None:
        """Flag the cells at these indexes on the reporter, with the field's severity; a finding that names no rule gets
        its code as the rule."""
        field = self.field
        reporter.flag(cells, code, field.severity, what, column=column, field=field.name, rule=rule or code)

    def _check_type(self, values: list[Any], bad: list[int], report: ReportCells) -> None:
        """Report the cells that could not be converted to the field's type, except spreadsheet errors, which have a
        finding of their own."""
        field = self.field
        what = FindingText(f"is not {_PHRASE_OF_TYPE.get(field.type, 'a valid ' + field.type)}", field.type)
        if field.formats:
            what = FindingText(
                f"{what} in the given formats", "formats", formats=", ".join(map(_in_human_letters, field.formats))
            )
        untyped = [i for i in bad if type(values[i]) is not CellError]  # an error cell has a finding of its own
        report(untyped, "type_error", what=what, rule=f"type:{field.type}")

    def _check_pattern(self, pattern: re.Pattern[str], values: list[Any], skip: set[int], report: ReportCells) -> None:
        """Report the cells whose whole text does not match the field's pattern, but for blanks and those in `skip`."""
        match = pattern.fullmatch
        unmatched = [
            i
            for i, v in enumerate(values)
            if v is not None and i not in skip and match(v if type(v) is str else text_of(v)) is None
        ]
        report(unmatched, "pattern", what=FindingText(f"does not match {pattern.pattern}", pattern=pattern.pattern))

    def _check_bounds(self, values: list[Any], skip: set[int], report: ReportCells) -> None:
        """Report the cells below the field's `min` or above its `max`, but for blanks and those in `skip`; the chunk's
        extremes are tried first, so that a good chunk costs two comparisons."""
        present = values if not skip and None not in values else [
            v for i, v in enumerate(values) if v is not None and i not in skip
        ]  # fmt: skip
        if not present:
            return
        for limit, name, extreme in ((self.field.min, "min", min), (self.field.max, "max", max)):
            if limit is None or not _is_beyond(extreme(present), limit, name):
                continue
            beyond = [i for i, v in enumerate(values) if v is not None and i not in skip and _is_beyond(v, limit, name)]
            word = "below" if name == "min" else "above"
            report(beyond, name, what=FindingText(f"is {word} {limit}", limit=str(limit)))

    def _check_length(self, values: list[Any], skip: set[int], report: ReportCells) -> None:
        """Report the cells with fewer or more characters than the field allows, but for blanks and those in `skip`."""
        shortest, longest = self.field.min_length or 0, self.field.max_length
        for i, v in enumerate(values):
            if v is None or i in skip:
                continue
            size = len(v if type(v) is str else text_of(v))
            if size < shortest:
                report([i], "min_length", what=FindingText(f"is shorter than {shortest} characters", limit=shortest))
            elif longest is not None and size > longest:
                report([i], "max_length", what=FindingText(f"is longer than {longest} characters", limit=longest))

    def _check_allowed(self, values: list[Any], skip: set[int], report: ReportCells) -> None:
        """Report the cells that are not one of the field's allowed values, however these are spelled; remembers values
        once found to be allowed."""
        try:
            unknown = set(values) - self._known_allowed
        except TypeError:  # a rule made a list or the like, which no set holds
            return
        if not unknown:
            return
        allowed = self._allowed or frozenset()
        newly_allowed = {v for v in unknown if fold(v) in allowed}
        if len(self._known_allowed) < MAX_MEMO:
            self._known_allowed |= newly_allowed
        unknown -= newly_allowed
        refused = [i for i, v in enumerate(values) if v in unknown and i not in skip] if unknown else []
        lookup = self.field.lookup
        if lookup:
            table, column = lookup
            what = FindingText(f"is not in column {column} of {table}", "lookup", table=table, column=column)
            rule = f"lookup:{table}.{column}"
        else:
            listed = ", ".join(str(value) for value in (self.field.allowed or ())[:_ALLOWED_NAMED])
            more = ", …" if len(self.field.allowed or ()) > _ALLOWED_NAMED else ""
            what, rule = FindingText("is not one of the allowed values", "listed", allowed=listed + more), "allowed"
        report(refused, "not_allowed", what=what, rule=rule)


def _without_errors(values: list[Any], skip: set[int]) -> list[Any]:
    """Return the values with None in place of the spreadsheet errors (#N/A) among the bad cells at the indexes `skip`,
    so that errors are no duplicates."""
    if not skip:
        return values
    return [None if i in skip and type(v) is CellError else v for i, v in enumerate(values)]


def _is_beyond(value: Any, limit: Any, limit_name: str) -> bool:
    """Whether a value is below the `limit` called `min`, or above the one called `max`."""
    return bool(value < limit if limit_name == "min" else value > limit)


MAX_IN_SET: Final = 150_000  # a set costs some 80 bytes an entry and little time, a table 12 to 16 bytes
_COMPARED: Final = ({str}, {int})  # kinds of values that may be found to ascend
_WORTH_PACKING: Final = 500  # values; hashes of a smaller first chunk cost less than packing it
_HASH_BYTES: Final = 16  # that a value takes in a table
_LEVEL: Final = 1  # of compression
_TABLES: Final = 16
_MOVED_AT_ONCE: Final = 5_000  # hashes that are moved at a time


def _hash_of(value: Any) -> int:
    """Return the hash of a value that is not a text; 5 and 5.0 have the hash of the text 5 after a NUL, and so equal
    each other.
    """
    return hash(f"\0{int(value) if type(value) is float and value.is_integer() else value!r}")


class SeenValues:
    """Remembers the values of a unique field: packed as long as they ascend, as those of most exports do, and else as
    hashes: few in a set, many in tables of open addressing.

    What ascends has no repeats, and takes a few bytes a value. There are several tables, so that little memory is
    needed to enlarge one.
    """

    def __init__(self, max_in_set: int = MAX_IN_SET, worth_packing: int = _WORTH_PACKING) -> None:
        """Start with no values; a set holds up to `max_in_set` hashes, after which they move to tables. Values are
        packed if the first chunk has at least `worth_packing`."""
        self._max_in_set = max_in_set
        self._worth_packing = worth_packing
        self._ascending: list[bytes] | None = []  # chunks, packed; None: these are hashes now
        self._greatest: Any = None  # of the ascending values
        self._saved_bytes = 0  # by packing instead of hashes
        self._hash_set: set[int] = set()
        self._tables: list[array[int]] = []  # empty until there are many hashes; 0 in free slots
        self._slots_filled = [0] * _TABLES  # slots of each table

    def repeats(self, values: Sequence[Any]) -> list[int]:
        """Remember a chunk's values, and return the indexes of those that an earlier row has, in this call or one
        before.

        Blanks are neither remembered nor returned.
        """
        if self._ascending is not None:
            if self._add_ascending(self._ascending, values):
                return []
            earlier, self._ascending = self._ascending, None
            for packed in earlier:
                self._repeats_by_hash(marshal.loads(isal_zlib.decompress(packed)))  # noqa: S302  # our own bytes
        return self._repeats_by_hash(values)

    def _add_ascending(self, chunks: list[bytes], values: Sequence[Any]) -> bool:
        """Add a chunk whose values are all of one kind, beyond the earlier ones and ascending; False if it is another
        one, or not worth packing."""
        kinds = set(map(type, values))
        if type(None) in kinds:
            kinds.remove(type(None))
            values = [value for value in values if value is not None]
        if not values:
            return True
        if kinds not in _COMPARED or (not chunks and len(values) < self._worth_packing):
            return False
        if chunks and not (type(values[0]) is type(self._greatest) and self._greatest < values[0]):
            return False
        if not all(map(operator.lt, values, values[1:])):
            return False
        packed = bytes(isal_zlib.compress(marshal.dumps(list(values), 2), _LEVEL))  # 2: without a table of all values
        self._saved_bytes += _HASH_BYTES * len(values) - len(packed)
        if self._saved_bytes < 0:
            return False
        chunks.append(packed)
        self._greatest = values[-1]
        return True

    def _repeats_by_hash(self, values: Sequence[Any]) -> list[int]:
        """Remember the hashes of a chunk's values, and return the indexes of those that were known, as `repeats`."""
        hashes = [v if v is None else hash(v) if type(v) is str else _hash_of(v) for v in values]
        if self._tables:
            return self._repeats_by_tables(hashes)
        hash_set = self._hash_set
        distinct = {value_hash for value_hash in hashes if value_hash is not None}
        if len(distinct) == len(hashes) and hash_set.isdisjoint(distinct):  # as in most chunks
            repeated = []
            hash_set |= distinct
        else:
            repeated = self._repeats_by_set(hashes)
        if len(hash_set) > self._max_in_set:
            self._move_to_tables()
        return repeated

    def _repeats_by_set(self, hashes: Sequence[int | None]) -> list[int]:
        """Add hashes to the set one by one, and return the indexes of those that were in it already."""
        hash_set, repeated = self._hash_set, []
        for index, value_hash in enumerate(hashes):
            if value_hash in hash_set:
                repeated.append(index)
            elif value_hash is not None:
                hash_set.add(value_hash)
        return repeated

    def _repeats_by_tables(self, hashes: Sequence[int | None]) -> list[int]:
        """Add hashes to the tables, enlarged first if they get too full, and return the indexes of those that were in
        them already."""
        self._enlarge_tables(len(hashes))
        tables, filled, repeated = self._tables, self._slots_filled, []
        for index, value_hash in enumerate(hashes):
            if value_hash is None:
                continue
            entry = value_hash or 1  # 0 is a free slot
            number = entry % _TABLES
            table = tables[number]
            slot = entry // _TABLES % len(table)
            while (present := table[slot]) and present != entry:
                slot -= 1  # a negative one counts from the end
            if present:
                repeated.append(index)
            else:
                table[slot] = entry
                filled[number] += 1
        return repeated

    def _move_to_tables(self) -> None:
        """Move the hashes of the set to tables."""
        hash_set, self._hash_set = list(self._hash_set), set()
        self._tables = [array("q", [0]) for _ in range(_TABLES)]
        while hash_set:
            self._repeats_by_tables(hash_set[-_MOVED_AT_ONCE:])
            del hash_set[-_MOVED_AT_ONCE:]

    def _enlarge_tables(self, count: int) -> None:
        """Make room for `count` hashes more, all of which may go to one table; none gets more than two thirds full for
        long, nor full."""
        for number, (table, filled) in enumerate(zip(self._tables, self._slots_filled, strict=True)):
            if filled * 3 > len(table) * 2 or filled + count >= len(table):
                slots = max(2 * filled, filled + 2 * count)
                larger = self._tables[number] = array("q", bytes(8 * slots))
                for entry in filter(None, table):
                    slot = entry // _TABLES % slots
                    while larger[slot]:
                        slot -= 1
                    larger[slot] = entry


_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EQUALITY: Final = frozenset({"==", "!=", "in", "not in"})


class FieldComparison:
    """The `when` or `then` of a row rule: a field, an operator, and a constant or another field.

    Rows where a compared cell is blank or not of its type are skipped: `required` and `type_error` report those.
    """

    def __init__(self, rule: RowComparison, fields: Mapping[str, Field]) -> None:
        """Prepare a comparison of a row rule: its constant is converted once to the field's type, for `in` and `not in`
        to a set of folded texts."""
        self.field, self.op, self.other = rule.field, rule.op, rule.other
        field_type, value = fields[self.field].type, rule.value
        # In the field's type, to compare with; of `in` and `not in` the folded texts of all values.
        self.value = (
            frozenset(fold(bound(field_type, v)) for v in value)
            if isinstance(value, list)
            else bound(field_type, value)
        )

    def holds(self, columns: Mapping[str, list[Any]], index: int) -> bool | None:
        """Whether the row at an index of the chunk satisfies the comparison; None if a cell is blank or cannot be
        compared."""
        value = columns[self.field][index]
        if self.op == "empty":
            return value is None
        if self.op == "present":
            return value is not None
        against = columns[self.other][index] if self.other else self.value
        if value is None or against is None:
            return None
        if isinstance(against, frozenset):
            return (fold(value) in against) is (self.op == "in")
        try:
            return _COMPARE[self.op](value, against)
        except TypeError:
            return None


class RowCheck:
    """A rule of the manifest that compares fields of one row: where `when` holds, `then` must hold too."""

    def __init__(self, rule: DeclaredRule, then: RowComparison, fields: Mapping[str, Field]) -> None:
        """Prepare a row rule of the manifest; `then`, its own, must hold where its `when` does, or in all rows."""
        self.name = rule.name
        self.when = None if rule.when is None else FieldComparison(rule.when, fields)
        self.then = FieldComparison(then, fields)
        self.severity = rule.severity
        self.message = author_text(rule.message, _describe_broken(then))

    def check(self, columns: Mapping[str, list[Any]], count: int, reporter: ChunkReporter, column: CellColumn) -> None:
        """Flag on the reporter the rows of a chunk where `when` holds and `then` does not; `column` is that of the
        field of `then`."""
        broken = [
            index
            for index in range(count)
            if (self.when is None or self.when.holds(columns, index) is True)
            and self.then.holds(columns, index) is False
        ]
        field = self.then.field
        reporter.flag(broken, "row_rule", self.severity, self.message, column=column, field=field, rule=self.name)


def _describe_broken(then: RowComparison) -> str:
    """Describe a comparison that a row does not satisfy, with the manifest's own constants and no cell value."""
    if then.op in ("present", "empty"):
        return f"{then.field} is {'blank' if then.op == 'present' else 'not blank'}"
    constants = then.value if isinstance(then.value, list) else [then.value]
    named = ", ".join(str(text_of(constant)) for constant in constants[:_ALLOWED_NAMED])
    against = then.other or (f"{named} …" if len(constants) > _ALLOWED_NAMED else named)
    return f"{then.field} {then.op} {against[:_LONGEST_NAMED]} does not hold"
