"""Scores of found tables against labelled sheets: the measures of the shared scorer, without its process calls.

header F1: over rows, all sheets of a set together. Leaf: the last header row of the first table is exact. Recall and
precision: tables none of whose edges is off by more than two rows or columns.
"""

import re

LINES = ["lines_saus", "lines_cius", "lines_deex", "lines_govuk", "lines_troy", "lines_mendeley"]
TABLES = ["deco_xlsx", "gov_xlsx", "tasi_xlsx", "regions_fuste", "tables_enron_csv"]
ONE_NAMED = {"tasi_xlsx"}  # its truth names one of several tables: what else is found is not wrong
NEAR = 2


def box(a1):
    found = re.match(r"\$?([A-Z]+)\$?(\d+)(?::\$?([A-Z]+)\$?(\d+))?$", a1)
    left, top, right, bottom = found[1], int(found[2]), found[3] or found[1], int(found[4] or found[2])
    return top, column(left), bottom, column(right)


def column(letters):
    n = 0
    for letter in letters:
        n = n * 26 + ord(letter) - 64
    return n


def off(a, b):
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


def counts(source, truth):
    """Whether a sheet of this truth is scored at all."""
    return source in LINES or ("tables" in truth and (truth.get("sheet") or not truth["file"].endswith(".xlsx")))


def score(found, *, quiet=False):
    """Means over the sets, from (set, truth, tables with `range` as a box and `header_rows`)."""
    sets = {}
    for source in LINES + TABLES:
        mine = [(truth, tables) for one, truth, tables in found if one == source]
        if mine:
            sets[source] = _score_set(source, mine)
            if not quiet:
                print(f"{source:18}", {key: round(value, 3) for key, value in sets[source].items()}, len(mine))

    def mean(names, key):
        values = [sets[name][key] for name in names if key in sets.get(name, {})]
        return round(sum(values) / max(1, len(values)), 3)

    means = {"header_f1": mean(LINES, "f1"), "leaf": mean(LINES + TABLES, "leaf")}
    means |= {"recall": mean(TABLES, "recall"), "precision": mean(TABLES, "precision")}
    if not quiet:
        print(f"{'mean':18}", means)
    return means


def _score_set(source, pairs):
    right = wrong = missed = leaf = headed = hit = good = want = got = 0
    for truth, tables in pairs:
        heads = header_rows(source, truth)
        mine = {row for one in tables for row in one["header_rows"]}
        right, wrong, missed = right + len(mine & heads), wrong + len(mine - heads), missed + len(heads - mine)
        first = min(tables, key=lambda one: one["range"], default=None)
        headed += bool(heads)
        if heads and first and first["header_rows"]:
            leaf += max(first["header_rows"]) == leaf_of(heads, truth.get("line_labels"))
        if source in TABLES:
            a, b = [box(one["range"]) for one in truth["tables"]], [one["range"] for one in tables]
            want, got = want + len(a), got + len(b)
            hit += sum(any(off(x, y) <= NEAR for y in b) for x in a)
            good += sum(any(off(x, y) <= NEAR for x in a) for y in b)
    out = {}
    if headed:
        out = {"f1": 2 * right / max(1, 2 * right + wrong + missed), "leaf": leaf / headed}
    if source in TABLES:
        out["recall"] = hit / max(1, want)
    if source in TABLES and source not in ONE_NAMED:
        out["precision"] = good / max(1, got)
    return out


def header_rows(source, truth):
    if source in LINES:
        return set(truth["header_rows"])
    return {row for one in truth["tables"] for row in one.get("header_rows", [])}


def leaf_of(heads, labels):
    """The last row of the first header block: header rows with nothing but blank rows between them."""
    block = sorted(heads)
    end = block[0]
    for row in block[1:]:
        if not (set(labels[end : row - 1]) <= {"empty"} if labels else row <= end + 2):
            break
        end = row
    return end
