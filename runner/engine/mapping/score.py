"""Scores each pair of column and field from header, values and rules, then chooses.

A header that is the field's name, label or synonym goes before everything else; then headers of the same words; then
the sum of what header, values and rules say. A column whose field went to a better one gets its next choice only for
reasons that did not speak for the first one as well.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from runner.engine.fields import Field
from runner.engine.mapping.assign import Rank, assign
from runner.engine.mapping.headers import FUZZY, SAME_WORDS, bare_words, joined, likeness, overlap, telling, words
from runner.engine.values.convert import Converter, fold, text_of

# How far values that fit a type speak for the field, and values that do not speak against it.
FOR: Final = {
    "email": 0.5,
    "url": 0.5,
    "phone": 0.3,
    "date": 0.25,
    "datetime": 0.25,
    "time": 0.3,
    "boolean": 0.2,
}
FOR_NUMBER: Final = 0.1
AGAINST: Final = -0.3
GOOD: Final = 0.8
POOR: Final = 0.3
FEWEST: Final = 3
_PROBES: Final = ("x", "Abc def", "17", "2026-01-31", "a.b@c.de", "M-1")


class Sample:
    """The first values of a column, and what each type makes of them, worked out once."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = [v for v in values if v is not None]
        self.texts = [t for t in map(text_of, self.values) if t.strip()]
        self._fits: dict[Any, float | None] = {}

    def fit(self, field: Field) -> float | None:
        """The share of values that are of the field's type; None where there is nothing to tell."""
        key = (field.type, field.formats, field.decimal, field.day_first, field.clean)
        if key not in self._fits:
            self._fits[key] = self._fit(field)
        return self._fits[key]

    def _fit(self, field: Field) -> float | None:
        if not self.values:
            return None
        out, bad = Converter(field, self.values).convert(self.values)
        present = sum(v is not None for v in out)
        return (present - len(bad)) / present if present else None


def type_delta(sample: Sample, field: Field) -> float:
    if field.type in ("text", "enum", "any") or len(sample.values) < FEWEST:
        return 0.0
    fit = sample.fit(field)
    if fit is None:
        return 0.0
    if fit >= GOOD:
        return round(FOR.get(field.type, FOR_NUMBER) * fit, 4)
    return AGAINST if fit < POOR else 0.0


def pattern_delta(sample: Sample, field: Field) -> float:
    """A pattern that fits speaks for a field as far as it does not fit just anything."""
    if field.pattern is None or len(sample.texts) < FEWEST:
        return 0.0
    converter = Converter(field)
    texts = [text_of(v) for v in converter.convert(list(sample.texts))[0] if v is not None]
    fit = sum(field.pattern.fullmatch(t) is not None for t in texts) / max(1, len(texts))
    if fit >= GOOD:
        loose = sum(field.pattern.fullmatch(p) is not None for p in _PROBES)
        return round(0.5 * fit * max(0.0, 1 - loose / 3), 4)
    return AGAINST if fit < POOR / 2 else 0.0


def allowed_delta(sample: Sample, allowed: frozenset[Any] | None) -> float:
    """Values that are all among the allowed ones speak for an enum; few different ones speak softly."""
    if not allowed or len(sample.texts) < FEWEST:
        return 0.0
    folded = [fold(t) for t in sample.texts]
    fit = sum(f in allowed for f in folded) / len(folded)
    if fit >= GOOD:
        return round((0.5 if len(set(folded)) > 2 else 0.3) * fit, 4)
    return AGAINST if fit < POOR / 2 else 0.0


LEAST_LIKENESS: Final = 0.2
RUNNERS_UP: Final = 3
PART: Final = 0.95  # the last part of a stacked header says a little less than the whole
TIE: Final = 0.02
MOST_COMPARISONS: Final = 200_000
RULE_SAYS_SO: Final = 1.0  # a Python rule that gives a point says as much as the field's own name
_KINDS: Final = ("name", "label", "synonym")
_PARTS: Final = 4  # ranks of last parts come after those of whole headers
_DOUBTED: Final = 10  # and those of blank or contradicting columns after both
_SAME: Final = 20
_REST: Final = 21


class Contribution(NamedTuple):
    rule: str
    delta: float


class ColumnIn(NamedTuple):
    """A column of a source table as mapping sees it."""

    position: int  # 0-based within the table
    headers: tuple[str, ...]  # the whole name, then its last part where headers are stacked; none if generated
    sample: Sample
    letters: str = ""


