"""What a box may not publish, whatever it says."""

import io
import json
import struct
import zipfile
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.verdicts import FAULTS, Fault, Verdict
from runner.attempt import counts, verified
from runner.boxes import BoxLimits, BoxOrder, BoxReport, Isolation
from runner.engine.job import run as run_engine
from runner.engine.pages.report import report
from runner.engine.verifying import BadOutput
from runner.engine.verifying.document import read_document
from runner.engine.verifying.workbook_check import WrittenSheet, escaped_name, read_book
from runner.engine.writing import BookWriter, OutputColumn
from tests.support.outputs import (
    BOX,
    ORDER,
    artifact,
    as_bytes,
    audit,
    check,
    members,
    order_to_verify,
    workbook,
    zipped,
)

ROOT = Path(__file__).parents[4]


def outputs(folder, *, book=None, told=None):
    body = told if isinstance(told, bytes) else as_bytes(told or artifact(ORDER, BOX))
    (folder / "artifact.json").write_bytes(body)
    (folder / "normalized.xlsx").write_bytes(workbook() if book is None else book)
    return {name: folder / name for name in ("artifact.json", "normalized.xlsx")}


def test_honest_outputs_pass_with_their_counts(tmp_path):
    assert check(ORDER, outputs(tmp_path), BOX)["rows_out"] == 1


def other(**changes):
    made = artifact(ORDER, BOX)
    for path, value in changes.items():
        at = made
        *folders, last = path.split("__")
        for name in folders:
            at = at[int(name) if name.isdigit() else name]
        at[last] = value
    return made


def raw(old: str, new: str) -> bytes:
    text = json.dumps(artifact(ORDER, BOX))
    assert old in text
    return text.replace(old, new, 1).encode()


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (other(job__job_id="another"), "about its job"),
        (other(job__tenant="globex"), "about its job"),
        (other(job__params={"year": 1}), "about its params"),
        (other(config__digest="x"), "about its config"),
        (
            other(config__overlays=[{"key": "k", "version": "", "sha256": "1" * 64, "changes": []}]),
            "names other overlays",
        ),
        (other(inputs__0__sha256="1" * 64), "about its inputs"),
        (other(engine__sandbox={"driver": "jail", "level": "none", "rungs": {}}), "about its sandbox"),
        (artifact(ORDER, BOX, rows=2), "counts 2 rows, normalized.xlsx has 1"),
        (other(output__rows=2), "the rows of its tables and its output"),
        (other(output__sheets=["Other"]), "different sheets"),
        (other(output__sheets=["Normalized", "Normalized"], summary__sheets_out=2), "different sheets"),
        (other(output__extra_sheets=[{"name": "More", "rows": 0}]), "different sheets"),
        (other(output__columns=[]), "different columns"),
        (other(surprise="value"), "does not match its schema"),
        (other(summary="7"), "does not match its schema at /summary"),
        (b"{", "is not unambiguous JSON"),
        (b'{"a": NaN}', "is not unambiguous JSON"),
        (b"[" * 100_000, "is not unambiguous JSON"),
        (raw('"version": "0"', '"version": "\\ud800"'), "is not unambiguous JSON"),
        (raw('"version": "0"', '"version": "0", "version": "1"'), "is not unambiguous JSON"),
        (raw('"confidence": 1.0', '"confidence": 1e999'), "is not unambiguous JSON"),
        (raw('"version": "0"', '"version": "\xff"').decode().encode("latin-1"), "is not unambiguous JSON"),
        (other(engine__sandbox=json.loads('{"a":' * 400 + "1" + "}" * 400)), "does not match its schema"),
    ],
)
def test_an_artifact_that_cannot_be_true_is_refused(tmp_path, told, said):
    with pytest.raises(BadOutput, match=said):
        check(ORDER, outputs(tmp_path, told=told), BOX)


def test_an_artifact_is_refused_for_its_size_before_it_is_parsed():
    with pytest.raises(BadOutput, match="more than 6000000 elements"):
        read_document(b"[" + b"[]," * 20_000_000 + b"[]]")
    with pytest.raises(BadOutput, match="is over"):
        read_document(b" " * (64 * 1024 * 1024 + 1))


