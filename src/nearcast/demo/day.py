"""Has a server live through a day of the city: everybody subscribes, then reports come and cars move, moment by moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec

from nearcast.client import Client
from nearcast.demo.city import City

_BEATS_PER_SECOND = 4
_encode_lines = msgspec.json.Encoder().encode_lines


def settle(client: Client, city: City) -> int:
    """Everybody subscribes; returns how many they are."""
    everybody = [*city.neighbours(), *city.cars(), *city.desks()]
    answer = client.subscribe_many(_encode_lines(everybody))
    if answer.rejected:
        raise RuntimeError(f"{answer.rejected} subscriptions of the demo were refused, first: {answer.results[0]}")
    return answer.accepted


def live(client: Client, city: City, reports_per_second: float, is_over: Callable[[], bool]) -> None:
    """Reports and moves until it is over. A server that lags is not flooded: a beat begins when the one before is answered."""
    reports, due = city.reports(), 0.0
    moves = _in_turn(city)
    while not is_over():
        began = time.monotonic()
        due += reports_per_second / _BEATS_PER_SECOND
        n_now = int(due)
        due -= n_now
        if n_now:
            client.publish_many(_encode_lines(list(islice(reports, n_now))))
        client.move_many(_encode_lines(next(moves)))
        time.sleep(max(0.0, 1 / _BEATS_PER_SECOND - (time.monotonic() - began)))


def _in_turn(city: City) -> Iterator[list[dict[str, Any]]]:
    """Each car moves once a second, a share of them in each beat."""
    while True:
        everybody = city.moves()
        for beat in range(_BEATS_PER_SECOND):
            yield everybody[beat::_BEATS_PER_SECOND]
