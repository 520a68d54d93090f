"""Well-formed input for every parser, from which mangled input is made (`parsers_law.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

DOCUMENT = (
    '<a k="1"><b><c>1</c><d/></b><b><c>2</c>text</b>'
    '<ax:call xmlns:ax="urn:axlog" stream="s" deletes="yes"/></a>'
)

_XML = (
    DOCUMENT,
    '<?xml version="1.0" encoding="utf-8"?><!--c--><p:a xmlns:p="urn:u" p:k="&lt;&#65;">'
    "<?i d?></p:a>",
    '<!DOCTYPE a [<!ELEMENT a (b*)><!ATTLIST a k CDATA "v">]><a xml:space="preserve"> <b/> </a>',
    "<a><![CDATA[<x>&]]>tail<b xml:lang='en'/></a>",
)
_PATTERNS = (
    'match /a[b/c = "1"]//d#t return t.id, t.time',
    'match //b#n[c/$x][d or not(e)] where $x != "2" return $x, n.val as v, n.cont',
    'match /a/b#t1[c/$x], //b#t2[c/$x] where t2 - t1 >= 5s and t1 > date "2024-05-01" return $x',
    "match //*#m[@k = 1][collect(c#y)] return m.label, y.val",
)
_XPATHS = (
    "//b[c = 1 and not(d)]/@k | /a/b[2 > c]",
    "/a/b[following-sibling::*[1]/c][.//d or c != 'x']",
    "count(//b) > 0 and //b[ancestor::a/@k]",
    "//b[c = //d]/following-sibling::*[1]",
)
_XQUERIES = (
    "for $b in //b where $b/c = 1 return <r k='{$b/c}'>{$b/d, string($b)}</r>",
    "let $a := /a for $x in $a/b, $y in //c where $x/c = $y return <p>{id($x)}{$y}</p>",
    'declare namespace p = "u"; for $x in //p:b return ($x/c, $x/@k)',
)
_STATEMENTS = (
    "insert node <b><c>9</c></b> as last into /a",
    "delete nodes //b[c = 1]; rename node /a/b[1] as 'e'",
    "for $x in //b where $x/c = 2 return replace value of node $x/c with 'z'",
    "replace node //d with <f xmlns='u'>{string(/a/@k)}</f>",
    "insert nodes (attribute q {'1'}, <g/>, text {'t'}) before (//b)[1]",
    "if (//b) then delete node //c else insert node <x/> after //b",
    "for $x in //b insert <y/>",
)
_LIST = (
    '{"updates": [{"op": "insert-last", "target": "1", "content": [{"tree": "<b/>"}, '
    '{"text": "t"}, {"attribute": "k", "value": "v"}], "ids": ["1.7", null, null]}, '
    '{"op": "delete", "target": "1.2"}, {"op": "rename", "target": "1", "name": "r"}], '
    '"created": ["1.9"]}'
)
_FILTER = (
    '{"axlog-filter": 1, "automaton_from": 50, "most_states": 1000, "patterns": [{"keys": ["k"], '
    '"text": "match //b/c/$x return $x", "language": "pattern", "namespaces": {"p": "u"}, '
    '"known": {"x": ["1", "2"]}}]}'
)
_PIPELINE = """\
engine: embedded
document: |
  <a><ax:call xmlns:ax="urn:axlog" stream="s"/></a>
streams:
  s: {source: {kind: jsonl, path: updates.jsonl}}
views:
  v: {query: "match //b/$x return $x", sinks: [{kind: jsonl, path: out.jsonl}]}
