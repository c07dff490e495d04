"""`make bench`: every bench_*.py of this folder, one after the other; or the ones that are named."""

import importlib
import sys
from pathlib import Path


def main() -> None:
    here = Path(__file__).parent
    wanted = sys.argv[1:] or sorted(p.stem.removeprefix("bench_") for p in here.glob("bench_*.py"))
    for name in wanted:
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"tests.bench.bench_{name}").main([])


if __name__ == "__main__":
    main()
