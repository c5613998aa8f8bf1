"""A sample that ships with nearcast: real storm reports and animal reports, and subscriptions a person might have made.

Written by `scripts/build_sample.py`. `CREDITS.md` in this folder lists sources and licences.
"""

from __future__ import annotations

from importlib import resources

import pyarrow as pa
import pyarrow.parquet as pq


def sample_messages() -> pa.Table:
    """`id`, `time` (seconds since 1970), `x`, `y` (lon/lat), `text`, `category`, `place`, in order of time."""
    return _read("messages.parquet")


def sample_subscriptions() -> pa.Table:
    """`id`, `interest`, `region` (GeoJSON, or null) and `x0`, `y0`, `x1`, `y1` (where `region` is null)."""
    return _read("subscriptions.parquet")


def sample_notes() -> pa.Table:
    """`id`, `note`: what each subscription asks for, in a sentence."""
    return _read("notes.parquet")


def _read(name: str) -> pa.Table:
    return pq.read_table(pa.BufferReader(resources.files(__name__).joinpath(name).read_bytes()))
