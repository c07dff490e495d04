"""Columns that a table has beside those of its sheet: captions, places, labelled values, unpivoted columns.

They are known by what they say. A field takes one (`from` and `to` in the manifest), or it is a column of its own at
the end of the output.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from runner.engine.common.fields import Field
from runner.engine.common.spelling import normalized
from runner.engine.options import GROUP, JobOptions

PROVENANCE: Final = ("source_file", "source_sheet", "source_row")
NAME: Final = "unpivoted_name"
VALUE: Final = "unpivoted_value"
_LABEL_PREFIX: Final = "label:"
_ADDED_BY_SOURCE: Final = {"caption": GROUP, "file": PROVENANCE[0], "sheet": PROVENANCE[1], "row": PROVENANCE[2]}


class WantedLabel(NamedTuple):
    """A label whose value is a column."""

    label: str  # as the manifest spells it
    side: str | None  # where its value is; None: found out


class Supplied(NamedTuple):
    """The added columns of all tables of a job."""

    columns: tuple[str, ...] = ()  # what they say, in their order
    fields: Mapping[str, str] = {}  # the fields that take them
    headers: Mapping[str, str] = {}  # the headers of those that are columns of their own
    labels: Mapping[str, WantedLabel] = {}  # those that are labelled values


NONE: Final = Supplied()


def plan_added_columns(options: JobOptions, fields: Iterable[Field]) -> Supplied:
    """Collect the added columns that a manifest asks for: those that fields take, then those that are columns of their
    own."""
    names = set[str]()  # of fields
    takers = dict[str, str]()  # field -> the added column that it takes
    labels = dict[str, WantedLabel]()
    for field in fields:
        names.add(field.name)
        source = field.source
        if source is None:
            continue
        if source.kind in _ADDED_BY_SOURCE:
            takers[field.name] = _ADDED_BY_SOURCE[source.kind]
        elif source.kind == "label":
            wanted = WantedLabel(source.options["label"], source.options.get("side"))
            key = f"{_LABEL_PREFIX}{normalized(wanted.label)}/{wanted.side or ''}"
            takers[field.name], labels[key] = key, wanted
    reading, unpivot = options.reading, options.unpivot
    targets = [(reading.group_column, GROUP)] if reading.fills_groups and reading.group_column else []
    targets += [(unpivot.name_to, NAME), (unpivot.value_to, VALUE)] if unpivot else []
    takers |= {name: what for name, what in targets if name in names}
    headers = {what: name for name, what in targets if name not in names}
    if options.output.provenance:
        headers |= {what: what for what in PROVENANCE}
    groups = [GROUP] if reading.fills_groups else []
    return Supplied(tuple(dict.fromkeys([*groups, *takers.values(), *headers])), takers, headers, labels)
