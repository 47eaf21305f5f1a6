"""What a page of a run shows of the broker: its queue, and what consumers have not acknowledged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fakebrokers.pzq.session import MonitorSession, ReceiveSession, SendSession
from fakebrokers.viewer.model import BrokerModel, Seen, named

if TYPE_CHECKING:
    from fakebrokers.pzq.server import PZQ

KEYS = 3  #: of messages in flight that are named: they are long
_SOCKETS = (ReceiveSession.socket, SendSession.socket, MonitorSession.socket)


class QueueModel(BrokerModel):
    """The queue, and the messages at each connection of consumers."""

    def __init__(self) -> None:
        super().__init__()
        self._produced = self._confirmed = self._acknowledged = 0
        self._out: dict[str, str] = {}  #: message, and the connection that it was last delivered on

    def frame(self, seen: Seen) -> None:
        key = seen.keys[0] if seen.keys else ""
        match seen.kind:
            case "Produce":
                self._produced += 1
            case "ProduceAck":
                self._confirmed += 1
            case "Delivery":
                self._out[key] = seen.connection
            case "ConsumerAck":
                self._acknowledged += self._out.pop(key, None) is not None
            case _:
                return
        self._tell(seen.connection)

    @classmethod
    def held(cls, server: PZQ) -> Iterator[tuple[str, str]]:
        broker = server.broker
        numbers = broker.statistics()
        expired = f", {numbers.expired} expired" if numbers.expired else ""
        yield "queue", f"{numbers.messages} stored, {broker.waiting} to be delivered{expired}"
        if numbers.in_flight:
            yield "in flight", f"{numbers.in_flight}: {named(broker.in_flight, KEYS)}"
        peers: Counter[str] = Counter()
        for at, connection in server.engine.connections.items():
            about = connection.session.describe()
            socket = str(about.pop("socket"))
            peers[socket] += 1
            said = [f"{about[word]} {word}" for word in ("stored", "refused", "delivered") if about.get(word)]
            yield f"{at} at {socket}", ", ".join(said) or "open"
        for socket, mark in zip(_SOCKETS, server._marks, strict=True):
            most = "" if server.in_memory else f", high-water mark {mark}"  # libzmq's own matter
            yield f"socket {socket}", f"{peers[socket]} open{most}"

    def left(self, connection: str) -> None:
        super().left(connection)
        self._out = {key: at for key, at in self._out.items() if at != connection}

    def _tell(self, connection: str) -> None:
        held = [key for key, at in self._out.items() if at == connection]
        said = f"{self._produced} produced, {self._confirmed} confirmed; {self._acknowledged} acknowledged"
        self.tell("queue", f"{said}, {len(self._out)} delivered and not acknowledged")
        self.tell(f"{connection} consumer", f"{len(held)} not acknowledged: {named(held)}" if held else "")
