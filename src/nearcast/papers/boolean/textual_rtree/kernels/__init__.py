"""The loops of the textual R-tree."""
