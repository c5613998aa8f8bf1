"""Scenarios of every kind of subscription: how they are written and run, and the random worlds that they are made of."""
