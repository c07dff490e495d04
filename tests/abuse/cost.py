"""What whatever somebody sends costs at worst: CPU seconds and MiB for each MB, found by a small search.

    python -m tests.abuse.cost            searches, prints the table of docs/explanation/cost.md
    python -m tests.abuse.cost manifest   one kind of thing only, with the shapes that were worst
    TRIALS=1000 SEED=8 python -m …        a longer search, and another one

An `Attack` says who sends a kind of thing, which texts it may be, and what the trusted side does with it. Texts are
grown from a few genes: a place in a document, a fragment that is repeated there, and a size. The search keeps the worst
and changes one gene at a time. Each trial runs in a process of its own, which measures itself: CPU by getrusage, memory
by the peak of its resident set above where it began. A small text of the same shape goes first: what a process takes at
its first use (its threads, their connections, pages of libraries: up to 7 MiB) it takes once, whatever is sent.

To add a kind of thing: append to `ATTACKS`; `tests/abuse/test_cost.py` holds every one to the limits.
"""

import contextlib
import json
import os
import pickle
import random
import resource
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from console.api import models, operations
from console.api.bodies import LARGEST_OF_STRANGERS
from console.facade import DOCUMENT
from console.web import review_page
from console.web.explanations import FindingFilter, explanation
from core.budget import plain, validate
from core.decisions import Decision, misfits
from core.drops import Package, Workflow, make_workflow, plan
from core.errors import ManifestInvalid
from core.jobs import dump_job
from core.memories import HeaderFact, answers_in, learn, serialized, shapes_in
from core.ports import ObjectInfo
from handlers.events import UnknownEvent, decode, newest
from infra import parsing
from runner.remembering import _PROFILE
from runner.staging import indexed

MB = 1_000_000
LEAST_MB = 0.1  # whatever is smaller is counted as this much: a request costs something, however small it is
MOST_SECONDS, MOST_MIB = 1.0, 50.0
_FIRST = 400  # bytes of the text that goes first

# What a list or an object is filled with.
ITEMS = (
    '""', "0", "null", "true", "[]", "{}", '{"":0}', "1.5", '"ab"', '"é"', '"\\u00e9"', "[[]]", "[0]", '{"a":{}}', "-1",
    '"x,y"', '{"name":"a"}', '{"header":"a","field":"b","at":"2026-01-01"}', '{"id":"a","value":null}', "1e999",
    "999999999999", '{"name":"r","then":{"field":"a","op":"==","value":1}}',
)  # fmt: skip
# What one long text is made of; a character beyond the first plane makes a text of a million four million bytes.
LETTERS = ("a", "é", "𝄞", '\\"', "\\u0041", "[", "\\\\", "(", "(?:a|", "[a-z]{1,9}", "a?")


@dataclass(frozen=True)
class Genes:
    place: int
    form: int  # list, object, text, number, nesting, objects of several keys
    item: int
    size: int  # bytes of the fragment


@dataclass(frozen=True)
class Attack:
    name: str
    by: str  # who sends it
    places: tuple[str, ...]  # documents with an @ where the fragment goes
    act: Callable[[bytes], object]
    most: int  # bytes that are read at all
    prepare: Callable[[], object] = int  # what a server has done long before, in the process of a trial
    wrap: Callable[[bytes], bytes] = bytes  # around the text: what is sent

    def text(self, genes: Genes) -> bytes:
        place = self.places[genes.place % len(self.places)]
        return self.wrap(place.replace("@", fragment(genes), 1).encode("utf-8", "surrogatepass"))


FORMS = 7


