"""`make bench`: what others can measure again, against named peers; results go to docs/bench/.

    python -m tests.bench [NAME ...] [--quick] [options of one NAME]

Without a name, every benchmark of `REPORTED`, one after the other. `--quick` takes seconds, writes nothing, and fails if
a ratio got worse than half of what docs/bench/ says. `COUNTED` names smaller counts of single parts, which print only.
"""

import importlib
import sys

from tests.bench.harness.figures import Report, drifted

REPORTED = ("engine", "drops", "queue")
COUNTED = ("box", "cloud", "console", "flames", "idle", "postgres", "sandbox", "spine", "steady", "telemetry")


def main(words: list[str]) -> int:
    names = [word for word in words if word in REPORTED + COUNTED]
    options = [word for word in words if word not in names and word != "--quick"]
    if options and len(names) != 1:
        sys.exit(f"options go with one name of {', '.join(REPORTED + COUNTED)}: {' '.join(options)}")
    if "--quick" in words:
        return quick(names or list(REPORTED))
    for name in names or REPORTED:
        print(f"\n== {name}", flush=True)
        made = importlib.import_module(f"tests.bench.bench_{name}").main(options)
        if isinstance(made, Report):
            made.print()
            if made.whole:
                made.write()
    return 0


def quick(names: list[str]) -> int:
    worse = []
    for name in names:
        for section in importlib.import_module(f"tests.bench.bench_{name}").quick():
            print(f"{section.title}: times ours {section.ratios()}", flush=True)
            worse += drifted(name, section)
    print("\n".join(f"worse than half of what is stored: {line}" for line in worse))
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
