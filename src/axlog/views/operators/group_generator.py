"""Generated groups: the application of one row as straight-line Python.

A stream's message changes one row, and its group is on the path of every message. The code has the
keys, the aggregates and the output row written out. `Group.apply` is the definition. A group whose
entry is its output row gets the next one, and a member as soon as a value is no text of a decimal.

`put` returns the output row of the group before and after it. `shift` does the same from a binding
of a view's pattern to the changes of the view, without a call between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, DecimalException
from typing import Any, NamedTuple, TypeAlias

from axlog.evaluate.generated_code import function_of
from axlog.evaluate.joins import Row
from axlog.query.numbers import DECIMALS
from axlog.views.change import Change
from axlog.views.change import Row as ViewRow
from axlog.views.operators.exact_sum import EXACT, ZERO
from axlog.views.operators.measures import Entry, Measures, Member

Put: TypeAlias = Callable[[Row, int], tuple[Row | None, Row | None]]
"""Applies one row; returns the output row of its group before and after it."""


_SHORT = 30
"""A number with fewer digits can be shown whatever its value is."""
Shift: TypeAlias = Callable[[Row, int], list[Change]]
"""Applies one binding; returns the changes of the view."""


class Shown(NamedTuple):
    """How a view shows the rows of its groups: as they are, one for each."""

    picked: tuple[int, ...]  # the positions, in a binding, of the values of a pattern's row
    before: Callable[[Row], Row | None] | None  # from that row to the group's; None: the same
    columns: tuple[str, ...]


def generate_put(
    groups: dict[Row, Entry], measures: Measures, keys: Sequence[int], *, always: bool
) -> Put:
    """The function of one group operator.

    `keys`: the positions of the keys in a row; `always`: an empty group stays.
    """
    lines = ["def put(row, count):", f"key = {_tuple([f'row[{at}]' for at in keys])}"]
    lines += _changed(keys, measures, always, ("before, None", "before, before"))
    lines += ["return before, after"]
    put: Put = function_of("put", "\n    ".join(lines) + "\n", _scope(groups, measures))
    return put


def generate_shift(
    groups: dict[Row, Entry], measures: Measures, keys: Sequence[int], shown: Shown
) -> Shift:
    """The function of one view; its groups have keys, and these are the keys of its rows."""
    lines = ["def shift(row, count):"]
    if shown.picked != tuple(range(len(shown.picked))):
        lines.append(f"row = {_tuple([f'row[{at}]' for at in shown.picked])}")
    if shown.before is not None:
        lines += ["row = prepare(row)", "if row is None:", "    return []"]
    gone = "[] if before is None else [Change('delete', Row(columns, before, 1, key))]"
    lines.append(f"key = {_tuple([f'row[{at}]' for at in keys])}")
    lines += _changed(keys, measures, False, (gone, "[]"))
    lines += instance("now", ViewRow, columns="columns", values_="after", count="1", key_="key")
    changed = {"row": "now", "view": "None", "microseconds": "0", "position": "0"}
    changed |= {"origin": "None", "final": "False"}
    lines += ["if before is None:"]
    made = instance("change", Change, op="'insert'", before="None", **changed)
    lines += [f"    {line}" for line in made]
    lines += ["else:"]
    made = instance("was", ViewRow, columns="columns", values_="before", count="1", key_="key")
    made += instance("change", Change, op="'update'", before="was", **changed)
    lines += [f"    {line}" for line in made]
    lines += ["return [change]"]
    scope = _scope(groups, measures) | {"columns": shown.columns, "prepare": shown.before}
    shift: Shift = function_of("shift", "\n    ".join(lines) + "\n", scope)
    return shift


def _scope(groups: dict[Row, Entry], measures: Measures) -> dict[str, Any]:
    scope: dict[str, Any] = {
        "groups": groups, "Member": Member, "Decimal": Decimal, "plus": EXACT.add,
        "shown": DECIMALS.add, "DecimalException": DecimalException, "ZERO": ZERO, "Row": ViewRow,
        "Change": Change, "new": object.__new__, "member_of": measures.member,
    }  # fmt: skip
    scope.update((f"read{at}", read) for at, read in enumerate(measures.reads))
    scope.update((f"new{at}", make) for at, make in enumerate(measures.makers))
    return scope


def _changed(
    keys: Sequence[int], measures: Measures, always: bool, ends: tuple[str, str]
) -> list[str]:
    """The addition of a row to the group of `key`, from its row `before` to its row `after`.

    `ends`: what is returned if the group has no rows any more, and if its output does not change.
    """
    lines = _member_changed(keys, measures, always, ends)
    if not measures.is_brief:
        return ["member = groups.get(key)", *lines]
    return [
        *_brief(keys, measures),
        "if after is None:",
        "    if entry is None or type(entry) is Member:",
        "        member = entry",
        "    else:",
        "        member = groups[key] = member_of(entry)",
        *(f"    {line}" for line in lines),
        *([] if measures.has_number else ["elif after == before:", f"    return {ends[1]}"]),
    ]


def _brief(keys: Sequence[int], measures: Measures) -> list[str]:
    """The addition of a row of texts of decimals to a group that has no member.

    `after` is None if it cannot be done so.
    """
    row_of, total_of = "entry[0]", "entry[1]"
    if measures.has_number:
        row_of, total_of = "entry", f"entry[{len(keys) + measures.shown.index(None)}]"
    places = [len(keys) + measures.shown.index(at) for at in range(len(measures.summed))]
    cells = [f"row[{at}]" for at in keys]
    cells += ["total" if at is None else f"cell{at}" for at in measures.shown]
    values = [f"value{at}" for at in range(len(places))]
    return [
        "entry = groups.get(key)",
        "after = None",
        *(f"value{at} = row[{column}]" for at, column in enumerate(measures.summed)),
        f"if count == 1 and type(entry) is not Member and {' and '.join(map(_is_text, values))}:",
        "    try:",
        "        if entry is None:",
        "            before = None",
        "            total = 1",
        *(f"            cell{at} = {_first(value)}" for at, value in enumerate(values)),
        "        else:",
        f"            before = {row_of}",
        f"            total = {total_of} + 1",
        *(
            f"            cell{at} = shown(before[{place}], Decimal(value{at}))"
            for at, place in enumerate(places)
        ),
        f"        after = {_tuple(cells)}",
        f"        groups[key] = {'after' if measures.has_number else '(after, total)'}",
        "    except DecimalException:",
        "        pass",
    ]


def _first(value: str) -> str:
    """The sum of one text of a decimal; raises if it cannot be shown."""
    return f"Decimal({value}) if len({value}) < {_SHORT} else shown(ZERO, Decimal({value}))"


def _is_text(value: str) -> str:
    """Whether a value is a text of digits, as most values are."""
    return f"type({value}) is str and {value}.isascii() and {value}.replace('.', '', 1).isdigit()"


def _member_changed(
    keys: Sequence[int], measures: Measures, always: bool, ends: tuple[str, str]
) -> list[str]:
    """The addition of a row to a member, or to a new one."""
    summed, shown = measures.summed, measures.shown
    gone, same = ends
    states = ", ".join(f"state{at}" for at in range(len(summed)))
    kept = states if len(summed) == 1 else f"[{states}]"
    lines = [
        "if member is None:",
        *(f"    state{at} = new{at}()" for at in range(len(summed))),
        *(
            f"    {line}"
            for line in instance("member", Member, count="count", kept=kept, row="None")
        ),
        "    groups[key] = member",
        "    before = None",
        "    total = count",
        "else:",
        *([f"    {kept} = member.kept"] if summed else ()),
        "    before = member.row",
        "    total = member.count = member.count + count",
    ]
    for at, column in enumerate(summed):
        lines += _add(at, column)
    if not always:
        lines += ["if not total:", "    del groups[key]", f"    return {gone}"]
    cells = [f"row[{at}]" for at in keys]
    for at in sorted({at for at in shown if at is not None}):
        lines += _show(at, summed[at])
    cells += ["total" if at is None else f"cell{at}" for at in shown]
    lines += [f"after = {_tuple(cells)}", f"if {_is_same(measures)}:", f"    return {same}"]
    return [*lines, "member.row = after"]


def _is_same(measures: Measures) -> str:
    """A row that counts changes the output of a group that shows the number of its rows."""
    return f"{'not count and ' if None in measures.shown else ''}after == before"


def instance(name: str, kind: type, **values: str) -> list[str]:
    """Code that makes an instance of a class with slots, without a call of its constructor."""
    slots = kind.__slots__  # type: ignore[attr-defined]
    return [
        f"{name} = new({kind.__name__})",
        *(f"{name}.{slot} = {values[slot]}" for slot in slots),
    ]


def _add(at: int, column: int | None) -> list[str]:
    """The addition of a row to one state; one text of digits, as most sums get, without a call.

    A sum that can be shown is exact: so it is the next state, too. The first value needs no sum.
    """
    general = [
        f"value = read{at}(row)",
        "if value is not None:",
        f"    state{at}.add(value, count)",
    ]
    if column is None:
        return general
    return [
        f"value = row[{column}]",
        f"if count == 1 and {_is_text('value')}:",
        f"    state{at}.decimals += 1",
        f"    if state{at}.decimal is ZERO and len(value) < {_SHORT}:",
        f"        cell{at} = state{at}.decimal = Decimal(value)",
        "    else:",
        "        value = Decimal(value)",
        "        try:",
        f"            cell{at} = state{at}.decimal = shown(state{at}.decimal, value)",
        "        except DecimalException:",
        f"            state{at}.decimal = plus(state{at}.decimal, value)",
        f"            cell{at} = None",
        "else:",
        f"    cell{at} = None",
        *(f"    {line}" for line in general),
    ]


def _show(at: int, column: int | None) -> list[str]:
    """The value of one aggregate; that of a sum of decimals is known from its addition."""
    if column is None:
        return [f"cell{at} = state{at}.result()"]
    return [
        f"if cell{at} is None or state{at}.integer or not state{at}.decimals"
        f" or state{at}.others is not None:",
        f"    cell{at} = state{at}.result()",
    ]


def _tuple(cells: Sequence[str]) -> str:
    return f"({''.join(f'{cell}, ' for cell in cells)})"
