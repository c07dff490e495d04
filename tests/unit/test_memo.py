"""The memory of facts under the scans it is made for."""

import pytest

from infra.aws.s3_reads import Memo


def scan(memo: Memo[int, int], keys: range) -> float:
    """Ask for every key, learning what is not known; the share that was."""
    hits = 0
    for key in keys:
        if memo.get(str(key), 0) is None:
            memo.put(str(key), 0, key)
        else:
            hits += 1
    return hits / len(keys)


@pytest.mark.parametrize("times", [0.5, 1, 1.1, 1.5, 2, 4])
def test_scans_over_and_over_hit_about_what_fits(times):
    memo: Memo[int, int] = Memo(1000)
    keys = range(int(1000 * times))
    scan(memo, keys)
    rates = [scan(memo, keys) for _ in range(10)]
    assert min(rates) >= 0.7 * min(1, 1 / times)


def test_a_scan_of_other_keys_is_learnt_in_time():
    memo: Memo[int, int] = Memo(1000)
    scan(memo, range(1000))
    rates = [scan(memo, range(5000, 6500)) for _ in range(30)]
    assert rates[-1] >= 0.45


def test_one_large_scan_does_not_push_out_what_is_asked_for_often():
    memo: Memo[int, int] = Memo(1000)
    for _ in range(3):
        scan(memo, range(500))
    scan(memo, range(10_000, 13_000))
    assert scan(memo, range(500)) >= 0.6


def test_a_value_counts_only_under_the_fact_it_was_learnt_under():
    memo: Memo[int, int] = Memo(2)
    memo.put("a", 1, 10)
    assert memo.get("a", 2) is None
    memo.put("a", 2, 20)
    assert (memo.get("a", 1), memo.get("a", 2)) == (None, 20)


def test_it_never_holds_more_than_its_size():
    memo: Memo[int, int] = Memo(10)
    scan(memo, range(1000))
    assert sum(memo.get(str(key), 0) is not None for key in range(1000)) == 10
