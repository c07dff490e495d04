"""`ade deploy plan`: what the template says of itself, and whether what it says is so."""

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import UsageError
from infra.deploy.plan import ALWAYS, TEMPLATE, DeployPlan, make_plan
from tests.acceptance.ade import Ade
from tests.bench import prices
from tests.support.stacks import resources, template

COMPUTE = {"RunnerImage": "ade-drop:1", "Vpc": "vpc-1", "Subnets": "subnet-1,subnet-2"}
ZIP = {"HandlerBucket": "code", "HandlerKey": "handler.zip"}
HOURS = 730
# What each condition says in words, once more, as a decision on the parameters that are given.
HOLDS: dict[str, Callable[[dict[str, str]], bool]] = {
    ALWAYS: lambda _: True,
    "EventsBy is eventbridge": lambda p: p.get("EventsBy") == "eventbridge",
    "HandlerKey or HandlerImage is set": lambda p: "HandlerKey" in p or "HandlerImage" in p,
    "RunnerImage is set": lambda p: "RunnerImage" in p,
    "RunnerImage is set and MaxRunners is above 1": lambda p: "RunnerImage" in p and p.get("MaxRunners") != "1",
    "RunnerImage is set and Capacity is ec2": lambda p: "RunnerImage" in p and p.get("Capacity") == "ec2",
    "HandlerKey, HandlerImage or RunnerImage is set": lambda p: (
        {"HandlerKey", "HandlerImage", "RunnerImage"} & p.keys() != set()
    ),
}
DECIDING = [
    COMPUTE,
    {"MaxRunners": "1"},
    ZIP,
    {"HandlerImage": "h:1"},
    {"EventsBy": "eventbridge"},
    {"Capacity": "ec2"},
]


def ids(plan: DeployPlan) -> set[str]:
    return {one.id for one in plan.resources}


def named(plan: DeployPlan, name: str) -> str:
    (only,) = [one.cost for one in plan.resources if one.id == name]
    return only


class TestSaysWhatYamlSays:
    """The plan shows texts as they are written; a second reading, with CloudFormation's short forms, agrees."""

    def test_of_resources(self):
        said = {one.id: one for one in make_plan("ade", {}).resources}
        written = template()["Resources"]
        assert {name: one["Type"] for name, one in written.items()} == {name: one.type for name, one in said.items()}
        when = template()["Metadata"]["When"] | {None: ALWAYS}
        assert {name: when[one.get("Condition")] for name, one in written.items()} == {
            name: one.when for name, one in said.items()
        }
        for name, one in written.items():
            metadata, properties = one.get("Metadata", {}), one["Properties"]
            about = metadata.get("About") or properties.get("AlarmDescription") or properties.get("Description")
            assert (said[name].about, said[name].cost) == (about, metadata.get("Cost", "")), name

    def test_of_parameters_and_outputs(self):
        plan, written = make_plan("ade", {}), template()
        assert {one.name: (one.value, one.about) for one in plan.parameters} == {
            name: (str(one["Default"]), one["Description"]) for name, one in written["Parameters"].items()
        }
        assert plan.outputs == {name: one["Description"] for name, one in written["Outputs"].items()}
        assert plan.about == written["Description"]

    def test_of_rights(self):
        roles = {name for name, one in template()["Resources"].items() if one["Type"] == "AWS::IAM::Role"}
        plan = make_plan("ade", {})
        assert set(plan.rights) == roles
        filled = resources(
            COMPUTE | ZIP | {"Capacity": "ec2", "KmsKey": "KmsKey", "NotifyTopics": "t", "NotifyBuses": "b"}
        )
        for role in roles:
            statements = [
                (statement["Sid"], statement["Action"])
                for policy in filled[role]["Properties"].get("Policies", [])
                for statement in policy["PolicyDocument"]["Statement"]
            ]
            said = [(one.sid, one.actions) for one in plan.rights[role] if one.sid != "managed"]
            assert said == [(sid, action if isinstance(action, list) else [action]) for sid, action in statements]
            assert all(one.on and all(one.on) for one in plan.rights[role])


class TestConditionsInWords:
    def test_hold_exactly_where_the_template_makes_their_resources(self):
        plan = make_plan("ade", {})
        for taken in itertools.product([False, True], repeat=len(DECIDING)):
            given = {name: value for some in itertools.compress(DECIDING, taken) for name, value in some.items()}
            assert {one.id for one in plan.resources if HOLDS[one.when](given)} == set(resources(given)), given

    def test_are_there_for_every_condition_that_decides_on_a_resource(self):
        used = {one["Condition"] for one in template()["Resources"].values() if "Condition" in one}
        assert used == template()["Metadata"]["When"].keys()


class TestCosts:
    @pytest.mark.parametrize("task", ["RunnerTask", "JanitorTask"])
    def test_of_a_task_are_those_of_its_size(self, task: str):
        size = resources(COMPUTE)[task]["Properties"]
        hour = int(size["Cpu"]) / 1024 * prices.FARGATE_VCPU_HOUR + int(size["Memory"]) / 1024 * prices.FARGATE_GB_HOUR
        assert f"${hour * HOURS:.2f} a month" in named(make_plan("ade", {}), task)

    def test_of_instances_are_reported_for_every_type(self):
        told = dict(re.findall(r"(m7\w\.\w+) \$([0-9.]+)", named(make_plan("ade", {}), "InstanceTemplate")))
        hour = {"m7i.large": 0.1008, "m7i.xlarge": 0.2016, "m7g.large": 0.0816, "m7g.xlarge": 0.1632}
        assert told == {kind: f"{dollars * HOURS:.2f}" for kind, dollars in hour.items()}
        assert told.keys() == set(template()["Parameters"]["InstanceType"]["AllowedValues"])

    def test_of_every_alarm_are_reported(self):
        alarms = [one for one in make_plan("ade", {}).resources if one.type == "AWS::CloudWatch::Alarm"]
        assert {one.cost for one in alarms} == {"$0.10 a month"}


