"""The loops of the pivot quadtree."""
