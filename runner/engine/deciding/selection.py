"""Chooses the tables that hold the records, where a job has several: those with the fields that the manifest asks for.

The others are compared with the longest of the tables that have most of the fields. A table is left out if its content
proves that it repeats rows of others, sums them up, lists the values of their columns or explains the columns. One with
few of the fields, or a short example, is left out with a warning; where that could lose more than it saves, it is used
with a warning. A table that somebody asked for in the manifest, in a review or for an earlier drop is used.
"""

import re
from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from runner.engine.common.a1 import column_number
from runner.engine.common.fields import NUMERIC, TEMPORAL, Field
from runner.engine.common.findings import Findings
from runner.engine.common.spelling import normalized
from runner.engine.deciding.derivation import GroupSums, SeenRows, TableContents, explains_columns, lists_values
from runner.engine.deciding.pairing import TableLikeness, TableRelation, compare_tables
from runner.engine.mapping.table_mapping import MappedTable
from runner.engine.tables.sources import SourceTable
from runner.engine.values.calendar_names import MONTHS, WEEKDAYS, folded

_MEASURES: Final = NUMERIC - {"integer"}  # types of fields that tell no records apart
_FEW_BY_CHANCE: Final = 3  # rows that two tables do not share by chance
_MOST_NAMED: Final = 3  # tables that a message names
_EXAMPLE_ROWS: Final = 5  # rows of an example
_MOST_COMPARED: Final = 2  # tables that a table is compared with, row by row
_MOST_ALIKE: Final = 3  # more tables with the same keys are one for each branch, class or the like
_TIMES_AS_LONG: Final = 3  # a table so many times as long as those with more fields is what the file is about
# Words of sheets that show how a list is to be filled in, in the languages of the forms that we have seen.
_EXAMPLE_WORDS: Final = frozenset(
    {
        "example", "examples", "sample", "samples", "template", "instructions", "beispiel", "beispiele", "muster",
        "vorlage", "anleitung", "exemple", "exemples", "modele", "ejemplo", "ejemplos", "plantilla", "esempio",
        "modello", "exemplo", "voorbeeld", "exempel", "eksempel", "przyklad", "wzor", "priklad",
    }
)  # fmt: skip
_PERIOD_WORDS: Final = frozenset(
    {"week", "kw", "cw", "woche", "semaine", "semana", "settimana", "uke", "vecka", "uge", "q"}
)
# Words of sheets that are one of several states of the same records.
_VERSION_NAMES: Final = frozenset({
    "plan", "planned", "budget", "forecast", "actual", "actuals", "target", "draft", "final", "revised", "estimate",
    "old", "new", "before", "after", "soll", "ist", "entwurf", "prognose", "alt", "neu", "vorher", "nachher", "prevu",
    "reel", "ancien", "nouveau", "previsto", "real", "presupuesto", "viejo", "nuevo", "begroting", "oud", "nieuw",
})  # fmt: skip
_WORDS: Final = re.compile(r"[^\W\d_]+|\d+")
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_RANGE: Final = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,6})(?::([A-Z]{1,3})([1-9][0-9]{0,6}))?")


class _Judgement(NamedTuple):
    """What speaks against a table: a finding's code and severity, and the reason in words."""

    code: str
    severity: str
    why: str
    is_used: bool = False  # all the same
    instead: TableContents | None = None  # the table of which this is said, if it is one that was judged before


class TableDoubt(NamedTuple):
    """A table that may or may not hold records."""

    table: MappedTable
    is_used: bool
    message: str


def is_named(table: SourceTable, name: str) -> bool:
    """Whether an entry of `reading.tables` names a table: `sheet`, `input/sheet`, both with wildcards, or one of them
    with `!` and cells (`Pay!B2` or `Pay!A1:D9`), of which any must be in the table's range."""
    sheet, _, cells = name.rpartition("!")
    corners = _RANGE.fullmatch(cells) if sheet else None
    if corners is None:
        sheet = name
    place, box = table.place, table.table.range
    if not any(label == sheet or fnmatchcase(label, sheet) for label in (place.sheet, f"{place.input}/{place.sheet}")):
        return False
    if corners is None:
        return True
    first_column, top, last_column, bottom = corners.groups()
    shares_columns = column_number(first_column) <= box.right and box.left <= column_number(last_column or first_column)
    shares_rows = int(top) <= box.bottom and box.top <= int(bottom or top)
    return shares_columns and shares_rows


