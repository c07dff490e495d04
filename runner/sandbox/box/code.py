"""Which files a box needs to see to run Python: the interpreter's, the libraries', the engine's. No others."""

import os
import sys

LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")
FILES = ("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
NETWORK_FILES = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/ssl",
    "/etc/pki",
    "/usr/share/ca-certificates",
)


def paths(packages: tuple[str, ...], *, network: bool) -> list[str]:
    """Every file and folder to show; `packages` are imported already, and their folders are shown too."""
    wanted = [*LIBRARIES, *FILES, *(NETWORK_FILES if network else ())]
    wanted += [entry for entry in sys.path if _is_library(entry)]
    wanted.append(f"{sys.base_prefix}/lib")
    for name in packages:
        wanted += list(sys.modules[name].__path__)
    return _outermost([path for path in wanted if os.path.exists(path)])  # noqa: PTH110 - stays light


def _is_library(entry: str) -> bool:
    """A place of the interpreter or of installed packages; not a checkout that happens to be on the path."""
    if not os.path.isdir(entry):  # noqa: PTH112 - as above
        return False
    name = os.path.basename(entry)  # noqa: PTH119 - as above
    return name in {"site-packages", "dist-packages"} or entry.startswith(f"{sys.base_prefix}/lib")


def _outermost(wanted: list[str]) -> list[str]:
    """Without what lies below another one."""
    kept: list[str] = []
    for path in sorted(set(wanted)):
        if not any(path.startswith(f"{outer}/") and not os.path.islink(outer) for outer in kept):  # noqa: PTH114
            kept.append(path)
    return kept
