"""What a tenant wrote costs what it weighs: it is measured before it is parsed, and twenty mistakes are enough."""

import contextlib
import json
import pickle

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core import budget
from core.budget import MAX_MISTAKES, Budget, parse, read, validate, weigh
from core.caches import BoundedCache
from core.decisions import Decision, DecisionInvalid, parse_decision
from core.errors import ManifestInvalid
from core.manifests import Manifest, parse_manifest
from core.memories import Memory, MemoryInvalid, parse_memory
from infra import parsing
from tests.support.effort import examples

ROOM = Budget(bytes=10_000_000, values=10_000_000)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(['"', '\\"[', "[{,", "\\"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


def values(raw):
    """How many values lists and objects hold, and how deep they go."""
    inside = list(raw.values()) if isinstance(raw, dict) else raw if isinstance(raw, list) else None
    if inside is None:
        return 0, 0
    below = [values(one) for one in inside]
    return len(inside) + sum(count for count, _ in below), 1 + max((depth for _, depth in below), default=0)


@given(JSON, st.sampled_from([None, 1]), st.booleans())
@settings(max_examples=examples(300), deadline=None)
def test_a_text_is_weighed_as_its_parser_would_find_it(raw, indent, ascii_only):
    found = weigh(json.dumps(raw, indent=indent, ensure_ascii=ascii_only).encode())
    held, depth = values(raw)
    assert found.depth == depth
    assert held <= found.values <= held + json.dumps(raw).count("[") + json.dumps(raw).count("{")


@given(st.binary(max_size=60) | st.text('"\\[]{},:a', max_size=60).map(str.encode))
@example(b'"\\')
@example(b'{"a": "\\"')
@settings(max_examples=examples(300), deadline=None)
def test_whatever_is_no_json_is_weighed_and_refused(body):
    weigh(body)
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        assert isinstance(parse(body, ROOM), list)


@pytest.mark.parametrize("body", [b'"' + b'\\"' * 200_000, b"[" * 400_000, b'"' * 400_001, b"\\" * 400_000])
def test_a_text_is_weighed_in_one_pass(body):
    """Each would take minutes if something in it were tried twice."""
    assert weigh(body).values <= len(body)


def everywhere(kind, item):
    """Documents of a kind, one for each place that holds any number of things, with very many bad ones there."""
    for name, spec in kind.model_fields.items():
        said = str(spec.annotation)
        if said.startswith("tuple[") and "..." in said:
            yield f"{kind.__name__}.{name}", {name: [item] * 3000}
        if said.startswith("dict["):
            yield f"{kind.__name__}.{name}", {name: {f"k{n}": item for n in range(3000)}}
    yield f"{kind.__name__}, keys that it does not know", {f"k{n}": item for n in range(3000)}


PLACES = [
    (kind, name, document)
    for kind in (Manifest, Memory, Decision)
    for item in ({}, [], "", None, {"name": [[]] * 30})
    for name, document in everywhere(kind, item)
]


@pytest.mark.parametrize(("kind", "name", "document"), PLACES, ids=[name for _, name, _ in PLACES])
def test_validation_ends_with_the_twentieth_mistake(kind, name, document, monkeypatch):
    """Counted: mistakes that pydantic makes an error of. A place that is not counted shows here."""
    counts = []
    real = budget.mistakes
    monkeypatch.setattr(
        budget, "mistakes", lambda e, k, **more: (counts.append(e.error_count()), real(e, k, **more))[1]
    )
    found = validate(kind, document, values=10_000)
    assert isinstance(found, list), name
    assert len(found) <= MAX_MISTAKES + 1
    assert max(counts) < 150, f"{name}: {max(counts)} mistakes were collected"


@pytest.mark.parametrize("size", [10, 30, 3000])
def test_few_and_many_mistakes_are_told_in_the_same_words(size):
    fields = [{"name": f"f{n}", "typ": "text"} for n in range(size)]
    with pytest.raises(ManifestInvalid) as refused:
        parse_manifest(json.dumps({"manifest": 1, "name": "m", "fields": fields[:2000]}).encode())
    first, *_, last = refused.value.problems
    assert (first.path, first.problem) == ("$.fields[0].typ", "is not a known key; did you mean type?")
    assert (last.problem == "has more problems") == (size > MAX_MISTAKES)
    assert len(refused.value.problems) == min(size, MAX_MISTAKES + 1)


def test_a_choice_that_does_not_fit_is_no_mistake():
    """Else things would be left out of a valid document, without a word."""
    fields = [{"name": f"f{n}", "allowed": [str(m) for m in range(50)]} for n in range(100)]
    found = parse_manifest(json.dumps({"manifest": 1, "name": "m", "fields": fields}).encode())
    assert [len(f.allowed) for f in found.fields] == [50] * 100


def test_a_large_valid_document_is_read_as_a_small_one(monkeypatch):
    body = json.dumps(
        {
            "manifest": 1, "name": "m", "params": {"a": 1}, "sweep": {"b": [1, True, 1.0, "1", None]},
            "fields": [{"name": f"f{n}", "synonyms": ["a", "b"], "allowed": ["1", 1, True, 1.0]} for n in range(50)],
            "rules": [{"name": "r", "then": {"field": "f1", "op": "in", "value": ["x"]}}],
            "schedule": {"start_time": "2026-01-01T00:00:00+02:00"},
        }
    ).encode()  # fmt: skip
    small = parse_manifest(body)
    monkeypatch.setattr(budget, "_FEW", 0)
    assert parse_manifest(body) == small
    assert repr(parse_manifest(body)) == repr(small)


@pytest.mark.parametrize(
    ("parsed", "invalid", "document"),
    [
        (
            parse_manifest,
            ManifestInvalid,
            {"manifest": 1, "name": "m", "fields": [{"name": "a", "synonyms": [""] * 9}]},
        ),
        (parse_memory, MemoryInvalid, {"memory": 1, "headers": [{}] * 9}),
        (parse_decision, DecisionInvalid, {"decision": 1, "by": "a", "answers": [{}] * 9}),
        (parse_manifest, ManifestInvalid, {"manifest": 1, "name": "m", "fields": [{"name": "a"}], "x" * 50_000: 1}),
    ],
)
def test_a_refusal_holds_on_to_nothing_of_the_text(parsed, invalid, document):
    with pytest.raises(invalid) as refused:
        parsed(json.dumps(document).encode())
    assert refused.value.__context__ is None
    assert refused.value.__cause__ is None
    told = "".join(p.path + p.problem + p.allowed for p in refused.value.problems)
    assert len(told) < 20_000


class TestParsing:
    def test_a_content_is_parsed_once_whether_it_is_valid_or_not(self, monkeypatch):
        calls = []
        monkeypatch.setattr(parsing, "_found", BoundedCache(1_000_000))
        monkeypatch.setattr(parsing, "parse_manifest", lambda body: (calls.append(body), parse_manifest(body))[1])
        for body in (b'{"manifest": 1, "name": "m", "fields": [{"name": "a"}]}', b"{}"):
            for _ in range(3):
                with contextlib.suppress(ManifestInvalid):
                    parsing.read_manifest(body)
        assert len(calls) == 2

    def test_what_is_kept_of_a_refusal_does_not_keep_the_text(self, monkeypatch):
        kept = BoundedCache(1_000_000)
        monkeypatch.setattr(parsing, "_found", kept)
        body = b'{"manifest": 1, "name": "' + b"x" * 9000 + b'"}'
        with pytest.raises(ManifestInvalid):
            parsing.read_manifest(body)
        assert len(pickle.dumps([value for value, _ in kept._values.values()])) < 3000

    def test_a_large_text_is_read_by_another_process_with_the_same_result(self, monkeypatch):
        fields = [{"name": "d", "type": "date", "min": "2026-01-01"}, {"name": "a", "allowed": ["x"] * 20_000}]
        document = {"manifest": 1, "name": "m", "fields": fields, "not_before": "2026-01-01T00:00:00+02:00"}
        body = json.dumps(document).encode()
        monkeypatch.setattr(parsing, "_manifest", parsing._manifest)
        monkeypatch.setattr(parsing, "parse_manifest", None)  # not in this process
        assert parsing.read_manifest(body) == parse_manifest(body)

    def test_a_large_bad_text_is_refused_in_the_same_words(self):
        body = json.dumps({"manifest": 1, "name": "m", "fields": [{"name": "a", "synonyms": [""] * 20_000}]}).encode()
        told = []
        for parsed in (parse_manifest, parsing.read_manifest):
            with pytest.raises(ManifestInvalid) as refused:
                parsed(body)
            told.append([p.as_dict() for p in refused.value.problems])
        assert told[0] == told[1]


def test_a_document_may_have_as_many_values_as_its_budget_says():
    def body(size):
        return json.dumps({"decision": 1, "by": "a", "answers": [{"id": "q", "value": None}] * size}).encode()

    assert isinstance(read(body(10), Decision, Budget(bytes=10_000, values=33)), Decision)
    assert isinstance(read(body(11), Decision, Budget(bytes=10_000, values=33)), list)
