"""The rules of a manifest that use expressions, or that compare several rows."""

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from runner.engine.common.fields import Field
from runner.engine.common.findings import FindingPlace, Findings, FindingText, author_text
from runner.engine.expressions.evaluation import Columns, evaluate_expression
from runner.engine.expressions.operations import CONTEXT, INPUT, Failure, read_number
from runner.engine.mapping.table_mapping import MappedTable
from runner.engine.options import TOTAL_ROW, DeclaredRule, SumRule
from runner.engine.transforming.computing import compile_declared, group_failures
from runner.engine.values.checking import CellColumn, ChunkReporter, FieldComparison, SeenValues

_NOTHING = Decimal(0)
_ENOUGH_STATED: Final = 3  # different totals that a field states; two contradict each other already


class ExpressionCheck:
    """A rule whose expression must not be false in any row; a row where it is blank is not judged."""

    def __init__(self, rule: DeclaredRule, check: str, fields: Mapping[str, Field]) -> None:
        """Compile the expression of a rule; raises EngineStop if it cannot be used."""
        types = {name: field.type for name, field in fields.items() if field.declared}
        self._rule = rule
        self._expression = compile_declared(check, types, f"the check of rule {rule.name}")
        self._when = None if rule.when is None else FieldComparison(rule.when, fields)
        self.fields = self._expression.fields

    def check(
        self,
        columns: Mapping[str, list[Any]],
        loaded_columns: Columns,
        reporter: ChunkReporter,
        column_of: Mapping[str, CellColumn],
    ) -> None:
        """Flag rows of a chunk in which the expression is false or cannot be computed, where the rule's `when` holds.

        `columns`, `loaded_columns`: the same values by field, for comparisons and for expressions. `column_of`: the
        columns of the sheet, by field.
        """
        rule, when = self._rule, self._when
        at = next((column for name in self.fields if (column := column_of.get(name)) is not None), None)
        judged = evaluate_expression(self._expression, loaded_columns)
        broken_rows = [n for n, holds in enumerate(judged.values) if holds is False]
        failed = [
            failure for failure in group_failures(judged.failed) if failure.why != INPUT.why
        ]  # type_error reports those
        if when is not None:
            broken_rows = [n for n in broken_rows if when.holds(columns, n) is True]
            failed = [
                failure._replace(indexes=[n for n in failure.indexes if when.holds(columns, n) is True])
                for failure in failed
            ]
        field = self.fields[0] if self.fields else None
        message = author_text(rule.message, f"{self._expression.text} does not hold")
        reporter.flag(broken_rows, "row_rule", rule.severity, message, column=at, field=field, rule=rule.name)
        for rows, why, to_blame in failed:
            there = column_of.get(to_blame or "") or at
            what, field = f"the check {why}", to_blame or field
            reporter.flag(rows, "expression_error", rule.severity, what, column=there, field=field, rule=rule.name)


class UniqueRows:
    """A rule that the values of several fields together occur once; rows in which one is blank are not compared.

    It remembers the values of all chunks, so each chunk must be checked exactly once.
    """

    def __init__(self, rule: DeclaredRule) -> None:
        """Remember no values yet; `rule.unique` names the fields."""
        self._rule = rule
        self.fields = rule.unique
        self._seen = SeenValues()

    def check(self, columns: Mapping[str, list[Any]], reporter: ChunkReporter, at: CellColumn) -> None:
        """Flag the rows whose values an earlier row has, too; `at`: the column of the sheet to name."""
        rows = zip(*(columns[name] for name in self.fields), strict=True)
        repeated_rows = self._seen.repeats([None if None in row else tuple(map(_comparable, row)) for row in rows])
        message = author_text(self._rule.message, f"duplicates {', '.join(self.fields)} of an earlier row")
        reporter.flag(
            repeated_rows,
            "duplicate",
            self._rule.severity,
            message,
            column=at,
            field=self.fields[0],
            rule=self._rule.name,
        )


def _comparable(value: Any) -> Any:
    """Convert a value so that equal numbers are equal: 5 for 5.0."""
    return int(value) if type(value) is float and value.is_integer() else value


