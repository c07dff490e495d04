"""What a workflow has learnt: confirmed headers, spellings of allowed values, and each sender's shapes and readings.

A memory is an object in the bucket, `configs/<tenant>/<workflow>.memory.json` (shared ones below `configs/_shared/`).
It holds labels and counts, never a cell's value, except spellings of an enumeration's values. The functions here are
pure; `infra/memories.py` writes them to a store so that two writers lose nothing.

Contradictions: where people have spoken about a header, the newest word wins over any count. Without such a word
every count is kept and the matcher weighs them against each other.
"""

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar
from unicodedata import normalize

from pydantic import Field, ValidationError, field_validator

from core.budget import Budget, mistakes, parse, read, validate
from core.errors import AdeError, Problem
from core.fields import FIELD_NAME, Strict
from core.keys import CONFIGS, check_key
from core.manifests import zoned
from core.wording import shown, wrong

MAX_MEMORY_BYTES: Final = 8 * 1024 * 1024
BUDGET: Final = Budget(bytes=MAX_MEMORY_BYTES, values=1_500_000)
MAX_HEADERS: Final = 20_000
MAX_SPELLINGS: Final = 20_000
MAX_SHAPES: Final = 2_000
MAX_SHAPE_BYTES: Final = 2 * 1024 * 1024  # of all shapes: wide tables do not push out what people said about headers
MAX_READINGS: Final = 5_000
MAX_SENDERS: Final = 16  # that one entry names
MAX_COUNT: Final = 1_000_000_000
_FRAME: Final = 200  # bytes of a memory beside its entries
_LONGEST: Final = 500
_MANY: Final = 100_000  # values that an entry of a profile may have
_ENDING: Final = ".memory.json"

Label = Annotated[str, Field(min_length=1, max_length=_LONGEST)]
Who = Annotated[str, Field(max_length=200)]
Sender = Annotated[str, Field(max_length=1024)]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT, strict=True)]
FieldName = Annotated[str, Field(pattern=FIELD_NAME)]
Reading = Literal["day_first", "month_first", "year_first", "point", "comma", "percent", "share"]
# What a reading is of: of each there is one per sender and header.
_READ: Final = {
    "day_first": "dates", "month_first": "dates", "year_first": "dates",
    "point": "numbers", "comma": "numbers", "percent": "unit", "share": "unit",
}  # fmt: skip
Entry = TypeVar("Entry", bound="Learnt")


