"""What stands in infra/deploy, docker-compose.yml and localstack/: linted, least in rights, and in step with the code."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from console.main import build_parser
from core.settings import Settings, unknown_variables
from infra.dynamodb_items import table_definition

ROLES = ("HandlerRole", "RunnerRole", "JanitorRole")
ROOT = Path(__file__).parents[2]
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
    policies = template["Resources"][role]["Properties"]["Policies"]
    return [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]


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


def test_the_template_passes_cfn_lint():
    lint = Path(sys.executable).with_name("cfn-lint")
    done = subprocess.run([lint, DEPLOY / "template.yaml"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


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
            assert not [r for r in allowed(template, role, action) if "/inbox/" in r or "/configs/" in r]

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


class TestCompose:
    def test_only_this_machine_reaches_it(self, compose: dict[str, Any]):
        ports = [port for service in compose["services"].values() for port in service.get("ports", [])]
        assert [port for port in ports if not port.startswith("127.0.0.1:")] == []

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
            Settings.from_env({k: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", v) for k, v in set_here.items()})

    def test_minio_and_the_listener_know_the_same_secret(self, compose: dict[str, Any]):
        services = compose["services"]
        sent = services["minio"]["environment"]["MINIO_NOTIFY_WEBHOOK_AUTH_TOKEN_ADE"]
        assert sent == f"Bearer {services['listener']['environment']['ADE_WEBHOOK_TOKEN']}"
        assert services["minio"]["environment"]["MINIO_NOTIFY_WEBHOOK_ENDPOINT_ADE"].endswith(":8090/events")

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
    pods = [doc["spec"]["template"]["spec"] for doc in kubernetes("Deployment")]
    assert len(pods) == 3
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        for container in pod["containers"]:
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert not container["securityContext"]["allowPrivilegeEscalation"]


def test_a_pod_that_must_go_may_finish_what_it_has():
    (pod,) = [
        doc["spec"]["template"]["spec"] for doc in kubernetes("Deployment") if doc["metadata"]["name"] == "ade-runner"
    ]
    given = {one["name"]: one["value"] for one in pod["containers"][0]["env"]}
    settings = Settings.from_env(given)
    assert settings.job_timeout_seconds < settings.drain_seconds < pod["terminationGracePeriodSeconds"] - 30


def test_keda_scales_the_runners_by_the_work_queue():
    (scaled,) = kubernetes("ScaledObject")
    assert scaled["spec"]["scaleTargetRef"]["name"] == "ade-runner"
    (settings,) = kubernetes("ConfigMap")
    (trigger,) = scaled["spec"]["triggers"]
    assert settings["data"]["ADE_QUEUE_URL"] == f"sqs://{trigger['metadata']['queueURL'].rsplit('/', 1)[1]}"


def kubernetes(kind: str) -> list[dict[str, Any]]:
    found = yaml.safe_load_all((DEPLOY / "kubernetes" / "ade-drop.yaml").read_text())
    return [doc for doc in found if doc["kind"] == kind]


def test_the_local_script_is_a_script_that_sh_understands():
    script = ROOT / "localstack/ready.d/10-ade.sh"
    subprocess.run(["sh", "-n", script], check=True)
    assert script.stat().st_mode & 0o111
