"""What hostile rules try. Each case names what it tries, what it may end as, and what "got through" means.

A snippet's `main(order)` returns True where the attempt worked. `P` holds what an attacker would like to reach; the
snippets run as root on the host too (the `process` driver must fail), so none does lasting harm when it works.
"""

from dataclasses import dataclass, field

from core.verdicts import Verdict

V = Verdict
STOPPED = frozenset({V.OK, V.RULE_ERROR, V.PROCESSES})  # the attempt failed and the rule went on, or raised

PRELUDE = """
import ctypes, errno, os, sys, time
P = order['params']
libc = ctypes.CDLL(None, use_errno=True)
REFUSED = (errno.EPERM, errno.ENOSYS, errno.EACCES)
def call(name, *args):
    number = P['nr'].get(name, -1)
    if number < 0:
        return False
    done = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return done >= 0 or ctypes.get_errno() not in REFUSED
def works(attempt):
    try:
        attempt()
    except OSError as error:
        return error.errno not in REFUSED + (errno.ENOENT, errno.EROFS, errno.EAGAIN, errno.ESRCH, errno.ENOMEM, errno.EMFILE, errno.ECONNREFUSED, errno.EBADF, errno.ENOTDIR)
    except ValueError:
        return False
    return True
def reads(path, good=lambda data: True):
    try:
        with open(path, 'rb') as file:
            return good(file.read(1 << 16))
    except OSError:
        return False
def leaks(data):
    import hashlib, re
    return any(hashlib.sha256(key).hexdigest() == P['secret_hash'] for key in re.findall(rb'AKIA[0-9a-f]{32}', data))
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    category: str
    name: str
    snippet: str
    verdicts: frozenset[Verdict] = STOPPED
    effect: str = "returned"  # how it is seen that it got through: "returned" True, or another "verdict"
    limits: dict[str, float] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.category}/{self.name}"

    @property
    def source(self) -> str:
        return PRELUDE + self.snippet


def tries(category: str, name: str, expression: str, **more) -> Case:
    """A case that is one expression: True where it worked."""
    return Case(category=category, name=name, snippet=f"def main(order): return {expression}\n", **more)


def ends(category: str, name: str, snippet: str, *verdicts: Verdict, **more) -> Case:
    """A case that must end with one of these verdicts."""
    return Case(
        category=category,
        name=name,
        snippet=snippet,
        verdicts=frozenset(verdicts),
        effect="verdict",
        **more,
    )


def syscall(name: str, *args: str) -> Case:
    given = ", ".join((repr(name), *args))
    return tries("kernel", f"call {name}", f"call({given})")


SMALL = {"cpu_seconds": 1, "wall_seconds": 60}
SHORT = {"cpu_seconds": 5, "wall_seconds": 0.6}

READ = [
    tries("read", "the password file", "reads('/etc/passwd')"),
    tries("read", "the shadow file", "reads('/etc/shadow')"),
    tries("read", "another tenant's input by its path", "reads(P['other_input'])"),
    tries("read", "a listing of the runner's folders", "works(lambda: os.listdir(P['data_dir']))"),
    tries("read", "the home of root", "works(lambda: os.listdir('/root'))"),
    tries("read", "up from the input", "reads(os.path.dirname(order['inputs'][0]['path']) + '/../../beside.txt')"),
    tries("read", "through the root of process 1", "reads('/proc/1/root/etc/passwd')"),
    tries(
        "read", "through the working folder of the runner", "works(lambda: os.listdir(f\"/proc/{P['runner']}/cwd\"))"
    ),
    tries("read", "a listing of the temporary folder", "works(lambda: os.listdir('/tmp'))"),
    tries("read", "memory of the machine", "reads('/dev/mem') or reads('/dev/port') or reads('/proc/kcore')"),
    tries("read", "kernel settings", "reads('/proc/sys/kernel/core_pattern')"),
    tries("read", "a file by its handle", "call('open_by_handle_at', -100, b'x' * 64, 0)"),
    Case(
        category="read",
        name="out of the root by a held folder",
        snippet="""
