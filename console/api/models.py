"""What the API takes and gives, as pydantic models; the OpenAPI document is made from them."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from console.api.access import Scope
from core.jobs import Outcome, State
from core.ports import JobQuery
from core.verdicts import Fault, Verdict

TENANT = r"^[A-Za-z0-9][A-Za-z0-9._ -]{0,62}$"
Tenant = Annotated[str, Field(pattern=TENANT, examples=["acme"])]
Word = Annotated[str, Field(min_length=1, max_length=200)]


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _time(value: Any) -> Any:
    """Seconds since the epoch, or an ISO 8601 time."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            pass
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("must be an ISO 8601 time or seconds since the epoch") from None
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return value


Time = Annotated[
    float,
    Field(ge=0, le=1e11, allow_inf_nan=False, description="ISO 8601 time, or seconds since the epoch"),
    BeforeValidator(_time),
]


class RequestModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class JobFilter(RequestModel):
    """Which jobs; all that is given must hold."""

    state: Annotated[list[State], BeforeValidator(_listed)] | None = Field(default=None, max_length=20)
    tenant: Tenant | None = None
    workflow: Word | None = None
    text: Word | None = Field(default=None, description="part of the subject or of the job id; case does not matter")
    outcome: Outcome | None = Field(default=None, description="of jobs that are SUCCEEDED")
    verdict: Verdict | None = None
    fault: Fault | None = None
    runner: Word | None = Field(default=None, description="the runner that holds the lease")
    created_from: Time | None = None
    created_to: Time | None = None
    ended_from: Time | None = None
    ended_to: Time | None = None

    def query(self, tenant: str | None) -> JobQuery:
        """`tenant`: the only one that the caller sees, if there is one."""
        return JobQuery(
            states=None if self.state is None else frozenset(self.state),
            tenant=tenant or self.tenant,
            workflow=self.workflow,
            text=self.text,
            outcome=self.outcome,
            verdict=self.verdict,
            fault=self.fault,
            runner=self.runner,
            created_from=self.created_from,
            created_to=self.created_to,
            ended_from=self.ended_from,
            ended_to=self.ended_to,
        )


Limit = Annotated[int, Field(ge=1, le=500)]
Cursor = Annotated[str, Field(min_length=1, max_length=2000, description="`cursor` of the page before")]


class JobsQuery(JobFilter):
    limit: Limit = 50
    cursor: Cursor | None = None


class OverviewQuery(RequestModel):
    tenant: Tenant | None = None


class PageQuery(OverviewQuery):
    limit: Limit = 50
    cursor: Cursor | None = None


class LogQuery(RequestModel):
    after: int = Field(default=0, ge=0, le=2**40, description="bytes of the log that the caller has; for polling")
    follow: bool = Field(default=False, description="answer with server-sent events, as Accept: text/event-stream does")


class FileQuery(RequestModel):
    name: str = Field(default="normalized.xlsx", min_length=1, max_length=200, description="one of the job's files")
    inline: bool = Field(default=False, description="to be shown, not saved")


class RemoveQuery(RequestModel):
    keep_input: bool = False


class KeysBody(RequestModel):
    """Files that are already in the inbox, and the manifest among them or given here."""

    tenant: Tenant
    keys: list[Annotated[str, Field(min_length=1, max_length=1024)]] = Field(min_length=1, max_length=1000)


class DropForm(BaseModel):
    """A drop: the files that the manifest selects, and what else belongs beside it."""

    tenant: Tenant
    manifest: str = Field(
        default="",
        description="the manifest, as text or as a file; without one, the standing workflows that select the files",
        json_schema_extra={"contentMediaType": "application/json"},
    )
    files: list[Annotated[bytes, Field(json_schema_extra={"format": "binary"})]] = Field(min_length=1)
    path: str | None = Field(
        default=None,
        description="folder below inbox/<tenant>/; give one to follow one sender over time: new versions supersede, "
        "drift is compared. By default each drop gets a folder of its own, <workflow>/<12 hex digits>/, found again "
        "by the same drop",
    )
    data_time: str | None = Field(default=None, description="the data's own time, ISO 8601")


