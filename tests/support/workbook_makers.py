"""Small made-up workbooks of every format, written by hand so that each oddity can be placed exactly."""

import struct
import zipfile
from io import BytesIO
from pathlib import Path

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


def relations(*targets: tuple[str, str, str]) -> str:
    rows = "".join(f'<Relationship Id="{i}" Type="{RELATIONS}/{kind}" Target="{to}"/>' for i, kind, to in targets)
    return f'{XML}<Relationships xmlns="{PACKAGE}">{rows}</Relationships>'


def sheet(rows: str, before: str = "", after: str = "") -> str:
    return f'{XML}<worksheet xmlns="{MAIN}">{before}<sheetData>{rows}</sheetData>{after}</worksheet>'


def styles(*formats: str | int, cells: str | None = None, extra: str = "") -> str:
    """A styles part whose cell style n+1 has the n-th number format; style 0 is plain."""
    codes, xfs = [], ['<xf numFmtId="0"/>']
    for at, one in enumerate(formats):
        number = one if isinstance(one, int) else 164 + at
        if isinstance(one, str):
            codes.append(f'<numFmt numFmtId="{number}" formatCode="{one}"/>')
        xfs.append(f'<xf numFmtId="{number}"/>')
    body = f"<numFmts>{''.join(codes)}</numFmts>{extra}<cellXfs>{cells or ''.join(xfs)}</cellXfs>"
    return f'{XML}<styleSheet xmlns="{MAIN}">{body}</styleSheet>'


def strings(*items: str) -> str:
    return f'{XML}<sst xmlns="{MAIN}">{"".join(f"<si>{one}</si>" for one in items)}</sst>'


