from dataclasses import fields
from pathlib import Path

import pytest

from core.errors import SettingsError
from core.settings import Settings, unknown_variables


def test_the_fixed_defaults():
    s = Settings.from_env({})
    assert (s.storage_data_dir, s.max_concurrency, s.queue_size) == (Path("data"), 2, 10)
    assert (s.job_timeout_seconds, s.worker_cpu_seconds, s.worker_mem_mb, s.worker_fsize_mb) == (300, 60, 512, 100)
    assert (s.runtime_network_access, s.max_attempts, s.retention_hours) == (False, 3, 48)


def test_the_heartbeat_is_a_third_of_the_lease_unless_set():
    assert Settings.from_env({"ADE_LEASE_SECONDS": "9"}).beat_seconds == 3
    assert Settings.from_env({"ADE_LEASE_SECONDS": "9", "ADE_HEARTBEAT_SECONDS": "2"}).beat_seconds == 2


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ADE_MAX_CONCURRENCY", "two"),
        ("ADE_MAX_CONCURRENCY", "0"),
        ("ADE_LEASE_SECONDS", "inf"),
        ("ADE_LEASE_SECONDS", "nan"),
        ("ADE_RUNTIME_NETWORK_ACCESS", "maybe"),
        ("ADE_SANDBOX", "none"),
        ("ADE_HEARTBEAT_SECONDS", "29"),
        ("ADE_RETENTION_HOURS", "-1"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_the_variable(variable, value):
    with pytest.raises(SettingsError, match=variable):
        Settings.from_env({variable: value})


def test_all_wrong_values_are_named_at_once():
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({"ADE_QUEUE_SIZE": "x", "ADE_MAX_ATTEMPTS": "y"})
    assert "ADE_QUEUE_SIZE='x'" in str(caught.value)
    assert "ADE_MAX_ATTEMPTS='y'" in str(caught.value)


def test_a_typo_is_noticed():
    assert unknown_variables({"ADE_MAX_CONCURENCY": "2", "PATH": "/bin", "ADE_QUEUE_SIZE": "1"}) == [
        "ADE_MAX_CONCURENCY"
    ]


def test_every_setting_says_what_it_is():
    assert all(f.metadata["doc"] and f.metadata["parse"].__doc__ for f in fields(Settings))
