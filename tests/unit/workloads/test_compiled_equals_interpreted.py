"""Every kernel gives the same tables compiled and interpreted: one of the two runs in a second process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import hashlib, warnings
warnings.simplefilter("error")
import pyarrow as pa
from nearcast.workloads import MovingSubscribers, RoadNetwork, open_workload

digest = hashlib.sha256()

def add(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    digest.update(sink.getvalue())

small = {"vocabulary_size": 3000, "pool": 5000}
english = small | {"frequencies": "curve"}
for name, parameters in (
    ("tweets", english),
    ("tweets", english | {"stop_words": "removed", "range": "area", "keyword_choice": "zipf"}),
    ("cars", english),
    ("reviews", english | {"n_places": 50}),
    ("poi", small),
    ("paper_groups", small | {"length": "long", "shape": "range", "over": "poi"}),
    ("bursts", english | {"burst": 3, "every": 7}),
    ("boolean_expressions", english | {"negated": 0.5}),
):
    workload = open_workload(name, **parameters)
    add(workload.messages(30))
    add(workload.subscriptions(60))
network = RoadNetwork.generate(seed=3, n_across=10, highway_every=3)
subscribers = MovingSubscribers(network, 40, seed=2, speed=2.0, mobility=0.7, lifetime=5.0, n_destinations=6)
for _ in range(12):
    add(subscribers.advance())
print(digest.hexdigest())
"""


def run(disable_jit: str) -> str:
    environment = os.environ | {"NUMBA_DISABLE_JIT": disable_jit, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="it runs both ways itself, in the compiled run")
def test_compiled_and_interpreted_kernels_write_the_same_tables() -> None:
    assert run("0") == run("1")
