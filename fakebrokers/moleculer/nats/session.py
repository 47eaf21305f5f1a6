"""One node that is a client of the NATS server."""

from __future__ import annotations

from fakebrokers.core.frames import Frame
from fakebrokers.moleculer.bus import NodeSession
from fakebrokers.moleculer.nats import frames as f
from fakebrokers.moleculer.nats.bus import NatsBus
from fakebrokers.moleculer.nats.codec import NatsCodec
from fakebrokers.moleculer.packets import Packet
from fakebrokers.moleculer.topics import listener_of
from fakebrokers.nats import session as nats
from fakebrokers.nats.frames import Sub
from fakebrokers.nats.session import is_literal


class NatsSession(NodeSession, nats.NatsSession):
    """The state machine of one connection."""

    broker: NatsBus

    def __init__(self, bus: NatsBus, codec: NatsCodec) -> None:
        super().__init__(bus, codec, bus.nodes[0])
        codec.wrap = self._wrap

    def subscribed(self, frame: Sub) -> None:
        node = listener_of(frame.subject)
        if node and is_literal(frame.subject):
            self.knows(node, frame.subject)

    def _wrap(self, frame: Frame) -> Frame | None:
        """A bare packet as a message to this client."""
        if not isinstance(frame, Packet):
            return None
        topic = self.topic_for(frame)
        own = [s for s in self.broker.subscriptions.match(topic).plain if s.owner is self]
        return f.Msg(topic, own[0].key if own else "0", self.payload_of(frame))
