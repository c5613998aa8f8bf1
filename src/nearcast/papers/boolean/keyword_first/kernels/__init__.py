"""The loops of the keyword-first index."""
