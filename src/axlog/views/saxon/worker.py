"""The process that runs Saxon: reads requests from its input, writes answers to its output.

It is a script of its own and imports the standard library and `saxonche` only. Saxon may read no
file, no address and no environment variable, and calls no extension function. A query that recurses
without end, or that needs more memory than the limit, ends this process and not the caller's.

A message is a header of 16 bytes, two big-endian numbers (the length of the JSON and that of the
bytes after it), the JSON and the bytes. Requests:

    {"do": "document", "name": n}            bytes: the XML; empty: a document without an element
    {"do": "run", "name": n, "query": text, "language": "xquery" | "xpath", "namespaces": {...}}

Every request may have "drop": documents that are not needed any more.

The answer to a query is {"items": [kind, text, kind, text, ...]} as bytes, or {"error": message}.
"""

import json
import os
import struct
import sys
from collections import OrderedDict
from typing import Any, BinaryIO

HEADER = struct.Struct(">QQ")
_KEPT_QUERIES = 256
_BLOCKED = {
    "http://saxon.sf.net/feature/allowedProtocols": "",
    "http://saxon.sf.net/feature/allow-external-functions": "false",
}
_KINDS = """
declare namespace output = "http://www.w3.org/2010/xslt-xquery-serialization";
declare option output:method "json";
declare variable $items external;
declare variable $xml := map { "method": "xml", "indent": false(), "omit-xml-declaration": true() };
array {
  for $item in $items
  return
    if ($item instance of xs:anyAtomicType) then (
      if ($item instance of xs:string or $item instance of xs:untypedAtomic
          or $item instance of xs:anyURI) then "string"
      else if ($item instance of xs:boolean) then "boolean"
      else if ($item instance of xs:integer) then "integer"
      else if ($item instance of xs:decimal) then "decimal"
      else if ($item instance of xs:double) then "double"
      else if ($item instance of xs:float) then "float"
      else if ($item instance of xs:dateTime) then "dateTime"
      else if ($item instance of xs:date) then "date"
      else if ($item instance of xs:time) then "time"
      else if ($item instance of xs:dayTimeDuration) then "dayTimeDuration"
      else if ($item instance of xs:yearMonthDuration) then "yearMonthDuration"
      else if ($item instance of xs:duration) then "duration"
      else "other",
      string($item))
    else if ($item instance of attribute()) then ("attribute", string($item))
    else if ($item instance of text()) then ("text", string($item))
    else if ($item instance of namespace-node()) then ("namespace", string($item))
    else if ($item instance of node()) then ("xml", serialize($item, $xml))
    else ("function", serialize($item, map { "method": "adaptive", "indent": false() }))
}
"""


def read_message(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """The next message; None at the end of the stream."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    length, more = HEADER.unpack(header)
    written = stream.read(length)
    rest = stream.read(more) if more else b""
    if len(written) < length or len(rest) < more:
        return None
    found: dict[str, Any] = json.loads(written)
    return found, rest


def write_message(stream: BinaryIO, message: dict[str, Any], rest: bytes = b"") -> None:
    """Write one message."""
    written = json.dumps(message).encode()
    stream.write(HEADER.pack(len(written), len(rest)))
    stream.write(written)
    stream.write(rest)
    stream.flush()


class Worker:
    """Documents and compiled queries of one process."""

    def __init__(self, saxonche: Any) -> None:
        self._error = saxonche.PySaxonApiError
        self._saxon = saxonche.PySaxonProcessor(license=False)
        for name, value in _BLOCKED.items():
            self._saxon.set_configuration_property(name, value)
        self._documents: dict[int, Any] = {}
        self._queries: OrderedDict[str, Any] = OrderedDict()
        self._kinds = self._saxon.new_xquery_processor()
        self._kinds.set_query_content(_KINDS)

    def answer(self, asked: dict[str, Any], rest: bytes) -> tuple[dict[str, Any], bytes]:
        """The answer to a request."""
        for name in asked["drop"]:
            self._documents.pop(name, None)
        try:
            match asked["do"]:
                case "document":
                    self._documents.pop(asked["name"], None)  # not two at a time
                    self._documents[asked["name"]] = self._built(rest.decode())
                    return {}, b""
                case _:
                    return {}, self._run(asked)
        except self._error as error:
            return {"error": str(error)}, b""

    def _built(self, xml: str) -> Any:
        if xml:
            return self._saxon.parse_xml(xml_text=xml)
        empty = self._saxon.new_xquery_processor()
        empty.set_query_content("document { () }")
        return empty.run_query_to_value().item_at(0)

    def _run(self, asked: dict[str, Any]) -> bytes:
        document = self._documents[asked["name"]]
        key = json.dumps([asked["language"], asked["query"], asked["namespaces"]])
        query = self._queries.pop(key, None)
        if query is None:
            query = self._prepared(asked)
            if len(self._queries) >= _KEPT_QUERIES:
                self._queries.popitem(last=False)
        self._queries[key] = query
        query.set_context(xdm_item=document)
        if asked["language"] == "xpath":
            value = query.evaluate(asked["query"])
        else:
            value = query.run_query_to_value()
        if value is None or value.size == 0:
            return b"[]"
        self._kinds.set_parameter("items", value)
        written: str = self._kinds.run_query_to_string()
        return written.encode()

    def _prepared(self, asked: dict[str, Any]) -> Any:
        is_xpath = asked["language"] == "xpath"
        make = self._saxon.new_xpath_processor if is_xpath else self._saxon.new_xquery_processor
        query = make()
        for prefix, uri in asked["namespaces"].items():
            query.declare_namespace(prefix, uri)
        if not is_xpath:
            query.set_query_content(asked["query"])
        return query


def main() -> None:
    """Answer requests until the input ends. Arguments: the folder of saxonche, megabytes."""
    folder, megabytes = sys.argv[1:]
    try:
        import resource
    except ImportError:
        pass
    else:
        most = int(megabytes) * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # a query may write messages, such as those of trace()
        os.dup2(nothing, descriptor)
    sys.path.append(folder)
    import saxonche

    worker = Worker(saxonche)
    write_message(sink, {"version": saxonche.__version__})
    while (asked := read_message(source)) is not None:
        write_message(sink, *worker.answer(*asked))


if __name__ == "__main__":
    main()
