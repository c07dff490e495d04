"""How a box comes to its engine and to the packages of its rules. Standard library only.

Our packages are importable while the engine is loaded, and not afterwards: the engine finds its own modules through the
packages that it has loaded, and a rule that imports `core` gets its own or none.
"""

import gc
import importlib
import os
import sys
from typing import Any


def import_engine(module: str, paths: list[str]) -> Any:
    """Import it from these folders; nothing that comes later is found in them."""
    sys.path[:0] = paths
    gc.disable()  # loading makes next to no garbage, and looking for it takes a twentieth of the time
    try:
        engine = importlib.import_module(module)
    finally:
        gc.enable()
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) not in paths]
    return engine


def add_layer(layer: str) -> None:
    """Let rules import what their requirements.txt brings, rather than what the runner's environment has."""
    at = [n for n, entry in enumerate(sys.path) if entry.endswith(("site-packages", "dist-packages"))]
    sys.path.insert(at[0] if at else len(sys.path), layer)


def run_engine(package: str, paths: list[str], layer: str) -> None:
    """Run the engine as a program with the words in sys.argv; an empty `layer`: there is none."""
    import runpy  # noqa: PLC0415 - zygotes do without

    import_engine(f"{package}.job", paths)
    if layer:
        add_layer(layer)
    runpy.run_module(package, run_name="__main__", alter_sys=True)
