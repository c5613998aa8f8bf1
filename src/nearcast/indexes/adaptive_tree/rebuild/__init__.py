"""Parts of the tree that are built anew: when, and with what."""
