"""What a pause speaks of: everything, a tenant, or one workflow of a tenant."""

import argparse
from typing import Any

from core.errors import UsageError
from core.ports import Pause


def add_scope(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scope",
        nargs="*",
        metavar="SCOPE",
        help="`all`, `tenant T` or `workflow T W`; nothing: list what is paused",
    )


def read_scope(words: list[str]) -> tuple[str | None, str | None]:
    match words:
        case ["all"]:
            return None, None
        case ["tenant", tenant]:
            return tenant, None
        case ["workflow", tenant, workflow]:
            return tenant, workflow
    raise UsageError(f"{' '.join(words)!r} is no scope; say `all`, `tenant T` or `workflow T W`")


def scope_words(tenant: str | None, workflow: str | None) -> str:
    if tenant is None:
        return "everything"
    return f"tenant {tenant}" if workflow is None else f"workflow {workflow} of tenant {tenant}"


def pause_shape(pause: Pause) -> dict[str, Any]:
    return {"tenant": pause.tenant, "workflow": pause.workflow, "since": pause.since, "by": pause.by}
