"""Types for documents and services (unordered DTDs), and the checks that enforce them.

An unordered DTD gives for each label the number of children of each kind (a cardinality constraint,
`cardinality.py`), and the labels of the root. These rules complete the definition:

- Elements do not hold kinds that their label's constraint does not mention: `b ->` is a leaf.
  `|c| >= 0` allows any number of c.
- An element whose label has no rule is, like every text, of the kind `dom`; it is a leaf.
- A call counts by its `service`, or by its stream if it names none, in the kind of that service.
- Attributes that a constraint does not mention are free: types are about children. So are texts of
  white space alone if a constraint mentions neither texts nor `dom`: they are layout.
- A service's type inherits the rules of the document's type that it does not redefine. Without
  `root:` its trees may have any root that has a rule.

Law: an insertion by a call is valid if its trees have the service's type and the document has its
type afterwards. Any other insertion is rejected and changes nothing. `check_update` decides that
from the delta, before it is applied: first from the Δ tables (a necessary condition), then node by
node. The cost is that of the new nodes and of the children of the changed nodes; `TypeGuard` counts
those children once.

Not handled: order, values of texts and attributes, keys. `schema_derivation` describes what a DTD
or an XML Schema loses here. (Paper 2, section 4; Δ tables: paper 5, section 3.3.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from axlog.document.cardinality import (
    DOM,
    TEXT,
    All,
    Constraint,
    Formula,
    formula_text,
    label_text,
    solutions,
    symbols_of,
)
from axlog.document.delta import Delta
from axlog.document.operations import call_of
from axlog.document.pending import Plan
from axlog.document.recorder import SPACES
from axlog.document.tree import DOCUMENT_NODE, NONE, NodeKind, Tree
from axlog.errors import InputError, StreamError, UpdateError

OTHER = "*"
"""The kind of elements whose label has no rule."""

LAYOUT = "text() of white space"
"""The kind of white space texts, which count only where texts are mentioned."""

LEAF = All(())

Numbers = Mapping[str, int]


@dataclass(frozen=True)
class UnorderedDTD:
    """A type: its roots, and a constraint for each label."""

    roots: tuple[str, ...]
    rules: tuple[tuple[str, Formula], ...]

    @cached_property
    def table(self) -> dict[str, Formula]:
        return dict(self.rules)

    def kind_of(self, tree: Tree, node: int) -> str | None:
        """The kind of a node: a label, `*`, `text()`, `?service`, `@name`; None for no kind."""
        match tree.kind(node):
            case NodeKind.ELEMENT:
                return self.kind_of_label(tree.label(node))
            case NodeKind.TEXT:
                return TEXT if tree.text(node).strip(SPACES) else LAYOUT
            case NodeKind.CALL:
                return service_kind(tree, node)
            case NodeKind.ATTRIBUTE:
                return tree.label(node)
        return None

    def kind_of_label(self, label: str) -> str:
        return label if label in self.table or label.startswith("@") else OTHER

    def count(self, tree: Tree, node: int) -> Counter[str]:
        """The number of nodes of each kind in an element."""
        kinds = (self.kind_of(tree, below) for below in tree.chain(node))
        return Counter(kind for kind in kinds if kind is not None)

    def constraint(self, label: str, universe: Iterable[str] = ()) -> Constraint:
        """The constraint of a label, over these kinds and those it mentions."""
        formula = self.table.get(label, LEAF)
        kinds: dict[str, tuple[str, ...]] = {}
        for symbol in symbols_of(formula):
            if symbol == DOM:
                unnamed = (k for k in universe if _is_label(k) and k not in self.table)
                kinds[DOM] = tuple(dict.fromkeys((TEXT, OTHER, LAYOUT, *unnamed)))
            else:
                kinds[symbol] = (TEXT, LAYOUT) if symbol == TEXT else (symbol,)
        return Constraint(formula, kinds)

    def fault(self, label: str, numbers: Numbers) -> str | None:
        """The error of an element with this label and these numbers of children, or None."""
        if label not in self._own:
            self._own[label] = self.constraint(label)
        constraint = self._own[label]
        for kind, number in numbers.items():
            if number > 0 and kind not in constraint.allowed and not _is_free(kind):
                return f"{label_text(label)} may not hold {in_words(kind)}"
        if constraint.holds(numbers):
            return None
        held = ", ".join(f"{n} x {in_words(k)}" for k, n in sorted(numbers.items()) if n > 0)
        asked = formula_text(constraint.formula)
        return f"{label_text(label)} holds {held or 'nothing'}, but its type requires {asked}"

    @cached_property
    def _own(self) -> dict[str, Constraint]:
        return {}


def _is_label(kind: str) -> bool:
    return kind not in (TEXT, LAYOUT, OTHER) and kind[0] not in "?@"


def _is_free(kind: str) -> bool:
    """Whether a kind is allowed without being mentioned."""
    return kind == LAYOUT or kind.startswith("@")


def service_kind(tree: Tree, node: int) -> str:
    call = tree.call(node)
    return f"?{call.service or call.stream}"


def in_words(kind: str) -> str:
    """A kind of node in readable form."""
    if kind == OTHER:
        return "an element without a rule"
    if kind in (TEXT, LAYOUT):
        return "a text"
    return f"a call of {kind[1:]}" if kind.startswith("?") else label_text(kind)


@dataclass(frozen=True)
class Schema:
    """The type of a document, and the types of the trees that each service inserts."""

    document: UnorderedDTD
    services: tuple[tuple[str, UnorderedDTD], ...] = ()
    name: str | None = None
    lost: tuple[str, ...] = field(default=(), compare=False)
    """Properties of the source DTD or XML Schema that this schema does not keep."""

    def __deepcopy__(self, memo: object) -> Schema:
        return self  # nothing in it changes: copies of a document share it

    @cached_property
    def _types(self) -> dict[str, UnorderedDTD]:
        types = {}
        for service, given in self.services:
            rules = {**self.document.table, **given.table}
            types[service] = UnorderedDTD(given.roots or tuple(rules), tuple(rules.items()))
        return types

    def service(self, name: str) -> UnorderedDTD:
        """The type of a service's trees; an undeclared service may insert anything that fits."""
        found = self._types.get(name)
        if found is None:
            document = self.document
            found = self._types[name] = UnorderedDTD(tuple(document.table), document.rules)
        return found

    def __str__(self) -> str:
        """The text that `schema_parser.parse_schema` reads, one rule per line."""
        lines = _lines(self.document, f"{self.name} root: " if self.name else "root: ")
        for service, type_ in self.services:
            head = f"call {service} root: " if type_.roots else f"call {service}"
            lines += _lines(type_, head)
        return "\n".join(lines)


