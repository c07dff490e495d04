"""What cannot be read says what it is and what to do, and never costs more than a look."""

import struct
import zipfile
import zlib
from io import BytesIO

import pytest

from runner.engine.reading import InputUnreadable, ReadLimits, open_book
from tests.support.workbook_makers import (
    BIFF_END,
    BOF_GLOBALS,
    XML,
    biff,
    container,
    ods,
    sheet,
    strings,
    xls_stream,
    xlsx,
    xlsx_parts,
    zipped,
)

SMALL = ReadLimits(ratio_floor=1 << 20, max_entry_bytes=64 << 20, max_part_bytes=4 << 20)
ONE = '<row r="1"><c r="A1"><v>1</v></c></row>'


def read_all(path, name, limits):
    with open_book(path, name=name, limits=limits) as book:
        for one in book.sheets:
            one.layout()
            for _ in one.rows():
                pass


def refused(path, name=None, limits=SMALL):
    """Read everything there is; the refusal that comes of it."""
    with pytest.raises(InputUnreadable) as caught:
        read_all(path, name or path.name, limits)
    error = caught.value
    assert error.message, "says what the file is"
    assert error.remedy, "says what to do"
    return error


def written(tmp_path, content, name="file.xlsx"):
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "code", "what"),
    [
        (b"", "empty", "0 bytes"),
        (bytes(5000), "empty", "zero bytes"),
        (b"%PDF-1.7\n...", "not_a_spreadsheet", "a PDF document"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "not_a_spreadsheet", "a PNG image"),
        (b"\xff\xd8\xff\xe0JFIF", "not_a_spreadsheet", "a JPEG image"),
        (b"\x1f\x8b\x08\x00rest", "not_a_spreadsheet", "a gzip archive"),
        (b"7z\xbc\xaf\x27\x1c", "not_a_spreadsheet", "a 7-Zip archive"),
        (b"PAR1....", "not_a_spreadsheet", "a Parquet file"),
        (b"SQLite format 3\x00", "not_a_spreadsheet", "an SQLite database"),
        (b"  <html><p>Please sign in</p></html>", "not_a_spreadsheet", "an HTML page"),
        (b"\xff\xfe" + "<html><body>x</body></html>".encode("utf-16-le"), "not_a_spreadsheet", "an HTML page"),
        (b'{"rows": [1, 2]}', "not_a_spreadsheet", "JSON text"),
        (b"<?xml version='1.0'?><note/>", "not_a_spreadsheet", "an XML document"),
        (
            b'<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"/>',
            "unsupported",
            "an Excel 2003 XML spreadsheet",
        ),
        (b"\x09\x04\x06\x00\x00\x04\x10\x00", "unsupported", "an Excel 4 worksheet"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "not_a_spreadsheet", "Git LFS pointer"),
        (bytes(range(256)) * 20, "not_a_spreadsheet", "binary data"),
        (
            b"\x05owner".ljust(55) + b"\x05\x00o\x00w\x00n\x00e\x00r\x00".ljust(110, b"\x00"),
            "not_a_spreadsheet",
            "lock file",
        ),
    ],
)
def test_a_file_that_is_something_else_is_named(tmp_path, content, code, what):
    error = refused(written(tmp_path, content))
    assert error.code == code
    assert what in error.message


@pytest.mark.parametrize(
    ("part", "what"),
    [
        ("word/document.xml", "a Word document"),
        ("ppt/presentation.xml", "a PowerPoint presentation"),
        ("report.xlsx", "a zip that contains 1 spreadsheet"),
        ("readme.txt", "a zip with 1 other file"),
        ("Index/Document.iwa", "Apple Numbers"),
    ],
)
def test_a_zip_that_is_no_workbook_is_named(tmp_path, part, what):
    error = refused(zipped(tmp_path / "file.xlsx", {part: "x"}))
    assert error.code == "not_a_spreadsheet"
    assert what in error.message


@pytest.mark.parametrize(
    ("stream", "code", "what"),
    [
        ("EncryptedPackage", "encrypted", "protected with a password"),
        ("WordDocument", "not_a_spreadsheet", "a Word document"),
        ("PowerPoint Document", "not_a_spreadsheet", "PowerPoint"),
        ("__properties_version1.0", "not_a_spreadsheet", "Outlook"),
        ("Something", "not_a_spreadsheet", "without a workbook"),
    ],
)
def test_an_ole_container_is_named_by_its_streams(tmp_path, stream, code, what):
    error = refused(container(tmp_path / "file.xlsx", {stream: b"x"}))
    assert error.code == code
    assert what in error.message


def test_an_encrypted_xls_is_reported_from_a_damaged_one(tmp_path):
    stream = BOF_GLOBALS + biff(0x002F, bytes(54)) + BIFF_END
    assert refused(container(tmp_path / "a.xls", {"Workbook": stream})).code == "encrypted"


