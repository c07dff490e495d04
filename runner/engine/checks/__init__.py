"""Pass 4: what declared rules say about the values."""
