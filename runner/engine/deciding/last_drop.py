"""Compares a drop with its sender's last one: its columns before any row is written, its rows and values afterwards."""

from collections.abc import Mapping, Sequence
from typing import Final

from runner.engine.common.findings import Findings
from runner.engine.contract import EndCode, Order
from runner.engine.document_types import ColumnChanges, DriftPart, PreviousPart, ProfileDocument, ValuesChange
from runner.engine.mapping.table_mapping import MappedTable
from runner.engine.memory import drift
from runner.engine.options import JobOptions
from runner.engine.protocol import EngineStop

_SEVERITY_OF_OPTION: Final = {
    "accept": "info",
    "review": "warning",
    "fail": "error",
}  # of other columns, by `drift.columns`
_NOUN_OF_CHANGE: Final = {
    "types": "kinds of values",
    "blank": "shares of blank cells",
    "wrong": "shares of wrong values",
}


class LastDrop:
    """The profile of the sender's last drop, and how this one differs from it; nothing if there is none."""

    def __init__(self, order: Order, options: JobOptions, findings: Findings) -> None:
        """Know the order's earlier profile; it is read by `compare_columns`."""
        self._order = order
        self._options = options
        self._findings = findings
        # Set by `compare_columns`, if there is an earlier drop to compare with.
        self._earlier: drift.EarlierProfile | None = None
        self._is_same_kind = False  # of file
        self._column_changes: ColumnChanges | None = None

    def compare_columns(self, tables: Sequence[MappedTable]) -> EngineStop | None:
        """Report columns that differ, and remember the profile to compare values with.

        Returns the end of the job if the manifest does not accept such columns, else None.
        """
        previous = self._order.previous
        if previous is None:
            return None
        profiles = drift.read_profiles(previous.path.read_bytes()) if previous.path.exists() else []
        if any(profile.job == self._order.job.job_id for profile in profiles):
            return None  # it runs again, and its own profile has replaced the one that it was compared with
        now = self.profile(tables, {})
        chosen = drift.choose_likest(profiles, now)
        if chosen is None:
            message = "the profile of the sender's last drop cannot be read; this drop is compared with nothing"
            self._findings.add("drift_unknown", "info", message, rule="drift")
            return None
        self._earlier, self._is_same_kind = chosen
        self._column_changes = drift.compare_columns(self._earlier.profile, now)
        if not self.has_other_columns:
            return None
        message = f"the columns differ from those of the sender's last drop: {self.changes_in_words}"
        self._findings.add("drift_columns", _SEVERITY_OF_OPTION[self._options.on_drift], message, rule="drift")
        if self._options.on_drift != "fail":
            return None
        remedy = 'correct the file, or accept its columns once with "drift": {"columns": "accept"}'
        return EngineStop(EndCode.DRIFTED, message, rule="drift", remedy=remedy)

    @property
    def has_other_columns(self) -> bool:
        """Whether the columns differ from those of the last drop, as far as they were compared."""
        return self._column_changes is not None and drift.differs(self._column_changes)

    @property
    def changes_in_words(self) -> str:
        """Describe how the columns differ, in words; empty if nothing was compared."""
        return "" if self._column_changes is None else drift.describe_changes(self._column_changes)

    def compare_values(self, tables: Sequence[MappedTable], shares: Mapping[str, drift.Shares]) -> DriftPart | None:
        """Report rows and values that differ; returns all changes, or None if there is nothing to compare with.

        `shares`: by table, of the rows that were read.
        """
        if self._earlier is None:
            return None
        before, now = self._earlier.profile, self.profile(tables, shares)
        rows, values = drift.compare_rows(before, now), drift.compare_columns_values(before, now)
        if rows["out_of_range"]:
            message = f"the drop has {rows['now']:,} rows, the sender's last one had {rows['before']:,}"
            self._findings.add("drift_rows", "info", message, rule="drift")
        for change in values:
            what = f"{_NOUN_OF_CHANGE[change['what']]} of {change['header']}"
            message = f"the {what} differ from those of the sender's last drop"
            self._findings.add("drift_values", "info", message, field=change["field"], rule="drift")
        changes = self.drift(values)
        return None if changes is None else changes | {"rows": rows}

    def profile(self, tables: Sequence[MappedTable], shares: Mapping[str, drift.Shares]) -> ProfileDocument:
        """Describe what this drop looks like, for the sender's next one; `shares`: by table, of the rows that were
        read."""
        redact = self._options.redact_headers
        return drift.make_profile((table.headings(redact=redact), shares.get(table.source.id)) for table in tables)

    def drift(self, values: list[ValuesChange]) -> DriftPart | None:
        """Return the changes as artifact.json has them; None if nothing was compared."""
        if self._column_changes is None:
            return None
        previous = self._order.previous
        named: PreviousPart = {"key": previous.key, "sha256": previous.sha256} if previous else {}
        if self._earlier is not None:
            named |= {"job_id": self._earlier.job, "same_kind": self._is_same_kind}
        return {"previous": named, "columns": self._column_changes, "values": values}
