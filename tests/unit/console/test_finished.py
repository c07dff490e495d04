"""Results on this machine that `ade diff` and `ade explain` read."""

import pytest

from console.cli.finished import _in_folder
from core.errors import UsageError


@pytest.mark.parametrize("body", [b"[1]", b"{}", b'{"status": 5}', b"null"])
def test_another_program_s_result_json_is_refused_by_name(tmp_path, body):
    (tmp_path / "result.json").write_bytes(body)
    with pytest.raises(UsageError, match=r"result\.json is not a result\.json of ade"):
        _in_folder(tmp_path)
