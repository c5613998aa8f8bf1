"""Simulated clusters: a ranked stream with thousands of shards, calculated from shards that were measured.

Worlds of a few shards are measured at several sizes. A straight line for each mechanism says what a message costs a shard
(`cost_model`). The number of subscriptions and messages of each of thousands of shards is counted for a sample, by the tables
that would route them (`routing`). Both together give throughput, network and memory (`cluster`). The window, the messages and k
are those that were measured; only the shards and the subscriptions are more. One measured cell, with shards larger than those
that the lines were fitted to, is held out, and shows how far off they are.
"""
