"""Nodes divided by space: which grid, and who falls into its cells."""
