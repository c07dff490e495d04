"""What stands in infra/deploy, docker-compose.yml and localstack/: linted, least in rights, and in step with the code."""

import json
import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from console.cli.main import build_parser
from core.errors import UsageError
from core.notices import Allowed, Refusal
from core.settings import Settings, unknown_variables
from infra.aws import calls
from infra.aws.dynamodb_items import table_definition
from infra.deploy.plan import make_plan
from infra.local.presence import Pulse, alive_file
from runner import janitor
from tests.support.console import api_rig
from tests.support.stacks import resources

ROLES = ("HandlerRole", "RunnerRole", "JanitorRole")
ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "infra" / "deploy"


class _Cloud(yaml.SafeLoader):
    """YAML with CloudFormation's short forms, kept as they are written."""


_Cloud.add_multi_constructor(
    "!",
    lambda loader, tag, node: {
        tag: loader.construct_scalar(node)
        if isinstance(node, yaml.ScalarNode)
        else loader.construct_sequence(node, deep=True)
    },
)


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    return yaml.load((DEPLOY / "template.yaml").read_text(), _Cloud)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def statements(template: dict[str, Any], role: str) -> list[dict[str, Any]]:
    """All of them, also those that a parameter brings."""
    policies = template["Resources"][role]["Properties"]["Policies"]
    found = [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]
    return [statement["If"][1] if "If" in statement else statement for statement in found]


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def allowed(template: dict[str, Any], role: str, action: str) -> list[str]:
    """The resources that a role may do an action on, as the template writes them."""
    return [
        json.dumps(resource)
        for statement in statements(template, role)
        if action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    ]


