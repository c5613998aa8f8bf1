"""The papers' indexes of moving subscriptions."""
