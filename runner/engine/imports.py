"""Rules import their own packages, and the engine its own, also where both have the same name.

Theory of operation. sys.modules has one place per name. If the rules' folders bring a module under a name that the
engine uses (`runner`, or one of its libraries), the engine's modules of that name are set aside before the first rule
is loaded, and the name belongs to the rules: for import statements, wherever they are, and for importlib. An import
statement of the engine's still gets the engine's: `__import__` knows its caller by the caller's globals, puts back for
that one import what was set aside, and clears it away again. Without such a name nothing is changed.
"""

import builtins
import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

# All that the engine imports beside the standard library.
OWN_NAMES: Final = ("runner", "chardet", "isal", "jsonschema_rs")
_OWN_PATH: Final = tuple(sys.path)  # the rules' folders are added after this module is loaded


def leave_names_to_rules() -> None:
    """Give the rules the names that their folders on sys.path bring. Call it before the first rule is loaded."""
    shared = {name for name in OWN_NAMES if _place(PathFinder.find_spec(name)) not in (None, _place(_own_spec(name)))}
    if shared:
        builtins.__import__ = _Importer(shared | {__name__.partition(".")[0]})


@contextlib.contextmanager
def own_libraries() -> Iterator[None]:
    """For a call of a library that imports more of itself by other means than import statements."""
    importer = builtins.__import__
    with importer.own_modules() if isinstance(importer, _Importer) else contextlib.nullcontext():
        yield


def _own_spec(name: str) -> ModuleSpec | None:
    """Return where the engine finds a module of this name; None if it has none."""
    loaded = sys.modules.get(name)
    return PathFinder.find_spec(name, _OWN_PATH) if loaded is None else loaded.__spec__


def _place(spec: ModuleSpec | None) -> object:
    """Return where a module is; None: nowhere."""
    return None if spec is None else spec.origin or list(spec.submodule_search_locations or ())


class _Importer:
    """Stands in for `builtins.__import__`. Not for threads that import while the engine does."""

    def __init__(self, names: set[str]) -> None:
        self._names = names
        self._import = builtins.__import__
        self._own = self._pop_modules()
        self._restored = False  # whether the names are the engine's for now

    def __call__(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - as Python calls it
        locals: Mapping[str, Any] | None = None,  # noqa: A002 - as above
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import as Python does, but with the engine's modules if the engine asks."""
        shared = level > 0 or name.partition(".")[0] in self._names
        with self.own_modules() if shared and self._is_own(globals) else contextlib.nullcontext():
            return self._import(name, globals, locals, fromlist, level)

    @contextlib.contextmanager
    def own_modules(self) -> Iterator[None]:
        """Put the engine's own modules, and its sys.path, in place of the rules' during the context; may be nested."""
        if self._restored:
            yield
            return
        theirs, path = self._pop_modules(), sys.path[:]
        sys.modules.update(self._own)
        sys.path[:] = _OWN_PATH
        self._restored = True
        try:
            yield
        finally:
            self._restored = False
            sys.path[:] = path
            self._own = self._pop_modules()
            sys.modules.update(theirs)

    def _is_own(self, caller: Mapping[str, Any] | None) -> bool:
        """Whether these are the globals of one of the engine's modules."""
        module = self._own.get(str((caller or {}).get("__name__")))
        return module is not None and vars(module) is caller

    def _pop_modules(self) -> dict[str, ModuleType]:
        """Remove the modules of the shared names from sys.modules, and return them."""
        names = [name for name in sys.modules if name.partition(".")[0] in self._names]
        return {name: sys.modules.pop(name) for name in names}
