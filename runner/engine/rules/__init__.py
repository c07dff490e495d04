"""The rule author's Python: loaded once, called with the arguments it names, never trusted to succeed."""
