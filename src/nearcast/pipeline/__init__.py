"""The engines inside Spark: functions from DataFrame to DataFrame around steps on Arrow tables.

    prepare   raw messages → clean table, quarantine, keyword statistics, sample of history
    plan      subscriptions + history → shard tree with its expected cost
    index     subscriptions → one folder of arrays per shard, published as a version
    match     stream of messages → deliveries, exactly once
    rank      streams of messages and changed subscriptions → changes of top lists, exactly once
    track     streams of messages, moves and changed subscriptions → changes of results, exactly once

Everything is in one folder that driver and executors reach (`store.py`). Files there never change, except small pointers to the
current versions and the leases of versions in use (`index/version.py`). Executors have copies on their disks (`host_cache.py`).
These steps use Arrow and not Spark: `prepare/cleaning.py`, `plan/routing.py`, `index/shard_folder.py`, `match/step.py`.
"""
