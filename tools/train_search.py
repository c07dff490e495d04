"""Trains the forests of the table search and says how well it does on workbooks that it has not seen.

    python -m pip install lightgbm numpy            # in an environment of your own; the product needs neither
    python tools/train_search.py ../shared/corpus ../shared/enron             # cross-validate by family of workbooks
    python tools/train_search.py ../shared/corpus ../shared/enron --write     # and write search.json
    ... --cache DIR                                 # keeps what each step made: to try another model takes a minute

Sheets of one workbook, and workbooks that share most of their texts, are one family and never on both sides of a fold.
Four steps, each trained on what the step before says about sheets that it has not seen:

1. the labels of rows (train_structure.py) and the tables that they give, row by row;
2. places where tables end: between two lines, and at blank columns;
3. rectangles that are tables: one forest that knows what was read row by row, one for edges that are nearly right,
   and one for those of them that are exact;
4. how much more a partition must be worth before it replaces the one that was read row by row.

Half of the training sheets are made of the others: their tables, whole or in pieces, stacked or side by side.
"""

import argparse
import collections
import json
import math
import pathlib
import pickle
import random
import sys
from bisect import bisect_left, bisect_right
from dataclasses import astuple, dataclass, field, replace
from multiprocessing import Pool

import lightgbm
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import composed_sheets  # noqa: E402
import train_structure as lines  # noqa: E402

from runner.engine.reading import Layout  # noqa: E402
from runner.engine.structure import features, labelling, search  # noqa: E402
from runner.engine.structure.cuts import column_cut, row_cut  # noqa: E402
from runner.engine.structure.detection import tables_in, tables_read_by_row  # noqa: E402
from runner.engine.structure.equal_blocks import has_equal_blocks  # noqa: E402
from runner.engine.structure.forest import Forest  # noqa: E402
from runner.engine.structure.grid import Grid, Rect  # noqa: E402
from runner.engine.structure.header_rows import Hints  # noqa: E402
from runner.engine.structure.rectangles import UNREAD, Cuts, Describer  # noqa: E402
from runner.engine.structure.regions import Regions  # noqa: E402
from tests.bench.structure_scores import TABLES, box, off, score  # noqa: E402

ENRON = "enron_xls"
FOLDS = 5
SEED = 1
COMPOSED = 60  # sheets made for each fold
COMPOSED_WEIGHT = {"cuts": 0.2, "rectangles": 0.05}
FEW_REGIONS = 80  # per sheet in training
EDGE = 2  # rows or columns by which an edge may be off
NEARLY = 0.6  # what a rectangle counts whose edges are nearly right, where one forest says both
CLOSE = 3  # rows or columns up to which exact edges are learnt from those that are not
SEEDS = (1, 2, 3)  # of forests whose mean is taken
CUTS = {"num_leaves": 16, "num_iterations": 70}
RECTANGLES = {"num_leaves": 8, "num_iterations": 300}
EXACT = {"num_leaves": 8, "num_iterations": 150}
MARGINS = (0.2, 0.5)  # for comparison
JOBS = 2  # processes
PARAMETERS = {
    "objective": "cross_entropy",
    "learning_rate": 0.08,
    "min_data_in_leaf": 25,
    "feature_fraction": 0.4,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5,
    "max_bin": 63,
    "verbosity": -1,
    "num_threads": 1,
    "deterministic": True,
    "seed": SEED,
}


@dataclass
class Sheet:
    """One labelled sheet, or one that is composed of others."""

    source: str
    file: str
    name: str
    group: str
    rows: list
    layout: Layout = field(repr=False)
    tables: list  # boxes that people marked
    truth: dict = field(default_factory=dict, repr=False)
    fold: int = -1
    chances: list = field(default=None, repr=False)
    reading: list = field(default_factory=list)  # boxes of the tables that were read row by row

    def grid(self):
        return Grid(self.rows, self.chances, self.layout)


