"""Comparisons of an engine with its oracle that say where they differ."""
