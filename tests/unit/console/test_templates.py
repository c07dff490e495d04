"""A template that a sender fills in comes back through the engine without a question and without a finding."""

import datetime as dt
import json
import shutil
import subprocess
from xml.sax.saxutils import escape

import openpyxl
import pytest

from console.desk.templates import LISTS, ROWS, write_template
from core.errors import UsageError
from core.manifests import parse_manifest
from tests.support.engine_jobs import run_order

FIELDS = [
    {"name": "member_id", "label": "Member ID", "required": True, "unique": True, "pattern": "[0-9]{5}", "examples": ["00017"]},
    {"name": "name", "label": "Name", "min_length": 2, "max_length": 40, "description": "as in the passport"},
    {"name": "visits", "type": "integer", "min": 0, "max": 50},
    {"name": "pay", "label": "Gross pay", "type": "money", "min": 0},
    {"name": "rate", "type": "percent"},
    {"name": "start", "label": "Start date", "type": "date", "min": "2020-01-01", "max": "2030-12-31"},
    {"name": "seen", "type": "datetime"},
    {"name": "at", "type": "time"},
    {"name": "active", "type": "boolean", "required": True},
    {"name": "mail", "type": "email"},
    {"name": "phone", "type": "phone"},
    {"name": "site", "type": "url"},
    {"name": "plan", "type": "enum", "allowed": ["gold", "silver"], "severity": "warning"},
    {"name": "source", "constant": "template"},
]  # fmt: skip
FILLED = [
    [f"{n:05}", f"Ann Lee {n}", n, 1200.5 + n, 0.25, dt.date(2026, 1, 1 + n), dt.datetime(2026, 1, 1, 9, n), dt.time(9, n),
     "yes" if n % 2 else "no", f"a{n}@example.com", f"+4930123456{n}", f"https://example.com/{n}", ("gold", "silver")[n % 2]]
    for n in range(9)
]  # fmt: skip


def made(tmp_path, fields=FIELDS, **manifest):
    path = tmp_path / "template.xlsx"
    parsed = parse_manifest(json.dumps({"manifest": 1, "name": "members", "fields": fields, **manifest}).encode())
    write_template(parsed, path)
    return path


def fill(path, to):
    book = openpyxl.load_workbook(path)
    sheet = book.worksheets[0]
    for row, values in enumerate(FILLED, 2):
        for column, value in enumerate(values, 1):
            sheet.cell(row, column, value)
    book.save(to)


def check_whole(folder, name="in.xlsx"):
    outcome = run_in(folder, name)
    assert outcome.findings == []
    assert len(outcome.rows()) == 1 + len(FILLED)
    assert outcome.column("member_id") == [values[0] for values in FILLED]
    assert outcome.column("start") == [dt.datetime.combine(values[5], dt.time()) for values in FILLED]
    assert outcome.column("active") == [values[8] == "yes" for values in FILLED]
    assert outcome.column("pay") == [values[3] for values in FILLED]


def run_in(folder, name):
    """The engine on a file of a folder, asking wherever it is unsure."""
    spec = {"manifest": 1, "name": "members", "fields": FIELDS, "mapping": {"review": "unsure"}}
    checked = parse_manifest(json.dumps(spec).encode())
    order = {
        "order": 1,
        "job": {"job_id": "acme-members-1", "tenant": "acme", "workflow": "members", "attempt": 1},
        "manifest": checked.model_dump(mode="json"),
        "params": {},
        "inputs": [{"role": "primary", "name": name, "path": name, "size": 1, "sha256": "0" * 64}],
        "config": {"path": None, "digest": "0" * 8},
        "outputs": {n: n for n in ("normalized.xlsx", "artifact.json", "review.json")},
        "sandbox": {"driver": "process", "level": "limits", "rungs": {"rlimits": True}},
    }
    return run_order(order, folder)


def test_a_template_filled_by_openpyxl_comes_back_whole(tmp_path):
    fill(made(tmp_path), tmp_path / "in.xlsx")
    check_whole(tmp_path)


def office(folder, source, to):
    """What LibreOffice makes of a file."""
    program = shutil.which("soffice") or shutil.which("libreoffice")
    if program is None:
        pytest.skip("LibreOffice is not installed")
    command = [program, f"-env:UserInstallation=file://{folder}/profile", "--headless"]
    made = folder / "out" / f"{source.stem}.{to.partition(':')[0]}"
    subprocess.run(
        [*command, "--convert-to", to, "--outdir", str(made.parent), str(source)],
        check=True,
        timeout=120,
        capture_output=True,
    )
    return made


