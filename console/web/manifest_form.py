"""A manifest as forms, and what forms change in it.

The forms show the keys that authors need most; whatever they do not show stays as it is, and so does a key whose text
was not touched. Nothing is validated here: a value that does not fit its type is written as it came, and reported with
the manifest's other problems.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.budget import Budget, plain
from core.fields import NUMERIC, Clean, FieldType
from core.manifest_keys import field_help
from core.manifests import RANGE

Spec = dict[str, Any]
TYPES: Final = tuple(str(kind) for kind in FieldType)
CLEANS: Final = tuple(str(one) for one in Clean)
FLAGS: Final = ("required", "optional", "unique", "fill_down")
OTHERWISE: Final = ("finding", "keep", "blank")
_NUMBERS: Final = frozenset(str(kind) for kind in NUMERIC)
_NUMBER: Final = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
_ARROW: Final = re.compile(r"\s*(?:=>|→)\s*")
_LETTERS: Final = re.compile(r"[^A-Za-z0-9]+")
_LOOKUP: Final = Budget(bytes=10_000, values=100)
_MOST: Final = 200  # characters of a header


@dataclass(frozen=True, slots=True)
class FormKey:
    """A key of a field that the form shows as text: how it is shown and read."""

    name: str
    label: str
    show: Callable[[Any], str]
    read: Callable[[str, str], Any]  # text, and the field's type
    lines: bool = False
    example: str = ""

    @property
    def help(self) -> str:
        return field_help(self.name)


def _one(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _listed(value: Any) -> str:
    return "\n".join(map(_one, value)) if isinstance(value, list) else _one(value)


def _pairs(value: Any) -> str:
    return "\n".join(f"{k} => {_one(v)}" for k, v in value.items()) if isinstance(value, dict) else _one(value)


def _text(text: str, _kind: str) -> Any:
    return text


def typed(text: str, kind: str) -> Any:
    """A constant of a field's type: a number, true or false, or the text itself."""
    if kind in _NUMBERS and _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    if kind == FieldType.BOOLEAN and text.lower() in ("true", "false"):
        return text.lower() == "true"
    return text


def _number(text: str, _kind: str) -> Any:
    return typed(text, "decimal")


def _lines(text: str, _kind: str) -> Any:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _typed_lines(text: str, kind: str) -> Any:
    if text.startswith("{"):  # a lookup, as JSON
        try:
            return plain(text.encode(), _LOOKUP)
        except ValueError:
            return text
    return [typed(line, kind) for line in _lines(text, kind)]


def _mapped(text: str, kind: str) -> Any:
    found: dict[str, Any] = {}
    for line in _lines(text, kind):
        cell, *value = _ARROW.split(line, maxsplit=1)
        found[cell] = typed(value[0] if value else "", kind)
    return found


KEYS: Final = (
    FormKey("name", "Name", _one, _text),
    FormKey("label", "Label", _one, _text),
    FormKey("description", "Description", _one, _text),
    FormKey("synonyms", "Headers that mean it", _listed, _lines, lines=True, example="Member #"),
    FormKey("clean", "Clean", _listed, _lines, lines=True, example="strip"),
    FormKey("formats", "Date formats", _listed, _lines, lines=True, example="%d.%m.%Y"),
    FormKey("pattern", "Pattern", _one, _text, example="M[0-9]{6}"),
    FormKey("min", "At least", _one, typed),
    FormKey("max", "At most", _one, typed),
    FormKey("min_length", "Shortest", _one, _number),
    FormKey("max_length", "Longest", _one, _number),
    FormKey("allowed", "Allowed values", _listed, _typed_lines, lines=True, example="North"),
    FormKey("map", "Value map", _pairs, _mapped, lines=True, example="N => North"),
    FormKey("default", "Where it is blank", _one, typed),
)
_SHOWN: Final = frozenset({*(one.name for one in KEYS), *FLAGS, "type", "severity", "otherwise"})


def unshown(spec: Mapping[str, Any]) -> list[str]:
    """The keys of a field that the form does not show."""
    return [key for key in spec if key not in _SHOWN or (key == "otherwise" and isinstance(spec[key], dict))]


def with_form(spec: Mapping[str, Any], form: Mapping[str, str]) -> Spec:
    """Copy a field with what a form says about it; keys that the form does not have stay."""
    changed = dict(spec)
    _apply_keys(changed, form)
    _apply_flags(changed, form)
    _apply_choices(changed, form)
    return changed


