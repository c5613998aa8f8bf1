"""What a subscriber is told, and how often: pure state machines between an event and its push.

`Notifier` (`notifying.py`) stands behind one subscription and decides about each event: repeats are dropped, a rate is held,
events are gathered into a digest, a maximum ends the pushing. What it keeps back it counts, and the next push says how many.
`Presence` (`presence.py`) turns the positions of one moving subscriber into entered, dwelled and left, without flapping at
borders and without believing a position more than its accuracy allows; late positions change nothing.
`options.py` makes both from the delivery options of a subscription. `service/push/throttling.py` asks the notifiers,
`service/engines/geofence_state.py` the presences.

Nothing here reads a clock or a store. A machine sees times and numbers in the order of the log and nothing else, so whoever
replays the log (or restores a saved state and replays the rest) gets the same deliveries again.
"""
