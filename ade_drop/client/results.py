"""What was dropped, and what came of it."""

import csv
import hashlib
import io
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ade_drop.client.errors import AdeError, ResultCorrupt

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Row = dict[str, object]
Opener = Callable[[str], IO[bytes]]  # of a published file, by its name

_PIECE = 1 << 20  # bytes that are copied at a time
_LONGEST = 1 << 27  # characters of a cell in CSV; the csv module refuses more than 131,072 unless told
# A text of a CSV file that got an apostrophe, because a spreadsheet would run it: docs/guides/downstream.md.
_ESCAPED = re.compile(r"'+(?:[=@\uff1d\uff20\t\r\n\0\ufffd]|[+\uff0b\uff0d-](?![0-9 .,()/-]*\Z))")
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, kw_only=True)
class Drop:
    """Files that were dropped together."""

    tenant: str
    keys: tuple[str, ...]  # of the spreadsheets
    versions: tuple[str, ...]  # of each, as the store names them; empty over the API
    jobs: tuple[str, ...] = ()  # over the API: the jobs that the drop became
    workflow: str = ""  # of the manifest that was dropped with them; empty: of whichever standing workflows select them
    places: tuple[str, ...] = ()  # prefixes below outputs/ where results appear
    earlier: Mapping[str, str] = field(default_factory=dict)  # result.json files there before the drop, by digest
    rejections: str = ""  # the key of rejected.json, if there will be one


@dataclass(frozen=True, kw_only=True)
class File:
    """A published file, as result.json lists it."""

    name: str
    size: int
    sha256: str
    value: str | None = None  # of a file that output.split_by made: what all its rows have; None: any other value
    rows: int | None = None  # of such a file; None: it is another file


