"""Trie over keywords with a quadtree in each of its nodes where many clauses end. Paper: Wang et al. 2017, Trie-Qd."""
