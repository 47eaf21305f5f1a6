"""Moleculer: callers, services, emitters and listeners; a session is one node."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from conformance.clients.adapter.ops import session
from conformance.clients.adapter.ops.define import Arguments, Incoming, Op, Outgoing, Profile, ops_in
from conformance.clients.adapter.ops.messaging import OnMessage
from conformance.clients.adapter.ops.values import Body, Code, Milliseconds, Ordinal

LATE_SERVICES = "late_services"


class ConnectOptions(session.ConnectOptions, frozen=True):
    """Settings of the node; what is left out is the library's default.

    Attributes:
        transporter: Addresses with scheme; without it NATS at the endpoints.
    """

    transporter: str | UnsetType = UNSET
    namespace: str | UnsetType = UNSET
    node_id: str | UnsetType = UNSET
    heartbeat_s: float | UnsetType = UNSET
    heartbeat_timeout_s: float | UnsetType = UNSET
    request_timeout_ms: Milliseconds | UnsetType = UNSET
    serializer: str | UnsetType = UNSET
    disable_balancer: bool | UnsetType = UNSET


class Connect(session.Connect, frozen=True):
    """With options of its own."""

    options: ConnectOptions | UnsetType = UNSET


class Thrown(Outgoing, frozen=True):
    """The error that an action throws.

    Attributes:
        plain: One of the language instead of the library's.
    """

    message: str | UnsetType = UNSET
    code: Code | UnsetType = UNSET
    type: str | UnsetType = UNSET
    data: Any = UNSET
    plain: bool | UnsetType = UNSET


class Behaviour(Outgoing, frozen=True, rename={"returned": "return", "thrown": "throw"}):
    """What an action does: one of these.

    Attributes:
        return: The answer.
        throw: It fails.
        sleep_ms: It takes its time.
        stream: It answers with a stream, in pieces of `chunk` bytes.
        breaks: After all of it the source fails, with an error of these words.
        read_stream: It reads what the caller streams, and answers with that.
        special: Something that the adapter knows by name; a name that it does not know fails `unsupported`.
    """

    returned: Any = UNSET
    thrown: Thrown | UnsetType = UNSET
    sleep_ms: Milliseconds | UnsetType = UNSET
    stream: Body | UnsetType = UNSET
    chunk: Ordinal | UnsetType = UNSET
    breaks: str | UnsetType = UNSET
    read_stream: bool | UnsetType = UNSET
    special: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        kinds = (self.returned, self.thrown, self.sleep_ms, self.stream, self.read_stream, self.special)
        if sum(kind is not UNSET for kind in kinds) != 1:
            raise ValueError("Expected one of return, throw, sleep_ms, stream, read_stream and special")


class CallResult(Incoming, frozen=True, rename={"sender": "from"}):
    """What the action answered.

    Attributes:
        data: A stream is `{"stream": body, "chunks": n}` or `{"objects": [], "chunks": n}`.
        from: The node that answered.
    """

    data: Any
    meta: dict[str, Any] | None = None
    sender: str | None = None


class Call(Arguments, frozen=True):
    """Call an action and wait for its answer; a remote error is `refused` with `code`, `text` and `type`.

    Attributes:
        timeout_ms: The call's own, 0 for none; without it the library's default.
        node: The only node that may answer.
        stream: What is uploaded.
        chunk: Bytes of a piece of it; each is made when it is asked for.
        every_ms: And not before these have passed since the one before.
        breaks: After all of it the source fails, with an error of these words.
        objects: A stream of objects instead.
    """

    spec = Op("mol.call", CallResult, ("caller",))

    session: str
    action: str
    params: Any = UNSET
    meta: dict[str, Any] | UnsetType = UNSET
    timeout_ms: Milliseconds | UnsetType = UNSET
    node: str | UnsetType = UNSET
    stream: Body | UnsetType = UNSET
    chunk: Ordinal | UnsetType = UNSET
    every_ms: Milliseconds | UnsetType = UNSET
    breaks: str | UnsetType = UNSET
    objects: list[Any] | UnsetType = UNSET


class Serve(Arguments, frozen=True):
    """Offer a service; done when it has started.

    Attributes:
        actions: `echo` or another behaviour, by name.
        start_delay_ms: How long the service takes to start.
    """

    spec = Op("mol.serve", needed_by=("service",), late=LATE_SERVICES)

    session: str
    service: str
    actions: dict[str, Literal["echo"] | Behaviour]
    start_delay_ms: Milliseconds | UnsetType = UNSET


class Unserve(Arguments, frozen=True):
    """Take a service back."""

    spec = Op("mol.unserve")

    session: str
    service: str


class Emit(Arguments, frozen=True):
    """Send an event to one listener of each group.

    Attributes:
        groups: Only to these.
    """

    spec = Op("mol.emit", needed_by=("emitter",))

    session: str
    event: str
    data: Any = UNSET
    groups: list[str] | UnsetType = UNSET


class Broadcast(Arguments, frozen=True):
    """Send an event to every listener.

    Attributes:
        groups: Only to these.
    """

    spec = Op("mol.broadcast", needed_by=("emitter",))

    session: str
    event: str
    data: Any = UNSET
    groups: list[str] | UnsetType = UNSET


class Listen(Arguments, frozen=True):
    """Listen to an event; its data are the body of a message, as JSON text.

    Attributes:
        sub: A name for what comes; without it the event's.
        group: Without it that of the service in which the library keeps the listener, whatever its name.
    """

    spec = Op("mol.listen", needed_by=("listener",), late=LATE_SERVICES)

    session: str
    event: str
    sub: str | UnsetType = UNSET
    group: str | UnsetType = UNSET
    on_message: OnMessage | UnsetType = UNSET


class Pinged(Incoming, frozen=True, rename={"sender": "from"}):
    """One of several nodes that were asked.

    Attributes:
        rtt_ms: Null without an answer.
        from: The node.
    """

    sender: str
    rtt_ms: float | None = None


class PingResult(Incoming, frozen=True, rename={"sender": "from"}):
    """What came back.

    Attributes:
        arrived: Null where the library does not show it.
        rtt_ms: Null without an answer.
        from: The node that answered.
        nodes: Of a ping of all: those that answered, and any others that were asked.
    """

    arrived: Any = None
    rtt_ms: float | None = None
    sender: str | None = None
    nodes: list[Pinged] | None = None


class Ping(Arguments, frozen=True):
    """Ping a node, or all; the request's `timeout_ms` counts."""

    spec = Op("mol.ping", PingResult)

    session: str
    node: str | UnsetType = UNSET


class Node(Incoming, frozen=True):
    """A node as another one knows it."""

    id: str
    available: bool | None = None
    services: list[str] | None = None


class RegistryResult(Incoming, frozen=True):
    """All nodes that the session knows."""

    nodes: list[Node]


class Registry(Arguments, frozen=True):
    """Report which nodes the session knows; its own may be among them."""

    spec = Op("mol.registry", RegistryResult)

    session: str


class Stop(Arguments, frozen=True):
    """Stop the node: as `close`, where the library has both."""

    spec = Op("mol.stop")

    session: str


PROFILE = Profile(
    protocol="moleculer",
    roles=("caller", "service", "emitter", "listener"),
    ops=ops_in(globals()),
    capabilities={
        "streams": "streamed parameters and answers",
        "streams.broken": "streams whose source fails: `breaks` of `mol.call` and of a behaviour",
        "disable_balancer": "balancing by the broker",
        LATE_SERVICES: "a node that runs takes services and listeners (the default: where `false` says "
        "otherwise, `mol.serve` and `mol.listen` come before the `connect` of their session)",
    },
)
