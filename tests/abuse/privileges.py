"""Becoming less: a plain user, or root as a container has it. Used in child processes of the tests only."""

import contextlib
import errno
import os
import stat
from pathlib import Path

from runner.sandbox.box import kernel, seccomp
from runner.sandbox.box.seccomp import ALLOW, KILL, Program, fails_with

PLAIN = 12_345
# What Docker's default profile refuses without CAP_SYS_ADMIN, as far as a sandbox would want it.
DOCKER_REFUSES = """
unshare=272/97 setns=308/268 mount=165/40 umount2=166/39 pivot_root=155/41 mount_setattr=442/442 move_mount=429/429
open_tree=428/428 fsopen=430/430 fsmount=432/432 bpf=321/280 perf_event_open=298/241 userfaultfd=323/282
keyctl=250/219 add_key=248/217 request_key=249/218 open_by_handle_at=304/265 io_uring_setup=425/425
io_uring_enter=426/426 io_uring_register=427/427 kexec_load=246/104 init_module=175/105 finit_module=313/273
"""
DOCKER_KEEPS = frozenset({0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31})  # capability numbers
_CLONE, _CLONE3 = "clone=56/220", "clone3=435/435"
_NAMESPACES = 0x7E020000


def become_contained() -> None:
    """Filter and capabilities as in a container started with nothing but defaults."""
    machine = os.uname().machine
    program = Program()
    program.load_arch()
    program.answer_unless(seccomp._MACHINES[machine][1], KILL)
    program.load_number()
    for number in seccomp.numbers(DOCKER_REFUSES, machine).values():
        program.answer_if(number, fails_with(errno.EPERM))
    program.answer_if(seccomp.numbers(_CLONE3, machine)["clone3"], fails_with(errno.ENOSYS))
    clone = Program()
    clone.load_arg(0)
    clone.answer_if_bits(_NAMESPACES, fails_with(errno.EPERM))
    clone.answer(ALLOW)
    program.only_for(seccomp.numbers(_CLONE, machine)["clone"], clone)
    program.answer(ALLOW)
    seccomp.install(program.assembled())
    for capability in range(64):
        if capability not in DOCKER_KEEPS:
            with contextlib.suppress(OSError):
                kernel.prctl(kernel.PR_CAPBSET_DROP, capability)


def make_reachable(*paths: str) -> None:
    """Let everybody walk to these folders, in this process's own view of the files only."""
    blocked = {parent for path in paths for parent in map(str, Path(path).parents) if not _open(parent)}
    if not blocked:
        return
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    for parent in sorted(blocked):
        inside = [path for path in paths if path.startswith(f"{parent}/")]
        held = [(path, os.open(path, os.O_PATH)) for path in inside]
        kernel.mount("ade-test", parent, "tmpfs", 0, "mode=755")
        for path, fd in held:
            Path(path).mkdir(parents=True, exist_ok=True)
            kernel.mount(f"/proc/self/fd/{fd}", path, None, kernel.MS_BIND | kernel.MS_REC)
            os.close(fd)


def become_plain() -> None:
    """A user without any right of its own, for whom a new program starts without any either."""
    os.setgroups([])
    os.setresgid(PLAIN, PLAIN, PLAIN)
    os.setresuid(PLAIN, PLAIN, PLAIN)


def _open(folder: str) -> bool:
    return bool(Path(folder).stat().st_mode & stat.S_IXOTH)
