"""What the grid indexes share: clauses, and likewise messages, in lists by keyword and cell of one uniform grid.

`layout.py` has the arrays of one side, `build.py` files and unfiles, `match.py` finds the clauses of messages and the messages
of clauses, `side.py` owns the arrays of a side, `messages.py` the side of the messages, `index.py` puts both together. An index
adds whether lists are found by cell or by keyword.
"""
