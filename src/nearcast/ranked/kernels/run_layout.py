"""Where a run of ticks stands: positions and codes that every engine has, and what saved folders hold."""

from __future__ import annotations

from typing import NamedTuple


class Rules(NamedTuple):
    """How ticks go: a window of time or of so many messages, changes told in the end only, dominated messages not held."""

    is_timed: bool
    n_counted: int
    is_net: bool
    is_banded: bool


# Positions of `at`: the next place to arrive, the phase it is in, candidates and how many are done, the newest message,
# living messages in the heap, subscriptions to refill and those whose threshold rose.
PLACE, PHASE, N_CANDIDATES, N_DONE, NEWEST, N_HEAP, N_LACKING, N_CUT = 0, 1, 2, 3, 4, 5, 6, 7
# Positions of `clock`.
NOW, SPAN, NEWEST_TIME = 0, 1, 2
# Phases of a tick.
ARRIVE, ADMIT, EXPIRE, REFILL, TELL = 0, 1, 2, 3, 4
# What stops a run: it is done, or its caller has to give what it lacks.
DONE, LACKS_JOURNAL, LACKS_MESSAGES, LACKS_OUTPUT = 0, 1, 2, 3
# Instead of the place of the next message.
UNFINISHED, ALL_ARRIVED = -1, -2
# Instead of a sequence number.
NO_MESSAGE = -1
