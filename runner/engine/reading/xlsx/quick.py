"""Reads rows with one regular expression learned from the sheet itself: many times faster than parsing.

Programs write all rows of a sheet the same way: the same cells in the same order, each column in one or two forms (a
shared string, a number in a date format). These forms are learned from the first rows and joined into one expression
that matches a whole row, its values as groups. One search gives the stored values of hundreds of rows, by column, in
compiled code. What does not match goes to careful.py: a single unusual row (its form is learned unless it is rare), or
the rest of the sheet after a comment.
"""

import re
from collections.abc import Container, Iterator, Sequence
from itertools import chain, groupby
from operator import add
from typing import Final, NamedTuple

from runner.engine.common.a1 import column_number
from runner.engine.reading import errors
from runner.engine.reading.books import NO_CACHED_VALUE, Block, OutOfOrder, ReadLimits, Row, Value, turned
from runner.engine.reading.number_formats import Marker
from runner.engine.reading.xlsx.careful import CellReader, SheetData, Stored, careful_rows
from runner.engine.reading.xlsx.markup import Chunks, Opened, drain, hides_tags
from runner.engine.reading.xlsx.surveys import Surveyor

MOST_FORMS: Final = 4  # forms of one column; with more, each cell's tag is decoded separately
MOST_FORMS_IN_ALL: Final = 2_000  # forms in total: compiling takes a tenth of a millisecond for each
_MOST_LEADS: Final = 10_000

_HERE: Final = "\0"  # placeholder for the cell's reference
_ATTRIBUTE = re.compile(r'\s+([\w:.]+)="([^"&]*)"')
_REFERENCE = re.compile(r'(?<=\sr=")(?P<letters>[A-Z]{1,3})(?P<row>[0-9]{1,10})(?=")')
_PRESERVE: Final = ' xml:space="preserve"'
_CLOSING: Final = {
    "<v>": "</v></c>",
    f"<v{_PRESERVE}>": "</v></c>",
    "<is><t>": "</t></is></c>",
    f"<is><t{_PRESERVE}>": "</t></is></c>",
}
_LEAD: Final = f"[^<>/]*>(?:<f/>)?<(?:v|is><t)(?:{_PRESERVE})?>"
_NO_VALUE: Final = f"(?:<v ?/>|<v></v>|<is><t(?:{_PRESERVE})?></t></is>|<is><t ?/></is>)?</c>"
_CELL = re.compile(f"<c(?![\\w:])(?:({_LEAD})([^<]+)</(?:v|t></is)></c>|([^<>/]*)(?:/>|>(<f/>)?{_NO_VALUE}))")
# A row of known cells, or any other; an unclosed one matches to the end, so that nothing is searched twice.
# A known one is followed by the next row, so that none between two of them is missed.
_REST: Final = "(?:/>|>%s</row>)(?=\\s*(?:<row\\b|</sheetData|\\Z))|(<row\\b(?s:.*?)(?:</row>|\\Z))"
_NUMBERED: Final = '<row\\b[^<>/\']*? r="([0-9]{1,10})"[^<>/]*' + _REST
_UNNUMBERED: Final = "<row()(?![^<>]*\\sr\\s*=)(?:\\s[^<>/']*)?" + _REST  # numbered by counting
_FIRST = re.compile("[^:]*?<row\\b")  # no tag with a prefix before it
_ANYTHING: Final = "[^<]+"
_INDEX: Final = "[0-9]{1,9}"
_DAYS: Final = "[0-9]{1,7}(?:\\.[0-9]{1,20})?"
# A number whose text shows whether it is whole: rounding to a double must not change that.
_PLAIN_NUMBER: Final = "-?(?:(?:0|[1-9][0-9]{0,7})\\.(?!0000000|9999999)[0-9]{0,16}[1-9]|0|[1-9][0-9]{0,14})"


class CellForm(NamedTuple):
    """One form in which the cells of a column are written."""

    lead: str  # the text before the stored value, or the attributes of a cell without one
    value: str = ""  # expression for the stored value; "" if there is none
    formula: bool = False  # a formula without a value