class ColumnSum:
    """Adds up a field over the rows of one table, and compares the sum with the total that the sheet has.

    All data rows of the sheet count, those that `rows` leaves out too: the sender's total is about these.
    """

    def __init__(self, rule: DeclaredRule, total: SumRule) -> None:
        """Start at zero, for a rule that compares `total.field` with its total."""
        self._rule = rule
        self.total = total
        self._sum = _NOTHING
        self._skipped = 0  # cells that are not numbers
        self._stated_totals: set[Any] = set()  # the first different values of the field that states the total
        self._rows = 0

    def add(
        self, columns: Mapping[str, list[Any]], wrong: Mapping[str, Sequence[int]], totals: Collection[int]
    ) -> None:
        """Add up the rows of a chunk. `wrong`: by field, indexes of cells that are not of their type; `totals`: indexes
        of rows that are totals themselves."""
        name, bad = self.total.field, set(wrong.get(self.total.field, ()))
        for n, value in enumerate(columns[name]):
            if n in totals:
                continue
            self._rows += 1
            number = None if value is None else read_number(value)
            if n in bad or isinstance(number, Failure):
                self._skipped += 1
            elif number is not None:
                self._sum = CONTEXT.add(self._sum, Decimal(number))
        if self.total.equals != TOTAL_ROW and len(self._stated_totals) < _ENOUGH_STATED:
            stated_totals = {read_number(value) for value in set(columns[self.total.equals]) - {None}}
            self._stated_totals |= {number for number in stated_totals if not isinstance(number, Failure)}

    def report(self, table: MappedTable, fields: Mapping[str, Field], findings: Findings) -> None:
        """Report a sum that differs from the table's total, or that has no total to compare with.

        Reads the total rows again, so the table's input must be open.
        """
        if not self._rows:
            return
        rule, (name, equals, tolerance) = self._rule, self.total
        place, at = table.source.place, table.fields.get(name)
        # Total -> its row; None: it is in no row of its own.
        totals = (
            self._read_total_rows(table, fields[name]) if equals == TOTAL_ROW else dict.fromkeys(self._stated_totals)
        )
        column = None if at is None or at >= len(table.source.columns) else table.source.columns[at].index
        where = "total row" if equals == TOTAL_ROW else f"value of {equals}"
        if not totals:
            what = author_text(rule.message, f"the sum of {name} cannot be checked: the table has no {where}")
            self._report_sum(findings, "total_missing", what, place=place, row=None, column=column)
            return
        most_apart = Decimal(repr(tolerance))
        equal = any(abs(CONTEXT.subtract(Decimal(total), self._sum)) <= most_apart for total in totals)
        if equal and (len(totals) == 1 or equals == TOTAL_ROW):  # of several total rows, the others are subtotals
            return
        more = f"; {self._skipped:,} cells are not numbers" if self._skipped else ""
        several = f"; {equals} has several values" if len(totals) > 1 and equals != TOTAL_ROW else ""
        row = list(totals.values())[-1]
        what = author_text(rule.message, f"the sum of {name} is not the {where}{several}{more}")
        self._report_sum(findings, "total_mismatch", what, place=place, row=row, column=column)

    def _report_sum(
        self, findings: Findings, code: str, what: str, *, place: FindingPlace, row: int | None, column: int | None
    ) -> None:
        """Add a finding about the sum."""
        findings.add(
            code, self._rule.severity, what, place=place, row=row, column=column, field=self.total.field,
            rule=self._rule.name,
        )  # fmt: skip

    def _read_total_rows(self, table: MappedTable, field: Field) -> dict[Any, int]:
        """Read the numbers of the total rows that were found in the table: number -> row. Empty without any, and for a
        field without a column of the sheet."""
        at = table.fields.get(field.name)
        if at is None or at >= len(table.source.columns) or not table.source.table.totals:
            return {}
        cells = table.source.cells(table.source.columns[at].index, table.source.table.totals)
        rows = [row for row in sorted(cells) if cells[row] is not None]
        values, wrong = table.converter(field, at).convert([cells[row] for row in rows])
        read = [(row, read_number(v)) for n, (row, v) in enumerate(zip(rows, values, strict=True)) if n not in wrong]
        return {number: row for row, number in read if number is not None and not isinstance(number, Failure)}


def check_row_count(rule: DeclaredRule, rows: int, findings: Findings) -> None:
    """Report an output that has fewer or more rows than a rule accepts; a rule about something else accepts all."""
    least, most = rule.rows or (None, None)
    what = f"the output has {rows:,} rows"
    if most is not None and rows > most:
        what = FindingText(f"{what}; at most {most:,} are expected", "many", rows=rows, limit=most)
    elif least is not None and rows < least:
        what = FindingText(f"{what}; at least {least:,} are expected", "few", rows=rows, limit=least)
    else:
        return
    findings.add("row_count", rule.severity, author_text(rule.message, what), rule=rule.name)