def skip_unnamed(tables: Sequence[SourceTable], names: Sequence[str], findings: Findings) -> None:
    """Set on the tables that `reading.tables` does not name why they are skipped, and report them and names of tables
    that are not there."""
    for table in tables:
        if not any(is_named(table, name) for name in names):
            table.skipped = "reading.tables does not name it"
            message = f"the table is left out: {table.skipped}"
            findings.add("table_skipped", "info", message, place=table.place, rule="structure")
    for name in names:
        if not any(is_named(table, name) for table in tables):
            message = (
                f"reading.tables names {name[:100]}, and there is no table; the tables are: {_name_places(tables)}"
            )
            findings.add("no_table", "warning", message, rule="structure")


class Selection(NamedTuple):
    """The tables that the job uses."""

    tables: list[MappedTable]
    doubts: list[TableDoubt]  # tables, in use or not, that may or may not hold records


def select(
    tables: Sequence[MappedTable],
    fields: Sequence[Field],
    asked: Callable[[MappedTable], bool | None],
    findings: Findings,
) -> Selection:
    """Choose the tables to use.

    Sets on the others that they are left out and why, and reports it. `asked`: what somebody said about a table.
    """
    if len(tables) < 2:
        return Selection(list(tables), [])
    chosen = _Selection(tables, fields, asked, findings)
    chosen.run()
    return Selection([t for t in tables if not t.left_out], chosen.doubts)


