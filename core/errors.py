"""Errors for people: each message names the thing, where it is and what to do next."""


class AdeError(Exception):
    """Base of every error that ade-drop raises on purpose."""


class SettingsError(AdeError):
    """An ADE_* variable has a value that cannot be used."""


class KeyRefused(AdeError):
    """A key points outside what its tenant may name."""


class ObjectMissing(AdeError):
    """The store has no object under this key."""


class ObjectChanged(AdeError):
    """The store no longer holds the version that was asked for."""


class ObjectTooLarge(AdeError):
    """An object is larger than the caller is ready to read."""


class PreconditionFailed(AdeError):
    """A conditional write found something other than it expected."""


class StoreUnavailable(AdeError):
    """The store, table or queue did not answer; trying again later may work."""


class CallRefused(StoreUnavailable):
    """The service refused the call; trying again will not help."""


class StoreFull(StoreUnavailable):
    """The store has no room for what was written, or its quota is used up; others free it, no job can."""


class AnswerDoubted(StoreUnavailable):
    """The store's answer does not prove itself; trying again may bring a better one."""


class ObjectRefused(StoreUnavailable):
    """The store refuses access to one object; others are not affected."""


class RowUnreadable(AdeError):
    """A row of the table does not hold a job that this program can read."""


class RecordNewer(RowUnreadable):
    """A record was written by a newer ade-drop; this process leaves it alone until it is upgraded."""

    def __init__(self, what: str, version: int, known: int) -> None:
        self.version = version
        super().__init__(
            f"{what} was written by a newer ade-drop (record version {version}; this program knows up to {known}); "
            "it is left alone: upgrade this process"
        )


class IllegalTransition(AdeError):
    """A job may not go from its state to the one that was asked for."""


class PackageRefused(AdeError):
    """A config package holds something that will not be unpacked."""


class SandboxUnavailable(AdeError):
    """This host cannot provide a box of the required level."""


class SandboxBusy(SandboxUnavailable):
    """No box started in time: the host has too much to do. This says nothing about what it allows."""


class UsageError(AdeError):
    """A command was called with arguments that do not make sense."""


class ManifestInvalid(AdeError):
    """A manifest does not validate; `problems` says where and what is allowed."""

    def __init__(self, problems: "list[Problem]") -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p.path}: {p.problem}" for p in problems))


class Problem:
    """One line of a rejection: where, what is wrong, what is allowed. Its texts are cut: a key may be a megabyte."""

    __slots__ = ("allowed", "path", "problem")

    def __init__(self, path: str, problem: str, allowed: str) -> None:
        self.path = _cut(path, 300)
        self.problem = _cut(problem, 500)
        self.allowed = _cut(allowed, 1000)

    def as_dict(self) -> dict[str, str]:
        return {"path": self.path, "problem": self.problem, "allowed": self.allowed}

    def __repr__(self) -> str:
        return f"Problem({self.path!r}, {self.problem!r}, {self.allowed!r})"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
