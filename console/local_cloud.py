"""`ade up --local-cloud`: a real S3 store and stand-ins for SQS and DynamoDB on this machine, and how to use them."""

import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Iterator

from core.settings import Settings
from infra.addresses import parse_address
from infra.local_cloud import Hook, Server, free_port, ministack, seaweedfs
from infra.provision import provision
from infra.s3 import S3Store

BUCKET = "drops"
_S3_PORT, _AWS_PORT, _HOOK_PORT = 8333, 4566, 8090


@contextlib.contextmanager
def local_cloud(say: Callable[[str], None]) -> Iterator[Settings]:
    """Settings for the servers that run for as long as the context lasts. What the bucket holds stays."""
    home = Settings.from_env(os.environ).storage_data_dir.absolute() / "local-cloud"
    token, hook_port = secrets.token_urlsafe(24), _port(_HOOK_PORT)
    hook = Hook(f"http://127.0.0.1:{hook_port}/events", token)
    say("starting SeaweedFS and MiniStack on 127.0.0.1; the first time pip installs them ...")
    with contextlib.ExitStack() as servers:
        store = servers.enter_context(seaweedfs(home / "venvs", home / "seaweedfs", port=_port(_S3_PORT), hook=hook))
        aws = servers.enter_context(
            ministack(home / "venvs", home / "ministack", services="sqs,dynamodb", port=_port(_AWS_PORT))
        )
        variables = {
            **store.environment,
            "ADE_STORE_URL": f"s3://{BUCKET}?endpoint={store.endpoint}",
            "ADE_TABLE_URL": f"dynamodb://ade-jobs?endpoint={aws.endpoint}",
            "ADE_QUEUE_URL": f"sqs://ade-work?endpoint={aws.endpoint}",
            "ADE_WEBHOOK_LISTEN": f"127.0.0.1:{hook_port}",
            "ADE_WEBHOOK_TOKEN": token,
        }
        os.environ.update(variables)  # boto3 reads its credentials there, and so do the commands that people copy
        settings = Settings.from_env(os.environ)
        provision(settings, apply=True)
        with contextlib.closing(S3Store(parse_address(settings.store_url))) as bucket:
            bucket.conditional()  # a young store may refuse its first writes; senders should not see that
        for line in how_to(store, variables):
            say(line)
        yield settings


def how_to(store: Server, variables: dict[str, str]) -> list[str]:
    """The exact words to drop a file with the usual tools, for another terminal."""
    target, endpoint = f"s3://{BUCKET}/inbox/acme/", store.endpoint
    flags = f"--s3-provider=SeaweedFS --s3-endpoint={endpoint} --s3-env-auth"
    kept = [name for name in variables if name.startswith("AWS_") or name.endswith("_URL")]
    return [
        f"the bucket is {BUCKET} at {endpoint}; in another terminal:",
        *(f"  export {name}='{variables[name]}'" for name in kept),
        f"  aws --endpoint-url {endpoint} s3 cp . {target} --recursive",
        f"  rclone copy . :s3:{BUCKET}/inbox/acme {flags}",
        f"  s5cmd --endpoint-url {endpoint} cp './*' {target}",
        "  ade jobs",
    ]


def _port(wanted: int) -> int:
    """The usual port where it is free, else another."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return free_port()
    return wanted
