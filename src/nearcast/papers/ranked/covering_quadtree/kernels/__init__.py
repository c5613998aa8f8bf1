"""The loops of the covering quadtree."""
