"""Tables with one header are mapped alike, whatever the values of each look like."""

from tests.support.engine_jobs import run_job

FIELDS = [{"name": "name"}, {"name": "email", "type": "email"}, {"name": "phone", "type": "phone"}]
HEAD = ["Name", "Contact"]
FULL = [HEAD, *([f"Ann {n}", f"ann{n}@example.com"] for n in range(12))]
SPARSE = [HEAD, *([f"Bob {n}", None] for n in range(5)), ["Bob 9", "ask"]]


def targets(done):
    found = {}
    for part in done.artifact["mapping"]:
        found.setdefault(part["table"], []).append((part["target"], part["probability"]))
    return list(found.values())


def test_a_block_is_mapped_as_its_twin_is(tmp_path):
    (alone,) = targets(run_job(tmp_path / "a", {"b": SPARSE}, fields=FIELDS))
    assert alone[1][0] is None, "its own values say nothing"
    full, sparse = targets(run_job(tmp_path / "b", {"a": FULL, "b": SPARSE}, fields=FIELDS))
    assert full == sparse
    assert full[1][0] == "email"


def test_stacked_and_side_by_side_blocks_are_twins_too(tmp_path):
    stacked = [*FULL, [], [], *SPARSE]
    one, two = targets(run_job(tmp_path / "a", stacked, fields=FIELDS, reading={"tables": [{"split": "rows"}]}))
    assert one == two
    wide = [[*row, None, *(SPARSE[n] if n < len(SPARSE) else [None, None])] for n, row in enumerate(FULL)]
    one, two = targets(run_job(tmp_path / "b", wide, fields=FIELDS, reading={"tables": [{"split": "columns"}]}))
    assert one == two


def test_another_header_is_no_twin(tmp_path):
    other = [["Name", "Remark"], *SPARSE[1:]]
    full, sparse = targets(run_job(tmp_path, {"a": FULL, "b": other}, fields=FIELDS))
    assert (full[1][0], sparse[1][0]) == ("email", None)


def test_the_rows_of_twins_are_written_in_order(tmp_path):
    blocks = [[HEAD, *([f"{c}{n}", f"{c}{n}@example.com"] for n in range(4))] for c in "abc"]
    rows = [*blocks[0], [], [], *blocks[1], [], [], *blocks[2]]
    done = run_job(tmp_path, rows, fields=FIELDS, reading={"tables": [{"split": "rows"}]})
    assert done.column("name") == [f"{c}{n}" for c in "abc" for n in range(4)]
