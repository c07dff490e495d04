"""What a manifest makes of the objects around it: which keys concern it, which jobs it gives, in which state."""

import json
import time

import pytest

from core import drops
from core.drops import Package, find_package, is_placeholder, make_workflow, plan, too_many, unselected, without_input
from core.errors import ManifestInvalid
from core.jobs import State, job_id
from core.manifests import parse_manifest
from core.ports import ObjectInfo

NOW = 1_750_000_000.0
LOCAL, STANDING = "inbox/acme/d/manifest.json", "configs/acme/w/manifest.json"


def info(key, *, size=5, modified=NOW, **metadata):
    meta = {name.replace("_", "-"): value for name, value in metadata.items()}
    return ObjectInfo(key=key, version="1", digest=f"digest of {key}", size=size, modified=modified, metadata=meta)


def workflow(at=LOCAL, **manifest):
    body = {"manifest": 1, "name": "members", "fields": [{"name": "id"}]} | manifest
    return make_workflow(parse_manifest(json.dumps(body).encode()), info(at))


def standing(*patterns, **more):
    return workflow(STANDING, subscribe=list(patterns or ["*.csv"]), **more)


def auxiliary(path, **more):
    return {"inputs": {"auxiliary": [{"name": "rates", "path": path} | more]}}


def planned(made, *keys, package=None, there=(), **metadata):
    """The jobs of keys; `there`: auxiliary inputs that have arrived."""
    return plan(
        made,
        [info(key, **metadata) for key in keys],
        package=package or Package((), 0.0),
        auxiliary={key: info(key) for key in there},
        now=NOW,
    )


class TestReach:
    @pytest.mark.parametrize(
        ("made", "reaches"),
        [
            (workflow(), False),
            (workflow(inputs={"primary": ["*.csv"]}), False),
            (workflow(inputs={"primary": ["sub/*.csv"]}), True),
            (workflow(inputs={"primary": ["**"]}), True),
            (workflow(config="rules"), True),
            (workflow(**auxiliary("rates.csv")), False),
            (workflow(**auxiliary("other/rates.csv")), True),
            (workflow(**auxiliary("inbox/acme/rates.csv")), True),
            (standing(), True),
        ],
    )
    def test_a_manifest_reaches_beyond_its_folder_where_it_names_what_is_elsewhere(self, made, reaches):
        assert made.reaches is reaches

    def test_a_local_manifest_selects_below_its_folder_and_a_standing_one_in_the_inbox(self):
        assert workflow().selects("inbox/acme/d/a.csv")
        assert not workflow().selects("inbox/acme/e/a.csv")
        assert standing().selects("inbox/acme/a.csv")
        assert not standing().selects("configs/acme/w/a.csv")
        assert not standing().selects("inbox/other/a.csv")

    def test_what_is_an_auxiliary_or_part_of_the_package_is_not_selected_but_used(self):
        made = workflow(inputs={"primary": ["**"], "auxiliary": [{"name": "rates", "path": "./rates.csv"}]})
        assert made.auxiliary_keys() == {"inbox/acme/d/rates.csv": "rates"}
        for key in ("inbox/acme/d/rates.csv", "inbox/acme/d/config/columns/id.py", "inbox/acme/d/config.zip"):
            assert made.uses(key)
            assert not made.selects(key)
        assert made.selects("inbox/acme/d/a.csv")
        assert not made.uses("inbox/acme/d/a.csv")

    @pytest.mark.parametrize("path", ["inbox/acme/rates.csv", "configs/acme/rates.csv", "configs/_shared/rates.csv"])
    def test_a_whole_key_of_an_auxiliary_counts_as_it_is(self, path):
        assert workflow(**auxiliary(path)).auxiliary_keys() == {path: "rates"}


