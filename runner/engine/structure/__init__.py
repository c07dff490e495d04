"""Pass 1, structure: the tables a person would find in a sheet."""

from runner.engine.structure.finder import Finder, find_tables, look_through
from runner.engine.structure.tables import CellRange, Choice, Column, Label, RowScores, Table

__all__ = ["CellRange", "Choice", "Column", "Finder", "Label", "RowScores", "Table", "find_tables", "look_through"]