class UploadBody(RequestModel):
    """Files that will be put into the inbox directly."""

    tenant: Tenant
    path: str = Field(default="", max_length=800, description="folder below inbox/<tenant>/")
    names: list[Annotated[str, Field(min_length=1, max_length=255)]] = Field(min_length=1, max_length=200)


class ActBody(RequestModel):
    """One act on every job that matches."""

    act: Literal["retry", "cancel", "reset", "remove"]
    filter: JobFilter
    dry_run: bool = Field(default=False, description="only count them, and name the first")
    cursor: Cursor | None = None


class DecideBody(RequestModel):
    """Answers to the questions of a review; docs/guides/review.md."""

    answers: list[dict[str, object]] = Field(default=[], max_length=2000)
    accept: bool = Field(default=False, description="take the likeliest answer to whatever is not answered here")
    remember: bool = True


class PauseBody(RequestModel):
    tenant: Tenant | None = None
    workflow: Word | None = None


class ResolveBody(RequestModel):
    """Which matter is taken care of, up to which case of it."""

    what: str = Field(min_length=1, max_length=2000, examples=["failures/acme/members/rule_error"])
    until: float = Field(ge=0, le=1e12, allow_inf_nan=False, description="`happened` of the matter, as it was listed")
    note: str = Field(default="", max_length=500)


class ValuesQuery(RequestModel):
    input: Word | None = Field(default=None, description="the name of one of the job's inputs; the first")
    sheet: str = Field(default="", max_length=200, description="its name; the first")
    rows: str | None = Field(
        default=None, pattern=r"^[0-9]{1,7}(-[0-9]{1,7})?(,[0-9]{1,7}(-[0-9]{1,7})?){0,99}$", examples=["4-8,12"]
    )
    columns: str | None = Field(
        default=None, pattern=r"^[A-Z]{1,3}(,[A-Z]{1,3}){0,59}$", description="five values of each", examples=["B,D"]
    )
    first: int = Field(default=1, ge=1, le=10_000_000, description="the first row that samples are from")
    last: int = Field(default=10_000_000, ge=1, le=10_000_000)


class SessionBody(RequestModel):
    token: str = Field(min_length=1, max_length=200)


class ForgetBody(RequestModel):
    """What a memory is to forget: whatever fits all that is given of `header` and `sender`."""

    tenant: Tenant
    workflow: Word
    header: Word | None = None
    sender: str | None = Field(default=None, max_length=1000)  # a folder; empty: the tenant's top

    @model_validator(mode="after")
    def _names_something(self) -> "ForgetBody":
        if self.header is None and self.sender is None:
            raise ValueError("say what is to be forgotten: a header, or a sender")
        return self