def test_an_encrypted_ods_is_reported(tmp_path):
    manifest = f'{XML}<m:manifest xmlns:m="m"><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>'
    assert refused(ods(tmp_path, "", manifest=manifest)).code == "encrypted"


def test_an_opendocument_text_is_named(tmp_path):
    assert "OpenDocument text" in refused(ods(tmp_path, "", kind="text")).message


def test_a_zip_with_a_password_is_encrypted(tmp_path):
    path = xlsx(tmp_path, sheet(ONE))
    raw = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = raw.find(signature)
        while at >= 0:
            raw[at + flags] |= 1
            at = raw.find(signature, at + 4)
    assert refused(written(tmp_path, bytes(raw))).code == "encrypted"


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.99])
def test_a_workbook_cut_short_is_truncated(tmp_path, share):
    raw = xlsx(tmp_path, sheet(ONE * 50)).read_bytes()
    assert refused(written(tmp_path, raw[: int(len(raw) * share)])).code == "truncated"


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_an_xls_cut_short_is_truncated(tmp_path, share):
    cells = b"".join(biff(0x203, struct.pack("<HHHd", r, 0, 0, 1.5)) for r in range(900))
    raw = container(tmp_path / "a.xls", {"Workbook": xls_stream(cells)}).read_bytes()
    assert refused(written(tmp_path, raw[: int(len(raw) * share)], "b.xls")).code in ("truncated", "damaged")


def test_a_sheet_part_cut_short_inside_the_zip_is_truncated(tmp_path):
    assert refused(xlsx(tmp_path, sheet(ONE).partition("</row>")[0])).code == "truncated"


def test_a_part_with_a_wrong_checksum_is_damaged(tmp_path):
    path = xlsx(tmp_path, sheet(ONE))
    raw = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        crc = archive.getinfo("xl/worksheets/sheet1.xml").CRC
    at = raw.rfind(struct.pack("<I", crc))
    raw[at] ^= 1
    assert refused(written(tmp_path, bytes(raw))).code == "damaged"


def test_missing_shared_strings_are_damage(tmp_path):
    path = xlsx(tmp_path, sheet('<row r="1"><c r="A1" t="s"><v>0</v></c></row>'))
    assert "shared strings" in refused(path).message


@pytest.mark.parametrize(
    "part", ["xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/styles.xml", "xl/workbook.xml"]
)
def test_a_document_type_is_refused_before_an_entity_can_grow(tmp_path, part):
    bomb = (
        '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
        "<sst><si><t>&b;</t></si></sst>"
    )
    parts = xlsx_parts(
        sheet('<row r="1"><c r="A1" t="s"><v>0</v></c></row>'), shared=strings("<t>a</t>"), style=f"{XML}<styleSheet/>"
    )
    assert refused(zipped(tmp_path / "file.xlsx", {**parts, part: bomb})).code == "hostile"


