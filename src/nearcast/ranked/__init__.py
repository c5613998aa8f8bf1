"""Ranked subscriptions: the k most relevant messages of a sliding window for each, kept at every arrival and every end."""