def _lines(type_: UnorderedDTD, head: str) -> list[str]:
    lines = [head + ", ".join(map(label_text, type_.roots))]
    for label, formula in type_.rules:
        text = "" if formula == LEAF else f" {formula_text(formula)}"
        lines.append(f"{label_text(label)} ->{text}")
    return lines


# Validity -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Violation:
    """One node that violates its type."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def violations(tree: Tree, schema: Schema) -> Iterator[Violation]:
    """Every node of a document that violates its type, in document order."""
    root = tree.root
    if root == NONE or tree.label(root) not in schema.document.roots:
        yield Violation(tree.path(root) if root != NONE else "/", _wrong_root(schema.document))
    yield from _inside(tree, DOCUMENT_NODE, schema.document)


def _inside(tree: Tree, top: int, type_: UnorderedDTD) -> Iterator[Violation]:
    for node in tree.subtree(top):
        if tree.kind(node) is NodeKind.ELEMENT:
            fault = type_.fault(tree.label(node), type_.count(tree, node))
            if fault is not None:
                yield Violation(_path(tree, node, top), fault)


def _path(tree: Tree, node: int, top: int) -> str:
    """The path of a node; a new tree's top has no number among its siblings."""
    if top == DOCUMENT_NODE:
        return tree.path(node)
    labels = [tree.label(node)]
    while node != top:
        node = tree.parent(node)
        labels.append(tree.label(node))
    above = tree.path(tree.parent(top)).rstrip("/")
    return "/".join([above, *reversed(labels)])


