"""How much a text is like the other texts of its column: what parts a value from a name, a caption or a note."""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

COMMON = 0.2  # share of a column's texts that makes a way of writing usual there
READ = 8  # words of a text to read
SEEN = 2  # texts of one exact form that make it known


class Look(NamedTuple):
    """How a text is written."""

    form: str  # its characters by class, runs drawn together: "Sue Smith" is "Aa Aa", "SKU-017" is "A-9"
    style: str  # lower, upper, title, sentence, none
    digits: bool
    signs: frozenset[str]  # signs inside that tell addresses, codes and paths from words
    words: int
    length: int


_SIGNS = frozenset('@_/\\#=|<>[]{}$%&*:;"')


def _class(char: str) -> str:
    if char.isdigit():
        return "9"
    if char.isalpha():
        return "A" if char.isupper() else "a" if char.islower() else "x"
    return " " if char.isspace() else char


@lru_cache(maxsize=20_000)
def look(text: str) -> Look:
    """How a text is written; long ones are judged by their beginning."""
    bare = " ".join(text[:200].split())
    form = "".join([char for char, _ in groupby(map(_class, bare))])
    words = bare.split(" ")
    letters = [word[0] for word in words if word[:1].isalpha()]
    if not any(map(str.isalpha, bare)) or bare.lower() == bare.upper():
        style = "none"
    elif bare.lower() == bare:
        style = "lower"
    elif bare.upper() == bare:
        style = "upper"
    elif letters and all(map(str.isupper, letters)):
        style = "title"
    else:
        style = "sentence" if bare[0].isupper() else "mixed"
    return Look(form, style, any(map(str.isdigit, bare)), _SIGNS.intersection(bare), len(words), len(bare))


class Profile:
    """What the texts of a column look like."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = Counter(" ".join(text.split()) for text in texts)
        looks = [look(text) for text in self.texts.elements()]
        self.count = len(looks)
        self.forms = Counter(one.form for one in looks)
        self.styles = Counter((one.style, one.digits, one.signs) for one in looks)
        self.words = (min(one.words for one in looks), max(one.words for one in looks)) if looks else (0, 0)
        self.lengths = (min(one.length for one in looks), max(one.length for one in looks)) if looks else (0, 0)
        self.length = sum(one.length for one in looks) / len(looks) if looks else 0.0

    def has(self, text: str) -> bool:
        return " ".join(text.split()) in self.texts

    def like(self, text: str) -> bool:
        """Whether the text could be one more of them."""
        if not self.count:
            return False
        if self.has(text):
            return True
        one = look(text)
        if self.forms[one.form] >= max(SEEN, COMMON * self.count):
            return True
        known = self.styles[one.style, one.digits, one.signs] >= COMMON * self.count
        if known and self.words[1] > READ and one.words > READ:
            return True  # texts to read are as long as they are
        fits = self.words[0] <= one.words <= self.words[1] + (self.words[1] > 3)
        return known and fits and self.lengths[0] / 2 <= one.length <= self.lengths[1] * 1.5