def labelled(corpus, enron):
    """Every sheet with marked tables or labelled lines."""
    out = []
    for case in lines.cases(corpus):
        tables = [box(one["range"]) for one in case.truth.get("tables", ())] if case.source in TABLES else []
        out.append(
            Sheet(
                case.source,
                case.file,
                case.truth.get("sheet") or "",
                case.group,
                case.rows,
                case.layout,
                tables,
                case.truth,
            )
        )
    root = pathlib.Path(enron) / "labelled"
    for line in (root / "truth" / "enron_xls.jsonl").open(encoding="utf-8"):
        truth = json.loads(line)
        rows, layout = lines.kept_rows(root / truth["file"], truth["sheet"])
        tables = [box(one["range"]) for one in truth["tables"]]
        out.append(Sheet(ENRON, truth["file"], truth["sheet"], truth["file"], rows, layout, tables, truth))
    return out


SHARED, COMMON = 5, 60  # texts that two workbooks of a family share at least; a text in more sheets says nothing
ALIKE = 0.4


def families(sheets):
    """A name for each sheet's family: the same workbook, or workbooks that share most of their texts."""
    texts = [
        {value.strip().lower()[:40] for row in one.rows[:300] for value in row.values if isinstance(value, str)}
        for one in sheets
    ]
    often = collections.Counter(text for own in texts for text in own)
    rare = [{text for text in own if often[text] <= COMMON and len(text) > 2} for own in texts]
    parent = list(range(len(sheets)))

    def root(at):
        while parent[at] != at:
            at = parent[at]
        return at

    first, where = {}, collections.defaultdict(list)
    for at, one in enumerate(sheets):
        parent[root(at)] = root(first.setdefault(one.group, at))
        shared = collections.Counter(other for text in rare[at] for other in where[text])
        for other, count in shared.items():
            if count >= SHARED and count >= ALIKE * max(len(rare[at]), len(rare[other])):
                parent[root(at)] = root(other)
        for text in rare[at]:
            where[text].append(at)
    return [root(at) for at in range(len(sheets))]


def folded(sheets):
    names = families(sheets)
    order = sorted(set(names))
    random.Random(SEED).shuffle(order)
    place = {name: at % FOLDS for at, name in enumerate(order)}
    return [replace(one, fold=place[name]) for one, name in zip(sheets, names, strict=True)]


def read_by_row(sheets):
    """Step 1: the chances of the rows and the tables read row by row, by classifiers that have not seen the sheet.

    Like the shipped one they know nothing of Enron's sheets: with them it reads fewer tables right, row by row.
    """
    cases = mapped(_line_case, sheets)
    return [one for own in mapped(_read_fold, [(fold, sheets, cases) for fold in range(FOLDS)]) for one in own]


def _read_fold(part):
    fold, sheets, cases = part
    known = [case for case, one in zip(cases, sheets, strict=True) if one.fold != fold and case.source != ENRON]
    judge = lines.RowClassifier(lines.train(known), known)
    own = [one for one in sheets if one.fold == fold and one.tables]
    made = [
        Sheet("composed", f"composed-{fold}", "", "", rows, layout, tables, fold=fold)
        for rows, layout, tables in composed_sheets.make(
            [(one.rows, one.layout, one.tables) for one in own], COMPOSED, random.Random(SEED * FOLDS + fold)
        )
    ]
    return [_read(one, judge) for one in (*own, *made)]


def _line_case(one):
    source = "tables_enron_csv" if one.source == ENRON else one.source
    case = lines.Case(source=source, file=one.file, group=one.group, truth=one.truth, rows=one.rows, layout=one.layout)
    lines.label(case)
    case.source = one.source
    return case


def _read(one, judge):
    every = [replace(row, plain=False) for row in one.rows]
    chances = judge.chances_of(features.vectors(every, total=one.rows[-1].ordinal + 1))
    found = tables_read_by_row(one.rows, Hints({}, one.layout), judge)
    return replace(one, chances=chances, reading=[astuple(table.range) for table in found])


