"""The quadtree per posting list, for clauses that move."""
