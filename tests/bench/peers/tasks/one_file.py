"""What a task does with one file: the openpyxl script of tests/bench/peers/frames, and an atomic rename at its end."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "frames"))

from openpyxl_plain import main as convert_workbook


def convert(source, target):
    convert_workbook(source, f"{target}.half")
    Path(f"{target}.half").replace(target)


if __name__ == "__main__":
    convert(*sys.argv[1:])
