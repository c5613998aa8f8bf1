"""Step "rank": the k best messages of a sliding window for every subscription, on Spark.

    messages + changes ─ clean, put in order ─ log ─┬─ shard 0 ─┐
                                                    ├─ shard 1 ─┼─ changes of lists, exactly once into the sink
                                                    └─ …       ─┘

A batch is written down first (`sequencing`, `batch_log`): what happens in it, in one order, is then a fact, however often it
runs. Every shard has its share of the subscriptions and the whole window (`shard_engine`). By id or place it finds their
messages itself (`fused_shard`); by words it has two roles, those who look for messages (`scout`) and those who have the lists
(`owner`, `split_shard`). It goes from batch to batch in a process that outlives Spark's tasks (`keeper`), and is found again
from a snapshot and the log when that process is gone (`live_shards`). What shards have to tell each other goes through the
store, before they take the batch (`exchange`). Only `stream`, `sinks`, `sources` and `sample` know Spark.
"""
