"""The loops of the impact grid, one module for each step of a rebuild or a search."""
