"""Ranked subscriptions: for each, the k most relevant messages of a sliding window, kept up to date message by message."""
