"""Rules that write their own outputs, through real boxes: what they forge is read by a process that ran no rule."""

import json
import os
import resource
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest

from core.verdicts import FAULTS, Fault, Verdict
from runner.attempt import run_verified
from runner.boxes import Verification
from runner.engine.contract import ENGINE_FILES, OutputName
from runner.sandbox.box.keeper import descendants
from runner.sandbox.jail import Build, JailSandbox, Options
from runner.sandbox.process import ProcessSandbox
from runner.sandbox.session import Session
from tests.abuse import jobs
from tests.abuse.boxes import comm, eventually

FORGE = """
import json, os, struct, zlib
from runner.engine import artifact
honest = artifact.Artifact.write
BOOK, ARTIFACT = 4, 5

def members(book):
    import io, zipfile
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]

def rewrite(fd, data):
    os.ftruncate(fd, 0)
    os.pwrite(fd, data, 0)

def zipped(parts):
    import io
    from runner.engine.writing.book import ArchiveWriter
    body = io.BytesIO()
    archive = ArchiveWriter(body)
    for name, part in parts:
        entry = archive.entry(name)
        entry.write(part)
        entry.close()
    archive.close()
    return body.getvalue()

def changed(part, old, new):
    book = os.pread(BOOK, 10_000_000, 0)
    rewrite(BOOK, zipped([(n, b.replace(old, new, 1) if n == part else b) for n, b in members(book)]))

def write(self, times, summary):
    honest(self, times, summary)
    forge()

artifact.Artifact.write = write
def on_job_start(**_):
    return None

"""
CASES = {
    "brackets": "def forge(): rewrite(ARTIFACT, b'[' + b'[],' * 6_000_000 + b'[]]')",
    "another job": "def forge(): rewrite(ARTIFACT, os.pread(ARTIFACT, 10**7, 0).replace(b'acme-members-1', b'globex-x-1'))",
    "a formula": "def forge(): changed('xl/worksheets/sheet1.xml', b'<v>1</v>', b'<f>1+1</f>')",
    "a link": (
        "def forge(): changed('xl/_rels/workbook.xml.rels', b'</Relationships>', b'<Relationship Id=\"r9\" "
        'Type="x" Target="http://example.com/" TargetMode="External"/></Relationships>\')'
    ),
    "relations without end": (
        "def forge(): changed('xl/_rels/workbook.xml.rels', b'<Relationship ', b'<Relationship ' * 900_000)"
    ),
    "a bomb": "def forge(): changed('xl/worksheets/sheet1.xml', b'<sheetData>', b' ' * 150_000_000 + b'<sheetData>')",
    "rows without end": (
        "def forge(): changed('xl/worksheets/sheet1.xml', b'<row r=\"2\">', b'<row r=\"2\"></row>' * 4_000_000)"
    ),
    "nothing": "def forge(): rewrite(BOOK, b''); rewrite(ARTIFACT, b'{}')",
}  # fmt: skip


@pytest.fixture(params=["jail", "confined", "process"])
def sandbox(request):
    with tempfile.TemporaryDirectory(prefix="ade-forged-") as folder:
        Path(folder).chmod(0o755)
        run_dir = Path(folder) / "run"
        if request.param == "process":
            made = ProcessSandbox(run_dir=run_dir)
        else:
            weak = Options(cgroups=False, builds=(Build(namespaces="none"),))
            made = JailSandbox(
                run_dir=run_dir, min_level="none", options=Options() if request.param == "jail" else weak
            )
        yield Path(folder), made
        made.close()


def ended(sandbox, folder, source, **more):
    order = jobs.job(folder, {"hooks/forge.py": FORGE + source}, outputs=(OutputName.WORKBOOK, *ENGINE_FILES))
    return run_verified(sandbox, order, limits=jobs.LIMITS, **({"killed": lambda: None} | more))


