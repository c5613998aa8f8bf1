"""The limits and defaults of nearcast, as one table.

The environment (`NEARCAST_<NAME>`) overrides a default; `docs/reference/settings.md` lists the same table.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from nearcast.errors import NearcastError


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table. `value` reads the environment first."""

    name: str
    default: int | str
    help: str
    variable: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "variable", f"NEARCAST_{self.name.upper()}")

    @property
    def value(self) -> int | str:
        override = os.environ.get(self.variable)
        if override is None:
            return self.default
        if isinstance(self.default, str):
            return override
        try:
            return int(override)
        except ValueError:
            raise NearcastError(f"{self.variable}={override!r} is not a whole number; unset it or give one") from None


SETTINGS: tuple[Setting, ...] = (
    Setting("max_message_keywords", 4096, "distinct keywords one message may carry"),
    Setting("max_subscription_keywords", 256, "distinct keywords one clause of a subscription may name"),
    Setting("max_keyword_bytes", 256, "length of one keyword in UTF-8 bytes"),
    Setting("max_text_characters", 1_000_000, "length of the text of one message"),
    Setting("max_interest_characters", 20_000, "length of one interest"),
    Setting("max_interest_depth", 100, "nesting of parentheses and NOT in one interest"),
    Setting("max_interest_clauses", 256, "clauses of one interest in disjunctive normal form"),
    Setting("max_region_vertices", 100_000, "vertices of one polygon or multipolygon"),
    Setting("max_covering_boxes", 8, "boxes that cover one region inside an index"),
    Setting("service_body_bytes", 16_777_216, "size of the largest request body, in bytes"),
    Setting("service_line_count", 50_000, "lines of one bulk request"),
    Setting("service_region_vertices", 2000, "vertices of one region or audience in a request"),
    Setting("service_pending_messages", 200_000, "messages and changes that may wait for the writer; above it: 429"),
    Setting("service_pending_bytes", 268_435_456, "bytes of requests that may wait for the writer; above it: 429"),
    Setting("service_batch_messages", 20_000, "messages and changes of one commit"),
    Setting("service_batch_bytes", 67_108_864, "bytes of requests in one commit"),
    Setting("service_default_lifetime_s", 3600, "seconds a message lives if it has no lifetime of its own"),
    Setting("service_retention_s", 604_800, "seconds for which messages and their events are stored"),
    Setting("service_retention_bytes", 10_737_418_240, "bytes of messages and events that are stored"),
    Setting("service_live_messages", 1_000_000, "live messages that moving subscriptions see"),
    Setting("service_ranked_window", 100_000, "messages in the window of the ranked subscriptions of a tenant"),
    Setting("service_recent_bytes", 134_217_728, "bytes of the log in memory for readers"),
    Setting("service_subscriptions", 10_000_000, "subscriptions of one tenant"),
    Setting("service_requests_per_s", 10_000, "requests of one key per second; above it: 429"),
    Setting("service_connections", 10_000, "live connections at a time"),
    Setting("service_connections_per_key", 2000, "live connections of one key at a time; above it: 429"),
    Setting("service_webhooks_per_subscriber", 100, "webhooks of one subscriber; above it: 409"),
    Setting("console_tiles", "", "address of map tiles for the console, with {z}/{x}/{y}; empty = only the map in the package"),
    Setting("webhook_networks", "", "private networks that webhooks may reach, separated by commas (10.0.0.0/8); empty = none"),
    Setting("webhook_http", 0, "1 allows webhooks without TLS (http://)"),
    Setting("bench_states", "", "folder that keeps the filled states of ranked experiments; empty = a temporary one"),
    Setting("kernel_cache", "", "folder of compiled kernels; empty = the user's cache folder"),
)

_BY_NAME = {setting.name: setting for setting in SETTINGS}


def limit(name: str) -> int:
    """The current value of a numeric setting."""
    value = _BY_NAME[name].value
    assert isinstance(value, int)
    return value


def text(name: str) -> str:
    """The current value of a textual setting."""
    return str(_BY_NAME[name].value)
