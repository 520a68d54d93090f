"""The items of a query by Saxon, and whether ours are the same.

Elements are compared by canonical XML, attributes and texts by their strings, numbers up to 1e-12,
other values by their text.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache, lru_cache
from math import isclose, isnan
from typing import Any

from lxml import etree

from axlog.errors import SetupError
from axlog.evaluate.atoms import text_of

_NUMBERS = ("integer", "decimal", "double", "float")


@cache
def processor() -> Any:
    """Saxon; AX901 where it is not installed."""
    try:
        import saxonche
    except ImportError:
        raise SetupError(
            "AX901", "the law compares with Saxon", advice="pip install saxonche"
        ) from None
    return saxonche.PySaxonProcessor(license=False)


def saxon_items(query: str, xml: str) -> list[Any] | None:
    """The items of a query over a document; None if it raises an error.

    An item is a pair: `xml`, `text`, `number` or `value`, and its text.
    """
    return prepared_items(query, prepared(xml))


def prepared(xml: str) -> Any:
    """A document as Saxon queries it."""
    return processor().parse_xml(xml_text=xml)


def prepared_items(query: str, document: Any) -> list[Any] | None:
    """The same as `saxon_items`, over a prepared document."""
    import saxonche

    engine = _compiled(query)
    try:
        engine.set_context(xdm_item=document)
        value = engine.run_query_to_value()
        return [] if value is None else [_item(value.item_at(at)) for at in range(value.size)]
    except saxonche.PySaxonApiError:
        return None


@lru_cache(maxsize=32)
def _compiled(query: str) -> Any:
    """A query that Saxon compiles at its first use."""
    engine = processor().new_xquery_processor()
    engine.set_query_content(query)
    return engine


def _item(item: Any) -> tuple[str, str]:
    if item.is_atomic:
        type_ = str(item.get_atomic_value().primitive_type_name)
        is_number = any(type_.endswith(name) for name in _NUMBERS)
        return ("number" if is_number else "value"), str(item.string_value)
    if not item.is_node:
        return "value", _written(item, "adaptive")
    node = item.get_node_value()
    kind = str(node.node_kind_str)
    if kind in ("element", "document"):
        return "xml", _written(node)
    if kind in ("comment", "processing-instruction"):
        return "text", _written(node)
    return "text", str(node.string_value)


def _written(item: Any, method: str = "xml") -> str:
    """An item as text without the white space that Saxon's serializer adds."""
    options = f"'method': '{method}', 'indent': false(), 'omit-xml-declaration': true()"
    query = _compiled(f"serialize(., map {{ {options} }})")
    query.set_context(xdm_item=item)
    return str(query.run_query_to_value().item_at(0).get_atomic_value().string_value)


def same_items(ours: list[Any], theirs: list[tuple[str, str]]) -> bool:
    """Whether the items of a view are those of Saxon, in the same order."""
    return len(ours) == len(theirs) and all(map(_same, ours, theirs))


def _same(one: Any, other: tuple[str, str]) -> bool:
    kind, text = other
    if kind == "xml":
        return one == text or (isinstance(one, str) and _canonical(one) == _canonical(text))
    if kind == "text":
        return isinstance(one, str) and one == text
    if isinstance(one, str):
        return kind == "value" and one == text
    if isinstance(one, int | float | Decimal) and not isinstance(one, bool):
        return kind == "number" and _close(float(one), float(text))
    return kind == "value" and text_of(one) == text


def _close(one: float, other: float) -> bool:
    return (isnan(one) and isnan(other)) or isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)


def _canonical(xml: str) -> bytes:
    found: bytes = etree.tostring(etree.fromstring(xml), method="c14n2")
    return found


def shown(items: list[Any] | None) -> str:
    """Items as one line, for failures."""
    return "an error" if items is None else " | ".join(str(item) for item in items)[:1000]
