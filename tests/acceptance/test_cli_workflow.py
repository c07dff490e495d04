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


def test_a_workflow_may_begin_as_a_draft(ade):
    ade.write("plans/manifest.json", {**SHARED, "name": "plans"})
    assert "the manifest is of plans" in ade("workflow", "draft", "others", "plans", expect=2).err
    ade.write("lone/manifest.json", {**MEMBERS, "name": "plans"})
    assert "subscribe" in ade("workflow", "draft", "plans", "lone", expect=2).err
    draft = ade("workflow", "draft", "plans", "plans", "--json").json["id"]
    shown = ade("workflow", "show", "plans", "--json").json
    assert (shown["manifest"], shown["live"], shown["draft"]) == ("configs/_shared/plans/manifest.json", None, draft)
    assert '"name": "plans"' in ade("workflow", "show", "plans", "draft").out
    assert "\\x0a" not in ade("workflow", "show", "members", "live").out
    ade("workflow", "promote", "plans")
    assert ade("workflow", "show", "plans", "--json").json["live"] == draft


def test_history_is_replayed_with_the_draft_then_promoted_and_published_again(ade):
    for n in range(3):
        ade.write(f"m{n}.csv", CSV)
        ade("drop", f"m{n}.csv", "--tenant", "acme")
    ade("run", "--drain")
    before = sorted(path for path in (ade.bucket / "outputs").rglob("*") if path.is_file())
    fields = [{**field, "required": True} for field in SHARED["fields"][:1]]
    ade.write("manifest.json", {**SHARED, "fields": fields})
    ade("workflow", "draft", "members", ".")
    assert "there is nothing to compare" in ade("replay", "members", "--tenant", "nobody").err
    stopped = ade("replay", "members", "--timeout", "0", "--json", expect=3)
    assert "goes on with the same command" in stopped.err
    ade("run", "--drain")
    for _ in range(3):
        done = ade("replay", "members", "--timeout", "0", "--json", expect=None)
        ade("run", "--drain")
        if done.code != 3:
            break
    report = done.json
    assert (done.code, report["jobs"], report["differ"], report["not_compared"]) == (1, 3, 3, 0)
    assert all(one["changes"]["changes"] for one in report["differences"])
    assert sorted(path for path in (ade.bucket / "outputs").rglob("*") if path.is_file()) == before
    ade("workflow", "promote", "members")
    again = ade("replay", "members", "--republish", "--json", expect=1).json["republished"]
    ade("run", "--drain")
    assert [ade.state(job) for job in again] == ["SUCCEEDED"] * 3
