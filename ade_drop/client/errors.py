"""What can go wrong for a program that uses the client."""


class AdeError(Exception):
    """The drop or its result cannot be had; the message names it and says what to do."""


class DropRejected(AdeError):
    """The manifest or a file is refused: `problems` has one entry for each thing to fix, as in rejected.json."""

    def __init__(self, message: str, problems: tuple[dict[str, object], ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class NotDone(AdeError, TimeoutError):
    """The drop has no result yet; `reason` says what it waits for, where that is known."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class Unavailable(AdeError):
    """The deployment does not answer now; the same call may work later. `wait` tries again by itself."""


class ResultCorrupt(AdeError):
    """A file differs from the size or the SHA-256 that result.json has for it."""


class NotPublished(AdeError):
    """There is no such job or file, or not yet."""