class Recorder(Cuts):
    """Remembers each place that is asked for, and says that a table may well end there."""

    def __init__(self, grid):
        super().__init__(grid, Forest(()), Forest(()))
        self.grid = grid
        self.places, self.gaps_seen = {}, {}

    def between(self, place):
        if place not in self.places:
            self.places[place] = row_cut(self.grid, place, self.gaps(place), self.repeats)
        return 0.5

    def beside(self, top, bottom, gap):
        if (top, bottom, gap) not in self.gaps_seen:
            self.gaps_seen[top, bottom, gap] = column_cut(self.grid, Rect(top, bottom, 0, self.grid.width - 1), gap)
        return 0.5


def rect_of(grid, area):
    """The rectangle of a grid that a box of row and column numbers covers; None if it has no kept row."""
    numbers = [row.number for row in grid.rows]
    top, bottom = bisect_left(numbers, area[0]), bisect_right(numbers, area[2]) - 1
    if top > bottom:
        return None
    return grid.trimmed(Rect(top, bottom, area[1] - 1, min(area[3], grid.width) - 1))


def readings(grid, one):
    return [rect for area in one.reading if (rect := rect_of(grid, area)) is not None]


def cut_cases(one):
    """The places of a sheet: vectors, whether a table ends there, and weights."""
    grid = one.grid()
    recorder = Recorder(grid)
    describer = Describer(grid, recorder, ())
    for rect in Regions(grid, recorder, FEW_REGIONS).divisions:
        describer.describe(rect)
    rows = [(vector, *_ends_between(grid, place, one.tables)) for place, vector in recorder.places.items()]
    columns = [(vector, *_ends_beside(grid, key, one.tables)) for key, vector in recorder.gaps_seen.items()]
    return rows, columns


def _ends_between(grid, place, tables):
    above, below = grid.rows[place.above].number, grid.rows[place.below].number
    return _ends((above, below), (place.left + 1, place.right + 1), tables, (0, 2), (1, 3))


def _ends_beside(grid, key, tables):
    top, bottom, gap = key
    spread = (grid.rows[top].number, grid.rows[bottom].number)
    return _ends((gap.first, gap.last + 2), spread, tables, (1, 3), (0, 2))


def _ends(pair, spread, tables, along, across):
    """Whether no table has both of a pair of rows or columns, and the share of the spread that a table is near."""
    ends, weight = 1.0, 0.0
    for table in tables:
        low, high = table[along[0]], table[along[1]]
        shared = min(table[across[1]], spread[1]) - max(table[across[0]], spread[0]) + 1
        if shared <= 0:
            continue
        if low <= pair[0] and high >= pair[1]:
            ends = 0.0
        if low <= pair[0] <= high or low <= pair[1] <= high:
            weight = max(weight, shared / (spread[1] - spread[0] + 1))
    return ends, max(weight, 0.15)


def train(parts, shape):
    """A booster from (vector, answer, weight)."""
    x = np.array([one for one, _, _ in parts], dtype=np.float32)
    y = np.array([one for _, one, _ in parts])
    w = np.array([one for _, _, one in parts])
    return lightgbm.train(PARAMETERS | shape, lightgbm.Dataset(x, y, weight=w / w.mean()))


def forest_of(booster):
    return Forest(tuple(lines._node(tree["tree_structure"]) for tree in booster.dump_model()["tree_info"]))


def weight_of(one, kind, count):
    kinds = {"composed": COMPOSED_WEIGHT[kind], "tasi_xlsx": 0.3}
    return kinds.get(one.source, 1.0) / math.sqrt(max(1, count))


def cut_forests(sheets, cases):
    out = []
    for kind in (0, 1):
        parts = [
            (vector, ends, weight * weight_of(one, "cuts", len(case[kind])))
            for one, case in zip(sheets, cases, strict=True)
            for vector, ends, weight in case[kind]
        ]
        out.append(forest_of(train(parts, CUTS)))
    return out


@dataclass
class Candidates:
    """The regions of a sheet and the tables that were read row by row, described."""

    whole: Rect
    divisions: dict
    reading: list
    boxes: dict  # by rectangle
    cells: dict
    vectors: dict
    designs: bool  # whether the format stores them
    equal: set  # rectangles over blocks with the same header, which are never a table


