"""Ranked-key inverted list: each clause is posted under its rarest keyword."""
