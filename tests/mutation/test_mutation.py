"""The mutator makes the mutants it claims, and a test set with a hole leaves survivors."""

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

from tests.mutation.mutants import mutants_of
from tests.mutation.run import MODULES, ROOT, load_explained, mutants_in


def mutations(source):
    return {m.mutation for m in mutants_of("m.py", textwrap.dedent(source).encode())}


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("x = a < b", {"a < b → a <= b"}),
        ("x = a is b", {"a is b → a is not b"}),
        ("x = a and b", {"a and b → a or b", "a and b → a", "a and b → b"}),
        ("x = not a", {"not a → a"}),
        ("x = 3", {"3 → 4", "3 → 2"}),
        ("x = True", {"True → False"}),
        ("x = a + b", {"a + b → a - b"}),
        ("x = f(a, b)", {"f(a, b) → f(b, a)"}),
        ("x = f(k=a)", {"f(k=a) → f()"}),
        ("x = max(a, b)", {"max(a, b) → min(a, b)"}),
        ("x = a if b else c", {"a if b else c → a", "a if b else c → c"}),
        ("x = {a, b}", {"{a} → {}", "{b} → {}"}),
        ("x = {'a': b}", {"{'a': b} → {}"}),
        ("x = [a for a in b if a]", {"for a in … if a → for a in …"}),
        ("if a:\n    f()", {"a → True", "a → False", "f() → pass"}),
        ("def f(a=1):\n    return a", {"1 → 2", "return a → return None"}),
        ("try:\n    f()\nexcept E:\n    g()", {"f() → pass", "except E: … → raise", "g() → pass"}),
        ("def f():\n    raise E('said')", {"raise E('said') → pass"}),
    ],
)
def test_each_change_has_its_mutants(source, wanted):
    assert mutations(source) == wanted


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""',
        "import a",
        "x: int | None",
        "def f(a: int | None) -> 'int': ...",
        "@dataclass(frozen=True)\nclass A:\n    pass",
        "self._log.info('said', n=1)",
        "x = f'{a} of {b + 1}'",
        "x = f(reason='some text')",
        "class A:\n    def __init__(self, a):\n        self._a = a",
    ],
)
def test_texts_types_logs_and_kept_arguments_are_left_alone(source):
    assert {m for m in mutations(source) if not m.startswith(("f(", "..."))} == set()


def test_a_mutant_keeps_its_key_when_lines_are_added_above_it():
    one = mutants_of("m.py", b"def f(a):\n    return a > 1\n")
    two = mutants_of("m.py", b"x = ()\n\n\ndef f(a):\n    return a > 1\n")
    assert [m.key for m in one] == [m.key for m in two]
    assert len({m.key for m in one}) == len(one)


def test_every_module_of_the_spine_is_there_and_has_mutants():
    for module in MODULES:
        assert mutants_in(module), f"{module} has no mutants"


def test_every_explained_survivor_is_still_a_mutant():
    made = {(m.module, m.function, m.mutation) for module in MODULES for m in mutants_in(module)}
    stale = [f"{module} {function}: {mutation}" for module, function, mutation in load_explained() if
             (module, function, mutation) not in made]  # fmt: skip
    assert stale == [], "tests/mutation/survivors.toml names what is no longer a mutant"


def test_a_test_set_with_a_hole_leaves_survivors(tmp_path):
    """A project of one module, one function without a test for its limit, and one constant that nobody checks."""
    (tmp_path / "core").mkdir()
    (tmp_path / "tests/spine").mkdir(parents=True)
    shutil.copytree(ROOT / "tests/mutation", tmp_path / "tests/mutation", ignore=shutil.ignore_patterns("test_*"))
    (tmp_path / "core/__init__.py").touch()
    (tmp_path / "core/jobs.py").write_text("LIMIT = 5\nOTHER = 7\n\n\ndef few(n):\n    return n < LIMIT\n")
    (tmp_path / "tests/spine/test_few.py").write_text(
        "import pytest\nfrom core.jobs import few\n\n"
        "@pytest.mark.parametrize('n', range(100))\n"
        "def test_few_and_many_by_a_name_that_is_longer_than_any_pipe_likes(n):\n"
        "    assert few(1) and few(4) and not few(6)\n"
    )
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    words = [sys.executable, "-m", "tests.mutation", "core/jobs.py"]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    told = done.stdout
    assert "few  [100 tests pass]\n  - n < LIMIT\n  + n <= LIMIT" in told, told + done.stderr
    assert "(module)  [100 tests pass]\n  - 7\n  + 8" in told
    assert "return n < LIMIT" not in told, "its mutant is killed"
    assert done.returncode == 1
