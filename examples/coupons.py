# /// script
# requires-python = ">=3.11"
# dependencies = ["nearcast"]
# ///
"""Coupons near you: a few subscribers, a stream of offers, who gets what."""

import sys

import nearcast as nc

matcher = nc.Matcher()
matcher.subscribe(
    [
        nc.Subscription("ann", keywords=["coffee"], region=nc.Circle(13.377, 52.516, 800)),
        nc.Subscription("bob", interest="(coffee OR cake) AND NOT decaf", region=nc.Box(13.3, 52.4, 13.5, 52.6)),
        nc.Subscription("cem", interest='"second hand" bike'),
    ]
)
offers = [
    nc.Message(1, text="Two coffees for one at the gate", location=(13.378, 52.517)),
    nc.Message(2, text="Coffee, two for one; coffee all day", location=(13.379, 52.516)),
    nc.Message(3, text="Cake and decaf", location=(13.40, 52.52)),
    nc.Message(4, text="Bike fair: second hand, first class", location=(2.35, 48.85)),
]
for delivery in matcher.publish(offers):
    sys.stdout.write(f"{delivery.subscription_id} receives {delivery.message_id}\n")
