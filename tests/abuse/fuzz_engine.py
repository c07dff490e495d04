"""Throw mutated workbooks and random manifests at the engine: it may refuse them, but only in its own words.

python -m tests.abuse.fuzz_engine [--seconds 600] [--seed N] [FOLDER of workbooks ...]

Prints one line per untyped end and keeps the input that caused it beside this script's --keep folder. Exit 1 if any.
"""

import argparse
import io
import json
import random
import signal
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path

from core.errors import ManifestInvalid
from core.fields import NUMERIC, Clean, FieldType
from core.manifests import parse_manifest
from tests.support.engine_jobs import run_order, workbook

PATIENCE = 30  # seconds for one input
TOKENS = [
    b"<", b">", b"</row>", b"<row>", b'r="A1"', b'r="XFD1048576"', b't="s"', b't="e"', b't="b"', b't="d"', b's="99999"',
    b"<v>1e999</v>", b"<v>-1</v>", b"<v>NaN</v>", b"<v></v>", b"&#0;", b"&amp;", b"\0", b"\xff\xfe", b"<!DOCTYPE x>",
    b"<is><t>x</t></is>", b"<f>1+1</f>", b'count="-1"', b'ref="A1:XFD1048576"', b"1900", b"2958466", b"0.99999999999",
]  # fmt: skip
HEADS = ["id", "Member #", "start date", "pay", "plan", "", None, 7, "id", "=x", "a" * 300, "日付"]
CELLS = [
    None,
    "",
    " ",
    "x",
    "M0001",
    "$1,234.50",
    "2026-01-31",
    "31/12/2020",
    0,
    -1,
    1.5,
    1e300,
    10**18,
    True,
    "=1+1",
    "#N/A",
    "a\nb",
    "é" * 50,
    "<&>",
]
RULES = [
    "def transform(*, value):\n    return value\n",
    "def transform(*, values):\n    return values[:-1]\n",
    "def transform(*, value):\n    return str(value) * 2\n",
    "def validate(*, values):\n    return {'issues': [{'index': 0, 'message': 'm'}]}\n",
    "def detect_x(*, header, values_sample):\n    return {'scores': {'f0': len(values_sample) / 9}}\n",
    "def validate(*, value):\n    raise ValueError(value)\n",
]


def random_sheet(pick: random.Random) -> list[list[object]]:
    width = pick.randrange(1, 8)
    rows: list[list[object]] = [[pick.choice(CELLS)] for _ in range(pick.randrange(3))]
    rows.append([pick.choice(HEADS) for _ in range(width)])
    rows += [[pick.choice(CELLS) for _ in range(width)] for _ in range(pick.randrange(30))]
    return rows


def random_manifest(pick: random.Random) -> dict[str, object]:
    def field(n: int) -> dict[str, object]:
        kind = pick.choice(list(FieldType))
        bounds = {"date": "2026-01-01", "datetime": "2026-01-01T10:00", "time": "12:00"}
        temporal, numeric = kind in bounds, kind in NUMERIC
        options: dict[str, object] = {
            "required": pick.random() < 0.5,
            "unique": pick.random() < 0.3,
            "synonyms": [str(pick.choice(HEADS)) or "x"],
            "clean": pick.sample(list(Clean), pick.randrange(4)),
            "pattern": pick.choice(["M[0-9]+", ".*", "(a|b)+", ""]),
            "max_length": pick.randrange(9),
            "number_format": pick.choice(["0.0", '"x"0', "[Red]0"]),
        }
        if temporal:
            options["formats"] = [pick.choice(["%Y/%m/%d", "%d-%b-%Y", "%H:%M", "%j", "%Z%z"])]
        if temporal and kind != "time":
            options["day_first"] = pick.choice([True, False])
        if numeric:
            options["decimal"] = pick.choice([".", ","])
        if temporal or numeric:
            options["min"] = options["default"] = bounds.get(kind, pick.choice([0, -5.5, 10**20]))
        else:
            options["allowed"] = ["x", 1, True]
        chosen = pick.sample(sorted(options), pick.randrange(6))
        need = {"allowed": ["x", "y"]} if kind == "enum" else {}
        return {"name": f"f{n}", "type": kind, **need, **{k: options[k] for k in chosen}}

    return {
        "manifest": 1,
        "name": "fuzz",
        "fields": [field(n) for n in range(pick.randrange(1, 6))],
        "mapping": {"threshold": pick.choice([0, 0.1, 0.5, 1]), "unmapped": pick.choice(["keep", "prefix", "drop"])},
        "rules": [{"name": "r", "then": {"field": "f0", "op": pick.choice(["==", "<", ">="]), "other": "f0"}}]
        * pick.randrange(2),
        "reading": {"hidden_sheets": pick.choice(["skip", "read"]), "hidden_rows": pick.choice(["skip", "read"])},
        "output": {"findings_sheet": pick.random() < 0.3},
        "redact_headers": pick.random() < 0.2,
        "on_rule_error": pick.choice(["finding", "fail"]),
    }