def test_no_text_of_the_box_gets_into_a_refusal():
    told = other(config__rules=[{"path": "a", "sha256": "", "rules": [], "SECRET" * 50_000: 1}])
    told["validation"]["by_code"] = {"SECRET" * 50_000: "x"}
    with pytest.raises(BadOutput) as refused:
        read_document(as_bytes(told))
    assert "SECRET" not in str(refused.value)
    assert len(str(refused.value)) < 200


SHEET = "xl/worksheets/sheet1.xml"
BOOK = "xl/workbook.xml"


def changed(part: str, old: str, new: str) -> bytes:
    """A workbook of ours with one thing in one part changed, zipped as we zip."""
    parts = members(workbook())
    assert old.encode() in parts[part]
    return zipped((parts | {part: parts[part].replace(old.encode(), new.encode(), 1)}).items())


def cell(text: str) -> bytes:
    return changed(SHEET, '<c r="A2"><v>1</v></c>', text)


def with_part(name: str) -> bytes:
    return zipped([*members(workbook()).items(), (name, b"x")])


def with_link(kind: str, target: str) -> bytes:
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    link = f'<Relationship Id="rId9" Type="{office}/{kind}" Target="{target}" TargetMode="External"/>'
    return changed("xl/_rels/workbook.xml.rels", "</Relationships>", f"{link}</Relationships>")


@pytest.mark.parametrize(
    "book",
    [
        # formulas, by every name
        cell('<c r="A2"><f>1+1</f></c>'),
        cell('<c r="A2"><f t="shared">1+1</f></c>'),
        cell('<c r="A2"><f\n>1+1</f></c>'),
        cell('<x:c xmlns:x="http://schemas.openxmlformats.org/spreadsheetml/2006/main" r="A2"><x:f>1</x:f></x:c>'),
        cell('<ü:c xmlns:ü="http://schemas.openxmlformats.org/spreadsheetml/2006/main" r="A2"><ü:f>1</ü:f></ü:c>'),
        cell('<c r="A2" t="str"><v>1</v></c>'),
        cell('<c r="A2"><v>=1+1</v></c>'),
        cell('<c r="A2" cm="1"><v>1</v></c>'),
        # errors that no spreadsheet knows
        cell('<c r="A2" t="e"><v>1</v></c>'),
        cell('<c r="A2" t="e"><v>A&amp;B</v></c>'),
        # what is behind the cells
        changed(SHEET, "<pageMargins", '<hyperlinks><hyperlink ref="A1" r:id="rId1"/></hyperlinks><pageMargins'),
        changed(SHEET, "<pageMargins", '<dataValidations count="1"/><pageMargins'),
        changed(
            SHEET,
            "<pageMargins",
            '<conditionalFormatting sqref="A1"><cfRule type="expression"><formula>1</formula></cfRule>'
            "</conditionalFormatting><pageMargins",
        ),
        changed(SHEET, "</worksheet>", '<extLst><ext uri="x"/></extLst></worksheet>'),
        changed(SHEET, "</worksheet>", "</worksheet><!-- -->"),
        changed(SHEET, "<sheetData>", "<sheetCalcPr/><sheetData>"),
        changed(SHEET, '<?xml version="1.0"', '<!DOCTYPE x [<!ENTITY e "e">]><?xml version="1.0"'),
        # what is not XML, or not what one reader takes for it
        cell('<c r="A2"><v>1</v></c><!-- -->'),
        cell('<c r="A2"><v>1</v></c><![CDATA[x]]>'),
        cell('<c r="A2" t="inlineStr"><is><t>&e;</t></is></c>'),
        cell('<c r="A2" t="inlineStr"><is><t>&#x0;</t></is></c>'),
        cell('<c r="A2" t="inlineStr"><is><t>\x01</t></is></c>'),
        cell('<c r="A2" t="inlineStr"><is><t>\uffff</t></is></c>'),
        cell("<c r='A2'><v>1</v></c>"),
        changed(SHEET, '<row r="2">', '<row r="3">'),
        changed(SHEET, '<row r="2">', '<row r="2" hidden="1">'),
        changed(SHEET, '<row r="2">', '<row r="2"></row><row r="2">'),
        zipped((k, v + b"\0") for k, v in members(workbook()).items()),
        zipped((k, v.decode().encode("utf-16")) for k, v in members(workbook()).items()),
        # names, links and parts
        changed(BOOK, "</sheets>", '</sheets><externalReferences><externalReference r:id="rId9"/></externalReferences>'),
        changed(BOOK, "<definedNames>", '<definedNames><definedName name="_xlnm.Auto_Open">A1</definedName>'),
        changed(BOOK, "'Normalized'!$A$1:$A$2", "'[1]x'!$A$1:$A$2"),
        changed(BOOK, 'sheetId="1"', 'sheetId="1" state="hidden"'),
        changed(BOOK, 'name="Normalized"', 'name="Normalized" name="x"'),
        changed(BOOK, 'calcId="124519"', 'calcId="124519" fullCalcOnLoad="1"'),
        with_link("externalLink", "file://host/share/x.xlsx"),
        with_link("hyperlink", "https://example.com/"),
        changed("xl/_rels/workbook.xml.rels", "worksheets/sheet1.xml", "/xl/worksheets/sheet1.xml"),
        changed("xl/_rels/workbook.xml.rels", "worksheets/sheet1.xml", "../../x.xml"),
        changed("_rels/.rels", 'Target="xl/workbook.xml"', 'Target="http://example.com/x"'),
        changed("[Content_Types].xml", "</Types>", '<Default Extension="bin" ContentType="x"/></Types>'),
        changed("docProps/core.xml", "<dc:title></dc:title>", "<dc:title>another</dc:title>"),
        changed("xl/styles.xml", 'formatCode="yyyy-mm-dd"', 'formatCode="[=1]&quot;x&quot;"'),
        changed("xl/styles.xml", "</styleSheet>", "<extLst/></styleSheet>"),
        with_part("xl/vbaProject.bin"),
        with_part("xl/externalLinks/externalLink1.xml"),
        with_part("xl/sharedStrings.xml"),
        with_part("../evil"),
        with_part("/etc/passwd"),
        zipped((k, v) for k, v in members(workbook()).items() if k != SHEET),
        zipped(reversed(members(workbook()).items())),
        b"PK\x03\x04",
        b"",
    ],
)  # fmt: skip
def test_a_workbook_that_our_writer_could_not_have_written_is_refused(tmp_path, book):
    with pytest.raises(BadOutput, match=r"normalized\.xlsx"):
        check(ORDER, outputs(tmp_path, book=book), BOX)


