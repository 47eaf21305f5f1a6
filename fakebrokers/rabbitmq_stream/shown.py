"""What a page of a run shows of the broker: streams, publishers and subscriptions with their credit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.session import StreamSession
from fakebrokers.viewer.model import SHOWN, BrokerModel, Seen

if TYPE_CHECKING:
    from fakebrokers.rabbitmq_stream.server import RabbitMQStream
    from fakebrokers.rabbitmq_stream.stream import Publisher, Stream
    from fakebrokers.rabbitmq_stream.subscription import Subscription

_UNKNOWN = "?"  #: what only the fields of earlier frames name, of a journal that does not have them
#: Requests that count once their answer says that they were granted.
_ASKED = frozenset({"Create", "Delete", "DeclarePublisher", "DeletePublisher", "Subscribe", "Unsubscribe"})


@dataclass
class _Publisher:
    stream: str
    reference: str
    published: int = 0
    settled: int = 0
    last: str = ""

    def __str__(self) -> str:
        name = f' as "{self.reference}"' if self.reference else ""
        last = f", last id {self.last}" if self.last else ""
        waits = f"{self.published - self.settled} unconfirmed"
        return f"to {self.stream}{name}: {self.published} published{last}, {waits}"


@dataclass
class _Subscription:
    stream: str
    credit: int | None  #: None: it began before the journal, or without fields
    last: int | None = None

    def add(self, credit: int) -> None:
        if self.credit is not None:
            self.credit += credit

    def __str__(self) -> str:
        last = "nothing delivered" if self.last is None else f"delivered up to offset {self.last}"
        credit = _UNKNOWN if self.credit is None else self.credit
        return f"of {self.stream}: credit {credit}, {last}"


@dataclass
class _Stream:
    published: int = 0
    confirmed: int = 0
    first: int | None = None
    last: int | None = None
    stored: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        said = [f"{self.published} published, {self.confirmed} confirmed"] if self.published else []
        if self.first is not None:
            said.append(f"delivered offsets {self.first}..{self.last}")
        said += [f'offset of "{name}" {offset}' for name, offset in self.stored.items()]
        return "; ".join(said) or "exists"


class StreamModel(BrokerModel):
    """Streams, publishers and subscriptions."""

    acks_each: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self._asked: dict[tuple[str, int], Seen] = {}
        self._streams: dict[str, _Stream] = {}
        self._publishers: dict[tuple[str, int | str], _Publisher] = {}
        self._subscriptions: dict[tuple[str, int | str], _Subscription] = {}

    def frame(self, seen: Seen) -> None:
        fields, kind = seen.fields, seen.kind
        if kind in _ASKED:
            self._asked[seen.connection, fields.get("correlation_id", 0)] = seen
        elif kind.endswith("Response"):
            asked = self._asked.pop((seen.connection, fields.get("correlation_id", 0)), None)
            if asked is not None and fields.get("code") == Code.OK:
                self._granted(asked)
        elif kind in ("Publish", "PublishConfirm", "PublishError"):
            self._published(seen)
        elif kind in ("Deliver", "Credit"):
            self._flowed(seen)
        elif kind == "StoreOffset":
            self.scope = name = str(fields.get("stream", ""))
            self._stream(name).stored[str(fields.get("reference"))] = fields.get("offset", 0)
            self._tell_stream(name)

    @classmethod
    def held(cls, server: RabbitMQStream) -> Iterator[tuple[str, str]]:
        for at, connection in server.engine.connections.items():
            session = connection.session
            if not isinstance(session, StreamSession):
                continue
            for number, publisher in session.publishing.publishers.items():
                yield f"{at} publisher {number}", _publisher_held(publisher)
            for number, subscription in session.consuming.subscriptions.items():
                yield f"{at} subscription {number}", _subscription_held(subscription)
        for (host, name), stream in server.broker.streams.items():
            yield f"stream {name if host == '/' else f'{host}/{name}'}", _stream_held(stream)

    def left(self, connection: str) -> None:
        super().left(connection)
        tables: tuple[dict[Any, Any], ...] = (self._asked, self._publishers, self._subscriptions)
        for table in tables:
            for key in [key for key in table if key[0] == connection]:
                del table[key]

    def _granted(self, asked: Seen) -> None:
        fields, at = asked.fields, asked.connection
        match asked.kind:
            case "Create":
                self._stream(fields["stream"])
                self._tell_stream(fields["stream"])
            case "Delete":
                self._streams.pop(fields["stream"], None)
                self.tell(f"stream {fields['stream']}", "")
            case "DeclarePublisher":
                number = fields["publisher_id"]
                made = self._publishers[at, number] = _Publisher(fields["stream"], fields["reference"])
                self.tell(f"{at} publisher {number}", str(made))
            case "DeletePublisher":
                self._publishers.pop((at, fields["publisher_id"]), None)
                self.tell(f"{at} publisher {fields['publisher_id']}", "")
            case "Subscribe":
                number = fields["subscription_id"]
                new = self._subscriptions[at, number] = _Subscription(fields["stream"], fields["credit"])
                self.tell(f"{at} subscription {number}", str(new))
            case "Unsubscribe":
                self._subscriptions.pop((at, fields["subscription_id"]), None)
                self.tell(f"{at} subscription {fields['subscription_id']}", "")

    def _published(self, seen: Seen) -> None:
        number = seen.fields.get("publisher_id", _UNKNOWN)
        publisher = self._publishers.setdefault((seen.connection, number), _Publisher(_UNKNOWN, ""))
        stream = self._stream(publisher.stream)
        self.scope = "" if publisher.stream == _UNKNOWN else publisher.stream
        if seen.kind == "Publish":
            publisher.published += seen.number
            publisher.last = seen.keys[-1] if len(seen.keys) == seen.number else ""
            stream.published += seen.number
        else:
            publisher.settled += seen.number
            stream.confirmed += seen.number * (seen.kind == "PublishConfirm")
        self.tell(f"{seen.connection} publisher {number}", str(publisher))
        self._tell_stream(publisher.stream)

    def _flowed(self, seen: Seen) -> None:
        number = seen.fields.get("subscription_id", _UNKNOWN)
        key = seen.connection, number
        subscription = self._subscriptions.setdefault(key, _Subscription(_UNKNOWN, None))
        if seen.kind == "Credit":
            subscription.add(seen.fields.get("credit", 0))
        else:
            subscription.add(-1)
            chunk = seen.fields.get("chunk", seen.fields)
            first = int(seen.keys[0])
            subscription.last = first + chunk.get("records", 1) - 1
            stream = self._stream(subscription.stream)
            self.scope = "" if subscription.stream == _UNKNOWN else subscription.stream
            stream.first = first if stream.first is None else min(stream.first, first)
            stream.last = max(subscription.last, stream.last or 0)
            self._tell_stream(subscription.stream)
        self.tell(f"{seen.connection} subscription {number}", str(subscription))

    def _stream(self, name: str) -> _Stream:
        return self._streams.setdefault(name, _Stream())

    def _tell_stream(self, name: str) -> None:
        self.tell(f"stream {name}", str(self._streams[name]))


def _stream_held(stream: Stream) -> str:
    log, tracking = stream.log, stream.tracking
    first = log.first_offset
    offsets = "" if first is None else f"offsets {first}..{log.next_offset - 1}, "
    said = [f"{offsets}next {log.next_offset}"]
    if stream.committed_chunk_id >= 0:
        said.append(f"committed chunk {stream.committed_chunk_id}")
    said.append(f"{len(stream)} message{'' if len(stream) == 1 else 's'}")
    if not stream.membership.can_write:
        said.append("no leader")
    said += [f'offset of "{name}" {offset}' for name, offset in islice(tracking.offsets.items(), SHOWN)]
    said += [f'last id of "{name}" {id}' for name, id in islice(tracking.sequences.items(), SHOWN)]
    return "; ".join(said)


def _publisher_held(publisher: Publisher) -> str:
    name = f' as "{publisher.reference}"' if publisher.reference else ""
    last = "nothing published" if publisher.last_id is None else f"last id {publisher.last_id}"
    return f"to {publisher.stream.name}{name}: {last}, {publisher.unconfirmed} unconfirmed"


def _subscription_held(subscription: Subscription) -> str:
    name = f' as "{subscription.name}"' if subscription.name else ""
    at = "not active" if subscription.position is None else f"next offset {subscription.position}"
    return f"of {subscription.stream.name}{name}: credit {subscription.credit}, {at}"
