"""One suite over every database that results can be loaded into."""

import json
import secrets
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from core.loads import LoadBatch, LoadConnection, LoadFailed, LoadRefused, LoadRule, columns_of, widened
from infra.loads import BLOCK_BYTES, open_tables, without_nuls
from infra.own_code import ROOT
from infra.postgres.pg_loads import may_have_guards
from tests.contract import servers


class SqliteRig:
    def __init__(self, folder):
        self.url = f"sqlite:{folder / 'loaded.sqlite'}"
        self.schema = "ade_acme"
        self._file = folder / "loaded.sqlite"

    def rows(self, table, *columns):
        with sqlite3.connect(self._file) as database:
            listed = ", ".join(f'"{c}"' for c in columns)
            return [tuple(r) for r in database.execute(f'SELECT {listed} FROM "{self.schema}.{table}" ORDER BY 1, 2')]


class PostgresRig:
    def __init__(self, _):
        self.url = servers.postgres().endpoint
        self.schema = f"ade_{secrets.token_hex(6)}"

    def rows(self, table, *columns):
        with psycopg.connect(self.url) as database:
            listed = ", ".join(f'"{c}"' for c in columns)
            return database.execute(f'SELECT {listed} FROM "{self.schema}"."{table}" ORDER BY 1, 2').fetchall()


@pytest.fixture(params=[SqliteRig, pytest.param(PostgresRig, marks=pytest.mark.slow)], ids=["sqlite", "postgres"])
def rig(request, tmp_path):
    return request.param(tmp_path)


@pytest.fixture
def tables(rig):
    return open_tables(rig.url, rig.schema)


FIELDS = [{"name": "id", "type": "string"}, {"name": "n", "type": "integer"}]


def batch(job, text, tmp_path, *, stamp=1.0, line="l", fields=FIELDS, table="members", corrects="", place=0, **rule):
    """A batch and its file."""
    file = tmp_path / f"{secrets.token_hex(4)}.csv"
    file.write_text(text, newline="")
    made = LoadBatch(
        job_id=job, line=line, stamp=stamp, digest=str(hash(text)), columns=columns_of({"fields": fields}),
        rule=LoadRule(connection="local", table=table, **rule), corrects=corrects, place=place,
    )  # fmt: skip
    return made, file


ONE = "id,n\r\na,1\r\nb,2\r\n"
TWO = "id,n\r\nb,3\r\nc,4\r\n"


def test_rows_arrive_with_their_job_and_their_number(rig, tables, tmp_path):
    assert tables.load(*batch("j1", ONE, tmp_path)) == 2
    assert rig.rows("members", "_ade_job", "_ade_row", "id", "n") == [("j1", 1, "a", 1), ("j1", 2, "b", 2)]


def test_a_second_load_of_the_same_rows_changes_nothing(rig, tables, tmp_path):
    for _ in range(3):
        assert tables.load(*batch("j1", ONE, tmp_path)) == 2
    assert len(rig.rows("members", "id", "n")) == 2


def test_a_job_that_ran_again_replaces_its_own_rows(rig, tables, tmp_path):
    tables.load(*batch("j0", ONE, tmp_path))
    tables.load(*batch("j1", ONE, tmp_path))
    tables.load(*batch("j1", TWO, tmp_path))
    assert rig.rows("members", "_ade_job", "id", "n") == [
        ("j0", "a", 1),
        ("j0", "b", 2),
        ("j1", "b", 3),
        ("j1", "c", 4),
    ]


def test_unloading_a_job_takes_its_rows_out_and_can_be_repeated(rig, tables, tmp_path):
    tables.load(*batch("j0", ONE, tmp_path))
    tables.load(*batch("j1", TWO, tmp_path))
    assert [tables.unload("j1"), tables.unload("j1"), tables.unload("never")] == [2, 0, 0]
    assert rig.rows("members", "_ade_job", "id") == [("j0", "a"), ("j0", "b")]
    tables.load(*batch("j1", TWO, tmp_path))
    assert len(rig.rows("members", "id", "n")) == 4


def test_unloading_where_nothing_was_ever_loaded(tables):
    assert tables.unload("j1") == 0


UPSERT = {"mode": "upsert", "columns": ("id",)}


