"""Lists of clauses with their boxes, each in a chunk of one growing array."""