class TestPackages:
    @pytest.mark.parametrize(
        ("config", "inside", "part"),
        [
            (None, "config/columns/a.py", True),
            (None, "config/row_types/a.txt", True),
            (None, "config/hooks/a.txt", True),
            (None, "config/lib/a.txt", True),
            (None, "config/rules.py", True),
            (None, "config/requirements.txt", True),
            (None, "config/a.csv", False),
            (None, "columns/a.py", False),
            (None, "config.zip", True),
            (".", "columns/a.py", True),
            (".", "row_types/a.py", True),
            (".", "hooks/a.py", True),
            (".", "lib/a.py", True),
            (".", "requirements.txt", True),
            (".", "a.py", False),
            (".", "config.zip", False),
            ("rules", "rules/a.csv", True),
            ("rules", "rules/.hidden", False),
            ("rules", "rulesx/a.py", False),
            ("rules", "config/columns/a.py", False),
            ("rules.zip", "rules.zip", True),
            ("rules.zip", "rules.zip/a.py", False),
            ("rules.zip", "rules.zipx", False),
        ],
    )
    def test_what_belongs_to_a_package(self, config, inside, part):
        made = workflow(**({"config": config} if config else {}))
        assert made.is_config(f"inbox/acme/d/{inside}") is part

    def test_a_shared_package_is_where_it_says(self):
        assert workflow(config="configs/_shared/p").config_place == "configs/_shared/p/"
        assert workflow(config="configs/_shared/p.zip").config_place == "configs/_shared/p.zip"

    def test_a_named_package_that_is_not_there_is_missing_and_one_that_is_not_named_is_not(self):
        assert find_package(workflow(config="rules"), []).missing == "inbox/acme/d/rules/"
        assert find_package(workflow(), []) == Package((), 0.0)

    def test_a_package_has_its_files_and_the_time_of_the_newest(self):
        files = [info("inbox/acme/d/rules/a.py", modified=5.0), info("inbox/acme/d/rules/b.py", modified=7.0)]
        found = find_package(workflow(config="rules"), [*files, info("inbox/acme/d/a.csv", modified=9.0)])
        assert found == Package(tuple(file.ref for file in files), 7.0)

    def test_a_package_has_at_most_so_many_files(self):
        files = [info(f"inbox/acme/d/rules/{n}.py", size=1) for n in range(501)]
        assert len(find_package(workflow(config="rules"), files[:500]).refs) == 500
        with pytest.raises(ManifestInvalid, match="501 files"):
            find_package(workflow(config="rules"), files)

    def test_a_package_has_at_most_twenty_mebibytes(self):
        most = 20 * 1024 * 1024
        assert find_package(workflow(config="rules"), [info("inbox/acme/d/rules/a.py", size=most)]).refs
        with pytest.raises(ManifestInvalid):
            find_package(workflow(config="rules"), [info("inbox/acme/d/rules/a.py", size=most + 1)])


class TestPlaces:
    def test_a_standing_manifest_subscribes_and_a_local_one_does_not(self):
        with pytest.raises(ManifestInvalid) as missing:
            workflow(STANDING)
        with pytest.raises(ManifestInvalid) as spare:
            workflow(subscribe=["*.csv"])
        assert [p.path for p in missing.value.problems] == [p.path for p in spare.value.problems] == ["$.subscribe"]

    @pytest.mark.parametrize("path", ["inbox/other/a.csv", "configs/other/a.csv"])
    def test_another_tenants_files_cannot_be_named(self, path):
        with pytest.raises(ManifestInvalid, match="outside tenant acme"):
            workflow(**auxiliary(path))

    def test_a_subject_is_the_file_or_its_drop(self):
        drop = {"inputs": {"per": "drop"}}
        assert workflow().subject("inbox/acme/d/a.csv") == "d/a.csv"
        assert workflow(**drop).subject("inbox/acme/d/x/a.csv") == "d"
        assert standing("**", **drop).subject("inbox/acme/x/y/a.csv") == "x/y"


