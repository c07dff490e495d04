"""What a neighbour notices of an attack: the third table of docs/explanation/cost.md, and the attacks themselves."""

import re
from pathlib import Path

import pytest

from tests.abuse.neighbours import NUISANCES, RATIO, attacked, measure_one, opened
from tests.support.effort import FULL

DOC = Path(__file__).parents[2] / "docs" / "explanation" / "cost.md"


def test_the_table_in_the_docs_names_every_attack_and_no_p95_doubles():
    text = DOC.read_text().partition("## What a neighbour notices")[2]
    rows = re.findall(r"^\| (.+?) \| .+? \| .+? \| ([\d.]+) \| .+? \| .+? \| ([\d.]+) \|$", text, re.MULTILINE)
    assert [name for name, _, _ in rows] == list(NUISANCES)
    assert max(float(ratio) for row in rows for ratio in row[1:]) <= RATIO


@pytest.mark.slow
@pytest.mark.parametrize("name", ["manifest with mistakes", "`/drop/check`"])
def test_an_attack_arrives_and_drops_go_on(name: str):
    """No clock is read: the quiet tenant's drops succeed while the attacker acts."""
    with opened() as street, attacked(street, NUISANCES[name], 0) as acted:
        while acted[0] < 2:
            street.drop()


@pytest.mark.slow
@pytest.mark.skipif(not FULL, reason="reads the clock: ADE_TEST_FULL=1")
@pytest.mark.parametrize("name", NUISANCES)
def test_no_attack_doubles_a_neighbours_p95(name: str):
    drops, calls = measure_one(name)
    assert max(drops.ratio, calls.ratio) <= RATIO, (drops, calls)
