"""Pass 1, structure: the tables a person would find in a sheet."""

from runner.engine.common.a1 import CellRange
from runner.engine.structure.detection import TableDetector, find_tables
from runner.engine.structure.tables import Choice, Column, Label, Partition, RowScores, Table

__all__ = ["CellRange", "Choice", "Column", "Label", "Partition", "RowScores", "Table", "TableDetector", "find_tables"]
