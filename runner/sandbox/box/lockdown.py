"""From a fresh fork to a box: every right is given up here, in this order, before the first byte of the job.

Standard library only. `become_box` never returns: a fork must not run on into the zygote's code.
"""

import json
import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

from runner.sandbox.box import canary, code, kernel, landlock, limits, namespaces, seccomp

if TYPE_CHECKING:
    from runner.sandbox.box.zygote import Zygote

GO = b"g"
CANNOT_START, OUT_OF_MEMORY = 71, 72
_filters: dict[tuple[bool, bool], seccomp.Filter] = {}


def become_box(zygote: "Zygote", request: dict[str, Any], fds: list[int], parent: int) -> NoReturn:
    """Be the box: lock down, wait for the go, run the engine, exit."""
    status = CANNOT_START
    try:
        gate, order = _take_descriptors(request, fds)
        try:
            _lock_down(zygote, request, parent)
        except BaseException as error:  # noqa: BLE001 - the runner has to hear of it, whatever it is
            os.write(gate, f"{type(error).__name__}: {error}".encode()[:500])
            os._exit(CANNOT_START)
        os.write(gate, GO)
        if os.read(gate, 1) != GO:
            os._exit(CANNOT_START)
        os.close(gate)
        status = _run(zygote, request, order)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 1
    except MemoryError:
        status = OUT_OF_MEMORY
    except BaseException:  # noqa: BLE001 - as above
        traceback.print_exc()
        status = 70
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                continue
        os._exit(status & 0xFF)


def _take_descriptors(request: dict[str, Any], fds: list[int]) -> tuple[int, int]:
    """Put everything in its place and close the rest; the gate and the order come after the job's own."""
    targets = [int(target) for target in request["targets"]]
    gate, order = max(targets) + 1, max(targets) + 2
    kernel.place_fds({gate: fds[1], order: fds[2]} | dict(zip(targets, fds[3:], strict=True)))
    return gate, order


def _lock_down(zygote: "Zygote", request: dict[str, Any], parent: int) -> None:
    plan = zygote.plan
    kernel.set_name("ade-box")
    own = plan.namespaces == "own"
    if own:
        kernel.unshare(kernel.CLONE_NEWNS)
        for name, target in request["show"]:
            namespaces.show(name, plan.root + target)
        namespaces.enter_root(plan.root)
        kernel.drop_bounding_set()
        namespaces.become_user()
    else:
        os.chdir("/")
    kernel.drop_capabilities()
    if own:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        kernel.die_with_parent(parent)
    sys.path += request["path"]
    # A user of its own counts its own tasks; without one, those of everybody who is the same user outside count too.
    tasks = limits.TASKS + (0 if plan.namespaces != "none" else limits.tasks_of_user())
    if plan.landlock:
        readable = [*zygote.code, *request["readable"]]
        landlock.restrict(readable=readable, writable=code.DEVICES, network=plan.network)
    limits.apply(request["limits"], baseline=zygote.baseline, tasks=tasks)
    if plan.seccomp:
        may_fork = own and request["limits"]["processes"] > 0
        _filters[may_fork, plan.network].install(os.getpid())


def _run(zygote: "Zygote", request: dict[str, Any], order_fd: int) -> int:
    with os.fdopen(order_fd, "rb") as file:
        order = json.load(file)
    run = canary.run if request["canary"] else zygote.engine.run
    with os.fdopen(request["channel"], "w", encoding="utf-8") as channel:
        return int(run(order, channel))


def warm_filters(*, network: bool) -> None:
    """Assemble before the fork what every job needs."""
    for processes in (False, True):
        _filters[processes, network] = seccomp.Filter(processes=processes, network=network)