def bomb(kind):
    """A sheet that packs a thousand to one."""
    much = 20_000_000
    return {
        "rows": lambda: sheet('<row r="1"/>' * (much // 50)),
        "text": lambda: sheet(f'<row r="1"><c r="A1" t="str"><v>{"a" * much}</v></c></row>'),
        "attribute": lambda: sheet(f'<row r="1" spans="{"1" * much}"/>'),
        "head": lambda: sheet(ONE, before=f"<dimension ref='A1'/>{' ' * much}"),
        "cells": lambda: sheet('<row r="1">' + '<c r="A1"/>' * (much // 10) + "</row>"),
    }[kind]()


@pytest.mark.parametrize("kind", ["rows", "text", "attribute", "head", "cells"])
def test_a_zip_bomb_in_a_sheet_is_refused_by_its_ratio(tmp_path, kind):
    assert refused(xlsx(tmp_path, bomb(kind))).code in ("hostile", "too_large")


@pytest.mark.parametrize("kind", ["text", "attribute", "cells"])
def test_without_the_ratio_a_bomb_still_runs_into_a_bound(tmp_path, kind):
    limits = ReadLimits(max_ratio=1_000_000, max_token_bytes=1 << 20)
    assert refused(xlsx(tmp_path, bomb(kind)), limits=limits).code in ("hostile", "too_large", "damaged")


@pytest.mark.parametrize("part", ["sharedStrings", "styles"])
def test_a_zip_bomb_in_another_part_is_refused(tmp_path, part):
    body = f"{XML}<sst><si><t>{'a' * 20_000_000}</t></si></sst>"
    options = {"shared": body} if part == "sharedStrings" else {"shared": strings("<t>a</t>"), "style": body}
    path = xlsx(tmp_path, sheet('<row r="1"><c r="A1" t="s"><v>0</v></c></row>'), **options)
    assert refused(path).code in ("hostile", "too_large")


def test_a_part_larger_than_it_declares_is_refused_while_it_inflates(tmp_path):
    path = xlsx(tmp_path, sheet(ONE * 10_000))
    with zipfile.ZipFile(path) as archive:
        true_size = archive.getinfo("xl/worksheets/sheet1.xml").file_size
    raw = path.read_bytes().replace(struct.pack("<I", true_size), struct.pack("<I", 1000))
    assert "larger than it declares" in refused(written(tmp_path, raw)).message


def test_a_zip_of_too_many_parts_is_refused(tmp_path):
    path = tmp_path / "file.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in xlsx_parts(sheet(ONE)).items():
            archive.writestr(name, content)
        for at in range(2_000):
            archive.writestr(f"junk/{at}", b"")
    error = refused(path, limits=ReadLimits(max_entries=1_000))
    assert "parts" in error.message


def test_parts_that_overlap_are_refused(tmp_path):
    """Many directory entries that point at one block of data: small file, endless content."""
    body = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = body.compress(bytes(1_000_000)) + body.flush()
    crc = zlib.crc32(bytes(1_000_000))
    out = BytesIO()
    name = b"xl/a"
    out.write(
        struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 20, 0, 8, 0, 0, crc, len(packed), 1_000_000, 4, 0) + name + packed
    )
    start = out.tell()
    for _ in range(50):
        out.write(
            struct.pack(
                "<4sHHHHHHIIIHHHHHII",
                b"PK\x01\x02",
                20,
                20,
                0,
                8,
                0,
                0,
                crc,
                len(packed),
                1_000_000,
                4,
                0,
                0,
                0,
                0,
                0,
                0,
            )
            + name
        )
    size = out.tell() - start
    out.write(struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 50, 50, size, start, 0))
    assert "overlap" in refused(written(tmp_path, out.getvalue())).message


def test_deep_nesting_is_refused(tmp_path):
    deep = "<a>" * 100_000 + "</a>" * 100_000
    assert refused(xlsx(tmp_path, sheet(f"<!-- -->{ONE}{deep}"))).code == "hostile"


def test_a_million_styled_blanks_are_harmless(tmp_path):
    blanks = "".join(f'<row r="{r}"><c r="A{r}" s="1"/><c r="B{r}" s="1"/></row>' for r in range(2, 100_000))
    path = xlsx(tmp_path, sheet(ONE + blanks))
    with open_book(path, name="x") as book:
        assert list(book.sheets[0].rows()) == [(1, [1])]


def test_an_ole_chain_that_runs_in_a_circle_ends(tmp_path):
    path = container(tmp_path / "a.xls", {"Workbook": xls_stream(b"") + bytes(9000)})
    raw = bytearray(path.read_bytes())
    at = raw.rfind(struct.pack("<I", 1) + struct.pack("<I", 2))
    raw[at + 4 : at + 8] = struct.pack("<I", 0)
    assert refused(written(tmp_path, bytes(raw), "b.xls")).code in ("damaged", "truncated")


def test_an_error_survives_being_pickled(tmp_path):
    import pickle  # noqa: PLC0415

    error = refused(written(tmp_path, b""))
    again = pickle.loads(pickle.dumps(error))
    assert (again.code, again.message, again.remedy) == (error.code, error.message, error.remedy)


def test_no_refusal_quotes_a_cell(tmp_path):
    secret = "SECRET-4711"
    broken = sheet(f'<row r="1"><c r="A1" t="str"><v>{secret}</v></c></row><row r="2"><c r="A2"><v>{secret}</v></oops>')
    error = refused(xlsx(tmp_path, broken.replace("</sheetData>", "<!-- --></sheetData>")))
    assert secret not in f"{error} {error.message} {error.remedy}"


def test_many_parts_that_are_each_small_enough_are_refused_together(tmp_path):
    bombs = [sheet(f'<row r="1"/>{" " * 900_000}') for _ in range(20)]
    assert "declares" in refused(xlsx(tmp_path, *bombs)).message


@pytest.mark.timeout(30)
@pytest.mark.parametrize("junk", ["<f ", "<is><t> ", "<c ", '<c r="', "<row ", "<v>", "<is> ", "&", "<x:", " "])
def test_repeated_scraps_of_tags_cost_linear_time(tmp_path, junk):
    """A quarter of a megabyte of each would take minutes where a pattern looks ahead to the end every time."""
    path = xlsx(tmp_path, sheet(f'<row r="1"><c r="A1" t="str"><v>{junk * 60_000}</v></c></row>'))
    try:
        read_all(path, path.name, SMALL)
    except InputUnreadable as error:
        assert error.code in ("damaged", "truncated", "hostile")  # noqa: PT017  # reading it is as good
