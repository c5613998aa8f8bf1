"""Streams whose shards have state: what ranked and tracked streams have in common.

    rows ─ clean, put in order ─ log ─┬─ shard 0 ─┐
                                      ├─ shard 1 ─┼─ changes, exactly once into the sink
                                      └─ …       ─┘

A batch is written down first (`batch_log`): what happens in it, in one order, is then a fact, however often it runs (`runner`).
A shard goes from batch to batch (`shard_engine`) in a process that outlives Spark's tasks (`keeper`, `calling`), and is found
again from a snapshot and the log when that process is gone (`live_shards`, `snapshots`, `retention`). How a stream is cut into
shards may change between two batches (`layouts`, `wishes`). Only `runner`, `asking`, `sinks` and `sources` know Spark.
"""
