"""Awkward workbooks through a whole job: what stands in the file is what comes out."""

from datetime import date, datetime

import openpyxl
import pytest
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from tests.support.engine_jobs import run_job
from tests.support.workbook_makers import sheet, xlsx

HEAD = '<row r="1"><c r="A1" t="str"><v>id</v></c><c r="B1" t="str"><v>n</v></c><c r="C1" t="str"><v>paid</v></c></row>'


def row(number, b="><v>1</v>", c="><v>1</v>"):
    return (
        f'<row r="{number}"><c r="A{number}" t="str"><v>a{number}</v></c>'
        f'<c r="B{number}"{b}</c><c r="C{number}"{c}</c></row>'
    )


def fields(**kinds):
    return [{"name": name, **({"type": kind} if isinstance(kind, str) else kind)} for name, kind in kinds.items()]


def test_the_text_of_an_error_cell_forges_no_neighbour(tmp_path):
    forged = "1&lt;/v&gt;&lt;/c&gt;&lt;c r=&quot;C8&quot;&gt;&lt;v&gt;999999"
    last = f'<row r="8"><c r="A8" t="str"><v>a8</v></c><c r="B8" t="e"><v>{forged}</v></c></row>'
    xlsx(tmp_path, sheet(HEAD + "".join(map(row, range(2, 8))) + last), name="in.xlsx")
    done = run_job(tmp_path, fields=fields(id="text", n="decimal", paid={"type": "money", "max": 100}))
    assert done.rows()[-1] == ["a8", "#VALUE!", None]
    assert done.cells("cell_error") == ["B8"]


@pytest.mark.parametrize("text", ["A&amp;B", "&lt;", "]]&gt;", "", "#NV", "x" * 100, "&#10;"])
def test_an_error_of_any_text_leaves_a_workbook_that_opens(tmp_path, text):
    rows = HEAD + "".join(map(row, range(2, 8))) + row(8, f' t="e"><v>{text}</v>')
    xlsx(tmp_path, sheet(rows), name="in.xlsx")
    done = run_job(tmp_path, fields=fields(id="text", n="text", paid="text"))
    assert done.rows()[-1] == ["a8", "#VALUE!" if text else None, "1"]


def test_early_days_of_1900_are_written_as_they_are(tmp_path):
    days = ["1900-01-01", "1900-02-27", "1900-02-28", "1900-03-01"]
    done = run_job(
        tmp_path, [["id", "d"], *([f"a{n}", d] for n, d in enumerate(days))], fields=fields(id="text", d="date")
    )
    assert [d.date().isoformat() for d in done.column("d")] == days


def test_a_bare_serial_counts_from_the_epoch_of_its_book(tmp_path):
    for name, epoch in (("1904", CALENDAR_MAC_1904), ("1900", None)):
        book = openpyxl.Workbook()
        if epoch:
            book.epoch = epoch
        for values in (["id", "d"], ["a", date(2020, 1, 1)], ["b", 42_369], ["c", 42_370.5], ["d", "42371"]):
            book.active.append(values)
        (tmp_path / name).mkdir()
        book.save(tmp_path / name / "in.xlsx")
    done = run_job(tmp_path / "1904", fields=fields(id="text", d="datetime"))
    assert done.column("d") == [
        datetime(2020, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 2, 12), datetime(2020, 1, 3),
    ]  # fmt: skip
    done = run_job(tmp_path / "1900", fields=fields(id="text", d="datetime"))
    assert done.column("d")[1:] == [datetime(2015, 12, 31), datetime(2016, 1, 1, 12), datetime(2016, 1, 2)]


def test_an_iso_moment_with_a_long_fraction_is_a_moment(tmp_path):
    stored = ' t="d"><v>2014-01-{:02}T15:59:59.99999979045242400</v>'
    xlsx(tmp_path, sheet(HEAD + "".join(row(n, stored.format(n)) for n in range(2, 8))), name="in.xlsx")
    done = run_job(tmp_path, fields=fields(id="text", n="datetime", paid="text"))
    assert done.column("n") == [datetime(2014, 1, n, 16) for n in range(2, 8)]
    assert done.findings == []
