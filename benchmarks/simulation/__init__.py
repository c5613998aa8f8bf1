"""Clusters that nobody here has: a ranked stream with thousands of shards, reckoned from shards that were measured.

Measured are worlds of a few shards at several sizes; from them a straight line per mechanism says what a message costs a shard
(`cost_model`). How many subscriptions and messages each of thousands of shards gets is not guessed but counted, by the tables
that would route them, for a sample (`routing`). Both together give throughput, network and memory (`cluster`). The window, the
messages and k are those that were measured; only shards and subscriptions are more. One measured cell, with shards larger
than those the lines were fitted to, is held out and says how far off they are.
"""