class TestPlanning:
    def test_a_job_says_what_it_was_made_of(self):
        made = workflow(priority=3, **auxiliary("rates.csv", required=True))
        rules = Package((info("inbox/acme/d/config/rules.py").ref,), NOW + 5)
        (job,) = planned(made, "inbox/acme/d/a.csv", package=rules, there=["inbox/acme/d/rates.csv"])
        assert (job.state, job.reason, job.waiting_for) == (State.QUEUED, "", ())
        assert [(i.role, i.name, i.ref.key) for i in job.inputs] == [
            ("primary", "a.csv", "inbox/acme/d/a.csv"),
            ("auxiliary", "rates", "inbox/acme/d/rates.csv"),
        ]
        assert (job.tenant, job.workflow, job.subject, job.priority) == ("acme", "members", "d/a.csv", 3)
        assert job.job_id == job_id("acme", "members", job.identity)
        assert (job.stamp, job.created_at, job.updated_at) == (NOW + 5, NOW, NOW)
        assert (job.manifest, job.config) == (made.info.ref, rules.refs)
        assert job.history == (("QUEUED", NOW),)
        assert (job.announced, job.unpublished, job.ended_at, job.due_at) == (False, False, None, None)

    def test_the_package_and_the_manifest_make_another_generation(self):
        (one,) = planned(workflow(), "inbox/acme/d/a.csv")
        rules = Package((info("inbox/acme/d/config/rules.py").ref,), 0.0)
        (two,) = planned(workflow(), "inbox/acme/d/a.csv", package=rules)
        assert one.config_digest != two.config_digest
        assert one.identity != two.identity
        assert planned(workflow(), "inbox/acme/d/a.csv") == [one]

    def test_a_job_waits_for_all_that_is_required_and_has_not_come(self):
        inputs = {
            "per": "drop",
            "primary": ["a.csv", "./b.csv", "*.xlsx"],
            "auxiliary": [{"name": "rates", "path": "rates.csv"}, {"name": "x", "path": "x.csv", "required": False}],
        }
        missing = Package((), 0.0, missing="inbox/acme/d/rules/")
        (job,) = planned(workflow(config="rules", inputs=inputs), "inbox/acme/d/a.csv", package=missing)
        wanted = ("inbox/acme/d/rates.csv", "inbox/acme/d/b.csv", "inbox/acme/d/rules/")
        assert (job.state, job.waiting_for, job.announced) == (State.AWAITING, wanted, True)
        assert job.reason == f"waiting for {', '.join(wanted)}"
        assert is_placeholder(job)

    def test_files_of_their_own_wait_for_no_other(self):
        made = workflow(inputs={"primary": ["a.csv", "b.csv"]})
        assert [job.state for job in planned(made, "inbox/acme/d/a.csv")] == [State.QUEUED]

    @pytest.mark.parametrize(("later", "state"), [(0.0, State.QUEUED), (60.0, State.SCHEDULED)])
    def test_a_job_may_have_to_wait_for_its_time(self, later, state):
        at = "2025-06-15T15:06:40+00:00" if not later else "2025-06-15T15:07:40+00:00"
        (job,) = planned(workflow(not_before=at), "inbox/acme/d/a.csv")
        assert (job.state, job.due_at) == (state, NOW + later if later else None)
        assert job.announced is (state is State.SCHEDULED)

    @pytest.mark.parametrize(
        ("told", "state"),
        [
            ("2025-01-15T00:00:00+00:00", State.QUEUED),
            ("2025-01-15", State.QUEUED),
            ("2025-01-31T23:30:00", State.QUEUED),
            ("2025-02-01T00:30:00+02:00", State.QUEUED),
            ("2024-12-31T23:59:59", State.SKIPPED),
            ("nonsense", State.SKIPPED),
            ("", State.SKIPPED),
        ],
    )
    def test_data_outside_the_window_is_skipped_by_its_own_time(self, told, state):
        window = {"schedule": {"start_time": "2025-01-01T00:00:00Z", "end_time": "2025-02-01T00:00:00Z"}}
        (job,) = planned(workflow(**window), "inbox/acme/d/a.csv", data_time=told)
        assert job.state is state
        assert job.unpublished is (state is State.SKIPPED)
        assert job.ended_at == (NOW if state is State.SKIPPED else None)

    def test_a_time_without_a_zone_is_utc_wherever_the_machine_is(self, monkeypatch):
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        try:
            assert drops.data_time(workflow().manifest, [info("x", data_time="2025-06-15T15:06:40")]) == NOW
        finally:
            monkeypatch.undo()
            time.tzset()

    def test_the_earliest_time_that_is_reported_counts(self):
        made = workflow().manifest
        at = drops.data_time(made, [info("inbox/acme/d/a.csv", data_time="2025-06-15T15:06:40")])
        assert at == NOW
        two = [info("x", data_time="2025-06-15T15:06:41"), info("y", data_time="2025-06-15T15:06:40", modified=1.0)]
        assert drops.data_time(made, two) == NOW, "the earliest counts"
        assert drops.data_time(made, [info("x", modified=3.0), info("y", modified=2.0)]) == 2.0
        said = workflow(data_time="2025-06-15T15:06:42Z").manifest
        assert drops.data_time(said, two) == NOW + 2


class TestPlaceholders:
    def test_a_file_that_nobody_selects_says_so(self):
        job = unselected(info("inbox/acme/d/a.csv", modified=7.0), now=NOW, reason="no manifest selects it")
        assert (job.state, job.reason, job.announced) == (State.AWAITING, "no manifest selects it", True)
        assert job.waiting_for == ("a manifest that selects inbox/acme/d/a.csv",)
        assert [(i.role, i.name) for i in job.inputs] == [("primary", "a.csv")]
        assert (job.tenant, job.workflow, job.subject, job.stamp) == ("acme", "-", "d/a.csv", 7.0)
        assert is_placeholder(job)

    def test_a_manifest_without_files_says_what_it_waits_for(self):
        job = without_input(workflow(inputs={"primary": ["*.csv", "*.tsv"]}), now=NOW)
        assert job.waiting_for == ("inbox/acme/d/*.csv", "inbox/acme/d/*.tsv")
        assert job.reason == "waiting for inbox/acme/d/*.csv, inbox/acme/d/*.tsv"
        assert (job.subject, job.inputs, job.stamp) == ("d", (), NOW)
        assert job.manifest == workflow().info.ref
        assert is_placeholder(job)

    def test_a_drop_that_is_too_large_says_what_would_do(self):
        job = too_many(workflow(inputs={"per": "drop"}), "d", 5001, now=NOW)
        assert job.reason.startswith('5001 files are too many for one job ("per": "drop"); drop at most 5000 together')
        assert job.waiting_for == ("a smaller drop",)

    def test_a_real_job_is_none(self):
        (job,) = planned(workflow(), "inbox/acme/d/a.csv")
        assert not is_placeholder(job)
        (waiting,) = planned(workflow(**auxiliary("rates.csv", required=True)), "inbox/acme/d/a.csv")
        assert waiting.state is State.AWAITING
        assert not is_placeholder(waiting), "its package is there: it only waits"


def test_outputs_whose_keys_would_be_too_long_are_reported_before():
    assert not workflow().too_long("inbox/acme/d/a.csv")
    assert not workflow().too_long(f"inbox/acme/d/{'x' * 500}.csv")
    assert workflow().too_long(f"inbox/acme/d/{'x' * 990}.csv")