MARK: Final = CellForm("mark")


Styled = tuple[int, int, tuple[str, ...]]  # column, style, stored values; "" in rows of other forms


class MatchedRows(NamedTuple):
    """The rows of a chunk, each at the same index of every tuple."""

    numbers: tuple[str, ...]  # "" for a row that did not match, or has no number
    groups: list[tuple[str, ...]]  # the stored values of each group of the expression; "" where there is none
    unmatched: tuple[str, ...]  # the text of a row that did not match; "" for one that did
    is_all: bool  # no other tag of the chunk is a row's, with a prefix or without


class RowPattern:
    """The learned forms of a sheet's rows, as one expression."""

    def __init__(self, cells: CellReader, most_columns: int) -> None:
        """Begin without any form; `cells`: converts stored values; `most_columns`: cells beyond are not learned."""
        self.numbered = True  # the rows have their numbers
        self._cells = cells
        self._most_columns = most_columns
        self._digits_expression = ""  # the digits of a reference
        self._has_bare_cells = False  # some cells have no reference: they directly follow the previous cell
        self._forms: dict[int, dict[CellForm, None]] = {}
        self._letters: dict[int, str] = {}
        self._storage_by_lead: dict[str, Stored | None] = {}
        self._pattern: re.Pattern[str] | None = None
        self._layout: list[
            tuple[int, CellForm | None]
        ] = []  # of each value; None: the text before it is captured as well
        self._marked: set[int] = set()  # columns whose group is marked

    def learn(self, rows: str) -> None:
        """Add how these rows are written to what is known, and make the pattern for all of it.

        Without a pattern, because there are too many forms, rows are parsed.
        """
        if not self._forms:
            self.numbered = re.search(r"<row\b[^<>]*\sr\s*=", rows) is not None
        for row in rows.split("<row")[1:]:
            column = 0
            for lead, value, tag, formula in _CELL.findall(row):
                column = self._learn_cell(column, lead, value, tag, formula=bool(formula))
        self._has_bare_cells = any(_HERE not in form.lead for forms in self._forms.values() for form in forms)
        self._layout, self._marked = [], set()
        if (
            sum(len(forms) if self._has_bare_cells else min(len(forms), MOST_FORMS) for forms in self._forms.values())
            > MOST_FORMS_IN_ALL
        ):
            self._pattern = None
        else:
            whole, self._digits_expression = (_NUMBERED, "\\1") if self.numbered else (_UNNUMBERED, "[0-9]{1,10}")
            self._pattern = re.compile(whole % "".join(map(self._column_expression, sorted(self._forms))))

    def _learn_cell(self, before: int, lead: str, value: str, tag: str, *, formula: bool) -> int:
        """Learn the form of one cell right of column `before`, unless only the parser can read it; returns its column.

        `lead`: the text before its stored value, or else `tag`: the attributes of a cell without one.
        """
        text = lead or tag
        reference = _REFERENCE.search(text)
        column = column_number(reference["letters"]) if reference else before + 1
        text = _REFERENCE.sub(_HERE, text)
        stored = self._storage_of(text if lead else f"{text}><v>")
        if stored is None or not 0 < column <= self._most_columns:
            return column
        if formula and stored.kind == "str":  # an empty text, or a result that was never stored
            return column
        form = CellForm(text, self._value_expression(stored, value)) if value else CellForm(text, formula=formula)
        if reference:
            self._letters[column] = reference["letters"]
        self._forms.setdefault(column, {})[form] = None
        return column

    def _storage_of(self, lead: str) -> Stored | None:
        """Return how cells with this text before their value are stored; None if only the parser can tell."""
        if lead not in self._storage_by_lead:
            if len(self._storage_by_lead) > _MOST_LEADS:
                self._storage_by_lead.clear()
            self._storage_by_lead[lead] = _stored_as(lead)
        return self._storage_by_lead[lead]

    def _value_expression(self, stored: Stored, value: str) -> str:
        """Return the strictest expression for values that are stored this way, if it fits this one."""
        strict = _ANYTHING
        if stored.kind == "s":
            strict = _INDEX
        elif stored.kind in ("", "n"):
            strict = _PLAIN_NUMBER if self._cells.counts(stored.style) else _DAYS
        return strict if re.fullmatch(strict, value) else _ANYTHING

    def _column_expression(self, column: int) -> str:
        """Return the expression for an optional cell; atomic, so that a row that does not match fails at once."""
        forms = sorted(self._forms[column], key=lambda form: form.value == _ANYTHING)  # strict forms first
        if not self._has_bare_cells and len(forms) > MOST_FORMS:
            self._layout.append((column, None))
            place = self._with_reference(column, f' r="{_HERE}"')
            valued = f"([^<>/]*?){place}({_LEAD})({_ANYTHING})</(?:v|t></is)></c>"
            return f"(?><c(?:{valued}|[^<>/]*?{place}[^<>/]*(?:/>|>{_NO_VALUE}))|)"
        if not self._has_bare_cells:
            return f"(?>{self._alternatives(column, forms)}|)"
        # A mark shows that this column is present; only then is a cell without a reference the next column.
        placed = [form for form in forms if _HERE in form.lead]
        bare = [form for form in forms if _HERE not in form.lead]
        cells = [self._alternatives(column, placed)] if placed else []
        if bare and column == 1:
            cells.append(self._alternatives(column, bare))
        elif bare and column - 1 in self._marked:
            cells.append(f"(?(m{column - 1}){self._alternatives(column, bare)}|(?!))")
        if not cells:
            return ""
        self._marked.add(column)
        self._layout.append((column, MARK))
        return f"(?>(?:{'|'.join(cells)})(?P<m{column}>)|)"

    def _alternatives(self, column: int, forms: list[CellForm]) -> str:
        """Return the expression for a cell in one of these forms."""
        return f"<c(?:{'|'.join([self._form_expression(column, form) for form in forms])})"

    def _with_reference(self, column: int, text: str) -> str:
        """Return a text as an expression, with the cell's reference in its place."""
        return re.escape(text).replace(re.escape(_HERE), self._letters.get(column, "") + self._digits_expression)

    def _form_expression(self, column: int, form: CellForm) -> str:
        """Return the expression for a cell in one form; its value is a group."""
        lead = self._with_reference(column, form.lead)
        if form.value or form.formula:
            self._layout.append((column, form))
        if form.value:
            return f"{lead}({form.value}){_closing(form.lead)}"
        return f"{lead}>(<f/>){_NO_VALUE}" if form.formula else f"{lead}(?:/>|>{_NO_VALUE})"

    def find(self, chunk: str) -> MatchedRows | None:
        """Match the rows of a chunk of plain text, those in unknown forms as `unmatched`; None without an expression,
        or if the chunk has another number of tags of rows."""
        if self._pattern is None:
            return None
        matches = self._pattern.findall(chunk)
        rows = len(matches)
        parts: list[tuple[str, ...]] = list(zip(*matches, strict=True)) or [()] * (self._pattern.groups)
        numbers, *groups, unmatched = parts
        if any(unmatched):
            rows += sum(text.count("<row") - 1 for text in unmatched if text)
        elif _FIRST.match(chunk):
            return MatchedRows(numbers, groups, unmatched, is_all=True)
        return MatchedRows(numbers, groups, unmatched, is_all=False) if rows == chunk.count("<row") else None

    def references_agree(self, chunk: str, last_row: int) -> bool:
        """Whether the cell references in a chunk's rows agree with counting them from `last_row`, the number of the row
        before; True if the rows have numbers."""
        if self.numbered or not self._letters:
            return True
        for number, row in enumerate(chunk.split("<row")[1:], last_row + 1):
            if (reference := _REFERENCE.search(row)) and int(reference["row"]) != number:
                return False
        return True

    def columns(self, groups: Sequence[tuple[str, ...]]) -> dict[int, list[Value]] | None:
        """Return the values of every column that has any, by 0-based number; None if only the parser can read them."""
        columns: dict[int, list[Value]] = {}
        pending = iter(groups)
        for number, form in self._layout:
            values: list[Value] | None
            if form is MARK:
                next(pending)
                continue
            if form is None:
                values = self._values_by_lead(list(map(add, next(pending), next(pending))), next(pending))
                if values is None:
                    return None
            else:
                texts = next(pending)
                if not any(texts):
                    continue
                values = self._values(form, texts)
            if (earlier := columns.get(number - 1)) is not None:
                values = [value if value is not None else other for value, other in zip(earlier, values, strict=True)]
            columns[number - 1] = values
        return columns

    def styled(self, groups: Sequence[tuple[str, ...]], styles: Container[int]) -> list[Styled] | None:
        """Return the columns with numbers in any of these styles; None if a cell's tag must be decoded for that."""
        styled_columns: list[Styled] = []
        pending = iter(groups)
        for number, form in self._layout:
            texts = next(pending)
            if form is None:
                return None
            stored = self._storage_of(form.lead) if form.value else None
            if stored is not None and stored.style in styles and stored.kind in ("", "n") and any(texts):
                styled_columns.append((number, stored.style, texts))
        return styled_columns

    def _values(self, form: CellForm, texts: Sequence[str]) -> list[Value]:
        """Return the values of one form; None in rows of other forms."""
        if form.formula:
            return [NO_CACHED_VALUE if text else None for text in texts]
        stored = self._storage_of(form.lead) or Stored()
        return self._cells.column(stored, texts, plain=form.value != _ANYTHING)

    def _values_by_lead(self, leads: Sequence[str], texts: Sequence[str]) -> list[Value] | None:
        """Convert a column's cells by the tags before each; None if only the parser can read one of them."""
        values: list[Value] = [None] * len(texts)
        places: dict[str, list[int]] = {}
        for row, (lead, text) in enumerate(zip(leads, texts, strict=True)):
            if text:
                places.setdefault(lead, []).append(row)
        for lead, rows in places.items():
            if self._storage_of(lead) is None:
                return None
            converted = self._values(CellForm(lead, _ANYTHING), [texts[row] for row in rows])
            for row, value in zip(rows, converted, strict=True):
                values[row] = value
        return values