def xlsx_parts(
    *sheets: str,
    shared: str | None = None,
    style: str | None = None,
    names: tuple[str, ...] = (),
    states: tuple[str, ...] = (),
    workbook: str = "",
    extra: dict[str, str | bytes] | None = None,
) -> dict[str, str | bytes]:
    listed, targets = [], []
    parts: dict[str, str | bytes] = {}
    for at, xml in enumerate(sheets, 1):
        name = names[at - 1] if at <= len(names) else f"Sheet{at}"
        state = f' state="{states[at - 1]}"' if at <= len(states) and states[at - 1] else ""
        listed.append(f'<sheet name="{name}" sheetId="{at}"{state} r:id="rId{at}"/>')
        targets.append((f"rId{at}", "worksheet", f"worksheets/sheet{at}.xml"))
        parts[f"xl/worksheets/sheet{at}.xml"] = xml
    if shared is not None:
        targets.append(("rIdS", "sharedStrings", "sharedStrings.xml"))
        parts["xl/sharedStrings.xml"] = shared
    if style is not None:
        targets.append(("rIdT", "styles", "styles.xml"))
        parts["xl/styles.xml"] = style
    return {
        "[Content_Types].xml": f"{XML}<Types/>",
        "_rels/.rels": relations(("rId1", "officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'{XML}<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}">{workbook}'
        f"<sheets>{''.join(listed)}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(*targets),
        **parts,
        **(extra or {}),
    }


def zipped(path: Path, parts: dict[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def xlsx(folder: Path, *sheets: str, name: str = "book.xlsx", **options) -> Path:
    return zipped(folder / name, xlsx_parts(*sheets, **options))


def ods(folder: Path, tables: str, *, styles: str = "", manifest: str = "", kind: str = "spreadsheet") -> Path:
    spaces = " ".join(
        f'xmlns:{one}="urn:oasis:names:tc:opendocument:xmlns:{one}:1.0"' for one in ("office", "table", "text", "style")
    )
    content = (
        f'{XML}<office:document-content {spaces} xmlns:calcext="urn:calcext">'
        f"<office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body></office:document-content>"
    )
    parts: dict[str, str | bytes] = {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}",
        "content.xml": content,
        "META-INF/manifest.xml": manifest or f"{XML}<manifest:manifest xmlns:manifest='m'/>",
    }
    return zipped(folder / "book.ods", parts)


def brt(kind: int, body: bytes = b"") -> bytes:
    """One record of an .xlsb part."""
    head = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7])
    length, size = b"", len(body)
    while True:
        length += bytes([size & 0x7F | (0x80 if size > 0x7F else 0)])
        size >>= 7
        if not size:
            return head + length + body


def wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def xlsb(
    folder: Path, cells: bytes, *, shared: bytes = b"", style: bytes = b"", epoch: int = 0, state: int = 0
) -> Path:
    workbook = brt(153, struct.pack("<I", epoch)) + brt(156, struct.pack("<II", state, 1) + wide("rId1") + wide("Data"))
    targets = [("rId1", "worksheet", "worksheets/sheet1.bin")]
    parts: dict[str, str | bytes] = {"xl/worksheets/sheet1.bin": brt(145) + cells + brt(146)}
    if shared:
        targets.append(("rId2", "sharedStrings", "sharedStrings.bin"))
        parts["xl/sharedStrings.bin"] = shared
    if style:
        targets.append(("rId3", "styles", "styles.bin"))
        parts["xl/styles.bin"] = style
    parts |= {
        "_rels/.rels": relations(("rId1", "officeDocument", "xl/workbook.bin")),
        "xl/workbook.bin": workbook,
        "xl/_rels/workbook.bin.rels": relations(*targets),
    }
    return zipped(folder / "book.xlsb", parts)


def biff(kind: int, body: bytes = b"") -> bytes:
    """One record of an .xls stream."""
    return struct.pack("<HH", kind, len(body)) + body


BOF_GLOBALS = biff(0x0809, struct.pack("<HHHHII", 0x0600, 5, 0, 0, 0, 0))
BOF_SHEET = biff(0x0809, struct.pack("<HHHHII", 0x0600, 0x10, 0, 0, 0, 0))
BIFF_END = biff(0x000A)


def xls_stream(cells: bytes, *, shared: bytes = b"", name: str = "Data", state: int = 0) -> bytes:
    title = bytes([len(name), 0]) + name.encode("latin-1")
    sheet_at = len(BOF_GLOBALS) + len(shared) + 4 + 6 + len(title) + len(BIFF_END)
    listed = biff(0x0085, struct.pack("<IBB", sheet_at, state, 0) + title)
    return BOF_GLOBALS + shared + listed + BIFF_END + BOF_SHEET + cells + BIFF_END


def container(path: Path, streams: dict[str, bytes]) -> Path:
    """An OLE container; streams are padded past 4,096 bytes, so that none is a mini stream."""
    sectors: list[bytes] = []
    chains: list[int] = []

    def store(raw: bytes) -> int:
        first = len(sectors)
        count = max(1, -(-len(raw) // 512))
        for at in range(count):
            sectors.append(raw[at * 512 : (at + 1) * 512].ljust(512, b"\0"))
            chains.append(first + at + 1)
        chains[-1] = 0xFFFFFFFE
        return first

    entries = _entry("Root Entry", 5, 0xFFFFFFFE, 0)
    for name, raw in streams.items():
        padded = raw.ljust(4096, b"\0")
        entries += _entry(name, 2, store(padded), len(padded))
    directory = store(entries)
    fat_sectors = -(-(len(sectors) + 8) // 128)
    fat_at = len(sectors)
    table = chains + [0xFFFFFFFD] * fat_sectors
    table += [0xFFFFFFFF] * (fat_sectors * 128 - len(table))
    sectors += [struct.pack("<128I", *table[at * 128 : (at + 1) * 128]) for at in range(fat_sectors)]
    places = [fat_at + at for at in range(fat_sectors)] + [0xFFFFFFFF] * (109 - fat_sectors)
    shape = struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    counts = struct.pack("<9I", 0, fat_sectors, directory, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    header = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16) + shape + counts + struct.pack("<109I", *places)
    path.write_bytes(header + b"".join(sectors))
    return path


def _entry(name: str, kind: int, first: int, size: int) -> bytes:
    raw = name.encode("utf-16-le") + b"\0\0"
    return (
        raw.ljust(64, b"\0")
        + struct.pack("<HBB", len(raw), kind, 1)
        + b"\xff" * 12
        + bytes(36)
        + struct.pack("<IQ", first, size)
    )


def sparse_zip(entries: list[tuple[str, bytes]], declared: int) -> bytes:
    """A zip whose directory declares ``declared`` bytes for its last part, whatever it holds."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
        archive.filelist[-1].file_size = declared
    return out.getvalue()
