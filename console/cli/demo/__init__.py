"""What `ade demo` shows."""
