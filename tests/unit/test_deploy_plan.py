"""`ade deploy plan`: what the template would create, decided without asking AWS."""

import json
from pathlib import Path

import pytest

from core.errors import UsageError
from infra.deploy.plan import DeployPlan, make_plan
from infra.deploy.template import TEMPLATE, Template
from tests.acceptance.ade import Ade

COMPUTE = {"RunnerImage": "ade-drop:1", "Vpc": "vpc-1", "Subnets": "subnet-1,subnet-2"}
ZIP = {"HandlerBucket": "code", "HandlerKey": "handler.zip"}


def ids(plan: DeployPlan) -> set[str]:
    return {one.id for one in plan.resources}


def test_without_images_there_is_no_compute():
    plan = make_plan("ade", {})
    assert {one.type.split("::")[1] for one in plan.resources} == {"S3", "SQS", "DynamoDB", "CloudWatch"}
    assert plan.rights == {}


def test_a_zip_brings_the_handler_and_only_that():
    more = ids(make_plan("ade", ZIP)) - ids(make_plan("ade", {}))
    told = {"HandlerErrorsAlarm", "HandlerThrottlesAlarm", "HandlerThrottled", "CallsThrottledAlarm"}
    assert more == {"HandlerRole", "HandlerLogs", "HandlerFunction", "HandlerEvents"} | told


def test_an_image_brings_the_same_handler():
    assert ids(make_plan("ade", {"HandlerImage": "h:1"})) == ids(make_plan("ade", ZIP))


def test_one_runner_at_most_needs_no_scaling():
    one, many = make_plan("ade", COMPUTE | {"MaxRunners": "1"}), make_plan("ade", COMPUTE)
    assert ids(many) - ids(one) == {"RunnerScaling", "RunnerScalingPolicy"}


def test_eventbridge_brings_a_rule():
    assert ids(make_plan("ade", {"EventsBy": "eventbridge"})) - ids(make_plan("ade", {})) == {"EventsRule"}


def test_what_is_left_out_is_said():
    plan = make_plan("ade", {})
    assert ids(plan).isdisjoint(plan.left_out)
    assert "RunnerService" in plan.left_out


def test_names_follow_the_stack():
    names = {one.id: one.name for one in make_plan("payroll", {}).resources}
    assert names["Bucket"] == "payroll-drops-<account>"
    assert names["WorkQueue"] == "payroll-work"


def test_every_role_has_its_rights_told():
    plan = make_plan("ade", COMPUTE | ZIP)
    assert set(plan.rights) == {"HandlerRole", "RunnerRole", "JanitorRole", "ExecutionRole"}
    inputs = next(right for right in plan.rights["RunnerRole"] if right.sid == "inputs")
    assert inputs.actions == ["s3:GetObject", "s3:GetObjectVersion"]
    assert inputs.on == ["<Bucket>/inbox/*", "<Bucket>/configs/*"]


def test_alarms_are_told_to_the_topic():
    topic = "arn:aws:sns:eu-west-1:111122223333:ops"
    assert {tuple(alarm.tells) for alarm in make_plan("ade", {"AlarmTopic": topic}).alarms} == {(topic,)}
    assert {tuple(alarm.tells) for alarm in make_plan("ade", {}).alarms} == {()}


def test_the_cost_at_rest_is_that_of_the_tasks_and_alarms():
    plan = make_plan("ade", COMPUTE)
    assert [cost.dollars_a_month for cost in plan.monthly] == [36.04, 9.01, 0.80]


def test_on_instances_the_runners_cost_what_an_instance_costs():
    plan = make_plan("ade", COMPUTE | {"Capacity": "ec2"})
    assert [cost.dollars_a_month for cost in plan.monthly] == [73.58, 9.01, 0.80]


def test_no_resource_hides_an_unresolved_function():
    for one in make_plan("ade", COMPUTE | ZIP | {"EventsBy": "eventbridge", "Capacity": "ec2"}).resources:
        assert "{" not in one.name + one.about, one


class TestWrongParameters:
    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"Nonsense": "1"}, "Nonsense: no such parameter"),
            ({"MaxRunners": "0"}, "MaxRunners='0': must be a whole number from 1 up"),
            ({"MaxRunners": "many"}, "MaxRunners='many'"),
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
        assert len(bucket.name.replace("<account>", "1" * 12)) <= 63


def test_a_condition_of_another_kind_is_an_error_and_no_guess():
    text = TEMPLATE.read_text().replace(
        'Compute: !Not [!Equals [!Ref RunnerImage, ""]]', "Compute: !Surprise [!Ref RunnerImage]"
    )
    with pytest.raises(ValueError, match="Surprise"):
        Template("ade", {}, text).resources()


class TestCommand:
    @pytest.fixture
    def ade(self, tmp_path: Path) -> Ade:
        return Ade(tmp_path, within=True)

    def test_prints_resources_rights_costs_and_how_to_create_it(self, ade: Ade):
        said = ade(
            "deploy", "plan", "--stack", "pay", *(w for k, v in COMPUTE.items() for w in ("--set", f"{k}={v}"))
        ).out
        for part in ("pay-jobs", "RunnerRole may, and nothing else:", "ecs:UpdateTaskProtection", "36.04"):
            assert part in said
        assert "--stack-name pay" in said

    def test_gives_the_same_as_json(self, ade: Ade):
        told = ade("deploy", "plan", "--json").json
        assert {one["id"] for one in told["resources"]} == ids(make_plan("ade", {}))
        assert set(told) == {"stack", "parameters", "resources", "left_out", "rights", "alarms", "monthly", "command"}

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
