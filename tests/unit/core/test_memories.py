"""What a memory keeps, how contradictions end, and that two writers lose nothing."""

import json
from datetime import UTC, datetime, timedelta, timezone
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import memories
from core.errors import PreconditionFailed
from core.memories import (
    HeaderFact,
    Memory,
    MemoryInvalid,
    ReadingFact,
    ShapeFact,
    SpellingFact,
    answers_in,
    forget,
    learn,
    left_out,
    parse_memory,
    serialized,
)
from infra.local.folder import FolderStore
from infra.memories import change_memory, read_memory
from runner.engine.memory.learnt import LearntEntries
from runner.engine.memory.recall import Recall

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
KEY = "configs/acme/members.memory.json"
headers = st.sampled_from(["HOUSENO", "houseno", "Plz", "Straße", "a  b"])
fields = st.sampled_from(["number", "street", None])
facts = st.one_of(
    st.builds(
        HeaderFact,
        headers,
        fields,
        st.sampled_from(["", "ann", "bob"]),
        st.sampled_from(["", "june/", "july/"]),
        st.just(1),
    ),
    st.builds(
        SpellingFact,
        st.just("plan"),
        st.sampled_from(["gld", "GLD", "slv"]),
        st.sampled_from(["gold", "silver"]),
        times=st.just(1),
    ),
    st.builds(
        ShapeFact,
        st.sampled_from(["june/", "july/"]),
        st.just("Sheet1"),
        st.just((3,)),
        st.sampled_from([("a", "b"), ("A", "b "), ()]),
        fields=st.just(()),
        left_out=st.booleans(),
    ),
)


def counted(memory):
    return sum(e.count for e in (*memory.headers, *memory.values, *memory.shapes))


def learnt(*given):
    """One fact a day."""
    memory = Memory()
    for day, fact in enumerate(given):
        memory = learn(memory, [fact], at=NOW + timedelta(days=day))
    return memory


@given(st.lists(facts, max_size=12))
def test_what_is_written_is_read_again_byte_by_byte(given):
    memory = learnt(*given)
    assert parse_memory(serialized(memory)) == memory
    assert serialized(parse_memory(serialized(memory))) == serialized(memory)


def merged(one: Memory, other: Memory) -> Memory:
    """Two memories put together by hand, after the next lesson."""
    kinds = ("headers", "values", "shapes", "readings")
    return learn(Memory(**{kind: (*getattr(one, kind), *getattr(other, kind)) for kind in kinds}), [], at=NOW)


@given(st.lists(facts, max_size=8), st.lists(facts, max_size=8))
def test_merging_adds_counts_and_does_not_care_who_is_first(one, other):
    left, right = learnt(*one), learnt(*other)
    assert serialized(merged(left, right)) == serialized(merged(right, left))
    assert counted(merged(left, right)) == len(one) + len(other)


def test_spellings_of_a_header_in_upper_and_lower_case_are_one():
    (entry,) = learnt(HeaderFact("HOUSENO", "number"), HeaderFact("houseno ", "number")).headers
    assert entry.count == 2


def test_a_header_is_one_whichever_way_its_accents_are_written_and_a_cell_is_as_the_engine_compares_it():
    headers = [HeaderFact(normalize(form, "Größe é"), "size") for form in ("NFC", "NFD")]
    (header,) = learn(Memory(), headers, at=NOW).headers
    assert header.count == 2
    cells = [SpellingFact("plan", text, "gold") for text in ("Very good", " very good ", "very  good")]
    assert [e.count for e in learn(Memory(), cells, at=NOW).values] == [1, 2]


def test_the_newest_word_of_a_person_beats_any_count():
    crowd = HeaderFact("ADDRESS", "number", times=1000)
    memory = learnt(crowd, HeaderFact("ADDRESS", "street", by="ann"), crowd)
    assert memory.deciding_headers()["address"].field == "street"
    later = learnt(crowd, HeaderFact("ADDRESS", "street", by="ann"), HeaderFact("ADDRESS", None, by="bob"))
    assert later.deciding_headers()["address"].field is None


def test_without_a_person_the_greater_count_is_taken():
    memory = learnt(HeaderFact("ADDRESS", "number", times=3), HeaderFact("ADDRESS", "street", times=2))
    assert memory.deciding_headers()["address"].field == "number"


