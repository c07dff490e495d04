"""The bounded cache: by count, by weight, and under scans over more keys than it holds."""

import threading

import pytest

from core.caches import BoundedCache
from infra.aws.s3_reads import Memo


class TestByCount:
    def test_the_least_recently_used_is_evicted(self):
        cache = BoundedCache[str, int](3)
        for key in "abc":
            cache.put(key, 1)
        assert cache.get("a") == 1
        cache.put("d", 1)
        assert [key for key in "abcd" if key in cache] == ["a", "c", "d"]

    def test_asking_whether_a_key_is_there_does_not_use_it(self):
        cache = BoundedCache[str, int](2)
        cache.put("a", 1)
        cache.put("b", 1)
        assert "a" in cache
        cache.put("c", 1)
        assert "a" not in cache

    def test_a_cache_of_one_holds_one(self):
        cache = BoundedCache[str, int](1)
        cache.put("a", 1)
        cache.put("b", 2)
        assert (cache.get("a"), cache.get("b")) == (None, 2)

    def test_a_value_is_made_once_until_it_is_evicted_or_cleared(self):
        cache = BoundedCache[str, int](2)
        made: list[str] = []

        def ask(key: str) -> int:
            return cache.get_or_make(key, lambda: made.append(key) or len(made))

        assert [ask(key) for key in "aba"] == [1, 2, 1]
        ask("c")
        assert ask("b") == 4  # "a" was used after it
        cache.clear()
        assert ask("b") == 5

    def test_threads_that_share_one_exceed_no_limit(self):
        cache = BoundedCache[int, int](50)

        def fill(begin: int) -> None:
            for key in range(begin, begin + 2000):
                cache.put(key % 300, key)
                cache.get((key * 7) % 300)

        threads = [threading.Thread(target=fill, args=(n * 100,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(key in cache for key in range(300)) == 50


class TestByWeight:
    def test_the_least_recently_used_goes_first(self):
        cache = BoundedCache[str, int](8)
        for key in "abacd":
            cache.put(key, 1, 2)
        assert cache.get("b") == 1
        cache.put("e", 1, 2)
        assert [key for key in "abcde" if cache.get(key)] == ["b", "c", "d", "e"]

    def test_what_would_evict_much_else_is_not_stored(self):
        cache = BoundedCache[str, int](100)
        cache.put("large", 1, 26)
        cache.put("small", 1, 25)
        assert (cache.get("large"), cache.get("small")) == (None, 1)

    def test_the_same_key_weighs_once(self):
        cache = BoundedCache[str, int](8)
        for _ in range(10):
            cache.put("a", 1, 2)
        cache.put("b", 1, 2)
        assert cache.get("a") == cache.get("b") == 1


def scan(cache: BoundedCache[int, int], keys: range) -> float:
    """Ask for every key, learning what is not known; the share that was."""
    hits = 0
    for key in keys:
        if cache.get(key) is None:
            cache.put(key, key)
        else:
            hits += 1
    return hits / len(keys)


class TestScans:
    @pytest.fixture
    def cache(self):
        return BoundedCache[int, int](1000, newcomers=16)

    @pytest.mark.parametrize("times", [0.5, 1, 1.1, 1.5, 2, 4])
    def test_scans_over_and_over_hit_about_what_fits(self, cache, times):
        keys = range(int(1000 * times))
        scan(cache, keys)
        rates = [scan(cache, keys) for _ in range(10)]
        assert min(rates) >= 0.7 * min(1, 1 / times)

    def test_a_scan_of_other_keys_is_learnt_in_time(self, cache):
        scan(cache, range(1000))
        rates = [scan(cache, range(5000, 6500)) for _ in range(30)]
        assert rates[-1] >= 0.45

    def test_one_large_scan_does_not_evict_what_is_asked_for_often(self, cache):
        for _ in range(3):
            scan(cache, range(500))
        scan(cache, range(10_000, 13_000))
        assert scan(cache, range(500)) >= 0.6

    def test_it_never_holds_more_than_its_size(self):
        cache = BoundedCache[int, int](10, newcomers=16)
        scan(cache, range(1000))
        assert sum(key in cache for key in range(1000)) == 10


def test_a_value_counts_only_under_the_fact_it_was_learnt_under():
    memo: Memo[int, int] = Memo(2)
    memo.put("a", 1, 10)
    assert memo.get("a", 2) is None
    memo.put("a", 2, 20)
    assert (memo.get("a", 1), memo.get("a", 2)) == (None, 20)
