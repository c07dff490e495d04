"""How jobs are shown to people, and their JSON shapes (docs/reference/commands.md, docs/reference/api.md)."""

from datetime import UTC, datetime

from core.jobs import Job, State, job_dict
from core.keys import job_folder, result_key
from core.ports import NewerRow, Pause


def job_shape(job: Job) -> dict[str, object]:
    """A job as every command shows it: its whole record, and where its outputs are."""
    return {**job_dict(job), "outputs": job_folder(job), "result": result_key(job)}


def newer_shape(row: NewerRow) -> dict[str, object]:
    """The known part of a row that a newer program wrote."""
    known = {name: getattr(row, name) for name in ("job_id", "tenant", "workflow", "state", "created_at")}
    return {**known, "newer": {"version": row.why.version, "message": str(row.why)}}


def pause_shape(pause: Pause) -> dict[str, object]:
    return {"tenant": pause.tenant, "workflow": pause.workflow, "since": pause.since, "by": pause.by}


def when(at: float | None) -> str:
    return "" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def span(seconds: float) -> str:
    """A duration in at most two units."""
    seconds = max(0.0, seconds)
    if seconds < 60:
        return f"{seconds:.1f}s" if seconds < 10 else f"{seconds:.0f}s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours < 48 else f"{hours // 24}d{hours % 24}h"


def size(n: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} GiB"


def plural(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n:,} {noun}s"


def note(job: Job) -> str:
    """Why a job is in its state, in one line."""
    if job.state is State.RUNNING:
        if job.cancel_requested_at is not None:
            return "cancel requested"
        return progress(job)
    if job.error is not None and job.ended:
        return f"{job.error.verdict}: {job.error.message}"
    if job.state is State.SUCCEEDED:
        return counts(job)
    return job.reason


def progress(job: Job) -> str:
    progress = job.summary.get("progress")
    if not isinstance(progress, dict) or not progress.get("pass"):
        return ""
    rows = (
        f" {progress['done']}" + (f"/{progress['total']}" if progress.get("total") else "")
        if progress.get("done")
        else ""
    )
    return f"{progress['pass']}{rows}"


def counts(job: Job) -> str:
    found = job.summary.get("findings")
    rows = job.summary.get("rows_out")
    parts = [plural(rows, "row")] if isinstance(rows, int) else []
    gone = job.summary.get("left_out")
    if isinstance(gone, dict) and gone:
        parts.append(f"{sum(gone.values())} left out")
    if isinstance(found, dict):
        parts += [plural(n, severity) for severity, n in found.items() if n and severity != "info"]
    return ", ".join(parts)