@dataclass(frozen=True, kw_only=True)
class Result:
    """How a job ended, and what it published."""

    job_id: str
    status: str  # SUCCEEDED, FAILED, TIMED_OUT, CANCELLED, SKIPPED or EXPIRED
    outcome: str | None  # clean, warnings or errors, of a job that succeeded
    tenant: str
    workflow: str
    subject: str  # the dropped file below the tenant's inbox
    files: tuple[File, ...]
    document: Mapping[str, Any] = field(repr=False)  # the whole result.json
    opener: Opener = field(repr=False)

    @property
    def succeeded(self) -> bool:
        return self.status == "SUCCEEDED"

    @property
    def error(self) -> str:
        """Why the job did not succeed; empty if it did."""
        if self.succeeded:
            return ""
        error = self.document.get("error") or {}
        return str(error.get("message") or self.document.get("reason") or self.status)

    def file(self, name: str) -> File:
        """One published file; an AdeError names those that there are."""
        for file in self.files:
            if file.name == name:
                return file
        names = ", ".join(file.name for file in self.files) or "none"
        raise AdeError(f"job {self.job_id} ({self.status}) published no {name}; its files: {names}{self._why()}")

    def read(self, name: str) -> bytes:
        """A published file's content, checked against result.json."""
        with tempfile.TemporaryDirectory(prefix="ade-client-") as folder:
            return self.download(name, Path(folder)).read_bytes()

    def download(self, name: str, folder: str | os.PathLike[str]) -> Path:
        """Save a published file below `folder`; it appears there only once it is complete and checked."""
        wanted = self.file(name)
        parts = name.split("/")
        if not all(parts) or any(part in (".", "..") or "\\" in part for part in parts):
            raise AdeError(f"job {self.job_id} names a file that lies outside of its folder: {name!r}")
        target = Path(folder, *parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", suffix=".part", delete=False) as partial:
            try:
                with self.opener(name) as source:
                    while piece := source.read(_PIECE):
                        digest.update(piece)
                        size += len(piece)
                        partial.write(piece)
                if (size, digest.hexdigest()) != (wanted.size, wanted.sha256):
                    raise ResultCorrupt(
                        f"{name} of job {self.job_id} differs from result.json ({size} bytes of {wanted.size}); "
                        "it may have been replaced meanwhile: fetch the result again"
                    )
                Path(partial.name).replace(target)
            except BaseException:
                Path(partial.name).unlink(missing_ok=True)
                raise
        return target

    def rows(self) -> Iterator[Row]:
        """The rows, typed as schema.json says, from JSON lines, CSV or the workbook, whichever there is."""
        names = {file.name for file in self.files}
        if "schema.json" in names and "normalized.jsonl" in names:
            return self._json_rows()
        if "schema.json" in names and "normalized.csv" in names:
            return self._csv_rows()
        if "normalized.xlsx" in names:
            return self._sheet_rows()
        raise AdeError(
            f"job {self.job_id} ({self.status}) published no rows that can be read as such"
            f"{self._why() or '; ask for jsonl, csv or xlsx in output.formats'}"
        )

    def to_polars(self) -> "pl.DataFrame":
        """The rows as a polars frame, from Parquet where there is one. Needs polars."""
        import polars as pl  # noqa: PLC0415 - only those who ask for a frame have it

        if parquet := self._parquet():
            return pl.read_parquet(parquet)
        return pl.DataFrame(list(self.rows()), infer_schema_length=None)

    def to_pandas(self) -> "pd.DataFrame":
        """The rows as a pandas frame, from Parquet where there is one. Needs pandas (and pyarrow for Parquet)."""
        import pandas as pd  # noqa: PLC0415 - only those who ask for a frame have it

        if parquet := self._parquet():
            return pd.read_parquet(parquet)
        return pd.DataFrame(list(self.rows()))

    def _parquet(self) -> io.BytesIO | None:
        published = any(file.name == "normalized.parquet" for file in self.files)
        return io.BytesIO(self.read("normalized.parquet")) if published else None

    def _why(self) -> str:
        return f"; it did not succeed: {self.error}" if self.error else ""

    def _schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = json.loads(self.read("schema.json"))
        return schema

    def _json_rows(self) -> Iterator[Row]:
        readers = {column["name"]: _json_reader(column) for column in self._schema()["fields"]}
        with tempfile.TemporaryDirectory(prefix="ade-client-") as folder:
            path = self.download("normalized.jsonl", folder)
            with path.open(encoding="utf-8", newline="\n") as lines:
                for line in lines:
                    row = json.loads(line, parse_float=Decimal)
                    yield {
                        name: None if (cell := row.get(name)) is None else read(cell) for name, read in readers.items()
                    }

    def _csv_rows(self) -> Iterator[Row]:
        schema = self._schema()
        dialect = schema["ade"]["csv"]
        readers = [(column["name"], _csv_reader(column, dialect["decimal"])) for column in schema["fields"]]
        with tempfile.TemporaryDirectory(prefix="ade-client-") as folder:
            path = self.download("normalized.csv", folder)
            csv.field_size_limit(max(csv.field_size_limit(), _LONGEST))  # of the whole process; there is no other way
            with path.open(encoding="utf-8-sig", newline="") as lines:
                cells = csv.reader(lines, delimiter=dialect["delimiter"])
                next(cells, None)
                for line in cells:
                    yield {
                        name: None if cell == "" else read(cell)
                        for (name, read), cell in zip(readers, line, strict=True)
                    }

    def _sheet_rows(self) -> Iterator[Row]:
        """Of every sheet that the output goes on in; openpyxl reads the workbook."""
        import openpyxl  # noqa: PLC0415 - only where there is nothing but a workbook

        sheets = json.loads(self.read("artifact.json"))["output"]["sheets"]
        with tempfile.TemporaryDirectory(prefix="ade-client-") as folder:
            path = self.download("normalized.xlsx", folder)
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
            try:
                for name in sheets:
                    cells = book[name].iter_rows(values_only=True)
                    header = [str(label) for label in next(cells, ())]
                    for line in cells:
                        yield dict(zip(header, line, strict=False))
            finally:
                book.close()


def result_of(document: Mapping[str, Any], opener: Opener) -> Result:
    """The result that a result.json describes."""
    return Result(
        job_id=document["job_id"],
        status=document["status"],
        outcome=document.get("outcome"),
        tenant=document["tenant"],
        workflow=document["workflow"],
        subject=document["subject"],
        files=tuple(
            File(
                name=file["name"],
                size=file["size"],
                sha256=file["sha256"],
                value=file.get("value"),
                rows=file.get("rows"),
            )
            for file in document.get("files", ())
        ),
        document=document,
        opener=opener,
    )


def _json_reader(column: Mapping[str, Any]) -> Callable[[Any], object]:
    match column["type"]:
        case "number":
            return (lambda cell: Decimal(str(cell))) if "scale" in column else float
        case "date":
            return date.fromisoformat
        case "datetime":
            return datetime.fromisoformat
        case "time":
            return time.fromisoformat
        case _:
            return lambda cell: cell


def _csv_reader(column: Mapping[str, Any], decimal: str) -> Callable[[str], object]:
    match column["type"]:
        case "integer":
            return int
        case "number":
            exact = _json_reader(column)
            return lambda cell: exact(cell.replace(decimal, "."))
        case "boolean":
            return _BOOLEANS.__getitem__
        case "string":
            return lambda cell: cell[1:] if _ESCAPED.match(cell) else cell
        case _:
            return _json_reader(column)
