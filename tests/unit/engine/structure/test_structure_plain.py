"""Plain tables, which are read without the classifier: the answer is the one that it would give, and doubt goes to it."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from runner.engine.common.fields import Field
from runner.engine.reading import Layout
from runner.engine.structure import detection, shortcuts
from runner.engine.surveying.declared_names import DeclaredNames, HeadingSpellings
from tests.support.effort import examples
from tests.support.table_makers import COLUMNS, FIRST, GOODS, dice_of, rows_of

HEADER = ["name", "city", "qty", "date"]
SHEETS = examples(200)
CLOSE = 0.1  # by which the confidence of a plain table may differ from what the classifier says


def tables_of(lines, names, layout=None):
    """The tables of a sheet whose manifest declares these names."""
    headings = DeclaredNames(HeadingSpellings([Field({"name": name, "type": "text"}) for name in names]))
    detector = detection.TableDetector(headings=headings)
    for number, line in enumerate(lines, 1):
        if any(value is not None for value in line):
            detector.add(number, line)
    return detector.tables(layout)


@contextmanager
def drafts_noted(monkeypatch, *, used=True):
    """A list of what the shortcut says about each sheet; `used`: the detection hears it, too."""
    said, plain_draft = [], shortcuts.plain_draft

    def noted(rows, hints):
        said.append(plain_draft(rows, hints))
        return said[-1] if used else None

    with monkeypatch.context() as patched:
        patched.setattr(shortcuts, "plain_draft", noted)
        yield said


def with_additions(dice, header, body):
    """The lines of a table, with some of what people put around and between records."""
    width = len(header)
    first = [dice.choice([*FIRST, *GOODS, "Total", "Итого", "(text)", "Source: own", "* estimated"])]
    alone, full = first + [None] * (width - 1), first * width
    columns = [[cell for cell in cells if cell is not None] for cells in zip(*body, strict=True)]
    sums = [sum(cells) if cells and isinstance(cells[0], int | float) else None for cells in columns]
    lines = [header, *body]
    for _ in range(dice.choice([0, 0, 1, 1, 2])):
        at = dice.randint(0, len(lines))
        added = dice.choice([alone, full, header, dice.choice(body), first + sums[1:], [None] * width])
        lines = dice.choice([[*lines[:at], added, *lines[at:]], [alone, [None] * width, *lines], [*lines, added]])
    return lines


def layout_of(dice, lines):
    bold = {dice.choice([1, 1, 2, len(lines)]): set(range(1, 20))}
    filtered = (dice.choice([1, 3]), 1, len(lines), 3)
    return Layout(bold=bold, styled_rows=len(lines), autofilter=filtered, frozen_rows=dice.choice([0, 1, 2, 4]))


def test_a_plain_table_is_what_the_classifier_finds(monkeypatch):
    taken = 0
    for seed in range(SHEETS):
        dice = dice_of("plain", seed)
        header = dice.sample(sorted(COLUMNS), dice.randint(2, 8))
        body = rows_of(dice, header, dice.choice([1, 4, 6, 20, 60]), blank=dice.choice([0.0, 0.0, 0.1]))
        lines = with_additions(dice, header, body) if dice.random() < 0.7 else [header, *body]
        names = dice.sample(header, max(1, round(len(header) * dice.choice([0.3, 0.6, 1, 1]))))
        layout = layout_of(dice, lines) if dice.random() < 0.3 else None
        with drafts_noted(monkeypatch) as said:
            short = tables_of(lines, names, layout)
        if not any(said):
            continue
        taken += 1
        with drafts_noted(monkeypatch, used=False):
            full = tables_of(lines, names, layout)
        without = [[replace(table, confidence=0.0) for table in tables] for tables in (short, full)]
        assert without[0] == without[1], f"seed {seed}"
        assert short[0].confidence == pytest.approx(full[0].confidence, abs=CLOSE), f"seed {seed}"
    assert taken * 6 > SHEETS


BODY = rows_of(dice_of("body"), HEADER, 8)
BLANK = [None] * 4
DOUBTFUL = {
    "no declared names": ([["who", "where", "much", "when"], *BODY], None),
    "a total": ([HEADER, *BODY, ["Total", None, 9, None]], None),
    "a full total": ([HEADER, *BODY, ["Total", "all", 9, BODY[0][3]]], None),
    "few records": ([HEADER, *BODY[:3]], None),
    "units below the header": ([HEADER, ["text", "text", "pieces", "day"], *BODY], None),
    "a title right above": ([["Members", None, None, None], HEADER, *BODY], None),
    "a row of captions above": ([["Who", None, "What", None], BLANK, HEADER, *BODY], None),
    "a caption between": ([HEADER, *BODY[:4], ["North", None, None, None], *BODY[4:]], None),
    "a blank row between": ([HEADER, *BODY[:4], BLANK, *BODY[4:]], None),
    "the header again": ([HEADER, *BODY[:4], HEADER, *BODY[4:]], None),
    "a note below": ([HEADER, *BODY, ["Source: own list", None, None, None]], None),
    "a column beyond the header": ([HEADER, *BODY[:4], [*BODY[4], "x"], *BODY[5:]], None),
    "a column without a name": ([["name", None, "qty", "date"], *BODY], None),
    "a year as a name": ([["name", 2024, "qty", "date"], *BODY], None),
    "a name twice": ([["name", "name", "qty", "date"], *BODY], None),
    "a column of two kinds": ([HEADER, *BODY[:4], ["Ann Lee", "Rome", "many", BODY[4][3]], *BODY[4:]], None),
    "a bold record": ([HEADER, *BODY], Layout(bold={5: {1, 2, 3, 4}}, styled_rows=9)),
    "merged cells": ([HEADER, *BODY], Layout(merged=[(4, 1, 4, 2)])),
    "a filter further down": ([HEADER, *BODY], Layout(autofilter=(3, 1, 9, 4))),
}


@pytest.mark.parametrize("what", DOUBTFUL)
def test_a_sheet_with_doubt_is_read_by_the_classifier(what, monkeypatch):
    lines, layout = DOUBTFUL[what]
    with drafts_noted(monkeypatch) as said:
        tables_of(lines, HEADER, layout)
    assert said == [None]


def test_without_doubt_it_is_not(monkeypatch):
    with drafts_noted(monkeypatch) as said:
        tables_of([["Members of the club", None, None, None], BLANK, HEADER, *BODY], HEADER)
    assert said != [None]


def test_points_of_a_rule_are_weighed(monkeypatch):
    detector = detection.TableDetector(
        headings=DeclaredNames(HeadingSpellings([Field({"name": name, "type": "text"}) for name in HEADER])),
        row_scores=lambda number, _: {"total": 9.0} if number == 9 else {},
    )
    for number, line in enumerate([HEADER, *BODY], 1):
        detector.add(number, line)
    with drafts_noted(monkeypatch) as said:
        detector.tables()
    assert said == [None]
