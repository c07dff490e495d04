"""The filter, run by a small machine of our own: what it answers to which call, on both architectures."""

import errno
import os
import re
import struct
from pathlib import Path

import pytest

from runner.sandbox.box import seccomp
from runner.sandbox.box.seccomp import ALLOW, KILL, fails_with

ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
PID = 4711


def ask(program, machine, number, *args, arch=None):
    """The filter's answer to one call."""
    data = struct.pack("=IIQ6Q", number, arch or ARCH[machine], 0, *(a & (2**64 - 1) for a in (*args, *[0] * 6)[:6]))
    code = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    loaded, at = 0, 0
    while True:
        op, yes, no, value = code[at]
        at += 1
        if op == 0x20:
            loaded = struct.unpack_from("=I", data, value)[0]
        elif op == 0x06:
            return value
        elif op == 0x05:
            at += value
        else:
            met = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[op]
            at += yes if met else no


@pytest.fixture(params=list(ARCH))
def machine(request):
    return request.param


def number(table, machine, name):
    return seccomp.numbers(table, machine)[name]


def program(machine, *, processes=False, network=False):
    return seccomp.Filter(processes=processes, network=network, machine=machine).assembled(PID)


def test_reading_and_computing_are_allowed(machine):
    made = program(machine)
    for name in ("read", "write", "openat", "mmap", "futex", "clock_gettime", "exit_group"):
        assert ask(made, machine, number(seccomp.ALLOWED, machine, name)) == ALLOW, name


def test_what_is_refused_by_name_is_refused_openly(machine):
    made = program(machine)
    for name, called in seccomp.numbers(seccomp.REFUSED, machine).items():
        assert ask(made, machine, called) == fails_with(errno.EPERM), name


def test_room_in_a_file_can_be_reserved_up_to_its_end_only(machine):
    called = number(seccomp.SPECIAL, machine, "fallocate")
    assert ask(program(machine), machine, called, 4, 0) == ALLOW
    for mode in (1, 2, 3, 8, 16, 32, 64, 128, 2**31):
        assert ask(program(machine), machine, called, 4, mode) == fails_with(errno.EOPNOTSUPP)


def test_a_call_of_another_architecture_ends_the_process(machine):
    other = ARCH["aarch64" if machine == "x86_64" else "x86_64"]
    assert ask(program(machine), machine, 0, arch=other) == KILL
    assert ask(program(machine), machine, 0, arch=0x40000003) == KILL


def test_the_x32_world_ends_the_process():
    assert ask(program("x86_64"), "x86_64", 0x40000000) == KILL


def test_calls_that_nobody_knows_yet_do_not_exist(machine):
    for called in (435, 460, 500, 1000):
        assert ask(program(machine), machine, called) == fails_with(errno.ENOSYS)


def test_no_socket_without_the_network_and_only_internet_ones_with_it(machine):
    made = number(seccomp.NETWORK, machine, "socket")
    for family in (1, 2, 10, 16, 17, 38, 40):
        assert ask(program(machine), machine, made, family) == fails_with(errno.EPERM)
        wanted = ALLOW if family in (2, 10) else fails_with(errno.EPERM)
        assert ask(program(machine, network=True), machine, made, family) == wanted


def test_threads_are_allowed_processes_only_where_asked_for_and_namespaces_never(machine):
    clone = number(seccomp.SPECIAL, machine, "clone")
    assert ask(program(machine), machine, clone, 0x3D0F00) == ALLOW
    assert ask(program(machine), machine, clone, 17) == fails_with(errno.EAGAIN)
    assert ask(program(machine, processes=True), machine, clone, 17) == ALLOW
    for kind in (0x20000, 0x2000000, 0x10000000, 0x40000000):
        assert ask(program(machine, processes=True), machine, clone, kind | 0x10000) == fails_with(errno.EPERM)


def test_signals_only_to_itself(machine):
    for name in ("kill", "tgkill"):
        called = number(seccomp.SPECIAL, machine, name)
        assert ask(program(machine), machine, called, PID) == ALLOW
        for other in (0, 1, -1, PID + 1):
            assert ask(program(machine), machine, called, other) == fails_with(errno.EPERM)


