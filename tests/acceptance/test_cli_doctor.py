"""`ade doctor` where something is wrong: it says what, and how to fix it."""

import json

import pytest

from tests.acceptance.ade import MEMBERS, Ade


@pytest.fixture
def ade(tmp_path):
    return Ade(tmp_path, {"ADE_SANDBOX_MIN_LEVEL": "limits"}, within=True)


def found(done, name, level="wrong"):
    """What a check said and how to fix it, where it stands at this level."""
    return [(c["said"], c["remedy"]) for c in done.json["checks"] if (c["name"], c["level"]) == (name, level)]


def test_a_machine_with_nothing_wrong_is_well_and_nothing_is_made(ade):
    done = ade("doctor", "--json")
    assert done.json["ok"]
    assert not ade.data.exists()


def test_a_read_only_data_folder_is_named(ade):
    ade("sweep")
    ade.data.chmod(0o555)
    try:
        ((said, remedy),) = found(ade("doctor", "--json", expect=1), "data folder")
    finally:
        ade.data.chmod(0o755)
    assert str(ade.data) in said
    assert "chmod u+w" in remedy
    assert "ADE_STORAGE_DATA_DIR" in remedy


def test_a_data_folder_that_is_a_file_is_named(ade):
    ade.data.touch()
    ((said, _),) = found(ade("doctor", "--json", expect=1), "data folder")
    assert "is not a folder" in said


def test_every_bad_variable_is_named_and_the_other_checks_go_on(ade):
    done = ade("doctor", "--json", expect=1, ADE_MAX_CONCURRENCY="many", ADE_LEASE_SECONDS="-1")
    said = " ".join(said for said, _ in found(done, "settings"))
    assert "ADE_MAX_CONCURRENCY='many': must be a whole number" in said
    assert "ADE_LEASE_SECONDS='-1'" in said
    assert found(done, "data folder", "ok")


def test_rules_with_the_network_are_a_warning(ade):
    ((said, remedy),) = found(ade("doctor", "--json", ADE_RUNTIME_NETWORK_ACCESS="true"), "network", "warning")
    assert "asks every caller for a token" in said
    assert "ade token new" in remedy


def test_two_settings_that_do_not_fit_each_other_are_named(ade):
    done = ade("doctor", "--json", expect=1, ADE_LEASE_SECONDS="2", ADE_HEARTBEAT_SECONDS="2")
    assert "ADE_HEARTBEAT_SECONDS" in found(done, "settings")[0][0]


def test_a_misspelt_variable_gets_a_suggestion(ade):
    done = ade("doctor", "--json", ADE_MAX_CONCURENCY="4")
    assert ("ADE_MAX_CONCURENCY is not a setting of ade-drop", "did you mean ADE_MAX_CONCURRENCY?") in found(
        done, "settings", "warning"
    )


def test_a_full_queue_is_named_with_its_tenant(ade):
    ade.write("manifest.json", {**MEMBERS, "sweep": {"n": [1, 2, 3]}})
    ade.write("m.csv", "Member #,Gross Pay\nM1,1\n")
    ade("drop", "m.csv", "--manifest", "manifest.json", "--tenant", "acme")
    done = ade("doctor", "--json", expect=1, ADE_QUEUE_SIZE="2")
    said = dict(found(done, "queue"))
    full = "queue full: tenant acme has 3 jobs waiting, over ADE_QUEUE_SIZE=2"
    assert "ade run" in said[full]
    assert any("no runner is alive" in line for line in said)


def test_a_quarantine_is_one_warning_whose_remedy_ends_it(ade):
    ade("pause", "tenant", "globex")
    ade("quarantine", "acme")
    remedies = [one["remedy"] for one in ade("doctor", "--json", expect=None).json["checks"] if one["remedy"]]
    assert [text for text in remedies if "acme" in text] == ["`ade quarantine acme --end`, if that is over"]
    assert "ade resume tenant globex" in remedies


def test_a_pause_can_be_listed(ade):
    ade("pause", "workflow", "acme", "members")
    ((_, remedy),) = found(ade("doctor", "--json"), "queue", "warning")
    assert remedy == "ade resume workflow acme members"


def test_a_wheelhouse_that_is_not_there_is_named(ade):
    done = ade("doctor", "--json", expect=1, ADE_WHEELHOUSE=str(ade.home / "none"))
    assert "is not a folder" in found(done, "wheelhouse")[0][0]


def test_a_table_that_is_no_database_is_named(ade):
    ade("sweep")
    for path in ade.data.glob("ade.sqlite*"):
        path.unlink()
    (ade.data / "ade.sqlite").write_bytes(b"this is no database" * 100)
    assert found(ade("doctor", "--json", expect=1), "table")


def test_a_workflow_that_is_a_link_is_named(ade):
    elsewhere = ade.write("elsewhere/manifest.json", "{}").parent
    shared = ade.data / "bucket/configs/_shared"
    shared.mkdir(parents=True)
    (shared / "members").symlink_to(elsewhere)
    done = ade("doctor", "--json")
    (check,) = [check for check in done.json["checks"] if check["name"] == "configs"]
    assert check["level"] == "warning"
    assert "configs/_shared/members" in check["said"]


def test_people_read_the_remedy_below_the_finding(ade):
    said = ade("doctor", expect=1, ADE_MAX_CONCURRENCY="many").out
    assert "fix: correct or unset ADE_MAX_CONCURRENCY" in said


def test_any_command_with_a_bad_variable_says_which(ade):
    assert "ADE_MAX_ATTEMPTS='x'" in ade("jobs", expect=2, ADE_MAX_ATTEMPTS="x").err


def test_an_error_of_a_command_is_json_where_json_was_asked_for(ade):
    done = ade("status", "nothing", "--json", expect=2)
    assert json.loads(done.out)["exit"] == 2
