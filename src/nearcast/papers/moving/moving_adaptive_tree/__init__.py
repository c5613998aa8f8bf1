"""The adaptive tree with the living messages in it: stored in the leaves they reach, found by the clauses that stand there.

`layout.py` has the lists of messages by node, `build.py` stores messages and hands them down again, `maintain.py` keeps lists
and tree together while clauses come, go and move, `match.py` looks for the messages of clauses, `listed_tree.py` owns both.
`separated_tree.py` has the messages in a grid beside the tree instead.
"""