class Doubt(NamedTuple):
    """A choice that could have been another one: a finding's code and words, and what spoke for each reading."""

    code: str
    message: str
    field: str
    evidence: Mapping[str, int]
    settle: str


class MappingChoice(NamedTuple):
    """What was decided for one column."""

    position: int
    field: str | None
    score: float
    contributors: tuple[Contribution, ...]
    runners_up: tuple[tuple[str, float], ...]
    note: str | None
    doubt: Doubt | None = None


class Evidence(NamedTuple):
    """What speaks for one pair of column and field."""

    parts: tuple[Contribution, ...]
    exact: int | None  # rank of a header that is one of the field's names; None for any other header
    header: float
    name: str  # of the field's names the one most like the header
    values: float
    rules: float
    contradicted: bool  # the values are plainly not of the field's type

    @property
    def total(self) -> float:
        return round(self.header + self.values + self.rules, 4)


Detected = Mapping[int, Mapping[str, Sequence[Contribution]]]  # column index -> field -> what rules said
Allowed = Callable[[Field], frozenset[Any] | None]
Table = dict[tuple[int, int], Evidence]


def choose(
    columns: Sequence[ColumnIn],
    fields: Sequence[Field],
    *,
    threshold: float,
    detected: Detected,
    allowed: Allowed,
) -> list[MappingChoice]:
    """Decide every column's field."""
    return _Chooser(columns, fields, threshold, _table(columns, fields, detected, allowed)).choices()