def test_everything_is_explained():
    plan = make_plan("ade", {})
    assert [one for one in plan.resources if not one.about] == []
    assert [one for one in plan.parameters if not one.about] == []


def test_names_follow_the_stack():
    names = {one.id: one.name for one in make_plan("payroll", {}).resources}
    assert names["Bucket"] == "payroll-drops-${AWS::AccountId}"
    assert names["WorkQueue"] == "payroll-work"
    assert names["HandlerThrottled"] == ""


def test_every_role_has_its_rights_reported():
    plan = make_plan("ade", {})
    inputs = next(right for right in plan.rights["RunnerRole"] if right.sid == "inputs")
    assert inputs.actions == ["s3:GetObject", "s3:GetObjectVersion"]
    assert inputs.on == ["${Bucket.Arn}/inbox/*", "${Bucket.Arn}/configs/*"]


def test_parameters_tell_which_were_given():
    given = {one.name: one.value for one in make_plan("ade", {"MaxRunners": "4"}).parameters if one.given}
    assert given == {"MaxRunners": "4"}


class TestWrongParameters:
    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"Nonsense": "1"}, "Nonsense: no such parameter"),
            ({"MaxRunners": "0"}, "MaxRunners='0': must be a whole number from 1 up"),
            ({"MaxRunners": "many"}, "MaxRunners='many'"),
            ({"MaxRunners": "-1"}, "MaxRunners='-1'"),
            ({"MaxRunners": "\u0664"}, "must be a whole number"),
            ({"Shards": "65"}, "Shards='65': must be a whole number from 1 to 64"),
            ({"LogDays": "8"}, "LogDays='8': must be one of"),
            ({"RunnerImage": "x:1"}, "Subnets: needed with RunnerImage"),
            ({"HandlerKey": "x.zip"}, "HandlerBucket: needed with HandlerKey"),
            (ZIP | {"HandlerImage": "h:1"}, "give one of the two"),
            (ZIP | {"HandlerKey": "p/ade-handler-0.1.0-python3.12-arm64.zip"}, "a zip for arm64, but Machine=x86_64"),
            (ZIP | {"HandlerKey": "ade-handler-0.1.0-python3.11-x86_64.zip"}, "but HandlerRuntime=python3.12"),
            ({"SandboxLevel": "isolated"}, "set Capacity=ec2"),
            ({"Capacity": "ec2", "InstanceType": "m7g.large"}, "must be one of m7i with Machine=x86_64"),
        ],
    )
    def test_are_named_with_what_is_allowed(self, given: dict[str, str], said: str):
        with pytest.raises(UsageError) as told:
            make_plan("ade", given)
        assert said in str(told.value)

    @pytest.mark.parametrize("name", ["", "Ade", "1ade", "a_b", "a" * 32])
    def test_a_stack_name_that_no_bucket_could_have_is_refused(self, name: str):
        with pytest.raises(UsageError, match="stack name"):
            make_plan(name, {})

    def test_the_longest_stack_name_gives_a_bucket_name_that_s3_takes(self):
        (bucket,) = [one for one in make_plan("a" * 31, {}).resources if one.id == "Bucket"]
        assert len(bucket.name.replace("${AWS::AccountId}", "1" * 12)) <= 63


class TestCommand:
    @pytest.fixture
    def ade(self, tmp_path: Path) -> Ade:
        return Ade(tmp_path, within=True)

    def test_prints_resources_rights_costs_and_how_to_create_it(self, ade: Ade):
        said = ade(
            "deploy", "plan", "--stack", "pay", *(w for k, v in COMPUTE.items() for w in ("--set", f"{k}={v}"))
        ).out
        for part in (
            "pay-jobs",
            "RunnerRole may, and nothing else:",
            "ecs:UpdateTaskProtection",
            "36.04",
            "* RunnerImage",
        ):
            assert part in said
        assert "--stack-name pay" in said

    def test_gives_the_same_as_json(self, ade: Ade):
        told = ade("deploy", "plan", "--json").json
        assert {one["id"] for one in told["resources"]} == ids(make_plan("ade", {}))
        fields = {"stack", "about", "parameters", "resources", "rights", "outputs", "review", "command"}
        assert set(told) == fields

    def test_a_parameter_without_a_value_is_a_usage_error(self, ade: Ade):
        assert "PARAMETER=VALUE" in ade("deploy", "plan", "--set", "MaxRunners", expect=2).err

    def test_the_template_is_printed_as_it_is(self, ade: Ade):
        assert ade("deploy", "template").out == TEMPLATE.read_text()
        ade("deploy", "template", "--to", ade.home / "t.yaml")
        assert (ade.home / "t.yaml").read_text() == TEMPLATE.read_text()
        assert json.loads(ade("deploy", "template", "--json").out)["template"] == TEMPLATE.read_text()

    @pytest.mark.parametrize("words", [("--python", "2.7"), ("--machine", "vax")])
    def test_a_package_for_something_that_lambda_has_not_is_refused(self, ade: Ade, words: tuple[str, str]):
        ade("deploy", "package", "--to", ade.home / "h.zip", *words, expect=2)
