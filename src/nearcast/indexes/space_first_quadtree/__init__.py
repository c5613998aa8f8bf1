"""Quadtree of cells chosen by cost; in each a ranked-key inverted list."""
