"""The loops of the window grid: building a segment and searching it."""
