"""What the quadtree indexes share: clauses bound to the cheapest cells, and posting lists by keyword and cell.

`locations.py` says where messages are expected, `kernels/quadtree.py` chooses the cells of a clause, `maintain.py` files and
unfiles, `match.py` scans lists, `index.py` owns it all. An index adds in which order it finds the lists of a message.
"""
