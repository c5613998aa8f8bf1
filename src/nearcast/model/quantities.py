"""Reading numbers people give: finite, whole, in range; booleans and text are not numbers."""

from __future__ import annotations

import math
from numbers import Integral, Real

from nearcast.errors import NearcastError, RegionError


def finite_number(value: object, what: str, error: type[NearcastError] = RegionError) -> float:
    """`value` as a float; `what` names it in the error."""
    if type(value) is float and math.isfinite(value):
        return value
    if not isinstance(value, bool) and isinstance(value, Real):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise error(f"{what} is {value!r}; expected a finite number")


def whole_number(value: object) -> int | None:
    """`value` as an int if it is one (also NumPy's), else None."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        return None
    return int(value)


def read_point(given: object, what: str) -> tuple[float, float]:
    """(x, y) as finite floats; `what` names it in the error."""
    pair = None if isinstance(given, (str, bytes, dict, set, frozenset)) else _listed(given)
    if pair is None or len(pair) != 2:
        raise RegionError(f"{what} is {given!r}; expected (x, y), two finite numbers")
    return finite_number(pair[0], f"x of {what}"), finite_number(pair[1], f"y of {what}")


def _listed(given: object) -> list[object] | None:
    try:
        return list(given)  # type: ignore[call-overload, no-any-return]
    except TypeError:
        return None