class _Chooser:
    """One table's columns against the fields."""

    def __init__(self, columns: Sequence[ColumnIn], fields: Sequence[Field], threshold: float, table: Table) -> None:
        self._columns = {c.position: c for c in columns}
        self._fields = fields
        self._threshold = threshold
        self._table = table
        self._given = {n for n, f in enumerate(fields) if f.constant is not None}  # every row has its value already
        self._torn: dict[int, tuple[int, ...]] = {}  # columns that fit several fields equally well
        self._of_column: dict[int, list[int]] = {}
        self._of_field: dict[int, list[int]] = {}
        for column, field in table:
            self._of_column.setdefault(column, []).append(field)
            self._of_field.setdefault(field, []).append(column)
        ranks = {pair: rank for pair in table if pair[1] not in self._given and (rank := self._rank(*pair))}
        self._ranks = ranks
        self._chosen = assign(ranks, self._stands)
        self._owner = {f: c for c, f in self._chosen.items()}

    def choices(self) -> list[MappingChoice]:
        return [self._choice(column) for column in self._columns.values()]

    def _rank(self, column: int, field: int) -> Rank | None:
        """None where the evidence is not enough."""
        one = self._table[column, field]
        if one.rules >= RULE_SAYS_SO and one.total >= self._threshold:
            return Rank((0,), one.total)
        if one.exact is not None:
            if one.header + one.rules < max(self._threshold, TIE):
                return None
            doubted = one.contradicted or not self._columns[column].sample.texts
            return Rank((one.exact + (_DOUBTED if doubted else 0),), one.total)
        if one.total < self._threshold or one.total <= 0:
            return None
        return Rank((_SAME,), one.total) if one.header >= SAME_WORDS * PART else Rank((_REST, -one.total), one.total)

    def _stands(self, column: int, field: int, chosen: Mapping[int, int]) -> bool:
        """Whether a likely pair is still good evidence now that better ones are settled."""
        if self._ranks[column, field].group[0] < _REST:
            return True
        if column in self._torn:
            return False
        taken = set(chosen.values()) | self._given
        here = self._table[column, field].total
        better = [g for g in self._of_column[column] if g != field and self._table[column, g].total >= here - TIE]
        if any(g in taken and not self._speaks_alone(column, field, g) for g in better):
            return False
        rivals = tuple(g for g in better if g not in taken and (column, g) in self._ranks) + tuple(
            self._also_named(column, field, taken)
        )
        if rivals:
            self._torn[column] = (field, *rivals)
        return not rivals

    def _speaks_alone(self, column: int, field: int, taken: int) -> bool:
        """Whether something speaks for the field that does not speak for the taken one as well."""
        one, other = self._table[column, field], self._table[column, taken]
        shared = words(other.name) if other.name else frozenset()
        own = 0.0
        for header in self._columns[column].headers if one.name else ():
            own = max(own, FUZZY * overlap(bare_words(header) - shared, words(one.name) - shared))
        return own + max(0.0, one.values - other.values) + one.rules >= self._threshold / 2

    def _also_named(self, column: int, field: int, taken: set[int]) -> Iterator[int]:
        """Fields without a column that the header names too: `Street number` where both are fields."""
        for header in self._columns[column].headers[:1]:
            ours = bare_words(header)
            mine = words(self._fields[field].name)
            if not mine < ours:
                continue
            for n in self._of_column[column]:
                theirs = words(self._fields[n].name)
                if n != field and n not in taken and theirs and theirs < ours and theirs.isdisjoint(mine):
                    yield n

    def _choice(self, column: ColumnIn) -> MappingChoice:
        at, mine = column.position, self._chosen.get(column.position)
        ranked = sorted((-self._table[at, n].total, n) for n in self._of_column.get(at, ()))
        others = tuple((self._fields[n].name, -s) for s, n in ranked if n != mine and s < 0)[:RUNNERS_UP]
        if mine is None:
            best = (ranked[0][1], -ranked[0][0]) if ranked and ranked[0][0] < 0 else None
            note, doubt = self._why_not(column, best)
            return MappingChoice(at, None, best[1] if best else 0.0, (), others, note, doubt)
        one = self._table[at, mine]
        name = self._fields[mine].name
        note, doubt = None, None
        rivals = self._rivals(at, mine)
        if rivals:
            note = f"tie: {len(rivals)} other column(s) score the same; the one further left was taken"
        elif ranked and ranked[0][1] != mine and ranked[0][1] in {*self._owner, *self._given}:
            note = f"first choice {self._fields[ranked[0][1]].name} went to another column"
        if one.contradicted and one.exact is not None:
            doubt = self._contradiction(column, mine)
        elif rivals and one.exact is None:
            letters = [self._columns[c].letters for c in (at, *rivals)]
            doubt = Doubt(
                "mapping_doubtful",
                f"columns {', '.join(letters)} fit the field {name} equally well; the first one was taken",
                name,
                {self._columns[c].letters: len(self._columns[c].sample.values) for c in (at, *rivals)},
                f'{{"name": "{name}", "synonyms": [the header of the right column]}}',
            )
        else:
            doubt = self._guess(column, mine)
        return MappingChoice(at, name, one.total, one.parts, others, note, doubt)

    def _guess(self, column: ColumnIn, field: int) -> Doubt | None:
        """Whether a column has a field for reasons that fall short of its name: other words, or only its values."""
        one, name = self._table[column.position, field], self._fields[field].name
        if one.exact is not None or one.header >= SAME_WORDS * PART or one.rules > 0:
            return None
        settle = f'{{"name": "{name}", "synonyms": [the header of this column]}}'
        if not one.header:
            told = f"the column was taken for the field {name} because of its values; its header is not like it"
            return Doubt("mapping_doubtful", told, name, {"values": len(column.sample.values), "header": 0}, settle)
        other = min(telling(bare_words(header), words(one.name)) for header in column.headers)
        if not other:
            return None
        told = (
            f"the column was taken for the field {name}, but its header has words that the field has not, or lacks some"
        )
        return Doubt(
            "mapping_doubtful",
            told,
            name,
            {"likeness in percent": round(100 * one.header), "other words": other},
            settle,
        )

    def _rivals(self, column: int, field: int) -> list[int]:
        """Columns without a field of their own that fit this one as well."""
        rank = self._ranks[column, field]
        return [
            c
            for c in self._of_field[field]
            if c != column
            and c not in self._chosen
            and (other := self._ranks.get((c, field))) is not None
            and other.group[0] == rank.group[0]
            and abs(other.weight - rank.weight) <= TIE
        ]

    def _contradiction(self, column: ColumnIn, field: int) -> Doubt:
        mine = self._fields[field]
        count = len(column.sample.values)
        fits = round((column.sample.fit(mine) or 0.0) * count)
        return Doubt(
            "mapping_doubtful",
            f"the header is the field {mine.name}, but most of its values are not of type {mine.type}",
            mine.name,
            {"header": 1, f"values of type {mine.type}": fits, "other values": count - fits},
            f'{{"name": "{mine.name}", "type": "text"}}, or a synonym for the right column',
        )

    def _why_not(self, column: ColumnIn, best: tuple[int, float] | None) -> tuple[str | None, Doubt | None]:
        at = column.position
        if at in self._torn:
            names = [self._fields[n].name for n in self._torn[at]]
            told = f"fits {' and '.join(names)} equally well; it was given to neither"
            evidence = {name: len(column.sample.values) for name in names}
            settle = f'{{"name": "{names[0]}", "synonyms": [the header of this column]}}'
            return told, Doubt("mapping_doubtful", f"the column {told}", names[0], evidence, settle)
        for n in self._of_column.get(at, ()):
            if self._table[at, n].exact is not None and (n in self._given or (at, n) in self._ranks):
                return self._named_in_vain(column, n)
        if best is None:
            return "no field is like it", None
        n, score = best
        name = self._fields[n].name
        if score >= self._threshold and (n in self._owner or n in self._given):
            return f"{name} went to a column that fits better", None
        return f"best is {name} with {score:.2f}, below the threshold {self._threshold:.2f}", None

    def _named_in_vain(self, column: ColumnIn, field: int) -> tuple[str, Doubt]:
        """Why a column does not get the field that its header names."""
        name, count = self._fields[field].name, len(column.sample.values)
        if field in self._given:
            told = f"the header is the field {name}, which has a constant; the column was not used for it"
            return told, Doubt("constant_field", told, name, {"constant": 1, "column": count}, "")
        owner = self._columns[self._owner[field]]
        told = f"the header names the field {name}, which column {owner.letters} was taken for; this column is unmapped"
        evidence = {owner.letters: len(owner.sample.values), column.letters: count}
        settle = f'a hook after_mapping that returns {{"mapping": {{"{column.letters}": "{name}"}}}}'
        return told, Doubt("duplicate_header", told, name, evidence, settle)