def as_written(value):
    """A cell as LibreOffice stores it."""
    match value:
        case str():
            return f'<table:table-cell office:value-type="string"><text:p>{escape(value)}</text:p></table:table-cell>'
        case dt.time():
            typed = f'time" office:time-value="PT{value.hour}H{value.minute}M{value.second}S'
        case dt.date():
            typed = f'date" office:date-value="{value.isoformat()}'
        case _:
            typed = f'float" office:value="{value}'
    return f'<table:table-cell office:value-type="{typed}"/>'


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["xlsx:Calc MS Excel 2007 XML", "ods"])
def test_a_template_filled_in_libreoffice_comes_back_whole(tmp_path, ending):
    """LibreOffice opens the blank template, and writes what stands in its rows then."""
    opened = office(tmp_path, made(tmp_path), "fods")
    rows = ["<table:table-row>" + "".join(map(as_written, values)) + "</table:table-row>" for values in FILLED]
    header, end, blank = opened.read_text().partition("</table:table-row>")
    filled = tmp_path / "in.fods"
    filled.write_text(header + end + "".join(rows) + blank)
    saved = office(tmp_path, filled, ending)
    assert saved.stat().st_size > 1000
    check_whole(saved.parent, saved.name)


def test_headers_carry_notes_drop_downs_and_checks(tmp_path):
    sheet = openpyxl.load_workbook(made(tmp_path)).worksheets[0]
    assert [cell.value for cell in sheet[1]][:3] == ["Member ID", "Name", "visits"]
    assert "never blank" in sheet["A1"].comment.text
    assert "for example 00017" in sheet["A1"].comment.text
    assert sheet["B1"].comment.text.startswith("as in the passport")
    checks = {str(check.sqref).split(":")[0]: check for check in sheet.data_validations.dataValidation}
    assert checks["M2"].formula1 == '"gold,silver"'
    assert checks["M2"].errorStyle == "warning"
    assert (checks["C2"].type, checks["C2"].formula1, checks["C2"].formula2) == ("whole", "0", "50")
    assert (checks["F2"].type, checks["F2"].formula1) == ("date", "DATE(2020,1,1)")
    assert checks["A2"].formula1 == f"COUNTIF($A$2:$A${ROWS + 1},A2)=1"
    assert sheet.column_dimensions["A"].number_format == "@", "so that Excel keeps leading zeros"


def test_a_drop_down_that_is_long_or_has_commas_is_in_a_hidden_sheet(tmp_path):
    values = ["a, b", *(f"value {n}" for n in range(60))]
    book = openpyxl.load_workbook(made(tmp_path, [{"name": "x", "type": "enum", "allowed": values}]))
    (check,) = book.worksheets[0].data_validations.dataValidation
    assert check.formula1 == f"={LISTS}!$A$1:$A$61"
    assert (book[LISTS].sheet_state, book[LISTS]["A1"].value) == ("hidden", "a, b")


def test_labels_that_two_fields_share_give_way_to_names(tmp_path):
    fields = [{"name": "a", "label": "Date"}, {"name": "b", "label": "date"}, {"name": "c", "label": "A"}]
    sheet = openpyxl.load_workbook(made(tmp_path, fields)).worksheets[0]
    assert [cell.value for cell in sheet[1]] == ["a", "b", "c"]


def test_the_sheet_is_one_that_the_manifest_reads(tmp_path):
    assert openpyxl.load_workbook(made(tmp_path, reading={"sheets": ["*2026", "Orders"]})).sheetnames == ["Orders"]


def test_a_manifest_without_columns_has_no_template(tmp_path):
    with pytest.raises(UsageError, match="no field that comes from a column"):
        made(tmp_path, [{"name": "a", "constant": "x"}])


def test_fields_of_several_columns_have_them_all_and_computed_ones_have_none(tmp_path):
    fields = [
        {"name": "full_name", "from": {"columns": ["First name", "Last name"], "combine": "join"}},
        {"name": "initials", "from": {"file": True}},
        {"name": "state", "type": "enum", "allowed": ["open", "closed"], "map": {"O": "open", "C": "closed"}},
        {"name": "plan", "description": "Plan; 3 samples, 120 values: texts"},
    ]
    sheet = openpyxl.load_workbook(made(tmp_path, fields)).worksheets[0]
    assert [cell.value for cell in sheet[1]] == ["First name", "Last name", "state", "plan"]
    (check,) = sheet.data_validations.dataValidation
    assert check.formula1 == '"O,C"'
    assert sheet["D1"].comment.text.startswith("Plan\n")
