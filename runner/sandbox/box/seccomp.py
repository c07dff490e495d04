"""The system calls that a box may make: an allow list, so that new calls of future kernels are refused.

The filter is classic BPF, assembled here. Unlisted calls do not exist (ENOSYS: libraries fall back), calls refused by
name fail with EPERM, and calls of another architecture kill the process. Standard library only: this runs inside boxes.
"""

import ctypes
import errno
import os
import struct

from runner.sandbox.box import kernel

ALLOW = 0x7FFF0000
KILL = 0x80000000
_ERRNO = 0x00050000

_LOAD, _JUMP, _JEQ, _JGE, _JSET, _RET = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARGS = 0, 4, 16  # offsets in struct seccomp_data


def fails_with(number: int) -> int:
    """The filter result that makes a call fail with this error."""
    return _ERRNO | number


class Program:
    """Instructions in order. Every block ends in an answer or falls through, so jumps stay short."""

    def __init__(self) -> None:
        self.code: list[tuple[int, int, int, int]] = []
        self.marks: dict[str, list[int]] = {}

    def answer(self, value: int) -> None:
        self._add(_RET, 0, 0, value)

    def load_arch(self) -> None:
        self._add(_LOAD, 0, 0, _ARCH)

    def load_number(self) -> None:
        self._add(_LOAD, 0, 0, _NR)

    def load_arg(self, index: int, *, high: bool = False) -> None:
        """Load the low (or high) half of an argument; both supported machines are little-endian."""
        self._add(_LOAD, 0, 0, _ARGS + 8 * index + (4 if high else 0))

    def answer_unless(self, value: int, answer: int) -> None:
        """Answer unless what is loaded equals `value`."""
        self._add(_JEQ, 1, 0, value)
        self.answer(answer)

    def answer_if(self, value: int, answer: int, *, mark: str | None = None) -> None:
        """Answer if what is loaded equals `value`; `mark` names the value for `patched`."""
        if mark is not None:
            self.marks.setdefault(mark, []).append(len(self.code))
        self._add(_JEQ, 0, 1, value)
        self.answer(answer)

    def answer_from(self, value: int, answer: int) -> None:
        """Answer if what is loaded is `value` or more."""
        self._add(_JGE, 0, 1, value)
        self.answer(answer)

    def answer_if_bits(self, bits: int, answer: int) -> None:
        """Answer if any of `bits` is set in what is loaded."""
        self._add(_JSET, 0, 1, bits)
        self.answer(answer)

    def only_with_bits(self, bits: int, block: "Program") -> None:
        """`block` if any of `bits` is set in what is loaded; then on."""
        self._add(_JSET, 0, len(block.code), bits)
        self.append(block)

    def only_for(self, number: int, block: "Program") -> None:
        """`block` for this call; it must end in an answer, so that nothing falls out of it."""
        self._add(_JEQ, 0, len(block.code), number)
        self.append(block)

    def choose(self, outcomes: "dict[int, int | Program]", otherwise: int) -> None:
        """Look up what is loaded: an answer, or a block that ends in one.

        A binary search over runs of equal outcomes: the kernel compiles a filter for every box, and walks it for
        every number that there is, so that its length is time.
        """
        starts: list[tuple[int, int | Program]] = [(0, otherwise)]
        for number in sorted(outcomes):
            if starts[-1][0] == number:
                starts.pop()
            if not starts or starts[-1][1] != outcomes[number]:
                starts.append((number, outcomes[number]))
            starts.append((number + 1, otherwise))
        self.append(_search(starts))

    def append(self, block: "Program") -> None:
        for name, places in block.marks.items():
            self.marks.setdefault(name, []).extend(len(self.code) + place for place in places)
        self.code += block.code

    def assembled(self) -> bytes:
        """The program as the kernel takes it."""
        return b"".join(struct.pack("=HBBI", *instruction) for instruction in self.code)

    def patched(self, assembled: bytes, **marks: int) -> bytes:
        """An assembled program with the marked values filled in."""
        raw = bytearray(assembled)
        for name, value in marks.items():
            for place in self.marks.get(name, ()):
                struct.pack_into("=I", raw, 8 * place + 4, value & 0xFFFFFFFF)
        return bytes(raw)

    def _add(self, op: int, yes: int, no: int, value: int) -> None:
        if max(yes, no) > 255:
            raise ValueError("a jump of more than 255 instructions")
        self.code.append((op, yes, no, value & 0xFFFFFFFF))

    def split(self, value: int, below: "Program", above: "Program") -> None:
        """One block where what is loaded is less than `value`, and another from there on."""
        if len(below.code) <= 255:
            self._add(_JGE, len(below.code), 0, value)
        else:
            self._add(_JGE, 0, 1, value)
            self._add(_JUMP, 0, 0, len(below.code))
        self.append(below)
        self.append(above)


