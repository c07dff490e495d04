"""Patterns mean what they always did, and no pattern of anybody's takes long."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ManifestInvalid
from core.keys import matches
from core.manifests import parse_manifest
from core.patterns import MAX_STARS, Pattern, compiled


def by_simulation(path, pattern):
    found = Pattern(compiled(pattern).steps)
    found._regex = None
    return found.matches(path)


def by_meaning(path, pattern):
    """What a pattern means, in the words of its documentation: tried out, one character after the other."""
    if not pattern:
        return not path
    if pattern.startswith("**/"):
        head, slash, rest = path.partition("/")
        deeper = bool(slash and head) and by_meaning(rest, pattern)
        return by_meaning(path, pattern[3:]) or deeper
    if pattern.startswith("**"):
        return any(by_meaning(path[n:], pattern[2:]) for n in range(len(path) + 1))
    if pattern[0] == "*":
        most = len(path.partition("/")[0])
        return any(by_meaning(path[n:], pattern[1:]) for n in range(most + 1))
    if not path:
        return False
    taken = path[0] != "/" if pattern[0] == "?" else path[0] == pattern[0]
    return taken and by_meaning(path[1:], pattern[1:])


PATHS = st.text(alphabet="ab/.", max_size=10)
PATTERNS = st.lists(st.sampled_from(["*", "**", "**/", "?", "a", "b", "/", ".", "a*b"]), max_size=7).map("".join)


@given(PATHS, PATTERNS)
def test_every_way_of_matching_gives_what_the_pattern_means(path, pattern):
    assert by_simulation(path, pattern) == by_meaning(path, pattern)
    assert matches(path, f"./{pattern}" if pattern else pattern) == by_meaning(path, pattern)


@given(st.text(alphabet="aB-]x/", max_size=6), st.text(alphabet="a[]!-Bx*/^", max_size=8))
def test_brackets_mean_the_same_either_way(path, pattern):
    assert by_simulation(path, pattern) == matches(path, pattern)


@pytest.mark.parametrize(
    "pattern",
    ["*a" * 200 + "*b", "**a" * 150 + "**b", "**/*a" * 90 + "b", "*" * 400 + "b", "?*" * 200 + "b", "[a]*" * 120 + "b"],
)
@pytest.mark.parametrize("path", ["a" * 1000 + ".csv", "a/" * 500 + "x.csv"])
def test_no_pattern_is_tried_twice_at_one_place(pattern, path):
    """As many moves as the path has characters: the matcher has no other loop over them."""
    assert matches(path, pattern) in (True, False)


def test_a_pattern_with_many_stars_is_refused_in_words():
    stars = "*a" * (MAX_STARS + 1)
    body = f'{{"manifest": 1, "name": "m", "fields": [{{"name": "id"}}], "inputs": {{"primary": ["{stars}"]}}}}'
    with pytest.raises(ManifestInvalid, match=re.escape(f"has {MAX_STARS + 1} stars")):
        parse_manifest(body.encode())
