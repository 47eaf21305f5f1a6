"""What a fake node is, and how it says packets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Protocol
from uuid import UUID

import msgspec
from msgspec import UNSET

from fakebrokers.moleculer import packets as p
from fakebrokers.moleculer.peers import Peers
from fakebrokers.moleculer.profile import Profile
from fakebrokers.moleculer.services import Service


class NodeOptions(msgspec.Struct, frozen=True):
    """What a fake node is told when it is made.

    Attributes:
        version: The protocol that it speaks, dropping all others as real nodes do; "" speaks that of
            whoever it talks to.
        heartbeat_s: Seconds between its heartbeats; None as the profile.
        heartbeat_timeout_s: Silence after which it takes another node for dead; None as the profile.
        metadata: As INFO has it.
        disable_balancer: Leaves the choice of a node to the bus (NATS only).
        announces: Whether it says DISCOVER and INFO when it joins.
        answers_discover: Whether it answers DISCOVER.
        seq: Of its first INFO.
        instance: Its instanceID; "" draws one.
        hostname, ip_list: As INFO has it.
    """

    version: str = ""
    heartbeat_s: float | None = None
    heartbeat_timeout_s: float | None = None
    metadata: Mapping[str, Any] = {}
    disable_balancer: bool = False
    announces: bool = True
    answers_discover: bool = True
    seq: int = 1
    instance: str = ""
    hostname: str = "fake"
    ip_list: tuple[str, ...] = ("127.0.0.1",)


class Outlet(Protocol):
    """What takes a node's packets, see `nodes.Carrier`."""

    def send(self, node: Speaker, packet: p.Packet, target: str, now: float) -> None:
        """To one node, or to all ("")."""

    def send_balanced(self, node: Speaker, packet: p.Packet, rest: str, now: float) -> None:
        """To anybody who listens to this action, or to this group and event."""


class Speaker:
    """A node as far as it speaks.

    Attributes:
        stopping: It is about to leave, and offers nothing any more.
        peers: The others, as far as it knows them.
        versions: The protocols that it has met.
        failures: What its functions raised that was no `MoleculerError`.
    """

    def __init__(
        self,
        id: str,
        services: list[Service],
        options: NodeOptions,
        carrier: Outlet,
        profile: Profile,
        wall: Callable[[float], float],
        random: Random,
    ) -> None:
        self.id = id
        self.services = services
        self.options = options
        self.carrier: Outlet = carrier
        self.profile = profile
        self.wall = wall
        self.random = random
        self.instance = options.instance or self.new_id()
        self.seq = options.seq
        self.stopping = False
        self.peers = Peers()
        self.versions: dict[str, None] = {}
        self.failures: list[BaseException] = []

    def new_id(self) -> str:
        """A UUID, from the node's own random numbers."""
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def version_for(self, target: str) -> str:
        """The protocol in which to talk to a node."""
        if self.options.version:
            return self.options.version
        peer = self.peers.get(target)
        if peer is not None and peer.version:
            return peer.version
        return next(reversed(self.versions), self.profile.protocol)

    def signed(self, packet: p.Packet, version: str) -> p.Packet:
        """The packet with what stands last in all of them, where it is not there yet."""
        ver = version if packet.ver is UNSET else packet.ver
        sender = self.id if packet.sender is UNSET else packet.sender
        if version not in ("", "3", "4") and hasattr(packet, "headers") and packet.headers is UNSET:
            packet = msgspec.structs.replace(packet, headers={})
        return msgspec.structs.replace(packet, ver=ver, sender=sender)

    def send(self, packet: p.Packet, target: str, now: float, version: str = "") -> None:
        """Send a packet to one node."""
        self.carrier.send(self, self.signed(packet, version or self.version_for(target)), target, now)

    def broadcast_all(self, packet: p.Packet, now: float) -> None:
        """Send a packet to all nodes, once in each protocol that they speak."""
        given = self.options.version
        for version in [given] if given else list(self.versions) or [self.profile.protocol]:
            self.carrier.send(self, self.signed(packet, version), "", now)

    def info(self) -> p.Info:
        """What this node tells of itself (docs/protocols/moleculer.md, 4.2)."""
        version = self.profile.version
        return p.Info(
            services=[service.info() for service in self.services],
            ipList=list(self.options.ip_list),
            hostname=self.options.hostname,
            client={"type": "nodejs", "version": version, "langVersion": "v20.20.2"},
            config={},
            instanceID=self.instance,
            metadata=dict(self.options.metadata),
            seq=self.seq,
        )

    def send_info(self, target: str, now: float, version: str = "") -> None:
        """Tell one node, or all (""), of the services."""
        if target:
            self.send(self.info(), target, now, version)
        else:
            self.broadcast_all(self.info(), now)
