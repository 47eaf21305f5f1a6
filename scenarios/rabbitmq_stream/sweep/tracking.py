"""What the frames of one connection mean, in order (docs/protocols/rabbitmq-stream.md, 5, 6 and 8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conformance.decoders.rabbitmq_stream.messages import (
    MAGIC,
    batch_bodies,
    entries_in,
    names_its_length,
    offset_behind,
    publishing_ids,
)
from conformance.run.facts import (
    ArrivedFrame,
    Dropped,
    Facts,
    IdUse,
    Noted,
    Question,
    Refused,
    Settled,
    Window,
    Written,
)
from conformance.run.showing import shown
from conformance.run.trace import Position
from conformance.run.traits import Pairing, Questions
from conformance.run.view import Agreed, Conn
from fakebrokers.rabbitmq_stream.codes import Code, OffsetType
from fakebrokers.rabbitmq_stream.frames import (
    Close,
    Credit,
    DeclarePublisher,
    DeletePublisher,
    Deliver,
    ExchangeCommandVersions,
    MetadataResponse,
    MetadataUpdate,
    Open,
    Partitions,
    PartitionsResponse,
    PeerProperties,
    Publish,
    PublishConfirm,
    PublishError,
    Route,
    RouteResponse,
    SaslAuthenticate,
    SaslHandshake,
    StoreOffset,
    Subscribe,
    Tune,
    Unsubscribe,
)
from scenarios.rabbitmq_stream.sweep.records import records_of

HANDSHAKE = (PeerProperties, SaslHandshake, SaslAuthenticate, Open, ExchangeCommandVersions)
PUBLISHER, SUBSCRIPTION = "publisher", "subscription"

#: The start of a subscription as ops write it, for each offset type.
WORDS = {kind: kind.name.lower() for kind in OffsetType}


def filter_of(properties: Mapping[str, str]) -> dict[str, Any]:
    """What the properties of a subscription say of its filter (document, Subscribe)."""
    values = sorted(value for name, value in properties.items() if name.startswith("filter."))
    return {"values": values, "unfiltered": properties.get("match-unfiltered") == "true"}


class Tracking:
    """One pass over a connection."""

    def __init__(self, questions: Questions, conn: Conn, facts: Facts) -> None:
        self.conn = conn
        self.facts = facts
        self._pairing = Pairing(questions, conn, facts)
        self._names: dict[int, tuple[str, str]] = {}  #: publisher id to stream and reference
        self._dropped: set[int] = set()  #: publishers that the server has dropped
        self._declared: set[int] = set()  #: publishers that the server has accepted
        self._deleted: set[int] = set()  #: publishers that the client has deleted
        self._second: dict[int, IdUse] = {}  #: by the question: an id that the server knows is declared again
        self._ids: dict[tuple[str, int], IdUse] = {}
        self._windows: dict[int, Window] = {}
        self._asked: dict[int, Window] = {}  #: by correlation id
        self._supers: dict[int, str] = {}  #: by the request for its partitions
        self._challenge: Question | None = None  #: of the login, the last one
        self._steps: dict[type, Callable[[Any, Position], None]] = {
            Close: self._close,
            Credit: self._credit,
            DeclarePublisher: self._declare,
            DeletePublisher: self._delete,
            Deliver: self._deliver,
            ExchangeCommandVersions: self._exchange,
            MetadataUpdate: self._moved,
            Open: self._open,
            Partitions: self._ask_partitions,
            PartitionsResponse: self._partitions,
            Publish: self._publish,
            PublishConfirm: self._confirm,
            PublishError: self._refuse,
            Route: self._ask_partitions,
            RouteResponse: self._partitions,
            SaslAuthenticate: self._authenticate,
            StoreOffset: self._store,
            Subscribe: self._subscribe,
            Unsubscribe: self._unsubscribe,
        }

    def run(self) -> None:
        """Note all frames of the connection."""
        for seen in self.conn.frames:
            question = self._pairing.see(seen)
            if question is not None and question.answer is seen.frame and seen.direction == "out":
                self._answered(question, seen.at)
            frame = seen.frame
            if isinstance(frame, Close):
                self._close(frame, seen.at, seen.direction)
            elif isinstance(frame, Tune):
                if seen.direction == "in":
                    self.conn.agreed = Agreed(frame.heartbeat, frame.frame_max, seen.at)
            elif type(frame) in self._steps:
                self._steps[type(frame)](frame, seen.at)
        for window in self._windows.values():
            window.closed = window.closed or self.conn.ended

    # the connection

    def _close(self, frame: Any, at: Position, direction: str = "in") -> None:
        if direction == "in":
            self.conn.client_closing = self.conn.client_closing or at
        else:
            self.conn.server_closing = self.conn.server_closing or at

    def _open(self, frame: Open, at: Position) -> None:
        self.conn.introduced.append((at, "vhost", frame.virtual_host))

    def _authenticate(self, frame: SaslAuthenticate, at: Position) -> None:
        """Another round of it is the answer to a challenge."""
        self.conn.introduced.append((at, "mechanism", frame.mechanism))
        if frame.mechanism == "PLAIN":
            user = bytes(frame.data or b"").split(b"\0")[1:2]
            self.conn.introduced.append((at, "user", b"".join(user).decode(errors="replace")))
        if self._challenge is not None and self._challenge.answered is None:
            self._challenge.answer, self._challenge.answered = frame, at

    def _exchange(self, frame: Any, at: Position) -> None:
        self.conn.ready = None  # until this is answered too

    def _answered(self, question: Question, at: Position) -> None:
        asked, code = question.frame, question.code
        if isinstance(question.answer, MetadataResponse):
            rows = question.answer.streams
            bad = [Refused(at, entry.stream, entry.code) for entry in rows if entry.code != Code.OK]
            self.facts.refused += bad
        elif not question.accepted and isinstance(stream := getattr(asked, "stream", None), str):
            self.facts.refused.append(Refused(at, stream, code))
        if isinstance(asked, HANDSHAKE):
            if isinstance(asked, ExchangeCommandVersions) or (isinstance(asked, Open) and question.accepted):
                self.conn.ready = at
            elif code == Code.SASL_CHALLENGE and isinstance(asked, SaslAuthenticate):
                assert question.answer is not None
                self._challenge = Question(self.conn, question.answer, None, at)
                self.facts.asked_back.append(self._challenge)
            elif not question.accepted:
                self.conn.turned_away = self.conn.turned_away or (at, code)
        elif isinstance(asked, DeclarePublisher):
            self._is_declared(asked, bool(question.accepted), at)
        elif isinstance(asked, Subscribe):
            window = self._asked[asked.correlation_id]
            if question.accepted:
                window.opened = at
            else:
                window.refused, window.closed = code, at
                self._free(SUBSCRIPTION, asked.subscription_id, at)

    def _take(self, space: str, number: int, at: Position, what: str) -> None:
        self._ids[space, number] = self._use(space, number, at, what)

    def _use(self, space: str, number: int, at: Position, what: str) -> IdUse:
        use = IdUse(self.conn, space, number, at, what)
        self.facts.ids.append(use)
        return use

    def _free(self, space: str, number: int, at: Position) -> None:
        use = self._ids.get((space, number))
        if use is not None and use.freed is None:
            use.freed = at

    def _moved(self, frame: MetadataUpdate, at: Position) -> None:
        """The server has dropped all that this connection had of the stream; what it opens later stays."""
        self.facts.dropped.append(Dropped(self.conn, at, frame.stream))
        for number, (stream, _) in self._names.items():
            if stream == frame.stream and number in self._declared:
                self._dropped.add(number)
                self._free(PUBLISHER, number, at)
        for number, window in self._windows.items():
            if window.target == frame.stream and window.opened is not None:
                window.closed = window.closed or at
                self._free(SUBSCRIPTION, number, at)

    def _ask_partitions(self, frame: Partitions | Route, at: Position) -> None:
        self._supers[frame.correlation_id] = frame.super_stream

    def _partitions(self, frame: PartitionsResponse | RouteResponse, at: Position) -> None:
        if frame.correlation_id in self._supers:
            self.facts.leads_to[self._supers[frame.correlation_id]].update(frame.streams)

    # publishing

    def _declare(self, frame: DeclarePublisher, at: Position) -> None:
        number = frame.publisher_id
        whole = len(frame.reference or "") * 6 + 2  # not cut, as JSON: it also says which ones are the same
        name = f" with the reference {shown(frame.reference, whole)}" if frame.reference else ""
        what = f"{frame.stream}{name}"
        if number in self._declared - self._deleted - self._dropped:
            self._second[frame.correlation_id] = self._use(PUBLISHER, number, at, what)
            return
        self._names[number] = frame.stream, frame.reference
        for numbers in (self._dropped, self._deleted, self._declared):
            numbers.discard(number)
        self._take(PUBLISHER, number, at, what)

    def _is_declared(self, asked: DeclarePublisher, accepted: bool, at: Position) -> None:
        second = self._second.pop(asked.correlation_id, None)
        if accepted:
            self._declared.add(asked.publisher_id)
            self._names[asked.publisher_id] = asked.stream, asked.reference
        elif second is not None:  # the first one stays
            second.freed = at
        else:
            self._free(PUBLISHER, asked.publisher_id, at)

    def _delete(self, frame: DeletePublisher, at: Position) -> None:
        self._deleted.add(frame.publisher_id)
        self._free(PUBLISHER, frame.publisher_id, at)

    def _place(self, publisher_id: int, publishing_id: int) -> tuple[str, str, int]:
        return (*self._names.get(publisher_id, ("", "")), publishing_id)

    def _publish(self, frame: Publish, at: Position) -> None:
        if frame.publisher_id not in self._names or frame.publisher_id in self._deleted:
            self.facts.misused.append((at, f"messages of publisher {frame.publisher_id}, which is not there"))
        is_named = bool(self._names.get(frame.publisher_id, ("", ""))[1])
        for one, entry in zip(publishing_ids(frame.publishing_ids), entries_in(frame.entries), strict=True):
            data = frame.entries[entry.body : entry.end]
            packed = None if entry.compression is None else batch_bodies(entry, data)
            self.facts.written.append(
                Written(
                    self.conn,
                    at,
                    self._place(frame.publisher_id, one),
                    data if entry.compression is None else None,
                    is_named,
                    producer=frame.publisher_id,
                    packed=None if packed is None else tuple(packed),
                )
            )

    def _settle(self, publisher_id: int, one: int, at: Position, code: int | None) -> None:
        if publisher_id in self._names:
            is_open = publisher_id not in self._dropped
            place = self._place(publisher_id, one)
            self.facts.settled.append(Settled(self.conn, at, place, code is None, code, is_open))

    def _confirm(self, frame: PublishConfirm, at: Position) -> None:
        for one in publishing_ids(frame.publishing_ids):
            self._settle(frame.publisher_id, one, at, None)

    def _refuse(self, frame: PublishError, at: Position) -> None:
        for one, code in frame.errors:
            self._settle(frame.publisher_id, one, at, code)
        if any(code == Code.PUBLISHER_DOES_NOT_EXIST for _, code in frame.errors):
            self._dropped.add(frame.publisher_id)
            self._free(PUBLISHER, frame.publisher_id, at)

    # consuming

    def _subscribe(self, frame: Subscribe, at: Position) -> None:
        start = {"type": WORDS[OffsetType(frame.offset_type)], "value": frame.offset}
        properties = dict(frame.properties or {})
        settings = {"credit": frame.credit, "properties": properties, "filter": filter_of(properties)}
        window = Window(self.conn, frame.stream, frame.subscription_id, start, at, settings)
        self._windows[frame.subscription_id] = self._asked[frame.correlation_id] = window
        self.facts.windows.append(window)
        self._take(SUBSCRIPTION, frame.subscription_id, at, frame.stream)

    def _unsubscribe(self, frame: Unsubscribe, at: Position) -> None:
        window = self._windows.get(frame.subscription_id)
        if window is not None:
            window.unsubscribed = window.unsubscribed or at
            window.closed = window.closed or at
        self._free(SUBSCRIPTION, frame.subscription_id, at)

    def _deliver(self, frame: Deliver, at: Position) -> None:
        window = self._windows.get(frame.subscription_id)
        if window is None or window.opened is None or self.conn.server_closing is not None:
            return  # for no subscription; or after the server's Close, which ends everything
        if window.closed is None or window.unsubscribed is not None:
            chunk = frame.chunk
            records, damaged = records_of(chunk)
            next_position = offset_behind(chunk) if chunk.magic == MAGIC else None
            certain, doubtful = (records, ()) if names_its_length(chunk) else ((), records)
            window.arrivals.append(ArrivedFrame(at, certain, next_position, damaged, doubtful))
        else:
            window.is_disputed = True

    def _credit(self, frame: Credit, at: Position) -> None:
        window = self._windows.get(frame.subscription_id)
        if window is None or window.unsubscribed is not None:
            self.facts.misused.append(
                (at, f"credit for subscription {frame.subscription_id}, which is not there")
            )
        else:
            window.granted.append((at, frame.credit))

    def _store(self, frame: StoreOffset, at: Position) -> None:
        self.facts.noted.append(Noted(at, frame.stream, frame.reference, frame.offset))
