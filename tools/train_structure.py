"""Trains the line classifier of the structure pass and says how well it does on files it has not seen.

    python -m pip install lightgbm numpy        # in an environment of your own; the product needs neither
    python tools/train_structure.py ../shared/corpus            # cross-validate by group of files, four shuffles
    python tools/train_structure.py ../shared/corpus --left-out # leave each set out in turn
    python tools/train_structure.py ../shared/corpus --write    # train on all, write weights.json
    python tools/train_structure.py ../shared/corpus --certainty # how often headers are right; with --write certainty.json

Files of one workbook or one template share a group (index.csv) and never stand on both sides of a fold.
"""

import argparse
import collections
import csv
import json
import math
import pathlib
import pickle
import random
import sys
from bisect import bisect_right
from dataclasses import astuple, dataclass, field, replace

import lightgbm
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from runner.engine.reading import Layout, open_book  # noqa: E402
from runner.engine.structure import certainty, features  # noqa: E402
from runner.engine.structure.detection import TableDetector, tables_in, tables_read_by_row  # noqa: E402
from runner.engine.structure.header_rows import Hints  # noqa: E402
from runner.engine.structure.labelling import FLOOR  # noqa: E402
from runner.engine.structure.tables import Label  # noqa: E402
from tests.bench.structure_scores import LINES, TABLES, box, counts, header_rows, leaf_of, score  # noqa: E402

WORDS = {"header": 0, "data": 1, "derived": 2, "group": 3, "metadata": 4, "notes": 5}
UNSURE = "tables_enron_csv"  # its truth names ranges only, and not always all of a sheet's tables
PARAMETERS = {
    "objective": "multiclass",
    "num_class": len(Label),
    "num_leaves": 15,
    "learning_rate": 0.1,
    "min_data_in_leaf": 20,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 2,
    "verbosity": -1,
    "num_threads": 1,  # more only slow each other down on a shared machine
    "deterministic": True,
    "seed": 1,
}
ROUNDS = 80
FOLDS = 5
RIDGE = 0.5  # weight on no slope
CERTAINTIES = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)  # between which what is said is compared with what is so


@dataclass
class Case:
    """One labelled sheet."""

    source: str  # the set
    file: str
    group: str
    truth: dict
    rows: list
    layout: Layout = field(repr=False)
    vectors: np.ndarray = field(default=None, repr=False)
    labels: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)


def labels_of(case):
    """A label (-1: not known) and a weight for each row that holds something."""
    truth = case.truth
    if "line_labels" in truth:
        words = truth["line_labels"]
        return [(WORDS.get(words[r.number - 1], -1) if r.number <= len(words) else -1, 1.0) for r in case.rows]
    tables = [(box(one["range"]), one) for one in truth["tables"]]
    if not tables:
        return [(-1, 0.0)] * len(case.rows)
    others = [(one["type"], box(one["range"])) for one in truth.get("other_regions", [])]
    return [_label_by_range(case, row.number, tables, others) for row in case.rows]


def _label_by_range(case, number, tables, others):
    inside = [(b, one) for b, one in tables if b[0] <= number <= b[2]]
    if inside:
        if any(number in one.get("header_rows", []) for _, one in inside):
            return Label.HEADER, 1.0
        if case.source == UNSURE:
            return (-1, 0.0) if any(number - b[0] < 4 for b, _ in inside) else (Label.DATA, 0.5)
        known = case.source in ("regions_fuste", "deco_xlsx")
        return _body_label(number, inside), 1.0 if known else 0.5
    weight = 0.4 if case.source == UNSURE else 1.0
    kinds = {kind for kind, b in others if b[0] <= number <= b[2]}
    if "MetaTitle" in kinds or number < min(b[0] for b, _ in tables):
        return Label.TITLE, weight
    if "Notes" in kinds or number > max(b[2] for b, _ in tables):
        return Label.NOTE, weight
    return Label.TITLE, weight * 0.7


def _body_label(number, inside):
    label = Label.DATA
    for whole, one in inside:
        parts = [(e["type"], box(e["range"])) for e in one.get("elements", [])]
        parts += [("GroupHead", box(r)) for r in one.get("grouphead") or []]
        parts += [("Derived", box(r)) for r in one.get("derived") or []]
        for kind, b in parts:
            if b[0] <= number <= b[2]:
                if kind == "Derived" and (b[3] - b[1]) * 2 >= whole[3] - whole[1]:
                    label = Label.TOTAL
                if kind == "GroupHead" and label is Label.DATA:
                    label = Label.GROUP
    return label


