"""The papers' indexes of boolean subscriptions."""
