"""What may identify a subscription or a message: an int64 or a non-empty string."""

from __future__ import annotations

from typing import TypeAlias

from nearcast.errors import NearcastError
from nearcast.model.quantities import whole_number

Id: TypeAlias = int | str

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def checked_id(value: object, owner: str, error: type[NearcastError]) -> Id:
    """`value` as int or str; `owner` names what it identifies in the error."""
    if isinstance(value, str):
        if not value:
            raise error(f"the id of the {owner} is ''; expected a non-empty str or an int")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise error(f"the id {value!r} of the {owner} cannot be written as UTF-8; drop the lone surrogate") from None
        return str(value)
    number = whole_number(value)
    if number is None:
        kind = type(value).__name__
        raise error(f"the id {value!r} of the {owner} is of type {kind}; expected an int (int64) or a non-empty str")
    if not _INT64_MIN <= number <= _INT64_MAX:
        raise error(f"the id {number!r} of the {owner} does not fit into int64; give it as a str")
    return number
