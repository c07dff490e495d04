"""Thirty kinds of bad manifest and more: each error names the place, what is wrong and what would be right."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ManifestInvalid
from core.manifests import manifest_schema, parse_manifest
from core.overlays import apply, parse_overlay

BASE = {"manifest": 1, "name": "m", "fields": [{"name": "a"}]}


def top(**changes):
    return json.dumps({**BASE, **changes}).encode()


def field(**spec):
    return top(fields=[{"name": "a", **spec}])


def rule(**then):
    return top(rules=[{"name": "r", "then": {"field": "a", **then}}])


def computed(expression):
    number = {"name": "n", "type": "integer"}
    return top(fields=[number, {"name": "x", "type": "integer", "from": {"expression": expression}}])


# what: (manifest, place, words of the problem, words of the remedy)
BAD = {
    "no JSON": (b"{", "$", "not JSON", "JSON object"),
    "not UTF-8": (b"\xff{}", "$", "not UTF-8", "UTF-8"),
    "no object": (b"[]", "$", "is []", "{ ... }"),
    "NaN": (b'{"manifest": NaN}', "$", "NaN", "JSON object"),
    "a key twice": (b'{"name": 1, "name": 2}', "$", "duplicate key: name", "each key once"),
    "another version": (top(manifest=2), "$.manifest", "is 2", "1"),
    "a version that is true": (top(manifest=True), "$.manifest", 'is "true"', "1"),
    "a share that is true": (top(max_error_rate=True), "$.max_error_rate", "is true", "a number"),
    "days in words": (top(keep_days="2"), "$.keep_days", 'is "2"', "a number"),
    "a number of rows that is true": (top(min_rows=True), "$.min_rows", "is true", "a whole number"),
    "a limit that is a text": (top(max_rejected_rows="5"), "$.max_rejected_rows", 'is "5"', "a whole number"),
    "a share of blanks that is true": (field(max_blank_share=True), "$.fields[0].max_blank_share", "is true", "a number"),
    "no name": (b'{"manifest": 1, "fields": [{"name": "a"}]}', "$.name", "missing", "required"),
    "a bad name": (top(name="a b/c"), "$.name", '"a b/c"', "letters, digits"),
    "an unknown key": (top(feilds=[]), "$.feilds", "did you mean fields?", "known keys here: manifest, name"),
    "nothing to do": (b'{"manifest": 1, "name": "m"}', "$", "neither fields nor config", "at least one"),
    "fields that are no list": (top(fields={"a": 1}), "$.fields", "is {", "a list"),
    "an unknown key of a field": (field(requird=True), "$.fields[0].requird", "did you mean required?", "known keys here: name, label"),
    "a key of JSON Schema": (field(enum=["x"]), "$.fields[0].enum", "did you mean allowed?", "known keys here: name, label"),
    "none of several kinds": (field(constant=[]), "$.fields[0].constant", "is []", "a text in quotes or a whole number or a"),
    "an unknown type": (field(type="dat"), "$.fields[0].type", "did you mean date?", "text, integer, decimal"),
    "a type of a database": (field(type="NVARCHAR(20)"), "$.fields[0].type", "did you mean text?", "text, integer, decimal"),
    "a bad field name": (top(fields=[{"name": "1!"}]), "$.fields[0].name", '"1!"', "a letter or _ first"),
    "a field twice": (top(fields=[{"name": "a"}, {"name": "A"}]), "$.fields[1].name", "a again", "differ"),
    "a flag that is no flag": (field(required="maybe"), "$.fields[0].required", '"maybe"', "true or false"),
    "a bad pattern": (field(pattern="("), "$.fields[0].pattern", "not a regular expression", "regular expression"),
    "an enum without values": (field(type="enum"), "$.fields[0].allowed", "missing", "list of values"),
    "an empty list of values": (field(allowed=[]), "$.fields[0].allowed", "empty", "list of values"),
    "half a lookup": (field(allowed={"lookup": "x"}), "$.fields[0].allowed", '"lookup"', '"column"'),
    "a lookup of nothing": (field(allowed={"lookup": "x", "column": "y"}), "$.fields[0].allowed.lookup", "is x", "auxiliary"),
    "formats of a text": (field(formats=["%Y"]), "$.fields[0].formats", "type text", "date, datetime, time"),
    "a format without directives": (field(type="date", formats=["yyyy"]), "$.fields[0].formats[0]", '"yyyy"', "%Y-%m-%d"),
    "day_first of a text": (field(day_first=True), "$.fields[0].day_first", "type text", "date"),
    "a decimal sign": (field(type="money", decimal=";"), "$.fields[0].decimal", '";"', ". or ,"),
    "min of a text": (field(min=1), "$.fields[0].min", "type text", "min_length"),
    "min that is no number": (field(type="integer", min="1"), "$.fields[0].min", '"1"', "a number"),
    "min that is no date": (field(type="date", min="soon"), "$.fields[0].min", '"soon"', "2026-01-31"),
    "min above max": (field(type="integer", min=5, max=1), "$.fields[0].min", "above max 1", "at most max"),
    "a negative length": (field(min_length=-1), "$.fields[0].min_length", "-1", "at least 0"),
    "lengths crossed": (field(min_length=5, max_length=1), "$.fields[0].min_length", "above max_length 1", "at most"),
    "a source that is no object": (field(**{"from": "B2"}), "$.fields[0].from", '"B2"', "one of label, caption, file"),
    "a source misspelled": (field(**{"from": {"lable": "a"}}), "$.fields[0].from", "did you mean label?", "one of label"),
    "two sources": (field(**{"from": {"label": "a", "row": True}}), "$.fields[0].from", '"row"', "one of label"),
    "a source that is off": (field(**{"from": {"row": False}}), "$.fields[0].from.row", "is false", "true"),
    "a key too many of a source": (field(**{"from": {"label": "a", "cell": "B2"}}), "$.fields[0].from.cell", "not a known key", "label"),
    "a label without words": (field(**{"from": {"label": "--"}}), "$.fields[0].from.label", '"--"', "words of a label"),
    "a source that is filled down": (field(**{"from": {"row": True}, "fill_down": True}), "$.fields[0].fill_down", "from", "column"),
    "a table that is no table": (top(reading={"tables": [7]}), "$.reading.tables[0]", "is 7", '"ranges"'),
    "a table without a cut": (top(reading={"tables": [{"sheet": "S"}]}), "$.reading.tables[0]", "how the sheet is cut", '"split"'),
    "a table cut twice": (top(reading={"tables": [{"one": True, "split": "rows"}]}), "$.reading.tables[0]", "how the sheet is cut", "one of"),
    "a range that is a cell": (top(reading={"tables": [{"ranges": ["A1"]}]}), "$.reading.tables[0].ranges[0]", '"A1"', "A3:C94"),
    "a range upside down": (top(reading={"tables": [{"ranges": ["B9:A1"]}]}), "$.reading.tables[0].ranges[0]", "B9:A1", "upper left"),
    "ranges that meet": (top(reading={"tables": [{"ranges": ["A1:B3", "B3:C4"]}]}), "$.reading.tables[0].ranges[1]", "meets A1:B3", "apart"),
    "captions in two spellings": (top(reading={"captions": {"to": "a"}, "group_rows": "keep"}), "$.reading.captions", "group_rows", "captions, or"),
    "names and values in one field": (top(rows={"unpivot": {"columns": ["J"], "name_to": "a", "value_to": "a"}}), "$.rows.unpivot.value_to", '"a"', "different"),
    "values for a constant": (
        top(fields=[{"name": "a", "constant": "x"}], rows={"unpivot": {"columns": ["J"], "name_to": "m", "value_to": "a"}}),
        "$.rows.unpivot.value_to", "filled otherwise", "without constant",
    ),
    "a source and a constant": (field(**{"from": {"row": True}, "constant": "1"}), "$.fields[0].from", "constant", "not both"),
    "an expression cut short": (computed("n +"), "$.fields[1].from.expression", "ends too early (at character 4)", "a field"),
    "an expression with an unknown field": (computed("m + 1"), "$.fields[1].from.expression", "m, which is not a field", "n, x"),
    "an expression of another kind": (computed("n > 1"), "$.fields[1].from.expression", "gives a boolean", "gives a number"),
    "a field computed from itself": (computed("x + 1"), "$.fields[1].from", "x → x", "from others"),
    "a lookup that is not declared": (field(**{"from": {"lookup": "p", "key": "a", "match": "b", "column": "c"}}), "$.fields[0].from.lookup", "is p", "none is declared"),
    "a join of dates": (field(type="date", **{"from": {"columns": ["a", "b"], "combine": "join"}}), "$.fields[0].from.combine", "is date", "text"),
    "one column": (field(**{"from": {"columns": ["a"]}}), "$.fields[0].from.columns", '"a"', "at least 2"),
    "a separator of nothing": (field(**{"from": {"columns": ["a", "b"], "separator": ","}}), "$.fields[0].from.separator", "coalesce", "join"),
    "a map to another type": (field(type="integer", map={"a": "b"}), "$.fields[0].map.a", '"b"', "a number"),
    "a map with a value twice": (field(map={"a": "b", " A": "c"}), "$.fields[0].map. A", "twice", "differ"),
    "a map to what is not allowed": (field(allowed=["x"], map={"a": "b"}), "$.fields[0].map.a", "allowed", "one of allowed"),
    "otherwise without a map": (field(otherwise="keep"), "$.fields[0].otherwise", "without map", "map does not name"),
    "a filter that is no condition": (top(rows={"filter": "length(a)"}), "$.rows.filter", "gives a number", "a boolean"),
    "a sort by nothing": (top(rows={"sort": ["-b"]}), "$.rows.sort[0]", "is b", "a"),
    "newest by nothing": (top(rows={"dedupe": {"key": ["a"], "keep": "newest"}}), "$.rows.dedupe.by", "missing", "newest"),
    "a rule of no kind": (top(rules=[{"name": "r"}]), "$.rules[0]", "none of them", "then, check"),
    "a rule of two kinds": (top(rules=[{"name": "r", "check": "a == 'b'", "unique": ["a"]}]), "$.rules[0]", "check and unique", "exactly one"),
    "a sum of texts": (top(rules=[{"name": "r", "sum": "a", "equals": "total_row"}]), "$.rules[0].sum", "is text", "numbers"),
    "a default of another type": (field(type="integer", default="x"), "$.fields[0].default", '"x"', "a number"),
    "an unknown cleaning step": (field(clean=["trim"]), "$.fields[0].clean[0]", "did you mean strip?", "collapse"),
    "an unknown severity": (field(severity="fatal"), "$.fields[0].severity", '"fatal"', "error or warning"),
    "a path that climbs": (top(inputs={"primary": ["a", "../x"]}), "$.inputs.primary[1]", "../x", "no '..'"),
    "an absolute path": (top(inputs={"auxiliary": [{"name": "p", "path": "/etc/passwd"}]}), "$.inputs.auxiliary[0].path", "/etc/passwd", "no leading '/'"),
    "an auxiliary twice": (top(inputs={"auxiliary": [{"name": "p", "path": "a"}] * 2}), "$.inputs.auxiliary[1].name", "p again", "differ"),
    "an unknown per": (top(inputs={"per": "folder"}), "$.inputs.per", '"folder"', "file or drop"),
    "another tenant's config": (top(config="configs/other/x"), "$.config", "configs/other/x", "configs/_shared/<name>"),
    "a rule on no field": (rule(op="present") .replace(b'"field": "a"', b'"field": "z"'), "$.rules[0].then.field", "is z", "a declared field: a"),
    "an unknown operator": (rule(op="~", value=1), "$.rules[0].then.op", '"~"', "=="),
    "an operator without a side": (rule(op="=="), "$.rules[0].then", "0 of value and other", "exactly one"),
    "an operator that wants a list": (rule(op="in", value=3), "$.rules[0].then.value", "is 3", "a list"),
    "a threshold": (top(mapping={"threshold": 7}), "$.mapping.threshold", "is 7", "at most 1"),
    "an unknown policy": (top(mapping={"unmapped": "ignore"}), "$.mapping.unmapped", '"ignore"', "keep, prefix or drop"),
    "a sheet name": (top(output={"sheet": "a/b"}), "$.output.sheet", '"a/b"', "none of [ ]"),
    "what to do on errors": (top(on_rule_error="stop"), "$.on_rule_error", '"stop"', "finding or fail"),
    "a parameter twice": (top(params={"a": 1}, sweep={"a": [1]}), "$.sweep.a", "params too", "not in both"),
    "a sweep too large": (top(sweep={"a": list(range(101)), "b": list(range(101))}), "$.sweep", "10201 jobs", "at most 1000"),
    "parameters too long": (top(params={"a": "x" * 70_000}), "$.params", "bytes", "at most 65536"),
    "parameters too long for so many jobs": (
        top(params={f"k{n}": 0 for n in range(500)}, sweep={"b": list(range(300))}), "$.sweep", "300 jobs", "at most 1048576",
    ),
    "an empty sweep": (top(sweep={"a": []}), "$.sweep.a", "[]", "at least 1"),
    "a parameter that is a list": (top(params={"a": [1]}), "$.params.a", "[1]", "a text, a number"),
    "a limit too low": (top(limits={"memory_mb": 1}), "$.limits.memory_mb", "is 1", "at least 64"),
    "a time that is none": (top(not_before="yesterday"), "$.not_before", '"yesterday"', "ISO 8601"),
    "a window turned round": (top(schedule={"start_time": "2026-02-01", "end_time": "2026-01-01"}), "$.schedule.start_time", "not before", "before end_time"),
    "a priority": (top(priority=99), "$.priority", "is 99", "at most 10"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_bad_manifest_says_where_what_and_what_instead(what):
    body, path, problem, allowed = BAD[what]
    with pytest.raises(ManifestInvalid) as caught:
        parse_manifest(body)
    (found,) = caught.value.problems
    assert found.path == path
    assert problem in found.problem
    assert allowed in found.allowed


def test_keys_for_editors_and_people_change_nothing_else():
    plain = parse_manifest(top())
    body = top(
        fields=[{"name": "a", "description": "what it means", "examples": ["x", 1, 1.5, True]}],
        **{"$schema": "https://ade-drop.dev/manifest.schema.json"},
    )
    made = parse_manifest(body)
    assert made.fields[0].examples == ("x", 1, 1.5, True)
    assert made.model_copy(update={"schema_uri": None, "fields": plain.fields}) == plain


def test_the_schema_describes_every_key():
    schema = manifest_schema()
    models = {"Manifest": schema, **schema["$defs"]}
    bare = [
        f"{name}.{key}"
        for name, model in models.items()
        for key, facts in model.get("properties", {}).items()
        if "description" not in facts
    ]
    assert bare == [], "these keys lack a sentence in core/manifest_keys.py"


def test_there_are_more_than_thirty_kinds():
    assert len(BAD) >= 30


def test_every_mistake_is_reported_at_once():
    body = top(name="a b", priority=99, fields=[{"name": "a", "type": "x"}])
    with pytest.raises(ManifestInvalid) as caught:
        parse_manifest(body)
    assert {p.path for p in caught.value.problems} == {"$.name", "$.priority", "$.fields[0].type"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(sorted(manifest_schema()["properties"]))


@given(st.dictionaries(keys, json_values, max_size=4))
def test_any_manifest_is_accepted_or_refused_with_words(changes):
    problems = None
    try:
        parse_manifest(json.dumps({**BASE, **changes}).encode())
    except ManifestInvalid as refused:
        problems = refused.problems
    assert problems is None or all(p.path.startswith("$") and p.problem and p.allowed for p in problems)
    assert problems != []


def places(node, defs, at=()):
    """The path of every key of a manifest, by the JSON Schema; 0 for the first item of a list."""
    node = defs[node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    inside = [(name, part) for name, part in node.get("properties", {}).items() if at.count(name) == 0]
    inside += [(0, node["items"])] if isinstance(node.get("items"), dict) else []
    for name, part in inside:
        yield (*at, name)
        yield from places(part, defs, (*at, name))
    for part in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from places(part, defs, at)


def test_problems_name_places_of_the_manifest_and_none_of_the_program():
    """Whatever stands anywhere: pydantic's words for the kinds of a union are in no path."""
    schema = manifest_schema()
    everywhere = set(places(schema, schema["$defs"]))
    known = {name for place in everywhere for name in place if name != 0} | {"zzz"}
    for place in sorted(everywhere, key=str):
        for value in ("zzz", 3, [], {"zzz": []}):
            body = value
            for part in reversed(place):
                body = [body] if part == 0 else {part: body}
            try:
                parse_manifest(json.dumps({**BASE, **body}).encode())
            except ManifestInvalid as refused:
                named = {word for one in refused.problems for word in re.split(r"[.\[\]]+", one.path[1:])}
                assert {word for word in named if word and not word.isdecimal()} <= known, (place, value)


