"""Random statements on random small documents, for the law `statements`.

Statements address the document as `$d`. They have every kind of update, alone, in lists, loops,
conditions, choices and functions, with content and values of many kinds: constructors, copies of
nodes, transforms. Targets are often one node, so that most statements are valid, and sometimes
none, several or of the wrong kind, so that the errors are compared too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

NAMES = ("a", "b", "c", "p:a")
_DECLARED = 'xmlns:p="urn:p"'


@dataclass(frozen=True, slots=True)
class StatementsCase:
    """A document, and statements that are each run on it as it was at first."""

    document: str
    statements: tuple[str, ...]


def make_statements_case(random: Random, count: int = 12) -> StatementsCase:
    """A random case."""
    made = _Maker(random)
    return StatementsCase(made.document(), tuple(made.statement() for _ in range(count)))


def smaller_statements(case: StatementsCase) -> Iterator[StatementsCase]:
    """Cases with one statement less."""
    if len(case.statements) > 1:
        for each in case.statements:
            yield StatementsCase(case.document, (each,))


class _Maker:
    def __init__(self, random: Random) -> None:
        self.random = random
        self._variables = 0

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def often(self, chance: float) -> bool:
        return self.random.random() < chance

    # Documents

    def document(self) -> str:
        before = self.one("", "", "", "<!--top-->", "<?top x?>")
        after = self.one("", "", "", "<!--end-->")
        inside = "".join(self.node(2) for _ in range(self.random.randint(2, 5)))
        return f"{before}<r {_DECLARED}{self.attributes()}>{inside}</r>{after}"

    def attributes(self) -> str:
        found = "".join(
            f' {name}="{self.random.randint(0, 3)}"' for name in ("k", "m") if self.often(0.35)
        )
        return found + (' p:k="7"' if self.often(0.08) else "")

    def node(self, depth: int) -> str:
        kind = self.random.random()
        if kind < 0.22:
            return self.one("x", "1", "22", "y z", "&lt;&amp;")
        if kind < 0.29:
            return self.one("<!--n-->", "<!-- 2 -->")
        if kind < 0.35:
            return self.one("<?t data?>", "<?u?>", "<?t v w?>")
        name = self.one(*NAMES[:3], *NAMES)
        inside = ""
        if depth:
            inside = "".join(self.node(depth - 1) for _ in range(self.random.randint(0, 3)))
        return f"<{name}{self.attributes()}>{inside}</{name}>"

    # Paths and values

    def path(self, start: str = "$d") -> str:
        """A path that finds some nodes."""
        first = self.one("//a", "//b", "//c", "//*", "//*", "/*/*", "//node()", "//node()", "//p:a",
                         "/r/a", "/r")  # fmt: skip
        found = start + first
        while self.often(0.2):
            found += self.one("/b", "/a", "//c", "/*", "/..", "/following-sibling::*", "/node()",
                              "/ancestor::*", "/preceding-sibling::node()")  # fmt: skip
        if self.often(0.2):
            found += f"[{self.condition('.')}]"
        last = self.random.random()
        if last < 0.1:
            found += self.one("//@k", "/@*", "//@m", "/@p:k")
        elif last < 0.18:
            found += "//text()"
        elif last < 0.24:
            found = start + self.one("//comment()", "//processing-instruction()")
        return found

    def target(self, variable: str | None) -> str:
        """The target of an update: mostly one node."""
        kind = self.random.random()
        if variable is not None and kind < 0.75:
            return variable + self.one(
                "", "", "", "", "", "", "", "/*[1]", "/@k", "/..", "/text()[1]"
            )
        if kind < 0.93:
            return f"({self.path()})[{self.one('1', '1', '2', 'last()')}]"
        if kind < 0.95:
            return self.one("$d", "'x'", "()", "<n/>", "<n><o/></n>/o")
        return self.path()

    def condition(self, node: str) -> str:
        below = "" if node == "." else f"{node}/"
        return self.one(
            f"{below}@k", f"{below}a", f"{below}@k = '1'", f"not({below}b)",
            f"count({below}*) > 1", f"{below}@k or {below}@m", f"string-length({node}) > 1",
            f"contains({node}, '2')", f"exists({below}text())",
            f"some $s in {below}* satisfies $s/@m", f"{node} = ('x', '1')",
            f"{node} instance of element()", f"starts-with(local-name({node}), 'a')",
            f"{below}@k + 1 < 3" if self.often(0.3) else f"{below}*[1] is {below}a[1]",
        )  # fmt: skip

    def value(self, variable: str | None) -> str:
        """An expression with an atomic value."""
        found = [
            "'v'", "''", "12", "1.50", "true()", "'a b'", "'x' || 'y'", "('p', 'q')", "()",
            "count($d//*)", "string(($d//b)[1])", "sum((1, 2, 3))", "'<&amp;>'",
            "upper-case('abc')", "string-join($d//a/@k, '-')", "1 to 3", "7 div 2", "-1",
            "data($d//c)", "($d//@k)[1]", "if ($d//a) then 'yes' else 'no'",
            "for $i in 1 to 2 return $i * 2",
        ]  # fmt: skip
        if variable is not None:
            found += [f"string({variable})", f"concat({variable}, '!')", f"count({variable}/*)",
                      f"name({variable})", f"{variable}/@k"]  # fmt: skip
        return self.one(*found)

    def content(self, variable: str | None, depth: int = 1) -> str:
        """An expression whose value can be inserted."""
        kind = self.random.randrange(13)
        if kind < 3:
            return self.constructor(variable, depth)
        if kind == 3:
            return f"attribute {self.one('n', 'k', 'q')} {{{self.value(variable)}}}"
        if kind == 4:
            return f"text {{{self.one(chr(39) + 't' + chr(39), '()', chr(39) * 2, '12')}}}"
        if kind == 5:
            return self.one("comment {'new'}", "<!--new-->", "comment {'a--b'}")
        if kind == 6:
            return self.one("processing-instruction n {'d'}", "<?n d?>")
        if kind == 7:
            return self.value(variable)
        if kind == 8:
            return f"({self.path()})[{self.one('1', '2')}]"
        if kind == 9 and depth:
            return f"({self.content(variable, 0)}, {self.content(variable, 0)})"
        if kind == 10 and depth:
            return f"({self.transform(0)})"
        if kind == 11:
            return f"element {{'e'}} {{{self.value(variable)}}}"
        return self.one("<n/>", "'t'", "$d//a", "()", "(<n/>, 't', <o/>)", "document {<n/>, 'x'}")

    def constructor(self, variable: str | None, depth: int) -> str:
        name = self.one("n", "o", "a")
        attributes = self.one("", "", ' k="5"', f' k="{{{self.value(variable)}}}"')
        inside = self.one("", "t", "<o/>", "t<o/>u", f"{{{self.value(variable)}}}")
        if depth and self.often(0.3):
            inside += f"{{{self.content(variable, 0)}}}"
        return f"<{name}{attributes}>{inside}</{name}>"

    def name(self, variable: str | None) -> str:
        found = ["'z'", "'a'", "'k'", "'y'", "concat('z', 1)", "xs:QName('z')", "QName('', 'w')"]
        if self.often(0.15):
            found += ["QName('urn:q', 'q:z')", "QName('urn:p', 'p:z')", "'1z'", "'p:z'", "()",
                      "('a', 'b')", "'xml'", "12"]  # fmt: skip
        if variable is not None:
            found.append(f"concat('z', count({variable}/*))")
        return self.one(*found)

    # Updates

    def update(self, variable: str | None = None) -> str:
        """One update."""
        target = self.target(variable)
        match self.random.randrange(10):
            case 0 | 1:
                return f"delete {self.one('node', 'nodes')} {self.one(target, self.path())}"
            case 2 | 3 | 4 | 5:
                place = self.one("into", "as first into", "as last into", "before", "after")
                word = self.one("node", "nodes")
                return f"insert {word} {self.content(variable)} {place} {target}"
            case 6:
                return f"replace node {target} with {self.content(variable)}"
            case 7 | 8:
                return f"replace value of node {target} with {self.value(variable)}"
        return f"rename node {target} as {self.name(variable)}"

    def updates(self, depth: int, variable: str | None = None) -> str:
        """An updating expression."""
        kind = self.random.random()
        if depth == 0 or kind < 0.3:
            return self.update(variable)
        if kind < 0.5:
            parts = [self.updates(depth - 1, variable) for _ in range(self.random.randint(2, 4))]
            return f"({', '.join(parts)})"
        if kind < 0.75:
            return self.loop(depth, variable)
        if kind < 0.83:
            one, other = self.updates(depth - 1, variable), self.updates(depth - 1, variable)
            test = self.condition(variable or "($d//*)[1]")
            return f"if ({test}) then {one} else {self.one('()', other)}"
        if kind < 0.88:
            item = self.one("($d//node())[2]", "1", "'s'", "()", variable or "$d")
            case = self.one("element()", "xs:integer", "element(a)", "node()", "text()", "item()*")
            one, other = self.updates(depth - 1, variable), self.updates(depth - 1, variable)
            return f"typeswitch ({item}) case {case} return {one} default return {other}"
        if kind < 0.92:
            one, other = self.updates(depth - 1, variable), self.updates(depth - 1, variable)
            item = f"string({variable or '($d//@k)[1]'})"
            return f"switch ({item}) case '1' case 'x' return {one} default return {other}"
        name, source = self._variable(), self.path()
        if self.often(0.5):
            return f"let {name} := ({source})[1] return {self.updates(depth - 1, name)}"
        inside = self.updates(depth - 1, variable).replace("$d//b", name, 1)
        return f"let {name} := {source} return {inside}"

    def loop(self, depth: int, variable: str | None) -> str:
        name = self._variable()
        source = self.path(variable if variable and self.often(0.3) else "$d")
        position = " at $i" if self.often(0.1) else ""
        clauses = f"for {name}{position} in {source}"
        if self.often(0.25):
            clauses += f" where {self.condition(name)}"
        if self.often(0.1):
            clauses += f" order by string({name}) descending"
        return f"{clauses} return {self.updates(depth - 1, name)}"

    def transform(self, depth: int) -> str:
        name = self._variable()
        source = self.one(f"({self.path()})[1]", "($d//*)[2]", "<n k='1'>t<a/>u</n>", "$d/*")
        inside = self.updates(depth, name)
        texts = f"string-join({name}//text(), '')"  # BaseX keeps an old string({name})
        returned = self.one(name, f"{name}/*", texts, f"count({name}//node())")
        return f"copy {name} := {source} modify {inside} return {returned}"

    def _variable(self) -> str:
        self._variables += 1
        return f"$v{self._variables}"

    def statement(self) -> str:
        self._variables = 0
        return self.updates(self.random.choice((0, 0, 1, 1, 2)))