class MemoryInvalid(AdeError):
    """A memory does not validate; `problems` says where and what is allowed."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p.path}: {p.problem}" for p in problems))


class Learnt(Strict):
    """What every entry has: how often it was said and when last; which person said it last, and when."""

    count: Count = 1
    at: datetime
    by: Who = ""  # empty: counted from files, no person's word
    said_at: datetime | None = None
    senders: Annotated[tuple[Sender, ...], Field(max_length=MAX_SENDERS)] = ()

    @property
    @abstractmethod
    def key(self) -> tuple[str, ...]:
        """What makes two entries one."""

    @field_validator("at", "said_at", mode="before")
    @classmethod
    def _written(cls, at: object) -> object:
        """Parsed as the engine parses it, so that both know the same instant; a number is no time."""
        try:
            moment = datetime.fromisoformat(at) if isinstance(at, str) and at[4:5] == "-" else at
            if moment is None or isinstance(moment, datetime):
                return None if moment is None else (zoned(moment) or moment).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        raise wrong(f"is {shown(at)}", "a time such as 2026-01-31T12:00:00Z")


class HeaderEntry(Learnt):
    """A header that means a field, or (`field: null`) none."""

    header: Label
    field: FieldName | None

    @property
    def key(self) -> tuple[str, ...]:
        return (folded(self.header), "" if self.field is None else self.field)


class SpellingEntry(Learnt):
    """A cell's text that means one of an enumeration's allowed values."""

    field: FieldName
    value: Label
    means: Label

    @property
    def key(self) -> tuple[str, ...]:
        return (self.field, self.value.strip().casefold(), self.means)  # as the engine compares cells


SheetCut = Literal["one", "columns", "rows", "both"]


class ShapeEntry(Learnt):
    """How a table of a sender looked when a person confirmed it; without headers: a sheet that a person left out, or of
    which a person said how it is cut into tables."""

    sender: Sender
    sheet: Annotated[str, Field(max_length=200)]  # empty: the only sheet of its file
    header_rows: Annotated[tuple[Annotated[int, Field(ge=1, le=1_048_576)], ...], Field(max_length=20)] = ()
    # One for each column; empty where the header row has none, and in all of them where there is no header row.
    headers: Annotated[tuple[Annotated[str, Field(max_length=_LONGEST)], ...], Field(max_length=2000)] = ()
    # Of a table without a header row: the letters of its file's name, and the fields of its columns.
    file: Annotated[str, Field(max_length=200)] = ""
    fields: Annotated[tuple[FieldName | None, ...], Field(max_length=2000)] = ()
    named: bool = False  # a person named its header rows, so everything below them is the table
    left_out: bool = False
    cut: SheetCut | None = None

    @property
    def key(self) -> tuple[str, ...]:
        return (self.sender, folded(self.sheet), self.file, *map(folded, self.headers))


class ReadingEntry(Learnt):
    """How a sender writes the dates or numbers under a header. Other senders may write them differently."""

    sender: Sender
    header: Label
    reading: Reading

    @property
    def key(self) -> tuple[str, ...]:
        return (self.sender, folded(self.header), _READ[self.reading])


Dated = TypeVar("Dated", ShapeEntry, ReadingEntry)
# What two headers that are one have in common.
Spelled = Callable[[str], str]


class Memory(Strict):
    """One memory. Entries are in the order of their keys, so that the same facts make the same bytes."""

    memory: Literal[1] = 1
    headers: Annotated[tuple[HeaderEntry, ...], Field(max_length=MAX_HEADERS)] = ()
    values: Annotated[tuple[SpellingEntry, ...], Field(max_length=MAX_SPELLINGS)] = ()
    shapes: Annotated[tuple[ShapeEntry, ...], Field(max_length=MAX_SHAPES)] = ()
    readings: Annotated[tuple[ReadingEntry, ...], Field(max_length=MAX_READINGS)] = ()

    def deciding_headers(self, spelled: "Spelled | None" = None) -> dict[str, HeaderEntry]:
        """Header (as `spelled`) -> the entry that counts: the newest person's word, else the most frequent one."""
        spelled = spelled or folded
        best: dict[str, HeaderEntry] = {}
        for entry in self.headers:
            other = best.get(spelled(entry.header))
            if other is None or _authority(entry) >= _authority(other):
                best[spelled(entry.header)] = entry
        return best


class HeaderFact(NamedTuple):
    """`header` is `field` (None: no field). Said by a person if `by` is not empty."""

    header: str
    field: str | None
    by: str = ""
    sender: str = ""
    times: int = 1

    @property
    def key(self) -> tuple[str, ...]:
        """The key of the entry that it makes, as in each fact."""
        return (folded(self.header), self.field or "")


class SpellingFact(NamedTuple):
    field: str
    value: str
    means: str
    by: str = ""
    sender: str = ""
    times: int = 1

    @property
    def key(self) -> tuple[str, ...]:
        return (self.field, self.value.strip().casefold(), self.means)


class ShapeFact(NamedTuple):
    sender: str
    sheet: str
    header_rows: tuple[int, ...]
    headers: tuple[str, ...]
    by: str = ""
    fields: tuple[str | None, ...] = ()
    named: bool = False
    left_out: bool = False
    file: str = ""
    cut: SheetCut | None = None

    @property
    def key(self) -> tuple[str, ...]:
        return (self.sender, folded(self.sheet), self.file, *map(folded, self.headers))


class ReadingFact(NamedTuple):
    sender: str
    header: str
    reading: str
    by: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        return (self.sender, folded(self.header), _READ[self.reading])


Fact = HeaderFact | SpellingFact | ShapeFact | ReadingFact


def shapes_in(profile: object, *, sender: str, by: str, decided: bool) -> list[ShapeFact]:
    """The tables that a drop's profile describes; with `decided` only those that its decision was about.

    A profile comes out of a box, so whatever is no shape is left out.
    """
    tables = profile.get("tables") if isinstance(profile, dict) else None
    found: list[ShapeFact] = []
    for table in tables if isinstance(tables, list) else ():
        if not isinstance(table, dict) or (decided and table.get("decided") is not True):
            continue
        values = {
            name: table[name]
            for name in ("sheet", "header_rows", "headers", "file", "fields", "named", "cut")
            if name in table
        }
        values |= {"left_out": table.get("left_out") is True, "sender": sender, "at": datetime.now(UTC), "by": by}
        entry = validate(ShapeEntry, values, values=_MANY)
        if isinstance(entry, list):
            continue
        if any(entry.headers) or not entry.header_rows:
            found.append(ShapeFact(**{name: getattr(entry, name) for name in ShapeFact._fields}))
    return found


