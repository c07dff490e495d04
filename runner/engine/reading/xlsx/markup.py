"""XML as events: no DTD, no entities, no endless tags; prefixes dropped: dialects differ only in them."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal
from xml.parsers import expat

from runner.engine.reading import errors
from runner.engine.reading.limits import ReadLimits

Attributes = dict[str, str]
Event = tuple[Literal["start"], str, Attributes] | tuple[Literal["end"], str, str]


class Markup:
    """An expat parser with the bounds that a hostile part runs into."""

    def __init__(self, what: str, limits: ReadLimits) -> None:
        self._what = what
        self._max_token = limits.max_token_bytes
        self._fed = 0
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.ordered_attributes = False
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        parser.EntityDeclHandler = self._refuse_doctype
        self.parser = parser

    def feed(self, piece: bytes, *, last: bool = False) -> None:
        try:
            self.parser.Parse(piece, last)
        except expat.ExpatError as error:
            raise errors.damaged(f"its part {self._what} is not well-formed XML") from error
        except (ValueError, LookupError) as error:  # an encoding that expat or Python does not know
            raise errors.damaged(f"its part {self._what} names an unknown encoding") from error
        self._fed += len(piece)
        if self._fed - self.parser.CurrentByteIndex > self._max_token:
            raise errors.hostile(f"a tag or text of over {self._max_token} bytes in {self._what}")

    def _refuse_doctype(self, *_: object) -> None:
        raise errors.hostile(f"its part {self._what} declares a document type or entities")


def local(name: str) -> str:
    return name.rpartition(":")[2]


def events(pieces: Iterable[bytes], *, what: str, limits: ReadLimits, whole: bool = True) -> Iterator[Event]:
    """Start events with attributes, end events with the text right before them.

    A part that is not ``whole`` may end with elements still open.
    """
    found: list[Event] = []
    text: list[str] = []
    depth = 0
    markup = Markup(what, limits)

    def start(name: str, attributes: Attributes) -> None:
        nonlocal depth
        depth += 1
        if depth > limits.max_depth:
            raise errors.hostile(f"elements nested over {limits.max_depth} deep in {what}")
        text.clear()
        found.append(("start", local(name), attributes))

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        found.append(("end", local(name), "".join(text)))
        text.clear()

    markup.parser.StartElementHandler = start
    markup.parser.EndElementHandler = end
    append: Callable[[str], None] = text.append
    markup.parser.CharacterDataHandler = append
    for piece in pieces:
        try:
            markup.feed(piece)
        except errors.InputUnreadable:
            yield from found  # what was well-formed up to here may be all that is asked for
            raise
        yield from found
        found.clear()
    if whole:
        markup.feed(b"", last=True)
        yield from found


def attribute(attributes: Attributes, name: str) -> str | None:
    """The attribute of this local name, whatever its prefix."""
    value = attributes.get(name)
    if value is None:
        for key, held in attributes.items():
            if local(key) == name:
                return held
    return value
