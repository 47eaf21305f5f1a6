"""MQTT 3.1.1: publish and subscribe by topic, with a quality of service; a target is a topic or a filter."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from conformance.clients.adapter.ops import messaging, session
from conformance.clients.adapter.ops.define import Outgoing, Profile, ops_in
from conformance.clients.adapter.ops.values import Body


class Will(Outgoing, frozen=True):
    """What the server publishes when the client goes without DISCONNECT."""

    target: str
    body: Body
    qos: int = 0
    retain: bool = False


class ConnectOptions(session.ConnectOptions, frozen=True):
    """What CONNECT says.

    Attributes:
        client_id: Else one that nobody else has.
        clean: Clean session; else true.
        keep_alive_s: Whole seconds, 0 for none; else 60.
    """

    client_id: str | UnsetType = UNSET
    clean: bool | UnsetType = UNSET
    keep_alive_s: int | UnsetType = UNSET
    will: Will | UnsetType = UNSET


class Connect(session.Connect, frozen=True):
    """With options of its own."""

    options: ConnectOptions | UnsetType = UNSET


class Publish(messaging.Publish, frozen=True):
    """A publish with QoS 0 ends as `sent`, and no `outcome` event follows; with `wait` it is `unsupported`.

    Attributes:
        qos: 0, 1 or 2; else 1.
        retain: The server keeps it for those who subscribe later.
    """

    qos: int | UnsetType = UNSET
    retain: bool | UnsetType = UNSET


class SubscribeOptions(messaging.SubscribeOptions, frozen=True):
    """How to consume.

    Attributes:
        qos: The highest that is wanted; else 1.
    """

    qos: int | UnsetType = UNSET


class Subscribe(messaging.Subscribe, frozen=True):
    """The target is a topic filter; a message has `qos`, `retain`, `dup` and its `topic` in `meta`."""

    options: SubscribeOptions | UnsetType = UNSET


PROFILE = Profile(
    protocol="mqtt",
    roles=("publisher", "consumer"),
    ops=ops_in(globals()),
    capabilities={
        "lasting": "what a session with `clean` false has in flight outlives its connections",
        "at_release": "a message with QoS 2 is delivered when its PUBREL has come, not before",
        "will": "a will in CONNECT",
    },
)