class ProblemDocument(BaseModel):
    """What is wrong, and what to do (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    problems: list[dict[str, str]] | None = Field(default=None, description="one for each thing to fix")


class Shape(BaseModel):
    """Keys may be added; those here stay."""

    model_config = ConfigDict(extra="allow")


class JobRecord(Shape):
    """The job record of docs/reference/commands.md."""

    job_id: str
    tenant: str
    workflow: str
    subject: str
    state: State
    reason: str
    created_at: float
    rev: int
    outputs: str
    outcome: Outcome | None = None
    expires_at: float | None = Field(default=None, description="until when its files are kept at least")
    error: dict[str, object] | None


class NewerRecord(Shape):
    """A row that a newer program wrote."""

    job_id: str
    tenant: str
    workflow: str
    state: str
    created_at: float
    newer: dict[str, object]


class JobList(Shape):
    jobs: list[JobRecord]
    newer: list[NewerRecord] = []
    cursor: str | None = Field(
        description="for the next page; null: this was the last. A page may be shorter than asked"
    )


class Submission(Shape):
    keys: list[str]
    jobs: list[JobRecord]


class Upload(Shape):
    key: str
    method: str
    url: str
    expires_at: float | None


class UploadList(Shape):
    uploads: list[Upload]


class UploadDone(Shape):
    key: str
    version: str
    size: int


class FileInfo(Shape):
    name: str
    key: str
    size: int
    version: str


class FileList(Shape):
    job_id: str
    expires_at: float | None = Field(default=None, description="until when they are kept at least")
    files: list[FileInfo]


class TimelineEntry(Shape):
    at: float
    what: str


class JobView(JobRecord):
    timeline: list[TimelineEntry]
    links: dict[str, str]


class LogText(Shape):
    job_id: str
    state: State
    text: str
    after: int = Field(description="pass it as `after` for what comes next")
    ended: bool


class ActResult(Shape):
    act: str
    dry_run: bool
    count: int = Field(description="jobs that match; of those read so far if `cursor` is given")
    jobs: list[str] = Field(description="the first of them")
    refused: list[dict[str, str]]
    cursor: str | None = Field(description="there are more: repeat with this cursor")


class Removed(Shape):
    job_id: str
    removed: bool


class Decided(Shape):
    job_id: str
    decision: str = Field(description="key of the decision in the bucket")


class PauseRecord(Shape):
    tenant: str | None
    workflow: str | None
    since: float
    by: str


class PauseList(Shape):
    pauses: list[PauseRecord]


class MatterRecord(Shape):
    what: str = Field(description="names the matter; the same when it happens again")
    kind: str
    urgency: int = Field(description="0: now, 1: soon, 2: when there is time")
    happened: float = Field(description="when its newest case did")
    text: str
    step: str = Field(description="what to do next")
    link: str = Field(description="the page to do it on")
    tenant: str
    workflow: str
    count: int


class RowCells(Shape):
    row: int
    cells: list[str]


class JobValues(Shape):
    job_id: str
    sheet: str
    rows: list[RowCells]
    samples: dict[str, list[str]]


class AttentionList(Shape):
    matters: list[MatterRecord]


class ResolutionRecord(Shape):
    what: str
    until: float
    tenant: str
    at: float
    by: str
    note: str


class Resolved(Shape):
    resolved: ResolutionRecord


class ResolutionList(Shape):
    resolutions: list[ResolutionRecord]


class ReviewRecord(Shape):
    job: JobRecord
    review: dict[str, object] | None = Field(description="null if there is none or it is over 4 MiB; download it then")


class ReviewList(Shape):
    reviews: list[ReviewRecord]
    cursor: str | None


class MemoryRecord(Shape):
    key: str
    tenant: str
    workflow: str
    version: str
    size: int
    memory: dict[str, object] | None = Field(description="null if it is over 4 MiB or does not validate")


class MemoryList(Shape):
    memories: list[MemoryRecord]
    cursor: str | None = None


class Overview(Shape):
    at: float
    counted_at: float = Field(description="when the jobs were counted; a large DynamoDB table is counted now and then")
    states: dict[str, int]
    tenants: dict[str, dict[str, int]]
    whole: bool = Field(
        description="whether `tenants` (and `states` of one tenant) count all jobs: a large DynamoDB table counts the "
        "newest of them, so that there are at least so many"
    )
    queue: dict[str, object] | None
    trouble: str = Field(description="why `queue` is null though the caller may see it: the queue does not answer")
    pauses: list[PauseRecord]


class SenderRecord(Shape):
    tenant: str
    workflow: str
    states: dict[str, int]


class SenderList(Shape):
    senders: list[SenderRecord]


class ActionList(Shape):
    actions: list[dict[str, object]]


class Signed(Shape):
    name: str
    scope: Scope
    tenant: str | None
    rights: list[str]


class Health(Shape):
    status: str


class Ready(Shape):
    ready: bool
    checks: dict[str, str]


class Index(Shape):
    name: str
    version: str
    links: dict[str, str]
