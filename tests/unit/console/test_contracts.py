"""Contracts of other tools become fields of a manifest, and manifests become contracts that those tools accept."""

import json
import time

import jsonschema
import pytest
import yaml

from console.contracts import EXPORTS, exported, read_contract
from console.contracts.foreign import ContractRefused, whole_pattern
from core.manifests import parse_manifest

FIELDS = [
    {"name": "order_id", "label": "Order ID", "required": True, "unique": True, "pattern": "A[0-9]{4}|B-\\d+", "synonyms": ["no"], "clean": ["strip", "upper"], "description": "the key", "examples": ["A1234"]},
    {"name": "qty", "type": "integer", "min": 0, "max": 1000},
    {"name": "price", "type": "money", "required": True, "min": 0.5},
    {"name": "rate", "type": "percent", "unit": "percent"},
    {"name": "day", "type": "date", "min": "2020-01-01", "formats": ["%d.%m.%Y"], "day_first": True},
    {"name": "at", "type": "datetime", "max": "2030-01-01T00:00:00"},
    {"name": "clock", "type": "time"},
    {"name": "ok", "type": "boolean", "required": True},
    {"name": "mail", "type": "email"},
    {"name": "tel", "type": "phone"},
    {"name": "web", "type": "url"},
    {"name": "status", "type": "enum", "allowed": ["open", "closed", "won't"], "default": "open"},
    {"name": "size", "type": "integer", "allowed": [1, 2, 3]},
    {"name": "code", "min_length": 2, "max_length": 5, "severity": "warning", "pattern": "[A-Z]+", "required": True},
    {"name": "note", "optional": True},
]  # fmt: skip
MANIFEST = parse_manifest(
    json.dumps({"manifest": 1, "name": "orders", "description": "It's all orders", "fields": FIELDS}).encode()
)


def fields_read(tmp_path, text):
    path = tmp_path / "contract"
    path.write_text(text)
    made = {"manifest": 1, "name": "orders", "fields": read_contract(path)}
    return parse_manifest(json.dumps(made).encode()).fields


@pytest.mark.parametrize("to", [to for to in EXPORTS if to != "postgres"])
def test_what_is_exported_comes_back_whole(to, tmp_path):
    assert fields_read(tmp_path, exported(MANIFEST, to)) == MANIFEST.fields


def test_a_table_comes_back_but_for_what_sql_cannot_say(tmp_path):
    back = {spec.name: spec for spec in fields_read(tmp_path, exported(MANIFEST, "postgres"))}
    assert (back["order_id"].required, back["order_id"].unique, back["order_id"].description) == (True, True, "the key")
    assert (back["qty"].type, back["qty"].min, back["qty"].max) == ("integer", 0, 1000)
    assert (back["day"].type, back["day"].min) == ("date", "2020-01-01")
    assert back["status"].allowed == ("open", "closed", "won't")
    assert not back["code"].required, "a warning is no constraint"


@pytest.mark.parametrize("written", ["\\", "it's \\", "a\\'b", "C:\\'; --"])
def test_backslashes_and_quotes_come_back_from_a_table(written, tmp_path):
    fields = [{"name": "a", "description": written, "allowed": [written, "x"]}, {"name": "b", "type": "date"}]
    manifest = parse_manifest(
        json.dumps({"manifest": 1, "name": "t", "description": written, "fields": fields}).encode()
    )
    first, second = fields_read(tmp_path, exported(manifest, "postgres"))
    assert (first.description, first.allowed, second.type) == (written, (written, "x"), "date")


def test_the_json_schema_judges_rows():
    schema = json.loads(exported(MANIFEST, "jsonschema"))
    jsonschema.Draft202012Validator.check_schema(schema)
    judge = jsonschema.Draft202012Validator(schema)
    row = {"order_id": "A1234", "price": 1.5, "ok": True, "status": None, "code": None}
    assert judge.is_valid(row)
    assert judge.is_valid({**row, "code": "way too long"}), "a warning is no constraint"
    for wrong in (
        {"order_id": "A12345"},
        {"qty": 1001},
        {"price": None},
        {"status": "new"},
        {"day": 3},
        {"order_id": None},
    ):
        assert not judge.is_valid({**row, **wrong}), wrong


