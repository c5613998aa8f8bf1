"""A topic of Kafka. A position is JSON: for each partition the offset of the record to read next.

Offsets are kept by the reader, not by Kafka: no group is joined, and every process sees all partitions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nearcast.errors import EnvironmentProblem, TopicError
from nearcast.topics.records import Record
from nearcast.topics.topic import Piece, TopicAddress

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

_PATIENCE_S = 30.0
_SHORT_S = 0.05
_AT_ONCE = 10_000


class KafkaTopic:
    """Connects when it is first used. What it is told of the broker goes nowhere but into errors."""

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
        """Where the consumer is, by partition."""

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    # --- writing -----------------------------------------------------------------------------------------------------

    def append(self, records: Sequence[Record]) -> None:
        if self._producer is None:
            settings = {**self._options, "enable.idempotence": True, "acks": "all", "linger.ms": 2}
            self._producer = self._client.Producer({**settings, "message.timeout.ms": int(1000 * _PATIENCE_S)})
        failures: list[str] = []

        def note(error: Any, message: Any) -> None:
            if error is not None:
                failures.append(str(error))

        for record in records:
            while True:
                try:
                    self._producer.produce(self._address.name, record.value, record.key, on_delivery=note)
                    break
                except BufferError:
                    self._producer.poll(_SHORT_S)
        left = self._producer.flush(_PATIENCE_S + 5)
        if left or failures:
            if left:
                # Given up here, so that they do not come later as a surprise.
                self._producer.purge()
            raise self._failed("written", failures[0] if failures else "no answer")

    # --- reading -----------------------------------------------------------------------------------------------------

    def read(self, position: str, limit: int, wait_s: float = 0.0) -> Piece:
        try:
            return self._read(_offsets(position), limit, wait_s)
        except self._client.KafkaException as error:
            self.close()
            raise self._failed("read", error) from None

    def _read(self, offsets: dict[int, int], limit: int, wait_s: float) -> Piece:
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
            if waited > max(wait_s, _PATIENCE_S):
                raise self._failed("read", f"no answer for {_PATIENCE_S:.0f} s")
            # It waits until it has as many as it was asked for.
            for message in consumer.consume(min(_AT_ONCE, limit - len(values)), _SHORT_S):
                self._take(message, values)
                began = time.monotonic() if is_behind else began
        return Piece(values, json.dumps({str(partition): offset for partition, offset in sorted(self._next.items())}))

    def _take(self, message: Any, values: list[bytes]) -> None:
        error = message.error()
        if error is not None:
            if error.code() == self._client.KafkaError._PARTITION_EOF:
                # The last offsets may be no records, but marks of transactions.
                self._next[message.partition()] = message.offset()
                return
            if error.code() == self._client.KafkaError._AUTO_OFFSET_RESET:
                raise self._lost(f"begins after {self._next}")
            raise self._client.KafkaException(error)
        values.append(message.value() or b"")
        self._next[message.partition()] = message.offset() + 1

    def _seek(self, offsets: dict[int, int]) -> Consumer:
        """The consumer, at these offsets; partitions that are new begin at their beginning."""
        if self._consumer is None:
            # A gap is an error, never a jump.
            reading = {"group.id": "nearcast", "enable.auto.commit": False, "auto.offset.reset": "error"}
            # Questions wait in line behind a fetch that waits for records.
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
                    self._next[partition] = self._consumer.get_watermark_offsets(part, timeout=_PATIENCE_S)[0]
            parts = [self._client.TopicPartition(self._address.name, number, offset) for number, offset in self._next.items()]
            self._consumer.assign(parts)
        return self._consumer

    def _partitions(self, consumer: Consumer) -> list[int]:
        """Asked for every time: a topic may grow. One that is not there is made, as large as the broker likes."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            found = consumer.list_topics(self._address.name, _PATIENCE_S).topics[self._address.name]
            if found.error is None and found.partitions:
                return sorted(found.partitions)
            if time.monotonic() > deadline:
                raise self._failed("found", found.error)
            self._make()
            time.sleep(_SHORT_S)

    def _make(self) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        # It must live until it has answered.
        client = AdminClient(self._options)
        made = client.create_topics([NewTopic(self._address.name, -1, -1)])
        error = made[self._address.name].exception(_PATIENCE_S)
        known = self._client.KafkaError.TOPIC_ALREADY_EXISTS
        if error is not None and error.args[0].code() != known:
            raise self._failed("made", error)

    def _end(self, consumer: Consumer, partition: int) -> int:
        part = self._client.TopicPartition(self._address.name, partition)
        return int(consumer.get_watermark_offsets(part, timeout=_PATIENCE_S)[1])

    def _lost(self, how: str) -> TopicError:
        return TopicError(
            f"the topic {str(self._address)!r} {how}, where it was to be read next: records are lost to this reader, or it is "
            "another topic of the same name; keep records longer, and let the reader begin anew"
        )

    def _failed(self, done: str, reason: object) -> TopicError:
        return TopicError(f"the topic {str(self._address)!r} cannot be {done}: {reason}")


def _offsets(position: str) -> dict[int, int]:
    if not position:
        return {}
    try:
        return {int(partition): int(offset) for partition, offset in json.loads(position).items()}
    except (ValueError, AttributeError):
        raise TopicError(f"{position!r} is no position in a topic of Kafka; expected one that `read` gave") from None
