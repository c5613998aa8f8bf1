"""Ids, numbers and points as callers give them, checked; booleans and text are not numbers."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TypeAlias

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
    """`value` as an int if it is a whole number (NumPy's too), else None."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        return None
    return int(value)


def read_point(point: object, what: str) -> tuple[float, float]:
    """(x, y) as finite floats; `what` names it in the error."""
    pair = None if isinstance(point, (str, bytes, dict, set, frozenset)) else _as_list(point)
    if pair is None or len(pair) != 2:
        raise RegionError(f"{what} is {point!r}; expected (x, y), two finite numbers")
    return finite_number(pair[0], f"x of {what}"), finite_number(pair[1], f"y of {what}")


def _as_list(value: object) -> list[object] | None:
    try:
        return list(value)  # type: ignore[call-overload, no-any-return]
    except TypeError:
        return None


Id: TypeAlias = int | str
"""What identifies a subscription or a message: an int64 or a non-empty string."""

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def checked_id(value: object, label: str, error: type[NearcastError]) -> Id:
    """`value` as an id: an int64 or a non-empty str. `label` says in the error what it identifies."""
    if isinstance(value, str):
        if not value:
            raise error(f"the id of the {label} is ''; expected a non-empty str or an int")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise error(f"the id {value!r} of the {label} cannot be written as UTF-8; drop the lone surrogate") from None
        return str(value)
    number = whole_number(value)
    if number is None:
        kind = type(value).__name__
        raise error(f"the id {value!r} of the {label} is of type {kind}; expected an int (int64) or a non-empty str")
    if not _INT64_MIN <= number <= _INT64_MAX:
        raise error(f"the id {number!r} of the {label} does not fit into int64; give it as a str")
    return number
