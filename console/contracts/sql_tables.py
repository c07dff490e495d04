"""SQL: reads one CREATE TABLE of any common dialect, and writes one for PostgreSQL."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from console.contracts.foreign import (
    TEXTS,
    ContractRefused,
    Foreign,
    Spec,
    extension,
    is_hard,
    texts,
    values_of,
    without_none,
)
from core.fields import FieldSpec, FieldType, fits
from core.manifests import Manifest

_SYNTAX: Final = (
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)|'(?P<text>TEXT)'|"(?P<double>(?:[^"]|"")*)"|`(?P<back>[^`]*)`"""
    r"""|\$(?P<tag>(?:[^\W\d]\w{0,62})?)\$(?P<dollars>.*?)\$(?P=tag)\$"""
    r"""|\[(?P<bracket>[^\]\n]{0,200})\]|(?P<number>\d+(?:\.\d+)?)|(?P<word>[^\W\d]\w*)|(?P<sign><=|>=|<>|!=|::|.)"""
)
_STANDARD: Final = re.compile(_SYNTAX.replace("TEXT", r"(?:[^']|'')*"), re.DOTALL)
_ESCAPED: Final = re.compile(_SYNTAX.replace("TEXT", r"(?:[^'\\]|''|\\.)*"), re.DOTALL)  # \' is no end, as in MySQL
_KIND_OF: Final = {"double": "name", "back": "name", "bracket": "name", "dollars": "text"}
_MOST_TOKENS: Final = 200_000
_QUOTES: Final = ("'", '"', "`")
_DOLLARS: Final = re.compile(r"\$(?:[^\W\d]\w{0,62})?\$")  # a quote of PostgreSQL
_CREATE: Final = re.compile(
    # Possessive: a text of blanks is not tried in every way to cut it.
    r"\A(?:\s++|--[^\n]*+\n|/\*.*?\*/|SET\b[^;]*+;|USE\b[^;]*+;|BEGIN\s*+;|DROP\b[^;]*+;)*+CREATE\b",
    re.IGNORECASE | re.DOTALL,
)
_TYPES: Final = {
    FieldType.INTEGER: "int integer bigint smallint tinyint mediumint int2 int4 int8 serial bigserial smallserial",
    FieldType.DECIMAL: "numeric decimal number real float double float4 float8",
    FieldType.MONEY: "money smallmoney",
    FieldType.BOOLEAN: "boolean bool bit",
    FieldType.DATE: "date",
    FieldType.DATETIME: "timestamp timestamptz datetime datetime2 datetimeoffset smalldatetime",
    FieldType.TIME: "time timetz",
}
_KINDS: Final = {name: kind for kind, names in _TYPES.items() for name in names.split()}
_LENGTHS: Final = frozenset({"varchar", "char", "character", "nvarchar", "nchar", "varchar2", "bpchar"})
_TABLE_RULES: Final = frozenset(
    {"constraint", "primary", "unique", "foreign", "check", "key", "index", "exclude", "like", "fulltext"}
)
_WRITTEN: Final = {
    FieldType.INTEGER: "bigint",
    FieldType.DECIMAL: "numeric",
    FieldType.MONEY: "numeric",
    FieldType.PERCENT: "numeric",
    FieldType.BOOLEAN: "boolean",
    FieldType.DATE: "date",
    FieldType.DATETIME: "timestamp",
    FieldType.TIME: "time",
}
_PORTABLE: Final = re.compile(r"(?:\(\?:|\((?!\?)|\\[dwsDWS.\-+*?()\[\]{}|^$/\\ ]|\[(?:[^\[\]\\]|\\.)*\]|[^\\(\[])*")
_LONGEST_NAME: Final = 63  # bytes of a name in PostgreSQL


class _Token:
    """A word, a quoted name, a text, a number or a sign."""

    __slots__ = ("kind", "text")

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind  # word, name, text, number or sign
        self.text = text

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.casefold() in words

    def is_sign(self, sign: str) -> bool:
        return self.kind == "sign" and self.text == sign


