"""Faults that exist only here, as effects and ready-made.

    moleculer.faults.add(lose_heartbeats(peer="node-1"), orphan_response(nth=2))
    moleculer.faults.add(fault(PartitionBus(("node-1",), ("node-2",), for_s=2.0), kind="Request", nth=3))

A fault on a packet is for the messages that carry it: ``in`` as a node publishes it, ``out`` as it is
delivered to one. `peer` is the node at the other end of the connection, whichever connection that is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from fakebrokers.errors import PlanError
from fakebrokers.faults.build import delay, drop, duplicate, fault, latency, reorder, rewrite
from fakebrokers.faults.effect import Action, Effect, EffectOnFake, Passage, Realism
from fakebrokers.faults.match import Match, Moment
from fakebrokers.faults.plan import Fault
from fakebrokers.moleculer.packets import BrokenPacket, Packet, values_of
from fakebrokers.moleculer.serialization import SERIALIZERS, find_serializer

if TYPE_CHECKING:
    from fakebrokers.core.host import Host
    from fakebrokers.core.wire import Wire
    from fakebrokers.moleculer.server import Moleculer

#: What a broken packet is instead of what it was.
_PAYLOADS = {"empty": b"", "null": b"null", "number": b"17", "garbage": b"\x00\xff{]", "list": b"[1,2]"}


class BreakPacket(Effect, frozen=True, tag="break-packet"):
    """The message comes, but what is inside is no packet.

    Attributes:
        how: ``cut`` in half, ``empty``, ``null``, ``number``, ``list``, ``garbage``, or ``other``: written
            with another serializer.
        serializer: Which one that is.
    """

    realism = Realism.ILLEGAL
    how: Literal["cut", "empty", "null", "number", "list", "garbage", "other"] = "cut"
    serializer: str = "MsgPack"

    def apply(self, passage: Passage) -> None:
        packet = passage.frame
        if not isinstance(packet, Packet):
            passage.pass_through()
            return
        if self.how == "cut":
            whole = find_serializer("JSON").write(packet.COMMAND, values_of(packet))
            payload = whole[: len(whole) // 2]
        elif self.how == "other":
            payload = find_serializer(self.serializer).write(packet.COMMAND, values_of(packet))
        else:
            payload = _PAYLOADS[self.how]
        passage.pass_on(BrokenPacket(packet.COMMAND, payload))

    def check(self, path: str) -> None:
        if self.serializer not in SERIALIZERS:
            raise PlanError(
                f"{path}.serializer", f"expected one of {', '.join(SERIALIZERS)}; got {self.serializer!r}"
            )


class Cut(Action, frozen=True):
    """The bus is parted; see `PartitionBus`."""

    senders: tuple[str, ...]
    receivers: tuple[str, ...]
    one_way: bool
    for_s: float | None

    def perform(self, host: Host, fault: str, connection: str) -> None:
        server: Moleculer = host.server
        server.partition(self.senders, self.receivers, one_way=self.one_way, for_s=self.for_s, fault=fault)
        host.engine.until_over(fault, lambda: server.heal(fault=fault))


class Heal(Action, frozen=True):
    """The bus is whole again; see `HealBus`."""

    def perform(self, host: Host, fault: str, connection: str) -> None:
        server: Moleculer = host.server
        server.heal(fault=fault)


class Impersonate(Action, frozen=True):
    """See `DuplicateNode`."""

    node: str

    def perform(self, host: Host, fault: str, connection: str) -> None:
        server: Moleculer = host.server
        server.impersonate(self.node or server.peer_of(connection), fault=fault)


class PartitionBus(EffectOnFake, frozen=True, tag="partition-bus"):
    """From here on some nodes do not hear each other; the bus itself and all connections go on.

    Attributes:
        senders: Ids of nodes; none: all.
        receivers: Ids of nodes that do not hear them; none: all but `senders`.
        one_way: Whether the senders still hear the receivers.
        for_s: Seconds; None until `HealBus`, or ``heal()`` of the fake.
    """

    needs_broker = True
    realism = Realism.ENVIRONMENT
    senders: tuple[str, ...] = ()
    receivers: tuple[str, ...] = ()
    one_way: bool = False
    for_s: float | None = None

    def action(self) -> Action:
        return Cut(self.senders, self.receivers, self.one_way, self.for_s)

    def check(self, path: str) -> None:
        if not self.senders and not self.receivers:
            raise PlanError(f"{path}.senders", "expected nodes in senders or receivers, got none in both")


class HealBus(EffectOnFake, frozen=True, tag="heal-bus"):
    """All partitions of the bus end."""

    needs_broker = True
    realism = Realism.LEGAL

    def action(self) -> Action:
        return Heal()


class DuplicateNode(EffectOnFake, frozen=True, tag="duplicate-node"):
    """Another instance with a node's id announces itself. Real nodes of that id end their process.

    Attributes:
        node: Its id; "" for the node at the other end of the connection.
    """

    needs_broker = True
    realism = Realism.ENVIRONMENT
    node: str = ""

    def action(self) -> Action:
        return Impersonate(self.node)

    def check_wire(self, wire: Wire, match: Match, path: str) -> None:
        super().check_wire(wire, match, path)
        if match.on is Moment.BEGIN and not self.node:
            raise PlanError(
                f"{path}.node", 'expected the id of a node: on = "begin" has no connection, got ""'
            )


EFFECTS = (BreakPacket, PartitionBus, HealBus, DuplicateNode)


def lose_heartbeats(**match: Any) -> Fault:
    """A node's heartbeats are lost on their way to the bus (``peer="node-1"``)."""
    return drop(kind="Heartbeat", **{"direction": "in", **match})


def lose_disconnect(**match: Any) -> Fault:
    """Nobody hears that a node stops; it lives on in their registries until its heartbeats are missed."""
    return drop(kind="Disconnect", **{"direction": "in", **match})


def late_info(seconds: float, **match: Any) -> Fault:
    """What a node offers is told late; other packets pass."""
    return delay(seconds, kind="Info", **match)


def orphan_response(id: str = "nobody-asked", **match: Any) -> Fault:
    """An answer carries the id of no request; the one that it was for stays without."""
    return rewrite({"id": id}, kind="Response", **match)


def foreign_version(ver: Any = "3", **match: Any) -> Fault:
    """A packet is of another protocol (give its ``kind``)."""
    return rewrite({"ver": ver}, **match)


def lose_chunk(seq: int, kind: str = "Response", **match: Any) -> Fault:
    """One chunk of a stream is missing."""
    return drop(kind=kind, where={"seq": seq}, **match)


def repeat_chunk(seq: int, kind: str = "Response", **match: Any) -> Fault:
    """One chunk of a stream comes twice."""
    return duplicate(kind=kind, where={"seq": seq}, **match)


def late_chunk(seq: int, seconds: float, kind: str = "Response", **match: Any) -> Fault:
    """One chunk of a stream comes late; those after it pass."""
    return delay(seconds, kind=kind, where={"seq": seq}, **match)


def reorder_chunks(window: int = 2, kind: str = "Response", **match: Any) -> Fault:
    """Chunks of a stream come last first, so many at a time."""
    return reorder(window=window, kind=kind, where={"seq": {"ge": 1}}, **match)


def break_packet(how: str = "cut", **match: Any) -> Fault:
    """What is inside a message is no packet."""
    return fault(BreakPacket(how=how), **match)  # type: ignore[arg-type]


def slow_bus(seconds: float, **match: Any) -> Fault:
    """Everything that the bus says takes this long; order stays."""
    return latency(seconds, **{"direction": "out", **match})
