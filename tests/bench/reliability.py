"""How far the matcher's probabilities can be trusted, and what mapping costs.

    python -m tests.bench.reliability                     # tables that were not trained on
    python -m tests.bench.reliability --senders FILE      # headers of real senders, learnt from other senders
    python -m tests.bench.reliability --cost              # what one mapping takes of a box's CPU, first and later

In each row of the table, `right` should be near the middle of its range of probabilities.
"""

import argparse
import csv
import gc
import json
import os
import random
import statistics
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any, Final, NamedTuple

from core.manifests import parse_manifest
from runner.engine import job
from runner.engine.common.fields import Field
from runner.engine.mapping.column_evidence import ColumnIn
from runner.engine.mapping.sample import Sample
from runner.engine.mapping.score import IN_SHORT, choose
from runner.engine.memory.learnt import read_memories
from runner.engine.memory.recall import Recall
from runner.engine.protocol import EventWriter, read_order
from runner.engine.values.convert import fold
from runner.sandbox.box.zygote import rehearse
from runner.sandbox.jail import rehearsal
from runner.staging import SeenMemories
from tools.made_tables import CONCEPTS, Case, World, cases, values

EDGES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0001)
KINDS = {"number": "house_number", "street": "street", "unit": "unit", "city": "place", "district": "district", "region": "region", "postcode": "postcode", "id": "identifier", "lat": "latitude", "lon": "longitude"}  # fmt: skip


def chosen(case: Case) -> list[tuple[float, bool]]:
    """Each column's likeliest field: its probability, and whether it is right."""
    found = choose(
        case.columns, case.fields, threshold=0.0, detected={}, allowed=lambda _: None, recall=Recall(case.entries)
    )
    return [(c.probability, case.truth.get(c.position) == c.field) for c in found if c.field and c.tier != "name"]


def of_senders(path: Path, learnt: int) -> list[tuple[float, bool]]:
    rng = random.Random(1)
    senders = [json.loads(line) for line in path.read_text().splitlines()]
    rng.shuffle(senders)
    test, rest = senders[:300], senders[300 : 300 + learnt]
    recall = Recall([{"header": h, "field": f} for s in rest for h, f in s["columns"].items() if h.strip()])
    fields = [Field({"name": name, "label": CONCEPTS[c][2][0]}) for name, c in FIELD_CONCEPTS.items()]
    out = []
    for sender in test:
        world = World(rng, invented=0.0)
        others = [world.header(c) for c in rng.sample(sorted(set(CONCEPTS) - set(FIELD_CONCEPTS.values())), 4)]
        plan = [(h, KINDS[f], f) for h, f in sender["columns"].items() if h.strip()]
        plan += [(h, rng.choice(list(KINDS.values())), None) for h in others]
        columns = [ColumnIn(n, (h,), Sample(values(kind, rng, 25))) for n, (h, kind, _) in enumerate(plan)]
        found = choose(columns, fields, threshold=0.0, detected={}, allowed=lambda _: None, recall=recall)
        out += [(c.probability, plan[c.position][2] == c.field) for c in found if c.field and c.tier != "name"]
    return out


FIELD_CONCEPTS = {"number": "house_number", "street": "street", "unit": "unit", "city": "city", "district": "district", "region": "region", "postcode": "postcode", "id": "identifier", "lat": "latitude", "lon": "longitude"}  # fmt: skip


def show(pairs: list[tuple[float, bool]]) -> None:
    print(f"{'probability':>14} {'columns':>8} {'mean':>6} {'right':>6}")
    for low, high in pairwise(EDGES):
        here = [(p, ok) for p, ok in pairs if low <= p < high]
        if here:
            mean, right = sum(p for p, _ in here) / len(here), sum(ok for _, ok in here) / len(here)
            print(f"{low:>6.2f} to {min(1, high):.2f} {len(here):>8} {mean:>6.3f} {right:>6.3f}")


BOXES: Final = 15
TYPES: Final = ("text", "integer", "date", "decimal", "boolean", "phone", "email", "text")