def _apply_keys(spec: Spec, form: Mapping[str, str]) -> None:
    """Set the keys whose posted text differs from what the form showed, or has to be read in another type."""
    kind = form.get("type") or str(spec.get("type") or "text")
    for key in KEYS:
        posted = form.get(key.name)
        if posted is None:
            continue
        text = posted.replace("\r\n", "\n").strip()
        if text != key.show(spec.get(key.name)).strip() or _is_retyped(key, spec, kind):
            _set(spec, key.name, key.read(text, kind) if text else None)


def _apply_flags(spec: Spec, form: Mapping[str, str]) -> None:
    """Set the flags: a browser posts only those that are ticked, and `flags` if the form has any."""
    for flag in FLAGS if "flags" in form else ():
        if (flag in form) != (spec.get(flag) is True):
            _set(spec, flag, True if flag in form else None)


def _apply_choices(spec: Spec, form: Mapping[str, str]) -> None:
    """Set what is chosen from lists; the usual choice is written only over another one."""
    for name, usual in (("type", "text"), ("severity", "error"), ("otherwise", "")):
        posted = form.get(name)
        is_unshown = name == "otherwise" and isinstance(spec.get(name), dict) and not posted
        if posted is None or is_unshown or posted == str(spec.get(name) or usual):
            continue
        _set(spec, name, posted if posted and (posted != usual or name in spec) else None)


def _is_retyped(key: FormKey, spec: Mapping[str, Any], kind: str) -> bool:
    """Whether a constant has to be read again, since the field has another type now."""
    constants = ("min", "max", "allowed", "map", "default")
    return key.name in constants and key.name in spec and kind != (spec.get("type") or "text")


def _set(spec: Spec, key: str, value: Any) -> None:
    if value is None or value == []:
        spec.pop(key, None)
    else:
        spec[key] = value


def new_field(manifest: Mapping[str, Any], name: str, kind: str) -> Spec:
    """The manifest with a field more, at the end."""
    return {**manifest, "fields": [*_fields(manifest), {"name": name, "type": kind or "text"}]}


def _fields(manifest: Mapping[str, Any]) -> list[Any]:
    fields = manifest.get("fields")
    return list(fields) if isinstance(fields, list) else []


def change_field(manifest: Mapping[str, Any], at: int, act: str, form: Mapping[str, str]) -> Spec:
    """The manifest with the field at a place changed, moved or removed. Raises IndexError."""
    fields = _fields(manifest)
    if not 0 <= at < len(fields) or not isinstance(fields[at], dict):
        raise IndexError(at)
    if act == "remove":
        del fields[at]
    elif act in ("up", "down"):
        to = at - 1 if act == "up" else at + 1
        fields.insert(min(max(to, 0), len(fields)), fields.pop(at))
    else:
        fields[at] = with_form(fields[at], form)
    return {**manifest, "fields": fields}


@dataclass(frozen=True, slots=True)
class ManifestKey:
    """A key of the manifest that the form shows, by its path."""

    path: str
    label: str
    choices: tuple[str, ...] = ()
    usual: str = ""
    lines: bool = False
    numbers: bool = False

    @property
    def name(self) -> str:
        return self.path

    def shown(self, manifest: Mapping[str, Any]) -> str:
        value: Any = manifest
        for part in self.path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            return self.usual
        return _listed(value) if self.lines else _one(value)

    def read(self, text: str) -> Any:
        if self.lines:
            return [_number(line, "") if self.numbers else line for line in _lines(text, "")]
        return {"true": True, "false": False}.get(text, text) if self.choices == _YES_NO else text


_YES_NO: Final = ("false", "true")
SETTINGS: Final = (
    ManifestKey("name", "Name"),
    ManifestKey("description", "Description"),
    ManifestKey("mapping.unmapped", "Columns without a field", ("keep", "prefix", "drop"), "keep"),
    ManifestKey("mapping.review", "Ask a person about columns", ("never", "unsure", "always"), "never"),
    ManifestKey("on_error", "Rows with errors", ("keep", "split", "reject"), "keep"),
    ManifestKey("output.rejects", "Write rejects.xlsx", _YES_NO, "false"),
    ManifestKey("reading.sheets", "Sheets", lines=True),
    ManifestKey("reading.header_rows", "Header rows", lines=True, numbers=True),
)


