"""A tree that divides by keyword or by space, whichever is expected to save more; kept up to date clause by clause."""
