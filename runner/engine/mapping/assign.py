"""Give every column at most one field and every field at most one column, with the greatest total score."""

from typing import Final

EXACT_UP_TO: Final = 150  # the exact method is cubic; larger knots are solved greedily and then improved
Pairs = dict[tuple[int, int], float]  # (column, field) -> score


def assign(pairs: Pairs) -> dict[int, int]:
    """column -> field. Equal totals prefer columns further left, then fields declared earlier."""
    chosen: dict[int, int] = {}
    for columns, fields in _knots(pairs):
        if max(len(columns), len(fields)) <= EXACT_UP_TO:
            chosen |= _exact(columns, fields, pairs)
        else:
            chosen |= _greedy(columns, fields, pairs)
    return chosen


def _knots(pairs: Pairs) -> list[tuple[list[int], list[int]]]:
    """Columns and fields that compete with each other, directly or through others."""
    of_column: dict[int, set[int]] = {}
    of_field: dict[int, set[int]] = {}
    for column, field in pairs:
        of_column.setdefault(column, set()).add(field)
        of_field.setdefault(field, set()).add(column)
    knots: list[tuple[list[int], list[int]]] = []
    seen: set[int] = set()
    for start in sorted(of_column):
        if start in seen:
            continue
        columns: set[int] = set()
        fields: set[int] = set()
        todo = [start]
        while todo:
            column = todo.pop()
            if column in columns:
                continue
            columns.add(column)
            for field in of_column[column] - fields:
                fields.add(field)
                todo += of_field[field] - columns
        seen |= columns
        knots.append((sorted(columns), sorted(fields)))
    return knots


def _exact(columns: list[int], fields: list[int], pairs: Pairs) -> dict[int, int]:
    """Shortest augmenting paths (the Hungarian method); a column may also stay without a field at score 0."""
    rows, width = len(columns), len(fields) + len(columns)
    cost = [[0.0] * width for _ in columns]
    for i, column in enumerate(columns):
        for j, field in enumerate(fields):
            score = pairs.get((column, field))
            tie = 1e-9 * (i * len(fields) + j)
            cost[i][j] = 1e-6 if score is None else tie - score
    match = _hungarian(cost, rows, width)
    return {columns[i]: fields[j] for i, j in match.items() if j < len(fields) and (columns[i], fields[j]) in pairs}


def _hungarian(cost: list[list[float]], rows: int, width: int) -> dict[int, int]:
    infinite = float("inf")
    potential_row, potential_column = [0.0] * (rows + 1), [0.0] * (width + 1)
    owner, way = [0] * (width + 1), [0] * (width + 1)
    for row in range(1, rows + 1):
        owner[0], at = row, 0
        slack, used = [infinite] * (width + 1), [False] * (width + 1)
        while owner[at]:
            used[at] = True
            line, base = cost[owner[at] - 1], potential_row[owner[at]]
            delta, nearest = infinite, 0
            for j in range(1, width + 1):
                if used[j]:
                    continue
                here = line[j - 1] - base - potential_column[j]
                if here < slack[j]:
                    slack[j], way[j] = here, at
                if slack[j] < delta:
                    delta, nearest = slack[j], j
            for j in range(width + 1):
                if used[j]:
                    potential_row[owner[j]] += delta
                    potential_column[j] -= delta
                else:
                    slack[j] -= delta
            at = nearest
        while at:
            owner[at], at = owner[way[at]], way[at]
    return {owner[j] - 1: j - 1 for j in range(1, width + 1) if owner[j]}


def _greedy(columns: list[int], fields: list[int], pairs: Pairs) -> dict[int, int]:
    """Best pair first, and what is left over takes its next choice."""
    inside, wanted = set(columns), set(fields)
    ranked = sorted((-s, c, f) for (c, f), s in pairs.items() if c in inside and f in wanted)
    chosen: dict[int, int] = {}
    taken: set[int] = set()
    for _, column, field in ranked:
        if column not in chosen and field not in taken:
            chosen[column] = field
            taken.add(field)
    return chosen
