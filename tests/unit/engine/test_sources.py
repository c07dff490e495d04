"""Fields whose values are in no column of their own: labels and captions around a table, its place, the value above."""

import pytest

from tests.support.engine_jobs import run_job

FIELDS = [{"name": "item"}, {"name": "qty", "type": "integer"}]
BODY = [["Item", "Qty"], ["bolt", 3], ["nut", 5], ["washer", 8], ["screw", 13]]
LABEL = {"name": "account", "from": {"label": "Account"}}


def findings(done, code):
    return [f for f in done.artifact["validation"]["findings"] if f["code"] == code]


def codes(done):
    return {f["code"] for f in done.artifact["validation"]["findings"]}


def places(done):
    return [t.get("sources") for sheet in done.artifact["sheets"] for t in sheet["tables"] if "skipped" not in t]


@pytest.mark.parametrize(
    ("above", "cell"),
    [
        ([["Account", "DE-77"], []], "B1"),
        ([["Account:", None, None, "DE-77"], []], "D1"),
        ([["Account: DE-77"], []], "A1"),
        ([["ACCOUNT"], ["DE-77"], []], "A2"),
        ([["Statement"], [], ["account", "DE-77"], ["Period", "May"], ["Owner", "Ann"], []], "B3"),
        ([["Account", "Period", "Owner"], ["DE-77", "2024-05", "Ann"], []], "A2"),
        ([["Account:", "Period:"], ["DE-77", "2024-05"], []], "A2"),
    ],
)
def test_a_label_above_a_table_gives_a_field_its_value(tmp_path, above, cell):
    done = run_job(tmp_path, [*above, *BODY], fields=[*FIELDS, LABEL])
    assert done.column("account") == ["DE-77"] * 4
    assert places(done) == [[{"field": "account", "from": "label", "cell": cell}]]
    assert "DE-77" not in str(done.artifact)
    assert not codes(done) & {"label_missing", "label_repeated", "label_assumed", "field_unmapped"}


def test_a_label_below_a_table_counts_too(tmp_path):
    done = run_job(tmp_path, [*BODY, [], ["Account:", "DE-77"]], fields=[*FIELDS, LABEL])
    assert done.column("account") == ["DE-77"] * 4


def test_the_value_of_a_label_is_typed_cleaned_and_checked(tmp_path):
    fields = [*FIELDS, {"name": "day", "type": "date", "formats": ["%d.%m.%Y"], "from": {"label": "As of"}}]
    done = run_job(tmp_path, [["As of:", "31.05.2024"], [], *BODY], fields=fields)
    assert [str(day)[:10] for day in done.column("day")] == ["2024-05-31"] * 4
    wrong = run_job(tmp_path / "b", [["As of:", "soon"], [], *BODY], fields=fields)
    (found,) = findings(wrong, "type_error")
    assert (found["cell"], found["field"]) == ("B1", "day")
    assert wrong.artifact["validation"]["by_code"]["type_error"] == 4, "each row is wrong, one cell is to be mended"


@pytest.mark.parametrize(("required", "severity"), [(True, "error"), (False, "warning")])
def test_a_label_that_is_not_there_is_a_finding(tmp_path, required, severity):
    done = run_job(tmp_path, [["Customer", "DE-77"], [], *BODY], fields=[*FIELDS, {**LABEL, "required": required}])
    (found,) = findings(done, "label_missing")
    assert (found["severity"], found["field"]) == (severity, "account")
    assert done.column("account") == [None] * 4
    assert not codes(done) & {"required", "field_unmapped", "missing_field"}, "it is said once"


def test_a_label_without_a_value_is_missing_and_says_where_it_is(tmp_path):
    done = run_job(tmp_path, [["Account:"], [], *BODY], fields=[*FIELDS, LABEL])
    assert findings(done, "label_missing")[0]["cell"] == "A1"


def test_an_optional_label_may_be_missing_and_a_default_takes_its_place(tmp_path):
    done = run_job(tmp_path, BODY, fields=[*FIELDS, {**LABEL, "optional": True, "default": "none"}])
    assert done.column("account") == ["none"] * 4
    assert not findings(done, "label_missing")


