"""Lists that neighbouring cells have in common."""
