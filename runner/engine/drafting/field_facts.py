"""A field of the draft: the columns that hold it over all samples, and what its headers and values are about."""

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final

from runner.engine.common.spelling import normalized
from runner.engine.drafting.sample_columns import ColumnFacts, TypeFit
from runner.engine.mapping.knowledge import concept, concepts_of, understood

PLAIN: Final = 0.85  # how plainly a header says what it means
_LIKELY_SCORE: Final = 0.5
_LEAST_SHARE_OF_NAMES: Final = 0.25  # share of values that are common names of people
_PEOPLE_CLASSES: Final = frozenset(
    {"person", "first_name", "last_name", "email", "phone", "street", "address", "house_number"}
)
_HARMLESS_CLASSES: Final = frozenset(
    {"category", "country", "small_number", "boolean", "status"}
)  # classes in the domain people
_PRIVATE_CONCEPTS: Final = frozenset({"iban", "card_number", "account_number", "tax_id", "license_plate", "vin", "bic"})
# Last words of headers whose values are people, by whatever name.
_PEOPLE_WORDS: Final = frozenset(
    {"by", "von", "par", "por", "agent", "approver", "bearbeiter", "beneficiary", "buyer", "caseworker", "child",
     "clerk", "counselor", "counsellor", "donor", "guardian", "handle", "initials", "nurse", "parent", "payee",
     "reviewer", "sachbearbeiter", "signatory", "witness", "worker"}
)  # fmt: skip
_ID_WORDS: Final = frozenset({"id", "number", "code", "key", "reference", "identifier", "uuid", "guid", "sku", "no"})


class FieldFacts:
    """Everything known about one field of the draft.

    Columns are added while samples are joined. Cached properties are of all of them, so they are read only after that.
    """

    def __init__(self, name: str, columns: Iterable[ColumnFacts] = (), declared: dict[str, Any] | None = None) -> None:
        """Begin with the columns known so far; `declared`: the field as a target or a contract has it."""
        self.name = name
        self.columns = list(columns)
        self.declared = declared or {}

    @property
    def headers(self) -> list[str]:
        """List the headers seen, the most frequent first."""
        return [header for header, _ in Counter(column.header for column in self.columns).most_common()]

    @property
    def _names(self) -> set[str]:
        """Return the name and the headers that mean something; empty if the field is only called by its column's
        letters."""
        headers = {column.header for column in self.columns if column.has_header}
        return {self.name, *headers} if headers or self.declared else set()

    @property
    def label(self) -> str:
        """Return what people call the field: the declared label, the most frequent header, or its name."""
        headers = [header for header in self.headers if header in self._names]
        return self.declared.get("label") or (headers[0] if headers else self.name)

    @property
    def files(self) -> set[int]:
        """Return the samples that have the field, by number."""
        return {column.file for column in self.columns}

    @property
    def rows(self) -> int:
        """Count the rows of the samples that have the field."""
        return sum(column.rows for column in self.columns)

    @property
    def values(self) -> int:
        """Count the cells with a value that says something."""
        return sum(column.values for column in self.columns)

    @property
    def nothings(self) -> int:
        """Count the cells that say that there is no value, such as n/a."""
        return sum(column.nothings.total() for column in self.columns)

    @cached_property
    def counts(self) -> Counter[str]:
        """Count the values as texts, over all samples."""
        total: Counter[str] = Counter()
        for column in self.columns:
            total.update(column.counts)
        return total

    @property
    def overflow(self) -> bool:
        """Whether `counts` lacks values because there were too many."""
        return any(column.overflow for column in self.columns)

    def any_of(self, name: str) -> bool:
        """Whether an attribute of ColumnFacts is true, or not empty, for one of the columns."""
        return any(bool(vars(column)[name]) for column in self.columns)

    def kinds(self) -> Counter[str]:
        """Count the values of each kind, over all columns."""
        total: Counter[str] = Counter()
        for column in self.columns:
            total.update(column.kinds)
        return total

    def bad(self, kind: str) -> int:
        """Count the values that are not of a type; all of a column for which the type was not tried."""
        fits = ((column, column.fits.get(kind)) for column in self.columns)
        return sum(column.values if fit is None else fit.bad for column, fit in fits)

    def fit(self, kind: str) -> list[TypeFit]:
        """Return how well a type fits, for each column for which it was tried."""
        return [fit for column in self.columns if (fit := column.fits.get(kind)) is not None]

    @cached_property
    def meanings(self) -> dict[str, float]:
        """Map the concepts that headers mean to how plainly one of them does, from 0 to 1."""
        scores: dict[str, float] = {}
        for header in self._names:
            for name, score in concepts_of(header):
                concept_name = name.partition(":")[0]
                scores[concept_name] = max(score, scores.get(concept_name, 0.0))
        return scores

    def is_about(self, *classes: str, least: float = PLAIN) -> bool:
        """Whether a header plainly means something whose values are of one of these classes."""
        return any(
            score >= least and not set(concept(name).values.split()).isdisjoint(classes)
            for name, score in self.meanings.items()
        )

    def hints_at(self, *classes: str) -> bool:
        """Whether a header means something whose values are of one of these classes: plainly, or at all if no header
        means anything plainly."""
        plain = max(self.meanings.values(), default=0.0) >= PLAIN
        return self.is_about(*classes, least=PLAIN if plain else 0.0)

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the words of the name and of all headers, in English where they are understood."""
        return frozenset(word for header in self._names for word in understood(header).words)

    @property
    def is_identifier(self) -> bool:
        """Whether a header says that the values name things: numbers of documents, codes, keys."""
        if self.is_about("identifier", "uuid", "row_number"):
            return True
        return max(self.meanings.values(), default=0.0) < PLAIN and not self.words.isdisjoint(_ID_WORDS)

    @property
    def is_understood(self) -> bool:
        """Whether a header plainly says what the values are, or that they name things."""
        return max(self.meanings.values(), default=0.0) >= PLAIN or self.is_identifier

    @cached_property
    def is_personal(self) -> bool:
        """Whether the values may be about people: none of them may become a part of the manifest."""
        for name, score in self.meanings.items():
            if score < _LIKELY_SCORE:
                continue
            about = concept(name)
            classes = set(about.values.split())
            if name in _PRIVATE_CONCEPTS or not classes.isdisjoint(_PEOPLE_CLASSES):
                return True
            if about.domain in ("people", "medical", "insurance") and classes.isdisjoint(_HARMLESS_CLASSES):
                return True
        if not _PEOPLE_WORDS.isdisjoint(normalized(header).rpartition(" ")[2] for header in self._names):
            return True
        return any(self._names_people(column) for column in self.columns)

    def _names_people(self, column: ColumnFacts) -> bool:
        """Whether the values themselves look like names of people or ways to reach them."""
        shares = column.sample.shares()
        people = (shares.get(f"vocabulary_{name}", 0.0) for name in ("first", "last"))
        return (
            shares.get("email", 0.0) > 0
            or shares.get("vocabulary_street", 0.0) >= _LEAST_SHARE_OF_NAMES
            or max(people) >= _LEAST_SHARE_OF_NAMES
        )
