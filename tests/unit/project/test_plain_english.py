"""Names, comments, docs and messages stay plain: phrases that were weeded out do not come back."""

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[3]
ROOMS = ("core", "handlers", "infra", "runner", "console")
PAGES = ("README.md", "CHANGELOG.md")
# What reads as translated, and what to write instead.
BANNED = {
    r"\bof ours\b": "our, or name the thing",
    r"\bhave had (?:its|their) day\b": "expired",
    r"\bhas had its day\b": "expired",
    r"\bIs it well\?": "Health checks",
    r"\ball is well\b": "no problems found",
    r"\blook(?:s|ed)? (?:at|through|after)\b": "scan, check, read, maintain",
    r"\b(?:is|are|was|were|be|been) told\b": "reported, notified, asked, given",
    r"\b(?:hears?|heard|hearing) of\b": "learn of, is notified of",
    r"\banew\b": "again, afresh",
    r"\bfor good\b": "permanently, irrevocably",
    r"\b(?:that|which) is none\b": "invalid, not a …",
    r"\bmeanwhile\b": "in the meantime, by then",
    r"\bhow (?:things|it|they) stands?\b": "the current state",
    r"\btells? of\b": "announce, report, describe",
    r"\btold of\b": "reported",
    r"\bis heard\b|\bare heard\b": "received",
    r"\bkeeps? no other (?:back|waiting)\b": "does not block the others",
    r"\bunder way\b": "in progress",
    r"\bmade anew\b|\bmakes (?:it|them) anew\b": "create again",
    r"\bstands? (?:already|further|beside|there|in|at|behind|above|against|still|elsewhere)\b": "is, exists",
    r"\bcan(?:not)? be had\b": "is (not) available",
    r"(?<!There )\bis no (?:JSON|file|folder|email|number|date|text|list|state|scope)\b": "is not a …",
    r"\bwithout a word\b": "without notice",
    r"\bno harm\b(?! to)": "harmless",
    r"\bwhoever (?:looks|comes by|is told)\b": "name who",
    r"\bfor ever\b": "forever",
    r"\bsee to (?:it|its|that|the)\b": "check",
    r"\b(?:[Aa]|[Tt]he|[Oo]f|[Ii]ts|[Ww]ith|[Aa]ll|that|were|was|be|to|may|it|people|sender) mend(?:s|ed)?\b": "correct, fix",
    r"\bMended (?:rejects|rows)\b|\bMend (?:it|the)\b": "correct, fix",
}
# Forms of verbs that do not say what is done: a name with one of them hides what a value is (docs/reference/glossary.md has better ones).
EMPTY_VERBS = frozenset({
    "give", "gives", "giving", "given", "gave", "say", "says", "saying", "said", "tell", "tells", "telling", "told",
    "keep", "keeping", "kept", "take", "takes", "taking", "taken", "took", "settle", "settles", "settling", "settled",
    "mend", "mends", "mending", "mended", "look", "looks", "looked", "hear", "hears", "heard", "hearing",
})  # fmt: skip
# Names of stored data, settings, commands and ports of others; they cannot change with the code.
STORED = {
    ("core/jobs.py", "mends"): "a field of rows and of result.json",
    ("core/verdicts.py", "MENDS"): "a verdict in rows",
    ("runner/attempt.py", "mends"): "as in the row",
    ("runner/worker.py", "mends"): "as in the row",
    ("core/memories.py", "said_at"): "a field of memories",
    ("core/settings.py", "settle_seconds"): "ADE_SETTLE_SECONDS",
    ("core/settings.py", "keep_latest_days"): "ADE_KEEP_LATEST_DAYS",
    ("core/settings.py", "max_keep_days"): "ADE_MAX_KEEP_DAYS",
    ("core/jobs.py", "keep_days"): "as in the manifest",
    ("core/manifests.py", "keep_days"): "a key of the manifest",
    ("handlers/intake.py", "settle_seconds"): "as the setting",
    ("handlers/planning.py", "settle_seconds"): "as the setting",
    ("infra/deploy/plan.py", "given"): "a field of `ade deploy plan --json`",
    ("console/api/models.py", "keep_input"): "a field of a request",
    ("runner/control.py", "keep_input"): "as in the request",
    ("runner/engine/document_types.py", "settle"): "a field of artifact.json",
    ("runner/engine/document_types.py", "kept"): "a field of artifact.json",
    ("runner/engine/document_types.py", "mends"): "a field of artifact.json",
    ("runner/engine/common/findings.py", "settle"): "as in artifact.json",
    ("runner/engine/reading/books.py", "settle"): "as in artifact.json",
    ("runner/engine/structure/tables.py", "settle"): "as in artifact.json",
    ("runner/engine/values/convention_choices.py", "settle"): "as in artifact.json",
    ("core/manifests.py", "keep"): "a key of manifests",
    ("runner/engine/options.py", "keep"): "as in the manifest",
}


class Habits(NamedTuple):
    """What a room may have at most, in a hundred. A share only goes down."""

    participles: float  # names that are a bare participle, such as `found`: how a value came about, not what it is
    vague: float = 100.0  # names that could be anything, such as `one`
    undocumented: float = 100.0  # functions of five lines and more that do not state their contract