def answers_in(profile: object, *, sender: str, by: str) -> list[HeaderFact | ReadingFact]:
    """What a decision said about columns, as the box applied it; whatever is none of it is left out.

    One fact for each header: of columns with one header a field goes before none, and two fields teach nothing.
    """
    answers = profile.get("answers") if isinstance(profile, dict) else None
    fields: dict[str, tuple[str, set[str]]] = {}
    readings: list[ReadingFact] = []
    now = datetime.now(UTC)
    for answer in answers if isinstance(answers, list) else ():
        try:
            if "reading" in answer:
                read = ReadingEntry(header=answer["header"], reading=answer["reading"], sender=sender, at=now)
                readings.append(ReadingFact(sender, read.header, read.reading, by))
            else:
                entry = HeaderEntry(header=answer["header"], field=answer["field"], at=now)
                known = fields.setdefault(folded(entry.header), (entry.header, set()))[1]
                known |= set() if entry.field is None else {entry.field}
        except (ValidationError, TypeError, KeyError):
            continue  # two plain texts: a mistake in each at most
    agreed = [(header, next(iter(names), None)) for header, names in fields.values() if len(names) < 2]
    return [*(HeaderFact(header, field, by, sender) for header, field in agreed), *readings]


def folded(text: str) -> str:
    """One spelling for upper and lower case, runs of blanks and the two ways to write an accent."""
    text = " ".join(text.split()).casefold()
    return text if text.isascii() else normalize("NFC", text)


def own_key(tenant: str, workflow: str) -> str:
    """Where a tenant's memory of a workflow is."""
    return check_key(f"{CONFIGS}{tenant}/{workflow}{_ENDING}")


def is_memory(key: str) -> bool:
    return key.startswith(CONFIGS) and key.endswith(_ENDING)


_LIMITS: Final = (
    ("headers", MAX_HEADERS),
    ("values", MAX_SPELLINGS),
    ("shapes", MAX_SHAPES),
    ("readings", MAX_READINGS),
)


def parse_memory(body: bytes) -> Memory:
    """Validate a memory's bytes; raise MemoryInvalid with one problem per mistake, the first ones."""
    found = read(body, Memory, BUDGET, check=_bounded, twins=True)
    if isinstance(found, list):
        raise MemoryInvalid(found)
    return _ordered(found)


def _bounded(raw: dict[str, object]) -> list[Problem]:
    for name, most in _LIMITS:
        if isinstance(listed := raw.get(name), list) and len(listed) > most:
            return [Problem(f"$.{name}", f"is a list of {len(listed)}", f"at most {most} items")]
    return []


class MemorySummary(NamedTuple):
    """What a page shows of a memory: how many entries of each kind there are, and the newest of them."""

    counts: dict[str, int]
    headers: list[HeaderEntry]
    values: list[SpellingEntry]
    shapes: list[ShapeEntry]
    readings: list[ReadingEntry]


def summary(body: bytes, most: int) -> MemorySummary | None:
    """The newest entries of a memory that may have been edited by hand: what is wrong in it is left out."""
    found = parse(body, BUDGET, twins=True)
    if isinstance(found, list):
        return None
    kinds: dict[str, type[Learnt]] = {
        "headers": HeaderEntry, "values": SpellingEntry, "shapes": ShapeEntry, "readings": ReadingEntry,
    }  # fmt: skip
    counts, newest = dict[str, int](), dict[str, list[Any]]()
    for name, kind in kinds.items():
        listed = found.raw.get(name)
        entries = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        entries.sort(key=lambda one: str(one.get("at") or ""), reverse=True)
        read = (validate(kind, one, values=found.values) for one in entries[:most])
        counts[name], newest[name] = len(entries), [one for one in read if isinstance(one, Learnt)]
    return MemorySummary(counts, **newest)


