"""`CallPublisher`: publishes calls on a channel, beside the program that it observes.

The observed program never waits and never fails because of it: calls are queued and published by a
thread. If the channel cannot be reached, a call is retried a few times and then dropped; if the
queue is full, the newest call is dropped. `dropped` counts both, and the log says so.

Filters run at the source. A channel of this process tests the filters of all its subscribers when a
call is published. For a channel elsewhere, `wanted` is tested before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from logging import WARNING, getLogger
from queue import Full, Queue
from threading import Lock, Thread
from time import sleep, time

from axlog.connect.alerters.calls import Body, Call, CallOptions, call_xml
from axlog.connect.channels.protocol import Channel
from axlog.connect.channels.subscription_filters import passes
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError
from axlog.match.filters import Filter
from axlog.reporting import report

_log = getLogger("axlog.publisher")
_TRIES = 4
_STOP = None


class CallPublisher:
    """Publishes the calls of a program.

    Parameters:
        channel: The channel, here or at a peer (`HttpChannel`).
        stream: Name of the stream on the channel.
        options: The parts of a call to publish.
        wanted: Only calls that pass this filter are published; None: all.
        most: Calls that may wait to be published.

    >>> from axlog.connect.channels.channel import LocalChannel
    >>> channel = LocalChannel("calls")
    >>> reader = channel.subscribe()
    >>> publisher = CallPublisher(channel)
    >>> publisher.note(Call("in-call", "GET", "/a", "", None, None, 0.0, (), Body(9), Body(9), 200))
    >>> publisher.close()
    >>> reader.read().updates[0].content[:30]
    '<in-call><time>1970-01-01T00:0'
    """

    def __init__(
        self,
        channel: Channel,
        stream: str = "calls",
        options: CallOptions | None = None,
        wanted: Filter | None = None,
        most: int = 10_000,
        clock: Callable[[], float] = time,
    ) -> None:
        self.options = options or CallOptions()
        self.clock = clock
        self.published = self.dropped = 0
        self._channel, self._stream, self._wanted = channel, stream, wanted
        self._queue: Queue[Call | None] = Queue(most)
        self._latest = 0.0
        self._lock = Lock()
        self._thread = Thread(target=self._work, name="axlog-publisher", daemon=True)
        self._thread.start()

    def body(self) -> Body:
        """Make room for the body of a call."""
        return Body(self.options.size if self.options.bodies else 0)

    def note(self, call: Call) -> None:
        """Publish a call soon."""
        try:
            self._queue.put_nowait(call)
        except Full:
            self._drop("too many calls wait")

    def flush(self) -> None:
        """Wait until every noted call is published or dropped."""
        self._queue.join()

    def close(self) -> None:
        """Publish what waits, and stop. The channel stays open."""
        self._queue.put(_STOP)
        self._thread.join()

    def _drop(self, why: str) -> None:
        with self._lock:
            self.dropped += 1
            count = self.dropped
        if count & (count - 1) == 0:  # once for each doubling
            report(_log, WARNING, "calls dropped", count=count, reason=why)

    def _work(self) -> None:
        while True:
            call = self._queue.get()
            try:
                if call is _STOP:
                    return
                self._publish(call)
            except Exception as error:  # an observed program must not suffer from its observer
                self._drop(f"{type(error).__name__}: {error}")
            finally:
                self._queue.task_done()

    def _publish(self, call: Call) -> None:
        self._latest = max(self._latest, call.time)  # calls end in another order than they begin
        update = StreamUpdate(self._stream, "insert", call_xml(call, self.options), self._latest)
        if self._wanted is not None and not passes(self._wanted, update):
            return
        for pause in (*(0.1 * 4**n for n in range(_TRIES)), None):
            try:
                self._channel.publish(update)
                self.published += 1
                return
            except AxlogError:
                if pause is None:
                    raise
                sleep(pause)