def _table(columns: Sequence[ColumnIn], fields: Sequence[Field], detected: Detected, allowed: Allowed) -> Table:
    table: Table = {}
    wide = len(columns) * sum(len(f.names) for f in fields) > MOST_COMPARISONS
    allowed_by_field = [allowed(f) for f in fields]
    exact, stems = _index(fields), _stems(fields)
    for column in columns:
        said = detected.get(column.position, {})
        named = _named(column.headers, exact, fields)
        for n, field in enumerate(fields):
            rank, header, name, word = named.get(n) or (None, *_likeness(() if wide else column.headers, field, stems))
            parts = [Contribution(word, header)] if header else []
            kind = type_delta(column.sample, field)
            values = [
                (f"type:{field.type}", kind),
                ("pattern", pattern_delta(column.sample, field)),
                ("allowed", allowed_delta(column.sample, allowed_by_field[n])),
            ]
            parts += [Contribution(rule, delta) for rule, delta in values if delta]
            rules = list(said.get(field.name, ()))
            if parts or rules:
                table[column.position, n] = Evidence(
                    (*parts, *rules), rank, header, name, round(sum(d for _, d in values), 4),
                    round(sum(c.delta for c in rules), 4), kind == AGAINST,
                )  # fmt: skip
    return table


def _index(fields: Sequence[Field]) -> dict[str, list[tuple[int, int, str]]]:
    """Every name of every field -> field, rank and the name itself."""
    index: dict[str, list[tuple[int, int, str]]] = {}
    for n, field in enumerate(fields):
        for name, kind in field.names:
            if key := joined(name):
                index.setdefault(key, []).append((n, 1 + _KINDS.index(kind), name))
    return index


def _named(
    headers: tuple[str, ...], index: Mapping[str, list[tuple[int, int, str]]], fields: Sequence[Field]
) -> dict[int, tuple[int, float, str, str]]:
    """Fields whose name, label or synonym a header is: rank, score, that name and the rule's word."""
    found: dict[int, tuple[int, float, str, str]] = {}
    for part, header in enumerate(headers):
        for n, rank, name in index.get(joined(header), ()):
            word = f"header:{_KINDS[rank - 1]}"
            same = rank == 1 and header.strip().casefold() == fields[n].name.casefold()
            mine = (rank - same + _PARTS * part, round(PART if part else 1.0, 4), name, word)
            if n not in found or mine[0] < found[n][0]:
                found[n] = mine
    return found


def _stems(fields: Sequence[Field]) -> Mapping[str, int]:
    """How many fields have a word in one of their names."""
    return Counter(w for f in fields for w in frozenset[str]().union(*(words(name) for name, _ in f.names)))


def _likeness(headers: tuple[str, ...], field: Field, stems: Mapping[str, int]) -> tuple[float, str, str]:
    best, which, how = 0.0, "", ""
    for n, header in enumerate(headers):
        for name, word in field.names:
            alike = round(likeness(header, name, stems) * (PART if n else 1.0), 4)
            if alike > best:
                best, which, how = alike, name, word
    if best < LEAST_LIKENESS:
        return 0.0, "", ""
    return best, which, f"header:{how}" if best >= SAME_WORDS else f"header:{how}~"