def test_what_is_forgotten_is_gone_and_counted():
    memory = learnt(
        HeaderFact("A", "x"), HeaderFact("B", "x"), HeaderFact("B", "y"), ShapeFact("june/", "S", (1,), ("A",))
    )
    assert forget(memory, header="b")[1] == 2
    assert forget(memory, field="x")[1] == 2
    assert forget(memory, sender="june/")[1] == 1
    assert forget(memory) == (memory, 0)


def test_a_full_memory_keeps_persons_words_and_what_was_said_often(monkeypatch):
    monkeypatch.setattr(memories, "MAX_HEADERS", 2)
    memory = learnt(HeaderFact("said", "x", by="ann"), HeaderFact("often", "x", times=9), HeaderFact("once", "x"))
    assert [e.header for e in memory.headers] == ["often", "said"]


def test_what_a_full_memory_has_no_room_for_is_counted(monkeypatch):
    monkeypatch.setattr(memories, "MAX_HEADERS", 2)
    known = learnt(HeaderFact("a", "x"), HeaderFact("b", "x", by="ann"))
    said = [
        HeaderFact("C", "x", by="ann"),
        HeaderFact("c ", "x"),
        HeaderFact("d", None),
        ReadingFact("s", "d", "comma"),
    ]
    assert left_out(known, said, learn(known, said, at=NOW)) == 2, "a and d"
    assert left_out(known, [], known) == 0


def test_wide_tables_do_not_push_out_what_people_said_about_headers(monkeypatch):
    monkeypatch.setattr(memories, "MAX_MEMORY_BYTES", 20_000)
    monkeypatch.setattr(memories, "MAX_SHAPE_BYTES", 5_000)
    memory = learn(Memory(), [HeaderFact(f"h{n}", "x", by="ann") for n in range(50)], at=NOW)
    for day in range(1, 20):
        wide = ShapeFact("north", "", (1,), tuple(f"{day} {'x' * 40} {n}" for n in range(20)), "ann")
        memory = learn(memory, [wide], at=NOW + timedelta(days=day))
    assert len(memory.headers) == 50
    assert [e.headers[0][:2] for e in memory.shapes] == ["16", "17", "18", "19"]
    parse_memory(serialized(memory))


def test_a_memory_that_has_too_many_bytes_loses_what_is_worth_least_and_goes_on_learning(monkeypatch):
    monkeypatch.setattr(memories, "MAX_MEMORY_BYTES", 3000)
    long = [HeaderFact(f"{n} {'ü' * 300}", "x") for n in range(20)]
    memory = learnt(HeaderFact("said", "x", by="ann"), HeaderFact("often", "x", times=9), *long)
    assert {"said", "often"} < {e.header for e in memory.headers}
    assert 2000 < len(serialized(memory)) <= 3000
    again = learn(memory, [HeaderFact("new", "x", by="bob")], at=NOW)
    assert {"said", "often", "new"} < {e.header for e in parse_memory(serialized(again)).headers}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{" * 1_000_000, "deep"),
        (b"[" * 1_000_000, "deep"),
        (b" " * (memories.MAX_MEMORY_BYTES + 1), "bytes"),
        (b"[]", "is []"),
        (b"\xff", "not UTF-8"),
        (b'{"memory": 2}', "$.memory"),
        (b'{"memory": 1, "head": []}', "$.head"),
        (b'{"memory": 1, "headers": {}}', "$.headers"),
        (
            b'{"memory": 1, "headers": [{"header": "a", "field": 7, "at": "2026-01-31T00:00:00Z"}]}',
            "$.headers[0].field",
        ),
        (
            b'{"memory": 1, "headers": [{"header": "a", "field": "x", "at": "2026-01-31T00:00:00Z", "count": NaN}]}',
            "NaN",
        ),
        (b'{"memory": 1, "headers": [{"header": "\\ud800", "field": "x", "at": "2026-01-31T00:00:00Z"}]}', "half"),
        (
            b'{"memory": 1, "headers": [{"header": "a", "field": "x", "at": 1700000000}]}',
            "$.headers[0].at: is 1700000000",
        ),
        (b'{"memory": 1, "headers": [' + b"1," * 999_999 + b"1]}", "list of 1000000"),
    ],
    ids=[
        "deep objects",
        "deep lists",
        "large",
        "list",
        "bytes",
        "version",
        "key",
        "type",
        "field",
        "nan",
        "half",
        "time",
        "million",
    ],
)
def test_a_hostile_memory_is_refused_with_words(body, said):
    with pytest.raises(MemoryInvalid, match=r".") as refused:
        parse_memory(body)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 5000


