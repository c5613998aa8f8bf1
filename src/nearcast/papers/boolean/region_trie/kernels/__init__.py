"""The loops of the region trie."""