def main(order):
    fd = os.open(os.path.dirname(order['inputs'][0]['path']), os.O_RDONLY)
    os.fchdir(fd)
    for _ in range(30):
        os.chdir('..')
    return reads('etc/passwd')
""",
    ),
]

SECRETS = [
    tries("secrets", "credentials in the environment", "any(leaks(value.encode()) for value in os.environ.values())"),
    tries("secrets", "the runner's environment", "reads(f\"/proc/{P['runner']}/environ\", leaks)"),
    tries("secrets", "the parent's environment", "reads(f'/proc/{os.getppid()}/environ', leaks)"),
    Case(
        category="secrets",
        name="any process's environment",
        snippet="""
def main(order):
    return any(reads(f'/proc/{pid}/environ', leaks) for pid in os.listdir('/proc') if pid.isdigit())
""",
    ),
    Case(
        category="secrets",
        name="the runner's memory through proc",
        snippet="""
def main(order):
    with open(f"/proc/{P['runner']}/maps") as maps:
        areas = [line.split() for line in maps if ' rw' in line]
    for area in areas:
        low, high = (int(end, 16) for end in area[0].split('-'))
        with open(f"/proc/{P['runner']}/mem", 'rb', 0) as memory:
            try:
                memory.seek(low)
                if leaks(memory.read(min(high - low, 1 << 24))):
                    return True
            except OSError:
                continue
    return False
""",
    ),
    Case(
        category="secrets",
        name="the runner's memory by process_vm_readv",
        snippet="""
