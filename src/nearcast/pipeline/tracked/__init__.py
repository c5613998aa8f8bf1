"""Step "track": the messages around every moving subscription, kept exact on Spark.

    subscriptions + positions + messages ─ clean, put in order ─ log ─┬─ shard 0 ─┐
                                                                      ├─ shard 1 ─┼─ what enters and leaves results
                                                                      └─ …       ─┘

A stream whose shards have state (`nearcast.pipeline.keeping`). A subscription lives in the shard that its id says, wherever it
goes; every shard has all living messages and the clock (`shard`). What happens in a batch is cut into ticks (`sequencing`,
`batches`). Only `stream` and `sources` know Spark.
"""
