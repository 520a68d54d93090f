"""What a document still needs of its channels, as filters of its subscriptions.

A stream that the tuner has narrowed is narrowed at its source: the needed patterns become the
filter of the subscription, and a stream that no view can use any more is unsubscribed. A view that
only an `on_demand` channel publishes is dropped once its last subscriber has unsubscribed, and so
are the streams that only it used. In this way an unsubscription propagates upstream from document
to document, and from peer to peer.

Messages dropped at the source do not arrive and do not advance the clock here: a document whose
views use times receives all messages of its channels. (Paper 3, sections 2.3 and 3.5.)
"""

from __future__ import annotations

from collections.abc import Iterable

from axlog.connect.channels.streams import ChannelSource
from axlog.errors import AxlogError, QueryError
from axlog.match.filters import Filter
from axlog.query.pattern import Kind, TimeConstraint
from axlog.query.query import Query
from axlog.query.steps import clock_of, positions_of
from axlog.runtime.instances import Instances


def tests_time(query: Query) -> bool:
    """Whether a view depends on the clock."""
    pattern = query.pattern
    if clock_of(query.steps) is not None:
        return True
    return any(isinstance(each, TimeConstraint) for each in pattern.where) or any(
        output.kind is Kind.TIME for output in pattern.outputs
    )


def _needs_all(query: Query) -> bool:
    """Whether a view depends on time, or on the positions of nodes among their siblings."""
    return tests_time(query) or positions_of(query.steps) is not None


def filter_of(wanted: Iterable[str]) -> Filter | None:
    """Return the patterns that a stream is needed for, as a filter; None if they have no text."""
    made = Filter()
    try:
        for number, text in enumerate(wanted):
            made.add(str(number), f"match {text if text.startswith('/') else '/' + text}")
    except QueryError:
        return None
    return made


def narrow_subscription(one: Instances, stream: str, source: ChannelSource) -> bool:
    """Narrow a channel's subscription to what is needed; return False if nothing is."""
    if not one.is_single or any(_needs_all(query) for query in one.queries.values()):
        return True
    status = one.documents[""].streams().get(stream)
    if status is None or not status.is_tuned:
        return True
    try:
        if not status.wanted:
            source.unsubscribe()
            return False
        source.want(status.wanted, filter_of(status.wanted))
    except AxlogError:
        return True  # the owner is unreachable now: everything passes until it is not
    return True
