"""boto3 clients for an address."""

import threading
from typing import Any

import boto3
import botocore.loaders
import botocore.session
from botocore.config import Config

from infra.addresses import Address

_LOCK = threading.Lock()
_MODELS = botocore.loaders.create_loader()  # parsing a service's model takes longer than most calls


def client(address: Address, *, read_timeout: float = 30.0, connect_timeout: float = 5.0) -> Any:
    """A boto3 client, safe to share between threads; infra/remote.py does all the waiting and trying again."""
    own_server = address.endpoint is not None
    config = Config(
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        retries={"total_max_attempts": 1},
        max_pool_connections=32,
        # Older S3 clones know no checksum but Content-MD5, which we send ourselves.
        request_checksum_calculation="when_required" if own_server else "when_supported",
        response_checksum_validation="when_required" if own_server else "when_supported",
        s3={"addressing_style": address.options.get("addressing", "path" if own_server else "auto")},
    )
    with _LOCK:
        core = botocore.session.get_session()
        core.register_component("data_loader", _MODELS)
        session = boto3.session.Session(botocore_session=core, region_name=address.region)
        region = address.region or session.region_name or ("us-east-1" if own_server else None)
        return session.client(address.service, endpoint_url=address.endpoint, region_name=region, config=config)
