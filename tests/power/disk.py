"""A disk that loses power: from the system calls of a real process to every state it may leave behind.

Theory of operation. strace records what a child does to one folder. What was written to a file is on the disk for sure
once the file was synced; a name in a folder is, once that folder was synced. Everything else may be there, may be
missing, or may be there in part, and in any order: after each call, `crashes` gives the extremes (all lost, all kept,
names without content, content without names, the last write torn, zeros where data should be, only the last write) and
a few mixtures drawn from a fixed seed. Two things no journalling file system does, and neither does this one: to lose a
file that was renamed under both names, and to keep a name without the folder it stands in.
"""

import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_CALLS = (
    "openat,openat2,write,pwrite64,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,"
    "fsync,fdatasync,ftruncate,close,lseek,dup,copy_file_range,sendfile,writev,pwritev,fallocate,mmap"
)
_LINE = re.compile(r"^\d+\s+(\w+)\((.*)\)\s+= (-?\d+|0x[0-9a-f]+)")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_UNKNOWN = {"copy_file_range", "sendfile", "writev", "pwritev", "fallocate"}
_MIXTURES = 3


def record(program: list[str], trace: Path) -> str:
    """Run a program under strace; what it did, one call a line."""
    command = ["strace", "-f", "-qq", "-xx", "-s", "9000000", "-e", f"trace={_CALLS}", "-o", str(trace)]
    done = subprocess.run([*command, sys.executable, *program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{program}: {done.stderr[-2000:]}"
    return trace.read_text()


@dataclass
class _File:
    durable: list[tuple[int, bytes | None]] = field(default_factory=list)  # offset and data; None: cut off there
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def size(self) -> int:
        return len(_content([*self.durable, *self.pending]))


@dataclass
class _Folder:
    durable: list[tuple[str, object]] = field(default_factory=list)  # a name and what it stands for; None: gone
    pending: list[tuple[str, object]] = field(default_factory=list)
    moved: dict[int, tuple["_Folder", tuple[str, object]]] = field(default_factory=dict)

    def entries(self) -> dict[str, object]:
        return _entries([*self.durable, *self.pending])

    def sync(self) -> None:
        for entry in self.pending:
            other = self.moved.pop(id(entry), None)
            if other is not None and other[1] in other[0].pending:  # a rename is written whole
                other[0].pending.remove(other[1])
                other[0].durable.append(other[1])
        self.durable += self.pending
        self.pending = []


class Disk:
    """What is below one folder, as the process sees it and as the disk has it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.top = _Folder()
        self._open: dict[int, list] = {}  # file or folder, position, whether it appends
        self.marks: list[str] = []

    def replay(self, trace: str) -> Iterator[str]:
        """Do what the trace says, call by call; yields the name of each that changed something here."""
        for line in trace.splitlines():
            found = _LINE.match(line)
            if found is None:
                continue
            name, rest, result = found[1], found[2], int(found[3], 0)
            if result < 0:
                continue
            strings = [bytes.fromhex(s.replace("\\x", "")) for s, _ in _STRING.findall(rest)]
            if self._call(name, rest, strings, result):
                yield f"{name} {b' '.join(s for s in strings if s.startswith(b'/')).decode(errors='replace')}"

    def _call(self, name: str, rest: str, strings: list[bytes], result: int) -> bool:
        plain = [part.strip() for part in _STRING.sub("", rest).split(",")]
        match name:
            case "openat" | "openat2":
                return self._opened(strings[0], plain[0], rest, result)
            case "close":
                self._open.pop(int(plain[0]), None)
            case "write" if int(plain[0]) == 1:
                self.marks.append(strings[0].decode())
                return True
            case "write" | "pwrite64":
                return self._written(name, plain, strings[0][:result])
            case "lseek" if there := self._open.get(int(plain[0])):
                there[1] = result
            case "ftruncate" if there := self._open.get(int(plain[0])):
                there[0].pending.append((int(plain[1]), None))
                return True
            case "fsync" | "fdatasync" if there := self._open.get(int(plain[0])):
                if isinstance(there[0], _Folder):
                    there[0].sync()
                else:
                    there[0].durable += there[0].pending
                    there[0].pending = []
                return True
            case "rename" | "renameat" | "renameat2" | "link" | "linkat":
                at = (plain[0], plain[2]) if "at" in name else ("", "")
                return self._named(*zip(strings[:2], at, strict=True), moves=name.startswith("rename"))
            case "unlink" | "unlinkat" | "rmdir":
                return self._entered(strings[0], plain[0], None)
            case "mkdir" | "mkdirat":
                return self._entered(strings[0], plain[0], _Folder())
            case "mmap":
                fd = int(plain[4]) if len(plain) > 4 and plain[4].isdigit() else -1
                shared = "MAP_SHARED" in rest and "PROT_WRITE" in rest
                assert not (shared and fd in self._open and not self._is_index(fd)), f"writes by memory map: {rest}"
            case _ if name in _UNKNOWN and plain[0].isdigit() and int(plain[0]) in self._open:
                raise AssertionError(f"this model knows no {name}")
        return False

    def _is_index(self, fd: int) -> bool:
        return self._open[fd][2] == "-shm"

    def _opened(self, raw: bytes, at: str, flags: str, fd: int) -> bool:
        found = self._find(raw, at)
        self._open.pop(fd, None)
        if found is None:
            return False
        folder, name = found
        there = folder.entries().get(name) if name else folder
        made = False
        if there is None and "O_CREAT" in flags:
            there, made = _File(), True
            folder.pending.append((name, there))
        if isinstance(there, _File) and "O_TRUNC" in flags and there.size():
            there.pending.append((0, None))
            made = True
        if there is not None:
            kind = "-shm" if raw.endswith(b"-shm") else "append" if "O_APPEND" in flags else ""
            self._open[fd] = [there, 0, kind]
        return made

    def _written(self, name: str, plain: list[str], data: bytes) -> bool:
        there = self._open.get(int(plain[0]))
        if there is None or there[2] == "-shm":
            return False
        file, position, kind = there
        if name == "pwrite64":
            position = int(plain[-1])
        else:
            position = file.size() if kind == "append" else position
            there[1] = position + len(data)
        file.pending.append((position, data))
        return True

    def _named(self, source: tuple[bytes, str], target: tuple[bytes, str], *, moves: bool) -> bool:
        a, b = self._find(*source), self._find(*target)
        if a is None or b is None:
            return False
        there = a[0].entries()[a[1]]
        if b[0].entries().get(b[1]) is there:
            return False  # both names are of one file: nothing happens
        added = (b[1], there)
        b[0].pending.append(added)
        if moves:
            removed = (a[1], None)
            a[0].pending.append(removed)
            a[0].moved[id(removed)] = (b[0], added)
        return True

    def _entered(self, raw: bytes, at: str, what: object) -> bool:
        found = self._find(raw, at)
        if found is None:
            return False
        found[0].pending.append((found[1], what))
        return True

    def _find(self, raw: bytes, at: str) -> tuple[_Folder, str] | None:
        """The folder that a path stands in, and its name there; None where it is elsewhere. `at`: an open folder."""
        path = Path(raw.decode(errors="surrogateescape"))
        if path.is_absolute():
            if not path.is_relative_to(self.root):
                return None
            folder, parts = self.top, path.relative_to(self.root).parts
        else:
            folder = self._open[int(at)][0] if at.isdigit() and int(at) in self._open else None
            parts = path.parts
        for part in parts[:-1]:
            folder = folder.entries().get(part) if isinstance(folder, _Folder) else None
        return (folder, parts[-1] if parts else "") if isinstance(folder, _Folder) else None

    # What a power loss leaves

    def crashes(self, seed: int) -> Iterator[tuple[str, dict[str, bytes | None]]]:
        """States that the disk may be in if the power goes now: files by path; None: a folder."""
        rng = random.Random(seed)
        every, none = (lambda pending: pending), (lambda _pending: [])
        yield "all is kept", self._state(every, every)
        yield "all is lost", self._state(none, none)
        yield "names without content", self._state(none, every)
        yield "content without names", self._state(every, none)
        yield "the last write is torn", self._state(_torn, every)
        yield "only the last write is there", self._state(lambda pending: pending[-1:], every)
        yield "zeros", self._state(_zeros, every)
        for _ in range(_MIXTURES):

            def some(pending: list) -> list:
                return [one for one in pending if rng.random() < 0.5]

            yield "a mixture", self._state(some, some)

    def _state(self, data: Callable[[list], list], names: Callable[[list], list]) -> dict[str, bytes | None]:
        found: dict[str, bytes | None] = {}
        contents: dict[int, bytes] = {}
        kept = {id(entry) for folder in self._folders() for entry in names(folder.pending)}

        def standing(folder: _Folder) -> dict[str, object]:
            pending = []
            for entry in folder.pending:
                other = folder.moved.get(id(entry))
                lost = other is not None and other[1] in other[0].pending and id(other[1]) not in kept
                if id(entry) in kept and not lost:
                    pending.append(entry)
            return _entries([*folder.durable, *pending])

        def walk(folder: _Folder, path: str) -> None:
            for name, there in standing(folder).items():
                at = f"{path}{name}"
                if isinstance(there, _Folder):
                    found[at] = None
                    walk(there, f"{at}/")
                elif isinstance(there, _File) and not name.endswith("-shm"):
                    if id(there) not in contents:
                        contents[id(there)] = _content([*there.durable, *data(there.pending)])
                    found[at] = contents[id(there)]

        walk(self.top, "")
        return found

    def _folders(self) -> Iterator[_Folder]:
        seen: dict[int, None] = {}
        waiting = [self.top]
        while waiting:
            folder = waiting.pop()
            if id(folder) not in seen:
                seen[id(folder)] = None
                yield folder
                waiting += [t for _, t in (*folder.durable, *folder.pending) if isinstance(t, _Folder)]


def write_out(state: dict[str, bytes | None], folder: Path) -> None:
    """Make a state real, in a folder that is emptied for it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path, content in state.items():
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)


def _entries(log: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, there in log:
        if there is None:
            found.pop(name, None)
        else:
            found[name] = there
    return found


def _content(writes: list[tuple[int, bytes | None]]) -> bytes:
    body = bytearray()
    for at, data in writes:
        if data is None:
            del body[at:]
            body.extend(bytes(at - len(body)))
        else:
            body.extend(bytes(max(0, at - len(body))))
            body[at : at + len(data)] = data
    return bytes(body)


def _torn(pending: list[tuple[int, bytes | None]]) -> list[tuple[int, bytes | None]]:
    if not pending or pending[-1][1] is None:
        return pending[:-1]
    at, data = pending[-1]
    return [*pending[:-1], (at, data[: len(data) // 2])]


def _zeros(pending: list[tuple[int, bytes | None]]) -> list[tuple[int, bytes | None]]:
    return [(at, data if data is None else bytes(len(data))) for at, data in pending]
