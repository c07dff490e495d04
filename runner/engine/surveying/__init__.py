"""Pass 1 for a whole job: opens the inputs, finds their tables, reports what is irregular, accounts for every row."""
