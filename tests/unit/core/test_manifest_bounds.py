"""What reading a manifest can cost is bounded: it is read in the process that serves everybody."""

import json
import re

import pytest

from core.errors import ManifestInvalid
from core.fields import problem_with
from core.manifests import MAX_FIELDS, MAX_VALUES, parse_manifest

COSTLY = "(?i)" + "[\u0100-\uffff]" * 50


def body(**more):
    return json.dumps({"manifest": 1, "name": "m", "fields": [{"name": "id"}]} | more).encode()


def fields(count, **more):
    return [{"name": f"f{n}", **more} for n in range(count)]


@pytest.fixture
def compiles(monkeypatch):
    """Every pattern that is compiled, which takes as long as it likes."""
    seen = []
    compile_ = re.compile
    monkeypatch.setattr(re, "compile", lambda pattern, *a, **k: (seen.append(pattern), compile_(pattern, *a, **k))[1])
    return seen


def problems(given):
    with pytest.raises(ManifestInvalid) as caught:
        parse_manifest(given)
    return {p.path: p.problem for p in caught.value.problems}


def test_a_costly_pattern_is_not_compiled_here(compiles):
    parse_manifest(body(fields=fields(40, pattern=COSTLY)))
    assert COSTLY not in compiles


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "[",
        "a{2,1}",
        "(?P<n>a)(?P<n>b)",
        "*",
        r"\\Q"[1:],
        "(?<=a*)b",
        "x(?:y(?<!a|bc)z)",
        "(?i:(?<=a+))",
        "a" + "(" * 5000,
    ],
)
def test_what_does_not_compile_is_still_refused(pattern):
    found = problems(body(fields=[{"name": "id", "pattern": pattern}]))
    assert found.keys() == {"$.fields[0].pattern"}


@pytest.mark.parametrize(
    "pattern", ["M[0-9]{6}", "(?<=ab)c", "(?i)x|y", "(a)(?(1)b|c)", "(?>a+)b", "", "é{2}", r"\d+(?!x)"]
)
def test_what_compiles_is_taken(pattern):
    re.compile(pattern)
    assert parse_manifest(body(fields=[{"name": "id", "pattern": pattern}])).fields[0].pattern == pattern


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_patterns_agree_with_the_compiler_on_many_patterns():
    """A pattern that is refused here does not compile, and the other way round."""
    parts = ["a", "(", ")", "[", "]", "*", "+", "?", "{2}", "|", "(?<=", "(?:", "(?!", "\\d", "\\"]
    for first in parts:
        for second in parts:
            for third in parts:
                pattern = first + second + third
                try:
                    re.compile(pattern)
                    good = True
                except re.error:
                    good = False
                assert (problem_with(pattern) is None) == good, pattern


def test_too_many_fields_are_refused_before_any_is_scanned():
    assert problems(body(fields=fields(MAX_FIELDS + 1, nonsense=1))) == {"$.fields": f"is a list of {MAX_FIELDS + 1}"}


def test_patterns_that_are_too_long_together_are_refused():
    assert problems(body(fields=fields(60, pattern="a" * 1000))).keys() == {"$.fields"}


def test_too_many_values_are_refused():
    assert "too many values" in problems(body(fields=[{"name": "id", "allowed": [0] * (MAX_VALUES + 1)}]))["$"]


def test_a_long_list_of_allowed_values_is_taken():
    assert len(parse_manifest(body(fields=[{"name": "id", "allowed": [str(n) for n in range(40_000)]}])).fields) == 1


def test_of_very_many_problems_the_first_are_named():
    found = problems(body(fields=fields(1000, nonsense=1)))
    assert found["$"] == "has more problems"


def test_a_key_that_stands_twice_among_very_many_is_named():
    keys = ",".join(f'"k{n}": 1' for n in range(50_000))
    assert "k49999" in problems(f'{{{keys}, "k49999": 2}}'.encode())["$"]


@pytest.mark.parametrize(
    ("value", "problem"), [("[" * 100_000 + "]" * 100_000, "nested too deeply"), ("9" * 5000, "thousands of digits")]
)
def test_a_value_that_python_cannot_read_is_described_in_the_words_of_its_reader(value, problem):
    whole = body(params={"x": "HERE"}).replace(b'"HERE"', value.encode())
    with pytest.raises(ManifestInvalid) as caught:
        parse_manifest(whole)
    assert problem in caught.value.problems[0].problem