def test_erasing_a_tenant_takes_its_rows_wherever_they_are_and_puts_others_back(rig, tables, tmp_path):
    """Also where tenants share a schema: rows that it replaced come back, and those that others put aside do not."""
    tables.load(*batch("a1", ONE, tmp_path, line="acme/x|w", **UPSERT))
    tables.load(*batch("n1", TWO, tmp_path, line="acme-2/x|w", stamp=2.0, **UPSERT))  # puts acme's b aside
    tables.load(*batch("a2", "id,n\r\nc,9\r\n", tmp_path, line="acme/y|w", **UPSERT))  # puts the neighbour's c aside
    assert tables.erase("acme") >= 3
    assert rig.rows("members", "_ade_job", "id", "n") == [("n1", "b", 3), ("n1", "c", 4)]
    assert tables.erase("acme") == 0
    assert tables.unload("n1") == 2
    assert rig.rows("members", "id", "n") == []


def test_an_upsert_replaces_rows_by_key_and_undoing_it_puts_them_back(rig, tables, tmp_path):
    tables.load(*batch("j0", ONE, tmp_path, line="x", **UPSERT))
    tables.load(*batch("j1", TWO, tmp_path, line="y", **UPSERT))
    assert rig.rows("members", "id", "n", "_ade_job") == [("a", 1, "j0"), ("b", 3, "j1"), ("c", 4, "j1")]
    assert tables.unload("j1") == 2
    assert rig.rows("members", "id", "n", "_ade_job") == [("a", 1, "j0"), ("b", 2, "j0")]


def test_a_job_whose_rows_a_later_one_replaced_is_undone_after_that_one(rig, tables, tmp_path):
    for name, number in (("x", 1), ("a", 2), ("b", 3)):
        tables.load(*batch(name, f"id,n\r\nk,{number}\r\n", tmp_path, line=name, **UPSERT))
    with pytest.raises(LoadRefused, match="unload b first"):
        tables.unload("a")
    with pytest.raises(LoadRefused, match="unload b first"):
        tables.load(*batch("a", "id,n\r\nk,9\r\n", tmp_path, line="a", **UPSERT))
    assert rig.rows("members", "id", "n") == [("k", 3)]
    for name, left in (("b", [("k", 2)]), ("a", [("k", 1)]), ("x", [])):
        tables.unload(name)
        assert rig.rows("members", "id", "n") == left


@pytest.mark.parametrize(("key", "named"), [(("id",), "id"), (("n", "id"), "id"), (("id", "n"), "id")])
def test_a_blank_is_no_key(rig, tables, tmp_path, key, named):
    tables.load(*batch("j0", ONE, tmp_path, line="x", mode="upsert", columns=key))
    with pytest.raises(LoadRefused, match=f"2 rows have no {named}, "):
        tables.load(*batch("j1", "id,n\r\n,1\r\na,7\r\n,2\r\n", tmp_path, line="y", mode="upsert", columns=key))
    assert rig.rows("members", "id", "n") == [("a", 1), ("b", 2)]


def test_a_blank_partition_is_a_partition(rig, tables, tmp_path):
    replace = {"mode": "replace", "columns": ("id",)}
    tables.load(*batch("j0", "id,n\r\n,1\r\n", tmp_path, line="x", **replace))
    tables.load(*batch("j1", "id,n\r\n,2\r\n", tmp_path, line="y", **replace))
    assert rig.rows("members", "id", "n") == [(None, 2)]


def test_characters_that_a_database_has_no_place_for_are_replaced_and_counted(rig, tables, tmp_path):
    made, file = batch("j1", 'id,n\r\na\0b,1\r\n"\0\0",2\r\n', tmp_path)
    assert without_nuls(file) == 3
    tables.load(made, file)
    assert rig.rows("members", "n", "id") == [(1, "a\ufffdb"), (2, "\ufffd\ufffd")]


