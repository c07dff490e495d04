"""Pass 1, structure: the tables a person would find in a sheet."""

from runner.engine.structure.finder import Finder, find_tables, look_through
from runner.engine.structure.labels import Label, RowScores
from runner.engine.structure.tables import Box, Column, Table

__all__ = ["Box", "Column", "Finder", "Label", "RowScores", "Table", "find_tables", "look_through"]
