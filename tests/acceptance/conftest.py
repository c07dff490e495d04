import pytest

from tests.acceptance.ade import Ade


@pytest.fixture
def ade(tmp_path):
    """The command on a data folder of its own; trusted configs may run in whatever box this host gives."""
    return Ade(tmp_path, {"ADE_SANDBOX_MIN_LEVEL": "limits"})
