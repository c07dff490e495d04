"""The cloud adapters over real servers, for the registry in adapters.py."""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from core.ports import ObjectStore
from infra.aws import client, parse_address
from infra.clocks import HandClock
from infra.local_cloud import Server
from infra.s3 import S3Store
from tests.contract import servers
from tests.contract.rigs import Factory, Rig

PAGE = 10  # so that small cases see several pages
_NUMBERS = itertools.count(1)


def _unique(kind: str) -> str:
    return f"ade-{kind}-{os.getpid()}-{next(_NUMBERS)}"


@contextmanager
def s3_store(url: str, environment: dict[str, str]) -> Iterator[ObjectStore]:
    os.environ.update(environment)
    with closing(S3Store(parse_address(url), page_size=PAGE)) as store:
        yield store


def s3(start: Callable[[], Server], *, versioned: bool = False) -> Factory[ObjectStore]:
    """A bucket on a server, the same for all tests of this process and empty at the start of each."""

    @contextmanager
    def factory(_: Path, clock: HandClock) -> Iterator[Rig[ObjectStore]]:
        server = start()
        bucket = f"ade-{os.getpid()}-{'versioned' if versioned else 'plain'}"
        url = f"s3://{bucket}?endpoint={server.endpoint}"
        with servers.credentials(server), s3_store(url, server.environment) as store:
            admin = client(parse_address(url))
            if bucket not in {b["Name"] for b in admin.list_buckets()["Buckets"]}:
                admin.create_bucket(Bucket=bucket)
            if versioned:
                admin.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
            admin.close()
            store.delete_prefix("")
            yield Rig(port=store, clock=clock, another=partial(s3_store, url, server.environment), remote=True)

    return factory