def test_two_neighbours_that_could_be_the_value_are_reported_and_side_settles_it(tmp_path):
    rows = [["Region", "Customer"], ["North", "Acme"], [], *BODY]
    region = {"name": "region", "from": {"label": "Region"}}
    done = run_job(tmp_path, rows, fields=[*FIELDS, region])
    (found,) = findings(done, "label_assumed")
    assert '"side"' in found["message"]
    settled = {"name": "region", "from": {"label": "Region", "side": "below"}}
    done = run_job(tmp_path / "b", rows, fields=[*FIELDS, settled])
    assert done.column("region") == ["North"] * 4
    assert not findings(done, "label_assumed")


def test_a_label_with_two_values_is_reported(tmp_path):
    done = run_job(tmp_path, [["Account:", "DE-1"], ["Account:", "DE-2"], [], *BODY], fields=[*FIELDS, LABEL])
    (found,) = findings(done, "label_repeated")
    assert (found["cell"], done.column("account")[0]) == ("B2", "DE-2"), "the nearest one counts"
    same = run_job(tmp_path / "b", [["Account:", "DE-1"], ["Account:", "DE-1"], [], *BODY], fields=[*FIELDS, LABEL])
    assert not findings(same, "label_repeated")


def test_each_table_takes_the_label_nearest_above_it(tmp_path):
    rows = [["Account:", "DE-1"], [], *BODY, [], [], ["Account:", "DE-2"], [], *BODY]
    done = run_job(tmp_path, rows, fields=[*FIELDS, LABEL], reading={"tables": ["*"]})
    assert done.column("account") == ["DE-1"] * 4 + ["DE-2"] * 4
    assert not findings(done, "label_repeated")


def test_a_column_named_like_the_field_is_not_used_for_it(tmp_path):
    rows = [["Account: DE-7"], [], ["Item", "Qty", "Account"], *([*row, "x"] for row in BODY[1:])]
    done = run_job(tmp_path, rows, fields=[*FIELDS, LABEL])
    assert done.column("account") == ["DE-7"] * 4
    assert findings(done, "constant_field")


def test_file_sheet_and_row_are_fields(tmp_path):
    fields = [
        *FIELDS,
        {"name": "file", "from": {"file": True}},
        {"name": "sheet", "from": {"sheet": True}},
        {"name": "line", "type": "integer", "from": {"row": True}},
    ]
    done = run_job(tmp_path, {"May": BODY}, fields=fields)
    assert done.rows()[1:3] == [["bolt", 3, "in.xlsx", "May", 2], ["nut", 5, "in.xlsx", "May", 3]]


BLOCKS = [["North"], *BODY, [], ["South"], *([a, b and 2 * b] if b != "Qty" else [a, b] for a, b in BODY)]


@pytest.mark.parametrize("as_field", [True, False])
def test_the_caption_above_a_block_becomes_a_column(tmp_path, as_field):
    fields = [*FIELDS, {"name": "region"}] if as_field else FIELDS
    done = run_job(tmp_path, BLOCKS, fields=fields, reading={"captions": {"to": "region"}, "tables": ["*"]})
    assert done.column("region") == ["North"] * 4 + ["South"] * 4
    assert "caption_missing" not in codes(done)


def test_a_field_asks_for_captions_itself(tmp_path):
    fields = [*FIELDS, {"name": "region", "clean": ["upper"], "from": {"caption": True}}]
    done = run_job(tmp_path, BLOCKS, fields=fields, reading={"tables": ["*"]})
    assert done.rows()[0] == ["item", "qty", "region"]
    assert done.column("region") == ["NORTH"] * 4 + ["SOUTH"] * 4
    assert places(done)[0] == [{"field": "region", "from": "caption", "cell": "A1"}]


def test_a_block_without_a_caption_is_reported(tmp_path):
    rows = [["North"], *BODY, [], [], *BODY]
    done = run_job(tmp_path, rows, fields=FIELDS, reading={"captions": {"to": "region"}, "tables": ["*"]})
    assert done.column("region") == ["North"] * 4 + [None] * 4
    assert [f["row"] for f in findings(done, "caption_missing")] == [10]


