"""Pass 1, structure: the tables a person would find in a sheet."""

from runner.engine.structure.finder import Finder, find_tables, look_through
from runner.engine.structure.tables import Box, Choice, Column, Label, RowScores, Table

__all__ = ["Box", "Choice", "Column", "Finder", "Label", "RowScores", "Table", "find_tables", "look_through"]
