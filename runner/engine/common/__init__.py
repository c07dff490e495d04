"""What every pass uses: addresses, fields, findings, sets of rows, spellings and instants. Knows no pass."""
