"""Pass 3: converts the values of a column to the declared type."""