def cases(corpus):
    root = pathlib.Path(corpus) / "labelled"
    with (root / "index.csv").open(encoding="utf-8") as file:
        group = {line["file"]: line["group"] for line in csv.DictReader(file)}
    out = []
    for source in LINES + TABLES:
        for line in (root / "truth" / f"{source}.jsonl").open(encoding="utf-8"):
            truth = json.loads(line)
            name = truth["file"]
            if not counts(source, truth):
                continue
            rows, layout = kept_rows(root / name, truth.get("sheet"))
            case = Case(source=source, file=name, group=group[name], truth=truth, rows=rows, layout=layout)
            label(case)
            out.append(case)
        print(source, len(out), "sheets so far", flush=True)
    return out


def kept_rows(path, sheet_name):
    with open_book(path, name=path.name) as book:
        sheet = next(one for one in book.sheets if not sheet_name or path.suffix == ".csv" or one.name == sheet_name)
        detector = TableDetector()
        for number, values in sheet.rows():
            detector.add(number, values)
        layout = sheet.layout()
        return detector.rows(layout), layout


def label(case):
    total = case.rows[-1].ordinal + 1 if case.rows else 0
    every = [replace(row, plain=False) for row in case.rows]
    case.vectors = np.array(features.vectors(every, total=total), dtype=np.float32)
    pairs = labels_of(case)
    case.labels = [int(one) for one, _ in pairs]
    case.weights = [weight for _, weight in pairs]


def train(chosen, rounds=ROUNDS, **changes):
    size = collections.Counter()
    for case in chosen:
        size[case.source] += sum(1 for one in case.labels if one >= 0)
    thin = random.Random(0)
    parts = []
    for case in chosen:
        for at, (one, weight) in enumerate(zip(case.labels, case.weights, strict=True)):
            # Rows deep inside a run of one label say the same again and again.
            deep = at >= 30 and len(set(case.labels[max(0, at - 3) : at + 4])) == 1
            if one >= 0 and weight > 0 and not (deep and thin.random() > 0.15):
                parts.append((case.vectors[at], one, weight / math.sqrt(size[case.source])))
    x = np.array([one for one, _, _ in parts])
    y = np.array([one for _, one, _ in parts])
    w = np.array([one for _, _, one in parts])
    return lightgbm.train(PARAMETERS | changes, lightgbm.Dataset(x, y, weight=w / w.mean()), rounds)


def sequence_of(chosen):
    """Logs of which label opens a sheet and which follows which, without and with a blank row between."""
    start = np.full(len(Label), 0.5)
    moves = np.full((2, len(Label), len(Label)), 0.5)
    for case in chosen:
        if case.source not in LINES:
            continue
        before = None
        for row, one in zip(case.rows, case.labels, strict=True):
            if before is None and one >= 0:
                start[one] += 1
            elif before is not None and before >= 0 and one >= 0:
                moves[1 if row.gap else 0, before, one] += 1
            before = one
    return np.log(start / start.sum()).tolist(), np.log(moves / moves.sum(2, keepdims=True)).tolist()


class RowClassifier:
    """Gives rows their chances by a booster that was trained on other files."""

    def __init__(self, booster, chosen):
        self.booster = booster
        self.start, self.moves = sequence_of(chosen)

    def chances_of(self, vectors):
        if not vectors:
            return []
        return np.maximum(self.booster.predict(np.array(vectors, dtype=np.float32)), FLOOR).tolist()


def found_in(case, judge):
    """What the product would find in the sheet with these weights."""
    tables = tables_in(case.rows, Hints({}, case.layout), judge) if case.rows else []
    return [{"range": astuple(table.range), "header_rows": list(table.header_rows)} for table in tables]


def fold_of(every, count, seed):
    names = sorted({case.group for case in every})
    random.Random(seed).shuffle(names)
    return {name: at % count for at, name in enumerate(names)}


def cross_validate(every, count=FOLDS, seed=1):
    folds = fold_of(every, count, seed)
    pairs = []
    for fold in range(count):
        known = [case for case in every if folds[case.group] != fold]
        judge = RowClassifier(train(known), known)
        pairs += [(case.source, case.truth, found_in(case, judge)) for case in every if folds[case.group] == fold]
    return score(pairs)


def shuffled(every, count):
    """Cross-validate with several shuffles of the groups; one alone is luck by a point or so."""
    means = [cross_validate(every, seed=seed) for seed in range(1, count + 1)]
    print("mean of the shuffles", {key: round(sum(one[key] for one in means) / count, 3) for key in means[0]})


def leave_out(every):
    pairs = []
    for source in LINES + TABLES:
        known = [case for case in every if case.source != source]
        judge = RowClassifier(train(known), known)
        pairs += [(case.source, case.truth, found_in(case, judge)) for case in every if case.source == source]
    return score(pairs)


