"""Counters that are over are read once; whatever may still change is read each time."""

from console.counters import CounterWindow
from console.senders import SenderHistory, sender_histories
from core.ends import DAY, NUMBERS, EndCounts


def day(n: int, tenant: str = "acme", rows: int = 100, wrong: int = 1) -> EndCounts:
    numbers = {"files": 1, "rows": rows, "wrong": wrong}
    return EndCounts(
        at=n * DAY,
        numbers=tuple(numbers.get(name, 0) for name in NUMBERS),
        tenant=tenant,
        workflow="w",
        last_at=n * DAY,
    )


class Table:
    """Counters, and from when on they were asked for."""

    def __init__(self, *days: EndCounts) -> None:
        self.days = list(days)
        self.asked: list[float] = []

    def read(self, since: float) -> tuple[EndCounts, ...]:
        self.asked.append(since / DAY)
        return tuple(one for one in self.days if one.at >= since)


def window(table: Table) -> CounterWindow:
    return CounterWindow(table.read, seconds=28 * DAY, stretch=DAY, changing=DAY)


def known(found) -> list[float]:
    return sorted(one.at / DAY for one in (*found.past, *found.changing))


def test_only_what_may_change_is_read_again():
    table = Table(*(day(n) for n in range(90, 101)))
    counters = window(table)
    first = counters.get(100.5 * DAY, 0)
    assert known(first) == list(range(90, 101))
    table.days[-1] = day(100, rows=7)
    again = counters.get(100.6 * DAY, 1)
    assert (known(again), table.asked) == (known(first), [72.5, 99])
    assert again.changing[-1]["rows"] == 7
    assert again.generation == first.generation


def test_a_new_day_settles_the_one_before_yesterday_and_forgets_the_oldest():
    table = Table(*(day(n) for n in range(73, 101)))
    counters = window(table)
    first = counters.get(100.5 * DAY, 0)
    later = counters.get(102.5 * DAY, 1)
    assert (min(known(later)), max(known(later))) == (75, 100)
    assert [one.at / DAY for one in later.changing] == []
    assert later.generation != first.generation
    assert table.asked[-1] == 99  # not from the beginning


def test_everything_is_read_again_now_and_then_and_once_a_tenant_is_gone():
    table = Table(day(90), day(90, "gone"), day(100))
    counters = window(table)
    both = frozenset({"acme", "gone"})
    counters.get(100.5 * DAY, 0, tenants=both)
    del table.days[1]
    assert len(counters.get(100.5 * DAY, 1, tenants=both).past) == 2
    assert len(counters.get(100.5 * DAY, 2, tenants=frozenset({"acme"})).past) == 1
    del table.days[0]
    assert counters.get(100.5 * DAY, 700, tenants=frozenset({"acme"})).past == ()


def test_a_history_with_later_days_is_that_of_all_its_days():
    days = [day(n, rows=n % 5 * 10, wrong=n % 3) for n in (80, 81, 83, 90, 91, 95, 100)]
    (whole,) = sender_histories(days)
    for cut in range(1, len(days)):
        grown = SenderHistory(tenant="acme", workflow="w", days=tuple(days[:cut])).with_days(tuple(days[cut:]))
        assert grown == whole
        assert (grown.sums, grown.gaps, grown.rhythm, grown.rate) == (whole.sums, whole.gaps, whole.rhythm, whole.rate)
        assert (grown.rate_before, grown.is_bad) == (whole.rate_before, whole.is_bad)
        assert [grown.is_late(at * DAY) for at in range(98, 130)] == [whole.is_late(at * DAY) for at in range(98, 130)]
