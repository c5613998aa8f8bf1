"""Cells of a uniform grid, each with lists by keyword, for clauses and for messages."""
