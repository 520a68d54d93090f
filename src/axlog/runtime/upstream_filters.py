"""What a widget still wants of its channels, told to those who own them (P3 2.3, 3.5).

A stream that the tuner has narrowed is narrowed at its source: the patterns that are still wanted
become the filter of the subscription, and a stream that no view can use any more is unsubscribed. A
view that only a channel `on_demand` publishes is let go of once its last subscriber has
unsubscribed, and so are the streams that only it used: so an unsubscription travels upstream from
widget to widget, and from peer to peer.

What is dropped at the source does not arrive, so it does not move the clock here: a widget whose
views speak of times keeps all of its channels' messages.
"""

from __future__ import annotations

from collections.abc import Iterable

from axlog.connect.channels.streams import ChannelSource
from axlog.errors import AxlogError, QueryError
from axlog.match.filters import Filter
from axlog.query.pattern import Kind, TimeConstraint
from axlog.query.query import Query
from axlog.runtime.instances import Instances


def speaks_of_time(query: Query) -> bool:
    """Whether the clock matters to a view."""
    pattern = query.pattern
    return any(isinstance(each, TimeConstraint) for each in pattern.where) or any(
        output.kind is Kind.TIME for output in pattern.outputs
    )


def filter_of(wanted: Iterable[str]) -> Filter | None:
    """The patterns that a stream is wanted for, as a filter; None where they have no text."""
    made = Filter()
    try:
        for number, text in enumerate(wanted):
            made.add(str(number), f"match {text if text.startswith('/') else '/' + text}")
    except QueryError:
        return None
    return made


def tell(one: Instances, stream: str, source: ChannelSource) -> bool:
    """Narrow a channel's subscription to what is wanted; False if nothing is, any more."""
    if not one.is_single or any(speaks_of_time(query) for query in one.queries.values()):
        return True
    status = one.widgets[""].streams().get(stream)
    if status is None or not status.is_tuned:
        return True
    try:
        if not status.wanted:
            source.unsubscribe()
            return False
        source.want(status.wanted, filter_of(status.wanted))
    except AxlogError:
        return True  # the owner cannot be reached now: everything passes until it can
    return True
