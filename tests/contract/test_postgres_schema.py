"""The schema of a PostgreSQL database: migrations that run once, versions that meet, and roles with the least rights."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from core.errors import CallRefused, SettingsError
from core.jobs import JobError, State, dump_job, move, start
from core.ports import Caps, JobQuery, Message, Pause
from core.settings import Settings, shown_url
from core.verdicts import Verdict
from infra.local.sqlite import JOBS_VIEW
from infra.postgres import schema as schema_module
from infra.postgres.connections import SCHEMA_VERSION, Connections, parse_database
from infra.postgres.listening import PostgresBells
from infra.postgres.pg_queue import PostgresWorkQueue
from infra.postgres.pg_table import PostgresJobTable
from infra.postgres.schema import _read, init_database, migrations
from tests.contract import postgres_adapters, servers
from tests.contract.embedded import job_wake_at
from tests.contract.jobs import NOW, a_job

FREE = Caps(tenant=0, workflow=0)


@contextmanager
def fresh_schema(name: str) -> Iterator[str]:
    """The URL of a schema that is not there yet; gone afterwards, with its roles."""
    server = servers.postgres().endpoint
    schema = f"{name}{os.getpid()}"
    yield postgres_adapters.url_of(server, schema)
    with psycopg.connect(server, autocommit=True) as db:
        db.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        for role in ("runner", "handler", "reader"):
            if db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (f"{schema}_{role}",)).fetchone():
                db.execute(f"DROP OWNED BY {schema}_{role}")
                db.execute(f"DROP ROLE {schema}_{role}")


@pytest.mark.slow
class TestMigrations:
    @pytest.fixture
    def url(self) -> Iterator[str]:
        with fresh_schema("m") as url:
            yield url

    def test_they_run_once_however_many_ask_at_once(self, url: str):
        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(lambda _: init_database(parse_database(url), apply=True), range(4)))
        schemas = [step.action for steps in done for step in steps if step.kind == "schema"]
        assert sorted(schemas) == ["create", "keep", "keep", "keep"]

    def test_an_owner_that_may_not_create_roles_gets_the_schema_all_the_same(self, url: str):
        server, owner = servers.postgres().endpoint, f"owner{os.getpid()}"
        with psycopg.connect(server, autocommit=True) as db:
            db.execute(f"CREATE ROLE {owner} LOGIN")
            db.execute(f"GRANT CREATE ON DATABASE postgres TO {owner}")
            try:
                steps = init_database(parse_database(url.replace("//ade@", f"//{owner}@")), apply=True)
            finally:
                db.execute(f"DROP OWNED BY {owner} CASCADE")
                db.execute(f"DROP ROLE {owner}")
        assert [step.action for step in steps] == ["create", *["unsupported"] * 3]

    def test_they_run_again_where_people_have_views_of_their_own(self, url: str):
        schema = parse_database(url).schema
        init_database(parse_database(url), apply=True)
        with psycopg.connect(servers.postgres().endpoint) as db:
            db.execute(f"CREATE VIEW {schema}.mine AS SELECT job_id, reason FROM {schema}.jobs_view")
        assert {step.action for step in init_database(parse_database(url), apply=True)} == {"keep"}

    def test_results_of_the_version_before_get_their_outcome(self, url: str, monkeypatch: pytest.MonkeyPatch):
        database = parse_database(url)
        with monkeypatch.context() as patched:
            patched.setattr(schema_module, "migrations", lambda: {1: migrations()[1]})
            patched.setattr(
                schema_module, "_read", lambda name: "" if name in ("jobs_view.sql", "roles.sql") else _read(name)
            )
            init_database(database, apply=True)
        job = a_job("a", state=State.SUCCEEDED, summary={"findings": {"error": 0, "warning": 2}})
        with psycopg.connect(servers.postgres().endpoint, autocommit=True) as db:
            db.execute(
                f"""INSERT INTO {database.schema}.jobs (job_id, tenant, workflow, line, state, created_at, resting, rev, writer, doc)
                VALUES (%s, %s, %s, %s, %s, %s, true, 1, 1, %s)""",
                (job.job_id, job.tenant, job.workflow, job.line, str(job.state), job.created_at, dump_job(job)),
            )
        init_database(database, apply=True)
        with psycopg.connect(servers.postgres().endpoint, autocommit=True) as db:
            assert db.execute(f"SELECT outcome FROM {database.schema}.jobs").fetchall() == [("warnings",)]
            assert db.execute(f"SELECT outcome FROM {database.schema}.jobs_view").fetchall() == [("warnings",)]

    def test_a_dry_run_makes_nothing(self, url: str):
        for _ in range(2):
            assert {step.action for step in init_database(parse_database(url), apply=False)} == {"create"}

    def test_a_program_works_with_the_next_version_and_not_with_the_one_after(self, url: str):
        database = parse_database(url)
        init_database(database, apply=True)
        for version, works in ((SCHEMA_VERSION + 1, True), (SCHEMA_VERSION + 2, False)):
            with psycopg.connect(servers.postgres().endpoint, autocommit=True) as db:
                db.execute(f"INSERT INTO {database.schema}.versions (version) VALUES (%s)", (version,))
            with closing(Connections(database, deadline=10)) as connections:
                if works:
                    assert connections.run("get", "get_job", job_id="x") == []
                else:
                    with pytest.raises(CallRefused, match="newer ade-drop"):
                        connections.run("get", "get_job", job_id="x")
        with pytest.raises(CallRefused, match="newer ade-drop"):
            init_database(database, apply=True)

    def test_a_program_refuses_an_older_version_and_says_what_to_do(self, url: str):
        database = parse_database(url)
        init_database(database, apply=True)
        with psycopg.connect(servers.postgres().endpoint, autocommit=True) as db:
            db.execute(f"DELETE FROM {database.schema}.versions WHERE version = {SCHEMA_VERSION}")
        with (
            closing(Connections(database, deadline=10)) as connections,
            pytest.raises(CallRefused, match="ade infra init"),
        ):
            connections.run("get", "get_job", job_id="x")


def test_the_migrations_are_numbered_without_gaps_up_to_the_programs_version():
    assert list(migrations()) == list(range(1, SCHEMA_VERSION + 1))


@pytest.mark.slow
class TestRoles:
    """Each role does its work, and what it is not for is refused by the server."""

    @pytest.fixture(scope="class")
    @classmethod
    def url(cls) -> Iterator[str]:
        with fresh_schema("r") as url:
            init_database(parse_database(url), apply=True)
            yield url

    @pytest.fixture
    def connected(self, url: str):
        """A function that opens table and queue as one of the roles."""

        @contextmanager
        def opened(role: str) -> Iterator[tuple[PostgresJobTable, PostgresWorkQueue]]:
            database = parse_database(url)
            schema = database.schema
            with psycopg.connect(servers.postgres().endpoint, autocommit=True) as db:
                db.execute(f"DROP ROLE IF EXISTS {schema}_login")
                db.execute(f"CREATE ROLE {schema}_login LOGIN IN ROLE {schema}_{role}")
            try:
                database = replace(
                    database, conninfo=database.conninfo.replace("//ade@", f"//{schema}_login@"), pooler="auto"
                )
                with closing(Connections(database, deadline=5)) as links, closing(PostgresBells(links)) as bells:
                    yield PostgresJobTable(links, bells, job_wake_at), PostgresWorkQueue(links, bells)
            finally:
                with psycopg.connect(servers.postgres().endpoint, autocommit=True) as db:
                    db.execute(f"DROP ROLE {schema}_login")

        return opened

    def test_a_runner_does_all_that_runners_and_janitors_do(self, connected):
        with connected("runner") as (table, queue):
            job, _ = table.add(a_job("runner"))
            queue.send(Message.of(job))
            (got,) = queue.receive(most=1, wait=5, visibility=30)
            assert queue.hide(got.receipt, 30)
            running = table.admit(job, start(job, owner="r", now=NOW, lease_seconds=30), Caps(tenant=1, workflow=1))
            ended = table.replace(running, move(running, State.FAILED, now=NOW))
            queue.ack(got.receipt)
            queue.bury(Message.of(job), "x")
            queue.redrive()
            table.pause(Pause(tenant="acme", workflow=None, since=NOW, by="ops"))
            table.resume("acme", None)
            table.hold("janitor", "r", 30)
            table.let_go("janitor", "r")
            table.advance("acme")
            table.recount()
            assert table.counts() == {State.FAILED: 1}
            assert table.remove(ended)

    def test_a_handler_records_drops_and_sends_their_messages(self, connected):
        with connected("handler") as (table, queue):
            job, made = table.add(a_job("handler"))
            queue.send(Message.of(job))
            assert table.replace(job, replace(job, enqueued_at=NOW)) is not None
            assert table.add_sent(a_job("handler with its message"), 0.0)[1]
            table.advance("acme")
            assert table.hold("sweep", "h", 30)
            table.let_go("sweep", "h")
            assert made

    def test_a_reader_sees_jobs_and_queue(self, connected):
        with connected("reader") as (table, queue):
            table.page(JobQuery())
            table.counts()
            table.pauses()
            queue.stats()
            queue.dead()

    @pytest.mark.parametrize(
        ("role", "act"),
        [
            ("reader", lambda table, _: table.add(a_job("x"))),
            ("reader", lambda _, queue: queue.send(Message(job_id="x", tenant="t"))),
            ("reader", lambda _, queue: queue.receive(most=1, wait=0, visibility=1)),
            ("reader", lambda table, _: table.hold("janitor", "r", 30)),
            ("reader", lambda table, _: table.pause(Pause(tenant=None, workflow=None, since=NOW, by="r"))),
            ("handler", lambda table, _: table.remove(a_job("x", rev=1))),
            ("handler", lambda _, queue: queue.receive(most=1, wait=0, visibility=1)),
            ("handler", lambda _, queue: queue.ack("1.x")),
            ("handler", lambda _, queue: queue.redrive()),
            ("handler", lambda table, _: table.pause(Pause(tenant=None, workflow=None, since=NOW, by="h"))),
            (
                "handler",
                lambda table, _: table.admit(
                    a_job("x", rev=1), start(a_job("x"), owner="h", now=NOW, lease_seconds=1), FREE
                ),
            ),
        ],
    )
    def test_what_a_role_is_not_for_is_refused(self, connected, role: str, act):
        with (
            connected(role) as (table, queue),
            pytest.raises(CallRefused, match=r"InsufficientPrivilege.*postgres\.md"),
        ):
            act(table, queue)

    @pytest.mark.parametrize("role", ["runner", "handler", "reader"])
    @pytest.mark.parametrize(
        "statement",
        [
            "DROP TABLE {s}.jobs",
            "ALTER TABLE {s}.jobs ADD COLUMN x int",
            "TRUNCATE {s}.jobs",
            "CREATE TABLE {s}.mine (x int)",
            "DELETE FROM {s}.versions",
            "INSERT INTO {s}.tallies VALUES ('t', 'QUEUED', 0, 1)",
            "ALTER TABLE {s}.jobs DISABLE TRIGGER ALL",
            "CREATE OR REPLACE FUNCTION {s}.moment(p_now float8) RETURNS float8 LANGUAGE sql AS 'SELECT 0.0::float8'",
        ],
    )
    def test_no_role_changes_the_schema(self, url: str, role: str, statement: str):
        schema = parse_database(url).schema
        with psycopg.connect(servers.postgres().endpoint) as db:
            db.execute(f"SET ROLE {schema}_{role}")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(statement.format(s=schema))


class TestAddresses:
    def test_one_database_serves_as_table_and_queue(self):
        url = "postgresql://u:secret@db/ade"
        assert Settings(table_url=url).queue_url == url
        assert Settings(queue_url=url).table_url == url
        assert Settings(table_url="dynamodb://jobs").queue_url == ""
        assert Settings(table_url=url, queue_url="sqs://work").queue_url == "sqs://work"

    def test_a_password_is_in_no_text_for_people(self):
        url = "postgresql://u:sesame@db:5433/ade?sslmode=require&password=sesame"
        database = parse_database(url)
        shown = f"{database} {database!r} {Settings(table_url=url)!r} {shown_url(url)}"
        assert "sesame" not in shown + database.hide("password sesame is wrong")
        assert str(database) == "postgresql://db:5433/ade"

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://u:sesame%zz@db/ade",
            "postgresql://u:sesame@db/ade?schema=a;b",
            "postgresql://u:sesame@db/ade?pooler=maybe",
            "postgresql://u:sesame@db/ade?pool=0",
            "postgresql://u:sesame@db/ade?unknown=1",
            "postgresql://u:open@sesame@db/ade",
            "postgresql://u:open/sesame@db/ade",
            "postgresql://u:sesame#open@db/ade",
            "postgresql://u:sesame/open@db/ade",
            "postgresql://u:sesame\0@db/ade",
            "postgresql://u:sesame\ud800@db/ade",
            "postgresql://db/ade?dbname=postgresql://u:sesame@db/ade",
        ],
    )
    def test_a_wrong_address_is_refused_without_its_secrets(self, url: str):
        with pytest.raises(SettingsError) as caught:
            parse_database(url)
        assert "sesame" not in f"{caught.value} {caught.value.__cause__}"

    def test_a_password_with_a_plain_question_mark_is_not_shown(self):
        assert "sesame" not in shown_url("postgresql://u:sesame?open@db/ade")

    @pytest.mark.parametrize("password", ["%40%2F%23", "pa℀ss", "a+b", "a%20b", "a%2Bb", "a[b"])
    def test_a_password_reaches_libpq_as_it_was_written(self, password: str):
        for url in (f"postgresql://u:{password}@db/ade?pool=2", f"postgresql://u@db/ade?pool=2&password={password}"):
            assert conninfo_to_dict(parse_database(url).conninfo)["password"] == unquote(password)

    def test_an_option_of_libpq_keeps_its_spaces(self):
        database = parse_database("postgresql://db/ade?schema=x&options=-c%20work_mem%3D1MB")
        assert conninfo_to_dict(database.conninfo)["options"] == "-c work_mem=1MB"

    def test_a_service_file_names_the_database(self, tmp_path: Path):
        assert str(parse_database("postgresql:///?service=fleet")) == "postgresql://service fleet/"


@pytest.mark.slow
def test_the_view_for_people_shows_what_docs_say_and_survives_a_damaged_row():
    url = postgres_adapters.emptied()
    schema = parse_database(url).schema
    with closing(Connections(parse_database(url))) as links, closing(PostgresBells(links)) as bells:
        table = PostgresJobTable(links, bells, job_wake_at)
        error = JobError(verdict=Verdict.RULE_ERROR, message="line 3")
        table.add(a_job("a", state=State.FAILED, error=error))
        table.add(a_job("b"))
    with psycopg.connect(servers.postgres().endpoint, autocommit=True) as db:
        db.execute(f"UPDATE {schema}.jobs SET doc = '{{' WHERE job_id = 'acme-members-b'")
        shown = db.execute(f"SELECT * FROM {schema}.jobs_view ORDER BY job_id")
        names = [column.name for column in shown.description or ()]
        first, second = [dict(zip(names, row, strict=True)) for row in shown]
    assert (first["error_verdict"], first["error_fault"], first["inputs"]) == ("rule_error", "config", 1)
    assert second["reason"] == "the record cannot be read"
    sqlite = re.findall(
        r" AS (\w+)|^SELECT (\w+), (\w+), (\w+), (\w+)", JOBS_VIEW.partition("FROM (\n")[0], re.MULTILINE
    )
    assert set(names) == {name for found in sqlite for name in found if name} | {"rev"}


@pytest.mark.slow
def test_the_commands_of_the_page_make_the_schema(tmp_path: Path):
    """As docs/guides/postgres.md says, with a server that is there."""
    page = (Path(__file__).parents[2] / "docs" / "guides" / "postgres.md").read_text()
    script = "\n".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL))
    with fresh_schema("d") as url:
        script = script.replace("postgresql://ade@db.example.com/ade", f"'{url}'")
        env = {k: v for k, v in os.environ.items() if not k.startswith("ADE_")}
        env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
        done = subprocess.run(
            ["bash", "-euc", script], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        schema = parse_database(url).schema
        assert [line.split()[0] for line in done.stdout.splitlines() if f" {schema} " in f"{line} "] == [
            "missing",
            "created",
        ]
