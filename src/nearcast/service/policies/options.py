"""From the delivery options of a subscription, as they are written, to the policies that hold."""

from __future__ import annotations

from nearcast.service.policies.delivery_limits import DeliveryPolicy
from nearcast.service.policies.geofence import PresencePolicy
from nearcast.wire.api import DeliveryOptions


def policy_of_options(options: DeliveryOptions) -> DeliveryPolicy | None:
    """What decides about pushes, or None if every event is pushed."""
    rate = options.rate_limit
    policy = DeliveryPolicy(
        max_per_period=None if rate is None else rate.events,
        period_s=60.0 if rate is None else rate.seconds,
        digest_s=options.digest_seconds,
        repeat_s=options.deduplicate_seconds,
        max_deliveries=options.max_notifications,
    )
    return None if policy.is_plain else policy


def presence_of_options(options: DeliveryOptions) -> PresencePolicy:
    """How entering and leaving of a moving subscription are judged."""
    return PresencePolicy(
        leave_margin_m=options.exit_margin_m or 0.0,
        leave_after_s=options.exit_seconds or 0.0,
        dwell_s=options.dwell_seconds,
        tells_first_seen=options.tells_first_seen,
    )
