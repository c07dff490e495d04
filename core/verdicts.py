"""How a sandbox run ended, and whose fault it was."""

from enum import StrEnum


class Fault(StrEnum):
    NOBODY = "nobody"
    INPUT = "input"
    CONFIG = "config"
    LIMIT = "limit"
    OURS = "ours"


class Verdict(StrEnum):
    """Every way a box can end. The retry decision reads nothing else."""

    OK = "ok"
    INPUT_UNREADABLE = "input_unreadable"  # encrypted, truncated, hostile, not a spreadsheet
    NOTHING_MAPPED = "nothing_mapped"  # no column of the input matches a declared field
    EMPTY_INPUT = "empty_input"  # fewer rows than the manifest's min_rows
    ROWS_REJECTED = "rows_rejected"  # more rows have errors than the manifest accepts
    DRIFTED = "drifted"  # the columns differ from the sender's last drop, and the manifest does not accept that
    MENDS = "mends"  # the input corrects the rejects of a result that it does not belong to or that is gone
    NEEDS_REVIEW = "needs_review"  # the engine is unsure, and the manifest says that a person decides
    REVIEW_EXPIRED = "review_expired"  # nobody decided in time
    INPUT_GONE = "input_gone"  # the pinned version was replaced before it was read
    RULE_ERROR = "rule_error"  # a rule raised, or the config package cannot be loaded
    CONFIG_REFUSED = "config_refused"  # needs something it may not have: network, a package, a weaker box
    BAD_OUTPUT = "bad_output"  # the box's output or report is not acceptable
    CPU = "cpu"
    MEMORY = "memory"
    WALL_CLOCK = "wall_clock"
    FILE_SIZE = "file_size"
    PROCESSES = "processes"
    SIGNAL = "signal"  # killed by a signal that we did not send
    CANCELLED = "cancelled"  # we killed it: a cancel was requested
    LEASE_LOST = "lease_lost"  # we killed it: the lease was lost
    RELEASED = "released"  # we killed it: the runner shuts down, or its tenant held every slot while another waited
    BOX_FAILED = "box_failed"  # the box could not start, or broke through no fault of its contents
    ENGINE_FAILED = "engine_failed"  # the engine broke on its own; it would break again
    STORE_FAILED = "store_failed"  # the store did not answer while staging or publishing
    RUNNER_LOST = "runner_lost"  # the lease expired without a heartbeat


FAULTS: dict[Verdict, Fault] = {
    Verdict.OK: Fault.NOBODY,
    Verdict.INPUT_UNREADABLE: Fault.INPUT,
    Verdict.NOTHING_MAPPED: Fault.INPUT,
    Verdict.EMPTY_INPUT: Fault.INPUT,
    Verdict.ROWS_REJECTED: Fault.INPUT,
    Verdict.DRIFTED: Fault.INPUT,
    Verdict.MENDS: Fault.INPUT,
    Verdict.NEEDS_REVIEW: Fault.NOBODY,
    Verdict.REVIEW_EXPIRED: Fault.INPUT,
    Verdict.INPUT_GONE: Fault.INPUT,
    Verdict.RULE_ERROR: Fault.CONFIG,
    Verdict.CONFIG_REFUSED: Fault.CONFIG,
    Verdict.BAD_OUTPUT: Fault.CONFIG,
    Verdict.CPU: Fault.LIMIT,
    Verdict.MEMORY: Fault.LIMIT,
    Verdict.WALL_CLOCK: Fault.LIMIT,
    Verdict.FILE_SIZE: Fault.LIMIT,
    Verdict.PROCESSES: Fault.LIMIT,
    Verdict.SIGNAL: Fault.CONFIG,
    Verdict.CANCELLED: Fault.NOBODY,
    Verdict.LEASE_LOST: Fault.OURS,
    Verdict.RELEASED: Fault.OURS,
    Verdict.BOX_FAILED: Fault.OURS,
    Verdict.ENGINE_FAILED: Fault.OURS,
    Verdict.STORE_FAILED: Fault.OURS,
    Verdict.RUNNER_LOST: Fault.OURS,
}