def fragment(genes: Genes) -> str:
    """A piece of JSON of about so many bytes."""
    item, letter = ITEMS[genes.item % len(ITEMS)], LETTERS[genes.item % len(LETTERS)]
    match genes.form % FORMS:
        case 0:
            return "[" + ",".join([item] * max(1, genes.size // (len(item.encode()) + 1))) + "]"
        case 1:
            return "{" + ",".join(f'"k{n}":{item}' for n in range(max(1, genes.size // (len(item) + 9)))) + "}"
        case 2:
            return '"' + letter * max(1, genes.size // len(letter.encode())) + '"'
        case 3:
            return "9" * min(genes.size, 4000) if genes.item % 2 else "1." + "3" * genes.size
        case 4:
            depth = 2 + genes.item % 60
            part = "[" * depth + "]" * depth
            return "[" + ",".join([part] * max(1, genes.size // (len(part) + 1))) + "]"
        case 5:
            keys = ",".join(f'"x{n}":{item}' for n in range(1 + genes.item % 40))
            return "[" + ",".join(["{" + keys + "}"] * max(1, genes.size // (len(keys) + 3))) + "]"
        case _:
            text = '"' + letter * 90 + '"'
            return "[" + ",".join([text] * max(1, genes.size // (len(text.encode()) + 1))) + "]"


@dataclass(frozen=True)
class Cost:
    genes: Genes
    size: int
    seconds: float
    mib: float

    @property
    def rates(self) -> tuple[float, float]:
        """Seconds and MiB for each MB."""
        counted = max(self.size / MB, LEAST_MB)
        return self.seconds / counted, self.mib / counted

    @property
    def worst(self) -> float:
        """The share of what is allowed."""
        return max(self.rates[0] / MOST_SECONDS, self.rates[1] / MOST_MIB)


def measure(attack: Attack, genes: Genes) -> Cost:
    """Run one trial in a fork."""
    body = attack.text(genes)
    source, target = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(source)
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        attack.prepare()
        with contextlib.suppress(Exception):
            attack.act(attack.text(replace(genes, size=min(genes.size, _FIRST))))
        Path("/proc/self/clear_refs").write_text("5")
        before, began = status("VmRSS"), _cpu()
        try:
            attack.act(body)
        finally:
            os.write(target, struct.pack("dd", _cpu() - began, max(0.0, (status("VmHWM") - before) / 1024)))
            os._exit(0)
    os.close(target)
    with os.fdopen(source, "rb") as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    seconds, mib = struct.unpack("dd", told) if told else (60.0, 10_000.0)
    return Cost(genes, len(body), seconds, mib)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def search(attack: Attack, *, trials: int, seed: int = 7) -> list[Cost]:
    """The worst trials, worst first."""
    rng = random.Random(seed)
    found: dict[Genes, Cost] = {}

    def drawn() -> Genes:
        size = int(attack.most * rng.choice([0.02, 0.1, 0.3, 0.9]))
        return Genes(rng.randrange(len(attack.places)), rng.randrange(FORMS), rng.randrange(200), size)

    def changed(genes: Genes) -> Genes:
        gene = rng.choice(["place", "form", "item", "size"])
        return replace(genes, **{gene: getattr(drawn(), gene)})

    for n in range(trials):
        best = sorted(found.values(), key=lambda cost: -cost.worst)[:6]
        genes = drawn() if n < trials // 2 or not best else changed(rng.choice(best).genes)
        if genes not in found:
            found[genes] = measure(attack, genes)
    return sorted(found.values(), key=lambda cost: -cost.worst)


def table(rows: Iterable[tuple[Attack, Cost]]) -> str:
    lines = ["| what | who sends it | most bytes | s per MB | MiB per MB |", "| --- | --- | --- | --- | --- |"]
    for attack, cost in rows:
        seconds, mib = cost.rates
        lines.append(f"| {attack.name} | {attack.by} | {attack.most} | {seconds:.2f} | {mib:.0f} |")
    return "\n".join(lines)


# What the trusted side does with each kind of thing


def _apart(act: Callable[..., object], *given: object) -> Any:
    """What is read apart comes back as a pickle; the process that read it has a memory of its own."""
    return pickle.loads(pickle.dumps(act(*given), protocol=5))


def _manifest(body: bytes) -> object:
    """Read it, plan one file, write the rows."""

    def info(key: str) -> Any:
        return ObjectInfo(key=key, version="1", digest="1", size=1, modified=1.0)

    found = _apart(parsing._manifest, body)
    if isinstance(found, list):
        return json.dumps([problem.as_dict() for problem in found])
    try:
        workflow: Workflow = make_workflow(found, info("inbox/acme/manifest.json"))
    except ManifestInvalid as error:
        return error
    jobs = plan(workflow, [info("inbox/acme/a.csv")], package=Package((), 0.0), auxiliary={}, now=0.0)
    return [len(dump_job(job)) for job in jobs]


def _memory(body: bytes) -> object:
    """Check it, index it for a box, summarize it for a page."""

    _apart(parsing._summary, body)
    return _apart(indexed, [body]) if parsing._valid_memory(body) is True else None


def _learning(body: bytes) -> object:
    """Read it, add to it, write it again."""

    found = _apart(parsing._memory, body)
    if isinstance(found, list):
        return found
    return serialized(learn(found, [HeaderFact("a", "b", "me")], at=datetime.now(UTC)))


def _decision(body: bytes) -> object:

    found = _apart(parsing._decision, body)
    if not isinstance(found, Decision):
        return found
    return misfits(found, workflows={"m": frozenset(f"field_{n}" for n in range(2000))})


def _profile(body: bytes) -> object:

    try:
        found = plain(body, _PROFILE)
    except ValueError as error:
        return str(error)
    return answers_in(found, sender="a", by="b"), shapes_in(found, sender="a", by="b", decided=False)


def _event(body: bytes) -> object:

    try:
        return newest(decode(body))
    except UnknownEvent as error:
        return str(error)


def _request(model: str) -> Callable[[bytes], object]:
    def act(body: bytes) -> object:
        found = _apart(parsing.body_of, body, operations.BUDGET)
        if isinstance(found, list):
            return found
        return validate(getattr(models, model), found.raw, values=found.values, wording=operations._described)

    return act


def _review_page(body: bytes) -> object:
    """The questions of a job, as its page shows them."""

    try:
        document = plain(body, DOCUMENT)
    except ValueError as error:
        return str(error)
    asked = review_page.questions(document if isinstance(document, dict) else None)
    return review_page.fingerprint(asked or [])


def _artifact_page(body: bytes) -> object:

    try:
        document = plain(body, DOCUMENT)
    except ValueError as error:
        return str(error)
    return explanation(document if isinstance(document, dict) else None, FindingFilter())


@cache
def loaded() -> None:
    """Import everything before a trial measures it, and make what is made once."""
    for attack in ATTACKS:
        for place in attack.places[:2]:
            attack.act(place.replace("@", "[[]]", 1).encode())
            attack.act(place.replace("@", "[" + ",".join(["0"] * 3000) + "]", 1).encode())


_M = '{"manifest":1,"name":"m","fields":[{"name":"a"}],'
_F = '{"manifest":1,"name":"m","fields":[{"name":"a",'
_MANIFESTS = (
    "@", '{"a":@}', '{"manifest":1,"name":"m","fields":@}', _M + '"params":@}', _M + '"sweep":@}', _M + '"rules":@}',
    _M + '"inputs":{"primary":@}}', _M + '"inputs":{"auxiliary":@}}', _M + '"reading":{"sheets":@}}', _M + '"notify":@}',
    _M + '"reading":{"header_rows":@}}', _M + '"mapping":{"memory":@}}', _M + '"sweep":{"x":@}}', _M + '"description":@}',
    _M + '"rules":[{"name":"r","then":{"field":"a","op":"in","value":@}}]}', _M + '"expect":{"by":"12:00","tz":@}}',
    _F + '"synonyms":@}]}', _F + '"allowed":@}]}', _F + '"formats":@}]}', _F + '"pattern":@}]}', _F + '"clean":@}]}',
    _F + '"min":@}]}', _F + '"label":@}]}', _M + '"params":{"p":@},"sweep":{"x":[1,2,3,4,5,6,7,8,9,10]}}',
    _M + '"x":1,"not_before":@}', _M[:-1] + ',"name":@}', _F + '"map":@}]}', _F + '"from":{"columns":@}}]}',
    _F + '"from":{"expression":@}}]}', _M + '"rows":{"sort":@}}', _M + '"rules":[{"name":"r","unique":@}]}',
)  # fmt: skip
_E = '"at":"2026-01-01"'
_MEMORIES = (
    "@", '{"memory":1,"headers":@}', '{"memory":1,"values":@}', '{"memory":1,"shapes":@}', '{"memory":1,"readings":@}',
    '{"memory":1,"a":@}', '{"memory":1,"headers":[{"header":"a","field":"b",' + _E + ',"senders":@}]}',
    '{"memory":1,"shapes":[{"sender":"a","sheet":"b",' + _E + ',"headers":@}]}', '{"memory":1,"headers":[{"header":@}]}',
    '{"memory":1,"shapes":[{"sender":"a","sheet":"b",' + _E + ',"fields":@}]}',
)  # fmt: skip
_DECISIONS = ("@", '{"decision":1,"by":"a","answers":@}', '{"decision":1,"by":@}', '{"decision":1,"by":"a","x":@}',
              '{"decision":1,"by":"a","answers":[{"id":"a","header_rows":@}]}')  # fmt: skip
_PROFILES = (
    "@",
    '{"tables":@}',
    '{"answers":@}',
    '{"tables":[{"headers":@}]}',
    '{"tables":[{"fields":@,"sheet":"a"}]}',
)
_EVENTS = ("@", '{"Records":@}', '{"a":@}', '{"Type":"Notification","Message":@}', '{"Records":[{"s3":@}]}',
           '{"event_type":"create","key":"/buckets/a/b","message":@}')  # fmt: skip
_REVIEWS = ("@", '{"questions":@}', '{"questions":[{"id":"a","candidates":@}]}')
_ARTIFACTS = (
    "@", '{"summary":{},"validation":{"findings":@,"total":1},"pass_history":[]}',
    '{"summary":{},"sheets":@,"validation":{"findings":[],"total":0},"pass_history":[]}',
    '{"summary":{},"mapping":@,"validation":{"findings":[],"total":0},"pass_history":[]}',
)  # fmt: skip
_BODIES = ("@", '{"a":@}')

_BODY = 4 * 1024 * 1024
_KEYS = (*_BODIES, '{"tenant":"a","keys":@}')
_UPLOADS = (*_BODIES, '{"tenant":"a","names":@}')
_ACTS = (*_BODIES, '{"act":"retry","filter":@}', '{"act":"retry","filter":{"state":@}}')

ATTACKS: list[Attack] = [
    Attack("manifest, also at `/drop/check`", "tenant, sender token", _MANIFESTS, _manifest, 1024 * 1024),
    Attack("memory, as a job reads it and a page shows it", "tenant", _MEMORIES, _memory, 8 * 1024 * 1024),
    Attack("memory, as something is learnt", "tenant", _MEMORIES, _learning, 8 * 1024 * 1024),
    Attack("decision", "tenant, reviewer token", _DECISIONS, _decision, 256 * 1024),
    Attack("profile of a drop", "tenant's rules", _PROFILES, _profile, 1024 * 1024),
    Attack("event", "webhook token, queue", _EVENTS, _event, 1024 * 1024),
    Attack("review.json, as a page shows it", "tenant's rules", _REVIEWS, _review_page, 4 * 1024 * 1024),
    Attack("artifact.json, as a page shows it", "tenant's rules", _ARTIFACTS, _artifact_page, 4 * 1024 * 1024),
    Attack("`POST /jobs` (keys)", "sender token", _KEYS, _request("KeysBody"), _BODY),
    Attack("`POST /uploads`", "sender token", _UPLOADS, _request("UploadBody"), _BODY),
    Attack("`POST /jobs/acts`", "operator token", _ACTS, _request("ActBody"), _BODY),
    Attack(
        "`POST /jobs/{job_id}/decide`", "reviewer token", (*_BODIES, '{"answers":@}'), _request("DecideBody"), _BODY
    ),
    Attack("`POST /session`", "stranger", (*_BODIES, '{"token":@}'), _request("SessionBody"), LARGEST_OF_STRANGERS),
]


def main(names: Sequence[str]) -> None:
    chosen = [attack for attack in ATTACKS if not names or any(name in attack.name for name in names)]
    loaded()
    rows = []
    for attack in chosen:
        worst = search(attack, trials=int(os.environ.get("TRIALS", "200")), seed=int(os.environ.get("SEED", "7")))
        by_time = max(worst, key=lambda cost: cost.rates[0])
        by_memory = max(worst, key=lambda cost: cost.rates[1])
        counted = max(by_time.size / MB, LEAST_MB)
        both = replace(by_time, mib=by_memory.rates[1] * counted)
        rows.append((attack, both))
        for cost in (by_time, by_memory) if names else ():
            print(attack.name, cost, attack.text(cost.genes)[:150], file=sys.stderr)
        print(table(rows[-1:]).splitlines()[-1], file=sys.stderr)
    print(table(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
