"""The whole pipeline on a standalone cluster of the pip package and through Spark Connect (`make soak`)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.pipeline.java import use_java
from nearcast.pipeline.store import StreamFolders
from nearcast.testing.budget import current_budget
from support.pipelines import make_messages, make_subscriptions

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(not current_budget().is_soak, reason="minutes of starting servers: make soak"),
]

PATIENCE_S = 120


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def server(folder: Path, name: str, *words: str) -> Iterator[None]:
    """A class of Spark as a process; it is ended with everything it started."""
    import pyspark

    use_java()
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "workers"),
    }
    with open(folder / f"{name}.log", "wb") as log:
        process = subprocess.Popen(
            [home / "bin" / "spark-class", *words], stdout=log, stderr=log, env=environment, cwd=folder, start_new_session=True
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(port: int) -> None:
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE_S:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"nothing listens on port {port}")


def run_everything(folder: Path, master: str) -> None:
    """All steps on a master; the deliveries are those of one process."""
    (folder / "raw").mkdir()
    messages, subscriptions = make_messages(600, 1), make_subscriptions(150, 0)
    for number in range(3):
        pq.write_table(messages.slice(200 * number, 200), folder / "raw" / f"{number}.parquet")
    pq.write_table(subscriptions, folder / "subscriptions.parquet")
    settings = folder / "settings.toml"
    settings.write_text(
        f'work = "{folder}/work"\nshared_dir = "{folder}/host"\nspace = "plane"\nmaster = "{master}"\nshards = 3\n'
        f'messages = "{folder}/raw"\nmessages_options = {{ maxFilesPerTrigger = 1 }}\nspread = "route"\n'
        f'subscriptions = "{folder}/subscriptions.parquet"\nmechanism = "keyword_first"\n'
    )
    program = Path(__file__).with_name("cluster_runner.py")
    done = subprocess.run(
        [sys.executable, str(program), str(settings)], capture_output=True, text=True, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr[-5000:]
    matcher = nc.Matcher(space="plane")
    matcher.subscribe_table(subscriptions)
    delivered = pq.read_table(folder / "work" / StreamFolders("match").deliveries)
    actual = sorted(zip(delivered["message_id"].to_pylist(), delivered["subscription_id"].to_pylist(), strict=True))
    expected = matcher.match_table(messages)
    assert actual == sorted(zip(expected["message_id"].to_pylist(), expected["subscription_id"].to_pylist(), strict=True))


def test_a_standalone_master_and_two_workers(tmp_path: Path) -> None:
    port, pages = free_port(), free_port()
    master = f"spark://127.0.0.1:{port}"
    address = ("--host", "127.0.0.1", "--webui-port", str(pages))
    worker = ("org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "1g", "--host", "127.0.0.1", master)
    with server(tmp_path, "master", "org.apache.spark.deploy.master.Master", *address, "--port", str(port)):
        wait_for(port)
        with server(tmp_path, "worker1", *worker), server(tmp_path, "worker2", *worker):
            run_everything(tmp_path, master)


def test_a_spark_connect_server(tmp_path: Path) -> None:
    port = free_port()
    submit = (
        "org.apache.spark.deploy.SparkSubmit",
        "--master",
        "local[2]",
        "--conf",
        f"spark.connect.grpc.binding.port={port}",
    )
    klass = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal")
    with server(tmp_path, "connect", *submit, *klass):
        wait_for(port)
        run_everything(tmp_path, f"sc://127.0.0.1:{port}")
