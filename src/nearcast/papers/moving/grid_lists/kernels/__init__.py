"""The loops of the grids of lists."""
