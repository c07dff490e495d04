"""The text format of Prometheus: escapes, digits, buckets."""

import pytest

from console.api.metrics import HttpCounts
from infra.prometheus_text import histogram, sample


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (3.0, "3"), (0.25, "0.25"), (12_345_678_901, "12345678901"), (1e10 + 0.5, "10000000000.5")],
)
def test_a_value_has_every_digit(value, text):
    assert sample("n", {}, value) == f"n {text}"


def test_labels_are_escaped():
    assert sample("n", {"a": 'x"y\\z\nw', "b": ""}, 1) == 'n{a="x\\"y\\\\z\\nw",b=""} 1'


def test_buckets_are_cumulative_and_end_with_all():
    assert histogram("n", {"a": "x"}, (0.5, 1.0), [2, 0, 1], 4.25) == [
        'n_bucket{a="x",le="0.5"} 2',
        'n_bucket{a="x",le="1"} 2',
        'n_bucket{a="x",le="+Inf"} 3',
        'n_sum{a="x"} 4.25',
        'n_count{a="x"} 3',
    ]


def test_a_request_of_just_a_bound_is_in_its_bucket():
    counts = HttpCounts()
    for seconds in (0.005, 0.0051, 11.0):
        counts.add("jobs", 200, seconds)
    lines = counts.lines()
    assert 'ade_http_requests_total{operation="jobs",status="200"} 3' in lines
    found = {line.partition('le="')[2].partition('"')[0]: line.split()[-1] for line in lines if "_bucket" in line}
    assert found == {"0.005": "1", "0.025": "2", "0.1": "2", "0.5": "2", "2.5": "2", "10": "2", "+Inf": "3"}
