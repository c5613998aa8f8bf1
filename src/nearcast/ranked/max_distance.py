"""The distance at which a message is not near any more."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nearcast.errors import NearcastError
from nearcast.model.inputs import finite_number
from nearcast.model.regions import Box
from nearcast.model.relevance import LONLAT_MAX_DISTANCE_M
from nearcast.model.spaces import Space


def reach_of(space: Space, bounds: Box | Sequence[float] | None, max_distance: float | None) -> float:
    """As given, or the diagonal of the bounds in the plane, or half the circumference of the Earth."""
    if max_distance is not None:
        reach = finite_number(max_distance, "max_distance", NearcastError)
    elif bounds is not None:
        box = bounds if isinstance(bounds, Box) else Box(*bounds)
        reach = math.hypot(box.x1 - box.x0, box.y1 - box.y0) if not space.is_lonlat else LONLAT_MAX_DISTANCE_M
    elif space.is_lonlat:
        reach = LONLAT_MAX_DISTANCE_M
    else:
        raise NearcastError("neither bounds nor max_distance was given; in the plane a ranker needs one of them")
    if not 0 < reach < math.inf:
        raise NearcastError(f"max_distance is {reach!r}; expected a finite number > 0; give it, or smaller bounds")
    return float(reach)
