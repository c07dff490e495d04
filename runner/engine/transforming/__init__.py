"""Passes 3 to 5 over the chunks of a table: a column's conventions and scales, then convert, check and write."""
