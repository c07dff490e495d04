"""The trained weights of mapping, from `matcher.json` (tools/train_mapping.py), and the numbers that they weigh.

Everything that is known about a pair of column and field is a number with a name. Weighed and added, with `prior`, they
are the pair's log-odds against "no field".
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from runner.engine.mapping.traits import ClassWeights, class_weights

NAMES: Final = (
    "prior", "exact", "same_words", "nearly_same", "similar_words", "generic_differs", "covers", "inside",
    "subject", "replaced", "alike", "alike_squared", "nothing_said", "meaning", "meaning_plain", "other_meaning",
    "foreign", "technical", "confirmed", "confirmed_often", "confirmed_other", "said", "said_other", "near",
    "near_squared", "near_other", "letters", "letters_lead", "values", "values_against", "type_rare", "type_strong",
    "type_weak", "type_against", "pattern", "pattern_against", "allowed", "allowed_against", "neighbour",
    "other_role", "contrary", "described",
)  # fmt: skip


class MatcherModel(NamedTuple):
    """The trained weights of mapping."""

    pair: Mapping[str, float]  # of the numbers of a pair of column and field, in log-odds
    classes: ClassWeights  # of the traits of a column's values


def read_model() -> MatcherModel:
    """Load the trained weights from matcher.json and add those that are not trained."""
    loaded = json.loads((Path(__file__).parent / "matcher.json").read_bytes())
    pair: dict[str, float] = loaded["pair"]
    same = {"allowed_learnt": pair["allowed"]}  # a confirmed spelling is as good as the value
    in_log_odds = {"nearness": 1.0, "many_fields": -1.0}  # already
    return MatcherModel(pair | same | in_log_odds, class_weights(loaded["values"]["classes"]))


@cache
def model() -> MatcherModel:
    """Return the weights that are in use."""
    return read_model()


def weighed(numbers: Mapping[str, float]) -> float:
    """Weigh some numbers of a pair, by name, and return their sum in log-odds, without `prior`, which every pair starts
    with."""
    weights = model().pair
    return sum([weights[name] * x for name, x in numbers.items()])