def test_a_warning_is_a_custom_property_and_never_a_constraint():
    (odcs,) = yaml.safe_load(exported(MANIFEST, "odcs"))["schema"]
    code = next(p for p in odcs["properties"] if p["name"] == "code")
    assert not {"required", "logicalTypeOptions", "quality"} & set(code)
    assert code["customProperties"][0]["value"]["warning"]["pattern"] == "[A-Z]+"
    table = json.loads(exported(MANIFEST, "frictionless"))
    assert "constraints" not in next(f for f in table["fields"] if f["name"] == "code")


def test_a_create_table_of_another_dialect_is_read(tmp_path):
    fields = fields_read(
        tmp_path,
        """-- members, as our warehouse has them
        SET NAMES utf8; DROP TABLE IF EXISTS members;
        CREATE TYPE plan AS ENUM ('A', 'B');
        CREATE TABLE IF NOT EXISTS `hr`.`members` (
          `id` INT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'the key, (not) the "number"',
          [full name] NVARCHAR(80) NOT NULL DEFAULT 'a, b',
          plan plan,
          state enum('x','y''s') DEFAULT 'x',
          pay DECIMAL(10, 2) CHECK (pay >= 0 AND pay <= 9999.5),
          born DATE CHECK (born BETWEEN '1900-01-01' AND '2030-12-31'),
          seen TIMESTAMP WITH TIME ZONE DEFAULT now(),
          active TINYINT(1),
          note character varying(20),
          CONSTRAINT pk PRIMARY KEY (id), UNIQUE KEY u (note, plan),
          FOREIGN KEY (plan) REFERENCES plans (code)
        ) ENGINE=InnoDB;
        COMMENT ON COLUMN hr.members.pay IS 'gross';""",
    )
    found = {spec.name: spec for spec in fields}
    assert [(s.name, str(s.type)) for s in fields] == [
        ("id", "integer"), ("full name", "text"), ("plan", "enum"), ("state", "enum"), ("pay", "decimal"),
        ("born", "date"), ("seen", "datetime"), ("active", "boolean"), ("note", "text"),
    ]  # fmt: skip
    assert found["id"].required
    assert found["id"].unique
    assert found["full name"].max_length == 80
    assert (found["plan"].allowed, found["state"].allowed) == (("A", "B"), ("x", "y's"))
    assert (found["pay"].min, found["pay"].max, found["pay"].description) == (0, 9999.5, "gross")
    assert found["born"].min == "1900-01-01"
    assert (found["note"].max_length, found["note"].unique) == (20, False)


def test_a_schema_with_references_and_nulls_is_read(tmp_path):
    schema = {
        "$ref": "#/$defs/rows",
        "$defs": {
            "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
            "row": {"type": "object", "required": ["a"], "properties": {
                "a": {"type": "string", "pattern": "^x"}, "b": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/n"}]},
                "d": {"type": ["string", "null"], "format": "date"}, "été": {"type": "boolean"}, "e": {"enum": ["p", "q"]},
            }},
            "n": {"type": "integer", "minimum": 3},
        },
    }  # fmt: skip
    fields = fields_read(tmp_path, json.dumps(schema))
    assert [(s.name, str(s.type), s.required) for s in fields] == [
        ("a", "text", True), ("b", "integer", False), ("d", "date", False), ("t", "boolean", False), ("e", "enum", False),
    ]  # fmt: skip
    assert fields[0].pattern == "x.*"
    assert fields[3].label == "été"