class _Selection:
    """Judges the tables of a job, one after the other, from the one with most fields down.

    Each is compared with the main table, the longest of those with most fields, and with the ones in use so far.
    """

    def __init__(
        self,
        tables: Sequence[MappedTable],
        fields: Sequence[Field],
        asked: Callable[[MappedTable], bool | None],
        findings: Findings,
    ) -> None:
        """Find the main table, and the fields that tell its records apart; nothing is judged yet."""
        self._asked = {t.source.id: asked(t) for t in tables}
        self._candidates = [TableContents(t) for t in tables]
        self._fields = {f.name: f for f in fields}
        self._findings = findings
        self._seen_rows = SeenRows()
        most = max(len(t.fields) for t in self._candidates)
        wide = [t for t in self._candidates if len(t.fields) * 5 >= 4 * most and self._asked[t.id] is not False]
        self._main = max(wide or self._candidates, key=lambda t: (not _is_named_example(t), t.rows, len(t.fields)))
        # Tables with most of the main table's fields, itself included.
        self._alike = [
            t for t in self._candidates if len(t.fields & self._main.fields) * 5 >= 4 * len(self._main.fields)
        ]
        self._record_keys = self._choose_record_keys()
        self._dated = {f.name for f in fields if f.type in TEMPORAL}
        names = {name for f in fields for name, _ in f.names}
        names |= {c.name for c in self._main.table.source.columns if not c.generated}
        self._names = set(map(normalized, names))  # of columns
        self._last_sums = ([""], GroupSums([]))  # ids of the tables that were added up last, and their sums
        self._judged: list[tuple[TableContents, _Judgement]] = []  # to report
        self.doubts: list[TableDoubt] = []

    def _choose_record_keys(self) -> frozenset[str]:
        """Choose the fields that tell the records of the main table apart: those that the manifest calls unique, else
        those whose values do, required ones first."""
        main_fields = [f for name, f in self._fields.items() if name in self._main.fields]
        unique = {f.name for f in main_fields if f.unique}
        if unique:
            return frozenset(unique)
        distinguishing = {f.name for f in main_fields if self._distinguishes(f)}
        required = {f.name for f in main_fields if f.required}
        return frozenset((required & distinguishing) or distinguishing or required)

    def _distinguishes(self, field: Field) -> bool:
        """Whether a field tells the records of the main table apart by itself; a column of numbers only if they count
        up."""
        name, main = field.name, self._main
        if field.type in _MEASURES or name not in main.columns or not main.distinguishes_rows(name):
            return False
        return name not in main.numeric or main.counts_up(name)

    def run(self) -> None:
        """Judge every table, leave out what holds no records, and report it in the order of the tables."""
        used: list[TableContents] = []
        order = {t.id: n for n, t in enumerate(self._candidates)}
        for table in sorted(self._candidates, key=lambda t: (-len(t.fields), -t.rows, order[t.id])):
            judgement = self._judge(table, used)
            used.append(table)
            if judgement is None:
                continue
            about = judgement.instead or table
            self._judged.append((about, judgement))
            if not judgement.is_used:
                used.remove(about)
                about.table.left_out, about.table.source.skipped = True, judgement.why
        for table, judgement in sorted(self._judged, key=lambda judged: order[judged[0].id]):
            self._report(table, judgement)

    def _judge(self, table: TableContents, used: Sequence[TableContents]) -> "_Judgement | None":
        """Judge a table by everything that may speak against it, the surest first; None for one that holds records.
        `used`: tables judged before that are in use."""
        if (asked := self._asked[table.id]) is not None:
            return None if asked else _Judgement("table_skipped", "info", "it was decided for this drop")
        used = [other for other in used if not _are_set_apart(table, other)]
        others, rows = self._seen_rows.count_repeated_rows(table, used)
        if rows and (repeated := self._judge_repeated(table, others, rows)) is not None:
            return repeated
        if (alike := self._judge_by_likeness(table, used)) is not None:
            return alike
        if table is self._main or not self._main.fields:
            return None
        if derived := self._why_derived(table):
            return _Judgement("table_derived", "info", f"it {derived} of {self._main.id}")
        return self._judge_doubtful(table)

    def _judge_repeated(self, table: TableContents, others: Sequence[TableContents], rows: int) -> "_Judgement | None":
        """Judge a table of which `rows` rows are in the `others`, at least one; None if that may be by chance, or if
        the sheets are of different times."""
        other = others[0]
        shared = table.columns.keys() & other.columns.keys()
        keys = sorted(key for key in shared if other.distinguishes_rows(key))
        is_distinct_without_key = bool(keys) and len(shared) > 1 and other.distinguish_rows(shared - {keys[0]})
        unique = any(f.unique for name, f in self._fields.items() if name in table.fields)
        named_others = other.id if len(others) == 1 else f"{other.id} and {len(others) - 1} more"
        if not unique and not table.has_dates and _are_in_series(table, other):
            return None  # the same rows every month, as a payroll has them
        if rows < table.rows:
            return self._judge_overlap(table, other, rows, keys) if is_distinct_without_key else None
        why = f"every row of it is in {named_others}"
        if unique or is_distinct_without_key or (keys and table.fields < other.fields):
            return _Judgement("table_repeated", "info" if unique else "warning", why)
        is_whole_copy = table.rows == other.rows and len(others) == 1
        if table.rows >= _FEW_BY_CHANCE and (is_whole_copy or keys):
            return _Judgement("table_repeated", "warning", why, is_used=True)
        return None

    def _judge_by_likeness(self, table: TableContents, used: Sequence[TableContents]) -> "_Judgement | None":
        """Judge a table that has the rows of another, spelled otherwise or with other numbers; None if no table in use
        has its rows."""
        with_all_fields = [t for t in used if table.fields <= t.fields and not _are_in_series(table, t)]
        for other in sorted(with_all_fields, key=lambda t: -table.shared_values(t, self._record_keys))[:_MOST_COMPARED]:
            dated = {
                column for column in table.columns if any(t.has_dates_in(column) for t in (table, other))
            } | self._dated
            likeness = compare_tables(table, other, dated=dated, keys=self._record_keys)
            if likeness is not None and (judgement := self._judge_difference(table, other, likeness)) is not None:
                return judgement
        return None

    def _judge_difference(
        self, table: TableContents, other: TableContents, likeness: TableLikeness
    ) -> "_Judgement | None":
        """Judge a table whose rows pair with another's, by what differs between them; None if it holds records of its
        own."""
        columns = " and ".join(k.removeprefix("~") for k in likeness.columns[:_MOST_NAMED])
        if likeness.relation is TableRelation.MULTIPLIED:
            why = f"its rows are those of {other.id}, with {columns} multiplied by {likeness.factor:.4g}"
            return _Judgement("table_assumed", "warning", why)
        if likeness.relation is TableRelation.OTHER:
            why = f"its rows are those of {other.id} but for {columns}, and no column tells which is which"
            is_enough = likeness.agreeing > 1 or _is_named_version(table) or _is_named_version(other)
            differs_in_one = len(likeness.columns) == 1 and is_enough and table.rows == other.rows
            is_doubtful = differs_in_one and len(self._alike) <= _MOST_ALIKE
            return _Judgement("table_assumed", "warning", why, is_used=True) if is_doubtful else None
        judgement = self._judge_repeated(table, [other], table.rows)
        if judgement is None:
            return None
        is_worse, how = likeness.is_coarser, f"with {columns} rounded"
        if likeness.relation is TableRelation.EQUAL:
            is_worse, how = table.untidiness(self._dated) >= other.untidiness(self._dated), "spelled otherwise"
        if table.rows < other.rows or self._asked[other.id]:
            is_worse = True  # what only the other has would be lost
        worse, better = (table, other) if is_worse else (other, table)
        why = f"its rows are those of {better.id}, {how}"
        return judgement._replace(severity="warning", why=why, instead=worse)

    def _judge_overlap(
        self, table: TableContents, other: TableContents, shared_rows: int, keys: Sequence[str]
    ) -> "_Judgement | None":
        """Judge a table of which some rows are in another: an older copy, or two that overlap; None if these are too
        few to matter."""
        if shared_rows < _FEW_BY_CHANCE or shared_rows * 3 < table.rows:
            return None
        why = f"{shared_rows:,} of its {table.rows:,} rows are in {other.id}"
        has_same_keys = any(table.has_keys_of(other, key) for key in keys if key in self._record_keys)
        if has_same_keys and not _are_in_series(table, other):
            return _Judgement("table_assumed", "warning", f"{why}, and the others differ from rows there in some cells")
        return _Judgement("table_repeated", "warning", why, is_used=True)

    def _why_derived(self, table: TableContents) -> str:
        """Explain what proves that a table is made from the main one or about it; empty if nothing does."""
        others = [t for t in self._alike if t is not table and not t.table.left_out]
        if not others:
            return ""
        if self._sums_of(others).are_in(table):
            return "has sums or counts of the rows"
        if table not in self._alike and explains_columns(table, self._names):
            return "explains the columns"
        if self._lacks_key(table):
            lists_all, lists_one = lists_values(table, others)
            if lists_all or (lists_one and len(table.fields) == 1 and self._is_thin(table)):
                return "lists values of the columns"
        return ""

    def _sums_of(self, tables: Sequence[TableContents]) -> GroupSums:
        """Return the sums of the rows of some tables; made once for the same tables, with which most are compared."""
        ids = [table.id for table in tables]
        last_ids, sums = self._last_sums
        if ids != last_ids:
            sums = GroupSums(tables)
            self._last_sums = (ids, sums)
        return sums

    def _lacks_key(self, table: TableContents) -> bool:
        """Whether a table has fields of the main one only, and none that tells rows apart."""
        return table.fields < self._main.fields and table.fields.isdisjoint(self._record_keys)

    def _judge_doubtful(self, table: TableContents) -> "_Judgement | None":
        """Judge a table that may not hold records; None if it does. May judge the main table, too."""
        why = f"it has {len(table.fields)} of the {len(self._main.fields)} fields of {self._main.id}"
        own_fields = table.fields.difference(*(t.fields for t in self._alike))  # nothing else would fill them
        if own_fields and table not in self._alike and (key := self._split_at(table)):
            if self._asked[self._main.id] is None and all(t is not self._main for t, _ in self._judged):
                self._judged.append((self._main, _judge_partial_record(key, table)))
            return _judge_partial_record(key, self._main)
        if len(own_fields) > 1 and 2 * len(own_fields) >= len(table.fields):
            return None
        if self._is_thin(table):
            key = "" if not table.fields.isdisjoint(self._record_keys) else ", and none that tells rows apart"
            is_used = bool(own_fields) or self._is_bulk(table) or _are_in_series(table, self._main)
            return _Judgement("table_assumed", "warning", why + key, is_used=is_used)
        if 2 * len(table.fields) <= len(self._main.fields):
            return _Judgement("table_assumed", "warning", why, is_used=True)
        if self._is_example(table):
            return _Judgement("table_assumed", "warning", "its sheet is named as an example")
        return None

    def _split_at(self, table: TableContents) -> str:
        """Return the field of which a table and the main one have the same values, each once; empty if there is
        none."""
        main = self._main
        for key in sorted(table.fields & self._record_keys):
            is_unique_in_both = table.distinguishes_rows(key) and main.distinguishes_rows(key)
            if is_unique_in_both and table.has_keys_of(main, key) and main.has_keys_of(table, key):
                return key
        return ""

    def _is_thin(self, table: TableContents) -> bool:
        """Whether a table has so few of the fields that its rows may be other things."""
        field_count, main_field_count = len(table.fields), len(self._main.fields)
        if 2 * field_count < main_field_count:
            return True
        if field_count >= main_field_count or not table.fields.isdisjoint(self._record_keys):
            return False
        is_short = 2 * table.rows <= self._main.rows
        others = [candidate for candidate in self._alike if candidate is not table]
        return (3 * field_count <= 2 * main_field_count and is_short) or lists_values(table, others).lists_one

    def _is_bulk(self, table: TableContents) -> bool:
        """Whether it would be more of a loss to leave a table out than to use it: most rows, or a file, are in it."""
        place, main = table.table.source.place, self._main.table.source.place
        siblings = [candidate for candidate in self._candidates if candidate.table.source.place.input == place.input]
        fullest = max(siblings, key=lambda candidate: (len(candidate.fields), candidate.rows))
        has_most_rows = len(table.fields) > 1 and table.rows > _TIMES_AS_LONG * sum(
            candidate.rows for candidate in self._alike
        )
        return has_most_rows or (place.input != main.input and table is fullest)

    def _is_example(self, table: TableContents) -> bool:
        """Whether a short table is on a sheet that is named as an example, beside a main one that is not."""
        main = self._main
        return table.rows <= min(_EXAMPLE_ROWS, main.rows) and _is_named_example(table) and not _is_named_example(main)

    def _report(self, table: TableContents, judgement: "_Judgement") -> None:
        """Report a judgement; one that is not sure is also a doubt that a person may be asked about."""
        code, severity, why, is_used, _ = judgement
        message, place = f"the table is {'used' if is_used else 'left out'}: {why}", table.table.source.place
        if code == "table_assumed":
            self.doubts.append(TableDoubt(table.table, is_used, why))
            self._findings.chose(
                "table", "records" if is_used else "left out", sure=False, message=message, settle=self._remedy(table),
                evidence={"its fields": len(table.fields), "fields": len(self._main.fields)}, place=place,
            )  # fmt: skip
            return
        if code != "table_skipped":
            message += f"; to settle it: {self._remedy(table)}"
        self._findings.add(code, severity, message, place=place, rule="structure")

    def _remedy(self, table: TableContents) -> str:
        """Write the line of the manifest that names the tables to use."""
        used = [
            candidate.table.source
            for candidate in self._candidates
            if candidate is not table and not candidate.table.left_out
        ]
        names = list(dict.fromkeys(map(self._manifest_name, used)))
        if len(names) > _MOST_NAMED:
            return '"reading": {"tables": ["*"]} to use every table, or their sheets instead of the star'
        quoted_names = ", ".join(f'"{name}"' for name in names)
        own_name = self._manifest_name(table.table.source)
        return f'"reading": {{"tables": [{quoted_names}]}}, with "{own_name}" too if it holds other records'

    def _manifest_name(self, source: SourceTable) -> str:
        """Return what `reading.tables` calls a table: its sheet, and its range if the sheet has several."""
        places = [t.table.source.place for t in self._candidates]
        is_only_table = (
            sum(place.sheet == source.place.sheet and place.input == source.place.input for place in places) == 1
        )
        sheet = source.place.sheet
        if any(place.sheet == sheet and place.input != source.place.input for place in places):
            sheet = f"{source.place.input}/{sheet}"
        return sheet if is_only_table else f"{sheet}!{source.table.range.a1}"


