"""Passes 3 and 4: converts the values of a column to the declared type and checks them."""