@pytest.mark.slow
def test_the_template_passes_cfn_lint():
    lint = Path(sys.executable).with_name("cfn-lint")
    done = subprocess.run([lint, DEPLOY / "template.yaml"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_template_can_be_sent_as_it_is():
    """CloudFormation takes 51,200 bytes with the call; more would need a bucket first."""
    assert (DEPLOY / "template.yaml").stat().st_size < 51_200


def test_the_template_makes_the_table_that_the_code_expects(template: dict[str, Any]):
    made, wanted = template["Resources"]["Table"]["Properties"], table_definition("any")
    assert made["KeySchema"] == wanted["KeySchema"]
    assert made["GlobalSecondaryIndexes"] == wanted["GlobalSecondaryIndexes"]
    by_name = lambda entry: entry["AttributeName"]  # noqa: E731
    assert sorted(made["AttributeDefinitions"], key=by_name) == sorted(wanted["AttributeDefinitions"], key=by_name)


def test_the_local_script_makes_the_same_table():
    assert json.loads((ROOT / "localstack/ready.d/table.json").read_text()) == table_definition("ade-jobs")


def test_the_bucket_is_private_encrypted_and_versioned(template: dict[str, Any]):
    bucket = template["Resources"]["Bucket"]["Properties"]
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert bucket["BucketEncryption"]


def test_outputs_make_no_events(template: dict[str, Any]):
    _, rule, direct = template["Resources"]["Bucket"]["Properties"]["NotificationConfiguration"]["If"]
    assert rule == {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
    told = direct["QueueConfigurations"]
    assert {entry["Filter"]["S3Key"]["Rules"][0]["Value"] for entry in told} == {"inbox/", "configs/"}
    pattern = template["Resources"]["EventsRule"]["Properties"]["EventPattern"]
    assert pattern["detail"]["object"]["key"] == [{"prefix": "inbox/"}, {"prefix": "configs/"}]


def test_dead_letters_outlive_the_queues_they_come_from(template: dict[str, Any]):
    days = {
        n: r["Properties"]["MessageRetentionPeriod"]
        for n, r in template["Resources"].items()
        if "Queue" in r["Type"] and "MessageRetentionPeriod" in r["Properties"]
    }
    assert days["WorkDead"] > days["WorkQueue"]
    assert days["EventsDead"] > days["EventsQueue"]


@pytest.mark.parametrize("role", ROLES)
class TestRights:
    """By reading; tests/acceptance/test_cloud_roles.py has a server enforce what it can."""

    def test_no_right_is_given_on_everything(self, template: dict[str, Any], role: str):
        for statement in statements(template, role):
            assert "*" not in listed(statement["Resource"]), statement["Sid"]
            assert not [action for action in listed(statement["Action"]) if "*" in action], statement["Sid"]

    def test_nobody_changes_the_senders_files_or_configs(self, template: dict[str, Any], role: str):
        for action in ("s3:PutObject", "s3:DeleteObject"):
            changed = [r for r in allowed(template, role, action) if "/inbox/" in r or "/configs/" in r]
            versions = ['{"Sub": "${Bucket.Arn}/configs/*/.versions/*"}'] * (role != "HandlerRole")
            learns = role != "HandlerRole" and action == "s3:PutObject"
            assert changed == versions + ['{"Sub": "${Bucket.Arn}/configs/*.memory.json"}'] * learns

    def test_nobody_changes_the_infrastructure(self, template: dict[str, Any], role: str):
        actions = {action for statement in statements(template, role) for action in listed(statement["Action"])}
        assert not [
            a
            for a in actions
            if re.search(r":(Create(?!LogStream)|DeleteTable|DeleteQueue|DeleteBucket|Put\w*Policy|Set)", a)
        ]


def test_the_handler_starts_no_work_and_publishes_nothing(template: dict[str, Any]):
    assert not [r for r in allowed(template, "HandlerRole", "sqs:ReceiveMessage") if "WorkQueue" in r]
    written = allowed(template, "HandlerRole", "s3:PutObject")
    assert [r for r in written if not any(n in r for n in ("rejected.json", "status.json", ".probe"))] == []


def test_the_runner_reads_no_events(template: dict[str, Any]):
    assert not [r for r in allowed(template, "RunnerRole", "sqs:ReceiveMessage") if "EventsQueue" in r]


def test_only_runners_protect_tasks_and_only_those_of_their_cluster(template: dict[str, Any]):
    assert [role for role in ROLES if allowed(template, role, "ecs:UpdateTaskProtection")] == ["RunnerRole"]
    (where,) = allowed(template, "RunnerRole", "ecs:UpdateTaskProtection")
    assert json.loads(where)["Sub"].endswith(":task/${Cluster}/*")


def test_each_task_runs_under_its_own_role(template: dict[str, Any]):
    tasks = {
        n: r["Properties"]["TaskRoleArn"] for n, r in template["Resources"].items() if "TaskRoleArn" in r["Properties"]
    }
    assert tasks == {"RunnerTask": {"GetAtt": "RunnerRole.Arn"}, "JanitorTask": {"GetAtt": "JanitorRole.Arn"}}


def test_a_runner_gets_more_time_to_stop_than_its_drain_takes(template: dict[str, Any]):
    (container,) = template["Resources"]["RunnerTask"]["Properties"]["ContainerDefinitions"]
    drain = {one["Name"]: one["Value"] for one in container["Environment"]}["ADE_DRAIN_SECONDS"]
    assert 30 <= float(drain) <= container["StopTimeout"] - 20


MANIFESTS = ("ade-drop.yaml", "ade-drop-postgres.yaml")


def kubernetes(kind: str, *files: str) -> list[dict[str, Any]]:
    """The documents of a kind, of one file or of all."""
    texts = [(DEPLOY / "kubernetes" / name).read_text() for name in files or MANIFESTS]
    return [doc for text in texts for doc in yaml.safe_load_all(text) if doc["kind"] == kind]


COMPUTE = {"RunnerImage": "ade-drop:1", "Vpc": "vpc-1", "Subnets": "subnet-1,subnet-2"}
ZIP = {"HandlerBucket": "code", "HandlerKey": "handler.zip"}
EVERYTHING = COMPUTE | ZIP | {"EventsBy": "eventbridge", "Capacity": "ec2", "SandboxLevel": "isolated"}
KEY = "arn:aws:kms:eu-west-1:111122223333:key/0a1b2c3d"


def made(**given: str) -> dict[str, dict[str, Any]]:
    """Logical id → properties of what a stack with these parameters has."""
    return {name: one["Properties"] for name, one in resources(given).items()}


def of_type(kind: str, **given: str) -> dict[str, dict[str, Any]]:
    found = resources(given)
    return {name: one["Properties"] for name, one in found.items() if one["Type"] == kind}


def container(task: dict[str, Any]) -> dict[str, Any]:
    (only,) = task["ContainerDefinitions"]
    return only


def environment(task: dict[str, Any]) -> dict[str, str]:
    return {one["Name"]: one["Value"] for one in container(task)["Environment"]}


def test_an_update_of_the_stack_leaves_a_scaled_fleet_its_size():
    """CloudFormation sets a service to the count that the template names; one that it does not name it leaves alone."""
    assert "DesiredCount" not in made(**COMPUTE)["RunnerService"]
    assert made(**COMPUTE)["JanitorService"]["DesiredCount"] == 1, "nothing scales the janitor"


class TestTasks:
    @pytest.fixture(params=["fargate", "ec2"])
    def stack(self, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
        return made(**COMPUTE, Capacity=request.param)

    @pytest.mark.parametrize("name", ["RunnerTask", "JanitorTask"])
    def test_have_no_rights_and_write_to_volumes_only(self, stack: dict[str, Any], name: str):
        only = container(stack[name])
        assert only["ReadonlyRootFilesystem"] is True
        assert only["LinuxParameters"]["Capabilities"] == {"Drop": ["ALL"]}
        assert {limit["Name"] for limit in only["Ulimits"]} >= {"nofile"}
        mounted = {mount["SourceVolume"]: mount["ContainerPath"] for mount in only["MountPoints"]}
        assert mounted == {"scratch": "/var/lib/ade", "tmp": "/tmp"}
        assert {volume["Name"] for volume in stack[name]["Volumes"]} == mounted.keys()

    @pytest.mark.parametrize("name", ["RunnerTask", "JanitorTask"])
    def test_say_whether_they_are_alive(self, stack: dict[str, Any], name: str):
        check = container(stack[name])["HealthCheck"]["Command"]
        assert check[0] == "CMD-SHELL"
        assert f"run/{name.removesuffix('Task').lower()}.alive" in check[1]

    def test_take_nothing_that_their_capacity_refuses(self, stack: dict[str, Any]):
        """Fargate knows no security options, no tmpfs, and no limit but that of open files."""
        runner = stack["RunnerTask"]
        fargate = runner["RequiresCompatibilities"] == ["FARGATE"]
        assert container(runner).get("DockerSecurityOptions") == (None if fargate else ["no-new-privileges"])
        assert "Tmpfs" not in container(runner)["LinuxParameters"]
        assert fargate == ({limit["Name"] for limit in container(runner)["Ulimits"]} == {"nofile"})

    def test_the_images_volumes_belong_to_the_user_that_runs(self):
        """Both platforms give an empty volume the owner of the folder that the image declares as one."""
        text = (DEPLOY / "runner.Dockerfile").read_text()
        assert 'VOLUME ["/var/lib/ade", "/tmp"]' in text
        assert text.index("useradd") < text.index("VOLUME")

    @pytest.mark.parametrize(("machine", "named"), [("x86_64", "X86_64"), ("arm64", "ARM64")])
    def test_run_on_the_machine_that_was_asked_for(self, machine: str, named: str):
        stack = made(**COMPUTE, **ZIP, Machine=machine)
        assert stack["RunnerTask"]["RuntimePlatform"]["CpuArchitecture"] == named
        assert stack["HandlerFunction"]["Architectures"] == [machine]


class TestSandboxLevel:
    def test_is_handed_to_the_runner(self):
        assert environment(made(**COMPUTE)["RunnerTask"])["ADE_SANDBOX_MIN_LEVEL"] == "confined"
        stack = made(**COMPUTE, Capacity="ec2", SandboxLevel="isolated")
        assert environment(stack["RunnerTask"])["ADE_SANDBOX_MIN_LEVEL"] == "isolated"

    def test_isolated_needs_instances(self):
        with pytest.raises(UsageError, match="Capacity=ec2"):
            make_plan("ade", COMPUTE | {"SandboxLevel": "isolated"})

    def test_a_runner_that_refuses_to_start_ends_the_deployment(self):
        deployment = made(**COMPUTE)["RunnerService"]["DeploymentConfiguration"]
        assert deployment["DeploymentCircuitBreaker"] == {"Enable": True, "Rollback": True}


class TestInstances:
    @pytest.fixture
    def stack(self) -> dict[str, dict[str, Any]]:
        return made(**COMPUTE, Capacity="ec2", SandboxLevel="isolated")

    def test_there_are_none_on_fargate(self):
        assert not [name for name in made(**COMPUTE) if name.startswith("Instance")]
        assert made(**COMPUTE)["RunnerService"]["LaunchType"] == "FARGATE"

    def test_the_runners_run_on_them_and_bring_them(self, stack: dict[str, Any]):
        service = stack["RunnerService"]
        assert "LaunchType" not in service
        assert service["CapacityProviderStrategy"] == [{"CapacityProvider": "<InstanceCapacity>", "Weight": 1}]
        scaling = stack["InstanceCapacity"]["AutoScalingGroupProvider"]
        assert scaling["ManagedScaling"]["Status"] == "ENABLED"
        assert scaling["ManagedDraining"] == "ENABLED", "a runner may finish what it has before its instance goes"
        assert "<InstanceCapacity>" in stack["ClusterCapacity"]["CapacityProviders"]
        assert stack["InstanceGroup"]["MinSize"] == "0"

    def test_a_task_cannot_reach_the_credentials_of_its_instance(self, stack: dict[str, Any]):
        data = stack["InstanceTemplate"]["LaunchTemplateData"]
        assert data["MetadataOptions"]["HttpTokens"] == "required"
        assert data["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
        # A task with a network interface of its own is no hop away: only the agent can keep it off.
        assert "ECS_AWSVPC_BLOCK_IMDS=true" in data["UserData"]["Fn::Base64"]

    def test_their_engine_lets_a_plain_user_make_namespaces(self, stack: dict[str, Any]):
        script = stack["InstanceTemplate"]["LaunchTemplateData"]["UserData"]["Fn::Base64"]
        (line,) = re.findall(r"^\{.*\}$", script, re.MULTILINE)
        assert json.loads(line)["seccomp-profile"] == "unconfined"
        assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0

    def test_their_disks_are_encrypted_and_nothing_comes_in(self, stack: dict[str, Any]):
        data = stack["InstanceTemplate"]["LaunchTemplateData"]
        (disk,) = data["BlockDeviceMappings"]
        assert disk["Ebs"]["Encrypted"] is True
        assert data["SecurityGroupIds"] == ["<TaskGroup.GroupId>"]

    def test_a_machine_and_an_instance_of_another_kind_are_refused(self):
        with pytest.raises(UsageError, match="m7g"):
            make_plan("ade", COMPUTE | {"Capacity": "ec2", "Machine": "arm64", "InstanceType": "m7i.large"})


class TestAlarms:
    def test_tell_of_errors_throttling_and_a_silent_janitor(self):
        alarms = of_type("AWS::CloudWatch::Alarm", **COMPUTE, **ZIP)
        by_metric = {one.get("MetricName"): one for one in alarms.values()}
        assert {"Errors", "Throttles", "JanitorRounds"} <= by_metric.keys()
        for name in ("Errors", "Throttles"):
            assert by_metric[name]["Namespace"] == "AWS/Lambda"
            assert by_metric[name]["Dimensions"] == [{"Name": "FunctionName", "Value": "<HandlerFunction>"}]

    @pytest.mark.parametrize("what", ["Read", "Write"])
    def test_tell_of_throttling_of_the_table(self, what: str):
        alarm = of_type("AWS::CloudWatch::Alarm")[f"Table{what}ThrottleAlarm"]
        assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/DynamoDB", f"{what}ThrottleEvents")

    @pytest.mark.parametrize(("part", "given"), [("Handler", ZIP), ("Runner", COMPUTE)])
    def test_tell_of_every_call_that_was_throttled(self, part: str, given: dict[str, str]):
        """Indexes have metrics of their own; our parts know what they were refused."""
        stack = made(**given)
        (counted,) = stack[f"{part}Throttled"]["MetricTransformations"]
        alarm = stack["CallsThrottledAlarm"]
        assert (alarm["Namespace"], alarm["MetricName"]) == (counted["MetricNamespace"], counted["MetricName"])
        patterns = re.findall(r'\$\.why = "([^"]+)"', stack[f"{part}Throttled"]["FilterPattern"])
        throttled = [code for code in calls._BUSY if re.search("Thrott|Throughput|SlowDown", code)]
        assert [code for code in throttled if not any(fnmatch(code, pattern) for pattern in patterns)] == []

    def test_silence_of_the_janitor_is_an_alarm_and_not_a_lack_of_data(self):
        stack = made(**COMPUTE)
        (counted,) = stack["JanitorRounds"]["MetricTransformations"]
        alarm = stack["JanitorSilentAlarm"]
        assert (alarm["Namespace"], alarm["MetricName"]) == (counted["MetricNamespace"], counted["MetricName"])
        assert alarm["TreatMissingData"] == "breaching"
        assert "DefaultValue" not in counted
        assert stack["JanitorRounds"]["FilterPattern"] == f'{{ $.event = "{janitor.ALIVE}" }}'
        assert alarm["Period"] * alarm["EvaluationPeriods"] >= 3 * janitor.ALIVE_SECONDS


class TestKey:
    def test_without_one_aws_keeps_its_own(self):
        stack = made()
        assert stack["WorkQueue"]["SqsManagedSseEnabled"] is True
        assert stack["Table"]["SSESpecification"] == {"SSEEnabled": True}

    def test_encrypts_everything_that_holds_data(self):
        stack = made(**EVERYTHING, KmsKey=KEY)
        (rule,) = stack["Bucket"]["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}
        assert rule["BucketKeyEnabled"] is True
        for name in ("WorkQueue", "WorkDead", "EventsQueue", "EventsDead"):
            assert stack[name]["KmsMasterKeyId"] == KEY, name
            assert "SqsManagedSseEnabled" not in stack[name], name
        assert stack["Table"]["SSESpecification"] == {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": KEY}
        for name in ("HandlerLogs", "RunnerLogs"):
            assert stack[name]["KmsKeyId"] == KEY, name

    def test_every_role_may_use_it_through_the_services_alone(self):
        rights = made(**EVERYTHING, KmsKey=KEY)
        for role in ROLES:
            found = [
                statement
                for policy in rights[role]["Policies"]
                for statement in policy["PolicyDocument"]["Statement"]
                if statement["Sid"] == "key"
            ]
            assert [statement["Resource"] for statement in found] == [KEY], role
            assert "kms:ViaService" in found[0]["Condition"]["StringEquals"], role

    def test_the_store_learns_that_etags_say_nothing(self):
        """Under SSE-KMS an ETag is no digest of the content."""
        assert environment(made(**COMPUTE, KmsKey=KEY)["RunnerTask"])["ADE_STORE_URL"] == "s3://<Bucket>?etag=opaque"
        assert environment(made(**COMPUTE)["RunnerTask"])["ADE_STORE_URL"] == "s3://<Bucket>"


class TestNotices:
    TOPIC = "arn:aws:sns:eu-west-1:111122223333:ops"
    BUS = "arn:aws:events:eu-west-1:111122223333:event-bus/data"

    @staticmethod
    def rights(**given: str) -> dict[str, tuple[str, Any]]:
        """What the janitor may send, by statement."""
        (policy,) = made(**COMPUTE, **given)["JanitorRole"]["Policies"]
        found = [one for one in policy["PolicyDocument"]["Statement"] if one["Sid"] in {"topics", "buses"}]
        return {one["Sid"]: (one["Action"], one["Resource"]) for one in found}

    def test_without_receivers_the_janitor_may_send_none(self):
        assert self.rights() == {}

    def test_the_janitor_may_send_to_the_named_receivers_alone(self):
        both = f"{self.TOPIC},{self.TOPIC}-2"
        assert self.rights(NotifyTopics=both) == {"topics": ("sns:Publish", [self.TOPIC, f"{self.TOPIC}-2"])}
        assert self.rights(NotifyBuses=self.BUS) == {"buses": ("events:PutEvents", [self.BUS])}

    def test_nobody_else_may(self, template: dict[str, Any]):
        for role in ROLES:
            for action in ("sns:Publish", "events:PutEvents"):
                assert bool(allowed(template, role, action)) == (role == "JanitorRole"), (role, action)

    def test_manifests_may_name_exactly_those(self):
        stack = made(**COMPUTE, NotifyTopics=self.TOPIC, NotifyBuses=self.BUS)
        given = environment(stack["JanitorTask"])["ADE_NOTIFY_ALLOW"]
        allows = Allowed(given)
        for to in (self.TOPIC, self.BUS):
            assert not isinstance(allows.receiver(to), Refusal), given
        assert isinstance(allows.receiver(f"{self.TOPIC}-other"), Refusal)
        assert isinstance(
            Allowed(environment(made(**COMPUTE)["JanitorTask"])["ADE_NOTIFY_ALLOW"]).receiver(self.TOPIC), Refusal
        )


def test_everything_that_can_have_a_tag_has_the_one_that_was_asked_for():
    found = resources(EVERYTHING | {"TagKey": "team", "TagValue": "payroll"})
    untagged = {
        "AWS::S3::BucketPolicy",
        "AWS::SQS::QueuePolicy",
        "AWS::Logs::MetricFilter",
        "AWS::IAM::InstanceProfile",
    }
    untagged |= {"AWS::ApplicationAutoScaling::ScalableTarget", "AWS::ApplicationAutoScaling::ScalingPolicy"}
    untagged |= {"AWS::ECS::ClusterCapacityProviderAssociations"}
    missing = [
        name
        for name, one in found.items()
        if one["Type"] not in untagged and "'team'" not in str(one["Properties"]) + str(one["Properties"].get("Tags"))
    ]
    assert missing == []
    assert found["RunnerService"]["Properties"]["PropagateTags"] == "SERVICE"


def _settings(service: dict[str, Any], given: dict[str, str] | None = None) -> Settings:
    """Of a service of the compose file, with what its variables are set to, or their defaults."""
    filled = {
        name: re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: (given or {}).get(found[1], found[2]), text)
        for name, text in service.get("environment", {}).items()
        if name.startswith("ADE_")
    }
    return Settings.from_env(filled)


class TestCompose:
    def test_only_this_machine_reaches_it(self, compose: dict[str, Any]):
        ports = [port for service in compose["services"].values() for port in service.get("ports", [])]
        assert [port for port in ports if not port.startswith("127.0.0.1:")] == []

    def test_other_machines_get_in_by_another_file_only_which_has_no_secrets_of_its_own(self):
        text = (ROOT / "docker-compose.lan.yml").read_text()
        services = yaml.safe_load(text)["services"]
        (port,) = [port for service in services.values() for port in service.get("ports", [])]
        assert port.startswith("${ADE_LOCAL_BIND:?")
        assert port.endswith(":9000:9000")
        assert re.findall(r"\$\{\w+(?::-|-|\})", text) == [], "a default, or a variable that may be missing"

    def test_what_has_a_default_secret_is_set_again_in_that_file(self, compose: dict[str, Any]):
        other = yaml.safe_load((ROOT / "docker-compose.lan.yml").read_text())["services"]
        for name, service in compose["services"].items():
            defaults = {
                k
                for k, v in service.get("environment", {}).items()
                if re.search(r"\$\{ADE_LOCAL_(?!TABLE|QUEUE)\w+:-", v)
            }
            assert defaults <= other.get(name, {}).get("environment", {}).keys(), name

    def test_table_and_queue_are_one_database_that_outlives_its_container(self, compose: dict[str, Any]):
        services = compose["services"]
        settings = _settings(services["runner"])
        assert settings.table_url == settings.queue_url == "postgresql://ade@postgres/ade"
        (volume,) = services["postgres"]["volumes"]
        assert volume.split(":")[0] in compose["volumes"]

    def test_localstack_starts_only_where_it_is_asked_for(self, compose: dict[str, Any]):
        """By one file, which names it and has everything use it."""
        assert compose["services"]["cloud"]["profiles"] == ["localstack"]
        assert [name for name, one in compose["services"].items() if "cloud" in one.get("depends_on", {})] == []
        lines = (ROOT / "localstack/compose.env").read_text().splitlines()
        given = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
        assert given.pop("COMPOSE_PROFILES") == "localstack"
        settings = _settings(compose["services"]["runner"], given)
        assert settings.table_url == "dynamodb://ade-jobs?endpoint=http://cloud:4566"
        assert settings.queue_url == "sqs://ade-work?endpoint=http://cloud:4566"

    def test_promises_no_persistence_that_the_free_image_has_not(self, compose: dict[str, Any]):
        assert "PERSISTENCE" not in compose["services"]["cloud"]["environment"]
        assert compose["services"]["janitor"]["environment"]["ADE_SWEEP_SECONDS"] == "60", "finds lost drops soon"

    def test_every_image_is_pinned(self, compose: dict[str, Any]):
        images = {service["image"] for service in compose["services"].values()}
        assert [image for image in images if ":" not in image or image.endswith(":latest")] == []

    def test_every_service_waits_for_one_that_is_there(self, compose: dict[str, Any]):
        services = compose["services"]
        waited = {name for service in services.values() for name in service.get("depends_on", {})}
        assert waited <= services.keys()
        healthy = {
            n
            for s in services.values()
            for n, c in s.get("depends_on", {}).items()
            if c["condition"] == "service_healthy"
        }
        assert [name for name in healthy if "healthcheck" not in services[name]] == []

    def test_two_runners_a_janitor_a_listener_and_a_console(self, compose: dict[str, Any]):
        services = compose["services"]
        assert services["console"]["profiles"] == ["console"], "it is started by name, with the words to run"
        assert services["runner"]["deploy"]["replicas"] == 2
        assert services["janitor"]["command"] == ["janitor", "run"]
        assert services["listener"]["command"] == ["listen"]

    def test_every_service_that_stays_up_says_how_it_is(self, compose: dict[str, Any]):
        stays = {n: s for n, s in compose["services"].items() if s["restart"] == "unless-stopped"}
        assert [name for name, service in stays.items() if "healthcheck" not in service] == []

    def test_every_setting_is_one_that_the_product_knows(self, compose: dict[str, Any]):
        for name, service in compose["services"].items():
            set_here = {k: v for k, v in service.get("environment", {}).items() if k.startswith("ADE_")}
            assert unknown_variables(set_here) == [], name
            _settings(service)

    def test_minio_and_the_listener_know_the_same_secret(self, compose: dict[str, Any]):
        services = compose["services"]
        sent = services["minio"]["environment"]["MINIO_NOTIFY_WEBHOOK_AUTH_TOKEN_ADE"]
        assert sent == services["listener"]["environment"]["ADE_WEBHOOK_TOKEN"], "MinIO adds its own `Bearer`"
        assert services["minio"]["environment"]["MINIO_NOTIFY_WEBHOOK_ENDPOINT_ADE"].endswith(":8090/events")

    def test_no_service_that_works_on_drops_knows_minios_root(self, compose: dict[str, Any]):
        services = compose["services"]
        root = {services["minio"]["environment"][f"MINIO_ROOT_{name}"] for name in ("USER", "PASSWORD")}
        knows = {name for name, one in services.items() if root & set(one.get("environment", {}).values())}
        assert knows == {"minio", "users", "init"}
        assert [
            n for n in ("runner", "janitor", "listener", "console") if "users" not in services[n]["depends_on"]
        ] == []

    def test_their_user_gets_the_rights_of_an_operator_on_the_bucket(self, tmp_path: Path, compose: dict[str, Any]):
        """The script as it is, with an `mc` that writes down what it is asked; twice, as after a restart."""
        mc = tmp_path / "mc"
        mc.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
        mc.chmod(0o755)
        env = {
            "PATH": str(tmp_path), "MC_CONFIG_DIR": str(tmp_path), "POLICIES": str(DEPLOY / "policies"),
            "MINIO_ROOT_USER": "root", "MINIO_ROOT_PASSWORD": "r", "AWS_ACCESS_KEY_ID": "ade", "AWS_SECRET_ACCESS_KEY": "s",
        }  # fmt: skip
        for _ in range(2):
            subprocess.run(["/bin/sh", DEPLOY / "minio-users.sh"], env=env, check=True)
        asked = (tmp_path / "asked").read_text().splitlines()
        assert asked[:4] == asked[4:]
        assert asked[3] == "admin policy attach root ade-services --user ade"
        wanted = (DEPLOY / "policies" / "operator-minio.json").read_text().replace("${BUCKET}", "drops")
        assert json.loads((tmp_path / "policy.json").read_text()) == json.loads(wanted)
        assert compose["services"]["runner"]["environment"]["ADE_STORE_URL"].startswith("s3://drops?")

    @pytest.mark.parametrize("name", ["runner.Dockerfile", "handler.Dockerfile"])
    def test_an_image_can_be_built_on_a_base_by_its_digest(self, name: str):
        bases = re.findall(r"^FROM (\S+)", (DEPLOY / name).read_text(), re.MULTILINE)
        assert set(bases) == {"${BASE}"}

    @pytest.mark.parametrize("name", ["init", "listener", "runner", "janitor", "console"])
    def test_every_command_is_one_that_the_product_knows(self, compose: dict[str, Any], name: str):
        build_parser().parse_args(compose["services"][name]["command"])


@pytest.mark.parametrize("name", ["runner.Dockerfile", "handler.Dockerfile"])
def test_images_are_pinned_and_install_by_hash(name: str):
    text = (DEPLOY / name).read_text()
    assert not re.search(r"^FROM \S+:latest", text, re.MULTILINE)
    assert "--require-hashes" in text


def test_the_runner_image_does_not_run_as_root():
    assert re.search(r"^USER 10001$", (DEPLOY / "runner.Dockerfile").read_text(), re.MULTILINE)


def test_what_the_images_copy_is_there():
    for name in ("runner.Dockerfile", "handler.Dockerfile"):
        for line in re.findall(r"^COPY (?!--from)(.+)$", (DEPLOY / name).read_text(), re.MULTILINE):
            *sources, _ = line.split()
            assert [s for s in sources if not (ROOT / s).exists()] == []


def test_pods_have_no_privileges_and_no_token():
    pods = [doc["spec"]["template"]["spec"] for doc in (*kubernetes("Deployment"), *kubernetes("Job"))]
    assert len(pods) == 7
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        for container in pod["containers"]:
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert not container["securityContext"]["allowPrivilegeEscalation"]


@pytest.mark.parametrize("file", MANIFESTS)
def test_each_part_has_an_account_and_secret_of_its_own(file: str):
    accounts = {doc["metadata"]["name"] for doc in kubernetes("ServiceAccount", file)}
    parts = [*kubernetes("Deployment", file), *kubernetes("Job", file)]
    pods = {doc["metadata"]["name"]: doc["spec"]["template"]["spec"] for doc in parts}
    assert {name: pod["serviceAccountName"] for name, pod in pods.items()} == {name: name for name in accounts}
    secrets = [
        one["secretRef"]["name"]
        for pod in pods.values()
        for one in pod["containers"][0]["envFrom"]
        if "secretRef" in one
    ]
    assert len(secrets) == len(set(secrets)) == len(pods)


def test_pods_differ_between_the_files_only_in_where_things_are():
    """Secrets by another name, and a webhook where AWS has a queue of events."""
    aws, postgres = (
        {doc["metadata"]["name"]: doc["spec"]["template"]["spec"] for doc in kubernetes("Deployment", file)}
        for file in MANIFESTS
    )
    for name, pod in postgres.items():
        (only,) = pod["containers"]
        (other,) = aws[name]["containers"]
        own = {"envFrom"} | ({"env", "ports", "readinessProbe"} if name == "ade-listener" else set())
        assert {k: v for k, v in only.items() if k not in own} == {k: v for k, v in other.items() if k not in own}
        assert {k: v for k, v in pod.items() if k != "containers"} == {
            k: v for k, v in aws[name].items() if k != "containers"
        }


def test_every_folder_that_a_pod_writes_to_has_a_limit():
    for doc in kubernetes("Deployment"):
        pod = doc["spec"]["template"]["spec"]
        assert all(volume["emptyDir"]["sizeLimit"] for volume in pod["volumes"])
        (only,) = pod["containers"]
        assert only["securityContext"]["readOnlyRootFilesystem"] is True
        assert "ephemeral-storage" in only["resources"]["limits"]


def test_a_pod_whose_loop_stands_still_is_restarted():
    for doc in kubernetes("Deployment"):
        (only,) = doc["spec"]["template"]["spec"]["containers"]
        words = only["livenessProbe"]["exec"]["command"]
        assert words[:2] == ["sh", "-c"]
        assert f"/run/{only['name']}.alive" in words[2]


def probes() -> list[tuple[str, str]]:
    """Who is asked, and the command, of every check of a sign of life in any of the files."""
    found = [
        (container(task)["Name"], container(task)["HealthCheck"]["Command"][1])
        for task in of_type("AWS::ECS::TaskDefinition", **COMPUTE).values()
    ]
    for doc in kubernetes("Deployment"):
        (only,) = doc["spec"]["template"]["spec"]["containers"]
        found.append((only["name"], only["livenessProbe"]["exec"]["command"][2]))
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    found += [(name, services[name]["healthcheck"]["test"][1].replace("$$", "$")) for name in ("runner", "janitor")]
    return found


@pytest.mark.parametrize(("role", "command"), probes())
def test_a_check_of_life_follows_the_file(tmp_path: Path, role: str, command: str):
    """The commands as they stand, on a file that is fresh, old and not there."""
    data = re.search(r"ADE_STORAGE_DATA_DIR=(\S+)", (DEPLOY / "runner.Dockerfile").read_text())[1]
    path = alive_file(tmp_path / "run", role)
    assert f" {alive_file(Path(data) / 'run', role)} " in command
    here = command.replace(data, str(tmp_path))

    def alive() -> bool:
        return subprocess.run(["sh", "-c", here], capture_output=True, check=False).returncode == 0

    assert not alive()
    Pulse(path).beat()
    assert alive()
    os.utime(path, (path.stat().st_mtime - 3600,) * 2)
    assert not alive()


@pytest.mark.parametrize("file", MANIFESTS)
def test_pods_take_nothing_in_and_never_reach_a_nodes_credentials(file: str):
    policy, *others = kubernetes("NetworkPolicy", file)
    spec = policy["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in spec
    blocks = [to["ipBlock"] for rule in spec["egress"] for to in rule["to"] if "ipBlock" in to]
    assert blocks == [{"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}]
    labels = spec["podSelector"]["matchLabels"].items()
    for doc in (*kubernetes("Deployment", file), *kubernetes("Job", file)):
        assert labels <= doc["spec"]["template"]["metadata"]["labels"].items()
    # All but the webhook, where there is one: its store may reach that port of the listener.
    assert [one["spec"]["podSelector"] for one in others] == [{"matchLabels": {"app": "ade-listener"}}] * len(others)
    assert [one["spec"]["ingress"][0]["ports"] for one in others] == [[{"protocol": "TCP", "port": 8090}]] * len(others)


def test_a_pod_that_must_go_may_finish_what_it_has():
    (pod,) = [
        doc["spec"]["template"]["spec"]
        for doc in kubernetes("Deployment", "ade-drop.yaml")
        if doc["metadata"]["name"] == "ade-runner"
    ]
    given = {one["name"]: one["value"] for one in pod["containers"][0]["env"]}
    settings = Settings.from_env(given)
    assert settings.job_timeout_seconds < settings.drain_seconds < pod["terminationGracePeriodSeconds"] - 30


def test_keda_scales_the_runners_by_the_work_queue():
    (scaled,) = kubernetes("ScaledObject", "ade-drop.yaml")
    assert scaled["spec"]["scaleTargetRef"]["name"] == "ade-runner"
    (settings,) = kubernetes("ConfigMap", "ade-drop.yaml")
    (trigger,) = scaled["spec"]["triggers"]
    assert settings["data"]["ADE_QUEUE_URL"] == f"sqs://{trigger['metadata']['queueURL'].rsplit('/', 1)[1]}"


def test_every_setting_of_the_pods_is_one_that_the_product_knows():
    for doc in kubernetes("ConfigMap"):
        given = {name: value for name, value in doc["data"].items() if name.startswith("ADE_")}
        assert unknown_variables(given) == []
        assert Settings.from_env(given).queue_url


class TestConsoleOnKubernetes:
    @pytest.fixture(scope="class")
    @classmethod
    def pod(cls) -> dict[str, Any]:
        (deployment,) = kubernetes("Deployment", "ade-console.yaml")
        return deployment["spec"]["template"]

    def test_it_has_no_privileges_no_token_and_bounded_folders(self, pod: dict[str, Any]):
        spec = pod["spec"]
        (only,) = spec["containers"]
        assert spec["securityContext"]["runAsNonRoot"]
        assert not spec["automountServiceAccountToken"]
        assert only["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert all(volume["emptyDir"]["sizeLimit"] for volume in spec["volumes"])
        build_parser().parse_args(only["args"])

    def test_nobody_gets_in_without_a_token_or_by_another_name(self, pod: dict[str, Any]):
        (only,) = pod["spec"]["containers"]
        given = {one["name"]: one["value"] for one in only["env"]}
        assert unknown_variables(given) == []
        settings = Settings.from_env(given)
        assert not settings.console_tokenless
        assert settings.console_hosts
        assert settings.console_listen.endswith(f":{only['ports'][0]['containerPort']}")

    def test_the_service_and_the_policy_lead_to_it(self, pod: dict[str, Any]):
        (service,), (policy,) = (kubernetes(kind, "ade-console.yaml") for kind in ("Service", "NetworkPolicy"))
        labels = pod["metadata"]["labels"].items()
        assert service["spec"]["selector"].items() <= labels
        assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels
        (only,) = pod["spec"]["containers"]
        assert policy["spec"]["ingress"][0]["ports"] == [{"protocol": "TCP", "port": only["ports"][0]["containerPort"]}]

    def test_its_probe_is_answered_whatever_its_hosts_are(self, pod: dict[str, Any], tmp_path: Path):
        """A kubelet names the address of the pod as host, unless it is told otherwise."""
        (only,) = pod["spec"]["containers"]
        probe = only["livenessProbe"]["httpGet"]
        headers = {one["name"]: one["value"] for one in probe["httpHeaders"]}
        with api_rig(tmp_path, console_hosts="console.example.org", console_tokenless=False) as rig:
            assert rig.from_afar(**headers).get(probe["path"]).status_code == 200
            assert rig.from_afar(Host="10.1.2.3:8020").get(probe["path"]).status_code == 421


def test_the_local_script_is_a_script_that_sh_understands():
    script = ROOT / "localstack/ready.d/10-ade.sh"
    subprocess.run(["sh", "-n", script], check=True)
    assert script.stat().st_mode & 0o111