def main(order):
    class Iovec(ctypes.Structure):
        _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
    buffer = ctypes.create_string_buffer(64)
    here = Iovec(ctypes.cast(buffer, ctypes.c_void_p), 64)
    there = Iovec(P['address'], 64)
    got = libc.process_vm_readv(P['runner'], ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    return got > 0 and leaks(buffer.raw)
""",
    ),
    tries(
        "secrets",
        "the runner by ptrace",
        "libc.ptrace(0x4206, P['runner'], 0, 0) == 0 and libc.ptrace(17, P['runner'], 0, 0) > -2",
    ),
    Case(
        category="secrets",
        name="descriptors that were left open",
        snippet="""
def main(order):
    found = []
    for fd in range(3, 64):
        try:
            found.append(os.pread(fd, 4096, 0))
        except OSError:
            continue
    return any(leaks(data) for data in found)
""",
    ),
    Case(
        category="secrets",
        name="the heap that the zygote left",
        snippet="""
import gc
def main(order):
    for thing in gc.get_objects():
        values = list(thing.values()) if isinstance(thing, dict) else list(thing) if isinstance(thing, (list, tuple)) else []
        for value in values:
            if isinstance(value, str) and leaks(value.encode('utf-8', 'replace')) or isinstance(value, bytes) and leaks(value):
                return True
    return False
""",
    ),
    tries("secrets", "the session's keyring", "call('keyctl', 0, -3, 0, 0, 0)"),
    tries("secrets", "what an earlier job left in memory", "getattr(sys, 'stain', None) == 'left'"),
    Case(
        category="secrets",
        name="names of earlier jobs in memory",
        # A page that is not there is an error of `write`, not the end of the box.
        snippet="""
import gc, re
def main(order):
    read, write = os.pipe()
    def page(address):
        if libc.write(write, ctypes.c_void_p(address), ctypes.c_size_t(4096)) != 4096:
            return b''
        return os.read(read, 4096)
    starts = {id(thing) & ~0xFFFFF for thing in gc.get_objects()} | {id(thing) & ~0xFFFFF for thing in sys.modules}
    libc.malloc.restype = ctypes.c_size_t
    starts |= {(libc.malloc(64) & ~0xFFFFF) + (step << 20) for step in range(-8, 8)}
    names, seen = set(), b''
    for start in sorted({start + step for start in starts for step in (-0x100000, 0, 0x100000)}):
        for address in range(start, start + 0x100000, 4096):
            data = page(address) if address > 0 else b''
            names |= set(re.findall(rb'scratch-[0-9a-f]{8}', seen[-16:] + data))
            seen = data
    return bool(names - {os.path.basename(P['scratch']).encode()})
""",
    ),
]


def connects(name: str, kind: str, where: str) -> Case:
    return Case(
        category="network",
        name=name,
        snippet=f"""
import socket
def main(order):
    try:
        with socket.socket({kind}) as sock:
            sock.settimeout(1)
            sock.connect({where})
            return True
    except OSError:
        return False
""",
    )


def opens(name: str, kind: str) -> Case:
    return tries("network", name, f"works(lambda: __import__('socket').socket({kind}).close())")


NETWORK = [
    connects("TCP to the host", "socket.AF_INET", "('127.0.0.1', P['port'])"),
    connects("a unix socket by path", "socket.AF_UNIX", "P['unix']"),
    connects("an abstract unix socket", "socket.AF_UNIX", "'\\0' + P['abstract']"),
    tries(
        "network",
        "a UDP datagram",
        "works(lambda: __import__('socket').socket(2, 2).sendto(b'x', ('127.0.0.1', P['port'])))",
    ),
    opens("an IPv6 socket", "10, 1"),
    opens("netlink", "16, 3, 0"),
    opens("raw packets", "17, 3"),
    opens("vsock", "40, 1"),
    opens("the kernel's crypto", "38, 5"),
    tries("network", "a pair of sockets", "works(lambda: [s.close() for s in __import__('socket').socketpair()])"),
    tries("network", "listening", "works(lambda: __import__('socket').create_server(('127.0.0.1', 0)).close())"),
    tries(
        "network",
        "a name look-up",
        "works(lambda: __import__('socket').getaddrinfo('localhost', 80)) and __import__('socket').if_nameindex() != []",
    ),
    tries("network", "sockets by io_uring", "call('io_uring_setup', 8, b'\\0' * 120)"),
]

PROCESS = [
    tries("process", "fork", "(lambda pid: os._exit(0) if pid == 0 else os.waitpid(pid, 0)[0] > 0)(os.fork())"),
    Case(
        category="process",
        name="a fork bomb",
        snippet="""
def main(order):
    made = 0
    for _ in range(40):
        try:
            if os.fork() == 0:
                time.sleep(20)
                os._exit(0)
        except OSError:
            break
        made += 1
    return made >= 40
""",
    ),
    tries("process", "vfork", "(lambda pid: libc._exit(0) if pid == 0 else pid > 0)(libc.vfork())"),
    tries("process", "clone3", "call('clone3', b'\\0' * 88, 0)"),
    tries("process", "another program", "__import__('subprocess').run(['/bin/true']).returncode == 0"),
    Case(
        category="process",
        name="being another program",
        snippet="""
def main(order):
    order_text = '{"event": "end", "ok": true, "summary": {"exec": true}}'
    out = order['outputs']['result.json']
    os.execv('/bin/sh', ['sh', '-c', f"printf true >&{out}; printf '%s\\\\n' '{order_text}' >&3"])
""",
    ),
    tries("process", "posix_spawn", "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)[0] > 0"),
    tries("process", "a signal to the runner's other child", "works(lambda: os.kill(P['victim'], 0))"),
    tries("process", "ending the runner's other child", "works(lambda: os.kill(P['victim'], 15))"),
    tries("process", "a signal to everybody", "works(lambda: os.kill(-1, 0))"),
    tries("process", "a signal to the parent", "works(lambda: os.kill(os.getppid(), 0)) and os.getppid() > 0"),
    tries("process", "a signal to a thread of another", "call('tkill', P['victim'], 0)"),
    tries("process", "a signal by descriptor", "works(lambda: os.pidfd_open(P['victim']))"),
    tries(
        "process",
        "a signal by input",
        "(lambda f, r: works(lambda: f.fcntl(r, f.F_SETOWN, P['victim'])))(__import__('fcntl'), os.pipe()[0])",
    ),
    tries("process", "a session of its own", "works(lambda: os.setsid()) or works(lambda: os.setpgid(0, 0))"),
    tries("process", "another's priority", "works(lambda: os.setpriority(os.PRIO_PROCESS, P['victim'], 19))"),
    tries("process", "another's limits", "works(lambda: __import__('resource').prlimit(P['victim'], 7, (64, 64)))"),
    tries(
        "process",
        "another user",
        "works(lambda: os.setuid(0)) or works(lambda: os.setgid(0)) or works(lambda: os.setgroups([0]))",
    ),
    Case(
        category="process",
        name="a daemon",
        snippet="""
def main(order):
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, b'up')
            time.sleep(600)
        os._exit(0)
    return os.read(read, 2) == b'up'
