"""Contracts of other tools: the fields that they ask for, read into manifests and written from them.

JSON Schema, ODCS (open data contracts), Frictionless Table Schema and SQL's CREATE TABLE. Foreign files are untrusted:
their size and depth are bounded, YAML has neither tags nor aliases, and nothing is ever fetched.
"""

from console.contracts.exporting import EXPORTS, exported
from console.contracts.importing import read_contract

__all__ = ["EXPORTS", "exported", "read_contract"]
