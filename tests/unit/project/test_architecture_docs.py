"""The map in docs/explanation/architecture.md names files that exist, and the walk stays short."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
FILES = re.findall(r"`((?:core|handlers|infra|runner|console)/[\w/]+\.py)`", PAGE)


def test_every_file_of_the_map_exists():
    assert FILES
    assert [name for name in FILES if not (ROOT / name).is_file()] == []


def test_the_walk_of_one_drop_passes_at_most_thirty_five_steps_and_turns_back_once():
    steps = re.findall(r"^\| (\d+) \| `([\w/.]+)`", PAGE, re.MULTILINE)
    modules = [module for _, module in steps]
    assert [int(number) for number, _ in steps] == list(range(1, len(steps) + 1))
    assert len(steps) <= 35
    assert len(modules) - len(set(modules)) == 1


def test_the_rooms_of_the_engine_are_in_the_order_of_the_import_contract():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(c["layers"] for c in settings["contracts"] if c.get("containers") == ["runner.engine"])
    rooms = [name for layer in layers for name in layer.split(" | ") if name not in ("__main__", "scan", "job")]
    table = PAGE.partition("## The rooms of the engine")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert [name for line in lines for name in re.findall(r"`(\w+)(?:/|\.py)`", line)] == rooms


def test_no_two_modules_of_the_engine_share_a_name():
    names = [path.name for path in (ROOT / "runner" / "engine").rglob("*.py") if not path.name.startswith("__")]
    assert sorted(names) == sorted(set(names))


def test_no_two_public_classes_share_a_name():
    seen: dict[str, str] = {}
    twice = []
    for room in ("core", "handlers", "infra", "runner", "console"):
        for path in (ROOT / room).rglob("*.py"):
            for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE):
                if name in seen:
                    twice.append(f"{name}: {seen[name]} and {path.relative_to(ROOT)}")
                seen[name] = str(path.relative_to(ROOT))
    assert twice == []
