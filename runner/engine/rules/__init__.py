"""The rule author's Python: loaded once, called with what it names, never trusted to succeed."""
