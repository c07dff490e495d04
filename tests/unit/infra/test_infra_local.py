"""Doorbells, presence and logs: small parts that the embedded stack stands on."""

import io
import json
import subprocess
import sys
import threading

from infra.local.bells import Listener, ring
from infra.local.presence import Presence, new_owner
from infra.logs import Log


def test_a_ring_wakes_a_listener_of_another_thread(tmp_path):
    with Listener(tmp_path / "bell") as listener:
        woken = threading.Event()
        thread = threading.Thread(target=lambda: (listener.wait(120), woken.set()))
        thread.start()
        ring(tmp_path / "bell")
        assert woken.wait(60)
        thread.join()


def test_a_ring_between_two_waits_is_not_lost(tmp_path):
    with Listener(tmp_path / "bell") as listener:
        ring(tmp_path / "bell")
        thread = threading.Thread(target=listener.wait, args=(120,))
        thread.start()
        thread.join(60)
        assert not thread.is_alive()


def test_the_death_of_a_process_is_known_at_once(tmp_path):
    code = (
        "import sys; from pathlib import Path; from infra.local.presence import Presence;"
        "p = Presence(Path(sys.argv[1]), 'runner-x-1-a'); print('up', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"up\n"
    me = Presence(tmp_path, new_owner("runner"))
    assert me.alive("runner-x-1-a")
    assert me.others("runner") == ["runner-x-1-a"]
    other.kill()
    other.communicate()
    assert not me.alive("runner-x-1-a")
    assert me.sweep() == ["runner-x-1-a"]
    me.forget("runner-x-1-a")
    assert me.sweep() == []
    me.close()


def test_an_owner_of_another_machine_is_never_called_dead(tmp_path):
    me = Presence(tmp_path, new_owner("runner"))
    assert me.alive("runner-elsewhere-7-ff")
    me.close()


def test_no_owner_has_the_name_of_another():
    assert len({new_owner("runner") for _ in range(5000)}) == 5000


def test_a_presence_closed_twice_closes_nobody_elses_file(tmp_path):
    me = Presence(tmp_path, new_owner("runner"))
    me.close()
    with (tmp_path / "other").open("wb") as other:  # takes the number that just became free
        me.close()
        other.write(b"still open")


def test_a_log_event_is_one_json_line():
    stream = io.StringIO()
    log = Log(stream=stream, level="info").bind(job_id="j")
    log.debug("too_fine")
    log.info("job_started", tenant="acme")
    (line,) = stream.getvalue().splitlines()
    told = json.loads(line)
    assert (told["event"], told["job_id"], told["tenant"], told["level"]) == ("job_started", "j", "acme", "info")
