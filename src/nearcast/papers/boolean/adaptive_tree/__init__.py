"""A tree that divides by keyword or by space, whichever is expected to save more, and is updated clause by clause."""