def test_limits_can_be_read_and_not_set(machine):
    called = number(seccomp.SPECIAL, machine, "prlimit64")
    assert ask(program(machine), machine, called, 0, 7, 0) == ALLOW
    assert ask(program(machine), machine, called, 0, 7, 0x7FFF00001000) == fails_with(errno.EPERM)
    assert ask(program(machine), machine, called, 0, 7, 0x100000000) == fails_with(errno.EPERM)
    assert ask(program(machine), machine, called, 1, 7, 0) == fails_with(errno.EPERM)


def test_a_thread_shares_its_files_with_all_others(machine):
    """A table of descriptors of its own would double what the limit of open files allows."""
    clone = number(seccomp.SPECIAL, machine, "clone")
    for processes in (True, False):
        made = program(machine, processes=processes)
        assert ask(made, machine, clone, 0x3D0F00 & ~0x400) == fails_with(errno.EPERM)
    closing = number(seccomp.SPECIAL, machine, "close_range")
    assert ask(program(machine), machine, closing, 3, 9, 0) == ALLOW
    assert ask(program(machine), machine, closing, 3, 9, 2) == fails_with(errno.EINVAL)


def test_pages_are_never_merged_with_those_of_others(machine):
    called = number(seccomp.SPECIAL, machine, "madvise")
    assert ask(program(machine), machine, called, 0, 4096, 12) == fails_with(errno.EINVAL)
    for advice in (4, 8, 14):
        assert ask(program(machine), machine, called, 0, 4096, advice) == ALLOW
    prctl = number(seccomp.SPECIAL, machine, "prctl")
    assert ask(program(machine), machine, prctl, 67, 1) == fails_with(errno.EPERM)


def test_locks_and_owners_of_signals_are_refused_and_other_uses_of_fcntl_are_not(machine):
    called = number(seccomp.SPECIAL, machine, "fcntl")
    for command in (6, 7, 8, 10, 1024, 1031):
        assert ask(program(machine), machine, called, 3, command) == fails_with(errno.EPERM)
    for command in (0, 1, 2, 3, 4, 1030):
        assert ask(program(machine), machine, called, 3, command) == ALLOW


def test_no_call_is_both_allowed_and_refused(machine):
    tables = (seccomp.ALLOWED, seccomp.PROCESSES, seccomp.NETWORK, seccomp.REFUSED, seccomp.SPECIAL)
    numbers = [called for table in tables for called in seccomp.numbers(table, machine).values()]
    assert len(set(numbers)) == len(numbers)


HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def test_the_numbers_are_those_of_the_kernels_headers(machine):
    if not HEADERS[machine].exists():
        pytest.skip("needs the kernel's headers")
    text = HEADERS[machine].read_text()
    known = {name: int(value) for name, value in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    known["newfstatat"] = known.get("newfstatat", known.get("fstatat"))
    for table in (seccomp.ALLOWED, seccomp.PROCESSES, seccomp.NETWORK, seccomp.REFUSED, seccomp.SPECIAL):
        for name, called in seccomp.numbers(table, machine).items():
            assert known[name] == called, name


def test_this_machine_is_one_that_filters_are_made_for():
    assert seccomp.supported() == (os.uname().machine in ARCH)


def test_every_call_gets_the_answer_of_its_own_table_and_its_neighbours_theirs(machine):
    """The filter searches by halves; a wrong half would show at the edge of some run of numbers."""
    made = program(machine)
    allowed, refused = (seccomp.numbers(table, machine).values() for table in (seccomp.ALLOWED, seccomp.REFUSED))
    refused = {*refused, *seccomp.numbers(seccomp.NETWORK, machine).values()}
    special = {*seccomp.numbers(seccomp.SPECIAL, machine).values()}
    forks = {*seccomp.numbers(seccomp.PROCESSES, machine).values()}
    for called in set(range(600)) - special:
        wanted = fails_with(errno.ENOSYS)
        if called in allowed:
            wanted = ALLOW
        elif called in refused:
            wanted = fails_with(errno.EPERM)
        elif called in forks:
            wanted = fails_with(errno.EAGAIN)
        assert ask(made, machine, called) == wanted, called
    assert len(made) // 8 < 800


def test_the_warden_of_a_box_may_signal_all_others_at_once_and_nobody_else(machine):
    made = seccomp.Filter(processes=False, network=False, machine=machine).assembled(-1)
    kill = number(seccomp.SPECIAL, machine, "kill")
    assert ask(made, machine, kill, -1, 9) == ALLOW
    for pid in (0, 1, 2, -2, PID):
        assert ask(made, machine, kill, pid, 9) == fails_with(errno.EPERM)
