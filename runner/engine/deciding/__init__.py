"""Decides between mapping and transforming: which tables hold the records, and what a person is asked."""
