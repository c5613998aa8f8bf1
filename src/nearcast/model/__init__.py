"""The words nearcast speaks: what is sent, what is wanted, where, and what comes of it.

A publisher sends a `Message` (`message.py`): some keywords or a text, a location that is a point or a box, perhaps a time
and an expiry. A subscriber leaves a `Subscription` (`subscription.py`): a `Region` (`regions.py`: box, circle, polygon) and
either keywords that must all be present or an `Interest` (`interest.py`), a boolean expression that `dnf.py` turns into
clauses of required and forbidden words. Both sides meet in a `Space` (`spaces.py`), longitude and latitude or a plain plane,
and in one spelling of words (`normalise.py` for keywords, `analysis.py` for running text). When a message lies in the region
and its words satisfy the interest there is a `Delivery` (`delivery.py`). A moving subscriber sees `Change`s, a ranked one
(`RankedSubscription`, `relevance.py`, `window.py`) sees `RankChange`s.

Everything here is a definition in plain Python, easy to check by hand; indexes are fast ways to the same answers. Objects are
immutable and validated when made, so that whatever holds one can trust it. The exceptions are the checks that need the
space: an engine calls `region.check(space)`.

Import from the modules; this file imports nothing, so that the light ones (`message`, `delivery`) do not pull in geometry.
"""
