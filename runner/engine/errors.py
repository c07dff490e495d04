"""The one way the engine ends a job early on purpose."""


class EngineStop(Exception):
    """The job cannot go on: `code` of the protocol, a message for people, and where.

    None of the three may hold a cell's value.
    """

    def __init__(self, code: str, message: str, **where: str | int | None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = {k: v for k, v in where.items() if v is not None}
