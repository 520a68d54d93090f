"""Roles: principals, their grants and their limits, and the roles file.

    public: false                     # true: reading needs no token
    origins: [https://axlog.example]  # addresses of this server behind a proxy
    principals:
      shop:
        hash: "sha256:..."            # of the token; `axlog token shop` creates both
        grants:
        - {may: publish, channels: orders}
        - {may: [read, subscribe], channels: ["orders", "shop-*"]}
      operator: {hash: "sha256:...", grants: [administer]}
      prometheus: {hash: "sha256:...", grants: [{may: read, server: true}]}

A grant lists verbs (`VERBS`) and their objects. Patterns are those of shells (`*`, `?`, `[ab]`). A
grant without objects applies to everything; `channels` to channels; `documents` to documents with
all their views; `views` to views only, in the documents named beside it or in all; `server` to
metrics and the details of health. `subscribe` and `watch` include `read`, `deploy` (give documents
to keep) includes `watch`, and `administer` includes everything.

To add a kind of object, add a field to `Scope` and a line to `Scope.covers`; to add a verb, add a
line to `VERBS`. Tokens are neither in the file nor in memory: they are compared by their hashes
(`access.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from axlog.errors import AxlogError, ChannelError, Place, did_you_mean
from axlog.pipeline.checks import Problem
from axlog.pipeline.loader import read_text
from axlog.pipeline.yaml_reader import Located, locate

Verb = Literal["read", "publish", "subscribe", "watch", "deploy", "administer"]
VERBS: dict[str, tuple[str, ...]] = {
    "read": ("channels", "documents", "views", "server"),
    "publish": ("channels",),
    "subscribe": ("channels", "documents", "views"),
    "watch": ("documents", "views"),
    "deploy": ("documents",),
    "administer": ("channels", "documents", "views", "server"),
}
"""The verbs that can be granted, and their objects."""
INCLUDED = {
    "subscribe": ("read",),
    "watch": ("read",),
    "deploy": ("read", "watch"),
    "administer": tuple(VERBS),
}
LARGEST = 16 * 1024 * 1024
"""Default maximum size of a request in bytes."""
SHORTEST = 16
"""Minimum length of a token chosen by a user."""


@dataclass(frozen=True, slots=True)
class Resource:
    """The object of a request."""

    kind: Literal["channel", "document", "view", "server"]
    name: str = ""
    document: str = ""  # of a view

    def __str__(self) -> str:
        if self.kind == "server":
            return "the server"
        return f"the {self.kind} {self.name[:100]!r}"


SERVER = Resource("server")


def channel(name: str) -> Resource:
    return Resource("channel", name)


def document(name: str) -> Resource:
    return Resource("document", name)


def view(document: str, name: str) -> Resource:
    return Resource("view", name, document)


# The file -----------------------------------------------------------------------------------------


def _one_or_many(given: Any) -> Any:
    return [given] if isinstance(given, str) else given


def _named(given: Any) -> Any:
    """A grant written as its verb only."""
    return {"may": given} if isinstance(given, str) else given


def _origin(given: str) -> str:
    try:
        parts = urlsplit(given)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/"):
        raise ValueError("an origin is a scheme and a host: https://axlog.example")
    return f"{parts.scheme}://{parts.netloc}"


Patterns = Annotated[tuple[str, ...], BeforeValidator(_one_or_many)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,99}$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Scope(_Part):
    """The objects of a grant; everything, if it names nothing."""

    channels: Patterns | None = None
    documents: Patterns | None = None
    views: Patterns | None = None
    server: bool | None = None

    @property
    def named(self) -> set[str]:
        """The kinds of objects that it names."""
        return {name for name in Scope.model_fields if getattr(self, name) is not None}

    def covers(self, resource: Resource) -> bool:
        """Whether an object is in the scope."""
        if not self.named:
            return True
        if resource.kind == "channel":
            return _matches(self.channels, resource.name)
        if resource.kind == "document":
            return self.views is None and _matches(self.documents, resource.name)
        if resource.kind == "view":
            if self.views is None:
                return _matches(self.documents, resource.document)
            inside = self.documents is None or _matches(self.documents, resource.document)
            return inside and _matches(self.views, resource.name)
        return bool(self.server)


def _matches(patterns: Iterable[str] | None, name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns or ())


class Grant(Scope):
    """Verbs, and the objects they are granted on."""

    may: Annotated[tuple[Verb, ...], BeforeValidator(_one_or_many)] = Field(min_length=1)

    @property
    def verbs(self) -> frozenset[str]:
        """The granted verbs, with those they include."""
        return frozenset(self.may).union(*(INCLUDED.get(verb, ()) for verb in self.may))

    def allows(self, verb: str, resource: Resource) -> bool:
        """Whether it allows a verb on an object."""
        return verb in self.verbs and self.covers(resource)


class Limits(_Part):
    """The limits of a principal."""

    rate: float = Field(default=10_000, gt=0, description="Messages published per second.")
    requests: float = Field(default=1_000, gt=0, description="Requests per second.")
    size: int = Field(default=LARGEST, gt=0, description="Bytes of a request.")
    subscriptions: int = Field(default=1_000, ge=0, description="Number of named subscriptions.")
    producers: int = Field(default=100, ge=0, description="Number of producer names in a channel.")
    views: int = Field(default=100, ge=0, description="Number of added views.")
    documents: int = Field(default=10, ge=0, description="Number of documents given to keep.")
    work: int = Field(
        default=20_000, gt=0, description="Rows that an added view may read during one update."
    )
    streams: int = Field(
        default=1_000, ge=0, description="Number of waiting or streaming requests."
    )


class PrincipalModel(_Part):
    """A principal in the file."""

    hash: str = Field(pattern="^sha256:[0-9a-f]{64}$", description="Hash of the token.")
    grants: tuple[Annotated[Grant, BeforeValidator(_named)], ...] = ()
    limits: Limits = Limits()


class RolesModel(_Part):
    """The whole file."""

    public: bool | Scope = False
    origins: tuple[Annotated[str, AfterValidator(_origin)], ...] = ()
    principals: dict[Name, PrincipalModel] = Field(default_factory=dict, max_length=10_000)


# The parsed file ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Principal:
    """A principal, identified by a token of which only the hash is kept."""

    name: str
    digest: bytes = field(repr=False)
    grants: tuple[Grant, ...] = ()
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def of(cls, name: str, token: str, *grants: Grant | str, **limits: Any) -> Principal:
        """Return the principal of a token, which is not kept."""
        check_token(token)
        given = tuple(Grant(may=(each,)) if isinstance(each, str) else each for each in grants)  # type: ignore[arg-type]  # pydantic checks it
        return cls(name, digest_of(token), given, Limits(**limits))

    def may(self, verb: str, resource: Resource) -> bool:
        """Whether a grant allows a verb on an object."""
        return any(grant.allows(verb, resource) for grant in self.grants)


@dataclass(frozen=True, slots=True)
class Roles:
    """All principals of a server. Without any, everything is refused."""

    principals: tuple[Principal, ...] = ()
    public: Scope | None = None
    origins: tuple[str, ...] = ()

    @property
    def anyone(self) -> Principal:
        """The principal of requests without a token."""
        public = self.public
        if public is None:
            return Principal(ANYONE, b"")
        return Principal(ANYONE, b"", (Grant(may=("read",), **public.model_dump()),))


ANYONE = "anyone"
"""The name of the principal of requests without a token; no other can have it."""
ADMINISTRATOR = "administrator"
"""The name of the principal whose token is generated."""


def digest_of(token: str) -> bytes:
    """Return the hash of a token. Tokens are long and random, so a fast hash is safe."""
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def written_hash(token: str) -> str:
    """Return the hash of a token in the format of the file."""
    return f"sha256:{digest_of(token).hex()}"


def new_token() -> str:
    """Return a random token; the prefix helps scanners for leaked secrets."""
    return f"axlog_{token_urlsafe(24)}"


def check_token(token: str) -> None:
    """Refuse a token that is too short to be secret."""
    if len(token) < SHORTEST:
        raise ChannelError(
            "AX807",
            "the token is too short to be secret",
            expected=f"{SHORTEST} characters or more",
            advice="`axlog token NAME` creates one",
        )


def administrator(token: str) -> Roles:
    """Return the roles of a server without a file: one principal that may do everything."""
    return Roles((Principal.of(ADMINISTRATOR, token, "administer"),))


# Reading and checking -----------------------------------------------------------------------------


def is_roles(content: Any) -> bool:
    """Whether the content of a file is a roles file, not a pipeline."""
    return isinstance(content, dict) and "principals" in content


def check_roles(path: str | Path) -> tuple[Roles | None, list[Problem]]:
    """Return the roles of a file if it is valid, and all its errors."""
    return check_roles_text(read_text(Path(path)), str(path))


def check_roles_text(text: str, source: str | None = None) -> tuple[Roles | None, list[Problem]]:
    """Return the same for the text of a file. No error quotes a line, which may contain a token."""
    try:
        found = locate(text, source)
    except AxlogError as error:
        return None, [Problem(error)]
    errors = [_wrong(found, each.message, each.place) for each in found.problems]
    model = _validated(found, errors)
    if model is not None:
        errors += _meanings(model, found)
    problems = sorted((Problem(error) for error in errors), key=lambda problem: problem.order)
    if errors or model is None:
        return None, problems
    public = Scope() if model.public is True else model.public or None
    principals = tuple(
        Principal(name, bytes.fromhex(each.hash.removeprefix("sha256:")), each.grants, each.limits)
        for name, each in model.principals.items()
    )
    return Roles(principals, public, model.origins), []


def load_roles(path: str | Path) -> Roles:
    """Return the roles of a file, or raise one error that lists all errors."""
    roles, problems = check_roles(path)
    if roles is not None:
        return roles
    if len(problems) == 1:
        raise problems[0].error
    listed = "\n".join(problem.error.describe() for problem in problems)
    raise ChannelError("AX816", f"{path} has {len(problems)} errors\n{listed}")


def _validated(found: Located, errors: list[ChannelError]) -> RolesModel | None:
    if not isinstance(found.content, dict):
        expected = "principals: {NAME: {hash: ..., grants: [...]}}"
        errors.append(_wrong(found, "the file is not a mapping", (), expected=expected))
        return None
    try:
        return RolesModel.model_validate(found.content)
    except ValidationError as error:
        errors += [_refused(each, found) for each in error.errors(include_input=False)]
        return None


def _meanings(model: RolesModel, found: Located) -> list[ChannelError]:
    """Return the errors of a file whose shape is correct."""
    errors: list[ChannelError] = []
    known: dict[str, str] = {}
    for name, each in model.principals.items():
        here = ("principals", name)
        if name in (ANYONE, ADMINISTRATOR):
            errors.append(_wrong(found, f"{name!r} is not a valid name of a principal", here))
        if known.setdefault(each.hash, name) != name:
            problem = f"{name!r} has the token of {known[each.hash]!r}"
            errors.append(_wrong(found, problem, (*here, "hash"), expected="a token for each"))
        for at, grant in enumerate(each.grants):
            for verb in grant.may:
                if grant.named and not grant.named & set(VERBS[verb]):
                    problem = f"{verb!r} is not granted on {' and '.join(sorted(grant.named))}"
                    expected = " or ".join(VERBS[verb])
                    errors.append(_wrong(found, problem, (*here, "grants", at), expected=expected))
    return errors


_KEYS: dict[str, type[BaseModel]] = {"limits": Limits, "grants": Grant, "public": Scope}


def _refused(problem: Any, found: Located) -> ChannelError:
    """Convert the errors of pydantic to errors with positions."""
    path: list[str | int] = []
    here = found.content
    for step in problem["loc"]:  # names of union members are not steps in the file
        is_key = isinstance(here, dict) and step in here
        if is_key or (isinstance(here, list) and step in range(len(here))):
            here = here[step]
            path.append(step)
    last = problem["loc"][-1] if problem["loc"] else ""
    if problem["type"] == "missing":
        where = "/".join(map(str, path))
        advice = "`axlog token NAME` creates a token and its hash" if last == "hash" else None
        return _wrong(found, f"{where} has no {last!r}", tuple(path), advice=advice, at_key=True)
    if problem["type"] == "extra_forbidden":
        inside: list[Any] = [RolesModel, None, PrincipalModel]
        named = [_KEYS[step] for step in path if step in _KEYS]
        model = named[-1] if named else inside[min(len(path) - 1, 2)] or PrincipalModel
        known = sorted(model.model_fields)
        advice = did_you_mean(str(last), known)
        if last == "token":
            advice = "use the token's hash: `axlog token NAME` creates both, --stdin hashes yours"
        message = f"the key {last!r} is unknown here"
        return _wrong(found, message, tuple(path), ", ".join(known), advice, at_key=True)
    if last == "[key]":
        return _wrong(found, f"the name: {problem['msg']}", tuple(path), at_key=True)
    return _wrong(found, f"{last}: {problem['msg']}", tuple(path))


def _wrong(
    found: Located,
    what: str,
    at: Any,
    expected: str | None = None,
    advice: str | None = None,
    *,
    at_key: bool = False,
) -> ChannelError:
    if isinstance(at, tuple):
        place = found.place(at, at_key=at_key, shows_line=False)
    else:
        place = Place(at.line, at.column, None, at.source)
    return ChannelError("AX816", what, place=place, expected=expected, advice=advice)
