"""The indexes and engines of the papers, beside ours. They are loaded by name; no other package imports them."""
