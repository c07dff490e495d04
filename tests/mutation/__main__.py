"""Mutation testing of the spine: `python -m tests.mutation [MODULE…]`."""

import sys

from tests.mutation.run import main

sys.exit(main())
