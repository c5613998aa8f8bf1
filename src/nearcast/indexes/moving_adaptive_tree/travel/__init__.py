"""Moves: what they change in the results, and in the tree."""