def test_a_nul_at_the_edge_of_a_block_is_replaced_too(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(b"x" * (BLOCK_BYTES - 1) + b"\0\0" + b"y")
    assert without_nuls(file) == 2
    assert file.read_bytes() == b"x" * (BLOCK_BYTES - 1) + "\ufffd\ufffdy".encode()
    assert without_nuls(file) == 0


def test_a_key_that_comes_twice_is_refused_and_changes_nothing(rig, tables, tmp_path):
    tables.load(*batch("j0", ONE, tmp_path, line="x", **UPSERT))
    with pytest.raises(LoadRefused, match="more than once"):
        tables.load(*batch("j1", "id,n\r\na,5\r\na,6\r\n", tmp_path, line="y", **UPSERT))
    assert rig.rows("members", "id", "n") == [("a", 1), ("b", 2)]


@pytest.mark.parametrize(
    "rule", [{}, UPSERT, {"mode": "replace", "columns": ("id",)}], ids=["append", "upsert", "replace"]
)
def test_a_corrected_result_takes_the_place_of_the_drops_own_and_undoing_it_puts_that_back(rig, tables, tmp_path, rule):
    second = {"corrects": "first", "place": 2, **rule}
    tables.load(*batch("other", "id,n\r\nz,9\r\n", tmp_path, line="other", **rule))
    tables.load(*batch("first", "id,n\r\na,1\r\nwrong,2\r\n", tmp_path, **rule))
    assert tables.load(*batch("c2", "id,n\r\na,1\r\nb,2\r\nc,3\r\n", tmp_path, **second)) == 3
    corrected = [("c2", "a", 1), ("c2", "b", 2), ("c2", "c", 3), ("other", "z", 9)]
    assert rig.rows("members", "_ade_job", "id", "n") == corrected
    assert tables.load(*batch("c1", ONE, tmp_path, corrects="first", place=1, **rule)) == 0, "it has less than c2"
    assert tables.load(*batch("first", TWO, tmp_path, **rule)) == 0, "and so has the drop itself"
    with pytest.raises(LoadRefused, match="unload c2 first"):
        tables.unload("first")
    assert rig.rows("members", "_ade_job", "id", "n") == corrected
    assert tables.unload("c2") == 3
    assert rig.rows("members", "id", "n") == [("a", 1), ("wrong", 2), ("z", 9)]


def test_a_correction_of_an_older_version_comes_too_late(rig, tables, tmp_path):
    tables.load(*batch("v1", ONE, tmp_path, **UPSERT))
    tables.load(*batch("v2", TWO, tmp_path, stamp=2.0, **UPSERT))
    assert tables.load(*batch("c1", "id,n\r\nb,7\r\n", tmp_path, corrects="v1", place=1, **UPSERT)) == 0
    assert rig.rows("members", "id", "n") == [("a", 1), ("b", 3), ("c", 4)]


def test_a_replacement_replaces_whole_partitions(rig, tables, tmp_path):
    replace = {"mode": "replace", "columns": ("id",)}
    tables.load(*batch("j0", "id,n\r\na,1\r\na,2\r\nb,3\r\n", tmp_path, line="x", **replace))
    tables.load(*batch("j1", "id,n\r\na,9\r\n", tmp_path, line="y", **replace))
    assert rig.rows("members", "id", "n") == [("a", 9), ("b", 3)]
    tables.unload("j1")
    assert rig.rows("members", "id", "n") == [("a", 1), ("a", 2), ("b", 3)]


def test_an_older_result_of_a_line_comes_too_late(rig, tables, tmp_path):
    tables.load(*batch("new", TWO, tmp_path, stamp=2.0, **UPSERT))
    assert tables.load(*batch("old", "id,n\r\nb,1\r\n", tmp_path, stamp=1.0, **UPSERT)) == 0
    assert rig.rows("members", "id", "n") == [("b", 3), ("c", 4)]


def test_columns_are_added_and_widened_never_narrowed(rig, tables, tmp_path):
    tables.load(*batch("j0", ONE, tmp_path))
    wide = [
        {"name": "id", "type": "string"},
        {"name": "n", "type": "number", "scale": 4},
        {"name": "day", "type": "date"},
    ]
    tables.load(*batch("j1", "id,n,day\r\nc,1.5,2024-02-29\r\n", tmp_path, fields=wide))
    text = [{"name": "id", "type": "string"}, {"name": "n", "type": "string"}]
    tables.load(*batch("j2", "id,n\r\nd,many\r\n", tmp_path, fields=text))
    tables.load(*batch("j3", "id,n\r\ne,7\r\n", tmp_path))
    found = rig.rows("members", "id", "n", "day")
    assert [(i, str(n)) for i, n, _ in found] == [("a", "1"), ("b", "2"), ("c", "1.5"), ("d", "many"), ("e", "7")]
    assert [str(day) for *_, day in found if day is not None] == ["2024-02-29"]


def test_all_types_arrive_as_they_are(rig, tables, tmp_path):
    types = ["string", "integer", "number", "boolean", "date", "datetime", "time"]
    fields = [{"name": kind, "type": kind} for kind in types] + [{"name": "exact", "type": "number", "scale": 4}]
    text = (
        ",".join([*types, "exact"])
        + '\r\n"a, ""b""\nc",9007199254740993,0.1,true,2024-02-29,2024-01-02T03:04:05,10:15:00,12345678901234.5678\r\n'
    )
    tables.load(*batch("j1", text, tmp_path, fields=fields))
    ((got, number, share, truth, day, at, clock),) = rig.rows("members", *types)
    assert (got, number, share, bool(truth)) == ('a, "b"\nc', 9007199254740993, 0.1, True)
    assert (str(day), str(at).replace(" ", "T"), str(clock)) == ("2024-02-29", "2024-01-02T03:04:05", "10:15:00")


def test_decimals_keep_digits_that_no_float_has(rig, tables, tmp_path):
    fields = [{"name": "id", "type": "string"}, {"name": "n", "type": "number", "scale": 4}]
    tables.load(*batch("j1", "id,n\r\na,99999999999999.9999\r\nb,1.5\r\n", tmp_path, fields=fields))
    assert [str(n) for _, n in rig.rows("members", "id", "n")] == ["99999999999999.9999", "1.5"]


def test_texts_below_numbers_stay_texts(rig, tables, tmp_path):
    tables.load(*batch("j1", ONE, tmp_path))
    text = [{"name": "id", "type": "string"}, {"name": "n", "type": "string"}]
    tables.load(*batch("j2", "id,n\r\nc,007\r\n", tmp_path, fields=text))
    assert rig.rows("members", "id", "n")[-1] == ("c", "007")


def test_many_columns_and_long_texts_are_replaced_and_put_back(rig, tables, tmp_path):
    fields = [{"name": "id", "type": "string"}, *({"name": f"c{n}", "type": "string"} for n in range(80))]
    header = ",".join(field["name"] for field in fields)
    for job, long in (("j1", "x" * 200_000), ("j2", "y")):
        text = f"{header}\r\na,{long}{',' * 79}\r\n"
        tables.load(*batch(job, text, tmp_path, fields=fields, line=job, **UPSERT))
    tables.unload("j2")
    assert rig.rows("members", "id", "c0") == [("a", "x" * 200_000)]


def test_more_columns_than_a_database_has_are_refused_and_not_tried_again(tables, tmp_path):
    fields = [{"name": f"c{n}", "type": "string"} for n in range(2500)]
    with pytest.raises(LoadRefused):
        tables.load(*batch("j1", "c0\r\n", tmp_path, fields=fields))


def test_no_two_tenants_share_a_schema():
    tenants = ["a-b", "a_2d_b", "a_2d-", "a-2d_", "A", "a", "a.b", "a_b", "x" * 62 + "y", "x" * 63, "X" * 63]
    schemas = [LoadConnection(url="sqlite:x").schema_of(tenant) for tenant in tenants]
    assert len(set(schemas)) == len(tenants)
    assert max(map(len, schemas)) <= 63
    assert schemas[tenants.index("a_b")] == "ade_a_b"


def test_apostrophes_before_formulas_are_taken_away_again(rig, tables, tmp_path):
    text = "id,n\r\n'\uff1dw,9\r\n'=1+1,1\r\n''@x,2\r\n'quoted',3\r\n+49 30,4\r\n"
    tables.load(*batch("j1", text, tmp_path))
    assert sorted(i for i, _ in rig.rows("members", "id", "n")) == sorted(
        ["\uff1dw", "=1+1", "'@x", "'quoted'", "+49 30"]
    )


@pytest.mark.parametrize("block", [b"a,'=1\r\n", b"'=1,a\r\n", b'a,"\'=1"\r\n', b"x" * (256 * 1024 - 1) + b",'=1"])
def test_a_cell_that_begins_with_an_apostrophe_is_noticed(tmp_path, block):
    file = tmp_path / "a.csv"
    file.write_bytes(b"id,n\r\n" + block)
    assert may_have_guards(file, ",")
    file.write_bytes(b"'")
    assert may_have_guards(file, ",")
    file.write_bytes(b"id,n\r\nO'Brien,it's\r\n")
    assert not may_have_guards(file, ",")


def test_rows_are_numbered_from_one_in_every_job_whichever_way_they_come(rig, tables, tmp_path):
    tables.load(*batch("j1", ONE, tmp_path))
    tables.load(*batch("j2", "id,n\r\n'=1,1\r\nx,2\r\n", tmp_path, line="y"))
    tables.load(*batch("j3", TWO, tmp_path, line="z"))
    found = rig.rows("members", "_ade_job", "_ade_row", "id")
    assert found == [("j1", 1, "a"), ("j1", 2, "b"), ("j2", 1, "=1"), ("j2", 2, "x"), ("j3", 1, "b"), ("j3", 2, "c")]


@pytest.mark.parametrize("name", ['a"b', "drop table x; --", "ä ö", "select", "%s {}", "a'b"])
def test_columns_may_have_any_name(rig, tables, tmp_path, name):
    fields = [{"name": name, "type": "string"}, {"name": "n", "type": "integer"}]
    quoted = '"' + name.replace('"', '""') + '"'
    tables.load(*batch("j1", f"{quoted},n\r\nx,1\r\n", tmp_path, fields=fields, mode="upsert", columns=(name,)))
    tables.load(
        *batch("j2", f"{quoted},n\r\nx,2\r\n", tmp_path, fields=fields, line="y", mode="upsert", columns=(name,))
    )
    tables.unload("j2")
    assert rig.rows("members", "n", "_ade_job") == [(1, "j1")]


@pytest.mark.parametrize("fields", [["id", "ID"], ["_ade_job"], ["a" * 600], [""]])
def test_names_that_a_database_would_confuse_are_refused(tables, tmp_path, fields):
    with pytest.raises(LoadRefused):
        tables.load(*batch("j1", "x\r\n", tmp_path, fields=[{"name": name, "type": "string"} for name in fields]))


TEXT, WHOLE = [{"name": "id", "type": "string"}], [{"name": "id", "type": "integer"}]


@pytest.mark.parametrize(
    ("fields", "text", "cells"),
    [
        (TEXT, 'id\r\nx\r\n\\.\r\n""\r\n\'=y\r\n', ["x", "\\.", None, "=y"]),
        (WHOLE, 'id\r\n7\r\n""\r\n9\r\n', [7, None, 9]),
    ],
)
def test_every_row_of_a_single_column_arrives(rig, tables, tmp_path, fields, text, cells):
    assert tables.load(*batch("j1", text, tmp_path, fields=fields)) == len(cells)
    assert [cell for _, cell in rig.rows("members", "_ade_row", "id")] == cells


def test_a_key_that_csv_guards_is_the_same_key_again(rig, tables, tmp_path):
    for n in (1, 2):
        text = f"id,n\r\n'=A,{n}\r\nb,{n}\r\n"
        tables.load(*batch(f"j{n}", text, tmp_path, stamp=n, mode="upsert", columns=("id",)))
    assert sorted(rig.rows("members", "id", "n")) == [("=A", 2), ("b", 2)]


@pytest.mark.parametrize("kinds", [("string", "integer"), ("integer", "string"), ("integer", "number")])
def test_a_key_stays_the_same_key_when_its_column_gets_another_type(rig, tables, tmp_path, kinds):
    for n, kind in enumerate(kinds):
        fields = [{"name": "id", "type": kind}, FIELDS[1]]
        tables.load(
            *batch(f"j{n}", f"id,n\r\n7,{n}\r\n", tmp_path, stamp=n, fields=fields, mode="upsert", columns=("id",))
        )
    assert rig.rows("members", "n", "_ade_job") == [(1, "j1")]
    tables.unload("j1")
    assert rig.rows("members", "n", "_ade_job") == [(0, "j0")]


def test_two_tenants_have_tables_of_their_own(rig, tables, tmp_path):
    other = open_tables(rig.url, f"{rig.schema}_other")
    tables.load(*batch("j1", ONE, tmp_path))
    other.load(*batch("j1", TWO, tmp_path))
    assert other.unload("j1") == 2
    assert len(rig.rows("members", "id", "n")) == 2


def test_loads_at_once_of_one_job_and_of_others_happen_once_each(rig, tables, tmp_path):
    made = [
        batch(f"j{n % 4}", f"id,n\r\nk{n % 4},{n % 4}\r\n", tmp_path, line=f"l{n % 4}", **UPSERT) for n in range(12)
    ]
    errors = []

    def work(one):
        try:
            for _ in range(20):
                try:
                    open_tables(rig.url, rig.schema).load(*one)
                    return
                except LoadFailed:
                    continue
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(one,)) for one in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert rig.rows("members", "id", "n") == [("k0", 0), ("k1", 1), ("k2", 2), ("k3", 3)]


