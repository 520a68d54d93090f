"""The filter that a document asks the source of a stream to run.

Its patterns are those of the stream's route: all patterns that can match at the stream's call, and
after tuning only those still wanted, with the values that can still join. Patterns are kept as
text, so the filter can be sent (`Filter.to_json`) and runs without any other part of the document.
The source merges the filters of many documents into one
(`connect/channels/subscription_filters.py`).

Law: a message that the filter does not match changes no row of any view, now or later. Its time
still counts (`Document.advance`). The filter ignores constraints between several nodes and leaves
them to the document, so it only passes more. It does not handle calls: the channel must let every
message with a call pass. (Paper 3, sections 2.3 and 3.5.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from axlog.errors import AxlogError
from axlog.match.filters import Filter
from axlog.query.compile import Relation
from axlog.query.native import parse_pattern
from axlog.query.pattern import Axis, Kind, Output, Pattern
from axlog.views.counting.routes import Route, Wants
from axlog.views.counting.row_sinks import Known


def filter_at_source(route: Route, wants: Wants | None) -> Filter | None:
    """Return the filter of a route.

    None: a pattern has no text form, so every message must pass.
    """
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
        parse_pattern(str(pattern))  # raises for names that `hoist` made, which have no text form
        key = str(replace(pattern, outputs=()))
        if key not in made:
            made.add(key, pattern, known=values)


def pattern_of(relation: Relation, axis: Axis, shown: Iterable[str] = ()) -> Pattern:
    """Return a relation's sub-pattern as a pattern over the message as a document."""
    assert relation.node is not None
    outputs = tuple(Output(Kind.VARIABLE, name) for name in shown)
    return Pattern((replace(relation.node, axis=axis),), outputs=outputs)
