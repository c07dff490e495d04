"""The sign of life that orchestrators look for: it follows the loop, and costs next to nothing."""

import os
from pathlib import Path

from infra.local.presence import Pulse, alive_file


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_beat_renews_the_file(tmp_path: Path):
    path = alive_file(tmp_path / "run", "runner")
    clock = Hand()
    pulse = Pulse(path, monotonic=clock)
    pulse.beat()
    os.utime(path, (0, 0))
    clock.now += 6
    pulse.beat()
    assert path.stat().st_mtime > 0


def test_a_loop_that_spins_does_not_write_at_every_round(tmp_path: Path):
    path = alive_file(tmp_path, "runner")
    clock = Hand()
    pulse = Pulse(path, monotonic=clock)
    pulse.beat()
    path.unlink()
    clock.now += 1
    pulse.beat()
    assert not path.exists()


def test_a_folder_that_cannot_be_written_to_ends_nobody(tmp_path: Path):
    (tmp_path / "run").write_text("a file where the folder should be")
    Pulse(alive_file(tmp_path / "run", "runner")).beat()