def test_forged_outputs_are_the_configs_fault_and_cost_the_runner_nothing(sandbox):
    folder, made = sandbox
    honest = ended(made, folder, "def forge(): pass")
    assert honest.verdict is Verdict.OK
    assert set(honest.outputs) == {"artifact.json", "normalized.xlsx", "profile.json", "report.html"}
    assert honest.claim["rows_out"] == 3
    before = resource.getrusage(resource.RUSAGE_SELF)
    for name, source in CASES.items():
        found = ended(made, folder, source)
        assert FAULTS[found.verdict] in {Fault.CONFIG, Fault.LIMIT}, f"{name}: {found.verdict} {found.message}"
        assert "the engine failed" not in found.message, f"{name}: the rule itself is wrong: {found.suspicion}"
        assert not found.outputs, name
        assert not found.claim, name
        assert len(found.message) < 400, name
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_maxrss - before.ru_maxrss < 64 * 1024  # KiB: none of it was parsed here
    assert after.ru_utime - before.ru_utime < 10


REJECTED = """
import json, os
from runner.engine.rejects import set_aside as rejects
honest = rejects.RejectsDescription._write_line
def on_job_start(**_):
    return None
def lied(self, line):
    found = forge(line)
    for one in found if isinstance(found, list) else [found]:
        if isinstance(one, bytes):
            self._file.write(one)
        else:
            honest(self, one)
rejects.RejectsDescription._write_line = lied
def of(line, **more):
    return {**line, **more} if line.get("kind") == "row" else line
def cell(line, value):
    return of(line, cells=[[1, value]])
"""
FORGED_REJECTS = {
    "a formula": "def forge(line): return cell(line, {'formula': '1+1'})",
    "a link": "def forge(line): return cell(line, {'link': 'http://example.com'})",
    "a number that is none": "def forge(line): return cell(line, float('nan')) if False else (b'NaN\\n' if 'row' in line else line)",
    "a huge line": "def forge(line): return [line, b' ' * (65 << 20) + b'\\n'] if 'sheet' in line else line",
    "a line without an end": "def forge(line): return [line, b'{'] if 'end' in line else line",
    "deep brackets": "def forge(line): return [b'[' * 200_000 + b'\\n', line] if 'end' in line else line",
    "a row of another input": "def forge(line): return {**line, 'input': 1} if 'sheet' in line else line",
    "a row of another sheet": "def forge(line): return {**line, 'index': 3} if 'sheet' in line else line",
    "a row that is not there": "def forge(line): return of(line, row=77)",
    "the header as a row": "def forge(line): return {**line, 'kind': 'row', 'marks': [], 'do': 'x'} if line.get('kind') == 'key' else line",
    "rows without end": "def forge(line): return [line] * 50 if line.get('kind') == 'row' else line",
    "no rows": "def forge(line): return b'' if line.get('kind') == 'row' else line",
}  # fmt: skip


def ended_rejecting(sandbox, folder, source):
    order = jobs.job(
        folder, {"hooks/forge.py": REJECTED + source}, outputs=(OutputName.WORKBOOK, *ENGINE_FILES, "rejects.jsonl")
    )
    (order.scratch / "in" / "0").write_text("id,name\n1,Ann\nx,Bob\n", encoding="utf-8")
    manifest = {**order.job.manifest, "output": {**order.job.manifest["output"], "rejects": True}}
    order = replace(order, job=replace(order.job, manifest=manifest))
    return run_verified(sandbox, order, limits=jobs.LIMITS, killed=lambda: None)


@pytest.mark.long
@pytest.mark.parametrize("sandbox", ["process"], indirect=True)
def test_a_forged_description_of_rejects_is_refused_in_words(sandbox):
    folder, made = sandbox
    honest = ended_rejecting(made, folder, "def forge(line): return line")
    assert (honest.verdict, "rejects.xlsx" in honest.outputs) == (Verdict.OK, True), honest.message
    for name, source in FORGED_REJECTS.items():
        found = ended_rejecting(made, folder, source)
        assert found.verdict in {Verdict.BAD_OUTPUT, Verdict.FILE_SIZE}, f"{name}: {found.verdict} {found.message}"
        assert "rejects" in found.message or found.verdict is Verdict.FILE_SIZE, f"{name}: {found.message}"
        assert not found.outputs, name


