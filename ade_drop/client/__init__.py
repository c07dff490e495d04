"""A client for programs: drop files, wait for their results, read the rows.

    from ade_drop.client import connect

    ade = connect("data/bucket")
    result = ade.wait(ade.drop("members.xlsx", tenant="acme", manifest="manifest.json"))
    for row in result.rows():
        ...

It works over a folder, over S3 and over the job API, and imports nothing else of ade-drop.
"""

from ade_drop.client.clients import AsyncClient, Client, connect, connect_async
from ade_drop.client.errors import AdeError, DropRejected, NotDone, NotPublished, ResultCorrupt, Unavailable
from ade_drop.client.results import Drop, File, Result

__all__ = [
    "AdeError",
    "AsyncClient",
    "Client",
    "Drop",
    "DropRejected",
    "File",
    "NotDone",
    "NotPublished",
    "Result",
    "ResultCorrupt",
    "Unavailable",
    "connect",
    "connect_async",
]
