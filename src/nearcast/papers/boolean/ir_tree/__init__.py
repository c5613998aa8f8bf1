"""IR-tree turned to filtering: an R-tree with an inverted file in each node."""
