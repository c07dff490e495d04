"""Pass 2: which column is which field, and why."""
