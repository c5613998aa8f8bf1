"""Nodes divided by keyword: which cuts, and who falls into them."""
