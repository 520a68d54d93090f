"""The errors that axlog raises: one tree of exceptions and one table of codes.

    AxlogError
    ├── InputError (ValueError)            XML that is not accepted
    │   ├── MalformedError                 not well-formed
    │   ├── HostileError                   entity declarations, external entities
    │   └── LimitError                     too deep, too big, too long
    ├── QueryError (ValueError)            a query that has no meaning
    │   ├── QuerySyntaxError               it does not parse
    │   ├── ValueProblem                   an expression that has no value for the data
    │   └── UnsupportedError               it parses, but lies outside the supported fragment
    ├── UpdateError (ValueError)           an update that cannot be applied; nothing was changed
    ├── StreamError (ValueError)           a message that its stream may not send
    │   ├── UnknownStreamError (LookupError)
    │   ├── EndedStreamError
    │   └── LateError
    ├── UndecidedError                     an analysis that gives no verdict, with the reason
    ├── SchemaError (ValueError)           a type that has no meaning
    ├── ChannelError (RuntimeError)        a channel that cannot serve the request
    │   └── AccessError (PermissionError)  a token without permission, or with a used-up limit
    ├── ConnectorError (RuntimeError)      an outside system that cannot be reached or understood
    ├── PipelineError (ValueError)         a pipeline that cannot be run as it is written
    ├── StoreError (RuntimeError)          files that cannot be written, or are damaged
    ├── WorkloadError (ValueError)         parameters for which no workload can be generated
    └── SetupError (RuntimeError)          a requirement is missing on this machine

An error states the problem, its place, the expected input and a remedy. `code` is stable and listed
in `CODES`. Codes of the W3C recommendations (`XUDY0015`) keep their names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

CODES: dict[str, str] = {
    # XML input
    "AX101": "the XML is not well-formed",
    "AX102": "the file cannot be read",
    "AX103": "this kind of object cannot be read as XML",
    "AX104": "text stands outside any element",
    "AX105": "the call is not written correctly",
    "AX106": "the JSON is not a message",
    "AX111": "the document declares entities",
    "AX112": "the document refers to an entity that is not resolved",
    "AX113": "the encoding is unknown or the bytes do not match it",
    "AX121": "the document is nested too deeply",
    "AX122": "the document is too big",
    "AX123": "a text is too long",
    "AX124": "a name or an attribute is too long",
    "AX125": "namespaces make the names too long",
    # queries
    "AX201": "the query does not parse",
    "AX202": "a name is declared twice",
    "AX203": "a name is used but never declared",
    "AX204": "a variable is not bound where it is needed",
    "AX205": "an output stands inside not(...)",
    "AX206": "a prefix is not declared",
    "AX207": "a literal has no value",
    "AX211": "the query is outside the supported fragment",
    "AX212": "no maintainer accepts the query",
    "AX213": "the query is too large",
    "AX214": "two queries have different outputs",
    "AX215": "a query has more rows than its limit",
    "AX216": "a query exceeds its work budget",
    "AX217": "Saxon cannot evaluate the query on the document",
    "AX218": "a variable has a value that queries and statements cannot use",
    "XQTY0024": "an attribute comes after the content of its element",
    # values
    "FOAR0001": "a number is divided by zero",
    "FOAR0002": "a number is out of range",
    "FOCA0002": "a number that is not finite has no such value",
    "FOCA0003": "a number is too large for the type",
    "FOCA0005": "NaN is used with a duration",
    "FOCH0001": "a code point is no character of XML",
    "FODT0001": "a date is out of range",
    "FODT0002": "a duration is out of range",
    "FODT0003": "this is not a zone",
    "FORG0001": "a value cannot be converted to the type",
    "FORG0003": "zero-or-one() has several items",
    "FORG0004": "one-or-more() has no item",
    "FORG0005": "exactly-one() has no item or several",
    "FORG0006": "the argument of a function has the wrong type",
    "FORG0008": "a date and a time have two zones",
    "FORX0001": "the flags of a regular expression are not valid",
    "FORX0002": "this is not a regular expression",
    "FORX0003": "the regular expression matches the empty string",
    "FORX0004": "the replacement is not valid",
    "XPDY0050": "a value is not of the type that `treat as` names",
    "XPST0017": "a function has the wrong number of arguments",
    "XPST0080": "no value can be converted to this type",
    "XPDY0002": "there is no context item here",
    "XPTY0004": "a value has the wrong type",
    # updates
    "AX301": "the target of the update no longer exists",
    "AX302": "the update cannot be applied to its target",
    "AX303": "the inserted content is not valid there",
    "AX305": "lists of updates cannot be combined",
    "AX306": "this is not a list of updates",
    "AX307": "data that the update or query needs was not kept",
    "AX308": "the patch cannot be applied",
    "FOER0000": "the statement raises an error",
    "XQDY0025": "an element has two attributes with the same name",
    "XQDY0026": "a processing instruction would contain '?>'",
    "XQDY0041": "this is not the name of a processing instruction",
    "XQDY0064": "a processing instruction cannot be named xml",
    "XQDY0072": "a comment would contain '--' or end with '-'",
    "XQDY0074": "this is not a name",
    "XUDY0009": "the target of replace has no parent",
    "XUDY0014": "an update in `modify` has a target outside the copies",
    "XUDY0015": "a node is renamed twice",
    "XUDY0016": "a node is replaced twice",
    "XUDY0017": "the value of a node is replaced twice",
    "XUDY0021": "the result is not a well-formed document",
    "XUDY0023": "a new name would take a prefix from another namespace",
    "XUDY0024": "two attributes or prefixes of the result conflict",
    "XUDY0027": "there is no target",
    "XUDY0029": "the target of insert before or after has no parent",
    "XUDY0030": "an attribute cannot stand beside the root element",
    "XUST0001": "an updating expression is not allowed here",
    "XUST0002": "a value is not allowed where only updates are possible",
    "XUST0003": "revalidation is declared twice",
    "XUST0026": "the declared revalidation is not supported",
    "XUST0028": "an updating function has no result type",
    "XUTY0004": "an attribute comes after other content",
    "XUTY0005": "the target of insert into is not one element or the document",
    "XUTY0006": "the target of insert before or after is not one node of a kind that has siblings",
    "XUTY0007": "the target of delete is not a sequence of nodes",
    "XUTY0008": "the target of replace is not one node of a kind that can be replaced",
    "XUTY0010": "an attribute would replace another kind of node",
    "XUTY0011": "another kind of node would replace an attribute",
    "XUTY0012": "the target of rename is not one element, attribute or instruction",
    "XUTY0013": "the source of `copy` is not one node",
    "XUTY0022": "an attribute cannot be inserted into the document node",
    # streams and time
    "AX401": "there is no such stream",
    "AX402": "the stream has ended",
    "AX403": "the stream already has a call",
    "AX404": "time goes back",
    "AX405": "the stream may not delete",
    "AX406": "the stream has reached its limit of trees",
    "AX407": "the message is rejected",
    "AX408": "the stream may only delete",
    "AX409": "this is not a time",
    "AX410": "the line is not an update",
    "AX411": "this is not a filter",
    "AX412": "the filter cannot be written as text",
    "AX413": "a key value already exists",
    "AX417": "the message is dated too far ahead",
    "AX418": "the stream may not send calls",
    "AX419": "the stream has reached its limit of calls",
    "AX420": "the message has no key to replace by",
    "AX421": "a value refers to nothing",
    "AX422": "the document has no such message",
    # analyses
    "AX501": "the question is undecidable for this kind of query",
    "AX502": "undecided within the search limit",
    "AX503": "the question is not covered for this kind of query or document",
    # workloads
    "AX601": "no workload can be generated from these parameters",
    "AX602": "the sides of a benchmark disagree",
    # types
    "AX701": "the type does not parse",
    "AX702": "the type refers to an undefined name",
    "AX703": "no type can be derived",
    "AX704": "the document does not match its type",
    "AX705": "the update would break the document's type",
    "AX706": "the message does not match the type of its service",
    # channels and connectors
    "AX801": "there is no such channel",
    "AX802": "the channel is full",
    "AX803": "the requested messages or changes are no longer kept",
    "AX804": "the channel is closed",
    "AX805": "the channel has no such subscription or sequence number",
    "AX806": "this is not a channel's journal",
    "AX807": "the configuration of the channel or server is invalid",
    "AX808": "a channel's journal cannot be written",
    "AX811": "a token is missing or unknown",
    "AX812": "a limit is used up",
    "AX813": "the request cannot be understood",
    "AX814": "the principal has no grant for this",
    "AX815": "the request comes from another site, or names another host",
    "AX816": "the file is not a valid roles file",
    "AX817": "the name is already in use",
    "AX818": "the certificate or its key cannot be used",
    "AX819": "the file of webhooks cannot be used",
    "AX821": "the address may not be used",
    "AX822": "the address cannot be reached",
    "AX823": "the answer is too large, too slow or redirected too often",
    "AX824": "the response of the outside system is unexpected",
    "AX825": "a source, sink or channel cannot be opened",
    "AX826": "the address of the database cannot be used",
    "AX827": "a name is reserved",
    "AX832": "the line is not an access log entry",
    "AX841": "the documents cannot be connected this way",
    "AX842": "the cycle of documents did not terminate",
    "AX843": "a view can never have a row",
    "AX844": "a sink takes `never` changes that a view does not emit",
    # pipelines
    "AX850": "the pipeline file uses a key of an earlier version",
    "AX851": "the pipeline file is not YAML",
    "AX852": "the pipeline file is not a valid pipeline",
    "AX853": "there is no such kind of source or sink",
    "AX854": "a name in the pipeline file is not defined",
    "AX855": "the checkpoint does not match the pipeline",
    "AX856": "a secret is not in the environment",
    "AX857": "the pipeline file is too large, too deep, or uses unsupported YAML",
    "AX858": "a source cannot be read",
    "AX859": "a sink cannot be written",
    "AX860": "a deadline has no key that lets `never` follow",
    # Spark
    "AX861": "the document cannot be partitioned",
    "AX862": "the message needs the whole document",
    "AX863": "the sources do not fit the query on Spark",
    "AX864": "the location must be a local path",
    "AX865": "the files of the checkpoint need a local path",
    "AX866": "Spark has no file system for the address",
    "AX867": "rows about the clock wait for messages",
    "AX868": "Spark failed",
    "AX869": "the input cannot be read again",
    "AX870": "messages without times beside the machine's clock",
    # files on disk
    "AX871": "the file is damaged",
    "AX872": "the file is not an axlog file, or has a later version",
    "AX873": "the log cannot be written",
    "AX874": "the store is in use",
    "AX875": "the store holds something else",
    "AX877": "changes wait for a sink that does not accept them",
    "AX878": "a file of the store is missing",
    "AX879": "a forked child cannot write to its parent's store",
    "AX880": "the directory of the store cannot be used",
    # the machine
    "AX901": "an optional dependency is not installed",
    "AX902": "no usable Java was found",
    "AX903": "the operating system denies the operation",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a text: line and column, counted from 1, and the name of the text if known."""

    line: int
    column: int
    text: str | None = None
    source: str | None = None

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}"
        return f"{self.source}: {where}" if self.source else where

    def caret(self) -> str:
        """The faulty line with a caret below the column; empty if the text is unknown."""
        if self.text is None:
            return ""
        lines = self.text.splitlines() or [""]
        if not 1 <= self.line <= len(lines):
            return ""
        line = lines[self.line - 1]
        start = max(0, self.column - 60)
        return f"    {line[start : start + 100]}\n    {' ' * (self.column - 1 - start)}^"


