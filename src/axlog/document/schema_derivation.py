"""Schemas derived from DTDs and XML Schemas, with a list of the properties that are lost.

An unordered DTD keeps the number of children of each label (`content_models.py`) and the required
attributes. `Schema.lost` lists the other properties of the source: the order of children, some
numbers, values. A source that fits loses only the order.

A DTD does not name the root element; the caller does. The global elements of an XML Schema may be
roots. An element with different types in different places may have any of them anywhere. Neither
may refer to external content (a schema in a file may refer to files beside it), and both have a
size limit. Reading XML Schemas requires the package xmlschema (the extra `types`). Neither
describes calls and services: `parse_schema(text, base=schema)` adds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass, field
from io import StringIO
from typing import Any
from warnings import catch_warnings, simplefilter

from lxml import etree

from axlog.document.cardinality import DOM, TEXT, All, Count, Formula, symbols_of
from axlog.document.content_models import (
    Particle,
    choice,
    either,
    formula_of,
    leaf,
    sequence,
    together,
)
from axlog.document.parser import is_encodable, refuse_external
from axlog.document.schema import LEAF, Schema, UnorderedDTD
from axlog.errors import SchemaError, SetupError

MOST_CHARACTERS = 1_000_000
MOST_ELEMENTS = 2_000
"""The limit on the elements of a type: the rules of elements are checked against each other."""

_OCCURS: dict[str, tuple[int, int | None]] = {
    "once": (1, 1), "opt": (0, 1), "mult": (0, None), "plus": (1, None),
}  # fmt: skip


@dataclass
class _Losses:
    """The lost properties, each once."""

    words: list[str] = field(default_factory=list)

    def say(self, word: str) -> None:
        if word not in self.words:
            self.words.append(word)


# DTDs ---------------------------------------------------------------------------------------------


def from_dtd(dtd: etree.DTD | str, root: str) -> Schema:
    """The schema of a DTD: an lxml DTD, or its text.

    >>> schema = from_dtd("<!ELEMENT a (b, c?)><!ELEMENT b EMPTY><!ELEMENT c (#PCDATA)>", "a")
    >>> print(schema)
    root: a
    a -> |b| = 1 & |c| <= 1
    b ->
    c -> |text()| >= 0
    >>> schema.lost
    ('the order of children',)
    """
    given = dtd if isinstance(dtd, etree.DTD) else _parsed(dtd)
    return _FromDTD(given).schema(root)


def _parsed(text: str) -> etree.DTD:
    """Parse a DTD after another parser has checked that it refers to nothing external."""
    _check_size(text)
    refuse_external(text)
    try:
        return etree.DTD(StringIO(text))
    except etree.DTDParseError as error:
        raise SchemaError("AX703", f"the DTD does not parse: {error}") from None


def _check_size(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise SchemaError(
            "AX703",
            f"the type has {len(text):,} characters",
            expected=f"at most {MOST_CHARACTERS:,}",
        )
    if not is_encodable(text):
        raise SchemaError("AX703", "the type contains a lone surrogate")


def _check_number(declared: Sized) -> None:
    if len(declared) > MOST_ELEMENTS:
        raise SchemaError(
            "AX703",
            f"the type declares {len(declared):,} elements",
            expected=f"at most {MOST_ELEMENTS:,}",
        )


class _FromDTD:
    def __init__(self, dtd: Any) -> None:
        self.declared: dict[str, Any] = {}
        self.losses = _Losses()
        for element in dtd.iterelements():
            if element.prefix:
                # lxml does not expose its name in content models
                raise SchemaError("AX703", f"the DTD has the prefixed name {_prefixed(element)}")
            self.declared[element.name] = element
        _check_number(self.declared)

    def schema(self, root: str) -> Schema:
        if root not in self.declared:
            raise SchemaError("AX703", f"the DTD does not declare {root}, the given root")
        rules = [(label, self.rule(label)) for label in self.declared]
        used = {s for _, rule in rules for s in _labels(rule)}
        missing = sorted(used - self.declared.keys())
        if missing:
            raise SchemaError("AX703", f"the DTD does not declare {', '.join(missing)}")
        return Schema(UnorderedDTD((root,), tuple(rules)), lost=tuple(self.losses.words))

    def rule(self, label: str) -> Formula:
        element = self.declared[label]
        asked = [self.content(label, element)]
        attributes = list(element.iterattributes())
        if attributes:
            self.losses.say("which other attributes there may be, and the values of all")
        required = [a for a in attributes if a.default == "required"]
        asked += [Count(f"@{_attribute(attribute)}", "=", 1) for attribute in required]
        return together(asked)

    def content(self, label: str, element: Any) -> Formula:
        if element.type == "empty":
            return LEAF
        if element.type == "any":
            symbols = (TEXT, *self.declared)
            return All(tuple(Count(symbol, ">=", 0) for symbol in symbols))
        return _numbers(label, self.particle(element.content), self.losses)

    def particle(self, content: Any) -> Particle:
        least, most = _OCCURS[content.occur]
        if content.type == "pcdata":
            return leaf(TEXT, 0, None)
        if content.type == "element":
            return leaf(str(content.name), least, most)
        parts = [self.particle(part) for part in _flattened(content, content.type)]
        group = choice if content.type == "or" else sequence
        return group(*parts, least=least, most=most)


def _prefixed(named: Any) -> str:
    return f"{named.prefix}:{named.name}"


def _attribute(named: Any) -> str:
    if not named.prefix:
        return str(named.name)
    if named.prefix != "xml":
        raise SchemaError("AX703", f"the DTD has the prefixed name {_prefixed(named)}")
    return f"{{http://www.w3.org/XML/1998/namespace}}{named.name}"


def _flattened(content: Any, kind: str) -> Iterator[Any]:
    """The parts of a group: lxml nests `a, b, c` as pairs on the right."""
    left, right = content.left, content.right
    if left is not None:
        yield left
    while right is not None and right.type == kind and right.occur == "once":
        yield right.left
        right = right.right
    if right is not None:
        yield right


def _numbers(label: str, model: Particle, losses: _Losses) -> Formula:
    numbers = formula_of(model)
    if len(set(model.symbols)) > 1:
        losses.say("the order of children")
    if not numbers.is_exact:
        losses.say(f"which numbers of children go together in {label}")
    return numbers.formula


def _labels(formula: Formula) -> Iterator[str]:
    return (s for s in symbols_of(formula) if s not in (TEXT, DOM) and s[0] != "@")


# XML Schemas --------------------------------------------------------------------------------------


def from_xsd(source: Any, roots: Iterable[str] | None = None) -> Schema:
    """The schema of an XML Schema: a path, its text, or an xmlschema.XMLSchema."""
    try:
        import xmlschema
    except ImportError:
        raise SetupError(
            "AX901",
            "reading XML Schemas requires the package xmlschema",
            advice="pip install 'axlog[types]'",
        ) from None
    given = source if hasattr(source, "elements") else _loaded(xmlschema, source)
    return _FromXSD(given).schema(roots)


def _loaded(xmlschema: Any, source: Any) -> Any:
    try:
        # nothing is fetched: imported files must be beside the schema
        is_text = isinstance(source, str) and source.lstrip().startswith("<")
        if is_text:
            _check_size(source)
        allowed = "none" if is_text else "sandbox"
        with catch_warnings():
            # Without an import that could not be read, the schema would be incomplete.
            simplefilter("error")
            return xmlschema.XMLSchema(source, allow=allowed, defuse="always")
    except (Warning, xmlschema.XMLSchemaException, xmlschema.XMLResourceError, OSError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise SchemaError("AX703", f"the XML Schema cannot be read: {reason}") from None


class _FromXSD:
    def __init__(self, source: Any) -> None:
        self.source = source
        self.losses = _Losses()
        self.types: dict[str, list[Any]] = {}

    def schema(self, roots: Iterable[str] | None) -> Schema:
        _check_number(self.source.elements)
        globals_ = {e.name: e for e in self.source.elements.values() if not e.abstract}
        chosen = tuple(globals_) if roots is None else tuple(roots)
        for root in chosen:
            if root not in globals_:
                raise SchemaError("AX703", f"the XML Schema has no global element {root}")
            self.meet(globals_[root])
        rules: dict[str, Formula] = {}
        waiting = list(self.types)
        for label in waiting:
            rules[label] = self.rule(label)
            waiting += [new for new in self.types if new not in waiting]
        return Schema(UnorderedDTD(chosen, tuple(rules.items())), lost=tuple(self.losses.words))

    def meet(self, element: Any) -> str:
        """Record the type of an element; its label."""
        known = self.types.setdefault(element.name, [])
        if not any(element.type is other for other in known):
            known.append(element.type)
        return str(element.name)

    def rule(self, label: str) -> Formula:
        kinds = self.types[label]
        if len(kinds) > 1:
            self.losses.say(f"which of its types {label} has where")
        found = [self.of_type(label, kind) for kind in kinds]
        given = ((formula, {s for s in symbols_of(formula) if s[0] != "@"}) for formula in found)
        return either(given) if len(found) > 1 else found[0]

    def of_type(self, label: str, kind: Any) -> Formula:
        asked = [self.content(label, kind)]
        if kind.is_complex():
            attributes = [a for name, a in kind.attributes.items() if name is not None]
            if attributes:
                self.losses.say("which other attributes there may be, and the values of all")
            asked += [Count(f"@{a.name}", "=", 1) for a in attributes if a.use == "required"]
        return together(asked)

    def content(self, label: str, kind: Any) -> Formula:
        if not kind.is_complex() or kind.has_simple_content():
            self.losses.say("the values of texts")
            return Count(TEXT, ">=", 0)
        text = leaf(TEXT, 0, None)
        model = self.group(kind.content)
        if kind.mixed:
            return together([formula_of(text).formula, _numbers(label, model, self.losses)])
        return _numbers(label, model, self.losses)

    def group(self, group: Any) -> Particle:
        parts = [self.particle(part) for part in group]
        make = choice if group.model == "choice" else sequence
        return make(*parts, least=group.min_occurs, most=group.max_occurs)

    def particle(self, part: Any) -> Particle:
        least, most = part.min_occurs, part.max_occurs
        if hasattr(part, "model"):
            return self.group(part)
        if part.name is None:  # a wildcard
            self.losses.say("elements that any may stand for: only leaves without a rule are kept")
            return leaf(DOM, least, most)
        heads = [e for e in (part, *part.iter_substitutes()) if not e.abstract]
        labels = list(dict.fromkeys(self.meet(element) for element in heads))
        if len(labels) == 1:
            return leaf(labels[0], least, most)
        return choice(*map(leaf, labels), least=least, most=most)
