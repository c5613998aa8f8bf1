"""`--set key=value` and `--at x,y` of several commands."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from nearcast.errors import NearcastError


def read_settings(given: Iterable[str]) -> dict[str, Any]:
    """`key=value` pairs; a value is JSON (3, 0.5, true, [1, 3]) or else the text itself."""
    parameters = {}
    for pair in given:
        name, sign, text = pair.partition("=")
        if not sign or not name.strip():
            raise NearcastError(f"--set {pair!r} is not key=value; expected for example --set range=side")
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            value = text
        parameters[name.strip()] = tuple(value) if isinstance(value, list) else value
    return parameters


def read_place(given: str, option: str = "--at") -> tuple[float, ...]:
    """`x,y`, or `x0,y0,x1,y1` for an area; `option` names it in the error."""
    try:
        numbers = tuple(float(part) for part in given.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in (2, 4):
        raise NearcastError(f"{option} {given!r} is not a place; expected X,Y (longitude first) or X0,Y0,X1,Y1")
    return numbers
