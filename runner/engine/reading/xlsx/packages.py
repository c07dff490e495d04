"""An OOXML package: parts and the relations between them."""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from runner.engine.reading import errors
from runner.engine.reading.archives import Archive, Entry
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.xlsx.markup import Attributes, Event, attribute, events


@dataclass(frozen=True, kw_only=True)
class Relation:
    kind: str  # the last word of the type's address: worksheet, styles, sharedStrings …
    part: str  # name of the part it leads to


class Package:
    def __init__(self, archive: Archive, limits: ReadLimits) -> None:
        self.archive = archive
        self.limits = limits

    def relations(self, part: str) -> dict[str, Relation]:
        """Relations of a part by id; none where the part has no relations file."""
        folder, name = posixpath.split(part)
        entry = self.archive.find(posixpath.join(folder, "_rels", f"{name}.rels"))
        if entry is None:
            return {}
        found = {}
        for event in self.events(entry):
            if event[0] == "start" and event[1] == "Relationship" and event[2].get("TargetMode") != "External":
                relation = _relation(folder, event[2])
                found[event[2].get("Id", "")] = relation
        return found

    def events(self, entry: Entry) -> Iterator[Event]:
        """Every event of a part that is neither a sheet nor the strings."""
        if entry.size > self.limits.max_part_bytes:
            raise errors.too_large(f"its part {entry.name[-60:]!r} has {entry.size} bytes")
        return events(self.archive.stream(entry), what=entry.name, limits=self.limits)

    def workbook_part(self) -> str:
        """Name of the workbook part, wherever the package keeps it."""
        for relation in self.relations("").values():
            if relation.kind == "officeDocument":
                if self.archive.find(relation.part) is None:
                    raise errors.damaged("its workbook part is missing")
                return relation.part
        for name in ("xl/workbook.xml", "xl/workbook.bin", "workbook.xml"):
            if self.archive.find(name) is not None:
                return name
        raise errors.not_a_spreadsheet(_kind_of_zip(self.archive))


def _relation(folder: str, attributes: Attributes) -> Relation:
    target = (attributes.get("Target") or "").replace("\\", "/")
    part = target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
    return Relation(kind=(attribute(attributes, "Type") or "").rpartition("/")[2], part=part)


def _kind_of_zip(archive: Archive) -> str:
    names = archive.entries
    if any(name.startswith("word/") for name in names):
        return "a Word document (.docx)"
    if any(name.startswith("ppt/") for name in names):
        return "a PowerPoint presentation (.pptx)"
    if "META-INF/MANIFEST.MF" in names:
        return "a Java archive (.jar)"
    if any(name.startswith("Index/") and name.endswith(".iwa") for name in names):
        return "an Apple Numbers, Pages or Keynote document"
    inside = [name for name in names if name.lower().endswith((".xlsx", ".xlsm", ".xls", ".xlsb", ".ods", ".csv"))]
    if inside:
        return f"a zip that holds {len(inside)} spreadsheet(s)"
    return f"a zip with {len(names)} other file(s)"
