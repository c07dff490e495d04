"""Confirmed headers: the index that the runner makes for boxes says what the memories' entries say."""

import hashlib
import json
import random

import pytest

from core.caches import BoundedCache
from core.memories import MemoryInvalid
from infra import parsing
from infra.parsing import check_memory
from runner import staging
from runner.engine.memory import confirmed
from runner.engine.memory.confirmed import ConfirmedHeaders, IndexedHeaders
from runner.engine.memory.recall import Recall
from runner.staging import SeenMemories

ODD = ["Ärger", "№ 5", "名前", "Straße", "дом", "a|b", "A\nB", "---", "-\n-", "🙂", "𠮷野", "ﬁx", "x", "", " ", "nana"]
WORDS = ["street", "Name", "city", "No", "PLZ", "date of", "Haus", "nr", "id", "дом"]


def entries(rng, size):
    """Headers that share words and letters, some of them said twice or by a person."""
    out = []
    for n in range(size):
        header = rng.choice(["_", " ", ""]).join(rng.sample(WORDS, rng.randint(1, 3))) + rng.choice(["", "1", "_x"])
        said = {"said_at": f"2026-01-{rng.randint(10, 28)}T00:00:00Z"} if rng.random() < 0.2 else {}
        field = rng.choice(["street", "city", "zip", None])
        out.append({"header": header, "field": field, "count": rng.randint(1, 3), **said})
        out += [{"header": ODD[n], "field": field}] if n < len(ODD) and ODD[n] else []
    return out


@pytest.mark.parametrize("seed", range(5))
def test_an_index_answers_as_the_entries_do(seed):
    rng = random.Random(seed)
    learnt = entries(rng, [0, 1, 20, 80, 200][seed])
    asked = [entry["header"] for entry in entries(rng, 30)] + ODD
    direct = Recall(learnt)
    index = ConfirmedHeaders(learnt).to_index()
    assert index is not None
    boxed = Recall(IndexedHeaders(index))
    assert len(direct) == len(boxed)
    assert direct.find_likely(asked) == boxed.find_likely(asked)
    assert [direct.exact(header) for header in asked] == [boxed.exact(header) for header in asked]


def test_pieces_that_share_a_hash_are_told_apart(monkeypatch):
    monkeypatch.setattr(confirmed, "crc32", lambda piece: len(piece) % 3)
    learnt = entries(random.Random(9), 40)
    asked = [entry["header"] for entry in learnt]
    assert Recall(IndexedHeaders(ConfirmedHeaders(learnt).to_index() or b"")).find_likely(asked) == Recall(
        learnt
    ).find_likely(asked)


def test_a_header_of_more_runs_than_a_byte_counts_finds_its_like():
    letters = "".join(chr(ord("a") + n // 26 % 26) + chr(ord("a") + n % 26) for n in range(400))
    (found,) = Recall([{"header": letters + "x", "field": "note"}]).find_likely([letters])
    assert found.nearest["note"].likeness > 0.99


def body(*headers, **more):
    at = "2026-01-31T00:00:00Z"
    told = [{"header": header, "field": "city", "at": at} for header in headers]
    return json.dumps({"memory": 1, "headers": told, **more}).encode()


@pytest.fixture
def made(monkeypatch):
    """The names of the costly functions, as they are called."""
    calls = []

    def watch(module, name):
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda given: (calls.append(name), real(given))[1])

    watch(parsing, "parse_memory")
    watch(staging, "indexed")
    monkeypatch.setattr(parsing, "_found", BoundedCache(10_000))
    return calls


def stage(seen, memory):
    check_memory(memory)
    assert seen.staged([memory], (hashlib.sha256(memory).hexdigest(),)).headers is not None


def test_memories_of_one_content_are_checked_and_indexed_once(made):
    seen = SeenMemories()
    for _ in range(3):
        stage(seen, body("Town"))
    assert made == ["parse_memory", "indexed"]


def test_what_was_used_longest_ago_is_forgotten_first(made, monkeypatch):
    monkeypatch.setattr(staging, "_CACHE_BYTES", 4_000)
    seen = SeenMemories()
    for n in range(50):
        stage(seen, body(f"Town {n}"))
    made.clear()
    stage(seen, body("Town 49"))
    assert made == []
    stage(seen, body("Town 0"))
    assert made == ["parse_memory", "indexed"]


def test_a_broken_memory_is_refused_each_time():
    for _ in range(2):
        with pytest.raises(MemoryInvalid):
            check_memory(b"{")


def test_the_headers_of_all_memories_make_one_index_and_the_rest_stays_apart():
    spelling = [{"field": "plan", "value": "gld", "means": "gold", "at": "2026-01-31T00:00:00Z"}]
    found = SeenMemories().staged([body("Town", values=spelling), body("Town", "Place")], ("a", "b"))
    assert found.headers is not None
    recall = Recall(IndexedHeaders(found.headers))
    town = recall.exact("TOWN")
    assert town is not None
    assert town.counts == {"city": 2}
    assert [json.loads(one) for one in found.bodies] == [{"memory": 1, "values": spelling}, {"memory": 1}]


def test_headers_that_are_too_long_for_an_index_stay_in_their_memory(monkeypatch):
    monkeypatch.setattr(confirmed, "_MOST_LETTERS", 3)
    found = SeenMemories().staged([body("Town")], ("a",))
    assert found == ((body("Town"),), None)
