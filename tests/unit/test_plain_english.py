"""Names, comments, docs and messages stay plain: phrases that were weeded out do not come back."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
NAMES = re.compile(
    r"\bdef _?(?:look|looks|tell|tells|told|stands|hear|hears|heard|said|say|says|told_\w+|tell_\w+|look_at_\w+|stands_\w+)\b|\bclass \w*Look\b"
)


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


def test_no_function_is_called_look_or_tell():
    found = [
        f"{path.relative_to(ROOT)}: {hit[0]}"
        for path in product_files()
        if path.suffix == ".py"
        for hit in NAMES.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []
