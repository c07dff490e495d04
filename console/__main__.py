"""`python -m console` is `ade`."""

import sys

from console.cli.main import main

sys.exit(main())
