"""A Kafka broker of its own for a test, from Kafka's own jars, where the machine has them.

`NEARCAST_TEST_KAFKA` names a folder with two others: `broker`, the jars of `org.apache.kafka:kafka_2.13` and all it needs
(Scala too), and `spark`, those of Spark's Kafka connector.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nearcast.pipeline.java import use_java

VARIABLE = "NEARCAST_TEST_KAFKA"
_READY_S = 120.0
_CLUSTER = "bmVhcmNhc3QtdGVzdHMtMQ"


def kafka_folder() -> Path | None:
    """Where the jars are; None if the machine has none."""
    folder = os.environ.get(VARIABLE)
    return Path(folder) if folder else None


@contextmanager
def small_broker(folder: Path, jars: Path) -> Iterator[str]:
    """A broker that is ready, as `host:port`; its data is in the folder."""
    use_java()
    home = os.environ.get("JAVA_HOME")
    java = [str(Path(home) / "bin" / "java") if home else "java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    port, controller = _free_port(), _free_port()
    settings = folder / "server.properties"
    settings.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
        f"log.dirs={folder}/data\nnum.partitions=2\noffsets.topic.replication.factor=1\n"
        "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
    )
    java += ["-cp", f"{jars}/*"]
    format_run = subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(settings)], capture_output=True, check=False
    )
    if format_run.returncode:
        raise RuntimeError(f"the broker's folder could not be made: {format_run.stdout.decode()} {format_run.stderr.decode()}")
    with open(folder / "broker.log", "wb") as log:
        process = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + _READY_S
        while not _listens(port):
            if time.monotonic() > deadline or process.poll() is not None:
                raise RuntimeError(f"the broker did not start: {(folder / 'broker.log').read_text()[-3000:]}")
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0