def _closing(lead: str) -> str:
    """Return the tags behind a stored value, by the tags before it."""
    return _CLOSING[lead[lead.index(">") + 1 :].removeprefix("<f/>")]


def _stored_as(lead: str) -> Stored | None:
    """Decode the tags before a stored value; None if only the parser can."""
    tag, _, opening = lead.partition(">")
    pairs = _ATTRIBUTE.findall(tag)
    by_name = dict(pairs)
    kind, style = by_name.get("t", ""), by_name.get("s", "")
    inline = "<is>" in opening
    if (
        len(by_name) != len(pairs)
        or by_name.get("r", _HERE) != _HERE
        or _ATTRIBUTE.sub("", tag).strip()
        or (inline and kind != "inlineStr")
    ):
        return None
    if style and not (style.isascii() and style.isdecimal() and len(style) < 9):
        return None
    return Stored(kind, int(style or 0), opening.startswith("<f/>"), inline and _PRESERVE not in opening)


_FORMULA = re.compile(r"<f(?:\s[^<>]*)?/>|<f(?:\s[^<>]*)?>[^<]*</f>")  # never past the next tag: linear time
_END_DATA = re.compile(r"</(?:[\w.-]+:)?sheetData\s*>\Z")
_WRAP: Final = "<worksheet><sheetData>"
_UNWRAP: Final = "</sheetData></worksheet>"
_CHARACTERS_TO_LEARN: Final = 64 * 1024  # characters of rows from which a sheet's forms are learned
_LESSONS: Final = 12
_RARE: Final = 50  # with fewer than one in this many, unusual rows are not learned


