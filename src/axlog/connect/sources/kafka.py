"""A topic of a broker that speaks Kafka's protocol, as a stream.

The position is the next offset of every partition, stored by the pipeline: no consumer group is
used, and nothing is committed at the broker. Messages of a partition keep their order. A reading
takes about the same number from each partition that has messages, and names their partitions. A
message is XML, or with `format: jsonl` an update as in a file of JSON lines. Partitions that are
added later are found when the source is opened again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field

from axlog.connect.kinds import Origin, Seconds, Secret, SourceKind
from axlog.connect.protocol import Load, Part, Plan, Position, Reading, Refusal
from axlog.connect.sources.formats import ELEMENT
from axlog.connect.sources.jsonl import read_update
from axlog.connect.sources.times import TimeOptions, Timing
from axlog.document.json_messages import xml_of_text
from axlog.document.parser import parse
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError, ConnectorError, PipelineError
from axlog.extras import import_extra

_SLICE = 0.05
"""Seconds that a poll of the broker takes if nothing is new."""
_PATIENCE = 60.0
"""Seconds in which messages that are known to exist must arrive."""


class KafkaOptions(TimeOptions):
    """Options of `kafka`."""

    brokers: str = Field(description="Addresses of the brokers: host:port,host:port.")
    topic: str = Field(description="The topic.")
    format: Literal["xml", "jsonl", "json"] = Field(
        default="xml",
        description="The format of a message: XML, an update as JSON (jsonl), or a JSON object.",
    )
    element: str | None = ELEMENT
    wait: Seconds = Field(default=0.5, gt=0, description="How long a reading waits for messages.")
    timeout: Seconds = Field(default=10.0, gt=0, description="Timeout for requests to the brokers.")
    settings: dict[str, Secret] = Field(
        default={}, description="Additional librdkafka settings: security, passwords."
    )


class KafkaSource:
    """The messages of a topic as updates."""

    def __init__(self, options: KafkaOptions, origin: Origin) -> None:
        if origin.stream is None and options.format != "jsonl":
            raise PipelineError(
                "AX852",
                f"messages of {options.topic!r} do not name their stream",
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
                "group.id": "axlog",  # required by the client; nothing is committed
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                **given,
            },
            logger=_quiet(),
        )
        self._assigned: list[str] | None = None  # the partitions that the consumer reads
        self._next: dict[str, int] = {}  # by partition: the next offset that the consumer returns
        self._ahead: dict[str, deque[Any]] = {}  # messages that arrived before they were requested

    def read(self, position: Position, limit: int) -> Reading:
        """Return at most `limit` messages after the offsets, evenly from all partitions."""
        start, highs = self._start(position)
        return self._reading(start, _shares(start, highs, limit), highs, self.options.wait)

    def plan(self, position: Position, load: Load, until: Position | None = None) -> Plan:
        """Return the next messages in parts by partition: no two tasks read from one."""
        start, highs = self._start(position)
        end = _shares(start, highs, load.limit)
        if until is not None:
            end = {partition: until.get(partition, offset) for partition, offset in start.items()}
        moved = [partition for partition in start if end[partition] > start[partition]]
        parts: list[Part] = []
        for number in range(min(load.tasks, len(moved))):
            mine = {p: [start[p], end[p]] for p in moved[number :: load.tasks]}
            parts.append(Part(mine, sum(last - first for first, last in mine.values())))
        came = {int(p): start[p] < highs[p] for p in start}
        return Plan(parts, end, end != highs, came)

    def fetch(self, work: Any) -> Reading:
        """Return the messages between offsets, partition by partition."""
        self._start({partition: start for partition, (start, _) in work.items()})
        first = {partition: start for partition, (start, _) in work.items()}
        until = {partition: end for partition, (_, end) in work.items()}
        reading = self._reading(first, until, until, _PATIENCE)
        if reading.position != until:
            raise ConnectorError(
                "AX858",
                f"{self.options.topic}: the messages up to {until} did not arrive in {_PATIENCE} s",
            )
        return reading

    def _reading(
        self, start: dict[str, int], end: dict[str, int], highs: dict[str, int], patience: float
    ) -> Reading:
        """Return the messages between offsets, as far as they arrive within a time."""
        updates: list[StreamUpdate] = []
        refused: list[Refusal] = []
        partitions: list[int] = []
        position = dict(start)
        for partition, messages in self._taken(start, end, patience).items():
            for message in messages:
                self._take(message, updates, refused)
            partitions += [int(partition)] * (len(updates) - len(partitions))
            if self._next[partition] >= end[partition]:
                # offsets that did not arrive hold no readable message
                position[partition] = end[partition]
            elif messages:
                position[partition] = messages[-1].offset() + 1
        waiting = {int(partition): position[partition] < highs[partition] for partition in start}
        more = any(waiting.values())
        return Reading(updates, position, refused, more, partitions, waiting)

    def _taken(
        self, start: dict[str, int], end: dict[str, int], patience: float
    ) -> dict[str, list[Any]]:
        """Return the buffered messages by partition."""
        self._seek(start, {p for p in start if end[p] > start[p]})
        until = time.monotonic() + patience
        while (left := until - time.monotonic()) > 0:
            lacking = [p for p in start if self._next[p] < end[p]]
            if not lacking:
                break
            most = sum(end[p] - self._next[p] for p in lacking)
            for message in self._consumer.consume(most, timeout=min(left, _SLICE)):
                self._note(message)
        taken: dict[str, list[Any]] = {}
        for partition, ahead in self._ahead.items():
            mine = taken[partition] = []
            while ahead and ahead[0].offset() < end[partition]:
                mine.append(ahead.popleft())
        return taken

    def _note(self, message: Any) -> None:
        """Buffer a message until its offset is requested, or note that a partition is at its end.

        An end carries the next offset. Offsets before it that did not arrive hold no readable
        message, such as transaction markers.
        """
        error, partition = message.error(), str(message.partition())
        if error is None:
            self._ahead[partition].append(message)
            self._next[partition] = message.offset() + 1
        elif error.code() == self._kafka.KafkaError._PARTITION_EOF:
            self._next[partition] = max(self._next[partition], message.offset())
        else:
            self._assigned = None
            raise ConnectorError("AX858", f"{self.options.topic}: {error.str()}")

    def close(self) -> None:
        """Disconnect from the brokers."""
        self._consumer.close()

    def _seek(self, start: dict[str, int], wanted: set[str]) -> None:
        """Position the consumer at these offsets; messages that it already returned are used."""
        if self._assigned == list(start) and all(
            start[p] == self._at(p) or p not in wanted for p in start
        ):
            return
        self._next = dict(start)
        self._ahead = {partition: deque() for partition in start}
        self._assigned = list(start)
        self._consumer.assign([self._place(p, offset) for p, offset in start.items()])

    def _at(self, partition: str) -> int:
        """Return the offset of the next message that can be returned."""
        ahead = self._ahead[partition]
        return int(ahead[0].offset()) if ahead else self._next[partition]

    def _place(self, partition: str, offset: int) -> Any:
        return self._kafka.TopicPartition(self.options.topic, int(partition), offset)

    def _start(self, position: Position) -> tuple[dict[str, int], dict[str, int]]:
        """Return, by partition, the offsets to continue from and the offsets after the last
        message.
        """
        given: dict[str, int] = position or {}
        if self._assigned is None or given.keys() != set(self._assigned):
            lows = self._offsets(self._partitions(), self._kafka.OFFSET_BEGINNING)
            given = {partition: given.get(partition, low) for partition, low in lows.items()}
            for partition, low in lows.items():
                if given[partition] < low:
                    raise ConnectorError(
                        "AX858",
                        f"{self.options.topic}: messages {given[partition]} to {low - 1} of"
                        f" partition {partition} are no longer retained by the broker",
                        advice="start with another checkpoint",
                    )
        highs = self._offsets(given, self._kafka.OFFSET_END)
        for partition, high in highs.items():
            if high < given[partition]:
                raise ConnectorError(
                    "AX858",
                    f"{self.options.topic}: partition {partition} ends at {high}, and"
                    f" {given[partition]} were read before",
                    advice="put the topic back, or start with another checkpoint",
                )
        return dict(given), highs

    def _offsets(self, partitions: Iterable[str], which: int) -> dict[str, int]:
        """Return the first offsets of partitions, or those after their last messages, in one
        request.
        """
        asked = [self._place(partition, which) for partition in partitions]
        try:
            offsets = self._consumer.offsets_for_times(asked, timeout=self.options.timeout)
        except self._kafka.KafkaException as error:
            raise self._unreachable(error) from None
        for one in offsets:
            if one.error is not None:
                self._assigned = None
                raise ConnectorError("AX858", f"{self.options.topic}: {one.error.str()}")
        return {str(one.partition): int(one.offset) for one in offsets}

    def _partitions(self) -> list[str]:
        try:
            listed = self._consumer.list_topics(self.options.topic, timeout=self.options.timeout)
        except self._kafka.KafkaException as error:
            raise self._unreachable(error) from None
        topic = listed.topics.get(self.options.topic)
        if topic is None or topic.error is not None or not topic.partitions:
            raise ConnectorError("AX858", f"there is no topic {self.options.topic!r}")
        return [str(number) for number in sorted(topic.partitions)]

    def _unreachable(self, error: Any) -> ConnectorError:
        self._assigned = None
        return ConnectorError("AX858", f"{self.options.topic}: {error.args[0].str()}")

    def _take(self, message: Any, updates: list[StreamUpdate], refused: list[Refusal]) -> None:
        origin = f"{message.topic()}/{message.partition()}@{message.offset()}"
        content = message.value() or b""
        try:
            if self.options.format == "jsonl":
                updates.append(read_update(content, self.stream, origin))
                return
            if self.options.format == "json":
                content = xml_of_text(content, self.options.element, origin).encode()
            element = parse(content, name=origin).root if self.timing.needs_element else None
            kind, stored = message.timestamp()
            known = kind != self._kafka.TIMESTAMP_NOT_AVAILABLE
            at = self.timing.of(element, stored / 1000 if known else None)
            updates.append(StreamUpdate(self.stream or "", "insert", content, at, origin))
        except AxlogError as error:
            refused.append(Refusal(self.stream or "", content, origin, error.describe()))


def _shares(start: Mapping[str, int], highs: Mapping[str, int], limit: int) -> dict[str, int]:
    """Return where a reading of `limit` messages ends: evenly over all partitions that have
    some.
    """
    end, left = dict(start), limit
    while left and (open_ones := [p for p in end if end[p] < highs[p]]):
        share = max(1, left // len(open_ones))
        for partition in open_ones[:left]:
            more = min(share, highs[partition] - end[partition])
            end[partition] += more
            left -= more
    return end


def _quiet() -> Any:
    import logging

    return logging.getLogger(__name__)


KAFKA = SourceKind(
    "kafka",
    KafkaOptions,
    KafkaSource,
    "A topic of a broker that speaks Kafka's protocol.",
    names_streams=True,  # with format: jsonl
    needs=("confluent_kafka",),
)
