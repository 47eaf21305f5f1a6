"""What a page of a run shows of the broker: queues, consumers and publishers, and requests without an answer."""

from __future__ import annotations

from collections import Counter

from fakebrokers.viewer.model import BrokerModel, Seen, named

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


class QueueModel(BrokerModel):
    """Queues by project and name, WebSockets by connection, and open requests."""

    def __init__(self) -> None:
        super().__init__()
        self._queues: dict[str, Counter[str]] = {}
        self._at: dict[str, str] = {}  #: of WebSockets and of the request that is open: connection, queue
        self._unacked: dict[str, dict[str, None]] = {}  #: of WebSockets that consume

    def frame(self, seen: Seen) -> None:
        at, fields = seen.connection, seen.fields
        if seen.direction == "in" and "method" in fields:
            self._at[at] = f"{fields.get('project', '')}/{fields.get('queue', '')}"
            self.tell(f"{at} request {fields['number']}", f"{fields['method']} {fields['target']}")
        if word := _COUNTED.get(seen.kind):
            self._queues.setdefault(self._at.get(at, "?"), Counter())[word] += 1
        match seen.kind:
            case "WsAccept":
                consumes = any(value == "consume" for _, value in fields.get("headers", ()))
                if consumes:
                    self._unacked[at] = {}
                self.tell(f"{at} {'consumer' if consumes else 'publisher'}", f"of {self._at.get(at, '?')}")
            case "WsDeliver" if fields.get("ack_id") is not None and at in self._unacked:
                self._unacked[at][fields["ack_id"]] = None
            case "WsAck" if at in self._unacked:
                self._acknowledge(at, fields.get("ack_id"), fields.get("ack_to_id"))
            case "QueueEnsured":
                self._queues.setdefault(self._at.get(at, "?"), Counter())
            case "QueueDeleted":
                self._queues.pop(self._at.get(at, "?"), None)
        if seen.direction == "out" and "status" in fields and seen.kind != "Continue":
            self.tell(f"{at} request {fields.get('number')}", "")
        self._tell(at)

    def left(self, connection: str) -> None:
        super().left(connection)
        self._unacked.pop(connection, None)

    def _acknowledge(self, connection: str, one: str | None, up_to: str | None) -> None:
        """One message, or all up to one."""
        waiting = self._unacked[connection]
        if up_to is None:
            waiting.pop(str(one), None)
        elif up_to in waiting:
            keys = list(waiting)
            for key in keys[: keys.index(up_to) + 1]:
                del waiting[key]

    def _tell(self, connection: str) -> None:
        queue = self._at.get(connection, "?")
        counted = self._queues.get(queue)
        said = "" if counted is None else ", ".join(f"{n} {word}" for word, n in counted.items()) or "exists"
        self.tell(f"queue {queue}", said)
        if connection in self._unacked:
            keys = self._unacked[connection]
            waits = f": {named(keys)} not acknowledged" if keys else ", all acknowledged"
            self.tell(f"{connection} consumer", f"of {queue}{waits}")
