"""The manifest of the rule author's guide for sheets that are more than a table does what the guide says."""

import json
import re
from pathlib import Path

from tests.support.engine_jobs import run_job

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "rule-author.md"


def test_the_guide_reads_labels_captions_blanks_and_months(tmp_path):
    text = GUIDE.read_text().partition("## Sheets that are more than a table")[2]
    spec = json.loads(re.search(r"```json\n(.*?)```", text, re.DOTALL)[1])
    head = ["Item", "Jan", "Feb", "Mar"]
    rows = [
        ["Account:", "DE-7"], [],
        ["North"], head, ["bolt", 1, 2, 3], [None, 4, None, 6], ["nut", 7, 8, 9], ["pin", 1, 1, 1], [],
        ["South"], head, ["bolt", 10, 20, 30], ["nut", 40, 50, 60], ["pin", 2, 2, 2],
    ]  # fmt: skip
    more = {key: spec[key] for key in ("fields", "reading")}
    done = run_job(tmp_path, rows, row_shape=spec["rows"], **more)
    assert done.rows()[0] == ["account", "region", "item", "month", "amount"]
    assert done.rows()[4:7] == [
        ["DE-7", "North", "bolt", "Jan", 4], ["DE-7", "North", "bolt", "Mar", 6], ["DE-7", "North", "nut", "Jan", 7],
    ]  # fmt: skip
    assert done.rows()[-1] == ["DE-7", "South", "pin", "Mar", 2]
    assert done.artifact["summary"]["rows_out"] == 11 + 9
