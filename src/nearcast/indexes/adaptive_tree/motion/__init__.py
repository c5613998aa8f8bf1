"""What it costs that clauses move: equations 8 to 13 and Algorithm 8 of the paper."""
