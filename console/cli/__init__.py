"""The command line: `ade`."""
