"""What a page of a run shows of the broker: queues that are open, with what has no answer yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from fakebrokers.blazingmq.codes import DEFAULT_APP
from fakebrokers.blazingmq.session import BlazingSession
from fakebrokers.core.frames import KeyType
from fakebrokers.journal.keys import key_text
from fakebrokers.viewer.model import SHOWN, BrokerModel, Seen, named

if TYPE_CHECKING:
    from fakebrokers.blazingmq.handle import Handle
    from fakebrokers.blazingmq.queue import Queue
    from fakebrokers.blazingmq.server import BlazingMQ
    from fakebrokers.blazingmq.stream import Stream

COUNTED = 500  #: messages of a queue, up to which it is said how many are to be delivered: they are counted
_UNKNOWN = "?"  #: what only the fields of frames name, of a journal without them


@dataclass
class _Handle:
    """A queue as one connection has it open."""

    uri: str
    reads: bool
    writes: bool
    limit: int | None = None
    put: int = 0
    unanswered: int = 0
    unconfirmed: dict[str, None] = field(default_factory=dict)

    def __str__(self) -> str:
        said = [self.uri]
        if self.writes:
            said.append(f"{self.put} put, {self.unanswered} without an ACK")
        if self.reads:
            most = "" if self.limit is None else f" of at most {self.limit}"
            keys = f" ({named(self.unconfirmed)})" if self.unconfirmed else ""
            said.append(f"{len(self.unconfirmed)}{most} unconfirmed{keys}")
        return "; ".join(said)


class QueueModel(BrokerModel):
    """Queues by connection and number."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: dict[tuple[str, int], Seen] = {}
        self._handles: dict[tuple[str, int | str], _Handle] = {}

    def frame(self, seen: Seen) -> None:
        match seen.kind:
            case "openQueue" | "configureStream" | "configureQueueStream" | "closeQueue":
                self._asked[seen.connection, seen.fields.get("r_id", 0)] = seen
            case "PUT" | "ACK" | "PUSH" | "CONFIRM":
                for item in seen.fields.get("messages") or [{"guid": key} for key in seen.keys]:
                    self._message(seen.kind, seen.connection, item)
            case _ if seen.direction == "out":
                asked = self._asked.pop((seen.connection, seen.fields.get("r_id", 0)), None)
                if asked is not None and seen.kind == f"{asked.kind}Response":
                    self._granted(asked)

    @classmethod
    def held(cls, server: BlazingMQ) -> Iterator[tuple[str, str]]:
        for at, connection in server.engine.connections.items():
            session = connection.session
            if not isinstance(session, BlazingSession):
                continue
            for number, handle in session.handles.items():
                yield f"{at} queue {number}", _handle_held(handle)
        for uri, queue in server.broker.queues.items():
            yield f"queue {uri}", _queue_held(queue)

    def left(self, connection: str) -> None:
        super().left(connection)
        tables: tuple[dict[Any, Any], ...] = (self._asked, self._handles)
        for table in tables:
            for key in [key for key in table if key[0] == connection]:
                del table[key]

    def _granted(self, asked: Seen) -> None:
        fields = asked.fields
        parameters = fields.get("handle_parameters", fields)
        key = asked.connection, parameters.get("q_id", 0)
        match asked.kind:
            case "openQueue":
                reads, writes = parameters["read_count"] > 0, parameters["write_count"] > 0
                self._handles[key] = _Handle(parameters["uri"], reads, writes)
            case "closeQueue":
                self._handles.pop(key, None)
            case _ if key in self._handles:
                self._handles[key].limit = _limit(fields)
        self._tell(key)

    def _message(self, kind: str, connection: str, item: dict[str, Any]) -> None:
        key = connection, item.get("queue_id", _UNKNOWN)
        handle = self._handles.setdefault(key, _Handle(_UNKNOWN, reads=True, writes=True))
        match kind:
            case "PUT":
                handle.put += 1
                handle.unanswered += item.get("flags", 1) & 1  # an ACK is asked for
            case "ACK":
                handle.unanswered -= 1
            case "PUSH":
                handle.unconfirmed[item["guid"]] = None
            case "CONFIRM":
                handle.unconfirmed.pop(item["guid"], None)
        self._tell(key)

    def _tell(self, key: tuple[str, int | str]) -> None:
        handle = self._handles.get(key)
        self.tell(f"{key[0]} queue {key[1]}", "" if handle is None else str(handle))


def _limit(fields: dict[str, Any]) -> int | None:
    """How many messages may be unconfirmed, over all consumers of a stream; older wires have one number."""
    parameters: dict[str, Any] = fields["stream_parameters"]
    consumers = [each for sub in parameters.get("subscriptions", ()) for each in sub["consumers"]] or [
        parameters
    ]
    limits = [
        int(each["max_unconfirmed_messages"]) for each in consumers if "max_unconfirmed_messages" in each
    ]
    return sum(limits) if limits else None


def _queue_held(queue: Queue) -> str:
    many = len(queue.messages)
    said = [f"{many} message{'' if many == 1 else 's'}, {queue.store.bytes} bytes" if many else "empty"]
    for name, app in islice(queue.apps.items(), SHOWN):
        waits = app.undelivered if many <= COUNTED else 0
        had = sum(len(stream.unconfirmed) for stream in app.streams)
        told = [f"{n} {word}" for n, word in ((waits, "to be delivered"), (had, "unconfirmed")) if n]
        if told:
            said.append(_app(name) + ", ".join(told))
    return "; ".join(said)


def _handle_held(handle: Handle) -> str:
    said = [handle.queue.uri]
    if handle.writes:
        said.append("writes")
    said += [_reader_held(name, stream) for name, stream in handle.streams.items() if stream.reads]
    return "; ".join(said)


def _reader_held(name: str, stream: Stream) -> str:
    if not stream.configured:
        return f"{_app(name)}reads, and takes nothing"
    most = sum(consumer.max_messages for consumer in stream.consumers)
    oldest = next(iter(stream.unconfirmed), None)
    since = "" if oldest is None else f", the oldest {key_text(oldest, KeyType.BYTES16)}"
    return f"{_app(name)}{len(stream.unconfirmed)} of at most {most} unconfirmed{since}"


def _app(name: str) -> str:
    return "" if name == DEFAULT_APP else f"app {name}: "
