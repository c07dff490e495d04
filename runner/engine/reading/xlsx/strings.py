"""Shared strings, streamed in and held within a bound."""

from collections.abc import Iterable, Sequence

from runner.engine.reading import errors
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.texts import unescaped
from runner.engine.reading.xlsx.markup import events


def read_strings(pieces: Iterable[bytes], limits: ReadLimits) -> Sequence[str]:
    """All shared strings in order; phonetic guides are left out, runs of rich text joined."""
    strings: list[str] = []
    runs: list[str] = []
    phonetic = False
    for event in events(pieces, what="sharedStrings.xml", limits=limits):
        name = event[1]
        if event[0] == "start":
            if name == "si":
                runs.clear()
            elif name == "rPh":
                phonetic = True
        elif name == "t":
            if not phonetic:
                runs.append(event[2])
        elif name == "rPh":
            phonetic = False
        elif name == "si":
            strings.append(unescaped("".join(runs)))
            if len(strings) > limits.max_strings:
                raise errors.too_large(f"more than {limits.max_strings} shared strings")
    return strings
