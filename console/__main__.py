"""`python -m console` is `ade`."""

import sys

from console.main import main

sys.exit(main())
