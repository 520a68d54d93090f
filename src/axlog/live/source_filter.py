"""The filter that a widget wants at a stream's source (P3 2.3, 3.5).

The patterns are those of the stream's route: all that can match where its call stands, and after
tuning what is still wanted, with the values that can still join. They are texts: the filter can be
sent (`Filter.to_json`) and runs with no other part of the document. Filters of many widgets go into
one at the source (`connect/channels/subscription_filters.py`).

Law: a message that the filter does not match changes no row of any view, now or later; its time
still counts (`Document.advance`). Constraints between several nodes are left to the widget, which
only makes the filter pass more. What holds a call always passes: that is the channel's to see.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from axlog.errors import AxlogError
from axlog.match.filters import Filter
from axlog.query.compile import Relation
from axlog.query.native import parse_pattern
from axlog.query.pattern import Axis, Kind, Output, Pattern
from axlog.views.counting.routes import Known, Route, Wants


def filter_at_source(route: Route, wants: Wants | None) -> Filter | None:
    """What may pass to a route; None where a pattern cannot be sent as text: everything."""
    known = wants or Wants()
    made = Filter()
    try:
        _add(made, route.here, known.here, Axis.CHILD)
        _add(made, route.everywhere, known.everywhere, Axis.DESCENDANT)
    except AxlogError:
        return None
    return made


def _add(
    made: Filter, relations: Iterable[Relation], known: dict[Relation, Known], axis: Axis
) -> None:
    for relation in relations:
        values = {
            column[1:]: [value for value in values if isinstance(value, str)]
            for column, values in known.get(relation, {}).items()
            if column.startswith("$")
        }
        pattern = pattern_of(relation, axis, values)
        parse_pattern(str(pattern))  # raises for names that `hoist` made: they have no text
        key = str(replace(pattern, outputs=()))
        if key not in made:
            made.add(key, pattern, known=values)


def pattern_of(relation: Relation, axis: Axis, shown: Iterable[str] = ()) -> Pattern:
    """A relation's sub-pattern as a pattern of its own, on the message as a document."""
    assert relation.node is not None
    outputs = tuple(Output(Kind.VARIABLE, name) for name in shown)
    return Pattern((replace(relation.node, axis=axis),), outputs=outputs)