def quick_blocks(
    opened: Opened, cells: CellReader, limits: ReadLimits, surveyor: Surveyor | None = None
) -> Iterator[Block]:
    """Yield blocks of rows in the order of the part, opened at its ``sheetData``.

    A surveyor, if given, sees the rows on the way; rows that do not ascend then raise ``OutOfOrder``.
    """
    if opened.is_empty_element():
        _end(chain([opened.head], opened.rest), surveyor)
        return
    source = Chunks(opened, ending=b"row", what="a sheet", limits=limits)
    reader = _Rows(cells, limits, surveyor.marker if surveyor is not None else None)
    for chunk in source:
        block = None if hides_tags(chunk) else reader.read(chunk)
        if block is None:
            if surveyor is not None:
                raise OutOfOrder  # unknown from the text; the next reading knows
            data = b"" if chunk.startswith("<sheetData") else b"<" + opened.prefix + b"sheetData>"
            rest = chain([opened.root + data], source.again())
            yield from turned(careful_rows(rest, cells, limits, after=reader.last_row))
            return
        if surveyor is not None:
            surveyor.rows(chunk, reader.numbers, are_units_known=reader.are_units_known)
            if not surveyor.survey.ordered:
                raise OutOfOrder
        if block.numbers:
            yield block
    _end(chain([opened.root], source.rest()), surveyor)
    drain(source.rest())


