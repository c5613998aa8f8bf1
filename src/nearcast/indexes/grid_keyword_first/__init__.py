"""Lists by keyword, each with a grid of its own once it is long, for clauses and for messages."""