def candidates(one, forests):
    grid = one.grid()
    cuts = Cuts(grid, *forests)
    read = readings(grid, one)
    describer = Describer(grid, cuts, read)
    regions = Regions(grid, cuts, search.REGIONS)
    every = list(dict.fromkeys((*regions.divisions, *read)))
    parts = [part for ways in regions.divisions.values() for way in ways for part in way.regions.values()]
    return Candidates(
        regions.whole, regions.divisions, read, dict(zip(every, boxes(grid, every), strict=True)),
        {rect: grid.cells(rect) for rect in dict.fromkeys((*every, *parts))},
        {rect: describer.describe(rect) for rect in every},
        grid.designs.are_known, {rect for rect in every if has_equal_blocks(grid, rect)},
    )  # fmt: skip


THIN = 0.3  # share of rectangles far off any table that are used
FAR_OFF = 8


def rectangle_forests(sheets, cases):
    """The forests `rectangles`, `near` and `exact` of search.json."""
    rng = random.Random(SEED)
    known, near, exact = [], [], []
    for one, case in zip(sheets, cases, strict=True):
        count = len(case.vectors)
        for rect, vector in case.vectors.items():
            away = min((off(case.boxes[rect], table) for table in one.tables), default=99)
            unread = vector[: len(UNREAD)]
            if away <= CLOSE:
                exact.append((unread, float(not away), weight_of(one, "rectangles", 1)))
            far = away > FAR_OFF
            if far and rng.random() > THIN:
                continue
            weight = weight_of(one, "rectangles", count) / (THIN if far else 1.0)
            known.append((vector, 1.0 if not away else NEARLY if away <= EDGE else 0.0, weight))
            near.append((unread, float(away <= EDGE), weight / math.sqrt(max(1, count))))
    return [forest_of(train(known, RECTANGLES)), mean_forest(near, RECTANGLES), mean_forest(exact, EXACT)]


def mean_forest(parts, shape):
    """One forest whose log odds are the mean of several that differ in their seeds."""
    trees = [tree for seed in SEEDS for tree in forest_of(train(parts, shape | {"seed": seed})).trees]
    return Forest([_scaled(tree, 1 / len(SEEDS)) for tree in trees])


def _scaled(node, factor):
    if not isinstance(node, list):
        return round(node * factor, 5)
    return [*node[:2], *(_scaled(one, factor) for one in node[2:])]


def f1_of(tables, found):
    """The mean of the F1 with edges nearly right and with edges exact."""
    total = 0.0
    for most in (EDGE, 0):
        hits = sum(any(off(a, b) <= most for b in found) for a in tables)
        total += hits / max(1, len(tables) + len(found))
    return total


def boxes(grid, rects):
    return [(r.top, r.left, r.bottom, r.right) for r in map(grid.range_of, rects)]


def outcome_of(one, case, forests):
    """What the search finds: its tables, how much more they are worth than those read row by row, and how much better
    they are."""
    model = search.SearchModel(Forest(()), Forest(()), *forests, slope=0.0, offset=0.0)
    worth = search.chances_of(list(case.vectors.values()), model, has_designs=case.designs)
    chances = dict(zip(case.vectors, worth, strict=True)) | dict.fromkeys(case.equal, search.NEVER)
    most = search.REGIONS if case.designs else search.FEW_REGIONS
    divisions = dict(list(case.divisions.items())[:most])  # those of a lower limit are the first of a higher one
    solver = search.Solver(case.whole, divisions, chances, lambda rect: case.cells.get(rect, 0))
    best = solver.best()
    tables = [case.boxes[rect] for rect in best.tables]
    more = best.value - solver.value_of(case.reading).value
    return tables, more, f1_of(one.tables, tables) - f1_of(one.tables, one.reading)


def calibrate(outcomes):
    """Slope and offset of the log odds that the search is better than the reading, by how much more it is worth."""
    pairs = [(more, better > 0) for _, more, better in outcomes if better]
    x = np.array([one for one, _ in pairs])
    y = np.array([float(one) for _, one in pairs])
    line = np.zeros(2)
    columns = np.stack([x, np.ones_like(x)])
    for _ in range(50):  # Newton's method, with a little weight on no slope
        p = 1 / (1 + np.exp(-(line @ columns)))
        slant = (columns * (p * (1 - p))) @ columns.T + 0.01 * np.eye(2)
        line += np.linalg.solve(slant, columns @ (y - p) - 0.01 * line)
    return float(line[0]), float(line[1])


