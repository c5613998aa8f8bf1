"""The adaptive tree with the live messages in it: stored in the leaves they reach, found by the clauses filed there.

`layout.py` has the lists of messages by node, `tree_with_messages.py` owns tree and lists, `motion.py` records how clauses
move, `index.py` is the index; it can keep the messages in a grid next to the tree instead. In `kernels`: `message_lists.py`
stores messages, `maintain.py` keeps lists and tree consistent while clauses come, go and move, `find_messages.py` finds the
messages of clauses, `move_diff.py` what a move changes.
"""
