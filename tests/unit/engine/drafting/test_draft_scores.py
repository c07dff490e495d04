"""Drafts are right about types and careful about rules; `python -m tests.bench.draft_scores` runs all senders."""

from tests.bench.draft_scores import scored


def test_types_are_right_and_later_files_break_no_rule():
    score = scored(["stranger"], seed=3, most=6)
    assert score.senders == 6
    assert score.right / score.fields >= 0.95, score.wrong
    assert score.own_errors == []
    assert score.cases["allowed"] + score.cases["unique"] > 0
    assert score.breaks == []