def _wrong_root(type_: UnorderedDTD) -> str:
    return f"the root is none of {', '.join(map(label_text, type_.roots))}"


def is_valid(tree: Tree, schema: Schema) -> bool:
    return next(violations(tree, schema), None) is None


def validate(tree: Tree, schema: Schema) -> None:
    """Raise unless the document has its type.

    >>> from axlog.document.loader import load
    >>> from axlog.document.schema_parser import parse_schema
    >>> validate(load("<a><b/></a>"), parse_schema("root: a  a -> |b| = 1  b ->"))
    """
    first = next(violations(tree, schema), None)
    if first is not None:
        raise InputError("AX704", f"the document does not have its type: {first}")


# Updates ------------------------------------------------------------------------------------------


def check_update(
    tree: Tree, update: Delta | Plan, schema: Schema, *, stream: str | None = None
) -> None:
    """Reject an update that would break the type, before it is applied.

    The document must have its type now. With `stream`, the added nodes are a message of that stream
    and must have its service's type too.
    """
    delta = update.delta if isinstance(update, Plan) else update
    _check(_Counts(tree, schema.document), delta, schema, stream)


TypeViolation: TypeAlias = UpdateError | StreamError
"""An update breaks the document's type (AX705) or its service's (AX706)."""
OnViolation: TypeAlias = Literal["refuse", "report"] | Callable[[TypeViolation], bool]
"""Refuse such an update, or apply it and report it. A function is asked; True applies it."""


class TypeGuard:
    """A watcher of a document that finds updates that break its type, before they are applied.

    Pass it to `pending.apply` before the other watchers. It counts the children of an element when
    the element first changes, and then maintains the counts. `on_violation` decides about an update
    that breaks a type. Once one was applied, the analyses no longer use the types
    (`tree.types` is None): they would conclude from what does not hold. Later updates are still
    checked.
    """

    def __init__(self, tree: Tree, schema: Schema, on_violation: OnViolation = "refuse") -> None:
        if tree.violations:
            tree.types = None
        else:
            validate(tree, schema)
        self.schema = schema
        self.on_violation = on_violation
        self.found: TypeViolation | None = None  # by the update that is being applied
        self._counting = _Counts(tree, schema.document)
        self._stream: str | None = None
        self._changes: Mapping[int, Counter[str]] = {}

    @contextmanager
    def bringing(self, stream: str | None) -> Iterator[None]:
        """Check updates inside the block as messages of this stream, by its service's type."""
        self._stream = stream
        try:
            yield
        finally:
            self._stream = None

    def before(self, delta: Delta) -> None:
        self.found = None
        try:
            _check(self._counting, delta, self.schema, self._stream)
        except (UpdateError, StreamError) as violation:
            if not self._is_accepted(violation):
                raise
            self.found = violation
        self._changes = self._counting.changes(
            delta
        )  # the old parents are visible only before the update

    def _is_accepted(self, violation: TypeViolation) -> bool:
        if isinstance(self.on_violation, str):
            return self.on_violation == "report"
        return self.on_violation(violation)

    def after(self, delta: Delta) -> None:
        self._counting.follow(delta, self._changes)
        if self.found is not None:
            tree = self._counting.tree
            tree.violations += 1
            tree.types = None


class _Counts:
    """The numbers of nodes in elements, counted on first use."""

    def __init__(self, tree: Tree, type_: UnorderedDTD) -> None:
        self.tree = tree
        self.type = type_
        self._known: dict[int, Counter[str]] = {}

    def now(self, node: int) -> Counter[str]:
        if node not in self._known:
            self._known[node] = self.type.count(self.tree, node)
        return self._known[node]

    def changes(self, delta: Delta) -> dict[int, Counter[str]]:
        """The differences of the counts of each remaining element, renamed ones included."""
        tree, type_ = self.tree, self.type
        found: dict[int, Counter[str]] = {}
        for roots, sign in ((delta.removed, -1), (delta.added, 1)):
            for root in roots:
                kind = type_.kind_of(tree, root)
                if kind is not None:
                    found.setdefault(tree.parent(root), Counter())[kind] += sign
        for change in delta.changed:
            if tree.kind(change.node) in (NodeKind.ELEMENT, NodeKind.ATTRIBUTE):
                above = found.setdefault(tree.parent(change.node), Counter())
                above[type_.kind_of_label(change.old)] -= 1
                above[type_.kind_of_label(change.new)] += 1
                if tree.kind(change.node) is NodeKind.ELEMENT:
                    found.setdefault(change.node, Counter())
        return found

    def follow(self, delta: Delta, changes: Mapping[int, Counter[str]]) -> None:
        """Update the counts after the delta is applied; drop those of removed elements."""
        for node, change in changes.items():
            if node in self._known:
                self._known[node].update(change)
        for root in delta.removed:
            for node in self.tree.subtree(root):
                self._known.pop(node, None)


