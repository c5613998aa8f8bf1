"""Loops that the engine of moving subscriptions and its indexes share."""
