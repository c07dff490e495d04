from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.console import ApiRig, api_rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[ApiRig]:
    with api_rig(tmp_path / "data") as made:
        yield made
