"""The quadtree of cells with inverted lists, for clauses that move."""