def _judge_partial_record(key: str, other: TableContents) -> _Judgement:
    """Judge a table with the same keys as another and other fields: it is used, with a warning."""
    why = f"it has each {key} of {other.id} and other fields; the parts of a record are not put together"
    return _Judgement("table_assumed", "warning", why, is_used=True)


def _is_named_example(table: TableContents) -> bool:
    """Whether the name of a table's sheet has a word for an example."""
    return not _EXAMPLE_WORDS.isdisjoint(normalized(table.table.source.place.sheet).split())


def _is_named_version(table: TableContents) -> bool:
    """Whether a sheet is named as one of several states of the same records: planned or actual, old or new."""
    return not _VERSION_NAMES.isdisjoint(_WORDS.findall(folded(table.table.source.place.sheet)))


def _are_set_apart(table: TableContents, other: TableContents) -> bool:
    """Whether the rows of two tables differ in a caption or a labelled value around them, which each row gets."""
    pairs = zip(table.table.source.surroundings, other.table.source.surroundings, strict=False)
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def _are_in_series(table: TableContents, other: TableContents) -> bool:
    """Whether the names of two sheets differ only in the time that they name, such as `Pay March` and `Pay April`.

    Sheets of one name have the names of their files."""
    place, other_place = table.table.source.place, other.table.source.place
    name, other_name = (
        (place.sheet, other_place.sheet) if place.sheet != other_place.sheet else (place.input, other_place.input)
    )
    first, second = _split_time_words(name), _split_time_words(other_name)
    return first.others == second.others and first.of_time != second.of_time and all(map(_names_time, (first, second)))


class _NameWords(NamedTuple):
    """The words of a sheet's name."""

    others: list[str]
    of_time: list[str]  # those that may name a time: `March`, `2026`


def _split_time_words(name: str) -> _NameWords:
    """Split the words of a name into those that do not name a time, and those that may."""
    words = _WORDS.findall(folded(name))
    of_time = [word for word in words if _is_time_word(word) or not word.isalpha()]
    return _NameWords([word for word in words if word not in of_time], of_time)


def _is_time_word(word: str) -> bool:
    """Whether a folded word is that of a month, a weekday or another period."""
    return word in MONTHS or word in WEEKDAYS or word in _PERIOD_WORDS


def _names_time(words: _NameWords) -> bool:
    """Whether the words of a name that may mean a time do: it has no others, or one of them plainly names a time."""
    return not words.others or any(_is_time_word(word) or _YEAR.match(word) for word in words.of_time)


def _name_places(tables: Collection[SourceTable]) -> str:
    """List the places of a few tables, for a message."""
    shown = [f"{t.place.sheet}!{t.table.range.a1}" for t in tables][:_MOST_NAMED]
    return ", ".join(shown) + (" and others" if len(tables) > _MOST_NAMED else "") if shown else "none"
