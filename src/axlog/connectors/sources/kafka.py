"""A topic of a broker that speaks Kafka's protocol, as a stream.

The position is the next offset of every partition, kept by the pipeline: no consumer group, nothing
committed at the broker. Messages of a partition keep their order; between partitions a reading has
them by partition. A message is XML, or with `format: jsonl` an update as in a file of JSON lines.
Partitions that are added later are found when the source is opened again.
"""

from __future__ import annotations

import time
from typing import Any, Literal

from pydantic import Field

from axlog.channels.updates import StreamUpdate
from axlog.connectors.kinds import Origin, Seconds, Secret, SourceKind
from axlog.connectors.protocol import Position, Reading, Refusal
from axlog.connectors.sources.jsonl import read_update
from axlog.connectors.sources.times import TimeOptions, Timing
from axlog.document.reading import parse
from axlog.errors import AxlogError, ConnectorError, PipelineError
from axlog.extras import import_extra

_SLICE = 0.05
"""Seconds that a look at the broker takes where nothing is new."""


class KafkaOptions(TimeOptions):
    """Options of `kafka`."""

    brokers: str = Field(description="Where the brokers are: host:port,host:port.")
    topic: str = Field(description="The topic.")
    format: Literal["xml", "jsonl"] = Field(
        default="xml", description="What a message is: XML, or an update as JSON."
    )
    wait: Seconds = Field(default=0.5, gt=0, description="How long a reading waits for messages.")
    timeout: Seconds = Field(
        default=10.0, gt=0, description="How long brokers may take to answer a question."
    )
    settings: dict[str, Secret] = Field(
        default={}, description="Further settings of librdkafka: security, passwords."
    )


class KafkaSource:
    """The messages of a topic as updates."""

    def __init__(self, options: KafkaOptions, origin: Origin) -> None:
        if origin.stream is None and options.format == "xml":
            raise PipelineError(
                "AX852",
                f"XML messages of {options.topic!r} do not say which stream they are for",
                advice="make it the source of one stream, or write updates with format: jsonl",
            )
        confluent_kafka = import_extra("confluent_kafka")
        self._kafka = confluent_kafka
        self.options = options
        self.stream = origin.stream
        self.timing = Timing(options, origin)
        given = {name: secret.reveal() for name, secret in options.settings.items()}
        self._consumer: Any = confluent_kafka.Consumer(
            {
                "bootstrap.servers": options.brokers,
                "group.id": "axlog",  # needed by the client; nothing is committed
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                **given,
            },
            logger=_quiet(),
        )
        self._next: dict[str, int] | None = None  # where the consumer stands
        self._ended: set[str] = set()  # partitions of which all messages were taken

    def read(self, position: Position, limit: int) -> Reading:
        """At most so many messages after the offsets."""
        offsets = self._start(position)
        taken = self._consume(limit)
        updates: list[StreamUpdate] = []
        refused: list[Refusal] = []
        for message in sorted(taken, key=lambda each: (each.partition(), each.offset())):
            self._take(message, updates, refused)
            offsets[str(message.partition())] = message.offset() + 1
        self._next = dict(offsets)
        return Reading(updates, offsets, refused, more=self._ended != offsets.keys())

    def _consume(self, limit: int) -> list[Any]:
        """Messages until there are enough, all partitions are at their ends, or time is up."""
        taken: list[Any] = []
        until = time.monotonic() + self.options.wait
        while len(taken) < limit and (left := until - time.monotonic()) > 0:
            came = self._consumer.consume(limit - len(taken), timeout=min(left, _SLICE))
            for message in came:
                error = message.error()
                if error is None:
                    taken.append(message)
                    self._ended.discard(str(message.partition()))
                elif error.code() == self._kafka.KafkaError._PARTITION_EOF:
                    self._ended.add(str(message.partition()))
                else:
                    self._next = None
                    raise ConnectorError("AX858", f"{self.options.topic}: {error.str()}")
            if not came and self._next is not None and self._ended == self._next.keys():
                break
        return taken

    def close(self) -> None:
        """Leave the brokers."""
        self._consumer.close()

    def _start(self, position: Position) -> dict[str, int]:
        """The offsets to go on from; the consumer is put there if it stands elsewhere."""
        if self._next is not None and position == self._next:
            return dict(self._next)
        given: dict[str, int] = position or {}
        offsets = {}
        for partition in self._partitions():
            low, _ = self._watermarks(partition)
            offsets[partition] = given.get(partition, low)
            if offsets[partition] < low:
                raise ConnectorError(
                    "AX858",
                    f"{self.options.topic}: messages {offsets[partition]} to {low - 1} of partition"
                    f" {partition} are not kept by the broker any more",
                    advice="start with another checkpoint",
                )
        topic = self.options.topic
        self._ended = set()
        self._next = dict(offsets)
        self._consumer.assign(
            [self._kafka.TopicPartition(topic, int(p), offset) for p, offset in offsets.items()]
        )
        return offsets

    def _partitions(self) -> list[str]:
        try:
            listed = self._consumer.list_topics(self.options.topic, timeout=self.options.timeout)
        except self._kafka.KafkaException as error:
            raise self._unreachable(error) from None
        topic = listed.topics.get(self.options.topic)
        if topic is None or topic.error is not None or not topic.partitions:
            raise ConnectorError("AX858", f"there is no topic {self.options.topic!r}")
        return [str(number) for number in sorted(topic.partitions)]

    def _watermarks(self, partition: str) -> tuple[int, int]:
        where = self._kafka.TopicPartition(self.options.topic, int(partition))
        try:
            low, high = self._consumer.get_watermark_offsets(where, timeout=self.options.timeout)
        except self._kafka.KafkaException as error:
            raise self._unreachable(error) from None
        return low, high

    def _unreachable(self, error: Any) -> ConnectorError:
        self._next = None
        return ConnectorError("AX858", f"{self.options.topic}: {error.args[0].str()}")

    def _take(self, message: Any, updates: list[StreamUpdate], refused: list[Refusal]) -> None:
        origin = f"{message.topic()}/{message.partition()}@{message.offset()}"
        content = message.value() or b""
        try:
            if self.options.format == "jsonl":
                updates.append(read_update(content, self.stream, origin))
                return
            element = parse(content, name=origin).root if self.timing.needs_element else None
            kind, stored = message.timestamp()
            known = kind != self._kafka.TIMESTAMP_NOT_AVAILABLE
            at = self.timing.of(element, stored / 1000 if known else None)
            updates.append(StreamUpdate(self.stream or "", "insert", content, at, origin))
        except AxlogError as error:
            refused.append(Refusal(self.stream or "", content, origin, error.describe()))


def _quiet() -> Any:
    import logging

    return logging.getLogger(__name__)


KAFKA = SourceKind(
    "kafka",
    KafkaOptions,
    KafkaSource,
    "A topic of a broker that speaks Kafka's protocol.",
    names_streams=True,  # with format: jsonl
)