def chosen(one, outcome, margin):
    best, more, _ = outcome
    is_better = more > margin or one.layout.cell_designs
    return best if best and is_better else one.reading


def eob(sheets, found, most):
    """Recall and precision over all sheets: each table counts once."""
    hits = want = got = 0
    for one, tables in zip(sheets, found, strict=True):
        pairs = sorted(
            (off(a, b), i, j) for i, a in enumerate(one.tables) for j, b in enumerate(tables) if off(a, b) <= most
        )
        left, right = set(), set()
        for _, i, j in pairs:
            if i not in left and j not in right:
                left.add(i)
                right.add(j)
        hits, want, got = hits + len(left), want + len(one.tables), got + len(tables)
    return hits / want, hits / max(1, got)


def report(name, sheets, found):
    scores = report_enron(name, sheets, found)
    pairs = [
        (one.source, one.truth, [{"range": area, "header_rows": []} for area in tables])
        for one, tables in zip(sheets, found, strict=True)
        if one.source in TABLES
    ]
    means = score(pairs, quiet=True)
    own = {"corpus_recall": round(means["recall"], 3), "corpus_precision": round(means["precision"], 3)}
    print(" " * 22, own, flush=True)
    return scores | own


def report_enron(name, sheets, found):
    enron = [at for at, one in enumerate(sheets) if one.source == ENRON]
    own = [[sheets[at] for at in enron], [found[at] for at in enron]]
    near, exact = eob(*own, EDGE), eob(*own, 0)
    f1 = 2 * exact[0] * exact[1] / max(1e-9, sum(exact))
    scores = {"enron_eob2_recall": near[0], "enron_eob2_precision": near[1], "enron_eob0_f1": f1}
    scores = {key: round(value, 3) for key, value in scores.items()}
    print(f"{name:22}", scores, "misses:", kinds_of_misses(*own), flush=True)
    return scores


def found_by_product(part):
    """The tables that the product finds in a sheet of Enron with these forests.

    More than the search has a say in them: forms, rows of titles above a header.
    """
    one, forests = part
    model = search.SearchModel(*forests, slope=0.0, offset=0.0)
    search.load = lambda: model
    return [astuple(table.range) for table in tables_in(one.rows, Hints({}, one.layout), labelling.load())]


def reliability(outcomes, slope, offset):
    print("the search is better than the reading, of sheets where one of them is: said, counted, sheets")
    bins = collections.defaultdict(list)
    for _, more, better in outcomes:
        if better:
            said = 1 / (1 + math.exp(-(slope * more + offset)))
            bins[min(4, int(said * 5))].append((said, better > 0))
    for _, own in sorted(bins.items()):
        print(f"  {sum(s for s, _ in own) / len(own):.2f} {sum(b for _, b in own) / len(own):.2f} {len(own)}")