def foreign_zip(parts: list[tuple[str, bytes]]) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts:
            archive.writestr(name, part)
    return body.getvalue()


def listing_of(book: bytes) -> int:
    return struct.unpack_from("<I", book, len(book) - 6)[0]


def patched(at: int, value: bytes, book: bytes | None = None) -> bytes:
    made = bytearray(book or workbook())
    made[at : at + len(value)] = value
    return bytes(made)


GOOD = workbook()
LISTING = listing_of(GOOD)


@pytest.mark.parametrize(
    "book",
    [
        foreign_zip(list(members(GOOD).items())),
        with_part(SHEET),
        with_part(BOOK),
        GOOD + b"x",
        b"x" + GOOD,
        GOOD[:-2] + b"\x01\x00x",
        patched(6, b"\x01\x00"),  # encrypted, says the member
        patched(LISTING + 8, b"\x01\x00"),  # encrypted, says the listing
        patched(8, b"\x00\x00"),  # stored
        patched(14, b"\0\0\0\0"),  # another checksum in the member
        patched(LISTING + 16, b"\0\0\0\0"),  # and in the listing
        patched(LISTING + 20, b"\xff\xff\xff\xff"),  # sizes that zip64 would have
        patched(LISTING + 24, b"\xff\xff\xff\xff"),
        patched(LISTING + 42, b"\x01\0\0\0"),  # begins elsewhere
        patched(len(GOOD) - 12, b"\x01\x00"),  # fewer than are listed
        GOOD[:LISTING] + GOOD[:30] + GOOD[LISTING:],
        GOOD[: LISTING - 1],
    ],
)
def test_a_zip_that_can_be_read_in_two_ways_is_refused(tmp_path, book):
    with pytest.raises(BadOutput, match=r"normalized\.xlsx"):
        check(ORDER, outputs(tmp_path, book=book), BOX)


