"""How a text separates, quotes and escapes: each way is tried, the one most like a table wins."""

import csv
import math
import re
from collections import Counter
from dataclasses import dataclass

_DELIMITERS = {",": 1.0, ";": 1.0, "\t": 1.0, "|": 1.0, " ": 0.4}  # how usual each is
_ROWS = 400
_KNOWN = re.compile(
    r"""\s*(?:
        [-+(]?\s?[$€£¥]?\s?\d[\d.,'\u00a0 ]*(?:[eE][-+]?\d+)?\s?[%€$£]?\)?   # numbers and money
      | \d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z?)?   # dates
      | \d{1,2}:\d{2}(?::\d{2})?(?:\s?[aApP][mM])?                                     # times
      | [\w.+-]+@[\w.-]+ | https?://\S+
      | [\w#$%&()'*+./<>=?@\[\]{}°\u2013-]+(?:,?[ ][\w#$%&()'*+./<>=?@\[\]{}°\u2013-]+){0,5}   # a few words
    )?\s*""",
    re.VERBOSE,
)
_SEP_LINE = re.compile(r'\ufeff?"?sep=(.)"?\r?\n?$', re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Dialect:
    delimiter: str
    quote: str = '"'
    escape: str | None = None  # a character that stands before a quote inside a quoted field
    skip_lines: int = 0  # a leading "sep=;" is no row


def detect(lines: list[str], *, name: str) -> Dialect:
    """``lines`` are whole lines from the start of the file."""
    if lines and (match := _SEP_LINE.match(lines[0])):
        return Dialect(delimiter=match[1], escape=_escape(lines, '"'), skip_lines=1)
    sample = [line for line in lines if line.strip()][:_ROWS]
    best, best_quote, best_score = _by_name(name), '"', 0.0
    for delimiter, weight in _DELIMITERS.items():
        for quote in _quotes(sample, delimiter):
            score = weight * _score(sample, delimiter, quote) * (1.001 if delimiter == _by_name(name) else 1)
            if score > best_score:
                best, best_score, best_quote = delimiter, score, quote
    return Dialect(delimiter=best, quote=best_quote, escape=_escape(sample, best_quote))


def _by_name(name: str) -> str:
    return "\t" if name.lower().endswith((".tsv", ".tab")) else ","


def _quotes(sample: list[str], delimiter: str) -> list[str]:
    """Single quotes count only where they open and close whole fields."""
    one = re.escape(delimiter)
    wrapped = re.compile(rf"(?:^|{one})\s?'[^']*'(?={one}|\r?\n?$)")
    if '"' not in "".join(sample) and sum(len(wrapped.findall(line)) for line in sample) > len(sample) / 2:
        return ["'"]
    return ['"']


def _escape(sample: list[str], quote: str) -> str | None:
    text = "".join(sample)
    escaped = text.count("\\" + quote)
    return "\\" if escaped and escaped > text.count(quote * 2) else None


def _score(sample: list[str], delimiter: str, quote: str) -> float:
    """Rows of one width, and more than one column, of cells that look like data: the more, the better."""
    try:
        rows = list(csv.reader(sample, delimiter=delimiter, quotechar=quote, skipinitialspace=delimiter != " "))
    except csv.Error:
        return 0.0
    widths = Counter(len(row) for row in rows)
    cells = [cell for row in rows if len(row) > 1 for cell in row]
    if len(rows) - widths[1] <= len(rows) / 10:
        return 0.0  # hardly ever met: a sign in a sentence
    if delimiter == " " and not _is_spaced(sample, max(widths.values())):
        return 0.0
    alike = math.hypot(*widths.values()) / len(rows)  # 1 where all rows agree; one big group outdoes many small
    spread = sum(count * (width - 1) / width for width, count in widths.items()) / len(rows)
    known = sum(_KNOWN.fullmatch(cell[:200]) is not None for cell in cells) / len(cells)
    return alike * spread * (0.1 + known)


def _is_spaced(sample: list[str], alike: int) -> bool:
    """Blanks stand in any prose: they separate fields only where the lines agree or quotes meet at one."""
    quoted = sum('" "' in line for line in sample)
    return len(sample) >= 5 and (alike > 0.8 * len(sample) or quoted > 0.5 * len(sample))