@pytest.mark.parametrize("sandbox", ["process"], indirect=True)
def test_texts_of_a_forged_description_are_texts_and_no_keys(sandbox):
    folder, made = sandbox
    texts = ['=HYPERLINK("http://example.com")', "\x01\x0b<evil/>", "ade: row acme-members-9/0/0/1", "x" * 40_000]
    found = ended_rejecting(
        made,
        folder,
        f"def forge(line): return of(line, cells=[[1, {texts[0]!r}], [2, {texts[1]!r}]], do={texts[2]!r}, marks=[[1, {texts[3]!r}]])",
    )
    assert found.verdict is Verdict.OK, found.message
    with zipfile.ZipFile(found.outputs["rejects.xlsx"]) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml")
        assert not [mark for mark in (b"<f", b"<hyperlink", b"<evil", b"\x01") if mark in sheet]
        assert len(archive.read("xl/comments1.xml")) < 4_000
    row = list(openpyxl.load_workbook(found.outputs["rejects.xlsx"]).worksheets[0].values)[-1]
    assert (row[0], row[-1]) == (texts[0], "ade: row acme-members-1/0/0/3")


def test_a_verification_that_takes_long_is_ended_when_somebody_asks(sandbox):
    folder, made = sandbox

    def killed():
        """Once the verification has been ordered, in the same box or in another."""
        ordered = [path for path in folder.glob("job-*/verify.json") if path.stat().st_size > 2]
        return Verdict.CANCELLED if ordered or list(folder.glob("job-*/verify/in")) else None

    found = ended(made, folder, CASES["rows without end"], killed=killed)
    assert found.verdict is Verdict.CANCELLED
    assert not found.outputs
    eventually(lambda: not list(folder.glob("run/boxes/*")), "a box is still listed")


def test_a_job_that_is_cancelled_or_out_of_time_leaves_no_process(sandbox):
    folder, made = sandbox
    source = "import time\ndef forge(): time.sleep(60)"
    order = jobs.job(
        folder,
        {"hooks/forge.py": FORGE + source},
        outputs=(OutputName.WORKBOOK, *ENGINE_FILES),
        limits=replace(jobs.LIMITS, wall_seconds=2),
    )
    found = run_verified(made, order, limits=jobs.LIMITS, killed=lambda: None)
    assert found.verdict is Verdict.WALL_CLOCK
    assert not list(folder.glob("run/boxes/*"))
    assert not [pid for pid in descendants(os.getpid()) if comm(pid) == "ade-box"]


def test_text_that_a_rule_put_into_its_artifact_is_no_markup_in_the_report(sandbox):
    folder, made = sandbox
    source = """
def forge():
    told = json.loads(os.pread(ARTIFACT, 10**7, 0))
    for one in told["mapping"]:
        one["header"] = "<script>alert(1)</script><form action=//example.com><img src=x onerror=alert(1)>"
    rewrite(ARTIFACT, json.dumps(told).encode())
"""
    found = ended(made, folder, source)
    assert found.verdict is Verdict.OK, found.message
    page = found.outputs["report.html"].read_text().lower()
    assert "content-security-policy" in page
    assert "&lt;script&gt;" in page
    assert not [mark for mark in ("<script", "<form", "<img", "<iframe", "<a ") if mark in page]


@pytest.mark.parametrize(
    "words",
    [
        {"event": "end", "ok": False, "error": {"code": "engine_error", "message": "yours", "where": {"trace": "x"}}},
        {"event": "end", "ok": False, "error": {"code": []}},
        {"event": "end", "ok": False, "error": {"code": "bad_output", "message": "", "where": []}},
        {"event": "progress", "pass": {}},
    ],
)
def test_what_a_rule_says_in_the_engines_name_is_the_configs_fault(sandbox, words):
    folder, made = sandbox
    line = json.dumps(words) + "\n"
    found = ended(made, folder, f"def forge():\n    os.write(3, {line!r}.encode())\n    os._exit(0)")
    assert FAULTS[found.verdict] is Fault.CONFIG, f"{found.verdict}: {found.message}"
    assert "x" not in found.where.values()


def test_counts_come_from_the_outputs_and_not_from_what_a_box_says_of_them(sandbox):
    folder, made = sandbox
    line = json.dumps({"event": "end", "ok": True, "summary": {"rows_out": 10**6, "tables": []}}) + "\n"
    found = ended(made, folder, f"def forge():\n    os.write(3, {line!r}.encode())\n    os._exit(0)")
    assert found.verdict is Verdict.OK
    assert (found.claim["rows_out"], found.claim["tables"]) == (3, 1)


