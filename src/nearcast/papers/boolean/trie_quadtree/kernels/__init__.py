"""The loops of the trie of quadtrees."""
