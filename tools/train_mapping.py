"""Trains the matcher's small models on tables that the project makes up, and writes runner/engine/mapping/matcher.json.

    python -m tools.train_mapping            # train, say how well it does on tables not trained on
    python -m tools.train_mapping --write    # and write the weights

Two linear models: classes of values from a column's profile, then the weights of a pair's evidence. The second learns
on the first one's answers for columns it has not seen. Nothing is needed but Python; it takes a minute or two.
"""

import argparse
import json
import random
from math import exp, log
from pathlib import Path

from runner.engine.mapping import matcher
from runner.engine.mapping.evidence import Weigher
from runner.engine.mapping.matcher import NAMES, MatcherModel
from runner.engine.mapping.traits import TRAITS, class_log_odds, class_weights, traits_of
from runner.engine.memory.recall import Recall
from tools.made_tables import CONCEPTS, cases, values

TARGET = Path(matcher.__file__).parent / "matcher.json"
COLUMNS = 260  # of each class of values
TABLES = 1800
# Set by hand and left alone: the made-up tables have none or too few of these.
BY_HAND = {
    "exact": 7.0, "same_words": 5.5, "nearly_same": 2.5, "similar_words": 0.9, "generic_differs": 1.85, "inside": 2.0, "subject": 2.2, "replaced": -3.0,
    "pattern": 5.5, "pattern_against": -3.0, "allowed": 5.0, "allowed_against": -3.0, "type_rare": 2.5,
    "type_against": -2.5, "neighbour": 0.4, "confirmed_other": -0.2, "other_role": -2.5, "contrary": -12.0,
    "described": 3.0,
}  # fmt: skip

# Log-odds that a pair gains by being chosen, since a field has one column: the pairs are trained one by one. Set on
# made-up tables not trained on, so that what is chosen at .7 is right as often as before, and more is chosen.
CHOSEN = 0.5


def columns(seed, count):
    rng = random.Random(seed)
    kinds = sorted({kind for _, kind, _ in CONCEPTS.values()})
    out = []
    for kind in kinds:
        for _ in range(count):
            made = values(kind, rng)
            texts = [str(v) for v in made if v is not None]
            if len(texts) >= 3 and (vector := traits_of(texts)) is not None:
                out.append((kind, vector))
    rng.shuffle(out)
    return kinds, out


def fit_values(seed=1, rounds=25, rate=0.4, decay=2e-5):
    kinds, rows = columns(seed, COLUMNS)
    weights = {kind: [0.0] * (len(TRAITS) + 1) for kind in kinds}
    sparse = [(kind, [(0, 1.0)] + [(n + 1, x) for n, x in enumerate(v) if x]) for kind, v in rows]
    rng = random.Random(seed)
    for turn in range(rounds):
        rng.shuffle(sparse)
        step = rate / (1 + 0.3 * turn)
        for kind, row in sparse:
            scores = {k: sum(w[n] * x for n, x in row) for k, w in weights.items()}
            top = max(scores.values())
            whole = sum(exp(s - top) for s in scores.values())
            for k, w in weights.items():
                gap = (k == kind) - exp(scores[k] - top) / whole
                if abs(gap) > 1e-4:
                    for n, x in row:
                        w[n] += step * (gap * x - decay * w[n])
    return {"classes": {k: [round(x, 2) for x in w] for k, w in weights.items()}}


def weighted(numbers):
    """The numbers that have a weight; nearness depends on the others, and comes on top of them."""
    return {name: x for name, x in numbers.items() if name in NAMES}


def prepared(made):
    """Each column's pairs as numbers, and which of them is right (None: no field)."""
    rows = []
    for case in made:
        weigher = Weigher(case.columns, case.fields, lambda _: None, Recall(case.entries))
        totals = weigher.totals()
        for column in case.columns:
            mine = [n for n in range(len(case.fields)) if n in totals[column.position]]
            known = {case.fields[n].name: weighted(weigher.evidence(column.position, n).numbers) for n in mine}
            right = case.truth.get(column.position)
            if known:
                rows.append((list(known.values()), list(known).index(right) if right in known else None))
    return rows


def fit_pairs(rows, rounds=14, rate=0.05, decay=1e-4):
    weights = dict.fromkeys(NAMES, 0.0) | {"prior": -4.0, "exact": 7.0, "same_words": 5.0, "meaning": 3.0} | BY_HAND
    squares = dict.fromkeys(NAMES, 1e-3)
    rng = random.Random(1)
    for _ in range(rounds):
        rng.shuffle(rows)
        for pairs, right in rows:
            scores = [weights["prior"] + sum(weights[k] * x for k, x in p.items()) for p in pairs]
            top = max(0.0, *scores)
            whole = exp(-top) + sum(exp(s - top) for s in scores)
            change = {}
            for n, p in enumerate(pairs):
                gap = (n == right) - exp(scores[n] - top) / whole
                if abs(gap) > 1e-5:
                    change["prior"] = change.get("prior", 0.0) + gap
                    for k, x in p.items():
                        change[k] = change.get(k, 0.0) + gap * x
            for k, g in change.items():
                if k in BY_HAND:
                    continue
                squares[k] += g * g
                weights[k] += rate * 4 * g / squares[k] ** 0.5 - decay * rate * weights[k]
    return {k: round(w, 3) for k, w in weights.items()}


def told(rows, weights):
    """Log-loss, and of the columns that pass .7 how many are right."""
    loss = right_ones = given = wanted = 0
    for pairs, right in rows:
        scores = [weights["prior"] + sum(weights[k] * x for k, x in p.items()) for p in pairs]
        whole = 1 + sum(exp(min(30, s)) for s in scores)
        chances = [exp(min(30, s)) / whole for s in scores]
        loss -= log(max(1e-9, 1 / whole if right is None else chances[right]))
        best = max(range(len(scores)), key=lambda n: scores[n])
        wanted += right is not None
        if chances[best] >= 0.7:
            given += 1
            right_ones += best == right
    return loss / len(rows), right_ones / max(1, given), right_ones / max(1, wanted)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--keep-values", action="store_true", help="train only the pairs' weights")
    options = parser.parse_args()
    seen = json.loads(TARGET.read_bytes())["values"] if options.keep_values else fit_values()
    classes = class_weights(seen["classes"])
    nothing = dict.fromkeys((*NAMES, "allowed_learnt", "nearness", "many_fields"), 0.0)
    matcher.read_model = lambda: MatcherModel(nothing, classes)
    _, fresh = columns(99, 40)
    hits = sum(max(c := class_log_odds(v, classes), key=c.get) == kind for kind, v in fresh)
    print(f"classes of values: {hits / len(fresh):.3f} of {len(fresh)} columns not trained on")
    rows = prepared(cases(7, options.tables))
    print(f"{len(rows)} columns")
    weights = fit_pairs(rows)
    weights["prior"] = round(weights["prior"] + CHOSEN, 3)
    for seed in (70, 71):
        loss, precision, recall = told(prepared(cases(seed, 200)), weights)
        print(f"log-loss {loss:.3f}, precision {precision:.3f}, recall {recall:.3f} at .7")
    print(json.dumps(weights, indent=1))
    if options.write:
        lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(w)}" for k, w in seen["classes"].items())
        pairs = ",\n".join(f"  {json.dumps(k)}: {w}" for k, w in weights.items())
        TARGET.write_text(f'{{\n "values": {{"classes": {{\n{lines}\n }}}},\n "pair": {{\n{pairs}\n }}\n}}\n')


if __name__ == "__main__":
    main()