def certain(every, path=None):
    """Fit the weights of certainty.py on sheets that the classifier has not seen; writes them if there is a path.

    Prints what is said and what is so, said by weights that were fitted on the other folds.
    """
    certainty.chance_of = tuple  # the confidence of a table is then the evidence itself
    folds = fold_of(every, FOLDS, PARAMETERS["seed"])
    found = []
    for fold in range(FOLDS):
        known = [case for case in every if folds[case.group] != fold]
        judge = RowClassifier(train(known), known)
        own = [case for case in every if folds[case.group] == fold and case.rows and case.source != UNSURE]
        found += [(fold, *one) for case in own if (one := _first_header(case, judge)) is not None]
        print("fold", fold, len(found), "headers", flush=True)
    said = []
    for fold in range(FOLDS):
        line = np.array(fitted([one[1:] for one in found if one[0] != fold]))
        said += [(1 / (1 + math.exp(-float(line @ evidence))), right) for at, evidence, right in found if at == fold]
    table = binned(said, CERTAINTIES)
    weights = fitted([one[1:] for one in found])
    for line in table:
        print("said {:.2f}, so {:.2f}, of {}".format(*line))
    whole = {
        "data": dict(collections.Counter(case.source for case in every if case.source != UNSURE)),
        "seed": PARAMETERS["seed"], "folds": FOLDS, "said_and_so": table,
        "evidence": certainty.EVIDENCE, "weights": [round(float(one), 4) for one in weights],
    }  # fmt: skip
    if path is not None:
        path.write_text(json.dumps(whole) + "\n", encoding="utf-8")


def _first_header(case, judge):
    """The evidence for the header of a sheet's first table, and whether its last row is right; None: not known."""
    heads = header_rows(case.source, case.truth)
    tables = tables_read_by_row(case.rows, Hints({}, case.layout), judge)
    if not tables or (not heads and case.source not in LINES):
        return None
    first = min(tables, key=lambda table: astuple(table.range))
    if first.confidence == certainty.STATED:
        return None
    leaf = leaf_of(heads, case.truth.get("line_labels")) if heads else 0
    return first.confidence, max(first.header_rows, default=0) == leaf


def fitted(pairs):
    """The weights of a line through the log odds of answers, from (numbers, answer)."""
    columns = np.array([one for one, _ in pairs], dtype=float).T
    answers = np.array([float(one) for _, one in pairs])
    line = np.zeros(len(columns))
    for _ in range(50):  # Newton's method, with a little weight on no slope
        p = 1 / (1 + np.exp(-np.clip(line @ columns, -30, 30)))
        slant = (columns * (p * (1 - p))) @ columns.T + RIDGE * np.eye(len(line))
        line += np.linalg.solve(slant, columns @ (answers - p) - RIDGE * line)
    return line


def binned(said, edges):
    """The mean of what was said, of what was so, and how many, of (probability, answer) between the edges."""
    bins = collections.defaultdict(list)
    for one in said:
        bins[bisect_right(edges, one[0])].append(one)
    return [(*(round(float(one), 2) for one in np.mean(own, axis=0)), len(own)) for _, own in sorted(bins.items())]


def write(every, path):
    booster = train(every)
    start, moves = sequence_of(every)
    classes = [[] for _ in Label]
    for at, tree in enumerate(booster.dump_model()["tree_info"]):
        classes[at % len(Label)].append(_node(tree["tree_structure"]))
    rounded = [[[round(one, 3) for one in line] for line in table] for table in moves]
    whole = {
        "labels": [one.name.lower() for one in Label],
        "features": features.names(),
        "start": [round(one, 3) for one in start],
        "moves": rounded,
        "classes": classes,
    }
    path.write_text(json.dumps(whole, separators=(",", ":")) + "\n", encoding="utf-8")
    print("wrote", path, path.stat().st_size, "bytes")


def _node(tree):
    if "leaf_value" in tree:
        return round(tree["leaf_value"], 4)
    threshold = float(f"{tree['threshold']:.6g}")
    return [tree["split_feature"], threshold, _node(tree["left_child"]), _node(tree["right_child"])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus")
    parser.add_argument("--left-out", action="store_true", help="leave each set out in turn")
    parser.add_argument("--shuffles", type=int, default=4, help="of the groups, in cross-validation")
    parser.add_argument("--write", action="store_true", help="train on all files and write weights.json")
    parser.add_argument("--cache", type=pathlib.Path, help="keep the rows here between runs")
    parser.add_argument("--certainty", action="store_true", help="fit how likely headers are right")
    given = parser.parse_args()
    if given.cache and given.cache.exists():
        every = pickle.loads(given.cache.read_bytes())
    else:
        every = cases(given.corpus)
        if given.cache:
            given.cache.write_bytes(pickle.dumps(every))
    if given.certainty:
        certain(every, ROOT / "runner/engine/structure/certainty.json" if given.write else None)
    elif given.write:
        write(every, ROOT / "runner/engine/structure/weights.json")
    elif given.left_out:
        leave_out(every)
    else:
        shuffled(every, given.shuffles)


if __name__ == "__main__":
    main()