REFUSED = {
    "a reference to the network": ('{"properties": {"a": {"$ref": "https://example.com/x.json"}}}', "not fetched"),
    "references in a circle": (
        '{"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}}',
        "circle",
    ),
    "a reference to nothing": ('{"properties": {"a": {"$ref": "#/x/y"}}}', "does not contain"),
    "YAML tags": ("kind: DataContract\nschema: !!python/object/apply:os.system [ls]\n", "neither JSON nor YAML"),
    "YAML aliases": ("kind: DataContract\na: &a [1]\nb: *a\n", "aliases"),
    "a field without a name": ('{"fields": [{"name": "a"}, {"type": "string"}]}', "2 fields, and only 1"),
    "a property that is a list": ('{"properties": {"a": {}, "b": []}}', "'b' that is no schema"),
    "an open quote of dollars": ("CREATE TABLE a (x text DEFAULT $q$ y, z int)", "never closed"),
    "two tables": ("CREATE TABLE a (x int); CREATE TABLE b (x int);", "2 tables (a, b)"),
    "an open bracket": ("CREATE TABLE a (x int", "never closed"),
    "two objects": ("kind: DataContract\nschema: [{name: a}, {name: b}]\n", "2 objects"),
    "no contract": ("[1, 2]", "is not JSON Schema, ODCS"),
    "no fields": ('{"fields": []}', "0 fields"),
    "deep JSON": ('{"properties":' * 60 + "{}" + "}" * 60, "nested"),
    "deep YAML": ("kind: DataContract\na: " + "[" * 60 + "]" * 60, "nested"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_contract_that_cannot_be_used_is_refused_with_words(what, tmp_path):
    text, words = REFUSED[what]
    path = tmp_path / "contract"
    path.write_text(text)
    with pytest.raises(ContractRefused) as caught:
        read_contract(path)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("searched", "whole"),
    [
        ("^a+$", "a+"),
        ("a", ".*a.*"),
        ("^a", "a.*"),
        ("^(a|b)$", "a|b"),
        ("^(a)(b|c)$", ".*(?:^(a)(b|c)$).*"),
        ("^(?!a)$", "(?!a)"),
        ("^a|b$", ".*(?:^a|b$).*"),
        ("(", None),
        (3, None),
    ],
)
def test_a_pattern_that_is_searched_for_becomes_one_of_the_whole_value(searched, whole):
    assert whole_pattern(searched) == whole


HOSTILE = {
    "blanks": "\n" * 5000 + "x: 1",
    "comments that are never closed": "CREATE TABLE t (a int /* " * 3000,
    "quotes that are never closed": "CREATE TABLE t (a text default '" + "\\'" * 10_000,
    "brackets": "CREATE TABLE t (a int " + "[" * 100_000,
    "brackets in each other": "CREATE TABLE t (a int default " + "(" * 20_000 + "1",
    "a schema that is a number": "kind: DataContract\napiVersion: v3.1.0\nschema: 7\n",
    "properties that are a text": "kind: DataContract\nschema: [{name: t, properties: abc}]\n",
    "fields that are a number": '{"fields": 7}',
    "references in a circle": '{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}',
    "quotes of dollars": "CREATE TABLE t (a text default " + "".join(f"$a{n}$" for n in range(200_000)),
    "ten thousand fields": json.dumps({"properties": {f"f{n}": {} for n in range(10_000)}}),
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_contract_is_refused_in_words_and_at_once(tmp_path, body):
    path = tmp_path / "contract"
    path.write_text(body)
    began = time.process_time()
    with pytest.raises(ContractRefused, match=str(path)):
        read_contract(path)
    assert time.process_time() - began < 2


def test_a_default_in_quotes_of_dollars_hides_no_column(tmp_path):
    fields = fields_read(
        tmp_path, "CREATE TABLE t (a text DEFAULT $$ ), b int $$, c int DEFAULT length($q$)$q$), d date)"
    )
    assert [(spec.name, str(spec.type)) for spec in fields] == [("a", "text"), ("c", "integer"), ("d", "date")]


def test_a_property_of_any_value_is_a_field_and_odd_types_are_texts(tmp_path):
    fields = fields_read(tmp_path, '{"properties": {"a": true, "b": false, "c": {"type": {"x": 1}}}}')
    assert [(spec.name, str(spec.type)) for spec in fields] == [("a", "text"), ("c", "text")]


def test_bounds_that_no_number_has_are_left_out(tmp_path):
    path = tmp_path / "contract.json"
    path.write_text('{"properties": {"a": {"type": "number", "minimum": NaN, "maximum": Infinity, "enum": [1, NaN]}}}')
    assert read_contract(path) == [{"name": "a", "type": "decimal", "allowed": [1]}]
