"""Random queries beyond patterns, documents and updates, for the law of XQuery views."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

WORDS = ("x", "y", "z", "xy")
NUMBERS = ("1", "2", "3", "3.5", "10")
_ORDERS = ("//o", "//o", "//o", "/r/o", "/r/o", "/r/*", "//*[c]")
_OTHERS = ("//s", "/r/s", "//i", "//o/i", "//o//i")
_PATHS = (*_ORDERS, *_OTHERS, "//c")
_NODE_STEPS = ("/c", "/i", "/i/p", "//p", "/@k", "/..", "/i[1]", "/c/text()")
_FAR_STEPS = (
    "/../c", "/following-sibling::*", "/i/../c", "/ancestor::o/t", "/preceding-sibling::*/c",
    "/../o/i",
)  # fmt: skip
"""Steps that may lead from several nodes to one."""
_FAR_VALUES = ("/string()", " ! name(.)", "/number()", "/(string(.), 1)", "/(. | ..)")
_VALUE_STEPS = (
    "/position()",
    " ! last()",
    "/(if (position() = 2) then c else t)",
    "/i/(position() * 2)",
)


QUERIES = 4
"""Queries of a case, each over every document: a query is parsed at the cost of a history."""
HISTORIES = 3
"""Documents of a case, each with its updates."""


@dataclass(frozen=True, slots=True)
class History:
    """A document, and statements that change it one after the other."""

    document: str
    updates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class XQueryCase:
    """Queries, histories that each query is compared on, and the maintainer of the views."""

    queries: tuple[str, ...]
    histories: tuple[History, ...]
    maintainer: str | None = None


def make_xquery_case(random: Random) -> XQueryCase:
    """A random case."""
    queries = tuple(_Writer(random).query() for _ in range(QUERIES))
    return XQueryCase(queries, tuple(_history(random) for _ in range(HISTORIES)))


def smaller_xquery(case: XQueryCase) -> Iterator[XQueryCase]:
    """Cases with one query, one history, and then fewer updates."""
    for query in case.queries if len(case.queries) > 1 else ():
        yield replace(case, queries=(query,))
    for history in case.histories if len(case.histories) > 1 else ():
        yield replace(case, histories=(history,))
    for number, history in enumerate(case.histories):
        for at in range(len(history.updates)):
            fewer = replace(history, updates=(*history.updates[:at], *history.updates[at + 1 :]))
            rest = (*case.histories[:number], fewer, *case.histories[number + 1 :])
            yield replace(case, histories=rest)


# Documents and updates ----------------------------------------------------------------------------


def _history(random: Random) -> History:
    parts = [_order(random, 2) for _ in range(random.choice((0, 1, 2, 3, 3, 4)))]
    parts += [_shipped(random) for _ in range(random.choice((0, 1, 2, 3, 3, 4)))]
    random.shuffle(parts)
    updates = tuple(_update(random) for _ in range(random.randint(1, 6)))
    return History(f"<r>{''.join(parts)}</r>", updates)


def _order(random: Random, depth: int) -> str:
    parts = [f"<c>{random.choice(WORDS)}</c>"] if random.random() < 0.9 else []
    if random.random() < 0.85:
        parts.append(f"<t>{random.choice(NUMBERS)}</t>")
    parts += [_item(random) for _ in range(random.choice((0, 1, 2, 3)))]
    if depth and random.random() < 0.15:
        parts.append(_order(random, depth - 1))
    random.shuffle(parts)
    return f"<o{_key(random)}>{''.join(parts)}</o>"


def _key(random: Random) -> str:
    return f' k="{random.choice(WORDS)}"' if random.random() < 0.5 else ""


def _item(random: Random) -> str:
    """An item; some have parts of an order too, so that conditions on orders hold for items."""
    return (
        f"<i>{_optional(random, 0.25)}<p>{random.choice(NUMBERS)}</p>{_one(random, 'q', 0.7)}</i>"
    )


def _shipped(random: Random) -> str:
    word = f"<c>{random.choice(WORDS)}</c>"
    inside = _one(random, "n", 0.8) + (_item(random) if random.random() < 0.2 else "")
    return f"<s{_key(random)}>{word}{inside}{_optional(random, 0.3)}</s>"


def _optional(random: Random, share: float) -> str:
    word = f"<c>{random.choice(WORDS)}</c>" if random.random() < share else ""
    return word + _one(random, "t", share)


def _one(random: Random, name: str, share: float) -> str:
    return f"<{name}>{random.choice(NUMBERS)}</{name}>" if random.random() < share else ""


def _update(random: Random) -> str:
    at = random.choice((1, 1, 1, 2, 2, 3, 4))
    kind = random.random()
    fragment = (
        _order(random, 1) if kind < 0.5 else _shipped(random) if kind < 0.85 else _item(random)
    )
    match random.randrange(9):
        case 0 | 1:
            place = random.choice(("as first into", "as last into"))
            return f"insert node {fragment} {place} /r"
        case 2:
            place = random.choice(("before", "after"))
            return f"for $x in (/r/*)[{at}] return insert node {fragment} {place} $x"
        case 3:
            return f"for $x in (//o)[{at}] return insert node {_item(random)} as last into $x"
        case 4:
            name = random.choice(("o", "s", "i", "c", "t", "p", "q", "n", "@k"))
            return f"delete node (//{name})[{at}]"
        case 5:
            name = random.choice(("c", "t", "p", "n", "n", "q"))
            value = WORDS if name == "c" else NUMBERS
            new = random.choice(value)
            return f"for $x in (//{name})[{at}] return replace value of node $x with '{new}'"
        case 6:
            name, new = random.choice((("o", "s"), ("s", "o"), ("i", "o"), ("q", "p"), ("n", "t")))
            return f"for $x in (//{name})[{at}] return rename node $x as '{new}'"
        case 7:
            new = random.choice(WORDS)
            return f"for $x in (//@k)[{at}] return replace value of node $x with '{new}'"
    return f"delete nodes (/r/*)[{at}]"


# Queries ------------------------------------------------------------------------------------------


def _from(text: str, document: str) -> str:
    """An expression whose paths from the document start at a variable."""
    return text.replace("//s", f"{document}//s").replace("//o", f"{document}//o")


class _Writer:
    """Writes random queries. Variables are nodes, except where a method says so."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._names = iter("abcdefghijklmnopqrstuvwxyz")

    def _new(self) -> str:
        return f"${next(self._names, 'z')}"

    def query(self) -> str:
        match self._random.randrange(13):
            case 12:
                return self._of_items()
            case 8:
                return self.nodes(1)
            case 9:
                return self.aggregate(self.nodes(1))
            case 10:
                return self._of_constructed()
            case 11:
                return self._of_function()
            case 0:
                return self.path(2)
            case 1:
                return self.aggregate(self.path(1))
            case 2:
                return self.aggregate(self.flwor(1, is_nodes=True))
            case 3:
                return f"({self.flwor(1)})[{self.position()}]"
            case 4:
                return self.flwor(1)
            case 5:
                return f"<all>{{{self.flwor(1)}}}</all>"
        return self.flwor(2)

    # sets of nodes, constructed data, functions

    def nodes(self, depth: int) -> str:
        """Nodes: a path, or a set of the nodes of two paths."""
        random = self._random
        operator = random.choice(("|", "union", "except", "except", "intersect", "intersect"))
        make = self.path if random.random() < 0.2 else self.rows
        both = f"({self._operand(make, depth)} {operator} {self._operand(make, depth)})"
        return both + random.choice(("", "", "/c", "/i/p", "/.."))

    def _operand(self, make: Callable[[int, bool], str], depth: int) -> str:
        """An operand of a set; none that mixes positions with other conditions.

        SaxonC-HE 13.1 then counts in the whole document: `(//i[c = //s/c or last() = 3] | //o)/c`
        has nodes that `(//i[c = //s/c or last() = 3])/c` has not.
        """
        while True:
            found = make(depth, True)
            counts = "position()" in found or "last()" in found
            if not counts or not any(word in found for word in (" or ", " and ")):
                return found

    def _of_constructed(self) -> str:
        """A query over elements that another query makes."""
        random = self._random
        first, row = self._new(), self._new()
        made = (
            f"for {first} in {self.rows(0)} return <w k='{{{first}/c}}'>"
            f"<m>{{{first}/t/text()}}</m>{{{self.value_of(first, 1)}}}</w>"
        )
        words = "('x', 'y')"
        condition = random.choice(("m > 2", "@k = 'x'", "m", f"@k = {words}", f"not(@k = {words})"))
        match random.randrange(5):
            case 0:
                return f"for {row} in ({made}) where {row}[{condition}] return {row}/m/text()"
            case 1:
                return f"for {row} in ({made}) where {row}[{condition}] return <u>{{{row}/m}}</u>"
            case 2:
                return f"let {row} := ({made}) return (count({row}), sum({row}/m/number(.)))"
            case 3:
                return f"count(({made})/m)"
        rows = self._new()
        return f"let {rows} := ({made}) for {row} in {rows} order by {row}/@k return {row}/m"

    def _of_items(self) -> str:
        """A function of all items of a path or query, or of one."""
        random = self._random
        items = self.path(1, True) if random.random() < 0.5 else self.flwor(0, is_nodes=True)
        one = f"({items})[{random.choice(('1', '2', 'last()'))}]"
        return random.choice(
            (
                f"string-join({items}, '-')",
                f"data({items})",
                f"data({items}) ! concat(., '!')",
                f"string({one})",
                f"number({one}) + 1",
                f"name({one})",
                f"concat('<', {one}, '>', count({items}))",
                f"tokenize({one}, 'x')",
                f"(count({items}))[{random.choice(('1', '2', 'last()'))}]",
                f"count({items})[. > 1]",
                f"zero-or-one({items})",
                f"exactly-one({items})/..",
                f"normalize-space({items})",
                f"substring-before({one}, '.') || '!'",
                f"<j>{{string-join({items}, ',')}}</j>",
                f"if (contains({one}, 'x')) then 1 else {one}",
            )
        )

    def _of_function(self) -> str:
        """A query that calls functions of its prolog."""
        random = self._random
        body = _from(self.value_of("$p", 1), "$d")  # a function has no context item
        holds = _from(self.condition_of("$p", 1), "$d")
        prolog = (
            f"declare function local:v($p, $d) {{ {body} }};"
            f" declare function local:h($p, $d) {{ {holds} }}; "
        )
        row = self._new()
        text = f"for {row} in {self.rows(0)}"
        if random.random() < 0.6:
            text += f" where local:h({row}, /)"
        return f"{prolog}{text} return <f>{{local:v({row}, /)}}</f>"

    # paths from the document

    def rows(self, depth: int, is_nodes: bool = True) -> str:
        """A path to elements, mostly to orders, which most conditions and values are about."""
        random = self._random
        found = random.choice(_ORDERS if random.random() < 0.75 else _OTHERS)
        if random.random() < 0.35:
            found += f"[{self.predicate(depth)}]"
        return f"({found})[{self.position()}]" if random.random() < 0.06 else found

    def path(self, depth: int, is_nodes: bool = False) -> str:
        """A path from the document; `is_nodes`: it gives nodes only."""
        random = self._random
        found = random.choice(_PATHS)
        if random.random() < 0.4:
            found += f"[{self.predicate(depth)}]"
        if random.random() < 0.2:
            found += random.choice(_NODE_STEPS if is_nodes else (*_NODE_STEPS, *_VALUE_STEPS))
        if random.random() < 0.15:
            found += f"[{self.predicate(0)}]"
        if depth and random.random() < 0.1:
            found += random.choice(_FAR_STEPS)
            if not is_nodes and random.random() < 0.7:
                found += random.choice(_FAR_VALUES)
        return f"({found})[{self.position()}]" if random.random() < 0.1 else found

    def position(self) -> str:
        return self._random.choice(
            ("1", "2", "last()", "position() < 3", "position() > 1", "last() - 1",
             "position() mod 2 = 1", "position() = 2 to 3", "position() > last() - 2",
             "position() <= last() - 2")
        )  # fmt: skip

    def predicate(self, depth: int) -> str:
        """A predicate, relative to its node."""
        random = self._random
        if depth and random.random() < 0.4:
            return self._joining_predicate(depth)
        match random.randrange(9):
            case 8:
                place = random.choice(("position() = 1", "position() > 1", "position() = last()"))
                other = random.choice(("i", "t > 2", "c = 'x'", "not(i)", "i[2]", "count(i) = 1"))
                return f"{place} {random.choice(('or', 'and'))} {other}"
            case 0:
                return f"c = '{random.choice(WORDS)}'"
            case 1:
                return f"t {random.choice(('>', '>=', '<'))} {random.choice(NUMBERS)}"
            case 2:
                return f"contains(c[1], '{random.choice('xyz')}')"
            case 3:
                return random.choice(("i", "not(i)", "@k", "empty(c)", "i/q"))
            case 4 | 5:
                return self.position()
            case 6:
                return f"count(i) {random.choice(('>', '=', '<'))} 1"
        return f"sum(i/p) > {random.choice(NUMBERS)}"

    def _joining_predicate(self, depth: int) -> str:
        """A predicate that compares with other parts of the document."""
        random = self._random
        order = random.choice(("<", ">", "<=", ">="))
        return random.choice(
            (
                "c = //s/c",
                "not(c = //s/c)",
                f"some $w in //s satisfies $w/c = {random.choice(('c', '@k'))}",
                f"({self.predicate(depth - 1)}) and ({self.condition_of('.', 0)})",
                f"t {order} //s/n",
                f"c = //s/c or ({self.predicate(depth - 1)})",
                f"not(c = //s/c) or @k = //o/c[{self.predicate(0)}]",
                f"every $w in //s satisfies $w/n {order} number(t[1])",
                "some $w in //s, $u in //o satisfies $w/c = $u/c and $u/t = t",
            )
        )

    # expressions of a variable

    def nodes_of(self, variable: str) -> str:
        return variable + self._random.choice(
            ("", "/c", "/i", "//p", "/i[1]", "/@k", "/i[p > 1]/q", "/i[last()]/p", "/c/text()",
             "/..", "/following-sibling::*[1]", "/*")
        )  # fmt: skip

    def value_of(self, variable: str, depth: int) -> str:
        random = self._random
        if depth and random.random() < 0.35:
            of_order = random.random() < 0.35
            return (self._ordered_value if of_order else self._nested_value)(variable)
        return random.choice(
            (
                f"count({variable}/i)",
                f"sum({variable}/i/p)",
                f"{variable}/t[1] * 2",
                f"string({variable}/c[1])",
                f"concat({variable}/@k, '-', {variable}/c[1])",
                f"if ({self.condition_of(variable, 0)}) then 'yes' else {variable}/c",
                f"string-join({variable}/i/p, ',')",
                f"max(({variable}//p/number(.), 0))",
                f"name({variable})",
                f"upper-case({variable}/c[1]) || string-length({variable})",
                f"{variable}/i/(p * 2)",
                f"count({variable}/i) + count(//s)",
                f"count({variable}//p)",
            )
        )

    def _nested_value(self, variable: str) -> str:
        """A value that a query inside the query gives.

        None raises an error for its data: whether an evaluation notices an error in a value that it
        does not need, the recommendation leaves open.
        """
        inner = self._new()
        of_same = f"for {inner} in //s where {inner}/c = {variable}/c"
        return self._random.choice(
            (
                f"count(//s[c = {variable}/c])",
                f"sum({of_same} return {inner}/n)",
                f"{of_same} return <m>{{{inner}/n}}{{{variable}/t}}</m>",
                f"{of_same} order by {inner}/n return {inner}/n/text()",
                f"exists(//s[c = {variable}/c][n > 1])",
                f"distinct-values(//o[c = {variable}/c]/t)",
                f"count({variable}/c intersect //o[1]/c)",
                f"count({variable}/* except //s/*)",
                f"distinct-values(//s[c = {variable}/c]/n)",
                f"({of_same} order by {inner}/n descending return {inner}/n)[1]",
                f"({of_same} return {inner}/n/number(.))[{self.position()}]",
                f"string(head({of_same} return {inner}/n))",
                f"head({of_same} return {inner})/n",
                f"if (exists(//s[c = {variable}/c])) then <y/> else <z>{{{variable}/c}}</z>",
                f"{of_same} return <x>{{count(//o[c = {inner}/c][t > {variable}/t])}}</x>",
                f"count({of_same} group by $g := string({inner}/n[1]) return <g/>)",
            )
        )

    def _ordered_value(self, variable: str) -> str:
        """A value of the nodes whose number is less or greater than one of the outer node."""
        random, inner = self._random, self._new()
        operator = random.choice(("<", ">", ">=", "<="))
        number = random.choice((f"number({variable}/t[1])", f"{variable}/t[1]/number(.)"))
        left = random.choice((f"{inner}/n", f"{inner}/n/number(.)", f"number({inner}/n[1])"))
        found = f"for {inner} in //s where {left} {operator} {number}"
        return random.choice(
            (
                f"count({found} return {inner})",
                f"count({found} return {inner}/n)",
                f"exists({found} return {inner})",
                f"empty({found} return {inner}/c)",
                f"max({found} return {inner}/n/number(.))",
                f"sum({found} return {inner}/n)",
                f"({found} return {inner})[last()]/c",
                f"({found} return {inner}/n)[{self.position()}]",
                f"({found} return {inner}/n/number(.))[{random.choice(('1', '2', 'last()'))}]",
                f"string(({found} return {inner}/c)[1])",
                f"string-join({found} return {inner}/c, '+')",
                f"count(//s[number(n[1]) {operator} {number}])",
                f"{found} return {inner}/c",
            )
        )

    def condition_of(self, variable: str, depth: int) -> str:
        random = self._random
        if depth and random.random() < 0.5:
            return self._joining_condition(variable)
        match random.randrange(8):
            case 0:
                return f"{variable}/c = '{random.choice(WORDS)}'"
            case 1:
                operator = random.choice((">", ">=", "<", "!="))
                return f"{variable}/t {operator} {random.choice(NUMBERS)}"
            case 2:
                return f"contains({variable}/c[1], 'x')"
            case 3:
                return f"not({variable}/i)"
            case 4:
                return f"count({variable}/i) > 1"
            case 5:
                return f"some $e in {variable}/i satisfies $e/p > 2"
            case 6:
                return f"every $e in {variable}/i satisfies $e/q"
        return f"{variable}/i[1]/p * 2 <= {variable}/i[last()]/p"

    def _joining_condition(self, variable: str) -> str:
        """A condition that compares with other parts of the document."""
        return self._random.choice(
            (
                f"empty(//s[c = {variable}/c])",
                f"{variable}/c = //s[n > 1]/c",
                f"not(some $e in //s satisfies $e/c = {variable}/c and $e/n = {variable}/t)",
                f"every $e in //s satisfies not($e/c = {variable}/c)",
                f"every $e in //s satisfies number($e/n[1]) <= number({variable}/t[1])",
                f"{variable}/t[1] < //s/n/number(.)",
                f"not({variable}/c = //s/c) or ({self.condition_of(variable, 0)})",
                f"some $e in //s, $f in //o satisfies $e/c = {variable}/c and $f/t = $e/n",
                f"count(//s[c = {variable}/c]) {self._random.choice(('<', '>=', '='))} 1",
            )
        )

    # queries

    def flwor(self, depth: int, is_nodes: bool = False) -> str:
        random = self._random
        first = self._new()
        kind = random.random()
        source = self.nodes(0) if kind < 0.1 else self.path(1) if kind < 0.25 else self.rows(1)
        text = f"for {first} in {source}"
        variables = [first]
        if random.random() < 0.25:
            second = self._new()
            source = random.choice((f"{first}/i", "//s", f"//s[c = {first}/c]", f"{first}//p"))
            text += f", {second} in {source}"
            variables.append(second)
        value = ""
        if random.random() < 0.25:
            value = self._new()
            text += f" let {value} := {self.value_of(first, depth)}"
        if random.random() < 0.5:
            text += f" where {self.condition_of(random.choice(variables), depth)}"
        if random.random() < 0.25 and not is_nodes:
            return text + self._grouped(first, value)
        if random.random() < 0.35:
            text += f" order by {self._order_key(first)}"
        return f"{text} return {self._returned(variables, value, depth, is_nodes)}"

    def _order_key(self, variable: str) -> str:
        random = self._random
        key = random.choice(
            (
                f"{variable}/c[1]",
                f"number({variable}/t[1])",
                f"count({variable}/i)",
                f"{variable}/@k",
            )
        )
        empty = random.choice(("", " empty greatest", " empty least"))
        return f"{key}{random.choice(('', ' descending'))}{empty}"

    def _grouped(self, variable: str, value: str) -> str:
        random = self._random
        key = self._new()
        by = random.choice((f"{variable}/c[1]", f"string({variable}/@k)", f"count({variable}/i)"))
        parts = [
            f"count({variable})", f"sum({variable}/t)", f"{variable}/c", f"max({variable}/i/p)",
            f"count({variable}/i)", f"string-join({variable}/t, '+')", f"avg({variable}/t)",
            f"sum({variable} ! count(i))",
        ]  # fmt: skip
        if value:
            parts.append(f"count({value})")
        chosen = ", ".join(random.sample(parts, random.randint(1, 3)))
        having = f" where count({variable}) > 1" if random.random() < 0.3 else ""
        order = random.choice(
            (f" order by string({key})", f" order by count({variable}), string({key})")
        )
        return f" group by {key} := {by}{having}{order} return <g k='{{{key}}}'>{{{chosen}}}</g>"

    def _returned(self, variables: list[str], value: str, depth: int, is_nodes: bool) -> str:
        random = self._random
        variable = random.choice(variables)
        if is_nodes:
            return f"{variable}/{random.choice(('t', 'i/p', 'i', 'n'))}"
        if value and random.random() < 0.5:
            return value if random.random() < 0.5 else f"<v>{{{value}}}</v>"
        match random.randrange(5):
            case 0:
                return self.nodes_of(variable)
            case 1:
                return self.value_of(variable, depth)
            case 2:
                return f"({self.nodes_of(variable)}, {self.value_of(variable, depth)})"
        inside = "".join(
            f"{{{self.value_of(v, depth) if random.random() < 0.5 else v + '/c'}}}"
            for v in variables
        )
        return f"<e n='{{{variable}/t}}'>{inside}</e>"

    def aggregate(self, inside: str) -> str:
        function = self._random.choice(("count", "count", "sum", "avg", "min", "max", "exists"))
        if function in ("count", "exists"):
            return f"{function}({inside})"
        return f"{function}(({inside}) ! number(.))"
