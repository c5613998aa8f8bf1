"""What a topic can do, and how one is named: `file:///folder/name` or `kafka://host:9092/name`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from nearcast.errors import TopicError
from nearcast.topics.records import Record

_KAFKA_PORT = "9092"
_EXPECTED = "expected file:///FOLDER or kafka://HOST:PORT/NAME (several hosts: separated by commas)"


class Piece(NamedTuple):
    """Some records in order, and the position after them: a word of the topic's own, to be kept and given back."""

    values: list[bytes]
    position: str


class Topic(Protocol):
    """One topic as one process sees it; not to be shared by threads."""

    def append(self, records: Sequence[Record]) -> None:
        """Add records; they are safe when this returns. Raises TopicError: then some may be there, or all."""

    def read(self, position: str, limit: int, wait_s: float = 0.0) -> Piece:
        """Records from a position on ('' = the oldest there are): all that were there when it was called, up to about a limit.

        If there are none, it waits for the first. Raises TopicError, also if records at the position are gone.
        """

    def close(self) -> None:
        """Give back what it holds."""


class TopicAddress(NamedTuple):
    """`servers` is empty for a topic in files; `name` is its folder or its name in Kafka."""

    servers: str
    name: str

    @property
    def is_kafka(self) -> bool:
        return bool(self.servers)

    def part(self, name: str) -> TopicAddress:
        """One of several topics below this address."""
        return self._replace(name=f"{self.name}{'.' if self.is_kafka else '/'}{name}")

    def __str__(self) -> str:
        return f"kafka://{self.servers}/{self.name}" if self.is_kafka else f"file://{self.name}"


def read_address(text: str) -> TopicAddress:
    """The address in a text; raises TopicError."""
    given = urlsplit(text)
    name = unquote(given.path)
    if given.scheme == "file" and not given.netloc and name.strip("/"):
        return TopicAddress("", name.rstrip("/"))
    if given.scheme == "kafka" and given.netloc and name.strip("/") and "/" not in name.strip("/"):
        hosts = [host if ":" in host else f"{host}:{_KAFKA_PORT}" for host in given.netloc.split(",")]
        return TopicAddress(",".join(hosts), name.strip("/"))
    raise TopicError(f"{text!r} is no address of a topic; {_EXPECTED}")


def open_topic(address: TopicAddress) -> Topic:
    """The topic, made if it is not there."""
    if address.is_kafka:
        from nearcast.topics.kafka import KafkaTopic

        return KafkaTopic(address)
    from nearcast.topics.files import FileTopic

    return FileTopic(Path(address.name))
