"""A load generator: messages that a server acknowledges per second, its latency, and the deliveries on its live streams.

It often shares the machine with the server, so it is lean. Requests are encoded before the clock starts and posted over a bare
socket (`requests.py`); a listener (`listeners.py`) counts events without decoding them. Only acknowledged requests count, and
the events of the listeners are compared with the expected number. `phases.py` runs the phases and returns their results.
"""
