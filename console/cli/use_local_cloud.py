"""`ade up --local-cloud`: a real S3 store and emulators of SQS and DynamoDB on this machine, and how to use them."""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator

from core.settings import Settings
from infra.aws.provision import provision, warm_up
from infra.deploy.local_cloud import Hook, Server, ministack, reserve_ports, seaweedfs

BUCKET = "drops"
_USUAL_PORTS = {"s3": 8333, "aws": 4566, "webhook": 8090}


@contextlib.contextmanager
def local_cloud(note: Callable[[str], None]) -> Iterator[Settings]:
    """Settings for the servers, which run while the context lasts. The bucket's content stays."""
    home = Settings.from_env(os.environ).storage_data_dir.absolute() / "local-cloud"
    ports = reserve_ports(home, _USUAL_PORTS)
    token = secrets.token_urlsafe(24)
    hook = Hook(f"http://127.0.0.1:{ports.webhook}/events", token)
    note("starting SeaweedFS and MiniStack on 127.0.0.1; the first time pip installs them ...")
    with contextlib.ExitStack() as servers:
        store = servers.enter_context(seaweedfs(home / "venvs", home / "seaweedfs", port=ports.s3, hook=hook))
        aws = servers.enter_context(
            ministack(home / "venvs", home / "ministack", services="sqs,dynamodb", port=ports.aws)
        )
        variables = {
            **store.environment,
            "ADE_STORE_URL": f"s3://{BUCKET}?endpoint={store.endpoint}",
            "ADE_TABLE_URL": f"dynamodb://ade-jobs?endpoint={aws.endpoint}",
            "ADE_QUEUE_URL": f"sqs://ade-work?endpoint={aws.endpoint}",
            "ADE_WEBHOOK_LISTEN": f"127.0.0.1:{ports.webhook}",
            "ADE_WEBHOOK_TOKEN": token,
        }
        os.environ.update(variables)  # boto3 reads its credentials there, as do the commands that people copy
        settings = Settings.from_env(os.environ)
        provision(settings, apply=True)
        warm_up(settings.store_url)
        for line in how_to(store, variables):
            note(line)
        yield settings


def how_to(store: Server, variables: dict[str, str]) -> list[str]:
    """Commands to drop a file with common tools, for another terminal."""
    target, endpoint = f"s3://{BUCKET}/inbox/acme/", store.endpoint
    flags = f"--s3-provider=SeaweedFS --s3-endpoint={endpoint} --s3-env-auth"
    shown = [name for name in variables if name.startswith("AWS_") or name.endswith("_URL")]
    return [
        f"the bucket is {BUCKET} at {endpoint}; in another terminal:",
        *(f"  export {name}='{variables[name]}'" for name in shown),
        "  mkdir -p drop",  # never `.`: run in a home folder, that would upload all of it
        "put your files and a manifest.json into the folder drop, then one of:",
        f"  aws --endpoint-url {endpoint} s3 cp drop {target} --recursive",
        f"  rclone copy drop :s3:{BUCKET}/inbox/acme {flags}",
        f"  s5cmd --endpoint-url {endpoint} cp 'drop/*' {target}",
        "  ade jobs",
    ]
