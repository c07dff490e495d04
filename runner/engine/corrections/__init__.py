"""Corrected rejects that come back: recognised, compared with what was sent, and put into their input."""
