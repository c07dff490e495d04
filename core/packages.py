"""What a zipped config package may contain. Checked before a job is created and again before unpacking."""

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable
from io import BytesIO

from core.drops import MAX_PACKAGE_BYTES, MAX_PACKAGE_FILES
from core.errors import KeyRefused, PackageRefused
from core.keys import check_key

_MAX_RATIO = 200
_MAX_NAME = 255  # bytes of a file's name, on every file system we know
_MAX_PATH = 1024
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError, OSError)
_LINK_OR_SPECIAL = {stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK}


def check_zip(body: bytes) -> zipfile.ZipFile:
    """The open archive, if every entry is plain, small and stays inside; PackageRefused names the first that is not."""
    try:
        archive = zipfile.ZipFile(BytesIO(body))
        members = archive.infolist()
    except (*_DAMAGE, struct.error) as error:
        raise PackageRefused(f"config zip cannot be read: {error}; create it again") from None
    if len(members) > MAX_PACKAGE_FILES:
        raise PackageRefused(f"config zip holds {len(members)} entries; at most {MAX_PACKAGE_FILES}")
    total, seen = 0, set[str]()
    for member in members:
        name = member.filename
        try:
            check_key(name.rstrip("/") if member.is_dir() else name)
        except KeyRefused:
            raise PackageRefused(f"config zip: entry {name!r} leaves its folder; use plain relative paths") from None
        if stat.S_IFMT(member.external_attr >> 16) in _LINK_OR_SPECIAL:
            raise PackageRefused(f"config zip: entry {name!r} is a link or a special file; store the file itself")
        if member.flag_bits & 0x1:
            raise PackageRefused(f"config zip: entry {name!r} is encrypted; store it plain")
        if member.compress_type not in _PLAIN:
            raise PackageRefused(f"config zip: entry {name!r} uses an unsupported compression method; use deflate")
        if name.casefold() in seen:
            raise PackageRefused(f"config zip: entry {name!r} is there twice; keep one")
        seen.add(name.casefold())
        total += member.file_size
        if total > MAX_PACKAGE_BYTES or member.file_size > _MAX_RATIO * max(1024, member.compress_size):
            raise PackageRefused(
                f"config zip: entry {name!r} would unpack to {member.file_size} bytes; "
                f"a package may hold {MAX_PACKAGE_BYTES} bytes in all"
            )
    check_names([member.filename for member in members if not member.is_dir()])
    return archive


def check_names(names: Iterable[str]) -> None:
    """Check that paths can exist together in one folder; PackageRefused names the first that cannot."""
    files = {*names}
    for name in sorted(files):
        *folders, _ = steps = name.split("/")
        if len(name.encode()) > _MAX_PATH or any(len(step.encode()) > _MAX_NAME for step in steps):
            raise PackageRefused(f"config: {name[:80]!r}… is too long for a file name; use a shorter one")
        for depth in range(1, len(folders) + 1):
            if (above := "/".join(folders[:depth])) in files:
                raise PackageRefused(f"config: {above!r} is a file and a folder at once; rename one of them")


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """A member's content, which must not be larger than the member declares."""
    try:
        with archive.open(member) as source:
            body = source.read(member.file_size + 1)
    except _DAMAGE as error:
        raise PackageRefused(f"config zip: entry {member.filename!r} is damaged: {error}; create it again") from None
    if len(body) > member.file_size:
        raise PackageRefused(f"config zip: entry {member.filename!r} is larger than it says; create it again")
    return body