def test_a_bomb_is_refused_by_what_its_listing_says_and_by_what_it_holds(tmp_path):
    parts = members(workbook())
    big = zipped((parts | {"docProps/app.xml": b" " * (17 * 1024 * 1024)}).items())
    with pytest.raises(BadOutput, match="too large"):
        check(ORDER, outputs(tmp_path, book=big), BOX)
    lying = bytearray(zipped((parts | {SHEET: parts[SHEET] + b" " * 10_000_000}).items()))
    end = struct.pack("<I", len(parts[SHEET]))
    lying[22:26] = lying[listing_of(lying) + 24 : listing_of(lying) + 28] = end
    with pytest.raises(BadOutput, match=r"normalized\.xlsx"):
        check(ORDER, outputs(tmp_path, book=bytes(lying)), BOX)


def test_a_missing_output_is_refused(tmp_path):
    found = outputs(tmp_path)
    del found["normalized.xlsx"]
    with pytest.raises(BadOutput, match=r"not write normalized\.xlsx"):
        check(ORDER, found, BOX)


def test_no_text_of_the_box_gets_into_the_counts():
    told = {"rows_in": "SECRET", "tables": True, "rows_out": -1, "findings": {"error": "SECRET"}, "SECRET": 1}
    assert "SECRET" not in json.dumps(counts({"summary": told}))
    assert counts({"summary": {"rows_in": 10**30}})["rows_in"] == 0
    assert counts({"summary": "SECRET"})["rows_in"] == 0


def test_the_published_schema_is_the_one_that_is_enforced():
    """docs/ has the copy that people read."""
    assert (ROOT / "docs/reference/artifact.schema.json").read_text() == (
        ROOT / "runner/engine/artifact.schema.json"
    ).read_text()


def test_rows_at_the_edge_of_a_block_are_counted(tmp_path):
    rows = 60_000
    found = outputs(tmp_path, book=workbook(rows), told=artifact(ORDER, BOX, rows=rows))
    assert check(ORDER, found, BOX)["rows_out"] == rows


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=40),
    st.text(alphabet="_x041F&<>\"' \r\n\t\x00\ufffe\x85\U0001f600", max_size=12),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(min_value=timedelta(days=-400), max_value=timedelta(days=40_000)),
    st.sampled_from(["x" * 40_000, date(1850, 1, 1), datetime(1900, 1, 1), time(1, 2, 3, 4)]),
)
NAMES = st.text(alphabet="ab'\"&<>_x0041Fß漢é[]:*?/\\ \n", max_size=40)
FORMATS = ["0.000", '#,##0" ©"', "dd<mm>yyyy", "0.00", "General"]


@given(
    names=st.lists(NAMES, min_size=1, max_size=4),
    headers=st.lists(NAMES, max_size=5),
    rows=st.lists(st.lists(VALUES, min_size=5, max_size=5), max_size=6),
    formats=st.lists(st.sampled_from([None, *FORMATS]), min_size=5, max_size=5),
    title=NAMES,
)
def test_whatever_our_writer_writes_is_read_back(names, headers, rows, formats, title):
    body = io.BytesIO()
    book = BookWriter(body, title=title)
    wanted = []
    for name in names:
        columns = [
            OutputColumn(h, f, kind)
            for h, f, kind in zip(headers, formats, (int, str, date, None, float), strict=False)
        ]
        sheet = book.sheet(name, columns)
        sheet.write([list(column)[: len(rows)] for column in zip(*rows, strict=True)][: len(columns)], len(rows))
        sheet.close()
        wanted.append(WrittenSheet(escaped_name(sheet.names[0]), len(columns), len(rows)))
    book.close()
    assert read_book(io.BytesIO(body.getvalue()), title=title, formats=FORMATS) == wanted


@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
def test_no_other_byte_stands_in_any_place(at, byte):
    """A workbook is one of ours or refused: whatever one byte is changed to, nothing else breaks."""
    made = patched(at, bytes([byte]))
    try:
        sheets = read_book(io.BytesIO(made), title="", formats=[])
    except BadOutput:
        return
    assert sheets == [WrittenSheet("Normalized", 1, 1)]


def test_a_very_wide_book_is_read_back(tmp_path):
    body = io.BytesIO()
    book = BookWriter(body, title="")
    sheet = book.sheet("wide", [OutputColumn("h" * 300) for _ in range(16_384)])
    sheet.write([["y" * 200]] * 16_384, 1)
    sheet.close()
    book.close()
    assert read_book(body, title="", formats=[]) == [WrittenSheet("wide", 16_384, 1)]


