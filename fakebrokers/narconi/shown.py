"""What a page of a run shows of the broker: queues, consumers, publishers, and requests without an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from fakebrokers.narconi.peers import State
from fakebrokers.viewer.model import BrokerModel, Seen, named

if TYPE_CHECKING:
    from fakebrokers.narconi.server import Narconi

#: What a frame adds to the numbers of its queue.
_COUNTED = {
    "HttpPublish": "published",
    "WsPublish": "published",
    "HttpConfirm": "confirmed",
    "WsConfirm": "confirmed",
    "HttpDeliver": "delivered",
    "WsDeliver": "delivered",
    "WsAck": "acknowledged",
}
_UNKNOWN = "?"  #: a queue that only the fields of frames name, of a journal without them


class QueueModel(BrokerModel):
    """Queues by project and name, WebSockets by connection, and open requests."""

    besides: ClassVar[frozenset[str]] = frozenset({"request"})

    def __init__(self) -> None:
        super().__init__()
        self._queues: dict[str, Counter[str]] = {}
        self._asked: dict[tuple[str, int], str] = {}  #: the queue of each open request
        self._sockets: dict[str, str] = {}  #: the queue of each WebSocket
        self._unacked: dict[str, dict[str, None]] = {}  #: of WebSockets that consume

    def frame(self, seen: Seen) -> None:
        at, fields = seen.connection, seen.fields
        self.scope = at  # keys are numbers on a connection
        if "method" in fields:
            queue = self._asked[at, fields["number"]] = f"{fields['project']}/{fields['queue']}"
            self.tell(f"{at} request {fields['number']}", f"{fields['method']} {fields['target']}")
        elif "status" in fields:
            queue = self._asked.get((at, fields["number"]), _UNKNOWN)
            if seen.kind != "Continue":
                self._asked.pop((at, fields["number"]), None)
                self.tell(f"{at} request {fields['number']}", "")
        else:
            queue = self._sockets.get(at, _UNKNOWN)
        if word := _COUNTED.get(seen.kind):
            self._queues.setdefault(queue, Counter())[word] += 1
        match seen.kind:
            case "WsAccept":
                self._accept(at, queue, consumes=["Sec-WebSocket-Protocol", "consume"] in fields["headers"])
            case "WsDeliver" if seen.keys and fields.get("ack_id", "") is not None:
                self._unacked.setdefault(at, {})[seen.keys[0]] = None
            case "WsAck" if at in self._unacked:
                self._acknowledge(at, seen.keys[0], up_to=fields.get("ack_to_id") is not None)
            case "QueueEnsured":
                self._queues.setdefault(queue, Counter())
            case "QueueDeleted":
                self._queues.pop(queue, None)
        self._tell(at, queue)

    @classmethod
    def held(cls, server: Narconi) -> Iterator[tuple[str, str]]:
        broker = server.broker
        if not broker.backend_up:
            yield "backend", "cannot be reached"
        for at, connection in server.engine.connections.items():
            about = connection.session.describe()
            if about.get("state") == State.CONSUMING:
                yield f"{at} consumer", _consumer_held(about)
            elif about.get("state") == State.PUBLISHING:
                confirms = "confirms" if about["confirms"] else "no confirms"
                yield f"{at} publisher", f"of {about['queue']}, {confirms}"
        for name, queue in broker.queues.items():
            many = len(queue.consumers)
            consumers = f"{many} consumer{'' if many == 1 else 's'}"
            yield f"queue {name}", f"{len(queue.ready)} ready, {queue.unacked} not acknowledged, {consumers}"

    def left(self, connection: str) -> None:
        super().left(connection)
        self._unacked.pop(connection, None)
        self._sockets.pop(connection, None)

    def _accept(self, connection: str, queue: str, *, consumes: bool) -> None:
        self._sockets[connection] = queue
        if consumes:
            self._unacked[connection] = {}
        else:
            self.tell(f"{connection} publisher", f"of {queue}")

    def _acknowledge(self, connection: str, key: str, *, up_to: bool) -> None:
        """One message, or all up to one."""
        waiting = self._unacked[connection]
        keys = list(waiting)
        for each in keys[: keys.index(key) + 1] if up_to else [key]:
            waiting.pop(each, None)

    def _tell(self, connection: str, queue: str) -> None:
        counted = self._queues.get(queue)
        said = "" if counted is None else ", ".join(f"{n} {word}" for word, n in counted.items()) or "exists"
        self.tell(f"queue {queue}", said)
        if connection in self._unacked:
            keys = self._unacked[connection]
            waits = f": {named(keys)} not acknowledged" if keys else ", nothing to acknowledge"
            self.tell(f"{connection} consumer", f"of {self._sockets.get(connection, _UNKNOWN)}{waits}")


def _consumer_held(about: Mapping[str, Any]) -> str:
    stopped = ", stopped" if about["stopped"] else ""
    if not about["ack"]:
        return f"of {about['queue']}: needs no acknowledgements{stopped}"
    keys = about["unacked"]
    most = "" if about["limit"] is None else f" of at most {about['limit']}"
    which = f" ({named(keys)})" if keys else ""
    return f"of {about['queue']}: {len(keys)}{most} not acknowledged{which}{stopped}"