def test_the_old_spelling_of_captions_leaves_titles_alone(tmp_path):
    done = run_job(tmp_path, [["Report"], *BODY], fields=FIELDS, reading={"group_rows": "fill"})
    assert done.column("group") == [None] * 4
    assert "caption_missing" not in codes(done)


def test_blank_cells_take_the_value_above(tmp_path):
    rows = [["Item", "Qty"], [None, 1], ["bolt", 3], [None, 5], ["  ", 8], ["nut", 13], [None, 21]]
    fields = [{"name": "item", "fill_down": True}, FIELDS[1]]
    done = run_job(tmp_path, rows, fields=fields)
    assert done.column("item") == [None, "bolt", "bolt", "bolt", "nut", "nut"]
    (found,) = findings(done, "filled_down")
    assert (found["cell"], done.artifact["validation"]["by_code"]["filled_down"]) == ("A4", 3)
    (made,) = [t for t in done.artifact["transforms"] if t["field"] == "item"]
    assert made["filled_down"] == 3


def test_values_are_filled_down_within_a_table(tmp_path):
    rows = [*BODY, [], [], [], ["Item", "Qty"], [None, 1], ["pin", 2], [None, 3]]
    fields = [{"name": "item", "fill_down": True}, FIELDS[1]]
    done = run_job(tmp_path, rows, fields=fields, reading={"tables": ["*"]})
    assert done.column("item")[4:] == [None, "pin", "pin"]


def test_a_required_field_is_checked_after_it_is_filled(tmp_path):
    rows = [["Item", "Qty"], ["bolt", 3], [None, 5], ["nut", 8], [None, 9]]
    done = run_job(tmp_path, rows, fields=[{"name": "item", "fill_down": True, "required": True}, FIELDS[1]])
    assert done.artifact["summary"]["findings"]["error"] == 0


def test_a_form_that_is_read_by_its_labels_is_no_warning(tmp_path):
    form = [["Key", "Entry"], ["Account", "DE-77"], ["Owner", "Ann"], ["Branch", "Oslo"], ["Currency", "EUR"]]
    rows = [*form, [], [], [], [], *BODY]
    reading = {"tables": [{"split": "rows"}, "*"]}
    done = run_job(tmp_path, rows, fields=[*FIELDS, LABEL], reading=reading)
    assert done.column("account") == ["DE-77"] * 4
    assert {f["severity"] for f in findings(done, "table_unmapped")} == {"info"}
    other = run_job(tmp_path / "b", rows, fields=FIELDS, reading=reading)
    assert {f["severity"] for f in findings(other, "table_unmapped")} == {"warning"}


def test_a_caption_right_below_the_rows_of_another_block_is_no_record(tmp_path):
    south = [BODY[0], *([item, 2 * quantity] for item, quantity in BODY[1:])]
    done = run_job(
        tmp_path, [["North"], *BODY, ["South"], *south], fields=FIELDS, reading={"captions": {"to": "region"}}
    )
    assert done.column("region") == ["North"] * 4 + ["South"] * 4
    assert done.column("item") == [row[0] for row in BODY[1:]] * 2


@pytest.mark.parametrize("asked", [{"reading": {"captions": {"to": "region"}}}, {}])
def test_where_captions_are_asked_for_a_single_text_between_records_of_two_columns_is_told(tmp_path, asked):
    body = [["bolt", 1], ["nut", 2], ["screw", 3]]
    region = {"name": "region", **({} if asked else {"from": {"caption": True}})}
    fields = [{"name": "item"}, {"name": "amount", "type": "integer"}, region]
    done = run_job(tmp_path, [["North"], ["item", "amount"], *body, ["South"], *body], fields=fields, **asked)
    assert [(f["code"], f["severity"]) for f in done.findings] == [("record_assumed", "warning")]
    assert "row 6 " in done.findings[0]["message"]