MOST = {
    "core/": Habits(7.2),
    "handlers/": Habits(11.3),
    "infra/": Habits(8.2),
    "console/": Habits(7.7),
    "runner/": Habits(13.4),
    "runner/sandbox/": Habits(7.0),
    "runner/engine/": Habits(6.0, vague=0.2, undocumented=4.0),
    "runner/engine/common/": Habits(4.6, vague=0.2, undocumented=6.0),
    "runner/engine/comparing/": Habits(5.2, vague=0.2, undocumented=2.0),
    "runner/engine/contract/": Habits(7.6, vague=0.2, undocumented=2.0),
    "runner/engine/corrections/": Habits(6.1, vague=0.2, undocumented=2.0),
    "runner/engine/deciding/": Habits(8.5, vague=0.2, undocumented=2.0),
    "runner/engine/drafting/": Habits(5.0, vague=0.2, undocumented=2.0),
    "runner/engine/expressions/": Habits(10.8, vague=0.2, undocumented=2.0),
    "runner/engine/mapping/": Habits(7.1, vague=0.2, undocumented=2.0),
    "runner/engine/memory/": Habits(6.3, vague=0.2, undocumented=2.0),
    "runner/engine/pages/": Habits(5.3, vague=2.3, undocumented=2.0),
    "runner/engine/reading/": Habits(5.7, vague=0.2, undocumented=2.0),
    "runner/engine/rejects/": Habits(7.4, vague=0.2, undocumented=2.0),
    "runner/engine/rules/": Habits(3.4, vague=0.2, undocumented=2.0),
    "runner/engine/structure/": Habits(5.6, vague=0.7, undocumented=2.0),
    "runner/engine/surveying/": Habits(7.6, vague=0.2, undocumented=2.0),
    "runner/engine/tables/": Habits(7.5, vague=0.2, undocumented=2.0),
    "runner/engine/transforming/": Habits(7.4, vague=0.2, undocumented=2.0),
    "runner/engine/values/": Habits(5.2, vague=0.2, undocumented=2.0),
    "runner/engine/verifying/": Habits(6.7, vague=0.2, undocumented=2.0),
    "runner/engine/writing/": Habits(5.5, vague=0.2, undocumented=2.0),
}
VAGUE = frozenset({"one", "found", "held", "odd", "own", "it", "thing", "off"})
IRREGULAR = frozenset({
    "found", "known", "made", "shown", "seen", "gone", "held", "lost", "left", "written", "drawn", "begun", "done", "sent",
    "met", "kept", "given", "said", "told", "taken", "learnt", "brought", "caught", "built", "read",
})  # fmt: skip
FUNCTIONS = re.compile(r"\bdef _?(?:stands|stands_\w+)\b|\bclass \w*Look\b")


def product_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = listed.splitlines()
    rooms = tuple(f"{room}/" for room in ROOMS)
    return [
        ROOT / n
        for n in names
        if (n.startswith(rooms) and n.endswith(".py")) or (n.startswith("docs/") and n.endswith(".md")) or n in PAGES
    ]


def prose(path: Path) -> str:
    """A file's text; of a page without what it quotes from a program."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"`[^`\n]+`", "``", text) if path.suffix == ".md" else text


@pytest.mark.parametrize("phrase", BANNED)
def test_no_phrase_that_was_weeded_out_comes_back(phrase: str):
    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, hit.start()) + 1}: {hit[0]!r}; write: {BANNED[phrase]}"
        for path in product_files()
        if path.exists()
        for text in [prose(path)]
        for hit in re.finditer(phrase, text)
    ]
    assert found == []


def words_of(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def names_in(path: Path) -> Iterator[tuple[int, str]]:
    """Every name that a module gives to something, with its line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr


def modules(below: str = "") -> list[tuple[str, Path]]:
    named = [(path.relative_to(ROOT).as_posix(), path) for path in product_files() if path.suffix == ".py"]
    return [(name, path) for name, path in named if path.exists() and name.startswith(below)]


def test_no_name_hides_what_is_done():
    found = [
        f"{name}:{line}: {word}; docs/reference/glossary.md has words that say what is done"
        for name, path in modules()
        for line, word in names_in(path)
        if (name, word) not in STORED and EMPTY_VERBS & set(words_of(word))
    ]
    assert found == []


def in_room(room: str) -> list[tuple[str, Path]]:
    """The modules of a room that are in no smaller one."""
    return [
        (name, path)
        for name, path in modules(room)
        if max((other for other in MOST if name.startswith(other)), key=len) == room
    ]


@pytest.mark.parametrize("room", MOST)
def test_names_say_what_a_value_is_rather_than_how_it_came_about(room: str):
    names = [word for _, path in in_room(room) for _, word in names_in(path)]
    check_share(room, names, [word for word in names if is_participle(word)], MOST[room].participles)


@pytest.mark.parametrize("room", [room for room, most in MOST.items() if most.vague < 100])
def test_names_could_not_be_anything(room: str):
    names = [word for _, path in in_room(room) for _, word in names_in(path)]
    check_share(room, names, [word for word in names if word in VAGUE], MOST[room].vague)


@pytest.mark.parametrize("room", [room for room, most in MOST.items() if most.undocumented < 100])
def test_functions_of_some_length_state_their_contract(room: str):
    functions = [
        (f"{name}:{node.name}", ast.get_docstring(node))
        for name, path in in_room(room)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= 5 and node.name[:2] != "__"
    ]
    undocumented = [function for function, contract in functions if not contract]
    check_share(room, functions, undocumented, MOST[room].undocumented)


def check_share(room: str, every: Sequence[object], bad: Sequence[str], most: float) -> None:
    share = 100 * len(bad) / len(every)
    assert share <= most, (
        f"{share:.2f} of 100 in {room}, {most} allowed; the most frequent: {Counter(bad).most_common(8)}"
    )


def is_participle(name: str) -> bool:
    match words_of(name):
        case [word]:
            return word in IRREGULAR or (len(word) > 4 and word.endswith("ed"))
    return False


def test_no_function_is_called_stands_or_class_look():
    found = [
        f"{name}: {hit[0]}" for name, path in modules() for hit in FUNCTIONS.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []
