"""Families by an author who has not read the engine or the other families; importing `every` registers them all."""