def test_the_audit_of_a_job_that_wrote_no_workbook_passes_with_its_counts(tmp_path):
    assert check(ORDER, audited(tmp_path, audit(ORDER, BOX)), BOX, audit=True)["rows_out"] == 0


def audited(folder, told):
    (folder / "artifact.json").write_bytes(as_bytes(told))
    return {"artifact.json": folder / "artifact.json"}


def test_an_audit_is_of_its_own_job_and_counts_no_rows_of_a_workbook(tmp_path):
    another = replace(ORDER, job=replace(ORDER.job, job_id="x"))
    with pytest.raises(BadOutput, match="about its job"):
        check(another, audited(tmp_path, audit(ORDER, BOX)), BOX, audit=True)
    with pytest.raises(BadOutput, match="workbook that was not written"):
        check(ORDER, audited(tmp_path, artifact(ORDER, BOX)), BOX, audit=True)
    with pytest.raises(BadOutput, match=r"not write artifact\.json"):
        check(ORDER, {}, BOX, audit=True)


EVIL = "</title><script>alert(1)</script><form action=https://example.com>'\"\u202e\x9b"


def test_no_text_of_an_artifact_becomes_markup():
    told = other(
        engine__readers=[EVIL], sheets__0__name=EVIL, sheets__0__input=EVIL, sheets__0__tables__0__why=[EVIL],
        mapping=[
            {"table": EVIL, "column": "A", "header": EVIL, "header_cell": "A1", "target": EVIL, "probability": 1,
             "contributors": [{"rule": EVIL, "weight": 1}], "runners_up": [{"field": EVIL, "probability": 1}], "note": EVIL}
        ],
        readings=[{"kind": "x", "chosen": EVIL, "evidence": {EVIL: 1}, "sure": False, "settle": EVIL, "field": EVIL}],
        validation={
            "findings": [{"code": EVIL, "severity": "error", "message": EVIL, "file": EVIL, "line": 1, "field": EVIL}],
            "kept": 1, "total": 1, "by_severity": {"error": 1, "warning": 0, "info": 0}, "by_code": {EVIL: 1},
            "totals": [{"code": EVIL, "severity": "error", "field": EVIL, "count": 1}],
        },
    )  # fmt: skip
    page = report(read_document(as_bytes(told)))
    assert "<script" not in page
    assert "<form" not in page
    assert "\u202e" not in page
    assert "\x9b" not in page
    assert "default-src 'none'" in page
    assert "form-action 'none'" in page


def test_a_report_stays_small_and_says_where_it_was_cut():
    one = {
        "table": "t", "column": "A", "header": "<" * 100_000, "header_cell": None, "target": None, "probability": 0,
        "contributors": [], "runners_up": [], "note": None,
    }  # fmt: skip
    page = report(other(mapping=[one] * 3000))
    assert len(page) < 16 * 1024 * 1024
    assert "artifact.json has all of it" in page


def test_a_box_that_verifies_says_one_line_whatever_it_meets(tmp_path):
    outputs(tmp_path)
    asked = order_to_verify(ORDER, ["artifact.json", "normalized.xlsx"], BOX)
    for name, said in (("artifact.json", True), ("normalized.xlsx", True), ("missing.json", False)):
        order = replace(asked, written=asked.written | {"artifact.json": Path(name)})
        channel = io.StringIO()
        assert run_engine(order.encode(), channel, folder=tmp_path) == 0
        (line,) = channel.getvalue().splitlines()
        assert json.loads(line)["ok"] is (name == "artifact.json")
        assert said or json.loads(line)["error"]["code"] == "engine_error"


class Verifier:
    """A sandbox whose verifying box ends in a given way."""

    def __init__(self, seen: BoxReport) -> None:
        self.seen = seen
        self.order: BoxOrder | None = None

    def isolation(self) -> Isolation:
        return BOX

    def run(self, order, *, killed, on_event=None):
        self.order = order
        return self.seen


