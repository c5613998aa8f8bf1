"""Hypothesis histories: random actions that shrink to the shortest failing list."""
