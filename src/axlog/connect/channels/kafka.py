"""A channel in one partition of a Kafka topic, through the `confluent-kafka` client.

The number of an update is its offset plus one; only a partition is ordered. The position of a named
subscription is the committed offset of its consumer group. Publishing is idempotent within a run of
the producer (librdkafka's `enable.idempotence`). A restarted producer reads its last number from
the headers at the end of the topic and does not repeat itself. Filters run in the reading client.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

from pydantic import Field

from axlog.connect.channels.broker_subscription import Placed, read_body
from axlog.connect.channels.entries import Entry, Unreadable, plain
from axlog.connect.channels.protocol import Channel, Delivery
from axlog.connect.kinds import ChannelKind, Options, Origin, Seconds, Secret
from axlog.document.stream_update import StreamUpdate
from axlog.errors import ConnectorError
from axlog.extras import import_extra
from axlog.match.filters import Filter

_LOOKED_BACK = 1000  # messages at the end of the topic that are searched for a producer's number


class KafkaChannelOptions(Options):
    """Options of the channel `kafka`."""

    brokers: str = Field(description="host:port, several with commas.")
    topic: str = Field(description="The topic.")
    partition: int = Field(default=0, ge=0, description="The partition of the topic.")
    timeout: Seconds = Field(default=30.0, gt=0, description="Timeout for requests to the brokers.")
    settings: dict[str, Secret] = Field(
        default={}, description="Additional librdkafka settings (security, ...)."
    )


class KafkaChannel:
    """A channel stored by Kafka brokers."""

    def __init__(
        self,
        brokers: str,
        topic: str,
        settings: Mapping[str, str] | None = None,
        partition: int = 0,
        timeout: float = 30.0,
    ) -> None:
        confluent_kafka = import_extra("confluent_kafka")
        self.name = topic
        self.partition = partition
        self._kafka = confluent_kafka
        self.timeout = timeout
        self._settings = {"bootstrap.servers": brokers, **(settings or {})}
        self._producer = confluent_kafka.Producer(
            {**self._settings, "enable.idempotence": True, "linger.ms": 0}
        )
        self._numbers: dict[str, tuple[int, int]] = {}

    def publish(self, update: StreamUpdate, producer: tuple[str, int] | None = None) -> int:
        """Append to the topic and wait for the acknowledgement; see `channels.protocol.Channel`."""
        if producer is not None:
            known = self._numbers.get(producer[0])
            if known is None:
                known = self._numbers[producer[0]] = self._last_number(producer[0])
            if producer[1] <= known[0]:
                return known[1]
        delivered: list[Any] = []
        headers: list[tuple[str, str | bytes | None]] = []
        if producer is not None:
            headers.append(("axlog-producer", json.dumps(producer)))
        body = json.dumps(plain(update), ensure_ascii=False).encode()
        self._producer.produce(
            self.name,
            body,
            partition=self.partition,
            headers=headers,
            on_delivery=lambda error, message: delivered.append((error, message)),
        )
        self._producer.flush(self.timeout)
        if not delivered or delivered[0][0] is not None:
            raise ConnectorError("AX822", f"Kafka: {delivered[0][0] if delivered else 'no answer'}")
        sequence = int(delivered[0][1].offset()) + 1
        if producer is not None:
            self._numbers[producer[0]] = (producer[1], sequence)
        return sequence

    def _last_number(self, producer: str) -> tuple[int, int]:
        """Return the last number of a producer in the newest messages, and its sequence number."""
        consumer = self.consumer(None)
        try:
            first, end = self.bounds(consumer)
            found = (-1, 0)
            start = max(first, end - _LOOKED_BACK)
            consumer.assign([self.place(start)])
            seen = start
            while seen < end:
                message = consumer.poll(self.timeout)
                if message is None or message.error():
                    raise ConnectorError("AX822", "Kafka: the topic's end cannot be read")
                seen = message.offset() + 1
                for key, value in message.headers() or ():
                    if key == "axlog-producer" and (number := _number_of(value, producer)) >= 0:
                        found = (number, seen)
            return found
        finally:
            consumer.close()

    def consumer(self, group: str | None) -> Any:
        return self._kafka.Consumer(
            {
                **self._settings,
                "group.id": group or f"axlog-{uuid4().hex}",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
            }
        )

    def place(self, offset: int | None = None) -> Any:
        if offset is None:
            return self._kafka.TopicPartition(self.name, self.partition)
        return self._kafka.TopicPartition(self.name, self.partition, offset)

    def bounds(self, consumer: Any) -> tuple[int, int]:
        """Return the first retained offset and the next offset."""
        until = monotonic() + self.timeout
        while True:
            try:
                self._producer.list_topics(self.name, timeout=self.timeout)  # creates a new topic
                low, high = consumer.get_watermark_offsets(self.place(), timeout=self.timeout)
                return int(low), int(high)
            except self._kafka.KafkaException as error:
                is_new = error.args[0].code() == self._kafka.KafkaError._UNKNOWN_PARTITION
                if not is_new or monotonic() > until:
                    raise ConnectorError("AX822", f"Kafka: {error}") from None
            sleep(0.05)

    def subscribe(
        self, name: str | None = None, *, wanted: Filter | None = None, after: int | None = None
    ) -> KafkaSubscription:
        """Subscribe; a named subscription resumes after the offset that its group committed."""
        consumer = self.consumer(name)
        _, end = self.bounds(consumer)
        if after is None and name is not None:
            try:
                (committed,) = consumer.committed([self.place()], timeout=self.timeout)
            except self._kafka.KafkaException as error:
                raise ConnectorError("AX822", f"Kafka: {error}") from None
            after = committed.offset if committed.offset >= 0 else None
        return KafkaSubscription(self, consumer, name, wanted, end if after is None else after)

    def close(self) -> None:
        self._producer.flush(self.timeout)


class KafkaSubscription(Placed):
    """A reader of a topic."""

    def __init__(
        self,
        channel: KafkaChannel,
        consumer: Any,
        name: str | None,
        wanted: Filter | None,
        after: int,
    ) -> None:
        super().__init__(name, wanted, after)
        self.channel = channel
        self._consumer = consumer
        self.seek(after)

    def seek(self, sequence: int) -> None:
        first, _ = self.channel.bounds(self._consumer)
        self.seen = sequence
        # Start at the first retained entry: the reader then detects the gap.
        self._consumer.assign([self.channel.place(max(sequence, first))])

    def fetch(self, limit: int, timeout: float) -> list[Entry | Unreadable]:
        entries: list[Entry | Unreadable] = []
        # `consume` blocks until it has the requested number: wait for one, then take the available
        # ones.
        found = self._consumer.consume(1, timeout=max(timeout, 0.05))
        if found and limit > 1:
            found += self._consumer.consume(limit - 1, timeout=0.01)
        for message in found:
            if message.error():
                raise ConnectorError("AX822", f"Kafka: {message.error()}")
            number = int(message.offset()) + 1
            entries.append(read_body(message.value(), number))
        return entries

    def read(self, limit: int = 1000, timeout: float = 0.0) -> Delivery:
        return self.looked(limit, monotonic() + timeout)

    def acknowledge(self, sequence: int) -> None:
        if self.lasts:
            try:
                self._consumer.commit(offsets=[self.channel.place(sequence)], asynchronous=False)
            except self.channel._kafka.KafkaException as error:
                raise ConnectorError("AX822", f"Kafka: {error}") from None

    def close(self, *, forget: bool = False) -> None:
        """Stop reading. Kafka deletes an unused group after some days."""
        self._consumer.close()


def _number_of(header: Any, producer: str) -> int:
    """Return the number that a message's header has for a producer; -1 for another producer or
    none.
    """
    try:
        name, number = json.loads(header)
    except (TypeError, ValueError, RecursionError):
        return -1
    return number if name == producer and type(number) is int else -1


def _make(options: KafkaChannelOptions, origin: Origin) -> Channel:
    settings = {name: value.reveal() for name, value in options.settings.items()}
    return KafkaChannel(
        options.brokers, options.topic, settings, options.partition, options.timeout
    )


KAFKA = ChannelKind(
    "kafka", KafkaChannelOptions, _make, "A channel in a Kafka topic.", needs=("confluent_kafka",)
)
