"""Moving subscriptions: regions that travel, messages that stay alive. `engine.py` is the public `MovingMatcher`."""
