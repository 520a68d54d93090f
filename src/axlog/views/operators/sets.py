"""Sets of rows: union, difference and intersection, by the operators of `or` and `not`.

A union has every row once. A difference and an intersection compare the columns of the right side,
which the left side must have, and keep the left counts: give them a union of one input where rows
must count once.
"""

from __future__ import annotations

from collections.abc import Sequence

from axlog.evaluate.joins import AbsenceCheck
from axlog.evaluate.work import MOST_WORK, message_meter
from axlog.query.compile import Column
from axlog.views.operators.anti_join import AntiJoin
from axlog.views.operators.distinct import Distinct
from axlog.views.operators.operator import Operator
from axlog.views.operators.semi_join import SemiJoin
from axlog.views.operators.table import NewIndex


def union(schemas: Sequence[Sequence[Column]], new_index: NewIndex = dict) -> Distinct:
    """The rows that some input has, each once; the columns are those of the first input."""
    schema = tuple(schemas[0])
    columns = [tuple(each) for each in schemas]
    places = [tuple(map(each.index, schema)) for each in columns]
    return Distinct(schema, columns, places, [{} for _ in schemas], new_index)


def difference(left: Operator, right: Sequence[Column], new_index: NewIndex = dict) -> AntiJoin:
    """The left rows that agree with no right row: `except`.

    Port 0 is the left side, port 1 the right side.
    """
    check = AbsenceCheck(tuple(right), (), left.schema)
    meter = message_meter(MOST_WORK)  # not used: one right row agrees with a left row, or none
    return AntiJoin(left, check, {}, meter, new_index)


def intersection(left: Operator, right: Sequence[Column], new_index: NewIndex = dict) -> SemiJoin:
    """The left rows that agree with a right row: `intersect`.

    Apply a delta of the right side to `right` of the result first, and the rows that appear or
    disappear there to port 1.
    """
    columns = tuple(right)
    kept = union([columns], new_index)
    return SemiJoin(left, kept, [columns], [tuple(map(left.schema.index, columns))])