def did_you_mean(written: str, known: Iterable[str]) -> str | None:
    """Advice for a name that is not known: the known name that is nearest to it, if one is near.

    >>> did_you_mean("contians", ["contains", "count"])
    "did you mean 'contains'?"
    """
    from difflib import get_close_matches

    near = get_close_matches(written, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else None


class AxlogError(Exception):
    """The base class of all errors of axlog; its fields state the problem and a remedy.

    Parameters:
        code: Stable code from the table of error codes.
        message: The problem.
        place: Line and column in the text at fault.
        expected: Input that would be accepted.
        advice: A remedy.

    >>> import axlog
    >>> try:
    ...     axlog.parse("<orders>")
    ... except axlog.AxlogError as error:
    ...     print(error.code, error.place)
    AX101 line 1, column 9
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        place: Place | None = None,
        expected: str | None = None,
        advice: str | None = None,
    ) -> None:
        if code not in CODES:
            raise KeyError(f"{code} is not in the table of error codes")
        self.code = code
        self.message = message
        self.place = place
        self.expected = expected
        self.advice = advice
        self.context: str | None = None
        super().__init__(self.describe())

    def within(self, context: str) -> AxlogError:
        """The same error with its context: a message, a line or a file."""
        self.context = f"{self.context}, {context}" if self.context else context
        self.args = (self.describe(),)
        return self

    def kept(self) -> Self:
        """The same error without its traceback: a stored error must not keep frames alive."""
        self.__context__ = self.__cause__ = None
        return self.with_traceback(None)

    def describe(self) -> str:
        """The full error, one fact per line."""
        head = f"{self.code}: {self.message}"
        if self.place is not None:
            head += f" ({self.place})"
        lines = [head]
        if self.place is not None and self.place.caret():
            lines.append(self.place.caret())
        if self.context:
            lines.append(f"in: {self.context}")
        if self.expected:
            lines.append(f"expected: {self.expected}")
        if self.advice:
            lines.append(f"try: {self.advice}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        given = (type(self), self.code, self.message, self.place, self.expected, self.advice)
        return (_restore, (*given, self.context))


def _restore(
    kind: type[AxlogError],
    code: str,
    message: str,
    place: Place | None,
    expected: str | None,
    advice: str | None,
    context: str | None,
) -> AxlogError:
    """Rebuild an error that crossed a process boundary."""
    error = kind(code, message, place=place, expected=expected, advice=advice)
    return error.within(context) if context else error


class InputError(AxlogError, ValueError):
    """XML that is not accepted."""


class MalformedError(InputError):
    """XML that is not well-formed."""


class HostileError(InputError):
    """XML that declares or refers to entities."""


class LimitError(InputError):
    """XML beyond a limit; the user can raise limits."""


class QueryError(AxlogError, ValueError):
    """A query that has no meaning."""


class ValueProblem(QueryError):
    """An expression that has no value for the data at hand: `1 div 0`, `xs:date("x")`."""


class QuerySyntaxError(QueryError):
    """A query text that does not parse."""


class UnsupportedError(QueryError):
    """A query outside the supported fragment; refused, never answered approximately."""


class UpdateError(AxlogError, ValueError):
    """An update that cannot be applied; the document is unchanged."""


class StreamError(AxlogError, ValueError):
    """A message that its stream may not send; the document is unchanged."""


class UnknownStreamError(StreamError, LookupError):
    """A message for a stream that has no call."""


class EndedStreamError(StreamError):
    """A message for a stream that has ended."""


class LateError(StreamError):
    """A message whose time is before the clock of its stream."""


class UndecidedError(AxlogError):
    """An analysis that gives no verdict; the message is the reason."""


class SchemaError(AxlogError, ValueError):
    """A type that does not parse, or that cannot be derived."""


class PipelineError(AxlogError, ValueError):
    """A pipeline that cannot be run as it is written."""


class WorkloadError(AxlogError, ValueError):
    """Parameters for which no workload can be generated."""


class StoreError(AxlogError, RuntimeError):
    """Files that cannot be written, or that are damaged."""


class ChannelError(AxlogError, RuntimeError):
    """A channel that cannot serve the request."""


class AccessError(ChannelError, PermissionError):
    """A token without permission, or with a used-up limit."""


class ConnectorError(AxlogError, RuntimeError):
    """An outside system that cannot be reached, or whose response cannot be understood."""


class SetupError(AxlogError, RuntimeError):
    """A requirement is missing on this machine."""