def serialized(memory: Memory) -> bytes:
    """A memory's bytes: one entry a line, always the same for the same facts."""
    lists = []
    for name in ("headers", "values", "shapes", *(["readings"] if memory.readings else [])):
        lines = ",\n".join(map(_line, getattr(memory, name)))
        lists.append(f'"{name}": [' + (f"\n{lines}\n" if lines else "") + "]")
    return ('{"memory": 1,\n' + ",\n".join(lists) + "}\n").encode()


def learn(memory: Memory, facts: Iterable[Fact], *, at: datetime) -> Memory:
    """The memory with facts added. Those least often said, longest ago, and by no person go first if it is full."""
    at = at.astimezone(UTC)
    headers, values = _by_key(memory.headers, _add), _by_key(memory.values, _add)
    shapes, readings = _by_key(memory.shapes, _newest), _by_key(memory.readings, _newest)
    for fact in facts:
        stamp: dict[str, object] = {"at": at, "by": fact.by, "said_at": at if fact.by else None}
        if isinstance(fact, ReadingFact):
            entry = _made(
                ReadingEntry, sender=fact.sender, header=" ".join(fact.header.split()), reading=fact.reading, **stamp
            )
            _newest(readings, entry)
            continue
        if isinstance(fact, ShapeFact):
            shape = fact._asdict() | {"headers": tuple(" ".join(header.split()) for header in fact.headers)}
            _newest(shapes, _made(ShapeEntry, **shape | stamp))
            continue
        stamp |= {"count": fact.times, "senders": (fact.sender,) if fact.sender else ()}
        if isinstance(fact, HeaderFact):
            _add(headers, _made(HeaderEntry, header=" ".join(fact.header.split()), field=fact.field, **stamp))
        else:
            _add(values, _made(SpellingEntry, field=fact.field, value=fact.value, means=fact.means, **stamp))
    return _ordered(_built(headers.values(), values.values(), shapes.values(), readings.values()))


def left_out(memory: Memory, facts: Iterable[Fact], learnt: Memory) -> int:
    """How many entries a memory, and facts that it was to learn, had no room for."""

    def keys(known: Memory) -> set[tuple[type[Fact], tuple[str, ...]]]:
        lists = ((HeaderFact, known.headers), (SpellingFact, known.values))
        more = ((ShapeFact, known.shapes), (ReadingFact, known.readings))
        return {(kind, entry.key) for kind, entries in (*lists, *more) for entry in entries}

    return len((keys(memory) | {(type(fact), fact.key) for fact in facts}) - keys(learnt))


def forget(
    memory: Memory,
    *,
    header: str | None = None,
    field: str | None = None,
    sender: str | None = None,
    spelled: Spelled = folded,
) -> tuple[Memory, int]:
    """The memory without the entries that fit every condition given, and how many went."""

    def goes(entry: Learnt) -> bool:
        own = getattr(entry, "sender", None)
        headers = entry.headers if isinstance(entry, ShapeEntry) else (getattr(entry, "header", ""),)
        return (
            (header is None or spelled(header) in map(spelled, headers))
            and (field is None or field in (getattr(entry, "field", None), *getattr(entry, "fields", ())))
            and (sender is None or own == sender or entry.senders == (sender,))
        )

    if header is None and field is None and sender is None:
        return memory, 0
    left = Memory(
        headers=tuple(e for e in memory.headers if not goes(e)),
        values=tuple(e for e in memory.values if not goes(e)),
        shapes=tuple(e for e in memory.shapes if not goes(e)),
        readings=tuple(e for e in memory.readings if not goes(e)),
    )
    return left, _size(memory) - _size(left)


def _size(memory: Memory) -> int:
    return len(memory.headers) + len(memory.values) + len(memory.shapes) + len(memory.readings)


def _made(kind: Callable[..., Entry], **values: Any) -> Entry:
    try:
        return kind(**values)
    except ValidationError as error:
        problems = mistakes(error, Memory)
    raise MemoryInvalid(problems)


def _by_key(
    entries: Iterable[Entry], add: Callable[[dict[tuple[str, ...], Entry], Entry], None]
) -> dict[tuple[str, ...], Entry]:
    """Entries by their keys. A memory written by hand may have two with one key."""
    known: dict[tuple[str, ...], Entry] = {}
    for entry in entries:
        add(known, entry)
    return known


