"""Step "rank": the k best messages of a sliding window for every subscription, on Spark.

    messages + changes ─ clean, put in order ─ log ─┬─ shard 0 ─┐
                                                    ├─ shard 1 ─┼─ changes of lists, exactly once into the sink
                                                    └─ …       ─┘

A stream whose shards have state (`nearcast.pipeline.keeping`). Every shard has its share of the subscriptions and the whole
window. By id or place it finds their messages itself (`fused_shard`); by words it has two roles, those who look for messages
(`scout`) and those who have the lists (`owner`, `split_shard`). What shards have to tell each other goes through the store,
before they take the batch. Only `stream`, `sources` and `sample` know Spark.
"""
