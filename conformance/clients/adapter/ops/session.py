"""The ops of a session, and those before the first one."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from conformance.clients.adapter.messages import Hello
from conformance.clients.adapter.ops.define import EVERY_ROLE, Arguments, Incoming, Op, Outgoing, ops_in
from conformance.clients.adapter.ops.values import Body, Report

_ALL = (EVERY_ROLE,)


class HelloArguments(Arguments, frozen=True):
    """Say what the adapter can do ([section 3](#3-start-up-and-capabilities))."""

    spec = Op("hello", Hello, _ALL)

    version: int
    protocol: str


class EchoResult(Incoming, frozen=True):
    """The same body, decoded and encoded again."""

    body: Report


class Echo(Arguments, frozen=True):
    """Give a body back; no library is involved."""

    spec = Op("echo", EchoResult, _ALL)

    body: Body


class Tls(Outgoing, frozen=True):
    """How to trust the server."""

    ca_file: str | UnsetType = UNSET
    server_name: str | UnsetType = UNSET


class ConnectOptions(Outgoing, frozen=True):
    """Options that every protocol knows.

    Attributes:
        auto_reconnect: Else the library's default.
        listen: False installs no listeners for session and error events.
    """

    user: str | UnsetType = UNSET
    password: str | UnsetType = UNSET
    auto_reconnect: bool | UnsetType = UNSET
    listen: bool | UnsetType = UNSET
    tls: Tls | UnsetType = UNSET


class Connect(Arguments, frozen=True):
    """Connect a session; done as soon as it is usable.

    Attributes:
        session: A name.
        endpoints: `["host:port"]`; addresses by role where the protocol has several, each one or a list.
        roles: What the script will use first; a hint for libraries with one object per role.
    """

    spec = Op("connect", needed_by=_ALL)

    session: str
    endpoints: list[str] | dict[str, str | list[str]]
    options: ConnectOptions | UnsetType = UNSET
    roles: list[str] | UnsetType = UNSET


class Close(Arguments, frozen=True):
    """Close gracefully; `closed` (definite) for a session that does not exist. While `connect` runs:
    [Closing](#closing).
    """

    spec = Op("close", needed_by=_ALL)

    session: str


class Abort(Arguments, frozen=True):
    """Close the connection without the protocol's farewell."""

    spec = Op("abort")

    session: str


class StateResult(Incoming, frozen=True):
    """Whether it is open.

    Attributes:
        pending: Requests whose callers still wait for an answer; null if the library does not say.
    """

    open: bool
    pending: int | None = None


class State(Arguments, frozen=True):
    """Report how a session is; one that does not exist is not open."""

    spec = Op("state", StateResult, _ALL)

    session: str


OPS = ops_in(globals())
