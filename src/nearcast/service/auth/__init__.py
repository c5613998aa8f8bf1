"""Keys and who may do what."""