def _search(starts: "list[tuple[int, int | Program]]") -> Program:
    """The outcome of the last start that is not above what is loaded."""
    found = Program()
    if len(starts) > 1:
        half = len(starts) // 2
        found.split(starts[half][0], _search(starts[:half]), _search(starts[half:]))
    elif isinstance(starts[0][1], int):
        found.answer(starts[0][1])
    else:
        found.append(starts[0][1])
    return found


# name=number on x86_64/number on aarch64
ALLOWED = """
read=0/63 write=1/64 readv=19/65 writev=20/66 pread64=17/67 pwrite64=18/68 preadv=295/69 pwritev=296/70
preadv2=327/286 pwritev2=328/287 lseek=8/62 close=3/57 dup=32/23 dup2=33/-
dup3=292/24 open=2/- openat=257/56 openat2=437/437 stat=4/- fstat=5/80 lstat=6/- newfstatat=262/79
statx=332/291 access=21/- faccessat=269/48 faccessat2=439/439 readlink=89/- readlinkat=267/78
getcwd=79/17 getdents=78/- getdents64=217/61 chdir=80/49 fchdir=81/50
mmap=9/222 mprotect=10/226 munmap=11/215 mremap=25/216 brk=12/214 msync=26/227
membarrier=324/283 rt_sigaction=13/134 rt_sigprocmask=14/135 rt_sigreturn=15/139 rt_sigpending=127/136
rt_sigtimedwait=128/137 rt_sigsuspend=130/133 sigaltstack=131/132 pause=34/- restart_syscall=219/128
exit=60/93 exit_group=231/94 wait4=61/260 waitid=247/95 getpid=39/172 getppid=110/173 gettid=186/178
getuid=102/174 geteuid=107/175 getgid=104/176 getegid=108/177 getgroups=115/158 getpgrp=111/-
getpgid=121/155 getsid=124/156 getresuid=118/148 getresgid=120/150 set_tid_address=218/96
set_robust_list=273/99 rseq=334/293 futex=202/98 futex_waitv=449/449 sched_yield=24/124
sched_getaffinity=204/123 sched_getparam=143/121 sched_getscheduler=145/120
sched_get_priority_max=146/125 sched_get_priority_min=147/126 getcpu=309/168 getpriority=140/141
getrusage=98/165 times=100/153 getrlimit=97/163 time=201/- gettimeofday=96/169 clock_gettime=228/113
clock_getres=229/114 clock_nanosleep=230/115 nanosleep=35/101 alarm=37/- setitimer=38/103
getitimer=36/102 timer_create=222/107 timer_settime=223/110 timer_gettime=224/108
timer_getoverrun=225/109 timer_delete=226/111 timerfd_create=283/85 timerfd_settime=286/86
timerfd_gettime=287/87 poll=7/- ppoll=271/73 select=23/- pselect6=270/72 epoll_create=213/-
epoll_create1=291/20 epoll_ctl=233/21 epoll_wait=232/- epoll_pwait=281/22 epoll_pwait2=441/441
eventfd=284/- eventfd2=290/19 pipe=22/- pipe2=293/59 getrandom=318/278 uname=63/160
arch_prctl=158/- ftruncate=77/46 fsync=74/82 fdatasync=75/83 fadvise64=221/223
sendfile=40/71 copy_file_range=326/285 umask=95/166
"""
PROCESSES = "fork=57/- vfork=58/-"
NETWORK = """
socket=41/198 connect=42/203 bind=49/200 sendto=44/206 recvfrom=45/207 sendmsg=46/211 recvmsg=47/212
sendmmsg=307/269 recvmmsg=299/243 getsockname=51/204 getpeername=52/205 setsockopt=54/208
getsockopt=55/209 shutdown=48/210
"""
REFUSED = """
socketpair=53/199 listen=50/201 accept=43/202 accept4=288/242 execve=59/221 execveat=322/281
ptrace=101/117 process_vm_readv=310/270 process_vm_writev=311/271 process_madvise=440/440 kcmp=312/272
mount=165/40 umount2=166/39 mount_setattr=442/442 move_mount=429/429 open_tree=428/428 fsopen=430/430
fsconfig=431/431 fsmount=432/432 fspick=433/433 pivot_root=155/41 chroot=161/51 unshare=272/97
setns=308/268 bpf=321/280 io_uring_setup=425/425 io_uring_enter=426/426 io_uring_register=427/427
keyctl=250/219 add_key=248/217 request_key=249/218 userfaultfd=323/282 perf_event_open=298/241
memfd_create=319/279 memfd_secret=447/447 pidfd_open=434/434 pidfd_getfd=438/438
pidfd_send_signal=424/424 tkill=200/130 rt_sigqueueinfo=129/138 rt_tgsigqueueinfo=297/240 flock=73/32
setrlimit=160/164 setpriority=141/140 sched_setaffinity=203/122 sched_setscheduler=144/119
sched_setparam=142/118 sched_setattr=314/274 ioprio_set=251/30 unlink=87/- unlinkat=263/35 rename=82/-
renameat=264/38 renameat2=316/276 mkdir=83/- mkdirat=258/34 rmdir=84/- link=86/- linkat=265/37
symlink=88/- symlinkat=266/36 mknod=133/- mknodat=259/33 chmod=90/- fchmod=91/52 fchmodat=268/53
chown=92/- fchown=93/55 lchown=94/- fchownat=260/54 utime=132/- utimes=235/- utimensat=280/88
futimesat=261/- truncate=76/45 creat=85/- setxattr=188/5 lsetxattr=189/6 fsetxattr=190/7
removexattr=197/14 lremovexattr=198/15 fremovexattr=199/16 setuid=105/146 setgid=106/144
setreuid=113/145 setregid=114/143 setresuid=117/147 setresgid=119/149 setgroups=116/159 setfsuid=122/151
setfsgid=123/152 setsid=112/157 setpgid=109/154 capset=126/91 personality=135/92 shmget=29/194
shmat=30/196 shmctl=31/195 shmdt=67/197 semget=64/190 semop=65/193 semctl=66/191 semtimedop=220/192
msgget=68/186 msgsnd=69/189 msgrcv=70/188 msgctl=71/187 mq_open=240/180 mq_unlink=241/181
mq_timedsend=242/182 mq_timedreceive=243/183 mq_notify=244/184 mq_getsetattr=245/185 inotify_init=253/-
inotify_init1=294/26 fanotify_init=300/262 fanotify_mark=301/263 name_to_handle_at=303/264
open_by_handle_at=304/265 init_module=175/105 finit_module=313/273 delete_module=176/106
kexec_load=246/104 kexec_file_load=320/294 reboot=169/142 swapon=167/224 swapoff=168/225 acct=163/89
settimeofday=164/170 clock_settime=227/112 clock_adjtime=305/266 adjtimex=159/171 sethostname=170/161
setdomainname=171/162 syslog=103/116 quotactl=179/60 iopl=172/- ioperm=173/- modify_ldt=154/-
nfsservctl=180/42 lookup_dcookie=212/18 vhangup=153/58 sync=162/81 syncfs=306/267 splice=275/76
tee=276/77 vmsplice=278/75 mincore=27/232 landlock_create_ruleset=444/444 landlock_add_rule=445/445
landlock_restrict_self=446/446 seccomp=317/277 statfs=137/43 fstatfs=138/44 sysinfo=99/179
"""
SPECIAL = """
clone=56/220 kill=62/129 tgkill=234/131 prctl=157/167
prlimit64=302/261 ioctl=16/29 fcntl=72/25 fallocate=285/47 madvise=28/233 close_range=436/436
"""

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above, AUDIT_ARCH
_X32 = 0x40000000
_CLONE_FILES, _CLONE_THREAD = 0x00000400, 0x00010000
_CLONE_NEW = 0x7E020000  # every kind of namespace
_FAMILIES = (2, 10)  # AF_INET, AF_INET6
_PRCTL = (15, 16, 0x53564D41)  # a thread's name, set and get; names of memory areas
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # what isatty, window size and pipes ask
_FCNTL = (
    0,
    1,
    2,
    3,
    4,
    1030,
    1032,
)  # copies of descriptors, flags, the size of a pipe; no lock, no owner, no larger pipe
_MADVICE = (
    0,
    1,
    2,
    3,
    4,
    8,
    10,
    11,
    14,
    15,
    16,
    17,
)  # what allocators say; not to merge equal pages with those of others
_CLOSE_RANGE = (0, 4)  # at once, at exec; not in a table of one thread's own, which would be a further 64 files

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