def cached(path, make):
    """What `make` returns, kept in a file between runs if there is a path."""
    if path is not None and path.exists():
        return pickle.loads(path.read_bytes())
    made = make()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(made))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus")
    parser.add_argument("enron")
    parser.add_argument("--write", action="store_true", help="train on all sheets and write search.json")
    parser.add_argument("--cache", type=pathlib.Path, help="a directory that keeps what each step made")
    given = parser.parse_args()

    def step(name, make):
        return cached(given.cache and given.cache / f"{name}.pkl", make)

    every = step("labelled", lambda: folded(labelled(given.corpus, given.enron)))
    sheets = step("read", lambda: read_by_row(every))
    print(len(sheets), "sheets read", flush=True)
    places = step("places", lambda: mapped(cut_cases, sheets))
    print(sum(len(a) for a, _ in places), sum(len(b) for _, b in places), "places", flush=True)
    others = [[at for at, one in enumerate(sheets) if one.fold != fold] for fold in range(FOLDS)]
    cuts = step("cuts", lambda: mapped(_cuts_of, [_of(own, sheets, places) for own in others]))
    cases = step("candidates", lambda: mapped(_candidates_of, [(one, cuts[one.fold]) for one in sheets]))
    print(sum(len(case.vectors) for case in cases), "rectangles", flush=True)
    reach(sheets, cases)
    by_fold = step("forests", lambda: mapped(_rectangles_of, [_of(own, sheets, cases) for own in others]))
    pairs = [(one, case) for one, case in zip(sheets, cases, strict=True) if one.source != "composed"]
    real = [one for one, _ in pairs]
    outcomes = step("outcomes", lambda: [outcome_of(one, case, by_fold[one.fold]) for one, case in pairs])
    slope, offset = calibrate(outcomes)
    print("slope", round(slope, 3), "offset", round(offset, 3))
    margin = search.MARGIN + search.UNSEEN
    scores = {
        "by_row": report("read row by row", real, [one.reading for one in real]),
        "search": report("searched", real, [best for best, _, _ in outcomes]),
        "chosen": report("chosen", real, [chosen(a, b, margin) for a, b in zip(real, outcomes, strict=True)]),
    }
    enron = [one for one in every if one.source == ENRON]
    known = [(one, (*cuts[one.fold], *by_fold[one.fold])) for one in enron]
    scores["product"] = report_enron(
        "as the product finds", enron, step("product", lambda: mapped(found_by_product, known))
    )
    for margin in MARGINS:
        report(f"worth {margin} more", real, [chosen(a, b, margin) for a, b in zip(real, outcomes, strict=True)])
    reliability(outcomes, slope, offset)
    if given.write:
        write(sheets, places, cases, (slope, offset), scores)


def mapped(make, parts):
    """`make` of each part, in several processes."""
    with Pool(JOBS) as pool:
        return list(pool.imap(make, parts, chunksize=1 if len(parts) == FOLDS else 8))


def _cuts_of(part):
    return cut_forests(*part)


def _candidates_of(part):
    return candidates(*part)


def _rectangles_of(part):
    return rectangle_forests(*part)


def _of(own, *lists):
    return [[one[at] for at in own] for one in lists]


def reach(sheets, cases):
    """How many marked tables are among the candidates: no model finds the others."""
    away = [
        min((off(table, area) for area in case.boxes.values()), default=99)
        for one, case in zip(sheets, cases, strict=True)
        if one.source == ENRON
        for table in one.tables
    ]
    shares = [sum(1 for one in away if one <= most) / len(away) for most in (EDGE, 0)]
    print("enron's tables among the candidates: nearly {:.3f}, exactly {:.3f}".format(*shares))


def kinds_of_misses(sheets, found):
    """Tables of Enron that are merged with others, split, off at an edge, or not found at all."""
    kinds = collections.Counter()
    for one, tables in zip(sheets, found, strict=True):
        for table in one.tables if one.source == ENRON else ():
            meeting = [other for other in tables if meets(table, other)]
            if any(off(table, other) <= EDGE for other in meeting):
                continue
            merged = len(meeting) == 1 and sum(meets(other, meeting[0]) for other in one.tables) > 1
            kinds["missed" if not meeting else "split" if len(meeting) > 1 else "merged" if merged else "edges"] += 1
    return dict(kinds)


def meets(a, b):
    return min(a[2], b[2]) >= max(a[0], b[0]) and min(a[3], b[3]) >= max(a[1], b[1])


def write(sheets, places, cases, line, scores):
    every = [*cut_forests(sheets, places), *rectangle_forests(sheets, cases)]
    counts = collections.Counter(one.source for one in sheets)
    whole = {
        "data": dict(sorted(counts.items())), "seed": SEED, "folds": FOLDS, "scores": scores,
        "slope": round(line[0], 3), "offset": round(line[1], 3),
        **{
            name: {"features": list(names), "trees": forest.trees}
            for (name, names), forest in zip(search.FEATURES.items(), every, strict=True)
        },
    }  # fmt: skip
    path = ROOT / "runner/engine/structure/search.json"
    path.write_text(json.dumps(whole, separators=(",", ":")) + "\n", encoding="utf-8")
    print("wrote", path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
