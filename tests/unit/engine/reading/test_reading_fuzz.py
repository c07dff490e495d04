"""A short run of the fuzzer; `python -m tests.fuzz.reading --seconds 600` is the long one."""

import pytest

from tests.fuzz.reading import fuzz


@pytest.mark.slow
def test_mutated_files_are_read_or_refused(tmp_path):
    counts, broken = fuzz(seconds=5, seed=4711, keep=tmp_path / "kept", files=[])
    told = "\n".join(one.read_text() for one in sorted(tmp_path.glob("kept/*.txt"))[:3])
    assert not broken, told
    assert counts["read"] > 20
    assert len(counts) > 3, "mutations reach more than one kind of refusal"
