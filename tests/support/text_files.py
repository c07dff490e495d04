"""Text files with known contents: plain lists of rows, and a small writer of its own that makes a file of them."""

import random
from dataclasses import dataclass
from datetime import date, timedelta

from tests.support.languages import LANGUAGES, words_of

PLAIN_WORDS = (
    "red blue north Apollo invoice paid Smith Jones garden river cotton steel Monday yearly open draft".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Writing:
    """How a file is written."""

    delimiter: str = ","
    quote: str = '"'
    quoting: str = "needed"  # needed: where a value could be misread; texts: all but numbers; all
    blank: str = ""  # behind each delimiter
    end: str = "\n"
    last_end: bool = True
    trailing: bool = False  # a delimiter at each line's end
    encoding: str = "utf-8"
    backslashes: bool = False  # a quote inside quotes is escaped, not doubled


def written(rows: list[list[str]], how: Writing) -> bytes:
    lines = [(how.delimiter + how.blank).join(_cell(cell, how) for cell in row) for row in rows]
    text = how.end.join(line + how.delimiter * how.trailing for line in lines) + how.end * how.last_end
    return text.encode(how.encoding)


def _cell(cell: str, how: Writing) -> str:
    special = (how.delimiter, how.quote, "\n", "\r")
    needed = any(sign in cell for sign in special) or cell != cell.strip()
    if how.quoting == "needed" and not needed:
        return cell
    if how.quoting == "texts" and not needed and cell.replace(".", "", 1).replace("-", "").isdigit():
        return cell
    escape = "\\" if how.backslashes else how.quote
    inside = cell.replace("\\", "\\\\") if how.backslashes else cell
    return how.quote + inside.replace(how.quote, escape + how.quote) + how.quote


def table(seed: object, rows: int, *, awkward: str = "", words: list[str] = PLAIN_WORDS) -> list[list[str]]:
    """A header and as many rows of an id, a name, a place, an amount, a day and a remark.

    `awkward` puts texts that need care into the remarks: delimiters, quotes, lines, apostrophes, paths, inches.
    """
    r = random.Random(f"{seed}")
    made = [["id", "name", "place", "amount", "day", "remark"]]
    start = date(2024, 1, 1)
    for n in range(1, rows):
        remark = " ".join(r.choice(words) for _ in range(r.randint(1, 4)))
        if awkward and r.random() < 0.4:
            remark = _awkward(r, awkward, remark)
        made.append(
            [
                str(1000 + n),
                f"{r.choice(words)} {r.choice(words)}",
                r.choice(words),
                f"{r.randint(0, 99999)}.{r.randint(0, 99):02}",
                (start + timedelta(days=r.randint(0, 700))).isoformat(),
                remark,
            ]
        )
    return made


def _awkward(r: random.Random, kind: str, remark: str) -> str:
    return {
        "delimiters": f"{remark}, {remark}; more\ttabbed | piped",
        "quotes": f'he said "{remark}", twice',
        "lines": f"{remark}\nsecond line\n\nlast, line" if r.random() < 0.8 else "\n".join([remark] * 700),
        "apostrophes": f"O'{remark} and the dogs' bowl",
        "paths": f"C:\\data\\{remark}\\",
        "inches": f'{remark} 5" by 7"',
        "blanks": f"  {remark} ",
    }[kind]


__all__ = ["LANGUAGES", "PLAIN_WORDS", "Writing", "table", "words_of", "written"]