def _end(pieces: Iterator[bytes], surveyor: Surveyor | None) -> None:
    """Read what follows the rows to the end, for the checksum."""
    if surveyor is not None:
        surveyor.tail(pieces)
    drain(pieces)


class _Rows:
    """Splits chunks of whole rows; what it learns from one chunk is used for the next."""

    def __init__(self, cells: CellReader, limits: ReadLimits, marker: Marker | None = None) -> None:
        """`marker`: notes the units that the cells' formats show, if it knows any."""
        self.are_units_known = False  # those of the last chunk are marked
        self._marker = marker if marker is not None and marker.units else None
        self.last_row = 0  # number of the last row read
        self.numbers: list[int] = []  # of all rows of the last chunk, blank ones included
        self._cells = cells
        self._limits = limits
        self._pattern = RowPattern(cells, limits.max_columns)
        self._lessons_left = _LESSONS
        self._has_formulas = False  # whether any were seen: searching every chunk would take as long as reading it
        self._cells_read = 0

    def read(self, chunk: str) -> Block | None:
        """Read a chunk of rows as a block, by the expression as far as it matches and by the parser otherwise.

        None if tags of rows may have a prefix: only a parser that sees the rest of the part can read them.
        """
        plain = self._plain(chunk)
        matched = self._pattern.find(plain)
        if not (matched is not None and matched.is_all) and ":" in chunk and ":row" in chunk:
            return None
        if (matched is None or any(matched.unmatched)) and not self._has_formulas and "<f" in chunk:
            self._has_formulas = True
            plain = self._plain(chunk)
            matched = self._pattern.find(plain)
        if matched is None and self._lessons_left:
            self._learn(plain)
            matched = self._pattern.find(plain)
        self.numbers = []
        self.are_units_known = False
        if matched is not None and not any(matched.unmatched) and self._pattern.references_agree(chunk, self.last_row):
            columns = self._matched_columns(matched.groups, len(matched.numbers))
            if columns is not None:
                self.numbers = self._row_numbers(matched.numbers)
                if self._marker is not None:
                    self._mark_units(self._marker, matched.groups)
                return self._without_blank_rows(self.numbers, columns)
        if matched is None or not any(matched.unmatched) or not self._pattern.references_agree(chunk, self.last_row):
            return _block_of(self._parse_rows(chunk))
        unusual = [text for text in matched.unmatched if text]
        if self._lessons_left and len(unusual) * _RARE > len(matched.unmatched):
            self._learn("".join(unusual))
            matched = self._pattern.find(plain) or matched
        return _block_of(self._read_mixed(chunk, matched))

    def _mark_units(self, marker: Marker, groups: list[tuple[str, ...]]) -> None:
        """Mark the units that the number formats of a chunk's cells show."""
        styled = self._pattern.styled(groups, marker.units)
        self.are_units_known = styled is not None
        for column, style, texts in styled or ():
            start = 0
            for is_filled, run in groupby(texts, bool) if "" in texts else ((True, texts),):
                end = start + sum(1 for _ in run)
                if is_filled:
                    marker.mark_units(column, style, self.numbers[start], self.numbers[end - 1])
                start = end

    def _plain(self, chunk: str) -> str:
        """Return the rows with formulas emptied: only their results are read."""
        return _FORMULA.sub("<f/>", chunk) if self._has_formulas else chunk

    def _learn(self, rows: str) -> None:
        """Learn the forms of these rows, which costs one of the lessons that a sheet has."""
        self._lessons_left -= 1
        self._pattern.learn(rows[: rows.find("</row>", _CHARACTERS_TO_LEARN)])

    def _row_numbers(self, digits: tuple[str, ...]) -> list[int]:
        """Return the numbers of matched rows, stored or counted, and note the last. Raises if one is over the limit."""
        if self._pattern.numbered:
            numbers = list(map(int, digits))
        else:
            numbers = list(range(self.last_row + 1, self.last_row + 1 + len(digits)))
        if numbers:
            if min(numbers) < 1 or max(numbers) > self._limits.max_rows:
                raise errors.damaged(f"a row number over {self._limits.max_rows}, the limit of a sheet")
            self.last_row = numbers[-1]
        return numbers

    def _matched_columns(self, groups: list[tuple[str, ...]], height: int) -> list[list[Value]] | None:
        """Return the columns from A to the last with a value; None if only the parser can read them. Raises if these
        are too many cells for a sheet, with those before."""
        filled = self._pattern.columns(groups)
        if filled is None:
            return None
        width = max(filled, default=-1) + 1
        self._cells_read += width * height
        if self._cells_read > self._limits.max_cells:
            raise errors.too_large(f"a sheet has over {self._limits.max_cells} cells, including blanks")
        return [filled.get(at) or [None] * height for at in range(width)]

    def _without_blank_rows(self, numbers: list[int], columns: list[list[Value]]) -> Block:
        """Make a block of the rows that have any value."""
        if all(None in column for column in columns):
            with_value = [index for index, row in enumerate(zip(*columns, strict=True)) if row.count(None) != len(row)]
            if len(with_value) != len(numbers):
                return Block(
                    [numbers[index] for index in with_value],
                    [[column[index] for index in with_value] for column in columns],
                )
        return Block(numbers, columns)

    def _read_mixed(self, chunk: str, matched: MatchedRows) -> list[Row]:
        """Read rows that matched and rows that only the parser can read, in order."""
        matching = [next_row for next_row, text in enumerate(matched.unmatched) if not text]
        groups = [tuple([group[next_row] for next_row in matching]) for group in matched.groups]
        columns = self._matched_columns(groups, len(matching))
        if columns is None:
            return self._parse_rows(chunk)
        values = zip(*columns, strict=True)
        rows: list[Row] = []
        originals = chunk.split("<row")
        next_row = 1
        for digits, text in zip(matched.numbers, matched.unmatched, strict=True):
            count = text.count("<row") or 1
            if text:
                rows += self._parse_rows("<row" + "<row".join(originals[next_row : next_row + count]))
            else:
                self.numbers += self._row_numbers((digits,))
                rows.append((self.last_row, list(next(values, ()))))
            next_row += count
        return rows

    def _parse_rows(self, rows: str) -> list[Row]:
        """Parse the rows of a text, which are written in an unusual way, and learn their numbers."""
        start = max(rows.find("<row"), 0)
        text = _WRAP + _END_DATA.sub("", rows[start:]) + _UNWRAP
        data = SheetData(self._cells, self._limits, after=self.last_row)
        data.feed(text.encode(), last=True)
        self.last_row = data.row
        self.numbers += data.numbers
        return data.done


def _block_of(rows: list[Row]) -> Block:
    """Make a block of the rows that have any value."""
    for block in turned((row for row in rows if any(value is not None for value in row[1])), size=len(rows) or 1):
        return block
    return Block([], [])