""",
    ),
]

KERNEL = [
    syscall("mount", "b'none', b'/ade-nowhere', b'tmpfs', 0, 0"),
    syscall("umount2", "b'/ade-nowhere', 0"),
    syscall("unshare", "0x10000000"),
    syscall("setns", "-1", "0"),
    syscall("bpf", "0, b'\\0' * 64, 64"),
    syscall("perf_event_open", "b'\\0' * 128, 0, -1, -1, 0"),
    syscall("userfaultfd", "0"),
    syscall("add_key", "b'user', b'ade', b'x', 1, -2"),
    syscall("chroot", "b'/'"),
    syscall("pivot_root", "b'.', b'.'"),
    syscall("memfd_create", "b'x', 0"),
    syscall("finit_module", "-1, b'', 0"),
    syscall("personality", "0xffffffff"),
    syscall("fanotify_init", "0, 0"),
    syscall("mq_open", "b'ade', 0, 0, 0"),
    syscall("shmget", "0x0ade, 4096, 0"),
    syscall("seccomp", "2, 0, 0"),
    syscall("sched_setaffinity", "0, 8, b'\\xff' * 8"),
    tries(
        "kernel",
        "merging pages with those of others",
        "libc.prctl(67, 1, 0, 0, 0) == 0 or (lambda m: m.madvise(12) or True)(__import__('mmap').mmap(-1, 1 << 20))",
    ),
    tries("kernel", "how full the disk is", "call('fstatfs', 1, b'\\0' * 256) or works(lambda: os.statvfs('/'))"),
    tries("kernel", "how full the memory is", "call('sysinfo', b'\\0' * 256)"),
    tries(
        "kernel",
        "undoing no_new_privs or dumpable",
        "libc.prctl(4, 1, 0, 0, 0) == 0 or libc.prctl(36, 1, 0, 0, 0) == 0",
    ),
    tries(
        "kernel",
        "a terminal's input",
        "works(lambda: __import__('fcntl').ioctl(0, 0x5412, b'x')) and False or libc.ioctl(1, 0x5412, b'x') == 0",
    ),
    ends(
        "kernel",
        "a call of the 32-bit world",
        """
