"""The shared strings part of an .xlsx, streamed in."""

from collections.abc import Iterable, Iterator
from itertools import chain

from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.strings import SharedStrings
from runner.engine.reading.texts import XML_BLANKS, unescaped, without_entities
from runner.engine.reading.xlsx.chunks import Chunks, Opened, drain, is_odd
from runner.engine.reading.xlsx.markup import events

_WHAT = "sharedStrings.xml"
_OPEN, _CLOSE = "<si><t>", "</t>"
_SPACE_KEPT = '<si><t xml:space="preserve">'
_MARK = "\x01"  # no XML text can hold it: stands before texts whose blanks are kept
_KEPT = _OPEN + _MARK


def read_strings(pieces: Iterable[bytes], limits: ReadLimits) -> SharedStrings:
    """All shared strings in order; phonetic guides are left out, runs of rich text joined."""
    strings = SharedStrings(limits)
    opened = Opened(pieces, b"si", closing=b"sst")
    batches = _cut(opened, limits) if opened.plain else _parsed(opened.whole(), limits)
    for batch in batches:
        strings.extend(batch)
    return strings


def _cut(opened: Opened, limits: ReadLimits) -> Iterator[list[str | None]]:
    """Take the part apart as text; hand what is not plain to the parser."""
    source = Chunks(opened, ending=b"si", what=_WHAT, limits=limits)
    for chunk in source:
        if is_odd(chunk, ":si"):
            yield from _parsed(chain([opened.root], source.again()), limits)
            return
        done, end, tail = chunk.rpartition("</si>")
        batch = _quick(done)
        if batch is None:
            yield from _parsed([b"<sst>", (done + end).encode(), b"</sst>"], limits)
        else:
            yield batch
        if "<si" in tail:  # an empty <si/> after the last text
            yield from _parsed([b"<sst>", tail[: tail.rfind("</")].encode(), b"</sst>"], limits)
    drain(source.rest())


def _quick(chunk: str) -> list[str | None] | None:
    """The strings of a chunk where each is one plain text; None where any is not."""
    if not chunk:
        return []
    chunk = chunk.replace(_SPACE_KEPT, _KEPT)
    if not chunk.startswith(_OPEN) or not chunk.endswith(_CLOSE):
        return None
    texts = chunk[len(_OPEN) : -len(_CLOSE)].split(_CLOSE + "</si>" + _OPEN)
    if chunk.count("<") != 4 * len(texts) - 1:
        return None
    found = [(one[1:] if one.startswith(_MARK) else one.strip(XML_BLANKS)) or None for one in texts]
    if "&" in chunk:
        found = [without_entities(one) if one and "&" in one else one for one in found]
    if "_x" in chunk:
        found = [unescaped(one) if one and "_x" in one else one for one in found]
    return found


def _parsed(pieces: Iterable[bytes], limits: ReadLimits) -> Iterator[list[str | None]]:
    runs: list[str] = []
    batch: list[str | None] = []
    phonetic = keep = False
    for event in events(pieces, what=_WHAT, limits=limits):
        name = event[1]
        if event[0] == "start":
            if name == "si":
                runs.clear()
            elif name == "rPh":
                phonetic = True
            elif name == "t":
                keep = event[2].get("xml:space") == "preserve"
        elif name == "t":
            if not phonetic:
                runs.append(event[2] if keep else event[2].strip(XML_BLANKS))
        elif name == "rPh":
            phonetic = False
        elif name == "si":
            batch.append(unescaped("".join(runs)) or None)
            if len(batch) >= 1024:
                yield batch
                batch = []
    yield batch
