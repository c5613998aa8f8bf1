"""Ranked subscriptions in lists by keyword, by the weight of messages, and by the cells from which they are reached."""
