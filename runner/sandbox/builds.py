"""The ways to build a jail's box, strongest first. Which one works here is for the probe to find out."""

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.manifests import parse_manifest
from core.ports import BoxOrder
from runner.sandbox.box import landlock, namespaces, seccomp
from runner.sandbox.box.zygote import Plan
from runner.sandbox.session import OWN_ROOT, Engine

BOX_ID = 64_900  # user and group of boxes where the runner is root; in no distribution's list


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """One way."""

    namespaces: str  # "own", "bubblewrap" or "none"
    own_user: bool = False
    landlock: bool = True
    seccomp: bool = True

    @property
    def cold_only(self) -> bool:
        """Bubblewrap makes its namespaces around one job; nothing can be forked into them later."""
        return self.namespaces == "bubblewrap"

    @property
    def kept(self) -> bool:
        """The first process of a box is a warden that outlives the engine: nothing in its namespace can touch it."""
        return self.namespaces == "own"

    @property
    def verifies(self) -> bool:
        """The warden may verify: no engine can signal, trace or write to it, and it sees every one of them dead."""
        return self.kept and self.seccomp

    @property
    def box_root(self) -> str | None:
        """Where a box finds its job; None: where the host has it."""
        return None if self.namespaces == "none" else namespaces.JOB

    def plan(self, engine: Engine, *, network: bool, root: Path, warm: bool) -> Plan:
        kind = {"own": "own", "bubblewrap": "given", "none": "none"}[self.namespaces]
        return Plan(
            module=f"{engine.package}.boxed",
            package=engine.package,
            paths=engine.paths,
            namespaces=kind,
            landlock=self.landlock,
            seccomp=self.seccomp,
            network=network,
            box_id=BOX_ID if self.own_user else None,
            root=str(root),
            rehearsal=rehearsal() if warm and engine.rehearses else None,
        )

    def shown(self, order: BoxOrder) -> list[tuple[str, str]]:
        """What of the host a box sees, and where."""
        scratch = order.scratch.resolve()
        pairs = [(scratch / "in", f"{namespaces.JOB}/in"), (scratch / "config", f"{namespaces.JOB}/config")]
        if order.layer is not None:
            pairs.append((order.layer.resolve(), namespaces.LAYER))
        there = [(str(source), target) for source, target in pairs if source.is_dir()]
        return there if self.box_root else [(source, source) for source, _ in there]

    def layer(self, order: BoxOrder) -> str | None:
        """Where a box sees its layer."""
        if order.layer is None:
            return None
        return namespaces.LAYER if self.box_root else str(order.layer.resolve())

    def wrapper(self, order: BoxOrder, engine: Engine) -> list[str]:
        """The command that has to stand before the zygote's."""
        if self.namespaces != "bubblewrap":
            return []
        args = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        args += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        args += ["--uid", str(namespaces.INSIDE_USER), "--gid", str(namespaces.INSIDE_USER)]
        args += [] if order.network else ["--unshare-net"]
        places = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/etc/ld.so.cache"]
        places += ["/etc/localtime", "/usr/share/zoneinfo", sys.base_prefix, sys.prefix]
        places += [str(OWN_ROOT / "runner"), *([] if engine.root is None else [str(engine.root)])]
        if order.network:
            places += ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/pki"]
        for place in dict.fromkeys(places):
            if os.path.islink(place):  # noqa: PTH114 - the link itself is wanted, as it stands
                args += ["--symlink", os.readlink(place), place]  # noqa: PTH115 - as above
            else:
                args += ["--ro-bind-try", place, place]
        for device in ("/dev/null", "/dev/zero", "/dev/urandom"):
            args += ["--dev-bind", device, device]
        for source, target in self.shown(order):
            args += ["--ro-bind", source, target]
        return [*args, "--proc", "/proc", "--chdir", "/", "--"]


def rehearsal() -> dict[str, Any]:
    """A small job of our own for the engine to warm up on, and how to verify its outputs."""
    manifest = {
        "manifest": 1,
        "name": "rehearsal",
        "fields": [{"name": "id", "type": "integer"}, {"name": "name"}, {"name": "start", "type": "date"}],
    }
    inputs = [{"role": "primary", "name": "rehearsal.csv", "path": "", "size": 0, "sha256": "0" * 64}]
    return {
        "order": 1,
        "job": {"job_id": "rehearsal", "tenant": "_rehearsal", "workflow": "rehearsal", "attempt": 1},
        "manifest": parse_manifest(json.dumps(manifest).encode()).model_dump(mode="json"),
        "params": {},
        "inputs": inputs,
        "config": {"path": None, "digest": ""},
        "outputs": ["normalized.xlsx", "artifact.json"],
        "sandbox": {"driver": "jail", "level": "none", "rungs": {}},
        "verify": {"audit": False, "inputs": inputs, "title": manifest["name"], "formats": []},
        "text": "id,name,start\n1,Ann,2026-01-05\n2,Bob,2026-02-06\n",
    }


def candidates() -> list[Build]:
    """Every build worth trying on this host."""
    has_landlock, has_seccomp = landlock.version() > 0, seccomp.supported()
    root = os.geteuid() == 0
    found = [Build(namespaces="own", own_user=True)] if root else []
    found.append(Build(namespaces="own"))
    if shutil.which("bwrap"):
        found.append(Build(namespaces="bubblewrap"))
    found.append(Build(namespaces="none"))
    return [
        Build(
            namespaces=build.namespaces,
            own_user=build.own_user,
            landlock=has_landlock,
            seccomp=has_seccomp,
        )
        for build in found
    ]