@given(st.binary(max_size=60))
def test_any_bytes_are_refused_with_words(body):
    with pytest.raises(ManifestInvalid):
        parse_manifest(body)


def test_a_typo_in_a_field_of_an_overlay_gets_a_hint():
    with pytest.raises(ManifestInvalid) as refused:
        parse_overlay(b'{"overlay": 1, "fields": {"id": {"synonym": ["Nr"]}}}')
    (problem,) = refused.value.problems
    assert "did you mean synonyms?" in problem.problem
    assert "formats" in problem.allowed


def test_an_overlay_cannot_make_a_manifest_that_its_author_could_not_write():
    """Parts that are each in order can still contradict one another."""
    manifest = parse_manifest(top(fields=[{"name": "a", "constant": "k"}, {"name": "b"}]))
    captions = parse_overlay(b'{"overlay": 1, "reading": {"captions": {"to": "a"}}}')
    with pytest.raises(ManifestInvalid) as refused:
        apply(manifest, captions)
    assert refused.value.problems[0].path == "$.reading.captions.to"


def test_a_limit_that_an_overlay_leaves_open_is_no_change():
    overlay = parse_overlay(b'{"overlay": 1, "limits": {"memory_mb": null, "cpu_seconds": 5}}')
    assert apply(parse_manifest(top()), overlay).changes == ("limits.cpu_seconds",)


def test_an_overlay_has_no_key_of_a_manifest_that_gives_a_right():
    """Whatever is added to manifests later: an overlay says how files are written, and nothing else."""
    for key in json.loads(json.dumps(manifest_schema()))["properties"]:
        body = json.dumps({"overlay": 1, key: None}).encode()
        if key in ("description", "fields", "reading", "limits", "language"):
            continue
        with pytest.raises(ManifestInvalid):
            parse_overlay(body)
