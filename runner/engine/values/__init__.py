"""Pass 3: what declared types make of the values of a column."""
