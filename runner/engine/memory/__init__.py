"""What is remembered of earlier drops: confirmed headers, spellings, shapes of tables, and the last drop's profile."""
