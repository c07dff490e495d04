"""The real command in processes of its own, on a data folder of its own."""

import contextlib
import fcntl
import io
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch

from console.cli.main import main
from tests.support.forks import ADE, short_ade

MEMBERS = {
    "manifest": 1,
    "name": "members",
    "fields": [
        {"name": "member_id", "required": True, "synonyms": ["member #"]},
        {"name": "gross_pay", "type": "money"},
    ],
}
CSV = "Member list,\n,\nMember #,Gross Pay\nM000001,12.50\nM000002,7\n"


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Ade:
    """One data folder and the commands run on it, from a desk folder beside it."""

    home: Path
    env: dict[str, str] = field(default_factory=dict)
    within: bool = False  # run commands in this process

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def bucket(self) -> Path:
        return self.data / "bucket"

    def environment(self, **more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("ADE_")}
        path = f"{short_ade().parent}:{ADE.parent}:{kept.get('PATH', '')}"
        return {**kept, "PATH": path, "ADE_STORAGE_DATA_DIR": str(self.data), **self.env, **more}

    def __call__(self, *words: object, expect: int | None = 0, stdin: str = "", **env: str) -> Done:
        run = self._within if self.within else self._spawned
        done = run([str(word) for word in words], stdin, self.environment(**env))
        said = f"ade {' '.join(map(str, words))}\n{done.out}\n{done.err}"
        assert expect is None or done.code == expect, said
        assert "Traceback" not in done.err, said
        return done

    def _spawned(self, words: list[str], stdin: str, env: dict[str, str]) -> Done:
        done = subprocess.run(
            [str(short_ade()), *words],
            env=env,
            cwd=self.home,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def _within(self, words: list[str], stdin: str, env: dict[str, str]) -> Done:
        out, err = io.StringIO(), io.StringIO()
        with (
            patch.dict(os.environ, env, clear=True),
            patch.object(sys, "stdin", io.StringIO(stdin)),
            contextlib.chdir(self.home),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                code = main(words)
            except SystemExit as end:
                code = int(end.code or 0)
        return Done(code, out.getvalue(), err.getvalue())

    def write(self, name: str, content: Any) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    def drop(self, *more: object, tenant: str = "acme", csv: str = CSV, expect: int | None = 0) -> Done:
        """A small drop that any engine and sandbox can do."""
        self.write("members.csv", csv)
        self.write("manifest.json", MEMBERS)
        words = ("members.csv", "--manifest", "manifest.json", "--tenant", tenant, *more)
        return self("drop", *words, expect=expect)

    def dropped(self, **more: Any) -> str:
        """Drop and give the job's id."""
        return str(self.drop("--json", **more).json["jobs"][0]["job_id"])

    def state(self, job_id: str) -> str:
        return str(self("status", job_id, "--json").json["state"])

    @contextlib.contextmanager
    def up(self, *words: str, first: str | None = None, **env: str):
        """`ade up` (or another long command) until the block ends; the events it said so far are in `.events`.

        The block begins with the event `first`, by default when a runner has started.
        """
        with Up(self, words or ("up",), env, {first} if first else {"up", "runner_started"}) as running:
            yield running


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, ade: Ade, *words: str, **env: str) -> None:
        self._fd, secondary = pty.openpty()
        fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.process = subprocess.Popen(
            [str(ADE), *words],
            env=ade.environment(TERM="xterm", **env),
            cwd=ade.home,
            stdin=secondary,
            stdout=secondary,
            stderr=secondary,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no other way to a terminal of its own
        )
        os.close(secondary)
        self.said = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._fd)

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def until(self, text: str) -> None:
        while text not in self.said:
            assert self._more(), f"{text!r} was never shown:\n{self.said}"

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._more():
            pass
        return self.process.wait(120)

    def _more(self) -> bool:
        try:
            block = os.read(self._fd, 65536) if select.select([self._fd], [], [], 60)[0] else b""
        except OSError:  # how Linux says that the other side is gone
            block = b""
        self.said += block.decode("utf-8", "replace")
        return bool(block)


class Up:
    def __init__(self, ade: Ade, words: tuple[str, ...], env: dict[str, str], first: set[str]) -> None:
        self._first = first
        self.process = subprocess.Popen(
            [str(ADE), *words],
            env=ade.environment(**env),
            cwd=ade.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.events: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._reader.start()
        self.wait_for(lambda e: e["event"] in self._first)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.end()
        self._reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()

    def end(self, *numbers: int) -> int:
        """Send SIGTERM, or these signals one after the other, and wait; its exit code."""
        for number in numbers or (signal.SIGTERM,):
            self.process.send_signal(number)
            # Two equal signals at once are one to the kernel: the first must have been heard.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.5)
        return self.process.wait(120)

    def wait_for(self, wanted) -> dict[str, Any]:
        """The first event that is wanted, past or future."""
        with self._changed:
            self._changed.wait_for(lambda: any(map(wanted, self.events)) or self._reader_done(), timeout=120)
            found = next(filter(wanted, self.events), None)
        assert found is not None, f"no such event among {self.events}\n{self._stderr()}"
        return found

    def ended(self, subject_tenant: str) -> dict[str, Any]:
        return self.wait_for(lambda e: e["event"] == "job_ended" and f"/{subject_tenant}/" in e["outputs"])

    def _reader_done(self) -> bool:
        return not self._reader.is_alive()

    def _stderr(self) -> str:
        return self.process.stderr.read() if self.process.poll() is not None else ""

    def _read(self) -> None:
        for line in self.process.stdout:
            with self._changed:
                self.events.append(json.loads(line))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()
