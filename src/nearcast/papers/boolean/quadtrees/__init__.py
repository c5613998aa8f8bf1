"""What the quadtree indexes share: clauses bound to the cheapest cells, and posting lists by keyword and cell.

`cost_inputs.py` estimates where messages are, `kernels/quadtree.py` chooses the cells of a clause, `kernels/lists.py` files and
removes clauses, `kernels/match.py` scans lists; the two indexes of `index.py` differ in the order in which they find the lists
of a message.
"""