def _add(known: dict[tuple[str, ...], Entry], entry: Entry) -> None:
    old = known.get(entry.key)
    if old is None:
        known[entry.key] = entry
        return
    newest = max((old, entry), key=lambda e: (e.said_at is not None, e.said_at or e.at, e.by))
    last = max((old, entry), key=lambda e: (e.at, serial(e)))
    senders = tuple(dict.fromkeys((*last.senders, *old.senders, *entry.senders)))[:MAX_SENDERS]
    known[entry.key] = last.model_copy(
        update={
            "count": min(MAX_COUNT, old.count + entry.count),
            "by": newest.by,
            "said_at": newest.said_at,
            "senders": tuple(sorted(senders)),
        }
    )


def _newest(known: dict[tuple[str, ...], Dated], entry: Dated) -> None:
    """Of what was said about one thing of a sender the newest counts: of a person's words, if there are any."""
    old = known.get(entry.key)
    if old is None:
        known[entry.key] = entry
        return
    newest = max((old, entry), key=lambda e: (e.said_at is not None, e.said_at or e.at, serial(e)))
    agree = getattr(old, "reading", None) == getattr(entry, "reading", None)
    count = old.count + entry.count if agree else newest.count
    known[entry.key] = newest.model_copy(update={"count": min(MAX_COUNT, count)})


def serial(entry: Learnt) -> str:
    """An entry's own words without its counts; breaks ties the same way everywhere."""
    return json.dumps(entry.model_dump(mode="json", exclude={"count", "senders"}), ensure_ascii=False, sort_keys=True)


def _built(
    headers: Iterable[HeaderEntry],
    values: Iterable[SpellingEntry],
    shapes: Iterable[ShapeEntry],
    readings: Iterable[ReadingEntry],
) -> Memory:
    """A memory of these entries, as far as they fit: at most so many of each kind, and so many bytes."""
    lists: dict[str, list[Learnt]] = {
        "headers": _fitting(list(headers), MAX_HEADERS),
        "values": _fitting(list(values), MAX_SPELLINGS),
        "shapes": _within(_fitting(list(shapes), MAX_SHAPES), MAX_SHAPE_BYTES),
        "readings": _fitting(list(readings), MAX_READINGS),
    }
    left = {id(e) for e in _within([e for entries in lists.values() for e in entries], MAX_MEMORY_BYTES - _FRAME)}
    lists = {name: [e for e in entries if id(e) in left] for name, entries in lists.items()}
    return Memory.model_validate({name: tuple(entries) for name, entries in lists.items()})


def _fitting(entries: Sequence[Learnt], most: int) -> list[Learnt]:
    return list(entries) if len(entries) <= most else sorted(entries, key=_weight, reverse=True)[:most]


def _within(entries: list[Learnt], most: int) -> list[Learnt]:
    """The entries without those that are worth least, as many as it takes to fit into so many bytes."""
    over = sum(map(_bytes, entries)) - most
    gone: set[int] = set()
    for entry in sorted(entries, key=_weight) if over > 0 else ():
        if over <= 0:
            break
        gone.add(id(entry))
        over -= _bytes(entry)
    return [entry for entry in entries if id(entry) not in gone]


def _bytes(entry: Learnt) -> int:
    """At most the bytes of an entry's line."""
    return len(_line(entry).encode()) + 2


def _line(entry: Learnt) -> str:
    return json.dumps(entry.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False, sort_keys=True)


def _weight(entry: Learnt) -> tuple[bool, datetime, int, datetime]:
    """A person's word goes before every count; then the newer word, then the greater count, then the newer one."""
    return (entry.said_at is not None, entry.said_at or datetime.min.replace(tzinfo=UTC), entry.count, entry.at)


def _authority(entry: HeaderEntry) -> tuple[bool, datetime, int]:
    """Which of a header's entries counts: the newest word of a person, whatever was counted; else the count."""
    confirmed_at, never = entry.said_at, datetime.min.replace(tzinfo=UTC)
    return (confirmed_at is not None, confirmed_at or never, entry.count if confirmed_at is None else 0)


def _ordered(memory: Memory) -> Memory:
    def in_order(entries: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(sorted(entries, key=lambda e: e.key))

    return Memory(
        headers=in_order(memory.headers),
        values=in_order(memory.values),
        shapes=in_order(memory.shapes),
        readings=in_order(memory.readings),
    )
