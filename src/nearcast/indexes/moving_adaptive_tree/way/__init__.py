"""The way of a clause through the tree, when nothing on it is to change."""
