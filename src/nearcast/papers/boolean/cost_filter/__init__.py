"""Trie and quadtree over the same clauses; a cost model sends each message through one or both. Paper: LFilter."""
