"""Forms change what they show, and nothing else of a manifest."""

import json

import pytest

from console.web import manifest_form as forms

SPEC = {
    "name": "plan",
    "type": "enum",
    "allowed": {"lookup": "plans", "column": "code"},
    "map": {"A": "Alpha", "B": "Beta"},
    "otherwise": {"value": "Alpha"},
    "number_format": "0.00",
    "merged": "fill",
    "required": True,
}


def as_sent(spec):
    """What a browser sends of a field that nobody touched."""
    sent = {key.name: key.show(spec.get(key.name)).replace("\n", "\r\n") for key in forms.KEYS}
    flags = {flag: "yes" for flag in forms.FLAGS if spec.get(flag) is True}
    otherwise = "" if isinstance(spec.get("otherwise"), dict) else spec.get("otherwise", "")
    kept = {"type": spec.get("type", "text"), "severity": spec.get("severity", "error"), "otherwise": otherwise}
    return {**sent, **flags, **kept, "flags": "yes"}


@pytest.mark.parametrize(
    "spec",
    [
        SPEC,
        {"name": "a"},
        {"name": "a", "synonyms": ["x", " y "], "clean": ["strip", "upper"], "type": "date", "formats": ["%d.%m.%Y"]},
        {"name": "a", "type": "decimal", "min": 0, "max": 1.5, "default": 0, "allowed": [1, 2.5], "map": {"x": 1}},
        {"name": "a", "from": {"expression": "b + 1"}, "description": "one\ntwo", "severity": "warning"},
        {"name": 3, "type": ["wrong"], "synonyms": "not a list", "map": []},
    ],
)
def test_a_form_that_nobody_touched_changes_nothing(spec):
    assert forms.with_form(spec, as_sent(spec)) == spec


def test_what_is_changed_has_the_type_of_its_field():
    sent = as_sent(SPEC) | {
        "type": "integer",
        "allowed": "1\n2",
        "map": "one => 1\ntwo → 2\nx",
        "min": "0",
        "default": "",
        "pattern": "[0-9]",
    }
    made = forms.with_form(SPEC, sent)
    assert (made["allowed"], made["map"], made["min"], made["pattern"]) == (
        [1, 2],
        {"one": 1, "two": 2, "x": ""},
        0,
        "[0-9]",
    )
    assert (made["merged"], made["number_format"]) == ("fill", "0.00")


def test_another_type_reads_the_constants_again():
    made = forms.with_form({"name": "a", "type": "decimal", "min": 3}, {"name": "a", "type": "text", "min": "3"})
    assert made == {"name": "a", "type": "text", "min": "3"}


def test_an_empty_text_takes_a_key_out():
    assert forms.with_form({"name": "a", "synonyms": ["x"]}, {"synonyms": " "}) == {"name": "a"}


def test_flags_are_those_that_are_ticked():
    made = forms.with_form({"name": "a", "required": True}, {"flags": "yes", "unique": "yes"})
    assert made == {"name": "a", "unique": True}


def test_fields_are_moved_and_removed():
    manifest = {"fields": [{"name": "a"}, {"name": "b"}, {"name": "c"}], "x": 1}
    names = lambda made: "".join(one["name"] for one in made["fields"])  # noqa: E731
    assert names(forms.change_field(manifest, 1, "up", {})) == "bac"
    assert names(forms.change_field(manifest, 2, "down", {})) == "abc"
    assert names(forms.change_field(manifest, 1, "remove", {})) == "ac"
    with pytest.raises(IndexError):
        forms.change_field(manifest, 3, "remove", {})


def test_settings_leave_what_they_do_not_show():
    manifest = {
        "manifest": 1,
        "name": "m",
        "mapping": {"threshold": 0.9},
        "reading": {"encoding": "cp1252"},
        "fields": [],
    }
    sent = {key.path: key.shown(manifest) for key in forms.SETTINGS}
    assert forms.with_settings(manifest, sent) == manifest
    made = forms.with_settings(manifest, sent | {"mapping.unmapped": "drop", "reading.header_rows": "3\n4"})
    assert made["mapping"] == {"threshold": 0.9, "unmapped": "drop"}
    assert made["reading"] == {"encoding": "cp1252", "header_rows": [3, 4]}
    back = forms.with_settings(made, {"mapping.unmapped": "keep", "reading.header_rows": ""})
    assert back == manifest


class TestClicks:
    def test_a_row_is_the_header(self):
        made = forms.with_header_row({"reading": {"header": "none"}}, 4, more=False)
        assert made == {"reading": {"header_rows": [4]}}
        assert forms.with_header_row(made, 3, more=True)["reading"]["header_rows"] == [3, 4]

    def test_a_range_replaces_that_of_its_sheet_only(self):
        made = forms.with_range({"reading": {"tables": ["Orders"]}}, "S", "A3:C9")
        made = forms.with_range(made, "S", "A4:C9")
        assert made["reading"]["tables"] == ["Orders", {"sheet": "S", "ranges": ["A4:C9"]}]
        assert forms.without_ranges(made) == {}
        only = forms.with_range(forms.with_range({}, "", "A1:B2"), "", "A2:B3")
        assert only["reading"]["tables"] == [{"ranges": ["A2:B3"]}], "a text file's sheet is called after the file"
        with pytest.raises(ValueError, match="not a range"):
            forms.with_range({}, "S", "A4")

    def test_a_header_means_one_field(self):
        manifest = {"fields": [{"name": "a", "synonyms": ["Pay", "x"]}, {"name": "b"}]}
        made = forms.with_column(manifest, "pay", "b")
        assert made["fields"] == [{"name": "a", "synonyms": ["x"]}, {"name": "b", "synonyms": ["pay"]}]

    def test_a_column_becomes_a_new_field_with_a_free_name(self):
        made = forms.with_column({"fields": [{"name": "gross_pay"}]}, "Gross Pay!", "")
        assert made["fields"][-1] == {"name": "gross_pay_2", "type": "text", "synonyms": ["Gross Pay!"]}
        assert forms.with_column({"fields": []}, "№", "")["fields"][0]["name"] == "column"


def test_rules_are_added_and_removed():
    made = forms.with_rule({"name": "m"}, {"name": "r", "check": "a > b", "severity": "warning"})
    assert made["rules"] == [{"name": "r", "check": "a > b", "severity": "warning"}]
    assert forms.without_rule(made, 0) == {"name": "m"}
    assert json.dumps(made)