def numbers(table: str, machine: str) -> dict[str, int]:
    """The calls of a table that this machine has."""
    column = _MACHINES[machine][0]
    found = {}
    for item in table.split():
        name, _, both = item.partition("=")
        number = both.split("/")[column]
        if number != "-":
            found[name] = int(number)
    return found


def supported() -> bool:
    return os.uname().machine in _MACHINES


def install(program: bytes) -> None:
    """Put a program in force, irrevocably. Needs no_new_privs or the right to do without."""
    buffer = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer))
    fprog = ctypes.create_string_buffer(head, len(head))
    kernel.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(fprog))


class Filter:
    """The filter for one kind of box, assembled once; only the box's own pid differs between jobs."""

    def __init__(self, *, processes: bool, network: bool, machine: str | None = None) -> None:
        self._machine = machine or os.uname().machine
        self._program = Program()
        self._calls: dict[int, int | Program] = {}
        self._special = numbers(SPECIAL, self._machine)
        self._build(processes=processes, network=network)
        self._assembled = self._program.assembled()

    def assembled(self, pid: int) -> bytes:
        return self._program.patched(self._assembled, pid=pid)

    def install(self, pid: int) -> None:
        """On this process and all that it starts."""
        install(self.assembled(pid))

    def _build(self, *, processes: bool, network: bool) -> None:
        program = self._program
        program.load_arch()
        program.answer_unless(_MACHINES[self._machine][1], KILL)
        program.load_number()
        if self._machine == "x86_64":
            program.answer_from(_X32, KILL)
        forks = ALLOW if processes else fails_with(errno.EAGAIN)
        for table, answer in ((ALLOWED, ALLOW), (PROCESSES, forks), (REFUSED, fails_with(errno.EPERM))):
            self._calls |= dict.fromkeys(numbers(table, self._machine).values(), answer)
        self._arguments(processes=processes)
        self._network(allowed=network)
        program.choose(self._calls, otherwise=fails_with(errno.ENOSYS))

    def _arguments(self, *, processes: bool) -> None:
        """Calls that are fine or not by what they are given."""
        for name in ("kill", "tgkill"):
            self._when(name, 0, ("pid", (0,)), ALLOW, otherwise=errno.EPERM)
        self._when("prctl", 0, (None, _PRCTL), ALLOW, otherwise=errno.EPERM)
        self._when("ioctl", 1, (None, _IOCTL), ALLOW, otherwise=errno.ENOTTY)
        self._when("fcntl", 1, (None, _FCNTL), ALLOW, otherwise=errno.EPERM)
        self._when("madvise", 2, (None, _MADVICE), ALLOW, otherwise=errno.EINVAL)
        self._when("close_range", 2, (None, _CLOSE_RANGE), ALLOW, otherwise=errno.EINVAL)
        # Any other mode reserves room behind a file's end, which no limit on its size counts.
        self._when("fallocate", 1, (None, (0,)), ALLOW, otherwise=errno.EOPNOTSUPP)
        limits = Program()
        limits.load_arg(2)
        limits.answer_unless(0, fails_with(errno.EPERM))
        limits.load_arg(2, high=True)
        limits.answer_unless(0, fails_with(errno.EPERM))
        limits.load_arg(0)
        limits.answer_if(0, ALLOW)
        limits.answer_if(0, ALLOW, mark="pid")
        limits.answer(fails_with(errno.EPERM))
        self._calls[self._special["prlimit64"]] = limits
        clone = Program()
        clone.load_arg(0)
        clone.answer_if_bits(_CLONE_NEW, fails_with(errno.EPERM))
        thread = Program()
        thread.answer_if_bits(_CLONE_THREAD, ALLOW)
        clone.only_with_bits(_CLONE_FILES, thread)
        clone.answer_if_bits(_CLONE_THREAD, fails_with(errno.EPERM))
        clone.answer(ALLOW if processes else fails_with(errno.EAGAIN))
        self._calls[self._special["clone"]] = clone

    def _network(self, *, allowed: bool) -> None:
        known = numbers(NETWORK, self._machine)
        if not allowed:
            self._calls |= dict.fromkeys(known.values(), fails_with(errno.EPERM))
            return
        block = Program()
        block.load_arg(0)
        for family in _FAMILIES:
            block.answer_if(family, ALLOW)
        block.answer(fails_with(errno.EPERM))
        self._calls |= {**dict.fromkeys(known.values(), ALLOW), known["socket"]: block}

    def _when(
        self, name: str, arg: int, values: tuple[str | None, tuple[int, ...]], answer: int, *, otherwise: int
    ) -> None:
        block = Program()
        block.load_arg(arg)
        mark, listed = values
        for value in listed:
            block.answer_if(value, answer, mark=mark)
        block.answer(fails_with(otherwise))
        self._calls[self._special[name]] = block
