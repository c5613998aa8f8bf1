"""The interface of a topic, and its address: `file:///folder/name` or `kafka://host:9092/name`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from nearcast.errors import TopicError
from nearcast.topics.records import Record

_KAFKA_PORT = "9092"
_EXPECTED = "expected file:///FOLDER or kafka://HOST:PORT/NAME (several hosts: separated by commas)"


class TopicPage(NamedTuple):
    """Some records in order, and the position after them: an opaque text to pass to the next `read`."""

    values: list[bytes]
    position: str


class Topic(Protocol):
    """One topic in one process; not thread-safe."""

    def append(self, records: Sequence[Record]) -> None:
        """Append records; they are durable when this returns. After a TopicError none, some or all of them are in the topic."""

    def read(self, position: str, limit: int, wait_s: float = 0.0) -> TopicPage:
        """The records from a position on ('' = the oldest), up to about `limit`.

        If there are none, waits up to `wait_s` for the first. Raises TopicError, also if records at the position are gone.
        """

    def close(self) -> None:
        """Release its resources."""


class TopicAddress(NamedTuple):
    """`servers` is empty for a topic in files; `name` is its folder or its name in Kafka."""

    servers: str
    name: str

    @property
    def is_kafka(self) -> bool:
        return bool(self.servers)

    def part(self, name: str) -> TopicAddress:
        """The address of a topic below this one."""
        return self._replace(name=f"{self.name}{'.' if self.is_kafka else '/'}{name}")

    def __str__(self) -> str:
        return f"kafka://{self.servers}/{self.name}" if self.is_kafka else f"file://{self.name}"


def read_address(text: str) -> TopicAddress:
    """The address in a text; raises TopicError."""
    url = urlsplit(text)
    name = unquote(url.path)
    if url.scheme == "file" and not url.netloc and name.strip("/"):
        return TopicAddress("", name.rstrip("/"))
    if url.scheme == "kafka" and url.netloc and name.strip("/") and "/" not in name.strip("/"):
        hosts = [host if ":" in host else f"{host}:{_KAFKA_PORT}" for host in url.netloc.split(",")]
        return TopicAddress(",".join(hosts), name.strip("/"))
    raise TopicError(f"{text!r} is not the address of a topic; {_EXPECTED}")


def open_topic(address: TopicAddress) -> Topic:
    """The topic at an address; created if it does not exist."""
    if address.is_kafka:
        from nearcast.topics.kafka import KafkaTopic

        return KafkaTopic(address)
    from nearcast.topics.files import FileTopic

    return FileTopic(Path(address.name))
