"""How good drafts are: `python -m tests.bench.draft_scores [--sheets business] [--seed 1] [-v]`.

The made-up sheets of business_sheets.txt, stranger_sheets.txt and form_sheets.txt are senders; each sends FILES files.
A manifest is drafted from the first half of them. Types: the share of fields whose drafted type is right for the kind of
values that the sheet says. Hold-out: each rule of the draft meets each file of the second half; a case is broken if the
engine reports the rule there. Senders have habits that tempt a careless draft: some words are rare, some come up only
later, and numbers of others' documents sometimes repeat.
"""

import argparse
import csv
import random
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import business_sheets
from tests.bench.business_sheets import POINTED, WORDS, Sheet, sheets, values
from tests.bench.dirty_tables import drafted, run

FILES = 6
LATER = 0.05  # share of columns of words in which a new word comes up
REPEATED = 0.04  # share of rows that repeat another document's number
NUMBERS = {"qty", "year", "month", "digit", "minutes", "km", "sqft"}
DECIMALS = {"hours", "weight", "sqm", "gpa"}
DIGITS = {"account", "ean", "houseno", "code"}
RULES = {"allowed": "not_allowed", "unique": "duplicate", "min": "min", "max": "max", "pattern": "pattern", "required": "required", "type": "type_error"}  # fmt: skip


def right_types(kind: str, cells: list[str]) -> set[str]:
    """The types that are right for a kind of values."""
    if kind in ("date", "datetime", "time", "email", "phone", "url"):
        return {kind}
    if kind == "money":
        return {"money", "decimal"}
    if kind == "rate":
        return {"percent", "integer", "decimal"}
    if kind == "bool":
        return {"boolean"}
    if kind in NUMBERS:
        return {"integer"}
    if kind in DECIMALS:
        return {"decimal"}
    if kind in DIGITS and all(cell.isdecimal() and cell[0] != "0" for cell in cells):
        return {"text", "integer"}
    return {"text", "enum"}


def files_of(sheet: Sheet, seed: int, rows: int) -> list[list[list[str]]]:
    """The rows of each file of a sender, with its header."""
    business_sheets.ROWS = rows * FILES
    columns = []
    for at, (header, _, kind) in enumerate(sheet.columns):
        rng = random.Random(zlib.crc32(f"{seed}/{sheet.name}/{at}".encode()))
        cells = values(kind, sheet.language, rng)
        if kind in WORDS:
            words = WORDS[kind].split(",")
            weights = [1 / (1 + n * rng.random()) for n in range(len(words))]
            cells = [rng.choices(words, weights)[0] for _ in cells]
            if rng.random() < LATER:
                cells[rng.randrange(rows, len(cells))] = f"{words[0]} 2"
        if kind == "code" and at and rng.random() < 0.5:
            cells = [
                rng.choice(cells[:n] or cells) if rng.random() < REPEATED else cell for n, cell in enumerate(cells)
            ]
        columns.append([" ".join(header.split(" // ")), cells])
    return [
        [
            [header for header, _ in columns],
            *([cells[n] for _, cells in columns] for n in range(at * rows, (at + 1) * rows)),
        ]
        for at in range(FILES)
    ]


@dataclass
class Score:
    fields: int = 0
    right: int = 0
    senders: int = 0
    wrong: list[str] = field(default_factory=list)
    cases: Counter[str] = field(default_factory=Counter)  # rule -> later files that it met
    broken: Counter[str] = field(default_factory=Counter)
    breaks: list[str] = field(default_factory=list)
    own_errors: list[str] = field(default_factory=list)  # errors that drafts report on their own samples


def judge(sheet: Sheet, seed: int, score: Score, folder: Path, rows: int) -> None:
    """Draft from the first half of a sender's files, and run the second half."""
    delimiter = "," if sheet.language in POINTED else ";"
    paths = []
    for n, body in enumerate(files_of(sheet, seed, rows)):
        path = folder / f"{sheet.name}-{n}.csv"
        with path.open("w", newline="", encoding="utf-8") as out:
            csv.writer(out, delimiter=delimiter).writerows(body)
        paths.append(path)
    manifest = drafted(paths[: FILES // 2], "draft")
    specs = {
        name: spec
        for spec in manifest["fields"]
        for name in (spec.get("label", spec["name"]), *spec.get("synonyms", ()))
    }
    score.senders += 1
    for header, _, kind in sheet.columns:
        spec = specs.get(" ".join(header.split(" // ")))
        wanted = right_types(kind, values(kind, sheet.language, random.Random(1)))
        score.fields += 1
        score.right += spec is not None and spec["type"] in wanted
        if spec is None or spec["type"] not in wanted:
            score.wrong.append(f"{sheet.name}: {header} ({kind}) is {spec and spec['type']}")
    for n, path in enumerate(paths):
        hit = broken(manifest, path, folder)
        if n < FILES // 2:
            score.own_errors += [f"{sheet.name}: {name} {code}" for name, code in sorted(hit, key=str)]
            continue
        for spec in manifest["fields"]:
            for rule, code in RULES.items():
                if rule in spec and (rule != "type" or spec["type"] not in ("text", "enum")):
                    score.cases[rule] += 1
                    if (spec["name"], code) in hit:
                        score.broken[rule] += 1
                        score.breaks.append(f"{sheet.name}: {spec['name']} breaks {rule} in file {n}")


def broken(manifest: dict, path: Path, folder: Path) -> set[tuple[str, str]]:
    """The fields and codes of the errors of a file."""
    totals = run(manifest, path, folder).artifact["validation"]["totals"]
    return {(one["field"], one["code"]) for one in totals if one["severity"] == "error"}


def scored(kinds: list[str], seed: int, rows: int = 40, most: int | None = None) -> Score:
    score = Score()
    every: Iterator[Sheet] = (sheet for kind in kinds for sheet in sheets(kind))
    with tempfile.TemporaryDirectory() as folder:
        for n, sheet in enumerate(every):
            if most is not None and n >= most:
                break
            if len({" ".join(h.split(" // ")).casefold() for h, _, _ in sheet.columns}) == len(sheet.columns):
                judge(sheet, seed, score, Path(folder), rows)
    return score


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sheets", nargs="+", default=["business", "stranger", "form"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--most", type=int)
    parser.add_argument("-v", action="store_true")
    args = parser.parse_args()
    score = scored(args.sheets, args.seed, args.rows, args.most)
    print(f"{score.senders} senders, {score.fields} fields, right type: {score.right / score.fields:.3f}")
    print(f"errors of drafts on their own samples: {len(score.own_errors)}")
    for rule, cases in sorted(score.cases.items()):
        print(f"{rule:<9} {cases:>5} cases, broken {score.broken[rule]:>3}: {score.broken[rule] / cases:.4f}")
    if args.v:
        print("\n".join([*score.wrong, *score.own_errors, *score.breaks]))


if __name__ == "__main__":
    main()