def cost() -> None:
    """Forks as the zygote does, which has carried out its rehearsal: each turn starts in a new box, as each job does."""
    fields, entries, raw = wide_table()
    plain = [{"name": field.name} for field in fields]
    typed = [{**spec, "type": TYPES[n % len(TYPES)]} for n, spec in enumerate(plain)]
    rehearse(job, rehearsal())
    with tempfile.TemporaryDirectory() as folder:
        learnt, nothing = staged(entries, Path(folder)), Learnt((), None)
        gc.collect()
        gc.freeze()
        print("CPU in a box for mapping a table and reading what was learnt, ms (load", f"{os.getloadavg()[0]:.1f})")
        print(f"{'':<48} {'in a job: p50':>14} {'p90':>6} {'in a new box: p50':>18} {'p90':>6} {'again':>6}")
        most = [(f"{header} {n}", cells) for n in range(9) for header, cells in raw][:500]
        for name, known, specs, columns, boxes in (
            ("60 columns, 40 fields, 5,000 headers learnt", learnt, plain, raw, BOXES),
            ("the same, 3 of 4 fields with a type", learnt, typed, raw, BOXES),
            ("60 columns, 40 fields, nothing learnt", nothing, plain, raw, BOXES),
            ("the same, 3 of 4 fields with a type", nothing, typed, raw, BOXES),
            ("8 columns, 8 fields, nothing learnt", nothing, plain[:8], raw[:8], BOXES),
            ("60 columns, 736 fields, a third with values", nothing, large_target(736), raw, BOXES),
            ("500 columns, 2,000 fields, a third with values", nothing, large_target(2000), most, 2),
        ):
            table = Table(known, specs, columns, Path(folder) / "table.csv")
            table.write()
            jobs = [in_box(table.mapped_by_job) for _ in range(boxes)]
            alone = [in_box(table.mapped, 6 if boxes == BOXES else 2) for _ in range(boxes)]
            firsts, later = [spent[0] for spent in alone], [min(spent[1:]) for spent in alone]
            figures = (*quantiles([spent[0] for spent in jobs]), *quantiles(firsts), statistics.median(later))
            print(
                f"{name:<48} {figures[0]:>14.1f} {figures[1]:>6.1f} {figures[2]:>18.1f} {figures[3]:>6.1f} {figures[4]:>6.1f}"
            )


def quantiles(spent: list[float]) -> tuple[float, float]:
    """The median and the 90th percentile."""
    return statistics.median(spent), statistics.quantiles(spent, n=10)[-1]


class Learnt(NamedTuple):
    """The files that a box reads."""

    memories: tuple[tuple[Path, str], ...]
    headers: Path | None


def staged(entries: list[dict[str, object]], folder: Path) -> Learnt:
    """The memory as the runner stages it, and what that costs outside of the box."""
    body = json.dumps({"memory": 1, "headers": entries}).encode()
    seen = SeenMemories()
    for turn in ("once for a memory's content", "from then on"):
        start = process_time()
        found = seen.staged([body], ("",))
        print(f"staging {len(entries)} headers, {turn}: {1000 * (process_time() - start):.1f} ms of CPU in the runner")
    (folder / "memory").write_bytes(found.bodies[0])
    (folder / "headers").write_bytes(found.headers or b"")
    return Learnt(((folder / "memory", "memory"),), folder / "headers")


def in_box(work: Callable[[], float], times: int = 1) -> list[float]:
    """What some work says in a new box, once or several times."""
    ours, theirs = os.pipe()
    if (box := os.fork()) == 0:
        gc.set_threshold(100_000, 50, 100)  # as the engine does
        os.write(theirs, json.dumps([work() for _ in range(times)]).encode())
        os._exit(0)
    os.waitpid(box, 0)
    spent: list[float] = json.loads(os.read(ours, 10_000))
    os.close(ours)
    os.close(theirs)
    return spent


def allowed_values(field: Field) -> frozenset[Any] | None:
    return None if field.allowed is None else frozenset(map(fold, field.allowed))


