"""The source tables of a job: their rows as chunks, values filled down, and lookup tables."""