import mmap
def main(order):
    if os.uname().machine != 'x86_64':
        os.kill(os.getpid(), 9)
    code = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7)
    code.write(bytes.fromhex('b814000000cd80c3'))
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)() > 0
""",
        V.SIGNAL,
    ),
    ends(
        "kernel",
        "a call of the x32 world",
        "def main(order): return libc.syscall(ctypes.c_long(0x40000000 + 39)) > 0\n",
        V.SIGNAL,
    ),
]

RESOURCES = [
    ends("resources", "an endless loop", "while True: pass\n", V.CPU, limits=SMALL),
    ends(
        "resources",
        "an endless loop deaf to signals",
        "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass\n",
        V.CPU,
        limits=SMALL,
    ),
    ends("resources", "one endless calculation", "x = 7 ** (7 ** 9)\n", V.CPU, V.MEMORY, limits=SMALL),
    ends(
        "resources", "a pattern that never ends", "import re\nre.match('(a+)+$', 'a' * 60 + 'b')\n", V.CPU, limits=SMALL
    ),
    ends("resources", "sleep", "time.sleep(60)\n", V.WALL_CLOCK, limits=SHORT),
    ends(
        "resources",
        "sleep deaf to signals",
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\ntime.sleep(60)\n",
        V.WALL_CLOCK,
        limits=SHORT,
    ),
    ends("resources", "waiting for input that never comes", "os.read(os.pipe()[0], 1)\n", V.WALL_CLOCK, limits=SHORT),
    ends("resources", "memory in one piece", "x = bytearray(1 << 30)\n", V.MEMORY),
    ends("resources", "memory in many pieces", "x = []\nwhile True: x.append(bytearray(1 << 16))\n", V.MEMORY),
    ends(
        "resources",
        "memory that is shared",
        "import mmap\nx = [mmap.mmap(-1, 1 << 24) for _ in range(64)]\nfor m in x: m.write(b'x' * (1 << 24))\n",
        V.MEMORY,
        V.RULE_ERROR,
    ),
    ends(
        "resources",
        "memory by unpacking",
        "import zlib\nx = zlib.compress(bytes(1 << 26), 9)\ny = [zlib.decompress(x) for _ in range(12)]\n",
        V.MEMORY,
    ),
    ends(
        "resources",
        "an output that does not end",
        "while True: os.write(order['outputs']['result.json'], bytes(1 << 20))\n",
        V.FILE_SIZE,
    ),
    ends(
        "resources",
        "an output with a hole",
        "os.ftruncate(order['outputs']['result.json'], 1 << 40)\n",
        V.FILE_SIZE,
        V.RULE_ERROR,
    ),
    ends(
        "resources",
        "a write far out in an output",
        "os.pwrite(order['outputs']['result.json'], b'x', 1 << 40)\n",
        V.FILE_SIZE,
        V.RULE_ERROR,
    ),
    ends(
        "resources",
        "space reserved in an output",
        "os.posix_fallocate(order['outputs']['result.json'], 0, 1 << 40)\n",
        V.FILE_SIZE,
        V.RULE_ERROR,
    ),
    Case(
        category="resources",
        name="space reserved behind the end of an output",
        snippet="""
def main(order):
    fd = order['outputs']['result.json']
    for mode in (1, 2 | 1, 8, 16, 32, 64, 128):
        call('fallocate', fd, mode, 0, 1 << 28)
    time.sleep(0.6)
    return os.fstat(fd).st_blocks * 512 > 16 << 20
""",
        verdicts=frozenset({V.OK, V.FILE_SIZE}),
    ),
    ends(
        "resources",
        "a log that does not end",
        "while True: print('x' * 65536)\n",
        V.FILE_SIZE,
        limits={"log_bytes": 4096},
    ),
    ends("resources", "open files", "x = [os.dup(1) for _ in range(5000)]\n", V.RULE_ERROR),
    ends("resources", "pipes", "x = [os.pipe() for _ in range(5000)]\n", V.RULE_ERROR),
    Case(
        category="resources",
        name="kernel memory in large pipes",
        snippet="""
import fcntl
def main(order):
    held, kept = [], 0
    for _ in range(20):
        read, write = os.pipe()
        held.append((read, write))
        try:
            fcntl.fcntl(write, 1031, 1 << 20)
        except OSError:
            pass
        os.set_blocking(write, False)
        try:
            while True:
                kept += os.write(write, b'x' * 65536)
        except BlockingIOError:
            pass
    return kept > 4 << 20
""",
    ),
    tries(
        "resources",
        "a table of open files for one thread",
        "call('close_range', 1000, 1000, 2) and libc.syscall(ctypes.c_long(P['nr']['close_range']), 1000, 1000, 2) == 0",
    ),
    Case(
        category="resources",
        name="threads",
        snippet="""
import threading
def main(order):
    made = 0
    threading.stack_size(32768)
    try:
        for _ in range(3000):
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
            made += 1
    except (RuntimeError, MemoryError):
        pass
    time.sleep(0.6)
    return made >= 600