class Table(NamedTuple):
    learnt: Learnt
    specs: list[dict[str, Any]]
    columns: list[tuple[str, list[Any]]]
    path: Path

    def write(self) -> None:
        with self.path.open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow([header for header, _ in self.columns])
            out.writerows(zip(*[cells for _, cells in self.columns], strict=True))

    def mapped(self) -> float:
        """Milliseconds of CPU for mapping, and nothing else before it."""
        fields = [Field(spec) for spec in self.specs]
        start = process_time()
        recall = Recall(read_memories(self.learnt.memories, (), self.learnt.headers).headers)
        columns = [ColumnIn(n, (h,), Sample(v)) for n, (h, v) in enumerate(self.columns)]
        choose(columns, fields, threshold=0.7, detected={}, allowed=allowed_values, recall=recall)
        return 1000 * (process_time() - start)

    def mapped_by_job(self) -> float:
        """The same for a whole pass, after the job has read the file and found its table."""
        manifest = parse_manifest(json.dumps({"manifest": 1, "name": "wide", "fields": self.specs}).encode())
        order = {
            "order": 1,
            "manifest": manifest.model_dump(mode="json"),
            "inputs": [{"role": "primary", "name": "table.csv", "path": str(self.path)}],
            "outputs": {},
            "memories": [{"path": str(path), "key": name} for path, name in self.learnt.memories],
            "headers": self.learnt.headers and {"path": str(self.learnt.headers)},
        }
        spent = [timed(job, "read_memories"), timed(job.EngineJob, "_map_all")]
        (table,) = job.EngineJob(read_order(order, self.path.parent), EventWriter(None)).map_only(IN_SHORT)
        assert [column.name for column in table.source.columns] == [header for header, _ in self.columns]
        return 1000 * sum(map(sum, spent))


def timed(owner: Any, name: str) -> list[float]:
    """Replace a function by one that also adds the seconds of CPU that it takes to a list."""
    real, spent = getattr(owner, name), []

    def call(*args: Any, **kwargs: Any) -> Any:
        start = process_time()
        try:
            return real(*args, **kwargs)
        finally:
            spent.append(process_time() - start)

    setattr(owner, name, call)
    return spent


def wide_table() -> tuple[list[Field], list[dict[str, object]], list[tuple[str, list[Any]]]]:
    """40 fields, 5,000 headers learnt, 60 columns."""
    rng = random.Random(5)
    world = World(rng, invented=0.5)
    names = sorted(list(CONCEPTS)[:80])  # those of addresses, people and trade: what is added later changes no figure
    fields = [Field({"name": c}) for c in names[:40]]
    entries: dict[str, dict[str, object]] = {}
    while len(entries) < 5000:
        field = rng.randrange(40)
        header = f"{World(rng, invented=0.5).header(names[field])}{rng.choice(['', '_1', '_x', 'a', 'b2'])}"
        entries[header.casefold()] = {
            "header": header,
            "field": fields[field].name,
            "at": "2026-01-31T00:00:00Z",
            "count": 2,
        }
    plan = [(world.header(c), CONCEPTS[c][1]) for c in rng.choices(names, k=60)]
    return fields, list(entries.values()), [(h, values(kind, rng, 40)) for h, kind in plan]


def large_target(fields: int) -> list[dict[str, Any]]:
    """Fields of two to four words, as registries have them; every third is an enum of up to 40 values."""
    rng = random.Random(8)
    words = sorted({word for name in CONCEPTS for word in name.split("_") if word.isalpha()})
    specs: dict[str, dict[str, Any]] = {}
    while len(specs) < fields:
        name = "_".join(rng.sample(words, rng.randint(2, 4)))
        allowed = [" ".join(rng.sample(words, rng.randint(1, 3))) for _ in range(rng.randint(3, 40))]
        specs[name] = {"name": name} | ({"type": "enum", "allowed": allowed} if len(specs) % 3 == 0 else {})
    return list(specs.values())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--senders", type=Path)
    parser.add_argument("--learnt", type=int, default=300)
    parser.add_argument("--cost", action="store_true")
    options = parser.parse_args()
    if options.cost:
        cost()
    elif options.senders:
        show(of_senders(options.senders, options.learnt))
    else:
        show([pair for case in cases(4711, 400) for pair in chosen(case)])


if __name__ == "__main__":
    main()
