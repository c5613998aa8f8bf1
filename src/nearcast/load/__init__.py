"""A load generator: what a server acknowledges per second, how long it takes, how many deliveries its live streams carry.

It shares the machine with the server more often than not, so it is lean: requests are prepared before the clock starts
(`preparing.py`), a connection (`posting.py`) is a few dozen lines on a bare socket, and a listener (`listening.py`) counts
events without decoding them. Only answers that say "kept" count, and the listeners' counts are compared with what was due.
`measuring.py` runs the parts and gives the figures.
"""
