"""How likely a header is right: more likely the clearer it is, and never certain."""

import pytest

from runner.engine.options import ReadingOptions
from runner.engine.reading import Layout
from runner.engine.reading.books import DeclaredTable
from runner.engine.structure import certainty, find_tables
from tests.unit.engine.structure.test_structure_finding import HEADER, Grid, members


def sure(lines, layout=None):
    (table,) = find_tables(Grid(lines, layout))
    return table.confidence


def test_a_clear_header_is_surer_than_a_doubtful_one():
    towns = ["Oslo", "Rome", "Lima", "Bonn", "Riga", "Kyiv"]
    assert sure([HEADER, *members()]) > 0.9 > sure([["Bern", "Graz"], *zip(towns, reversed(towns), strict=True)])


def test_what_the_file_declares_is_as_sure_as_can_be():
    layout = Layout(declared_tables=[DeclaredTable("Members", (1, 1, 9, 4))])
    assert sure([HEADER, *members()], layout) == certainty.STATED


@pytest.mark.parametrize("odds", [-1000.0, 0.0, 1000.0])
def test_no_header_is_certainly_right_or_wrong(odds):
    assert 0 < certainty.chance_of([odds] * len(certainty.EVIDENCE)) < 1


def test_surer_rows_make_a_surer_header():
    chances = [
        certainty.chance_of((1.0, inside, head, head, 0.0, 0.0, 0.0)) for inside, head in ((0, 0), (2, 2), (4, 4))
    ]
    assert chances == sorted(chances)


@pytest.mark.parametrize("asked", [ReadingOptions(header_rows=(1,)), ReadingOptions(header="none")])
def test_a_header_that_the_manifest_sets_is_as_sure_as_can_be(asked):
    (table,) = find_tables(Grid([["Bern", "Graz"], ["Oslo", "Rome"]]), reading=asked)
    assert table.confidence == certainty.STATED
