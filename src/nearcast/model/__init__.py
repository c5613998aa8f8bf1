"""The concepts of nearcast: messages, subscriptions, regions, results.

A publisher sends a `Message` (`message.py`): keywords or a text, a location that is a point or a box, perhaps a time and an
expiry. A `Subscription` (`subscription.py`) has a `Region` (`regions.py`: box, circle, polygon) and either keywords that must
all be present or an `Interest` (`interest.py`), a boolean expression that `dnf.py` turns into clauses of required and
forbidden words. Both use the same `Space` (`spaces.py`), longitude and latitude or a plane, and the same normal form of words
(`normalise.py` for keywords, `analysis.py` for running text). When a message lies in the region and its words satisfy the
interest, there is a `Delivery` (`delivery.py`). A moving subscription gets `Change`s, a ranked one (`RankedSubscription`,
`relevance.py`, `window.py`) gets `RankChange`s.

These modules define the results in plain Python, easy to check by hand; indexes compute the same results fast. Objects are
immutable and validated when they are made. Only the checks that need the space come later: an engine calls
`region.check(space)`.

Import from the modules. This file imports nothing, so that `message` and `delivery` load without geometry libraries.
"""
