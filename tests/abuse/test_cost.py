"""Whatever somebody sends costs at most a second and 50 MiB for each MB: docs/explanation/cost.md has the table, this keeps it."""

import re
from pathlib import Path

import pytest

from tests.abuse.cost import ATTACKS, MOST_MIB, MOST_SECONDS, Attack, Genes, loaded, measure, search
from tests.support.effort import examples

DOC = Path(__file__).parents[2] / "docs" / "explanation" / "cost.md"
# CPU time on a machine with other work to do is not what it is on a quiet one.
GENEROUS = 3.0
# What was worst before there was a budget, or while it was made; the place is the attack's own.
KNOWN = [
    Genes(place=place, form=form, item=item, size=size)
    for place in (2, 3, 16)
    for form, item, size in (
        (0, 0, 900_000),  # very many mistakes, each the shortest text
        (0, 1, 900_000),
        (1, 5, 900_000),  # unknown keys
        (4, 33, 100_000),  # lists in lists
        (5, 12, 900_000),  # objects of a dozen keys
        (2, 2, 900_000),  # one text, four bytes a letter
    )
]


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.name for attack in ATTACKS])
def test_the_worst_that_was_found_stays_within_the_limits(attack: Attack):
    loaded()
    costs = [measure(attack, genes) for genes in KNOWN if genes.size <= attack.most]
    costs += search(attack, trials=examples(10), seed=11)
    for cost in costs:
        seconds, mib = cost.rates
        what = f"{cost}: {attack.text(cost.genes)[:120]!r}"
        assert seconds <= MOST_SECONDS * GENEROUS, what
        assert mib <= MOST_MIB, what


def test_the_table_in_the_docs_names_every_attack_within_the_limits():
    text = DOC.read_text().partition("## Every operation and page")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (\d+) \| ([\d.]+) \| (\d+) \|$", text, re.MULTILINE)
    assert [(name, by, int(most)) for name, by, most, _, _ in rows] == [(a.name, a.by, a.most) for a in ATTACKS]
    assert max(float(seconds) for *_, seconds, _ in rows) <= MOST_SECONDS
    assert max(int(mib) for *_, mib in rows) <= MOST_MIB
