"""The same engines inside Spark: functions from DataFrame to DataFrame around pure steps on Arrow tables.

    prepare   raw messages → clean table, quarantine, keyword statistics, sample of history      prepare, cleaning
    plan      subscriptions + history → shard tree with its expected cost                        planning, tree_building
    index     subscriptions → one folder of arrays per shard, published as a version             indexing, changes
    match     stream of messages → deliveries, exactly once                                      matching, match_step, sinks
    rank      streams of messages and changed subscriptions → changes of top lists, exactly once ranked

Everything lives in one folder that driver and executors reach (`store`). What is written there never changes; small pointers
say what is in force (`versions`, `index_version`) and what is still in use (`pins`). Executors keep copies on their own disks
(`host_cache`). Steps know Arrow and nothing of Spark: `cleaning`, `routing`, `shard_folder`, `match_step`.
"""
