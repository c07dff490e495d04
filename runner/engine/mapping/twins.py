"""Tables with one header, stacked, side by side or over several sheets: their columns are decided by all their values.

A block is not mapped otherwise than its twin because its own values happen to look like something else."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from runner.engine.common.spelling import normalized
from runner.engine.tables.sources import SAMPLED, SourceTable

Samples = list[list[Any]]


def pool_samples(tables: Sequence[SourceTable], samples: Mapping[str, Samples]) -> dict[str, Samples]:
    """Pool the first values of the columns of tables with the same header, by table, so that all of them are mapped
    alike; tables without such a twin are not in it."""
    ids_by_header: dict[tuple[str, ...], list[str]] = {}
    for table in tables:
        if table.table.header_rows:
            names = tuple("" if c.generated else normalized(c.name) for c in table.columns)
            ids_by_header.setdefault(names, []).append(table.id)
    pooled_samples: dict[str, Samples] = {}
    for names, ids in ids_by_header.items():
        if len(ids) > 1 and any(names):
            share = max(1, SAMPLED // len(ids))
            columns = zip(*(samples[table_id][: len(names)] for table_id in ids), strict=True)
            pooled = [list(chain.from_iterable(part[:share] for part in parts))[:SAMPLED] for parts in columns]
            pooled_samples |= dict.fromkeys(ids, pooled)
    return pooled_samples