""",
        verdicts=frozenset({V.OK, V.RULE_ERROR, V.MEMORY, V.SIGNAL, V.PROCESSES}),
    ),
    tries(
        "resources",
        "raising its own limits",
        "works(lambda: __import__('resource').setrlimit(0, (3600, 3600))) or works(lambda: __import__('resource').setrlimit(7, (4096, 4096)))",
    ),
    Case(
        category="resources",
        name="a file in every place that might take one",
        snippet="""
def main(order):
    places = ['/tmp', '/var/tmp', '/dev/shm', '/run', '/', '.', os.path.dirname(order['inputs'][0]['path']), P['open_dir']]
    made = []
    for place in places:
        path = f'{place}/ade-abuse-{os.getpid()}'
        if works(lambda: os.close(os.open(path, os.O_CREAT | os.O_WRONLY))):
            os.unlink(path)
            made.append(place)
    return bool(made)
""",
    ),
    tries(
        "resources", "a nameless temporary file", "works(lambda: os.close(os.open('/tmp', os.O_TMPFILE | os.O_RDWR)))"
    ),
]

TAMPERING = [
    tries(
        "tampering", "writing to the input", "works(lambda: os.close(os.open(order['inputs'][0]['path'], os.O_WRONLY)))"
    ),
    tries("tampering", "cutting the input", "works(lambda: os.truncate(order['inputs'][0]['path'], 1))"),
    tries("tampering", "removing the input", "works(lambda: os.unlink(order['inputs'][0]['path']))"),
    tries("tampering", "the mode of the input", "works(lambda: os.chmod(order['inputs'][0]['path'], 0o777))"),
    tries("tampering", "the times of the input", "works(lambda: os.utime(order['inputs'][0]['path'], (1, 1)))"),
    tries(
        "tampering",
        "its own config",
        "works(lambda: os.close(os.open(order['config']['path'] + '/rule.py', os.O_WRONLY)))",
    ),
    tries(
        "tampering",
        "a new file in its config",
        "works(lambda: os.close(os.open(order['config']['path'] + '/new.py', os.O_CREAT | os.O_WRONLY)))",
    ),
    tries(
        "tampering",
        "the engine's code",
        "works(lambda: os.close(os.open(sys.modules['snippet_engine'].__file__, os.O_WRONLY)))",
    ),
    tries("tampering", "the interpreter's library", "works(lambda: os.close(os.open(os.__file__, os.O_WRONLY)))"),
    tries(
        "tampering", "a link beside the outputs", "works(lambda: os.symlink('/etc/passwd', P['scratch'] + '/out/link'))"
    ),
    tries(
        "tampering",
        "a lock on shared code",
        "(lambda f: works(lambda: f.flock(os.open(os.__file__, os.O_RDONLY), f.LOCK_EX | f.LOCK_NB)))(__import__('fcntl'))",
    ),
    tries("tampering", "marks on an output", "works(lambda: os.fchmod(order['outputs']['result.json'], 0o6777))"),
    Case(
        category="tampering",
        name="the next job's engine in memory",
        snippet="""
def main(order):
    import snippet_engine.job
    snippet_engine.job.run = None
    sys.stain = 'left'
    return False
