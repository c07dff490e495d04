"""Mutated workbooks and text files: whatever comes, the reader reads or refuses, quickly and by type.

python -m tests.fuzz.reading [--seconds 60] [--seed N] [--keep FOLDER] [FILE …]

Seeds are made-up workbooks of every format; files named on the command line are mutated too. A file that breaks
the promise is kept, with the way it broke, and the exit code is 1.
"""

import argparse
import random
import resource
import struct
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from io import BytesIO
from pathlib import Path

from runner.engine.reading import (
    Block,
    InputUnreadable,
    OutOfOrder,
    ReadLimits,
    Sheet,
    blocks_of,
    open_book,
    rows_of,
)
from tests.support import workbook_makers as make

LIMITS = ReadLimits(
    max_entry_bytes=32 << 20, max_part_bytes=8 << 20, max_cells=2_000_000, max_sorted_cells=500_000, max_sheets=50
)
SLOW = 10.0  # seconds of CPU for one small file
MEMORY = 1024 << 20
TOKENS = [
    b"", b"<", b">", b"</", b"&", b'"', b"'", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<?x ?>", b"<!DOCTYPE a>",
    b'<row r="', b"</row>", b"<v>", b"</v>", b"<is><t>", b"</t></is>", b"<f>", b"</sheetData>", b"<c ", b"</c>", b"</si>",
    b"0", b"-1", b"99999999999", b"1048577", b"NaN", b"1e999", b"A1", b"XFD1048576", b"ZZZZ1", b"\x00", b"\xff\xfe",
    b"_x0000_", b"_xD800_", b"&#0;", b"&#xD800;", b"&bomb;", b' t="s"', b' s="9"', b' r="A1"', b"\r", b"\xc3\x28",
    "\uff11\uff12".encode(), b' table:number-rows-repeated="1048576"', b' table:number-columns-repeated="16384"',
]  # fmt: skip


def seeds(folder: Path) -> list[bytes]:
    """One small workbook of each format, with a bit of everything in it."""
    rows = "".join(
        f'<row r="{r}" spans="1:6"><c r="A{r}" t="s"><v>{r % 3}</v></c><c r="B{r}" s="1"><v>{45000 + r}</v></c>'
        f'<c r="C{r}"><f>A{r}*2</f><v>{r * 1.5}</v></c><c r="D{r}" t="inlineStr"><is><t>text {r}</t></is></c>'
        f'<c r="E{r}" t="b"><v>1</v></c><c r="F{r}" t="e"><v>#N/A</v></c></row>'
        for r in range(1, 40)
    )
    sheet = make.sheet(
        rows,
        before='<cols><col min="2" max="3" hidden="1"/></cols>',
        after='<mergeCells><mergeCell ref="A1:B2"/></mergeCells>',
    )
    shared = make.strings("<t>a &amp; b</t>", "<r><t>rich</t></r><r><t>er</t></r>", '<t xml:space="preserve"> c </t>')
    book = make.xlsx(folder, sheet, sheet, shared=shared, style=make.styles(14, "[h]:mm"), states=("", "hidden"))
    cells = b"".join(
        make.brt(0, struct.pack("<IIHBB", r, 0, 300, 0, 0))
        + make.brt(7, struct.pack("<III", 0, 0, r % 2))
        + make.brt(5, struct.pack("<IId", 1, 0, r * 1.5))
        + make.brt(6, struct.pack("<II", 2, 0) + make.wide("text"))
        for r in range(30)
    )
    texts = make.brt(19, b"\0" + make.wide("zero")) + make.brt(19, b"\0" + make.wide("one"))
    old = b"".join(
        make.biff(0x203, struct.pack("<HHHd", r, 0, 0, 1.5)) + make.biff(0xFD, struct.pack("<HHHI", r, 1, 0, r % 2))
        for r in range(30)
    )
    sst = make.biff(0xFC, struct.pack("<II", 2, 2) + b"\x04\x00\x00zero" + b"\x03\x00\x01" + "één".encode("utf-16-le"))
    table = "".join(
        '<table:table-row><table:table-cell office:value-type="float" office:value="1"><text:p>1</text:p></table:table-cell>'
        '<table:table-cell table:number-columns-repeated="3"/><table:table-cell office:value-type="date" office:date-value="2024-01-01"/>'
        "</table:table-row>"
        for _ in range(20)
    )
    paths = [
        book,
        make.xlsb(folder, cells, shared=texts),
        make.container(folder / "book.xls", {"Workbook": make.xls_stream(old, shared=sst)}),
        make.ods(folder, f'<table:table table:name="D">{table}</table:table>'),
    ]
    text = "id;name;amount\n" + "".join(f'{n};"Name; {n}";{n},50\n' for n in range(40))
    return [path.read_bytes() for path in paths] + [
        text.encode(),
        text.encode("utf-16"),
        "é".join(text).encode("cp1252"),
    ]


