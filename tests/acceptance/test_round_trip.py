"""The round trip with the sender: rejects.xlsx goes out, comes back corrected, and the result is whole."""

import json
from collections.abc import Container
from contextlib import closing
from pathlib import Path

import openpyxl
import pytest

from infra.addresses import parse_address
from infra.aws.calls import client
from infra.deploy.local_cloud import free_port
from tests.acceptance.ade import Ade
from tests.contract import servers

pytestmark = pytest.mark.slow

MANIFEST = {
    "manifest": 1,
    "name": "members",
    "inputs": {"primary": ["*.xlsx"]},
    "fields": [
        {"name": "member_id", "required": True, "unique": True},
        {"name": "email", "type": "email"},
        {"name": "plan", "type": "enum", "allowed": ["gold", "silver"]},
        {"name": "gross_pay", "type": "money", "min": 0},
    ],
    "output": {"rejects": True},
    "on_error": "split",
}
ROWS, BAD = 1_000, 37


def members(path: Path) -> Path:
    """A thousand members under a title, 37 of them with an error."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Members of the year"])
    sheet.append(["Member ID", "Email", "Plan", "Gross Pay", "Remarks"])
    for n in range(ROWS):
        wrong = n % 27 == 5 and n // 27 < BAD
        sheet.append([f"M{n:06}", "nobody" if wrong else f"m{n}@example.com", "gold", 10 + n / 2, f"remark {n}"])
    book.save(path)
    return path


def result(ade, job: dict) -> tuple[dict, Path]:
    folder = ade.bucket / ade("outputs", job["job_id"], "--json").json["outputs"]
    return json.loads((folder / "result.json").read_text()), folder


def rows(path: Path) -> list[tuple]:
    return list(openpyxl.load_workbook(path).worksheets[0].iter_rows(min_row=2, values_only=True))


def drop(ade, name: str, *, expect: int = 0) -> dict:
    words = (name, "--manifest", "manifest.json", "--tenant", "acme", "--path", "2026", "--wait", "--json")
    jobs = ade("drop", *words, expect=expect).json["jobs"]
    return next(job for job in jobs if job["subject"] == f"2026/{name}")


def mend(path: Path, to: Path, email: str = "mended{}@example.com", only: Container[int] = range(ROWS)) -> int:
    """What a sender does: correct the marked cells (of `only` some rows) and save under another name."""
    book = openpyxl.load_workbook(path)
    sheet, mended = book.worksheets[0], 0
    for n, row in enumerate(sheet.iter_rows(min_row=3)):
        for cell in row:
            if cell.comment is not None and n in only:
                mended += 1
                cell.value = email.format(mended)
    book.save(to)
    return mended


def test_37_bad_rows_of_1000_come_back_mended_and_the_result_is_complete(ade):
    ade.write("manifest.json", MANIFEST)
    members(ade.home / "members.xlsx")
    with ade.up():
        first = drop(ade, "members.xlsx")
        told, folder = result(ade, first)
        assert (told["summary"]["rows_out"], told["summary"]["left_out"]) == (ROWS - BAD, {"rejected": BAD})
        assert len(rows(folder / "normalized.xlsx")) == ROWS - BAD
        assert len(rows(folder / "rejects.xlsx")) == BAD + 1  # the header below the title
        assert mend(folder / "rejects.xlsx", ade.home / "mended.xlsx") == BAD
        second = drop(ade, "mended.xlsx")
        whole, folder = result(ade, second)
        # Once more: a file that corrects some rows only, then one that corrects what is left of them.
        still = mend(result(ade, first)[1] / "rejects.xlsx", ade.home / "half.xlsx", "still wrong {}")
        third = drop(ade, "half.xlsx")
        mend(result(ade, third)[1] / "rejects.xlsx", ade.home / "rest.xlsx", "rest{}@example.com")
        last, _ = result(ade, drop(ade, "rest.xlsx"))
    assert (whole["summary"]["rows_out"], whole["summary"]["rows_with_errors"]) == (ROWS, 0)
    assert whole["mends"] == {"job_id": first["job_id"], "subject": "2026/members.xlsx"}
    written = rows(folder / "normalized.xlsx")
    assert [row[0] for row in written] == [f"M{n:06}" for n in range(ROWS)]
    assert [row[1] for row in written if row[1].startswith("mended")] == [
        f"mended{n}@example.com" for n in range(1, 38)
    ]
    assert still == BAD
    assert (last["summary"]["rows_out"], last["mends"]["job_id"]) == (ROWS, first["job_id"])
    latest = json.loads((ade.bucket / "outputs/acme/2026/members.xlsx/members/latest.json").read_text())
    assert latest["job_id"] == last["job_id"], "the first drop's latest.json names the newest whole result"


def test_keys_of_another_tenant_of_a_lost_job_or_of_a_replaced_file_are_refused_in_words(ade):
    ade.write("manifest.json", MANIFEST)
    members(ade.home / "members.xlsx")
    with ade.up():
        first = drop(ade, "members.xlsx")
        path = result(ade, first)[1] / "rejects.xlsx"
        mend(path, ade.home / "mended.xlsx")
        other = ("mended.xlsx", "--manifest", "manifest.json", "--tenant", "other", "--wait", "--json")
        (stolen,) = ade("drop", *other, expect=1).json["jobs"]
        forged = openpyxl.load_workbook(ade.home / "mended.xlsx")
        for row in forged.worksheets[0].iter_rows():
            for cell in row:
                if isinstance(cell.value, str) and cell.value.startswith("ade: "):
                    cell.value = cell.value.replace(first["job_id"], "acme-members-00000000")
        forged.save(ade.home / "forged.xlsx")
        lost = drop(ade, "forged.xlsx", expect=1)
        ade.write("members.xlsx", "replaced")
        drop(ade, "members.xlsx", expect=1)
        late = drop(ade, "mended.xlsx", expect=1)
    for job in (stolen, lost):
        assert job["error"]["verdict"] == "mends"
        assert "nothing is known any more; drop the whole file again" in job["error"]["message"]
    assert "members.xlsx is needed to put corrected rows back, but is gone or was replaced" in late["error"]["message"]


@pytest.mark.long
def test_the_same_over_s3_sqs_and_dynamodb_also_by_two_people(tmp_path):
    server, name = servers.ministack(), f"rejects-{free_port()}"
    env = {
        "ADE_SANDBOX": "process",
        "ADE_SANDBOX_MIN_LEVEL": "limits",
        **server.environment,
        "ADE_STORE_URL": f"s3://{name}?endpoint={server.endpoint}",
        "ADE_TABLE_URL": f"dynamodb://{name}?endpoint={server.endpoint}",
        "ADE_QUEUE_URL": f"sqs://{name}-work?endpoint={server.endpoint}",
        "ADE_EVENTS_URL": f"sqs://{name}-events?endpoint={server.endpoint}",
    }
    ade = Ade(tmp_path, env, within=True)
    with servers.credentials(server), closing(client(parse_address(env["ADE_STORE_URL"]))) as s3:
        ade("infra", "init")

        def put(key: str, body: bytes) -> None:
            s3.put_object(Bucket=name, Key=key, Body=body)

        def get(key: str, to: str) -> Path:
            (tmp_path / to).write_bytes(s3.get_object(Bucket=name, Key=key)["Body"].read())
            return tmp_path / to

        def job_of(file: str) -> dict:
            ade("sweep")
            ade("run", "--drain")
            return next(j for j in ade("jobs", "--json").json if j["subject"] == f"2026/{file}")

        standing = MANIFEST | {"subscribe": ["**/*.xlsx"]}
        del standing["inputs"]
        put("configs/acme/members/manifest.json", json.dumps(standing).encode())
        put("inbox/acme/2026/members.xlsx", members(tmp_path / "members.xlsx").read_bytes())
        first = job_of("members.xlsx")
        assert (first["state"], first["summary"]["rows_out"]) == ("SUCCEEDED", ROWS - BAD)
        sent = get(f"{first['outputs']}rejects.xlsx", "rejects.xlsx")
        assert mend(sent, tmp_path / "ann.xlsx", only=range(20)) == 20
        assert mend(sent, tmp_path / "bob.xlsx", only=range(20, BAD)) == BAD - 20
        for person in ("ann", "bob"):
            put(f"inbox/acme/2026/{person}.xlsx", (tmp_path / f"{person}.xlsx").read_bytes())
            assert job_of(f"{person}.xlsx")["state"] == "SUCCEEDED"
        latest = json.loads(get("outputs/acme/2026/members.xlsx/members/latest.json", "latest.json").read_text())
        whole = json.loads(get(latest["result"], "result.json").read_text())
        assert (whole["summary"]["rows_out"], whole["summary"]["rows_with_errors"]) == (ROWS, 0)
        book = get(latest["result"].replace("result.json", "normalized.xlsx"), "normalized.xlsx")
        assert [row[0] for row in rows(book)] == [f"M{n:06}" for n in range(ROWS)]
    servers.stop_all()
