"""Rows with errors, set aside for their sender in the look of their sheet."""
