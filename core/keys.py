"""Bucket keys: where things are, which keys are allowed, and how patterns match."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from posixpath import basename

from core.errors import KeyRefused
from core.jobs import InputRef, Job
from core.patterns import compiled

INBOX, CONFIGS, OUTPUTS, WORK = "inbox/", "configs/", "outputs/", "work/"
SHARED = "configs/_shared/"
REPLAYS = "replays/"  # results of history with another version of a workflow; nobody's outputs
SHARED_TENANT = "_shared"  # in place of a tenant's name, which cannot begin with an underscore
DECISION = ".decision.json"
# Folders of configs/ that no drop uses: versions of workflows that ran, and one that is being written.
VERSIONS, DRAFT = ".versions/", ".draft/"
ACCESS = "access/"  # tokens of the API, who did what by it, answers to repeated requests; no manifest can name it
REQUESTS = f"{ACCESS}requests/"  # answers to requests that may be repeated
BENCHES = f"{ACCESS}benches/"  # what authors work on: samples and manifests that no drop uses
SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods", ".csv", ".tsv")
MAX_KEY_BYTES = 1024
MAX_NAME_BYTES = 255  # of a file, on every file system we know

# Fast path for most keys: every object's key is checked several times.
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._ -]*(?:/[A-Za-z0-9_-][A-Za-z0-9._ -]*)*")
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,62}")
_SHARED_CASE = re.compile(
    rf"{SHARED}(?:[^/]+/)*tests/[^/]+/(?:input\.[^/]*|input/.*|expected[^/]*\.(?:csv|json))", re.DOTALL
)
# What clients write first and rename later, and what desktops leave behind.
_LEFT_BEHIND = frozenset({"thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r", "__macosx"})
_UNFINISHED = re.compile(r"^(\.|~\$)|\.(tmp|part|partial|crdownload|filepart|swp)$|~$", re.IGNORECASE)
_YEAR, _MONTH, _DAY = r"(?:19|20)\d\d", r"(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12]\d|3[01])"
_MONTH_NAME = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:tember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
# A folder that names a period: 2026, 2026-11, 20261117, 17.11.2026, 2026-Q4, 2026-W47, November, nov-2026.
_PERIOD = re.compile(
    rf"{_YEAR}(?:[-_. ]?{_MONTH}(?:[-_. ]?{_DAY})?|[-_. ]?q[1-4]|[-_. ]?w\d\d|[-_. ]?(?:{_MONTH_NAME}))?"
    rf"|{_DAY}[-_. ]{_MONTH}[-_. ]{_YEAR}|{_MONTH}[-_. ]{_YEAR}"
    rf"|(?:q[1-4]|{_MONTH_NAME})(?:[-_. ]?{_YEAR})?",
    re.IGNORECASE,
)
_PERIOD_PART = re.compile(_DAY)  # a month or a day, but only below a year


@dataclass(frozen=True, slots=True)
class Place:
    """A key below a tenant's inbox or configs."""

    tenant: str
    path: str  # below the tenant's folder

    @property
    def folder(self) -> str:
        """The path's folder with its trailing slash; empty at the tenant's top."""
        return self.path[: len(self.path) - len(basename(self.path))]

    @property
    def name(self) -> str:
        return basename(self.path)

    @property
    def sender(self) -> str:
        """Who drops here: the folder without the parts that name a period, so that each month's drops are one sender's.

        `north/2026-11/` and `north/2026/12/` are both of `north/`; empty at the tenant's top.
        """
        parts: list[str] = []
        below_period = False
        for part in self.folder.split("/")[:-1]:
            below_period = bool(_PERIOD.fullmatch(part) or (below_period and _PERIOD_PART.fullmatch(part)))
            if not below_period:
                parts.append(part)
        return "".join(f"{part}/" for part in parts)