@pytest.mark.parametrize("later", ["2026-01-31T01:00:00Z", "2026-01-31T00:00:00-05:00", "2026-01-31T01:00:00"])
def test_the_engine_knows_the_newest_word_in_any_zone(later):
    earlier = {"header": "Calle", "field": "x", "said_at": "2026-01-31T02:00:00+05:00"}
    for entries in (
        [earlier, {**earlier, "field": "y", "said_at": later}],
        [{**earlier, "field": "y", "said_at": later}, earlier],
    ):
        found = Recall(entries).exact("CALLE")
        assert found is not None
        assert found.person_field == "y"


@st.composite
def said(draw):
    """An instant and one of the ways to write it."""
    at = NOW + timedelta(milliseconds=draw(st.integers(-3_000, 3_000)))
    zone = timezone(timedelta(minutes=draw(st.sampled_from([0, 60, -330, 840]))))
    text = at.astimezone(zone).isoformat(timespec=draw(st.sampled_from(["auto", "milliseconds", "microseconds"])))
    plain = text.removesuffix("+00:00")
    return at, draw(st.sampled_from([text] if plain == text else [text, plain, f"{plain}Z"]))


@given(st.lists(said(), min_size=1, max_size=5, unique_by=lambda one: one[0]), st.randoms(use_true_random=False))
def test_the_newest_word_of_a_person_counts_in_any_notation_and_any_order(given, rng):
    newest = max(range(len(given)), key=lambda n: given[n][0])
    bodies = [
        {
            "memory": 1,
            "headers": [
                {"header": "Calle", "field": f"f{n}", "at": text, "by": "ann", "said_at": text, "count": n + 1}
            ],
            "values": [{"field": "x", "value": "v", "means": f"m{n}", "at": text, "by": "ann", "said_at": text}],
            "readings": [
                {"sender": "s", "header": "Date", "reading": ("day_first", "month_first")[n % 2], "at": text}
                | {"by": "ann", "said_at": text}
            ],
        }
        for n, (_, text) in enumerate(given)
    ]
    rng.shuffle(bodies)
    raw = {kind: [entry for body in bodies for entry in body[kind]] for kind in ("headers", "values", "readings")}
    memory = Memory()
    for body in bodies:
        memory = merged(memory, parse_memory(json.dumps(body).encode()))
    for headers, values in (
        (raw["headers"], raw["values"]),
        ([e.model_dump(mode="json") for e in memory.headers], [e.model_dump(mode="json") for e in memory.values]),
    ):
        found = Recall(headers).exact("CALLE")
        assert found is not None
        assert found.person_field == f"f{newest}"
        means = LearntEntries(headers, values, []).spellings("x", [f"m{n}" for n in range(5)])
        assert means == {"v": f"m{newest}"}
    assert memory.deciding_headers()["calle"].field == f"f{newest}"
    assert [e.reading for e in memory.readings] == [("day_first", "month_first")[newest % 2]]


def test_a_persons_reading_is_not_beaten_by_a_newer_one_that_nobody_said():
    said = {"sender": "s", "header": "Date", "reading": "day_first", "at": "2026-01-01T00:00:00Z"}
    newer = {**said, "reading": "month_first", "at": "2026-02-01T00:00:00Z"}
    one, other = (
        parse_memory(json.dumps({"memory": 1, "readings": [e]}).encode())
        for e in ({**said, "by": "ann", "said_at": said["at"]}, newer)
    )
    assert [e.reading for e in merged(one, other).readings] == ["day_first"]
    assert serialized(merged(one, other)) == serialized(merged(other, one))


