"""Messages and subscriptions to try an engine on: seeded generators, loaders of public data, a bundled sample.

Every workload is a pool of numbered messages. Message i depends only on its number and the seed, so a pool of 12.7M messages
takes no memory, and any part of it can be made in any order. The first 5 % of a pool are the history that an index may learn
from; the stream comes from the rest. Subscriptions are made from sampled messages, as in the papers.

    tweets = open_workload("tweets", stop_words="removed")
    tweets.subscriptions(1_000_000)     # pa.Table: id, keywords list<int32>, x0, y0, x1, y1
    tweets.messages(20_000)             # pa.Table: id, keywords list<int32>, x, y, time
    tweets.with_words(table)            # the same with words

`workload_names()` lists them with their parameters. `sample` holds some thousand real messages that ship with the package.
"""

from nearcast.workloads.base import Workload
from nearcast.workloads.moving import MovingSubscribers
from nearcast.workloads.registry import WorkloadInfo, open_workload, workload_names
from nearcast.workloads.roads import RoadNetwork
from nearcast.workloads.sample import sample_messages, sample_notes, sample_subscriptions

__all__ = [
    "MovingSubscribers",
    "RoadNetwork",
    "Workload",
    "WorkloadInfo",
    "open_workload",
    "sample_messages",
    "sample_notes",
    "sample_subscriptions",
    "workload_names",
]
