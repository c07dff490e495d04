"""How well a manifest drafted from clean rows flags wrong cells: `python -m tests.bench.dirty_tables [FOLDER]`.

FOLDER holds `<name>.clean.csv` and `<name>.dirty.csv` with the same rows and columns; a cell is wrong where they differ.
The draft is made from the first half of the clean rows; the second half of the dirty rows runs through the engine.
Precision: the share of flagged cells that are wrong. Recall: the share of wrong cells that are flagged, by an error or
a warning at the cell. Nothing is asked and nothing is changed by hand.
"""

import csv
import json
import re
import sys
import tempfile
from pathlib import Path

from console.desk.drafts import DraftDocument, manifest_of
from core.manifests import parse_manifest
from runner.engine.common.a1 import letters
from runner.engine.contract import DraftRequest, InputFile, Order
from runner.engine.drafting import draft
from tests.support.engine_jobs import Outcome, run_order

AT_ONCE = 250  # rows
FOLDER = Path(__file__).parents[2] / "../shared/eval/dirty"


def drafted(samples: list[Path], name: str = "draft") -> dict:
    """The manifest that a draft proposes, made in this process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "draft.json")
        inputs = tuple(InputFile(role="primary", name=path.name, path=path) for path in samples)
        order = Order(manifest={"fields": []}, inputs=inputs, outputs={"draft.json": out}, draft=DraftRequest())
        draft(order, DraftRequest())
        document = DraftDocument.model_validate(json.loads(out.read_bytes()))
    return manifest_of(name, document, samples, drop_others=False)


def run(manifest: dict, path: Path, folder: Path) -> Outcome:
    """The engine on one file, in this process."""
    checked = parse_manifest(json.dumps(manifest).encode())
    order = {
        "order": 1,
        "manifest": checked.model_dump(mode="json"),
        "inputs": [{"role": "primary", "name": path.name, "path": str(path.absolute()), "size": 1, "sha256": "0" * 64}],
        "outputs": {n: n for n in ("normalized.xlsx", "artifact.json")},
        "sandbox": {"driver": "process", "level": "limits", "rungs": {"rlimits": True}},
    }
    return run_order(order, folder)


def flagged(manifest: dict, header: list[str], rows: list[list[str]], folder: Path) -> dict[tuple[int, str], set[str]]:
    """The cells with an error or a warning, by row and letters, each with its codes.

    The rows run a few at a time: an artifact lists no more than a thousand findings of a code.
    """
    found: dict[tuple[int, str], set[str]] = {}
    for start in range(0, len(rows), AT_ONCE):
        path = folder / "dirty.csv"
        with path.open("w", newline="") as out:
            csv.writer(out).writerows([header, *rows[start : start + AT_ONCE]])
        for one in run(manifest, path, folder).findings:
            if one["severity"] in ("error", "warning") and "cell" in one:
                column, row = re.fullmatch("([A-Z]+)([0-9]+)", one["cell"]).groups()
                place = (start + int(row) - 2 if int(row) > 1 else -1, column)
                found.setdefault(place, set()).add(one["code"])
    return found


def judge(folder: Path, name: str) -> dict:
    clean, dirty = (
        list(csv.reader((folder / f"{name}.{kind}.csv").read_text(encoding="utf-8").splitlines(keepends=True)))
        for kind in ("clean", "dirty")
    )
    half = len(clean) // 2
    with tempfile.TemporaryDirectory() as place:
        first = Path(place, "clean.csv")
        with first.open("w", newline="") as out:
            csv.writer(out).writerows(clean[: 1 + half])
        manifest = drafted([first], name)
        found = flagged(manifest, dirty[0], dirty[1 + half :], Path(place))
    wrong = {
        (row, letters(column + 1))
        for row, (good, bad) in enumerate(zip(clean[1 + half :], dirty[1 + half :], strict=True))
        for column, (one, other) in enumerate(zip(good, bad, strict=True))
        if one != other
    }
    hits = wrong & set(found)
    by_code: dict[str, list[int]] = {}
    for cell, codes in found.items():
        for code in codes:
            counts = by_code.setdefault(code, [0, 0])
            counts[0] += 1
            counts[1] += cell in wrong
    return {
        "table": name, "wrong": len(wrong), "flagged": len(found), "hits": len(hits),
        "precision": len(hits) / len(found) if found else 1.0, "recall": len(hits) / len(wrong) if wrong else 1.0,
        "by_code": by_code, "missed": sorted(wrong - set(found)), "false": sorted(set(found) - wrong), "manifest": manifest,
    }  # fmt: skip


def main(words: list[str]) -> None:
    folder = Path(words[0]) if words else FOLDER
    print(
        f"{'table':<10} {'wrong':>6} {'flagged':>8} {'right':>6} {'precision':>10} {'recall':>7}  flagged (of them wrong) by code"
    )
    for path in sorted(folder.glob("*.clean.csv")):
        one = judge(folder, path.name.removesuffix(".clean.csv"))
        codes = ", ".join(f"{code} {n} ({hits})" for code, (n, hits) in sorted(one["by_code"].items()))
        print(
            f"{one['table']:<10} {one['wrong']:>6} {one['flagged']:>8} {one['hits']:>6} {one['precision']:>10.3f} {one['recall']:>7.3f}  {codes}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
