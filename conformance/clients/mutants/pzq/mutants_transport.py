"""Clients with a transport of their own, with one defect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from conformance.clients.mutants.pzq.bare import BareSocket
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.pzq.sockets import Connector, OnMessage, Socket, joined
from fakebrokers.pzq.memory import SocketType


class _Bare(Connector):
    """Gives sockets of one kind from a transport of its own."""

    kind: ClassVar[SocketType]
    transport: ClassVar[type[BareSocket]]

    def in_memory(self, endpoint: str, kind: SocketType, on_message: OnMessage) -> Socket:
        if kind == self.kind:
            return self.transport(endpoint, kind, on_message, in_memory=True)
        return super().in_memory(endpoint, kind, on_message)

    def over_sockets(self, endpoints: Sequence[str], kind: SocketType, on_message: OnMessage) -> Socket:
        if kind == self.kind:
            return joined([self.transport(each, kind, on_message) for each in endpoints])
        return super().over_sockets(endpoints, kind, on_message)


class _BareProducer(_Bare):
    kind = "DEALER"


class _BareConsumer(_Bare):
    kind = "ROUTER"


# how bytes are cut


class _ReadsWhole(BareSocket):
    def feed(self, data: bytes) -> None:
        super().feed(data)
        self.forget()


@mutant("reads-are-whole", tag="wire", breaks=["X1"], aims=["NET-1.01", "NET-1.02", "NET-1.04"])
class ReadsAreWhole(_BareProducer):
    """Takes it that a read gives whole frames, and forgets the rest."""

    transport = _ReadsWhole


class _OneAtATime(BareSocket):
    is_full = False

    def feed(self, data: bytes) -> None:
        self.is_full = False
        super().feed(data)

    def deliver_message(self, parts: tuple[bytes, ...]) -> None:
        if not self.is_full:
            super().deliver_message(parts)
        self.is_full = True


@mutant("one-message-a-read", tag="wire", breaks=["X1"], aims=["NET-1.03"])
class OneMessageARead(_BareProducer):
    """Looks for one message only in what a read gives."""

    transport = _OneAtATime


# the connection ends in the middle of a message


class _HalfCounts(BareSocket):
    def lost(self) -> None:
        if self.parts:
            self.deliver_message(tuple(self.parts))
        super().lost()


@mutant("half-messages-count", tag="wire", breaks=["P5", "X2"], aims=["PZQ-3.07", "NET-1.05"])
class HalfMessagesCount(_BareConsumer):
    """Takes the parts of a message that have come for the whole when the connection ends."""

    transport = _HalfCounts


class _HalfAckCounts(BareSocket):
    def lost(self) -> None:
        if len(self.parts) > 1:
            self.deliver_message((*self.parts, b""))
        super().lost()


@mutant("half-acks-count", tag="wire", breaks=["X2"], aims=["NET-1.06"])
class HalfAcksCount(_BareProducer):
    """Takes an acknowledgement that breaks off after its status for a whole one."""

    transport = _HalfAckCounts


# the first bytes


class _GreetingUnchecked(BareSocket):
    def greet(self, greeting: bytes) -> None:
        try:
            super().greet(greeting)
        except ConnectionError:
            self.deliver_message((greeting[:8], b"0", b"0", b"", greeting[8:]))
            raise


@mutant("garbage-is-a-message", tag="wire", breaks=["X5"], aims=["NET-1.12"])
class GarbageIsAMessage(_BareConsumer):
    """Delivers the bytes of a peer that does not greet."""

    transport = _GreetingUnchecked


class Pzq_Hasty(BareSocket):
    pause_s = 0.0


@mutant("connects-without-pause", tag="life-cycle", breaks=["X5", "X6"], aims=["NET-1.13"])
class ConnectsWithoutPause(_BareConsumer):
    """Connects again at once, as often as it is turned away."""

    transport = Pzq_Hasty
