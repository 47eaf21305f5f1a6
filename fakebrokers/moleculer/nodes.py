"""A fake node: what it says and answers, whatever carries its packets. No IO; time is an argument.

It behaves as a node of `profile` does, but for two things, so that tests need not wait: it answers a
DISCOVER at once, and tells of its services as soon as it joins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import Any, Protocol
from uuid import UUID

import msgspec
from msgspec import UNSET

from fakebrokers.core.timers import Timers
from fakebrokers.moleculer import packets as p
from fakebrokers.moleculer.answers import Answers
from fakebrokers.moleculer.calls import Calls
from fakebrokers.moleculer.peers import Peers
from fakebrokers.moleculer.profile import Profile
from fakebrokers.moleculer.serializers import Serializer, Unreadable
from fakebrokers.moleculer.services import Service

#: Packets that a node remembers.
REMEMBERED = 10_000


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


class Carrier(Protocol):
    """How a node's packets travel: over a bus, or over sockets of its own.

    Attributes:
        serializer: Of the node's packets, both ways.
        gossips: Whether nodes learn of each other by gossip, so that there are no heartbeats.
    """

    gossips: bool
    serializer: Serializer

    def join(self, node: FakeNode) -> None:
        """The node listens from now on."""

    def balance(self, node: FakeNode, actions: list[str], events: list[tuple[str, str]]) -> None:
        """It listens to these actions and events (with their groups), which anybody may answer."""

    def leave(self, node: FakeNode) -> None:
        """It listens no more."""

    def send(self, node: FakeNode, packet: p.Packet, target: str, now: float) -> None:
        """To one node, or to all ("")."""

    def send_balanced(self, node: FakeNode, packet: p.Packet, rest: str, now: float) -> None:
        """To anybody who listens to this action, or to this group and event."""

    def send_raw(self, node: FakeNode, command: str, payload: bytes, target: str, now: float) -> None:
        """Bytes in place of a packet."""


class FakeNode:
    """See the module's text; all methods on the fake's own thread.

    Attributes:
        received: All packets that it has heard, but its own.
        broken: What was wrong with those that it could not read, or dropped.
        failures: What its functions raised that was no `MoleculerError`.
        alive: Whether it has joined and not left.
        now: When it last did something.
        versions: The protocols that it has met.
        pliant: The ids of fake nodes that speak anybody's protocol: which they speak tells nothing.
    """

    def __init__(
        self,
        id: str,
        services: list[Service],
        options: NodeOptions,
        carrier: Carrier,
        profile: Profile,
        timers: Timers,
        wall: Callable[[float], float],
        random: Random,
    ) -> None:
        self.id = id
        self.services = services
        self.options = options
        self.carrier = carrier
        self.profile = profile
        self.wall = wall
        self.random = random
        self.instance = options.instance or self.new_id()
        self.seq = options.seq
        self.alive = False
        self.stopping = False
        self.now = 0.0
        self.peers = Peers()
        self.versions: dict[str, None] = {}
        self.pliant: Collection[str] = ()
        self.received: deque[p.Packet] = deque(maxlen=REMEMBERED)
        self.broken: deque[str] = deque(maxlen=REMEMBERED)
        self.failures: list[BaseException] = []
        self.calls = Calls(self, timers)
        self.answers = Answers(self)
        self._heartbeats = timers.new(self._beat)
        self._sweeps = timers.new(self._sweep)
        self._handlers: Mapping[type[p.Packet], Callable[[Any, float], None]] = {
            p.Discover: self._discover,
            p.Info: self._info,
            p.Heartbeat: self._heartbeat,
            p.Disconnect: self._disconnect,
            p.Ping: self._ping,
            p.Pong: self.calls.pong,
            p.Request: self.answers.request,
            p.Response: self.calls.response,
            p.Event: self.answers.event,
        }

    def new_id(self) -> str:
        """A UUID, from the node's own random numbers."""
        return str(UUID(int=self.random.getrandbits(128), version=4))

    # life

    @property
    def heartbeat_s(self) -> float:
        """Seconds between two heartbeats."""
        given = self.options.heartbeat_s
        return self.profile.heartbeat_s if given is None else given

    @property
    def timeout_s(self) -> float:
        """Silence after which another node is taken for dead."""
        given = self.options.heartbeat_timeout_s
        return self.profile.heartbeat_timeout_s if given is None else given

    def join(self, now: float) -> None:
        """Listen, and tell everybody."""
        self.alive, self.stopping = True, False
        self.now = now
        self.carrier.join(self)
        self._balance()
        if self.carrier.gossips:
            return
        if self.options.announces:
            self.broadcast_all(p.Discover(), now)
            self.send_info("", now)
        self.resume_heartbeats(now)
        self._sweeps.set(now + self.timeout_s)

    def _balance(self) -> None:
        if self.options.disable_balancer:
            actions = [f"{s.full_name}.{name}" for s in self.services for name in s.actions]
            events = [(group, pattern) for s in self.services for group, pattern, _ in s.handlers]
            self.carrier.balance(self, actions, events)

    def stop(self, now: float) -> None:
        """Stop in good order: no services any more, then DISCONNECT. Real nodes wait 100 ms in between."""
        if self.alive:
            self.services = []
            self.seq += 1
            self.stopping = True
            self.send_info("", now)
            self.broadcast_all(p.Disconnect(), now)
            self.vanish()

    def vanish(self) -> None:
        """Be gone without a word, as a killed process."""
        if self.alive:
            self.alive = False
            self.carrier.leave(self)
        self.silence()
        self._sweeps.cancel()

    def silence(self) -> None:
        """Send no heartbeats any more."""
        self._heartbeats.cancel()

    def resume_heartbeats(self, now: float) -> None:
        """Send heartbeats again, the first after one interval."""
        self._heartbeats.set(now + self.heartbeat_s if self.heartbeat_s else None)

    def serve(self, services: list[Service], now: float) -> None:
        """Offer other services; everybody is told."""
        self.services = services
        self.seq += 1
        self._balance()
        self.send_info("", now)

    def _beat(self, now: float) -> None:
        self.beat(now)
        self.resume_heartbeats(now)

    def beat(self, now: float) -> None:
        """Send one heartbeat."""
        self.broadcast_all(p.Heartbeat(cpu=0), now)

    def _sweep(self, now: float) -> None:
        for peer in self.peers.silent_since(now - self.timeout_s):
            self.lost(peer, now)
        self._sweeps.set(now + self.timeout_s)

    def lost(self, peer: str, now: float) -> None:
        """Another node is gone: what it was asked fails, what it was sending ends."""
        self.peers.gone(peer)
        self.calls.reject(peer, now)
        self.answers.forget(peer)

    # sending

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

    # receiving

    def hear(self, topic: str, payload: bytes, now: float) -> None:
        """Something came for this node."""
        try:
            packet = p.read_packet(topic, payload, self.carrier.serializer)
        except Unreadable as problem:
            self.broken.append(str(problem))
            return
        self.handle(packet, now)

    def handle(self, packet: p.Packet, now: float) -> None:
        """A packet came for this node."""
        self.now = now
        if not self._counts(packet):
            return
        self.received.append(packet)
        self._handlers[type(packet)](packet, now)

    def _counts(self, packet: p.Packet) -> bool:
        """Whether it is of a known protocol and of another node.

        Of its own packets a node reads requests, answers and events only: they come with the balancer
        disabled.
        """
        wanted = self.options.version
        if wanted and packet.ver != wanted:
            self.broken.append(f"expected protocol {wanted!r}, got {packet.ver!r} of {packet.sender!r}")
            return False
        if packet.sender == self.id:
            return isinstance(packet, p.Request | p.Response | p.Event)
        if isinstance(packet.ver, str) and str(packet.sender) not in self.pliant:
            self.versions.pop(packet.ver, None)
            self.versions[packet.ver] = None  # the one that was met last stands last
        return True

    def _discover(self, packet: p.Discover, now: float) -> None:
        if self.options.answers_discover and isinstance(packet.sender, str):
            self.send_info(packet.sender, now, str(packet.ver))

    def _info(self, packet: p.Info, now: float) -> None:
        self.peers.info(packet, now)

    def _heartbeat(self, packet: p.Heartbeat, now: float) -> None:
        if not self.peers.heartbeat(packet, now):
            self.send(p.Discover(), str(packet.sender), now, str(packet.ver))

    def _disconnect(self, packet: p.Disconnect, now: float) -> None:
        self.lost(str(packet.sender), now)

    def _ping(self, packet: p.Ping, now: float) -> None:
        arrived = round(self.wall(now) * 1000)
        pong = p.Pong(time=packet.time, id=packet.id, arrived=arrived)
        self.send(pong, str(packet.sender), now, str(packet.ver))
