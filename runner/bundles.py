"""The outputs of a first attempt as one staged object, and what its runner still has of them in memory.

Each object that is staged, copied and deleted costs three requests over a network, and several syncs of a disk. Small
outputs are staged together; the runner that has just committed them writes them to `outputs/` from memory, and any
other finisher from the bundle.
"""

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from core.errors import AnswerDoubted
from core.jobs import Job, OutputFile

BUNDLE = "bundle.zip"  # beside the staged files of an attempt; no output has that name
MOST_BYTES = 4 * 1024 * 1024  # of outputs that are staged together


@dataclass(frozen=True, slots=True)
class StoredProfile:
    """The profile that was there when an attempt was staged: its version, and its content. None: there was none."""

    version: str | None
    body: bytes | None


@dataclass(frozen=True, slots=True)
class InHand:
    """What the runner has that commits the first attempt of a job. Nothing of the job was published before."""

    contents: Mapping[str, bytes] | None  # by file; None: they are staged one by one
    profile: bytes | None = None  # of this drop
    previous: StoredProfile | None = None  # None: it is not known


def is_bundled(job: Job, files: Sequence[OutputFile]) -> bool:
    """Whether a job's outputs may be staged together. Its second attempt may meet what the first has left."""
    small = sum(file.size for file in files) <= MOST_BYTES
    return job.attempts_total == 1 and job.decision is None and job.mends is None and small


def pack(contents: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:  # gone in a moment: not worth compressing
        for name, body in contents.items():
            archive.writestr(zipfile.ZipInfo(name), body)
    return packed.getvalue()


def unpack(key: str, body: bytes, files: Sequence[OutputFile], besides: Sequence[str]) -> dict[str, bytes]:
    """The files that a row names, and those `besides` that are there; raises AnswerDoubted if they are others."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            there = {info.filename: info for info in archive.infolist() if info.file_size <= MOST_BYTES}
            wanted = [*(file.name for file in files), *besides]
            found = {name: archive.read(there[name]) for name in wanted if name in there}
    except (zipfile.BadZipFile, ValueError, OSError, EOFError) as error:
        raise AnswerDoubted(f"{key} is not what was staged ({type(error).__name__})") from error
    for file in files:
        if sha256(found.get(file.name, b"")).hexdigest() != file.sha256:
            raise AnswerDoubted(f"{key} has another {file.name} than was staged")
    return found
