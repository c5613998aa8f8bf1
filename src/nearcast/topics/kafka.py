"""A topic of Kafka. A position is JSON: the next offset of each partition.

The reader stores offsets, not Kafka: it joins no group, and every process reads all partitions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nearcast.errors import EnvironmentProblem, TopicError
from nearcast.topics.records import Record
from nearcast.topics.topic import TopicAddress, TopicPage

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

_TIMEOUT_S = 30.0
_POLL_S = 0.05
_AT_ONCE = 10_000


class KafkaTopic:
    """Connects when it is first used. Messages of the broker appear only in errors."""

    def __init__(self, address: TopicAddress) -> None:
        try:
            import confluent_kafka
        except ImportError:
            raise EnvironmentProblem("topics of Kafka need its client: pip install 'nearcast[kafka]'") from None
        self._client = confluent_kafka
        self._address = address
        self._options: dict[str, Any] = {"bootstrap.servers": address.servers, "log_level": 0}
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None
        self._next: dict[int, int] = {}
        """The next offset of the consumer, by partition."""

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    # --- writing -----------------------------------------------------------------------------------------------------

    def append(self, records: Sequence[Record]) -> None:
        if self._producer is None:
            settings = {**self._options, "enable.idempotence": True, "acks": "all", "linger.ms": 2}
            self._producer = self._client.Producer({**settings, "message.timeout.ms": int(1000 * _TIMEOUT_S)})
        failures: list[str] = []

        def on_delivery(error: Any, message: Any) -> None:
            if error is not None:
                failures.append(str(error))

        for record in records:
            while True:
                try:
                    self._producer.produce(self._address.name, record.value, record.key, on_delivery=on_delivery)
                    break
                except BufferError:
                    self._producer.poll(_POLL_S)
        n_unsent = self._producer.flush(_TIMEOUT_S + 5)
        if n_unsent or failures:
            if n_unsent:
                # Dropped, so that they do not arrive after the error.
                self._producer.purge()
            raise self._failed("written", failures[0] if failures else "no answer")

    # --- reading -----------------------------------------------------------------------------------------------------

    def read(self, position: str, limit: int, wait_s: float = 0.0) -> TopicPage:
        try:
            return self._read(_offsets(position), limit, wait_s)
        except self._client.KafkaException as error:
            self.close()
            raise self._failed("read", error) from None

    def _read(self, offsets: dict[int, int], limit: int, wait_s: float) -> TopicPage:
        consumer = self._seek(offsets)
        ends = {partition: self._end(consumer, partition) for partition in self._next}
        if any(self._next[partition] > end for partition, end in ends.items()):
            raise self._lost(f"ends at {ends}, before {self._next}")
        values: list[bytes] = []
        began = time.monotonic()
        while len(values) < limit:
            is_behind = any(self._next[partition] < end for partition, end in ends.items())
            waited = time.monotonic() - began
            if not is_behind and (values or waited >= wait_s):
                break
            if waited > max(wait_s, _TIMEOUT_S):
                raise self._failed("read", f"no answer for {_TIMEOUT_S:.0f} s")
            # `consume` waits until it has as many as requested, or for the timeout.
            for message in consumer.consume(min(_AT_ONCE, limit - len(values)), _POLL_S):
                self._read_message(message, values)
                began = time.monotonic() if is_behind else began
        return TopicPage(values, json.dumps({str(partition): offset for partition, offset in sorted(self._next.items())}))

    def _read_message(self, message: Any, values: list[bytes]) -> None:
        error = message.error()
        if error is not None:
            if error.code() == self._client.KafkaError._PARTITION_EOF:
                # The last offsets may belong to marks of transactions, not to records.
                self._next[message.partition()] = message.offset()
                return
            if error.code() == self._client.KafkaError._AUTO_OFFSET_RESET:
                raise self._lost(f"begins after {self._next}")
            raise self._client.KafkaException(error)
        values.append(message.value() or b"")
        self._next[message.partition()] = message.offset() + 1

    def _seek(self, offsets: dict[int, int]) -> Consumer:
        """The consumer at these offsets; a new partition is read from its beginning."""
        if self._consumer is None:
            # A gap is an error; the consumer must not skip it.
            reading = {"group.id": "nearcast", "enable.auto.commit": False, "auto.offset.reset": "error"}
            # Other requests queue behind a fetch that waits for records.
            reading |= {"enable.partition.eof": True, "fetch.wait.max.ms": 20}
            self._consumer = self._client.Consumer({**self._options, **reading})
            self._next = {}
        partitions = self._partitions(self._consumer)
        is_there = {*partitions} == {*self._next} and offsets and offsets.items() <= self._next.items()
        if not is_there:
            self._next = {partition: offsets.get(partition, -1) for partition in partitions}
            for partition, offset in self._next.items():
                if offset < 0:
                    part = self._client.TopicPartition(self._address.name, partition)
                    self._next[partition] = self._consumer.get_watermark_offsets(part, timeout=_TIMEOUT_S)[0]
            parts = [self._client.TopicPartition(self._address.name, number, offset) for number, offset in self._next.items()]
            self._consumer.assign(parts)
        return self._consumer

    def _partitions(self, consumer: Consumer) -> list[int]:
        """The partitions, requested each time because a topic may grow. Creates a missing topic with the broker's defaults."""
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            topic = consumer.list_topics(self._address.name, _TIMEOUT_S).topics[self._address.name]
            if topic.error is None and topic.partitions:
                return sorted(topic.partitions)
            if time.monotonic() > deadline:
                raise self._failed("found", topic.error)
            self._create()
            time.sleep(_POLL_S)

    def _create(self) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        # The client must live until the broker has answered.
        client = AdminClient(self._options)
        results = client.create_topics([NewTopic(self._address.name, -1, -1)])
        error = results[self._address.name].exception(_TIMEOUT_S)
        if error is not None and error.args[0].code() != self._client.KafkaError.TOPIC_ALREADY_EXISTS:
            raise self._failed("made", error)

    def _end(self, consumer: Consumer, partition: int) -> int:
        part = self._client.TopicPartition(self._address.name, partition)
        return int(consumer.get_watermark_offsets(part, timeout=_TIMEOUT_S)[1])

    def _lost(self, how: str) -> TopicError:
        return TopicError(
            f"the topic {str(self._address)!r} {how}, where it was to be read next: records are lost to this reader, or it is "
            "another topic of the same name; keep records longer, and let the reader start over"
        )

    def _failed(self, action: str, reason: object) -> TopicError:
        return TopicError(f"the topic {str(self._address)!r} cannot be {action}: {reason}")


def _offsets(position: str) -> dict[int, int]:
    if not position:
        return {}
    try:
        return {int(partition): int(offset) for partition, offset in json.loads(position).items()}
    except (ValueError, AttributeError):
        raise TopicError(f"{position!r} is not a position in a topic of Kafka; expected one that `read` returned") from None