def bitten(pick: random.Random, data: bytes) -> bytes:
    """Some bytes changed, cut, doubled or replaced by tokens that mean something."""
    body = bytearray(data)
    for _ in range(pick.randrange(1, 6)):
        at = pick.randrange(len(body) + 1)
        match pick.randrange(4):
            case 0:
                body[at:at] = pick.choice(TOKENS)
            case 1:
                del body[at : at + pick.randrange(1, 40)]
            case 2:
                body[at : at + 1] = bytes([pick.randrange(256)])
            case _:
                body[at:at] = body[at : at + pick.randrange(1, 200)]
    return bytes(body)


def mutated(pick: random.Random, data: bytes) -> bytes:
    """A workbook with one of its parts bitten, or bitten as a whole."""
    if pick.random() < 0.2 or not data.startswith(b"PK"):
        return bitten(pick, data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {n: archive.read(n) for n in archive.namelist()}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError):
        return bitten(pick, data)
    out = io.BytesIO()
    victim = pick.choice(sorted(parts))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in parts.items():
            archive.writestr(name, bitten(pick, body) if name == victim else body)
    return out.getvalue()


def run_once(pick: random.Random, seeds: list[Path], folder: Path) -> tuple[str, str]:
    """One input through the engine: how it ended, and the detail of an untyped end."""
    source = folder / "in"
    if seeds and pick.random() < 0.6:
        source.write_bytes(mutated(pick, pick.choice(seeds).read_bytes()))
    else:
        workbook(folder / "made.xlsx", {"S": random_sheet(pick), "T": random_sheet(pick)})
        body = (folder / "made.xlsx").read_bytes()
        source.write_bytes(mutated(pick, body) if pick.random() < 0.5 else body)
    try:
        manifest = parse_manifest(json.dumps(random_manifest(pick)).encode())
    except ManifestInvalid:
        return "manifest refused", ""
    config = None
    if pick.random() < 0.3:
        (folder / "config" / "columns").mkdir(parents=True, exist_ok=True)
        (folder / "config" / "columns" / "f0.py").write_text(pick.choice(RULES))
        config = "config"
    outputs = {n: n for n in ("normalized.xlsx", "artifact.json")}
    order = {
        "order": 1,
        "manifest": manifest.model_dump(mode="json"),
        "inputs": [{"role": "primary", "name": pick.choice(["a.xlsx", "a.csv", "a"]), "path": "in"}],
        "config": {"path": config},
        "outputs": outputs,
    }
    end = run_order(order, folder).end
    if end["ok"]:
        return "ok", ""
    error = end["error"]
    return error["code"], json.dumps(error) if error["code"] == "engine_error" else ""


def fuzz(seconds: float, seed: int, seeds: list[Path], keep: Path | None) -> tuple[Counter[str], list[str]]:
    ends: Counter[str] = Counter()
    broken: list[str] = []
    stop = time.monotonic() + seconds
    turn = 0
    signal.signal(signal.SIGALRM, _too_slow)
    while time.monotonic() < stop:
        turn += 1
        pick = random.Random(f"{seed}/{turn}")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            signal.alarm(PATIENCE)
            try:
                end, detail = run_once(pick, seeds, folder)
            except TimeoutError:
                end, detail = "too slow", f"over {PATIENCE} s"
            finally:
                signal.alarm(0)
            ends[end] += 1
            if detail:
                broken.append(f"seed {seed}/{turn}: {detail}")
                if keep is not None:
                    keep.mkdir(parents=True, exist_ok=True)
                    (keep / f"{seed}-{turn}").write_bytes((folder / "in").read_bytes())
    return ends, broken


def _too_slow(*_: object) -> None:
    raise TimeoutError


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("folders", nargs="*", type=Path)
    options = parser.parse_args()
    seeds = [p for f in options.folders for p in sorted(f.rglob("*")) if p.is_file() and p.stat().st_size < 300_000]
    ends, broken = fuzz(options.seconds, options.seed, seeds, options.keep)
    print(dict(ends))
    print("\n".join(broken[:50]))
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
