"""Roles: principals, their grants and their limits, and the file that they are written in.

    public: false                     # true: reading needs no token
    origins: [https://axlog.example]  # addresses of this server behind a proxy
    principals:
      shop:
        hash: "sha256:..."            # of the token; `axlog token shop` makes both
        grants:
        - {may: publish, channels: orders}
        - {may: [read, subscribe], channels: ["orders", "shop-*"]}
      operator: {hash: "sha256:...", grants: [administer]}
      prometheus: {hash: "sha256:...", grants: [{may: read, server: true}]}

A grant says what (`VERBS`) may be done to what. Patterns are those of shells (`*`, `?`, `[ab]`). A
grant that names nothing is for everything; `channels` is for channels; `documents` for documents
with all their views; `views` for views alone, in the documents named beside it or in all;
`server` for metrics and the details of health. `subscribe` and `watch` include `read`, and
`administer` includes everything.

A new kind of thing is a field of `Scope` and a line in `Scope.covers`; a new verb is a line in
`VERBS`.
Tokens are never in the file nor in memory: a token is compared by its hash (`access.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from axlog.errors import AxlogError, ChannelError, Place
from axlog.pipeline.checks import Problem
from axlog.pipeline.loader import read_text
from axlog.pipeline.yaml_reader import Located, locate

Verb = Literal["read", "publish", "subscribe", "watch", "administer"]
VERBS: dict[str, tuple[str, ...]] = {
    "read": ("channels", "documents", "views", "server"),
    "publish": ("channels",),
    "subscribe": ("channels",),
    "watch": ("documents", "views"),
    "administer": ("channels", "documents", "views", "server"),
}
"""What can be granted, and on what."""
INCLUDED = {"subscribe": ("read",), "watch": ("read",), "administer": tuple(VERBS)}
LARGEST = 16 * 1024 * 1024
"""Bytes that a request may have where no limit says less."""
SHORTEST = 16
"""Characters of a token that somebody chose."""


@dataclass(frozen=True, slots=True)
class Resource:
    """What a request is about."""

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
    """A grant written as its verb alone."""
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
    """What a grant is for; everything, if it names nothing."""

    channels: Patterns | None = None
    documents: Patterns | None = None
    views: Patterns | None = None
    server: bool | None = None

    @property
    def named(self) -> set[str]:
        """The kinds of things that it names."""
        return {name for name in Scope.model_fields if getattr(self, name) is not None}

    def covers(self, resource: Resource) -> bool:
        """Whether a thing is among those of the scope."""
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
    """Verbs, and what they are granted on."""

    may: Annotated[tuple[Verb, ...], BeforeValidator(_one_or_many)] = Field(min_length=1)

    @property
    def verbs(self) -> frozenset[str]:
        """What is granted, with what that includes."""
        return frozenset(self.may).union(*(INCLUDED.get(verb, ()) for verb in self.may))

    def allows(self, verb: str, resource: Resource) -> bool:
        """Whether it lets this be done."""
        return verb in self.verbs and self.covers(resource)


class Limits(_Part):
    """How much a principal may use."""

    rate: float = Field(default=10_000, gt=0, description="Messages published a second.")
    requests: float = Field(default=1_000, gt=0, description="Requests a second.")
    size: int = Field(default=LARGEST, gt=0, description="Bytes of a request.")
    subscriptions: int = Field(default=1_000, ge=0, description="Named subscriptions at a time.")
    producers: int = Field(default=100, ge=0, description="Names of producers in a channel.")
    views: int = Field(default=100, ge=0, description="Views added, at a time.")
    work: int = Field(
        default=20_000, gt=0, description="Rows that an update may make an added view look at."
    )
    streams: int = Field(default=1_000, ge=0, description="Requests that wait or stream at a time.")


class PrincipalModel(_Part):
    """A principal as the file has it."""

    hash: str = Field(pattern="^sha256:[0-9a-f]{64}$", description="Of the token.")
    grants: tuple[Annotated[Grant, BeforeValidator(_named)], ...] = ()
    limits: Limits = Limits()


class RolesModel(_Part):
    """The whole file."""

    public: bool | Scope = False
    origins: tuple[Annotated[str, AfterValidator(_origin)], ...] = ()
    principals: dict[Name, PrincipalModel] = Field(default_factory=dict, max_length=10_000)


# What comes of it ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who may do something; known by a token, of which only the hash is kept."""

    name: str
    digest: bytes = field(repr=False)
    grants: tuple[Grant, ...] = ()
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def of(cls, name: str, token: str, *grants: Grant | str, **limits: Any) -> Principal:
        """The principal of a token, which is not kept."""
        check_token(token)
        given = tuple(Grant(may=(each,)) if isinstance(each, str) else each for each in grants)  # type: ignore[arg-type]  # pydantic checks it
        return cls(name, digest_of(token), given, Limits(**limits))

    def may(self, verb: str, resource: Resource) -> bool:
        """Whether a grant lets it."""
        return any(grant.allows(verb, resource) for grant in self.grants)