_END: Final = _Token("end", "")


def is_sql(text: str) -> bool:
    return _CREATE.match(text[:20_000]) is not None


def _tokens(text: str) -> list[_Token]:
    """The tokens of a text. Backslashes escape where MySQL's back quotes are, or where nothing else makes sense."""
    first, second = (_ESCAPED, _STANDARD) if "`" in text else (_STANDARD, _ESCAPED)
    try:
        return _tokens_by(first, text)
    except ContractRefused:
        with suppress(ContractRefused):
            return _tokens_by(second, text)
        raise


def _tokens_by(form: re.Pattern[str], text: str) -> list[_Token]:
    found = []
    for match in form.finditer(text):
        kind = match.lastgroup or "sign"
        if kind == "skip":
            continue
        value = match[kind]
        is_open = value in _QUOTES or text.startswith("/*", match.start()) or _DOLLARS.match(text, match.start())
        if kind == "sign" and is_open:
            line = text.count("\n", 0, match.start()) + 1
            raise ContractRefused(f"line {line}: a text, name or comment is never closed")
        if kind == "text":
            value = value.replace("''", "'")
        found.append(_Token(_KIND_OF.get(kind, kind), value))
        if len(found) > _MOST_TOKENS:
            raise ContractRefused(f"has over {_MOST_TOKENS} words")
    return found


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self.at = 0

    def peek(self, ahead: int = 0) -> _Token:
        at = self.at + ahead
        return self._tokens[at] if at < len(self._tokens) else _END

    def next(self) -> _Token:
        token = self.peek()
        self.at += 1
        return token

    def skip_words(self, *words: str) -> bool:
        """Whether these words come next; then they are read."""
        if all(self.peek(n).is_word(word) for n, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def name(self) -> str:
        """A name, the last part of one with points."""
        found = self.next()
        while self.peek().is_sign("."):
            self.next()
            found = self.next()
        if found.kind not in ("word", "name"):
            raise ContractRefused(f"has {found.text[:20]!r} where a name should be")
        return found.text

    def group(self) -> list[_Token]:
        """What is in the brackets that come next."""
        if not self.peek().is_sign("("):
            return []
        self.next()
        depth, inside = 1, []
        while depth:
            token = self.next()
            if token is _END:
                raise ContractRefused("has a bracket that is never closed")
            depth += token.is_sign("(") - token.is_sign(")")
            if depth:
                inside.append(token)
        return inside


def fields_of(text: str) -> list[Spec]:
    """The columns of the only table that a script creates."""
    reader = _Reader(_tokens(text))
    enums: dict[str, list[str]] = {}
    tables: list[tuple[str, list[_Token]]] = []
    comments: dict[str, str] = {}
    while reader.peek() is not _END:
        if reader.skip_words("create"):
            _created(reader, tables, enums)
        elif reader.skip_words("comment", "on", "column"):
            name = reader.name()
            if reader.skip_words("is") and reader.peek().kind == "text":
                comments[name.casefold()] = reader.next().text
        else:
            reader.next()
    if len(tables) != 1:
        names = ", ".join(name for name, _ in tables[:10]) or "none"
        raise ContractRefused(f"creates {len(tables)} tables ({names}); give a file with one CREATE TABLE")
    return _columns(tables[0][1], enums, comments)


def _created(reader: _Reader, tables: list[tuple[str, list[_Token]]], enums: dict[str, list[str]]) -> None:
    """Read what follows CREATE, and add the table or the enum that it makes."""
    while reader.peek().is_word("or", "replace", "temp", "temporary", "unlogged", "global", "local", "external"):
        reader.next()
    if reader.skip_words("type"):
        name = reader.name()
        if reader.skip_words("as", "enum"):
            enums[name.casefold()] = [token.text for token in reader.group() if token.kind == "text"]
    elif reader.skip_words("table"):
        reader.skip_words("if", "not", "exists")
        name = reader.name()
        tables.append((name, reader.group()))


def _columns(body: Sequence[_Token], enums: dict[str, list[str]], comments: dict[str, str]) -> list[Spec]:
    fields: dict[str, Spec] = {}
    for part in _parts(body):
        reader = _Reader(part)
        if part[0].kind == "word" and part[0].is_word(*_TABLE_RULES):
            _table_rule(reader, fields)
            continue
        name = reader.name()
        fields[name.casefold()] = _column(name, reader, enums)
    for name, comment in comments.items():
        if name in fields:
            fields[name].setdefault("description", texts(comment))
    return [without_none(spec) for spec in fields.values()]


def _parts(body: Sequence[_Token]) -> Iterator[list[_Token]]:
    """The parts between the commas that are in no brackets."""
    depth, part = 0, list[_Token]()
    for token in body:
        depth += token.is_sign("(") - token.is_sign(")")
        if depth == 0 and token.is_sign(","):
            if part:
                yield part
            part = []
        else:
            part.append(token)
    if part:
        yield part


def _column(name: str, reader: _Reader, enums: dict[str, list[str]]) -> Spec:
    """One column: its type and its rules."""
    spec = _typed(name, reader, enums)
    while (token := reader.peek()) is not _END:
        if reader.skip_words("not", "null"):
            spec["required"] = True
        elif reader.skip_words("primary", "key"):
            spec |= {"required": True, "unique": True}
        elif reader.skip_words("unique"):
            spec["unique"] = True
        elif reader.skip_words("comment"):
            spec["description"] = texts(reader.next().text)
        elif reader.skip_words("check"):
            spec |= _checked(reader.group(), spec, name)
        elif token.is_sign("("):
            reader.group()
        else:
            reader.next()
    return spec


def _typed(name: str, reader: _Reader, enums: dict[str, list[str]]) -> Spec:
    word = reader.next().text.casefold()
    while reader.peek().is_sign("."):
        reader.next()
        word = reader.next().text.casefold()
    arguments = [] if word == "check" else reader.group()
    if word == "tinyint" and [token.text for token in arguments] == ["1"]:
        word = "boolean"
    spec: Spec = {"name": name, "type": str(_KINDS.get(word, FieldType.TEXT))}
    values = [token.text for token in arguments if token.kind == "text"] if word == "enum" else enums.get(word)
    if values:
        spec |= {"type": str(FieldType.ENUM), "allowed": values}
    if word == "character":
        reader.skip_words("varying")
        arguments = arguments or reader.group()
    if word in _LENGTHS and arguments and arguments[0].kind == "number":
        spec["max_length"] = int(arguments[0].text)
    return spec


def _table_rule(reader: _Reader, fields: dict[str, Spec]) -> None:
    """PRIMARY KEY (a), UNIQUE (a) and CHECK of the table; a key of several columns makes none of them unique."""
    if reader.skip_words("constraint"):
        reader.name()
    is_primary = reader.skip_words("primary", "key")
    if is_primary or reader.skip_words("unique"):
        while reader.peek() is not _END and not reader.peek().is_sign("("):
            reader.next()
        named = [token.text.casefold() for token in reader.group() if token.kind in ("word", "name")]
        known = [name for name in named if name in fields]
        for name in known:
            fields[name] |= {"required": True} if is_primary else {}
            fields[name] |= {"unique": True} if len(named) == 1 else {}
    elif reader.skip_words("check"):
        inside = reader.group()
        first = next((token.text for token in inside if token.text.casefold() in fields), None)
        if first is not None:
            spec = fields[first.casefold()]
            fields[first.casefold()] = spec | _checked(inside, spec, first)


def _checked(inside: list[_Token], spec: Spec, name: str) -> Spec:
    """What a check of one column says: `a IN (…)`, `a >= 0`, `a BETWEEN 0 AND 9`, with AND between them."""
    reader, found = _Reader(inside), dict[str, Any]()
    while reader.peek() is not _END:
        if not (reader.peek().kind in ("word", "name") and reader.peek().text.casefold() == name.casefold()):
            return {}
        reader.next()
        one = _comparison(reader, FieldType(spec["type"]))
        if one is None or not (reader.peek() is _END or reader.skip_words("and")):
            return {}
        found |= one
    return found


def _comparison(reader: _Reader, kind: FieldType) -> Spec | None:
    """What comes after a column's name in a check; None if no field can say it."""
    if reader.skip_words("in"):
        values = [_value(token) for token in reader.group() if token.kind in ("text", "number")]
        return {"allowed": values, **({"type": str(FieldType.ENUM)} if kind is FieldType.TEXT else {})}
    if reader.skip_words("between"):
        low = _operand(reader)
        if not reader.skip_words("and"):
            return None
        return _bound("min", low, kind) | _bound("max", _operand(reader), kind)
    sign = reader.next().text
    if sign in (">=", "<="):
        return _bound("min" if sign == ">=" else "max", _operand(reader), kind) or None
    return None


def _operand(reader: _Reader) -> str | int | float | None:
    negative = reader.peek().is_sign("-")
    if negative or reader.peek().is_word("date", "timestamp", "time"):
        reader.next()
    token = reader.next()
    value = _value(token) if token.kind in ("text", "number") else None
    return -value if negative and isinstance(value, int | float) else value


def _value(token: _Token) -> str | int | float:
    if token.kind == "text":
        return token.text
    return float(token.text) if "." in token.text else int(token.text)


def _bound(name: str, value: str | float | None, kind: FieldType) -> Spec:
    fitting = value is not None and kind not in TEXTS | {FieldType.BOOLEAN} and fits(kind, value) is None
    return {name: value} if fitting else {}


def exported(manifest: Manifest) -> str:
    """CREATE TABLE for PostgreSQL; what is a warning is a comment, not a constraint."""
    columns = ",\n".join(f"  {_definition(spec)}" for spec in manifest.fields)
    table = _name(manifest.name)
    comments = [
        f"COMMENT ON COLUMN {table}.{_name(spec.name)} IS {_text(words)};\n"
        for spec in manifest.fields
        if (words := _words(spec))
    ]
    about = f"COMMENT ON TABLE {table} IS {_text(manifest.description)};\n" if manifest.description else ""
    return f"CREATE TABLE {table} (\n{columns}\n);\n{about}{''.join(comments)}"


def _definition(spec: FieldSpec) -> str:
    name = _name(spec.name)
    if not is_hard(spec):
        return f"{name} text"
    rules = [name, _WRITTEN.get(spec.type, "text")]
    rules += ["NOT NULL"] if spec.required else []
    rules += ["UNIQUE"] if spec.unique else []
    rules += [f"CHECK ({check})" for check in _checks(spec, name)]
    return " ".join(rules)


def _checks(spec: FieldSpec, name: str) -> Iterator[str]:
    literal: Callable[[object], str] = _number if spec.type in _WRITTEN else _text
    if values := values_of(spec):
        yield f"{name} IN ({', '.join(literal(value) for value in values)})"
    for sign, bound in ((">=", spec.min), ("<=", spec.max)):
        if bound is not None:
            yield f"{name} {sign} {_number(bound)}"
    if spec.type in TEXTS:
        if spec.min_length is not None:
            yield f"char_length({name}) >= {spec.min_length}"
        if spec.max_length is not None:
            yield f"char_length({name}) <= {spec.max_length}"
        if spec.pattern is not None and _PORTABLE.fullmatch(spec.pattern):
            yield f"{name} ~ {_text(f'^(?:{spec.pattern})$')}"


def _words(spec: FieldSpec) -> str:
    """The comment of a column: its description, and the rules that are no constraint."""
    soft: Foreign = {} if is_hard(spec) else extension(spec).get("warning", {})
    rules = ", ".join(f"{key} {value}" for key, value in soft.items())
    return "; ".join(
        words for words in (spec.description, f"expected, as a warning: {rules}" if rules else "") if words
    )


def _name(name: str) -> str:
    cut = name.encode()[:_LONGEST_NAME].decode(errors="ignore")
    return '"' + cut.replace('"', '""') + '"'


def _text(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _number(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else _text(value)