@pytest.mark.parametrize(
    ("verdict", "fault"),
    [
        (Verdict.MEMORY, Fault.LIMIT),
        (Verdict.CPU, Fault.LIMIT),
        (Verdict.WALL_CLOCK, Fault.LIMIT),
        (Verdict.SIGNAL, Fault.CONFIG),
        (Verdict.FILE_SIZE, Fault.CONFIG),
        (Verdict.RULE_ERROR, Fault.CONFIG),
        (Verdict.NOTHING_MAPPED, Fault.CONFIG),
        (Verdict.OK, Fault.CONFIG),  # and no report
        (Verdict.CANCELLED, Fault.NOBODY),
        (Verdict.BOX_FAILED, Fault.OURS),
    ],
)
def test_what_ends_the_verifying_box_is_not_ours_unless_it_never_began(tmp_path, verdict, fault):
    limits = BoxLimits(wall_seconds=60, cpu_seconds=20, memory_mb=512, file_mb=20)
    job = BoxOrder(label="a", tenant="a", scratch=tmp_path, job=ORDER, outputs=(), limits=limits)
    box = Verifier(BoxReport(verdict=verdict, message="x" * 5000))
    done = BoxReport(verdict=Verdict.OK, message="", outputs=outputs(tmp_path), wall_seconds=45)
    found = verified(done, job, box, limits=limits, killed=lambda: None)
    assert FAULTS[found.verdict] is fault
    assert len(found.message) < 400
    assert not found.outputs
    assert box.order.limits.wall_seconds == 15  # what the job has left of its own time
    assert box.order.trusted


@pytest.mark.parametrize("trusted", [True, False])
def test_refused_outputs_of_the_engine_alone_look_like_a_fault_of_the_engines(tmp_path, trusted):
    limits = BoxLimits(wall_seconds=60, cpu_seconds=20, memory_mb=512, file_mb=20)
    job = BoxOrder(label="a", tenant="a", scratch=tmp_path, job=ORDER, outputs=(), limits=limits, trusted=trusted)
    box = Verifier(BoxReport(verdict=Verdict.BAD_OUTPUT, message="artifact.json counts 3 rows"))
    done = BoxReport(verdict=Verdict.OK, message="", outputs=outputs(tmp_path))
    found = verified(done, job, box, limits=limits, killed=lambda: None)
    assert ("artifact.json counts 3 rows" in found.suspicion) is trusted
    assert found.verdict is (Verdict.ENGINE_FAILED if trusted else Verdict.BAD_OUTPUT)


def long_book(**changes: bytes) -> io.BytesIO:
    """A workbook of several pieces, one of its late cells replaced."""
    file = io.BytesIO()
    book = BookWriter(file, title="t")
    sheet = book.sheet("Normalized", [OutputColumn("Name"), OutputColumn("Pay"), OutputColumn("Note")])
    names: list[str | None] = [f"name {n}" for n in range(12_000)]
    names[11_500] = None
    sheet.write(
        [names, [n / 4 for n in range(12_000)], ["a & b" if n == 10_900 else "x" for n in range(12_000)]], 12_000
    )
    sheet.close()
    book.close()
    parts = members(file.getvalue())
    if changes:
        sheet_part = parts["xl/worksheets/sheet1.xml"]
        assert changes["old"] in sheet_part
        parts["xl/worksheets/sheet1.xml"] = sheet_part.replace(changes["old"], changes["new"], 1)
    return io.BytesIO(zipped(parts.items()))


def test_a_long_sheet_passes_with_blanks_and_entities_among_its_usual_rows():
    assert read_book(long_book(), title="t", formats=()) == [WrittenSheet("Normalized", 3, 12_000)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"<v>2750.0</v>", b"<f>1+1</f><v>2750.0</v>"),
        (b"<v>2750.0</v>", b"<v>=2750</v>"),
        (b"<t>name 11001</t>", b"<t>name <!-- --> 11001</t>"),
        (b"<t>name 11001</t>", b"<t>name &#61; 11001</t>"),
        (b'<row r="11003">', b'<row r="11003" x="1">'),
        (b'<row r="11003">', b'<row r="11004">'),
        (b'</row><row r="11003">', b'</row>=1<row r="11003">'),
        (b'<c r="A11003" ', b'<c r="A11003" cm="1" '),
    ],
)
def test_one_cell_that_the_writer_could_not_write_is_refused_after_thousands_of_usual_rows(old, new):
    with pytest.raises(BadOutput, match=r"something other than values|rows out of order"):
        read_book(long_book(old=old, new=new), title="t", formats=())
