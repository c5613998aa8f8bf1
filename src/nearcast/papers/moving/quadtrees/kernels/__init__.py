"""The loops of the moving quadtrees."""
