"""The way of one clause through the tree."""
