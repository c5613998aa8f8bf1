"""The loops of the IR-tree of a window."""