settings: {checkpoint: here}
"""
_LINES = (
    '{"stream": "s", "insert": "<b><c>1</c></b>", "at": 12.5}',
    '{"stream": "s", "delete": "match /b[c = 1]", "at": "2026-01-01T00:00:00Z"}',
    '{"stream": "s", "end": true}',
)
_RSS = (
    '<rss version="2.0"><channel><title>t</title><item><guid>1</guid><title>One</title>'
    "<pubDate>Thu, 08 Jan 2026 05:07:10 GMT</pubDate><link>http://x/1</link>"
    "<description>&lt;p&gt;d&lt;/p&gt;</description><category>c</category></item></channel></rss>"
)
_ATOM = (
    '<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><entry><id>u:1</id><title>One</title>'
    '<updated>2026-01-08T05:07:10Z</updated><link href="http://x/1"/><author><name>A</name></author>'
    '<content type="html">x</content></entry></feed>'
)
_CALLS = (
    '83.149.9.216 - ann [17/May/2015:10:05:03 +0000] "GET /a.png HTTP/1.1" 200 203023'
    ' "http://r" "Agent (x)"',
    '::1 - - [17/May/2015:10:05:03 +0000] "CONNECT other:443 HTTP/1.1" 200 -',
    'h - - [17/May/2015:10:05:03 +0000] "\\x16\\x03\\"" 400 226 "-" "-"',
)
_DTDS = (
    "<!ELEMENT a (b*, (c | d)?)><!ELEMENT b (#PCDATA)><!ELEMENT c EMPTY><!ELEMENT d ANY>"
    "<!ATTLIST a k CDATA #REQUIRED>",
    "<!ELEMENT a (b+)><!ELEMENT b ((c, d) | (d, c))*><!ELEMENT c EMPTY><!ELEMENT d (#PCDATA | c)*>",
)
_TYPES = (
    "root: a  a -> |b| >= 1 & |c| <= 2 & |w| <= 1  b -> |text()| >= 0  c ->  call w root: b",
    "root: a a -> (|b| = 1 | |c| = 1) & |@k| = 1  b ->  c ->",
)
_PATCHES = (
    '<diff><add sel="a" pos="prepend"><b/></add><replace sel="a/@k">2</replace></diff>',
    '<diff><remove sel="a/b[1]" ws="after"/><add sel="a/b[c=\'2\']" type="@q">v</add></diff>',
)

SAMPLES: dict[str, tuple[str, ...]] = {
    "xml": _XML,
    "forest": (*_XML, "<b/><c>1</c>"),
    "message": ("<b><c>7</c></b>", "<b/><c/>", *_XML),
    "pattern": _PATTERNS,
    "xpath": _XPATHS,
    "xquery": _XQUERIES,
    "view": (*_PATTERNS, *_XPATHS, *_XQUERIES),
    "statement": _STATEMENTS,
    "list-json": (_LIST,),
    "list-xml": (
        '<ax:lists xmlns:ax="urn:axlog"><ax:updates created="1.9"><ax:rename target="1" name="r"/>'
        '<ax:insert-last target="1" ids="1.7 -"><b/><ax:text>t</ax:text></ax:insert-last>'
        '<ax:insert-into target="1"><ax:attribute name="k" value="v"/></ax:insert-into>'
        "</ax:updates></ax:lists>",
    ),
    "patch": _PATCHES,
    "pipeline": (_PIPELINE,),
    "line": _LINES,
    "source-line": (*_LINES, '{"insert": "<b/>", "at": 1}'),
    "feed": (_RSS, _ATOM),
    "access-log": _CALLS,
    "types": _TYPES,
    "dtd": _DTDS,
    "types-source": (*_TYPES, *_DTDS),
    "fact": ("key a/b/c by @oid trusted", "key shipping/orders/order by oid enforced"),
    "filter": (_FILTER,),
    "id": ("1.2.7", "1.2.@1", "1.-5.3"),
    "time": ("12.5", "2026-01-01T00:00:00+01:00", "-1e3", "2026-W01-1"),
    "path": ("header/created", "order/@id", ".", "a/b/c"),
}

STORE_UPDATES: tuple[Callable[[Any], object], ...] = (
    lambda doc: doc.feed("s", "<b><c>3</c></b>", at=1),
    lambda doc: doc.feed("s", b'<b k="v">x<!--y--></b><b/>', at=2),
    lambda doc: doc.update("insert node <e xmlns='u'/> into /a"),
    lambda doc: doc.delete("s", "match /b[c = 3]", at=3),
    lambda doc: doc.advance(9),
    lambda doc: doc.watch("//b[c]", "w"),
    lambda doc: doc.feed("s", "<q/>", at=10),
)
"""What the store of the samples is made by."""
