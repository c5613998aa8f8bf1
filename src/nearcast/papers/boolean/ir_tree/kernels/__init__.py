"""The loops of the IR-tree."""