def _check(counting: _Counts, delta: Delta, schema: Schema, stream: str | None) -> None:
    fault = table_fault(counting.tree, delta, schema)
    if fault is None:
        fault = next(_faults(counting, delta, schema), None)
    if fault is not None:
        raise UpdateError("AX705", f"the update would break the document's type: {fault}")
    if stream is not None:
        _check_message(counting.tree, delta, schema, stream)


def table_fault(tree: Tree, delta: Delta, schema: Schema) -> str | None:
    """An error found in the Δ+ tables: a new element requires a kind that is in no table.

    A necessary condition only: a new element has only new children, so each label's constraint must
    be satisfiable with the kinds in Δ+, however they are distributed.
    """
    type_ = schema.document
    new = {
        kind
        for root in delta.added
        for node in tree.subtree(root)
        if (kind := type_.kind_of(tree, node)) is not None
    }
    for label in sorted(new & type_.table.keys()):
        constraint = type_.constraint(label)
        if next(solutions([constraint], {}, dict.fromkeys(constraint.allowed & new)), None) is None:
            return (
                f"Δ+ has {label_text(label)}, but not the content that {label_text(label)} requires"
            )
    return None


def _faults(counting: _Counts, delta: Delta, schema: Schema) -> Iterator[str]:
    tree, type_ = counting.tree, schema.document
    renamed = {change.node: change.new for change in delta.changed}
    gone = set(delta.removed)
    for node, change in counting.changes(delta).items():
        if node == DOCUMENT_NODE:
            yield from _root_faults(tree, delta, type_, renamed)
        elif tree.kind(node) is NodeKind.ELEMENT and node not in gone:
            numbers = counting.now(node).copy()
            numbers.update(change)
            label = renamed.get(node, tree.label(node))
            fault = type_.fault(label, numbers)
            if fault is not None and not _is_broken(counting, node):
                yield f"{tree.path(node)}: {fault}"
    for root in delta.added:
        yield from map(str, _inside(tree, root, type_))


def _is_broken(counting: _Counts, node: int) -> bool:
    """Whether an update that was applied all the same broke the type of an element before."""
    tree = counting.tree
    if not tree.violations:
        return False
    return counting.type.fault(tree.label(node), counting.now(node)) is not None


def _root_faults(
    tree: Tree, delta: Delta, type_: UnorderedDTD, renamed: Mapping[int, str]
) -> Iterator[str]:
    present = [n for n in tree.children(DOCUMENT_NODE) if n not in delta.removed]
    present += [n for n in delta.added if tree.parent(n) == DOCUMENT_NODE]
    for node in present:
        is_element = tree.kind(node) is NodeKind.ELEMENT
        if is_element and renamed.get(node, tree.label(node)) not in type_.roots:
            yield _wrong_root(type_)


def _check_message(tree: Tree, delta: Delta, schema: Schema, stream: str) -> None:
    """Check that the trees of a stream have its service's type."""
    node, call = call_of(tree, stream)
    service = call.service or call.stream
    type_ = schema.service(service)
    for root in delta.added:
        if tree.kind(root) is not NodeKind.ELEMENT or tree.parent(root) != tree.parent(node):
            continue
        fault = None if tree.label(root) in type_.roots else _wrong_root(type_)
        if fault is None:
            fault = next(map(str, _inside(tree, root, type_)), None)
        if fault is not None:
            raise StreamError(
                "AX706",
                f"a tree of the stream {stream!r} does not have the type of {service}: {fault}",
            )