""",
    ),
]

OUTPUTS = [
    ends(
        "outputs",
        "a link in place of an output",
        "os.unlink(P['scratch'] + '/out/result.json')\nos.symlink('/etc/passwd', P['scratch'] + '/out/result.json')\n",
        V.BAD_OUTPUT,
        V.RULE_ERROR,
    ),
    ends(
        "outputs",
        "a second name for an output",
        "os.link(P['scratch'] + '/out/result.json', P['scratch'] + '/out/other')\n",
        V.BAD_OUTPUT,
        V.RULE_ERROR,
    ),
    ends(
        "outputs",
        "a pipe in place of an output",
        "os.unlink(P['scratch'] + '/out/result.json')\nos.mkfifo(P['scratch'] + '/out/result.json')\n",
        V.BAD_OUTPUT,
        V.RULE_ERROR,
    ),
    ends(
        "outputs",
        "a folder in place of an output",
        "os.unlink(P['scratch'] + '/out/result.json')\nos.mkdir(P['scratch'] + '/out/result.json')\n",
        V.BAD_OUTPUT,
        V.RULE_ERROR,
    ),
    tries(
        "outputs",
        "an output nobody asked for",
        "works(lambda: os.close(os.open(P['scratch'] + '/out/extra', os.O_CREAT | os.O_WRONLY)))",
    ),
    tries(
        "outputs",
        "the output by its path",
        "works(lambda: os.close(os.open(P['scratch'] + '/out/result.json', os.O_RDWR)))",
    ),
    tries("outputs", "the log by its path", "works(lambda: os.close(os.open(P['scratch'] + '/log.txt', os.O_RDWR)))"),
]

CRASH = [
    ends("crash", "reading from nowhere", "ctypes.string_at(0)\n", V.SIGNAL),
    ends("crash", "abort", "os.abort()\n", V.SIGNAL),
    ends("crash", "leaving with 0 and no word", "os._exit(0)\n", V.BAD_OUTPUT),
    ends("crash", "leaving with 70", "os._exit(70)\n", V.BAD_OUTPUT),
    ends("crash", "leaving as if it had never started", "os._exit(71)\n", V.BAD_OUTPUT),
    ends("crash", "endless recursion", "def f(): f()\nf()\n", V.RULE_ERROR),
    ends(
        "crash",
        "recursion through the C stack",
        "sys.setrecursionlimit(1 << 30)\nx = []\nfor _ in range(1 << 22): x = [x]\nrepr(x)\n",
        V.SIGNAL,
        V.RULE_ERROR,
        V.MEMORY,
    ),
    ends(
        "crash",
        "killing itself",
        "import signal\nsignal.raise_signal(signal.SIGKILL)\nlibc.syscall(ctypes.c_long(231), 9)\n",
        V.SIGNAL,
        V.BAD_OUTPUT,
    ),
]


def says(name: str, data: str, *verdicts: Verdict) -> Case:
    return ends("channel", name, f"os.write(3, {data})\n", *(verdicts or (V.BAD_OUTPUT,)))


CHANNEL = [
    says("not JSON", "b'hello\\n'"),
    says("not UTF-8", 'b\'{"event": "\\xff"}\\n\''),
    says("NaN", 'b\'{"event": "x", "n": NaN}\\n\''),
    says("a number without bounds", 'b\'{"event": "x", "n": 1e999}\\n\''),
    says("the same key twice", 'b\'{"event": "x", "event": "end"}\\n\''),
    says("half a character", 'b\'{"event": "\\\\ud800"}\\n\''),
    says("depth", "b'{\"event\": \"x\", \"n\": ' + b'[' * 5000 + b']' * 5000 + b'}\\n'"),
    says("a long line", "b'{\"event\": \"' + b'x' * 100000 + b'\"}\\n'"),
    says("a line without end", 'b\'{"event": "x"}\''),
    says("a code nobody knows", 'b\'{"event": "end", "ok": false, "error": {"code": "party"}}\\n\''),
    says("closing twice", 'b\'{"event": "end", "ok": true}\\n\''),
    ends(
        "channel",
        "success, then a crash",
        'os.write(3, b\'{"event": "end", "ok": true}\\n\')\nos._exit(3)\n',
        V.BAD_OUTPUT,
    ),
    ends("channel", "a flood", 'while True: os.write(3, b\'{"event": "x"}\\n\' * 1000)\n', V.BAD_OUTPUT),
    ends("channel", "closing the channel", "os.close(3)\nos._exit(0)\n", V.BAD_OUTPUT),
]

CASES = [*READ, *SECRETS, *NETWORK, *PROCESS, *KERNEL, *RESOURCES, *TAMPERING, *OUTPUTS, *CRASH, *CHANNEL]