def check_key(key: str) -> str:
    """Return a key that a folder, S3 and every client read the same way; raise KeyRefused for others."""
    if len(key) <= MAX_KEY_BYTES and _PLAIN_KEY.fullmatch(key):
        return key
    parts = key.split("/")
    if len(key.encode("utf-8", "replace")) > MAX_KEY_BYTES:
        raise KeyRefused(f"key {key[:80]!r}… is longer than {MAX_KEY_BYTES} bytes; shorten its path")
    if any(0xD800 <= ord(c) < 0xE000 for c in key):
        raise KeyRefused(f"key {key!r} is not UTF-8; rename the object")
    if any(p in ("", ".", "..") for p in parts) or "\\" in key or any(ord(c) < 32 or c == "\x7f" for c in key):
        raise KeyRefused(
            f"key {key!r} has an empty, '.' or '..' part, a backslash or a control character; rename the object"
        )
    return key


def refusal(key: str) -> str | None:
    """Why a key is refused; None if it is not."""
    try:
        check_key(key)
    except KeyRefused as error:
        return str(error)
    return None


def place(key: str, prefix: str = INBOX) -> Place:
    """The tenant and path of a key in the inbox (or in configs); raises KeyRefused for any other key."""
    check_key(key)
    tenant, slash, path = key.removeprefix(prefix).partition("/")
    if not key.startswith(prefix) or not slash:
        raise KeyRefused(f"key {key!r} is not below {prefix}<tenant>/; put it there")
    if not _TENANT.fullmatch(tenant):
        raise KeyRefused(
            f"tenant {tenant!r} in key {key!r} is not a tenant name; use letters, digits, '.', '_', '-', at most 63"
        )
    return Place(tenant, path)


def is_manifest(name: str) -> bool:
    return name == "manifest.json" or name.endswith(".manifest.json")


def is_set_aside(key: str) -> bool:
    """Whether a key is of a kept version or a draft of a workflow, in configs/: no drop is processed with it."""
    return key.startswith(CONFIGS) and (f"/{VERSIONS}" in key or f"/{DRAFT}" in key)


def is_private(key: str) -> bool:
    """Whether a key of configs/_shared/ is of the operator alone: it may hold a receiver's secret, or be a test case,
    which has cells of some sender."""
    if not key.startswith(SHARED):
        return False
    return is_manifest(basename(key)) or is_set_aside(key) or _SHARED_CASE.fullmatch(key) is not None


def is_spreadsheet(name: str) -> bool:
    return name.lower().endswith(SPREADSHEETS) and not is_unfinished(name)


def is_unfinished(name: str) -> bool:
    """Whether a file's name says that it is still being written."""
    return _UNFINISHED.search(name) is not None


def is_ignored(name: str) -> bool:
    """Whether a file is not a drop: unfinished, hidden, left by a desktop, or a decision on a review."""
    return is_unfinished(name) or name.lower() in _LEFT_BEHIND or is_decision(name)


def is_decision(name: str) -> bool:
    """Whether a name is that of a decision, `<file>.decision.json` or `<job>.decision.json`."""
    return name.endswith(DECISION) and name != DECISION


def decision_key(key: str) -> str:
    """Where the decision on an input is."""
    return key + DECISION


def job_decision_key(key: str, job_id: str) -> str:
    """Where the decision on one job of an input may be as well; the only place if the input's name is very long."""
    return f"{key.removesuffix(basename(key))}{job_id}{DECISION}"


def decision_place(job: Job) -> str:
    """Where a decision on a job is expected: beside the first of its inputs."""
    key = min(i.ref.key for i in job.inputs if i.role == "primary")
    fits = len(basename(decision_key(key)).encode()) <= MAX_NAME_BYTES
    return decision_key(key) if fits else job_decision_key(key, job.job_id)


def decision_places(job: Job) -> list[str]:
    """Every key at which a decision on a job is read: named after the job, and beside each of its inputs."""
    keys = [i.ref.key for i in job.inputs if i.role == "primary"]
    return [job_decision_key(min(keys), job.job_id), *map(decision_key, keys)] if keys else []


def meant(name: str) -> str | None:
    """What a sender may have meant by a name that is neither a spreadsheet nor a manifest; None: no guess."""
    stem, dot, ending = name.rpartition(".")
    if not dot:
        return None
    if ".js" in name.lower() and get_close_matches(name.lower(), ["manifest.json"], 1, 0.8):
        return "manifest.json"
    if stem.lower().endswith(SPREADSHEETS):
        return stem  # members.xlsx.txt: a desktop added an extension
    swapped = [known for known in SPREADSHEETS if sorted(known) == sorted(f".{ending.lower()}")]
    close = swapped or get_close_matches(f".{ending.lower()}", SPREADSHEETS, 1, 0.7)
    return f"{stem}{close[0]}" if close else None


