"""Trie over the keywords of the clauses; each node knows the box of everything below it. Paper: Yu et al. 2015, MBRTrie."""
