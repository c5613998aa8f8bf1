"""Where a clause goes: a list, else a trie, else further down."""
