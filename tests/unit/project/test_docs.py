"""The pages: every link and anchor leads somewhere, every page is in the index, every page that code names exists."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
SIMULATOR = (DOCS / "contributing" / "simulator.md").read_text()
LINK = re.compile(r"\]\(([^)\s:]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
MENTION = re.compile(r"(?<![\w./-])(?:docs/[\w./-]*\w|(?:tests|tools)/[\w/]+\.py)")


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    counted: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text()), re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        found.add(f"{anchor}-{counted[anchor]}" if counted[anchor] else anchor)
        counted[anchor] += 1
    return found


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_and_anchor_leads_somewhere(page: Path):
    broken = []
    for link in LINK.findall(FENCED.sub("", page.read_text())):
        target, _, anchor = link.partition("#")
        place = (page.parent / target).resolve() if target else page
        if not place.exists() or (anchor and anchor not in anchors(place)):
            broken.append(link)
    assert broken == []


def test_the_index_has_every_page_once():
    index = DOCS / "README.md"
    linked = Counter((DOCS / link).resolve() for link in LINK.findall(index.read_text()))
    pages = {page for page in PAGES if DOCS in page.parents and page != index and page.parent.name != "decisions"}
    assert sorted(map(named, pages - linked.keys())) == []
    assert [named(page) for page, times in linked.items() if times > 1] == []


def test_every_page_is_on_a_shelf():
    assert [page.name for page in DOCS.glob("*.md")] == ["README.md"]


def test_every_page_and_test_that_is_named_anywhere_exists():
    """In messages, comments, pages and templates."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    missing = []
    for name in listed.splitlines():
        path = ROOT / name
        if path.suffix in (".png", ".xlsx", ".xls", ".zip") or not path.is_file():
            continue
        mentions = MENTION.findall(path.read_text(encoding="utf-8", errors="replace"))
        if name.startswith("tests/"):  # tests make up names of tests
            mentions = [mention for mention in mentions if mention.startswith("docs/")]
        missing += [f"{name}: {mention}" for mention in mentions if not (ROOT / mention).exists()]
    assert missing == []


def test_the_changelog_says_added_changed_or_fixed_in_one_line_each():
    newest = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1]
    headings = re.findall(r"^### (.+)$", newest, re.MULTILINE)
    assert headings == [h for h in ("Added", "Changed", "Fixed") if h in headings] != []
    before, *sections = re.split(r"^### .+$", newest, flags=re.MULTILINE)
    assert "\n- " not in before, "put the line under ### Added, ### Changed or ### Fixed"
    lines = [line for section in sections for line in section.splitlines() if line]
    assert [line for line in lines if not line.startswith("- ")] == [], "one line each"


def test_the_page_about_the_simulator_knows_all_that_a_trace_says():
    sources = [path.read_text() for path in (ROOT / "tests" / "sim").glob("*.py")]
    words = {word for text in sources for word in re.findall(r'\.trace\((?:label, )?"([^"]+?)"', text)}
    counts = {name for text in sources for name in re.findall(r'met\["(\w+)"\]', text)}
    assert len(words) > 8
    assert len(counts) > 12
    assert sorted(word for word in words - {"→"} if word not in SIMULATOR) == []
    assert sorted(name for name in counts if name not in SIMULATOR) == []