CHILD = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from core.loads import LoadBatch, LoadRule, columns_of
from infra.loads import open_tables
made = json.loads(sys.argv[2])
tables = open_tables(made["url"], made["schema"])
for n in range(made["jobs"]):
    file = Path(made["folder"]) / f"{n}.csv"
    file.write_text("id,n\\r\\n" + "".join(f"j{n}-{i},{i}\\r\\n" for i in range(200)))
    rule = LoadRule(connection="local", table="members", mode="upsert", columns=("id",))
    columns = columns_of({"fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "integer"}]})
    tables.load(LoadBatch(job_id=f"j{n}", line=f"l{n}", stamp=1.0, rule=rule, columns=columns, digest="d"), file)
    print(n, flush=True)
"""


@pytest.mark.slow
def test_a_loader_that_is_killed_again_and_again_loads_everything_once(rig, tmp_path):
    jobs = 60
    order = json.dumps({"url": rig.url, "schema": rig.schema, "folder": str(tmp_path), "jobs": jobs})
    command = [sys.executable, "-c", CHILD, str(ROOT), order]
    for kill_after in (1, 7, 19, 20, 41, None):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in child.stdout:
            if kill_after is not None and int(line) >= kill_after:
                child.kill()
                break
        child.wait()
        child.stdout.close()
    rows = rig.rows("members", "_ade_job", "id")
    assert len(rows) == len(set(rows)) == jobs * 200


@pytest.mark.parametrize(
    ("present", "incoming", "wider"),
    [
        ("bigint", "bigint", "bigint"), ("bigint", "numeric", "numeric"), ("numeric", "bigint", "numeric"),
        ("bigint", "double precision", "numeric"), ("date", "timestamp", "timestamp"), ("date", "bigint", "text"),
        ("text", "date", "text"), ("boolean", "text", "text"), ("uuid", "text", "text"),
    ],
)  # fmt: skip
def test_types_only_widen(present, incoming, wider):
    assert widened(present, incoming) == wider


def test_rules_survive_their_address():
    rule = LoadRule(connection="warehouse", table="members", mode="upsert", columns=("a b", "x&y=z/?"))
    assert LoadRule.parse(rule.address()) == rule


def test_a_server_that_is_away_is_tried_again(tmp_path):
    tables = open_tables("postgresql://ade@127.0.0.1:1/nowhere", "ade_x")
    with pytest.raises(LoadFailed):
        tables.load(*batch("j1", ONE, tmp_path))


@pytest.mark.parametrize(
    "names", [("rowid",), ("_rowid_", "rowid"), ("OID", "Rowid"), ("ade_id",), ("ctid_", "ade_row")]
)
def test_columns_called_like_what_a_database_numbers_rows_by_are_columns(rig, tables, tmp_path, names):
    fields = [*FIELDS, *({"name": name, "type": "integer"} for name in names)]
    header = ",".join(field["name"] for field in fields)
    for n in (1, 2):
        text = f"{header}\r\na,{n}{',5' * len(names)}\r\nb{n},{n}{',5' * len(names)}\r\n"
        tables.load(*batch(f"j{n}", text, tmp_path, fields=fields, line=f"l{n}", **UPSERT))
    assert rig.rows("members", "id", "n") == [("a", 2), ("b1", 1), ("b2", 2)]
    tables.unload("j2")
    assert rig.rows("members", "id", "n", names[0]) == [("a", 1, 5), ("b1", 1, 5)]


def test_a_table_without_any_name_left_for_its_row_numbers_is_refused(tmp_path):
    fields = [{"name": name, "type": "string"} for name in ("rowid", "oid", "_rowid_")]
    tables = open_tables(SqliteRig(tmp_path).url, "ade_acme")
    with pytest.raises(LoadRefused, match="rename"):
        tables.load(*batch("j1", "rowid,oid,_rowid_\r\na,b,c\r\n", tmp_path, fields=fields))


@pytest.mark.parametrize("scaled", [{}, {"scale": 4}])
def test_keys_that_differ_in_their_last_digit_are_two_keys(rig, tables, tmp_path, scaled):
    fields = [{"name": "id", "type": "number", **scaled}, FIELDS[1]]
    for n, key in enumerate(("1234567890123.4567", "1234567890123.4587")):
        text = f"id,n\r\n{key},{n}\r\n"
        tables.load(*batch(f"j{n}", text, tmp_path, fields=fields, line=f"l{n}", mode="upsert", columns=("id",)))
    assert [n for n, _ in rig.rows("members", "n", "id")] == [0, 1]


@pytest.mark.parametrize("mode", ["append", "upsert"])
@pytest.mark.parametrize("first", ["double", "decimal"])
def test_a_double_keeps_its_digits_in_a_column_of_decimals(rig, tables, tmp_path, first, mode):
    kinds = {"double": {"type": "number"}, "decimal": {"type": "number", "scale": 4}}
    rows = {"double": "a,9007199254740991", "decimal": "b,0.25"}
    key = ("id",) if mode == "upsert" else ()
    for kind in (first, *(kind for kind in kinds if kind != first)):
        fields = [FIELDS[0], {"name": "n", **kinds[kind]}]
        made = batch(kind, f"id,n\r\n{rows[kind]}\r\n", tmp_path, fields=fields, line=kind, mode=mode, columns=key)
        tables.load(*made)
    assert [(i, float(n)) for i, n in rig.rows("members", "id", "n")] == [("a", 9007199254740991), ("b", 0.25)]


@pytest.mark.parametrize(
    ("kind", "cell"), [("integer", "99999999999999999999"), ("number", "1e999"), ("integer", "7.5"), ("number", "x")]
)
def test_values_that_no_column_of_their_type_holds_are_refused_and_break_nothing(rig, tables, tmp_path, kind, cell):
    """Such cells do not pass the check of normalized.csv."""
    fields = [FIELDS[0], {"name": "n", "type": kind}]
    tables.load(*batch("j0", "id,n\r\na,1\r\n", tmp_path, fields=fields, line="x", **UPSERT))
    with pytest.raises(LoadRefused):
        tables.load(*batch("j1", f"id,n\r\na,{cell}\r\n", tmp_path, fields=fields, line="y", **UPSERT))
    assert tables.unload("j0") == 1


def test_texts_of_many_lines_with_the_end_mark_of_a_copy_arrive(rig, tables, tmp_path):
    text = 'id,n\r\n"a\n\\.\nb",1\r\n\\.,2\r\n"\\.",3\r\n"x\ry",4\r\n'
    assert tables.load(*batch("j1", text, tmp_path)) == 4
    found = {n: i for i, n in rig.rows("members", "id", "n")}
    assert found == {1: "a\n\\.\nb", 2: "\\.", 3: "\\.", 4: "x\ry"}


@pytest.mark.slow
def test_texts_arrive_in_a_database_of_another_encoding_or_are_refused(tmp_path):
    name = f"latin_{secrets.token_hex(6)}"
    with psycopg.connect(servers.postgres().endpoint, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    url = servers.postgres().endpoint.rpartition("/")[0] + f"/{name}"
    tables = open_tables(url, "ade_acme")
    tables.load(*batch("j1", "id,n\r\nMünchen,1\r\n'=1+1,2\r\n", tmp_path))
    tables.load(*batch("j3", "id\r\nKöln\r\n", tmp_path, fields=TEXT, line="z"))
    with psycopg.connect(url) as database:
        found = database.execute("SELECT id FROM ade_acme.members ORDER BY _ade_job, _ade_row").fetchall()
    assert found == [("München",), ("=1+1",), ("Köln",)]
    with pytest.raises(LoadRefused):
        tables.load(*batch("j2", "id,n\r\n東京,1\r\n", tmp_path, line="y"))


@pytest.mark.slow
def test_a_server_that_takes_no_writes_now_is_tried_again(tmp_path):
    """As one that follows another is, until it takes over."""
    rig = PostgresRig(tmp_path)
    open_tables(rig.url, rig.schema).load(*batch("j1", ONE, tmp_path))
    reading = open_tables(f"{rig.url}?options=-c%20default_transaction_read_only%3Don", rig.schema)
    with pytest.raises(LoadFailed):
        reading.load(*batch("j2", TWO, tmp_path, line="y"))
    with pytest.raises(LoadFailed):
        reading.unload("j1")


@pytest.mark.slow
@pytest.mark.parametrize("rule", [UPSERT, {"mode": "replace", "columns": ("id",)}])
def test_rows_are_replaced_by_key_without_comparing_each_with_each(tmp_path, rule):
    rig = PostgresRig(tmp_path)
    tables, header = open_tables(rig.url, rig.schema), "id,n\r\n"
    text = header + "".join(f"k{n},{n}\r\n" for n in range(20_000))
    tables.load(*batch("j1", text, tmp_path, **rule))
    slow = f"{rig.url}?options=-c%20enable_nestloop%3Doff%20-c%20statement_timeout%3D20000"
    assert open_tables(slow, rig.schema).load(
        *batch("j2", text + ",1\r\n" * (rule is not UPSERT), tmp_path, line="y", **rule)
    )


@pytest.mark.slow
def test_columns_that_somebody_changed_are_used_as_they_are_or_refused(tmp_path):
    rig = PostgresRig(tmp_path)
    tables = open_tables(rig.url, rig.schema)
    tables.load(*batch("j1", ONE, tmp_path))

    def change(to):
        with psycopg.connect(rig.url) as database:
            database.execute(f'ALTER TABLE "{rig.schema}".members ALTER n TYPE {to}')

    change("smallint")
    tables.load(*batch("j2", "id,n\r\nc,70000\r\n", tmp_path, line="y"))
    assert rig.rows("members", "id", "n") == [("a", 1), ("b", 2), ("c", 70000)]
    change("integer[] USING ARRAY[n]")
    with pytest.raises(LoadRefused, match="column 2 of the table was changed to ARRAY"):
        tables.load(*batch("j3", TWO, tmp_path, line="z"))


@pytest.mark.slow
def test_rows_come_back_into_columns_that_somebody_added_and_the_database_fills(tmp_path):
    rig = PostgresRig(tmp_path)
    tables = open_tables(rig.url, rig.schema)
    tables.load(*batch("j1", ONE, tmp_path, line="x", **UPSERT))
    made = "ADD twice int GENERATED ALWAYS AS (n * 2) STORED, ADD number int GENERATED ALWAYS AS IDENTITY"
    with psycopg.connect(rig.url) as database:
        database.execute(f'ALTER TABLE "{rig.schema}".members {made}')
    tables.load(*batch("j2", TWO, tmp_path, line="y", **UPSERT))
    tables.unload("j2")
    assert rig.rows("members", "id", "n", "twice", "number") == [("a", 1, 2, 1), ("b", 2, 4, 2)]


@pytest.mark.slow
def test_a_load_waits_while_somebody_changes_the_table(tmp_path):
    rig = PostgresRig(tmp_path)
    tables = open_tables(rig.url, rig.schema)
    tables.load(*batch("j1", ONE, tmp_path))
    with psycopg.connect(rig.url) as database, ThreadPoolExecutor() as loader:
        database.execute(f'ALTER TABLE "{rig.schema}".members RENAME n TO amount')
        loading = loader.submit(tables.load, *batch("j2", TWO, tmp_path, line="y"))
        with psycopg.connect(rig.url, autocommit=True) as watch:
            waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = %s::regclass"
            while not watch.execute(waits, [f'"{rig.schema}".members']).fetchone():
                assert not loading.done()
        database.commit()
        assert loading.result() == 2
    assert rig.rows("members", "id", "amount", "n") == [("a", 1, None), ("b", 2, None), ("b", None, 3), ("c", None, 4)]


@pytest.mark.slow
@pytest.mark.parametrize("moved", ["", "VACUUM FULL {}", "UPDATE {} SET n = n + 0", "DELETE FROM {} WHERE n = 7"])
def test_rows_that_somebody_moved_are_found_when_a_job_is_unloaded(tmp_path, moved):
    rig = PostgresRig(tmp_path)
    tables = open_tables(rig.url, rig.schema)
    for job in ("j1", "j2", "j3"):
        text = "id,n\r\n" + "".join(f"{job}-{n},{n}\r\n" for n in range(3000))
        tables.load(*batch(job, text, tmp_path, line=job))
        if job == "j1":
            tables.unload(job)  # leaves room for the rows of the next ones, in other places
            with psycopg.connect(rig.url, autocommit=True) as database:
                database.execute(f'VACUUM "{rig.schema}".members')
    with psycopg.connect(rig.url, autocommit=True) as database:
        database.execute(moved.format(f'"{rig.schema}".members') or "SELECT 1")
    gone = "DELETE" in moved
    assert tables.unload("j2") == 3000 - gone
    assert [job for job, _ in rig.rows("members", "_ade_job", "n")] == ["j3"] * (3000 - gone)


@pytest.mark.slow
def test_a_job_is_unloaded_without_reading_the_rows_of_others(tmp_path):
    rig = PostgresRig(tmp_path)
    tables = open_tables(rig.url, rig.schema)
    for job in ("j1", "j2", "j3"):
        tables.load(*batch(job, "id,n\r\n" + "".join(f"{job},{n}\r\n" for n in range(3000)), tmp_path, line=job))

    def whole_scans():
        with psycopg.connect(rig.url) as database:
            query = "SELECT seq_scan FROM pg_stat_user_tables WHERE schemaname = %s AND relname = 'members'"
            return database.execute(query, [rig.schema]).fetchone()

    before = whole_scans()
    assert tables.unload("j2") == 3000
    assert whole_scans() == before


@pytest.mark.slow
def test_a_ledger_of_an_earlier_version_is_read(tmp_path):
    rig = PostgresRig(tmp_path)
    tables = open_tables(rig.url, rig.schema)
    tables.load(*batch("j1", ONE, tmp_path))
    with psycopg.connect(rig.url) as database:
        database.execute(
            f'ALTER TABLE "{rig.schema}".ade_loads DROP first_page, DROP end_page, DROP corrects, DROP place'
        )
    assert tables.unload("j1") == 2