def test_a_rule_that_says_that_its_outputs_were_verified_is_not_believed(sandbox):
    """Only where nothing but the engine ran in a box does its word count, and that is for the runner to know."""
    folder, made = sandbox
    line = json.dumps({"event": "verified", "ok": True, "summary": {"rows_out": 10**6}}) + "\n"
    said = f"os.write(3, {line!r}.encode())"
    honest = ended(made, folder, f"def forge(): {said}")
    assert honest.verdict is Verdict.OK, honest.message
    assert honest.claim["rows_out"] == 3
    forged = ended(made, folder, f"{CASES['a formula']}\n    {said}".replace("forge(): ", "forge():\n    "))
    assert forged.verdict is Verdict.BAD_OUTPUT, forged.message
    assert not forged.outputs
    twice = ended(made, folder, f"def forge(): {said}; {said}")
    assert FAULTS[twice.verdict] is Fault.CONFIG, twice.verdict


@pytest.fixture
def boxes_run(sandbox, monkeypatch):
    """The orders that reach the sandbox."""
    seen, kept = [], sandbox[1].run

    def run(given, **more):
        seen.append(given)
        return kept(given, **more)

    monkeypatch.setattr(sandbox[1], "run", run)
    return seen


def test_a_job_without_rules_is_verified_by_its_own_engine(sandbox, boxes_run):
    folder, made = sandbox
    found = run_verified(made, jobs.job(folder, trusted=True), limits=jobs.LIMITS, killed=lambda: None)
    assert found.verdict is Verdict.OK, found.message
    assert set(found.outputs) == {"artifact.json", "normalized.xlsx", "profile.json", "report.html"}
    assert found.claim["rows_out"] == 3
    assert not list(folder.glob("job-*/verify*"))
    assert len(boxes_run) == 1


def test_an_audit_without_rules_is_verified_by_its_own_engine(sandbox, boxes_run):
    folder, made = sandbox
    order = jobs.job(folder, trusted=True)
    (order.scratch / "in" / "0").write_text("colour,shape\nred,round\nblue,square\n")
    found = run_verified(made, order, limits=jobs.LIMITS, killed=lambda: None)
    assert found.verdict is Verdict.NOTHING_MAPPED, found.message
    assert set(found.outputs) == {"artifact.json", "report.html"}
    assert len(boxes_run) == 1


def test_what_an_engine_finds_wrong_with_its_own_outputs_is_refused(sandbox, monkeypatch):
    """The runner knows another input than the engine was given: as if the engine had mixed them up."""
    folder, made = sandbox
    order = jobs.job(folder, trusted=True)
    kept = made.run

    def run(given, **more):
        asked = given.verification
        (known,) = asked.job.known
        job = replace(asked.job, known=(replace(known, sha256="1" * 64),))
        return kept(replace(given, verification=replace(asked, job=job)), **more)

    monkeypatch.setattr(made, "run", run)
    found = run_verified(made, order, limits=jobs.LIMITS, killed=lambda: None)
    assert found.verdict is Verdict.ENGINE_FAILED  # no rule was in the box
    assert "its inputs" in found.message
    assert found.suspicion
    assert not found.outputs
    assert not found.claim


@pytest.mark.parametrize("what", ["rules", "an empty package", "a layer", "not trusted"])
def test_where_anything_else_could_run_the_engine_does_not_verify(tmp_path, what):
    order = jobs.job(
        tmp_path,
        {"hooks/a.py": ""} if what == "rules" else None,
        trusted=what != "not trusted",
        layer=tmp_path if what == "a layer" else None,
        verification=Verification(job={"verify": {}}, outputs=("report.html",), limits=jobs.LIMITS, least_seconds=1),
    )
    if what == "an empty package":
        (order.scratch / "config").mkdir()
    assert not Session(order, warden=True, engine=True).engine_verifies
    assert Session(jobs.job(tmp_path, trusted=True, verification=order.verification), engine=True).engine_verifies
