"""R-tree over the boxes of the clauses; keywords are tested at the end."""
