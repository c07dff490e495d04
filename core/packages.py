"""Config packages in a zip: what may be in one. Used before a job is made and again before it is unpacked."""

import stat
import zipfile
from io import BytesIO

from core.drops import MAX_PACKAGE_BYTES, MAX_PACKAGE_FILES
from core.errors import KeyRefused, PackageRefused
from core.keys import check_key

_MAX_RATIO = 200
_LINK_OR_SPECIAL = {stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK}


def check_zip(body: bytes) -> zipfile.ZipFile:
    """The open archive, every member plain, small and inside; PackageRefused names the first that is not."""
    try:
        archive = zipfile.ZipFile(BytesIO(body))
        members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise PackageRefused(f"config zip cannot be read: {error}; make it anew") from None
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
        if name.casefold() in seen:
            raise PackageRefused(f"config zip: entry {name!r} stands twice; keep one")
        seen.add(name.casefold())
        total += member.file_size
        if total > MAX_PACKAGE_BYTES or member.file_size > _MAX_RATIO * max(1024, member.compress_size):
            raise PackageRefused(
                f"config zip: entry {name!r} would unpack to {member.file_size} bytes; "
                f"a package may hold {MAX_PACKAGE_BYTES} bytes in all"
            )
    return archive


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """A member's content, held to the size it declared: the declaration itself is a claim."""
    try:
        with archive.open(member) as source:
            body = source.read(member.file_size + 1)
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, OSError) as error:
        raise PackageRefused(f"config zip: entry {member.filename!r} is damaged: {error}; make it anew") from None
    if len(body) > member.file_size:
        raise PackageRefused(f"config zip: entry {member.filename!r} is larger than it says; make it anew")
    return body