@dataclass(frozen=True, slots=True)
class Roles:
    """All principals of a server. Without any, nobody may do anything."""

    principals: tuple[Principal, ...] = ()
    public: Scope | None = None
    origins: tuple[str, ...] = ()

    @property
    def anyone(self) -> Principal:
        """Whoever brings no token."""
        public = self.public
        if public is None:
            return Principal(ANYONE, b"")
        return Principal(ANYONE, b"", (Grant(may=("read",), **public.model_dump()),))


ANYONE = "anyone"
"""The name that requests without a token have; no principal can have it."""
ADMINISTRATOR = "administrator"
"""The name of the principal whose token is generated."""


def digest_of(token: str) -> bytes:
    """The hash of a token. Tokens are long and random, so a fast hash tells nothing of them."""
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def written_hash(token: str) -> str:
    """The hash of a token as the file has it."""
    return f"sha256:{digest_of(token).hex()}"


def new_token() -> str:
    """A token that nobody guesses; the prefix is for programs that look for leaked secrets."""
    return f"axlog_{token_urlsafe(24)}"


def check_token(token: str) -> None:
    """Refuse a token that is too short to be secret."""
    if len(token) < SHORTEST:
        raise ChannelError(
            "AX807",
            "the token is too short to be secret",
            expected=f"{SHORTEST} characters or more",
            advice="axlog token NAME makes one",
        )


def administrator(token: str) -> Roles:
    """The roles of a server that has no file: one principal, which may do everything."""
    return Roles((Principal.of(ADMINISTRATOR, token, "administer"),))


# Reading and checking -----------------------------------------------------------------------------


def is_roles(content: Any) -> bool:
    """Whether the content of a file is meant as roles, and not as a pipeline."""
    return isinstance(content, dict) and "principals" in content


def check_roles(path: str | Path) -> tuple[Roles | None, list[Problem]]:
    """The roles of a file if it is in order, and everything that is wrong with it."""
    return check_roles_text(read_text(Path(path)), str(path))


def check_roles_text(text: str, source: str | None = None) -> tuple[Roles | None, list[Problem]]:
    """The same for the text of a file. No error shows a line: a token may stand in it."""
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
    """The roles of a file, or one error that tells all that is wrong with it."""
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
    """What is wrong although its form is right."""
    errors: list[ChannelError] = []
    known: dict[str, str] = {}
    for name, each in model.principals.items():
        here = ("principals", name)
        if name in (ANYONE, ADMINISTRATOR):
            errors.append(_wrong(found, f"{name!r} cannot be the name of a principal", here))
        if known.setdefault(each.hash, name) != name:
            told = f"{name!r} has the token of {known[each.hash]!r}"
            errors.append(_wrong(found, told, (*here, "hash"), expected="a token for each"))
        for at, grant in enumerate(each.grants):
            for verb in grant.may:
                if grant.named and not grant.named & set(VERBS[verb]):
                    told = f"{verb!r} is not granted on {' and '.join(sorted(grant.named))}"
                    expected = " or ".join(VERBS[verb])
                    errors.append(_wrong(found, told, (*here, "grants", at), expected=expected))
    return errors


_KEYS: dict[str, type[BaseModel]] = {"limits": Limits, "grants": Grant, "public": Scope}


def _refused(told: Any, found: Located) -> ChannelError:
    """What pydantic refuses, in our words and with its place."""
    path: list[str | int] = []
    here = found.content
    for step in told["loc"]:  # names of union members are no steps in the file
        is_key = isinstance(here, dict) and step in here
        if is_key or (isinstance(here, list) and step in range(len(here))):
            here = here[step]
            path.append(step)
    last = told["loc"][-1] if told["loc"] else ""
    if told["type"] == "missing":
        where = "/".join(map(str, path))
        advice = "axlog token NAME makes a token and its hash" if last == "hash" else None
        return _wrong(found, f"{where} has no {last!r}", tuple(path), advice=advice, at_key=True)
    if told["type"] == "extra_forbidden":
        inside: list[Any] = [RolesModel, None, PrincipalModel]
        named = [_KEYS[step] for step in path if step in _KEYS]
        model = named[-1] if named else inside[min(len(path) - 1, 2)] or PrincipalModel
        known = sorted(model.model_fields)
        close = get_close_matches(str(last), known, n=1)
        advice = f"did you mean {close[0]!r}?" if close else None
        if last == "token":
            advice = "write the token's hash: axlog token NAME makes both, --stdin hashes yours"
        said = f"the key {last!r} is not known here"
        return _wrong(found, said, tuple(path), ", ".join(known), advice, at_key=True)
    if last == "[key]":
        return _wrong(found, f"the name: {told['msg']}", tuple(path), at_key=True)
    return _wrong(found, f"{last}: {told['msg']}", tuple(path))


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
