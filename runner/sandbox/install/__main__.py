"""As an engine starts: `python -m runner.sandbox.install ORDER --channel FD`."""

import json
import os
import sys
from pathlib import Path

from runner.sandbox.install import job

if __name__ == "__main__":
    with os.fdopen(int(sys.argv[3]), "w", encoding="utf-8") as channel:
        sys.exit(job.run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), channel))
