"""A fake node: what it says and answers, whatever carries its packets. No IO; time is an argument.

It behaves as a node of `profile` does, but for two things, so that tests need not wait: it answers a
DISCOVER at once, and tells of its services as soon as it joins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import Any, Protocol

from fakebrokers.core.timers import Timers
from fakebrokers.moleculer import packets as p
from fakebrokers.moleculer.answers import Answers
from fakebrokers.moleculer.calls import Calls
from fakebrokers.moleculer.profile import Profile
from fakebrokers.moleculer.serializers import Serializer, Unreadable
from fakebrokers.moleculer.services import Service
from fakebrokers.moleculer.speaker import NodeOptions, Outlet, Speaker

#: Packets that a node remembers.
REMEMBERED = 10_000


class Carrier(Outlet, Protocol):
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

    def send_raw(self, node: FakeNode, command: str, payload: bytes, target: str, now: float) -> None:
        """Bytes in place of a packet."""


class FakeNode(Speaker):
    """See the module's text; all methods on the fake's own thread.

    Attributes:
        received: All packets that it has heard, but its own.
        broken: What was wrong with those that it could not read, or dropped.
        alive: Whether it has joined and not left.
        now: When it last did something.
        pliant: The ids of fake nodes that speak anybody's protocol: which they speak tells nothing.
    """

    carrier: Carrier

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
        super().__init__(id, services, options, carrier, profile, wall, random)
        self.alive = False
        self.now = 0.0
        self.pliant: Collection[str] = ()
        self.received: deque[p.Packet] = deque(maxlen=REMEMBERED)
        self.broken: deque[str] = deque(maxlen=REMEMBERED)
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