def matches(path: str, pattern: str) -> bool:
    """Shell patterns over whole paths: `*` and `?` stop at '/', `**` does not. Case does not matter."""
    return compiled(pattern.removeprefix("./")).matches(path)


def is_literal(pattern: str) -> bool:
    return not any(c in pattern for c in "*?[")


def output_folder(tenant: str, subject: str, workflow: str, job_id: str) -> str:
    return f"{line_folder(tenant, subject, workflow)}{job_id}/"


def line_of(job: Job) -> str:
    """The folder of the outputs of a job's line: below outputs/, or below the replay that it is part of."""
    root = f"{REPLAYS}{job.replay}/" if job.replay else OUTPUTS
    return root + line_folder(job.tenant, job.subject, job.workflow).removeprefix(OUTPUTS)


LONGEST_OUTPUT = f"normalized-{'x' * 27}.parquet"  # of the names in a job's folder: a file of a split


def line_folder(tenant: str, subject: str, workflow: str) -> str:
    """The folder of the outputs of all jobs of one line, and of their `latest.json`."""
    middle = f"{subject.strip('/')}/" if subject.strip("/") else ""
    return f"{OUTPUTS}{tenant}/{middle}{workflow}/"


def rejected_key(manifest_key: str) -> str:
    """Where the rejections of the manifests in one folder are written: beside where outputs would go."""
    if manifest_key.startswith(SHARED):
        path = manifest_key.removeprefix(SHARED)
        return f"{OUTPUTS}{SHARED_TENANT}/{path[: path.rfind('/') + 1]}rejected.json"
    if manifest_key.startswith(CONFIGS):
        at = place(manifest_key, CONFIGS)
        return f"{OUTPUTS}{at.tenant}/_configs/{at.folder}rejected.json"
    at = place(manifest_key)
    return f"{OUTPUTS}{at.tenant}/{at.folder}rejected.json"


def staging_folder(job_id: str, fence: int | None = None) -> str:
    """The folder where a job's attempts stage their files, or one attempt's: its fence is never used twice."""
    return f"{WORK}{job_id}/" if fence is None else f"{WORK}{job_id}/{fence}/"


def job_folder(job: Job) -> str:
    return f"{line_of(job)}{job.job_id}/"


def result_key(job: Job) -> str:
    return f"{job_folder(job)}result.json"


def latest_key(job: Job) -> str:
    return f"{line_of(job)}latest.json"


def corrected_latest_key(job: Job) -> str | None:
    """Where the first drop's latest.json is, for a job that completes another drop than its own."""
    if job.mends is None or job.mends.subject == job.subject:
        return None
    return f"{line_folder(job.tenant, job.mends.subject, job.workflow)}latest.json"


def corrected_name(number: int, item: InputRef) -> str:
    """The name of the copy that a job publishes of a corrected input, the `number`th of its inputs."""
    ending = next((e for e in SPREADSHEETS if item.ref.key.lower().endswith(e)), "")
    return f"corrected{f'-{number}' if number else ''}{ending}"


def profile_key(job: Job) -> str | None:
    """Where the profile of a sender's last drop is: beside the outputs of its folder, one for each workflow.

    A replay has none: what it would be compared with came later.
    """
    primary = next((i.ref.key for i in job.inputs if i.role == "primary"), None)
    if primary is None or job.replay or not primary.startswith(f"{INBOX}{job.tenant}/"):
        return None
    return f"{line_folder(job.tenant, place(primary).sender, job.workflow)}profile.json"


PACKED = (".xlsx", ".parquet")  # outputs that no zip makes smaller
_CONTENT_TYPES = {
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".html": "text/html; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".parquet": "application/vnd.apache.parquet",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".zip": "application/zip",
}


def content_type(name: str) -> str:
    """The media type of an output with this name."""
    return _CONTENT_TYPES.get(name[max(name.rfind("."), 0) :].lower(), "application/octet-stream")
