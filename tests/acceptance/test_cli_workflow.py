"""`ade workflow`: a shared workflow from its draft to the next version and back."""

import json

import pytest

from tests.acceptance.ade import CSV, MEMBERS, Ade

SHARED = {**MEMBERS, "tenants": ["*"], "subscribe": ["*.csv"]}


@pytest.fixture
def ade(tmp_path):
    made = Ade(tmp_path, {"ADE_SANDBOX_MIN_LEVEL": "limits"}, within=True)
    folder = made.bucket / "configs/_shared/members"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(SHARED))
    return made


def test_a_draft_is_compared_promoted_and_reverted(ade):
    ade.write("members.csv", CSV)
    ade("drop", "members.csv", "--tenant", "acme")
    ade("run", "--drain")
    (listed,) = ade("workflow", "list", "--json").json
    assert (listed["name"], listed["tenants"], listed["versions"], listed["draft"]) == ("members", ["*"], 1, None)
    ade.write("manifest.json", {**SHARED, "min_rows": 2})
    draft = ade("workflow", "draft", "members", ".", "--json").json["id"]
    changes = ade("workflow", "diff", "members", "live", "draft", "--json").json["changes"]
    assert changes == [{"path": "min_rows", "before": None, "after": "2"}]
    ade("workflow", "promote", "members")
    shown = ade("workflow", "show", "members", "--json").json
    assert (shown["live"], shown["draft"]) == (draft, draft)
    ade("workflow", "revert", "members")
    assert ade("workflow", "show", "members", "--json").json["live"] == listed["live"]
    assert listed["live"] in ade("workflow", "show", "members").out
    assert "there is no workflow nothing" in ade("workflow", "show", "nothing", expect=2).err