def test_two_people_who_contradict_each_other_within_a_second_are_kept_apart():
    first = learn(Memory(), [HeaderFact("a", "b", by="ann")], at=NOW + timedelta(milliseconds=100))
    both = learn(first, [HeaderFact("a", "x", by="bob")], at=NOW + timedelta(milliseconds=200))
    assert both.deciding_headers()["a"].by == "bob"


@pytest.mark.parametrize("at", ["2026-01-31T01:00:00z", "2026-1-31", "0001-01-01T00:00:00+14:00", 5, "soon"])
def test_a_time_that_only_one_side_could_read_is_refused_with_words(at):
    with pytest.raises(MemoryInvalid, match=r"\$\.headers\[0\]\.at: is "):
        parse_memory(json.dumps({"memory": 1, "headers": [{"header": "a", "field": "x", "at": at}]}).encode())


def test_entries_without_a_zone_or_with_one_stand_in_one_memory():
    body = {
        "memory": 1,
        "headers": [
            {"header": "a", "field": "x", "at": "2026-01-31T00:00:00", "by": "ann", "said_at": "2026-01-31T00:00:00"},
            {
                "header": "a",
                "field": "y",
                "at": "2026-01-31T00:00:00Z",
                "by": "bob",
                "said_at": "2026-02-01T00:00:00+02:00",
            },
        ],
    }
    memory = parse_memory(json.dumps(body).encode())
    assert memory.deciding_headers()["a"].field == "y"


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(facts, min_size=1, max_size=3), min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_writers_that_meet_lose_nothing(tmp_path_factory, writers, rng):
    store = FolderStore(tmp_path_factory.mktemp("bucket"))
    left = list(writers)

    class Crowded:
        """Between a writer's reading and its writing another one may write."""

        head, read = store.head, store.read

        def put(self, *args, **kwargs):
            if left and rng.random() < 0.7:
                mine = left.pop()
                change_memory(self, KEY, lambda m: learn(m, mine, at=NOW), pause=lambda _: None)
            return store.put(*args, **kwargs)

    while left:
        mine = left.pop()
        change_memory(Crowded(), KEY, lambda m, mine=mine: learn(m, mine, at=NOW), pause=lambda _: None)
    assert counted(read_memory(store, KEY).memory) == sum(map(len, writers))


def test_what_is_forgotten_while_another_learns_stays_forgotten_and_the_lesson_is_kept(tmp_path):
    store = FolderStore(tmp_path)
    change_memory(store, KEY, lambda m: learn(m, [HeaderFact("Old", "x", "bob"), HeaderFact("Kept", "x")], at=NOW))

    class Crowded:
        head, read = store.head, store.read

        def put(self, *args, **kwargs):
            change_memory(store, KEY, lambda m: forget(m, header="old")[0])
            return store.put(*args, **kwargs)

    change_memory(Crowded(), KEY, lambda m: learn(m, [HeaderFact("New", "x", "ann")], at=NOW), pause=lambda _: None)
    assert [e.header for e in read_memory(store, KEY).memory.headers] == ["Kept", "New"]


def test_a_change_that_changes_nothing_writes_nothing(tmp_path):
    store = FolderStore(tmp_path)
    change_memory(store, KEY, lambda m: m)
    assert store.head(KEY) is None


def test_a_writer_gives_up_with_words_when_others_never_stop(tmp_path):
    class Busy:
        head, read = FolderStore(tmp_path).head, FolderStore(tmp_path).read

        def put(self, *_, **__):
            raise PreconditionFailed("taken")

    with pytest.raises(Exception, match="try again"):
        change_memory(Busy(), KEY, lambda m: learn(m, [HeaderFact("a", "x")], at=NOW), pause=lambda _: None)


def test_what_a_box_reports_as_applied_and_is_no_answer_spoils_no_other():
    lies = [
        {"header": "x", "field": "no such field!"},
        {"header": "y", "field": 1},
        {"header": "z"},
        [],
        "answer",
        None,
    ]
    lies += [{"header": "d", "reading": "backwards"}, {"header": "x" * 501, "field": None}]
    facts = answers_in({"answers": [*lies, {"header": "ID No", "field": "id"}]}, sender="north", by="ann")
    assert facts == [HeaderFact("ID No", "id", "ann", "north")]
    assert answers_in({"answers": 7}, sender="north", by="ann") == answers_in(None, sender="north", by="ann") == []