def with_settings(manifest: Mapping[str, Any], form: Mapping[str, str]) -> Spec:
    """The manifest with what a form says about it as a whole."""
    made = dict(manifest)
    for key in SETTINGS:
        posted = form.get(key.path)
        if posted is None or (text := posted.replace("\r\n", "\n").strip()) == key.shown(made).strip():
            continue
        made = with_value(made, key.path, None if text in ("", key.usual) else key.read(text))
    return made


def with_value(manifest: Mapping[str, Any], path: str, value: Any) -> Spec:
    """The manifest with another value at a path; None takes it out, and what is empty without it."""
    first, _, rest = path.partition(".")
    made = dict(manifest)
    if rest:
        inner = made.get(first)
        value = with_value(inner if isinstance(inner, dict) else {}, rest, value) or None
    if value is None:
        made.pop(first, None)
    elif first in made or "fields" not in made:
        made[first] = value
    else:  # before the fields, where people look for it
        fields = made.pop("fields")
        made |= {first: value, "fields": fields}
    return made


def with_header_row(manifest: Mapping[str, Any], row: int, *, more: bool) -> Spec:
    """The header is in this row; `more`: also in those that were said before."""
    reading = manifest.get("reading")
    before = reading.get("header_rows") if isinstance(reading, dict) and more else None
    rows = sorted({row, *(one for one in before if isinstance(one, int))}) if isinstance(before, list) else [row]
    made = with_value(manifest, "reading.header_rows", rows)
    return with_value(made, "reading.header", None)


def with_range(manifest: Mapping[str, Any], sheet: str, area: str) -> Spec:
    """The records of a sheet are in this range; an empty name: of the only one. Raises ValueError."""
    if not re.fullmatch(RANGE, area):
        raise ValueError(f"{area[:40]!r} is not a range such as A3:F200")
    reading = manifest.get("reading")
    tables = reading.get("tables") if isinstance(reading, dict) else None
    others = [one for one in tables or () if not (isinstance(one, dict) and one.get("sheet", "*") == (sheet or "*"))]
    shape = {"sheet": sheet, "ranges": [area]} if sheet else {"ranges": [area]}
    return with_value(manifest, "reading.tables", [*others, shape])


def without_ranges(manifest: Mapping[str, Any]) -> Spec:
    return with_value(manifest, "reading.tables", None)


def with_column(manifest: Mapping[str, Any], header: str, name: str) -> Spec:
    """A header means a field, and no other one; an empty name: a new field that is called after it."""
    header, fields = header.strip()[:_MOST], list[Any]()
    if not name:
        name = _free_name(header, [one.get("name") for one in _fields(manifest) if isinstance(one, dict)])
        manifest = new_field(manifest, name, "text")
    for one in _fields(manifest):
        if not isinstance(one, dict):
            fields.append(one)
            continue
        synonyms = [text for text in _texts(one.get("synonyms")) if text.casefold() != header.casefold()]
        if one.get("name") == name and str(one.get("label") or "").casefold() != header.casefold():
            synonyms.append(header)
        made = dict(one)
        if synonyms != _texts(one.get("synonyms")):
            _set(made, "synonyms", synonyms)
        fields.append(made)
    return {**manifest, "fields": fields}


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _free_name(header: str, names: Sequence[object]) -> str:
    base = _LETTERS.sub("_", header).strip("_").lower()[:60] or "column"
    base = base if not base[0].isdigit() else f"c_{base}"
    return next(name for n in range(1, len(names) + 3) if (name := base if n == 1 else f"{base}_{n}") not in names)


def with_rule(manifest: Mapping[str, Any], form: Mapping[str, str]) -> Spec:
    """The manifest with a rule more: an expression over the fields of a row."""
    rule: Spec = {"name": form.get("name", "").strip(), "check": form.get("check", "").strip()}
    if message := form.get("message", "").strip():
        rule["message"] = message
    if form.get("severity") == "warning":
        rule["severity"] = "warning"
    rules = manifest.get("rules")
    return with_value(manifest, "rules", [*(rules if isinstance(rules, list) else []), rule])


def without_rule(manifest: Mapping[str, Any], at: int) -> Spec:
    """Raises IndexError."""
    rules = manifest.get("rules")
    listed = list(rules) if isinstance(rules, list) else []
    if not 0 <= at < len(listed):
        raise IndexError(at)
    del listed[at]
    return with_value(manifest, "rules", listed or None)