def mutated(raw: bytes, dice: random.Random) -> bytes:
    """The file with a few bytes, words or parts changed; zips are mostly changed inside their parts."""
    if raw[:2] == b"PK" and dice.random() < 0.85:
        try:
            return _mutated_zip(raw, dice)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, EOFError, struct.error):
            pass
    return _mutated_bytes(raw, dice)


def _mutated_zip(raw: bytes, dice: random.Random) -> bytes:
    with zipfile.ZipFile(BytesIO(raw)) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist()[:200]}
    for _ in range(dice.randint(1, 3)):
        name = dice.choice(list(parts))
        action = dice.random()
        if action < 0.05:
            del parts[name]
            if not parts:
                break
        elif action < 0.1:
            parts[name] = parts[dice.choice(list(parts))]
        else:
            parts[name] = _mutated_bytes(parts[name], dice)
    out = BytesIO()
    with zipfile.ZipFile(out, "w", dice.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    packed = out.getvalue()
    return _mutated_bytes(packed, dice) if dice.random() < 0.05 else packed


def _mutated_bytes(raw: bytes, dice: random.Random) -> bytes:
    content = bytearray(raw)
    for _ in range(dice.choice([1, 1, 1, 2, 3, 8])):
        at = dice.randrange(len(content) + 1)
        size = dice.choice([0, 1, 1, 2, 4, 8, 40, 400])
        action = dice.random()
        if action < 0.25 and at < len(content):
            content[at] = dice.randrange(256)
        elif action < 0.5:
            content[at : at + size] = dice.choice(TOKENS)
        elif action < 0.65:
            content[at:at] = content[at : at + size] * dice.choice([1, 2, 50])
        elif action < 0.8:
            del content[at : at + size]
        elif action < 0.9:
            content[at : at + 4] = struct.pack("<I", dice.choice([0, 1, 0x7FFFFFFF, 0xFFFFFFFF, dice.getrandbits(32)]))
        else:
            other = dice.randrange(len(content) + 1)
            content[at : at + size] = content[other : other + size]
    return bytes(content)


def outcome(path: Path, name: str) -> str:
    """``read`` or the refusal's code; anything else is raised."""
    start = time.process_time()
    try:
        with open_book(path, name=name, limits=LIMITS) as book:
            for sheet in book.sheets:
                by_column = list(rows_of(blocks(sheet)))
                sheet.layout()
                last = 0
                for number, values in by_column:
                    if number <= last or not values or values[-1] is None:
                        raise AssertionError(f"row {number} after {last}, {len(values)} values")
                    last = number
                if repr(list(sheet.rows())) != repr(by_column):
                    raise AssertionError("rows and blocks differ")
    except InputUnreadable as error:
        return error.code
    if (spent := time.process_time() - start) > SLOW:
        raise AssertionError(f"took {spent:.1f} s")
    return "read"


def blocks(sheet: Sheet) -> list[Block]:
    """The sheet as the structure pass reads it: in one pass, and once more where it is out of order."""
    try:
        return list(blocks_of(sheet))
    except OutOfOrder:
        return list(blocks_of(sheet))


def fuzz(seconds: float, seed: int, keep: Path, files: list[Path]) -> tuple[Counter[str], int]:
    """Outcomes by kind, and how many files broke the promise; those are kept."""
    dice = random.Random(seed)
    counts: Counter[str] = Counter()
    broken = 0
    with tempfile.TemporaryDirectory() as folder:
        corpus = seeds(Path(folder)) + [one.read_bytes() for one in files if one.stat().st_size < 300_000]
        target = Path(folder) / "target"
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            content = mutated(dice.choice(corpus), dice)
            target.write_bytes(content)
            try:
                counts[outcome(target, dice.choice(["a.xlsx", "a.csv", "a.tsv", "a"]))] += 1
            except Exception:  # noqa: BLE001  # finding these is the point
                broken += 1
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"broken-{seed}-{broken}").write_bytes(content)
                (keep / f"broken-{seed}-{broken}.txt").write_text(traceback.format_exc())
    return counts, broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("files", nargs="*", type=Path)
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    counts, broken = fuzz(asked.seconds, asked.seed, asked.keep, asked.files)
    print(f"seed {asked.seed}: {sum(counts.values())} files, {broken} broke the promise, {dict(counts.most_common())}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
