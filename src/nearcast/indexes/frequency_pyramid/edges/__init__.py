"""What leads from a cell or a trie node, by a keyword, to a list or to a trie node: one hash table."""
