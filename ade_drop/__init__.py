"""The one name that ade-drop has in an environment.

In a wheel its packages (core, handlers, infra, runner, console) are below this one, in a checkout beside it. Only our
own processes import them, and put their folder first for that: docs/explanation/decisions/one-name.md.
"""

import sys
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).resolve().parent
ROOT: Final = _HERE if (_HERE / "core").is_dir() else _HERE.parent  # the folder of our packages


def put_own_packages_first() -> None:
    """Make `import core` ours in this process, whatever else the environment has under that name."""
    sys.path.insert(0, str(ROOT))
