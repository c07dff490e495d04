"""Errors as problem+json (RFC 9457): each says what is wrong, where, and what to do next."""

import json
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from core.decisions import DecisionInvalid
from core.errors import (
    AdeError,
    CallRefused,
    IllegalTransition,
    KeyRefused,
    ManifestInvalid,
    ObjectMissing,
    ObjectTooLarge,
    RecordNewer,
    StoreUnavailable,
)

RETRY_SECONDS = 5


class ProblemError(AdeError):
    """An answer other than the one that was asked for."""

    def __init__(self, status: HTTPStatus, detail: str, *, headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers or {}
        self.more = more


def problem_of(error: Exception) -> ProblemError | None:
    """The problem to report for an AdeError; None: it is a bug."""
    match error:
        case ProblemError():
            return error
        case ManifestInvalid():
            found = [problem.as_dict() for problem in error.problems]
            return ProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "the manifest does not validate; fix what `problems` lists and send it again",
                problems=found,
            )
        case DecisionInvalid():
            return ProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "the decision does not validate; fix what `problems` lists and send it again",
                problems=[problem.as_dict() for problem in error.problems],
            )
        case RecordNewer() | IllegalTransition():
            return ProblemError(HTTPStatus.CONFLICT, str(error))
        case KeyRefused():
            return ProblemError(HTTPStatus.BAD_REQUEST, str(error))
        case ObjectMissing():
            return ProblemError(HTTPStatus.NOT_FOUND, str(error))
        case ObjectTooLarge():
            return ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, str(error))
        case StoreUnavailable():
            # A refused call will be refused again, but only an operator of the service can tell.
            after = {} if isinstance(error, CallRefused) else {"Retry-After": str(RETRY_SECONDS)}
            return ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, str(error), headers=after)
        case AdeError():
            return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
    return None


def respond(problem: ProblemError) -> Response:
    body = {
        "type": "about:blank",
        "title": problem.status.phrase,
        "status": int(problem.status),
        "detail": str(problem),
        **problem.more,
    }
    raw = json.dumps(body)  # in ASCII: a message may quote half a character
    return Response(
        raw, status_code=int(problem.status), headers=problem.headers, media_type="application/problem+json"
    )


def not_found(job_id: str) -> ProblemError:
    return ProblemError(HTTPStatus.NOT_FOUND, f"there is no job {job_id[:100]}; GET /jobs lists those that you may see")
