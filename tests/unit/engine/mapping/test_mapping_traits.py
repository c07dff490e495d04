"""What a column's values look like."""

import pytest

from runner.engine.mapping.knowledge import vocabulary
from runner.engine.mapping.matcher import model
from runner.engine.mapping.traits import TRAITS, VOCABULARIES, traits_of


def share(values, name):
    return dict(zip(TRAITS, traits_of(values), strict=True))[name]


@pytest.mark.parametrize("rows", [10, 79, 80, 200, 1000])
def test_numbers_that_go_up_by_one_do_so_however_many_there_are(rows):
    assert share([str(n) for n in range(7, 7 + rows)], "one_up") == 1.0
    assert share([str(3 * n) for n in range(rows)], "one_up") == 0.0


def test_numbers_that_go_up_by_what_is_left_out_do_not_go_up_by_one():
    assert share([str(n) for n in range(0, 400, 2)], "one_up") == 0.0


@pytest.mark.parametrize("text", ["Hauptstraße", "HAUPTSTRASSE", "Hauptstr.", "Am Alten Weg"])
def test_a_street_is_one_however_it_is_spelled(text):
    assert share([text], "vocabulary_street") == 1.0


@pytest.mark.parametrize("name", VOCABULARIES)
def test_every_word_of_a_vocabulary_can_be_found_in_a_casefolded_text(name):
    assert [word for word in vocabulary(name) if word != word.casefold()] == []


def test_blank_values_have_no_traits():
    assert traits_of(["", " ", None]) is None
    assert traits_of(["a", None, ""]) == traits_of(["a"])


def test_the_model_has_a_weight_for_each_trait():
    assert len(model().classes.by_trait) == len(TRAITS)
