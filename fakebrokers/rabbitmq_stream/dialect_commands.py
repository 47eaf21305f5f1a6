"""Sequences of commands by which a fake RabbitMQ is compared with a real one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import msgspec

from fakebrokers.core.dialect import MARK, Command, Login
from fakebrokers.core.frames import Frame, KeyType, unpack_keys
from fakebrokers.rabbitmq_stream import frames as f
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.publishing import publish

CLIENTS = 3
STREAMS = (f"{MARK}a", f"{MARK}b", f"{MARK}c")
_OTHERS = (f"{MARK}d", f"{MARK}ä")

#: Offset specifications: type and value.
Start = tuple[int, int | None]
_STARTS: tuple[Start, ...] = (
    *((1, None), (2, None), (3, None), (5, 0), (5, 4_102_444_800_000)),
    *((4, 0), (4, 1), (4, 2), (4, 3), (4, 5), (4, 8), (4, 100), (4, 2**63), (4, 2**64 - 1)),
)
#: Those that do not depend on where chunks end.
_PLAIN_STARTS: tuple[Start, ...] = ((1, None), (3, None), (5, 0), (4, 0), (4, 2**40))
#: More than any sequence uses.
_PLENTY = 1000

_encode = StreamCodec("client").encode


class Author:
    """Writes one sequence.

    Half of them publish several messages at once. Where the writer ends chunks is then a matter of time, so
    nothing may depend on it: see `_PLAIN_STARTS` and `_PLENTY`.
    """

    def __init__(self, random: Random, login: Login) -> None:
        self._random = random
        self._login = login
        self._commands: list[Command] = []
        self._many = random.random() < 0.5
        self._ids = 0  # of correlation
        self._published = 0
        self._publishers = [(0, 1)]  # clients and ids that were declared
        self._subscriptions = [(0, 1)]

    def sequence(self) -> list[Command]:
        """The commands of a few clients, and one that tidies up behind them."""
        clients = self._random.randint(1, CLIENTS)
        for client in range(clients):
            self.log_in(client)
        if self._random.random() < 0.8:
            self.say(0, f.Create(self.next_id(), STREAMS[0], {}))
            self.say(0, f.DeclarePublisher(self.next_id(), 1, self._reference(), STREAMS[0]))
        for _ in range(self._random.randint(4, 25)):
            make = self._random.choices(list(_MAKERS), weights=list(_MAKERS.values()))[0]
            make(self, self._random.randrange(clients))
        self.log_in(CLIENTS)
        for name in (*STREAMS, *_OTHERS):
            self.say(CLIENTS, f.Delete(self.next_id(), name))
        return self._commands

    def say(self, client: int, frame: Frame, *, answers: int = 0) -> None:
        """Send a frame in a segment of its own."""
        self._commands.append(Command(client, _encode(frame), _text(frame), answers=answers))

    def next_id(self) -> int:
        """A correlation id."""
        self._ids += 1
        return self._ids

    def log_in(self, client: int) -> None:
        """The handshake; every frame but Tune is answered before the next."""
        user, password = self._login if any(self._login) else ("guest", "guest")
        self.say(client, f.PeerProperties(self.next_id(), {}), answers=1)
        self.say(client, f.SaslHandshake(self.next_id()), answers=1)
        login = f.SaslAuthenticate(self.next_id(), "PLAIN", f"\0{user}\0{password}".encode())
        self._commands.append(Command(client, _encode(login), "SaslAuthenticate", answers=2))
        tune, enter = f.Tune(1_048_576, 0), f.Open(self.next_id(), "/")
        cut = len(_encode(tune))
        self._commands.append(Command(client, _encode(tune) + _encode(enter), "Tune + Open", cut, answers=1))

    def create(self, client: int) -> None:
        self.say(client, f.Create(self.next_id(), self._stream(), {}))

    def delete(self, client: int) -> None:
        self.say(client, f.Delete(self.next_id(), self._stream()))

    def declare(self, client: int) -> None:
        publisher = self._random.choice([1, 1, 1, 2, 255])
        self._publishers.append((client, publisher))
        self.say(client, f.DeclarePublisher(self.next_id(), publisher, self._reference(), self._stream()))

    def delete_publisher(self, client: int) -> None:
        owner, publisher = self._publisher(client)
        self.say(owner, f.DeletePublisher(self.next_id(), publisher))

    def publish(self, client: int) -> None:
        owner, publisher = self._publisher(client)
        count = self._random.choice([0, 1, 2, 5, 40]) if self._many else 1
        pairs = [(self._publishing_id(), b"%s %d" % (MARK.encode(), n)) for n in range(count)]
        self.say(owner, publish(publisher, pairs))

    def query_sequence(self, client: int) -> None:
        self.say(client, f.QueryPublisherSequence(self.next_id(), self._reference(), self._stream()))

    def subscribe(self, client: int) -> None:
        subscription = self._random.choice([1, 1, 2, 255])
        self._subscriptions.append((client, subscription))
        offset_type, offset = self._random.choice(_PLAIN_STARTS if self._many else _STARTS)
        credit = _PLENTY if self._many else self._random.choice([0, 1, 2, 3, 5, 10, 65535])
        self.say(
            client,
            f.Subscribe(self.next_id(), subscription, self._stream(), offset_type, offset, credit, None),
        )

    def credit(self, client: int) -> None:
        owner, subscription = self._subscription(client)
        credit = _PLENTY if self._many else self._random.choice([1, 1, 2, 3, 10, 0, -1])
        self.say(owner, f.Credit(subscription, credit))

    def unsubscribe(self, client: int) -> None:
        owner, subscription = self._subscription(client)
        self.say(owner, f.Unsubscribe(self.next_id(), subscription))

    def store(self, client: int) -> None:
        offset = self._random.choice([0, 1, 2, 5, 100, 2**64 - 1])
        self.say(client, f.StoreOffset(self._reference() or "r", self._stream(), offset))

    def query_offset(self, client: int) -> None:
        self.say(client, f.QueryOffset(self.next_id(), self._reference() or "r", self._stream()))

    def metadata(self, client: int) -> None:
        names = [self._stream() for _ in range(self._random.choice([0, 1, 1, 2, 3]))]
        self.say(client, f.Metadata(self.next_id(), tuple(names)))

    def leave(self, client: int) -> None:
        self._commands.append(Command(client, None, "leaves"))

    def _stream(self) -> str:
        odd = self._random.choice([*_OTHERS, "", "amq.x", f"{MARK}a\n"])
        return self._random.choices([*STREAMS, odd], [10, 4, 2, 1])[0]

    def _reference(self) -> str:
        return self._random.choices(["", "r", "q", "ü", "R" * 255, "R" * 256], [6, 5, 3, 0.4, 0.4, 0.4])[0]

    def _publisher(self, client: int) -> tuple[int, int]:
        return self._random.choice(self._publishers) if self._random.random() < 0.9 else (client, 7)

    def _subscription(self, client: int) -> tuple[int, int]:
        return self._random.choice(self._subscriptions) if self._random.random() < 0.9 else (client, 7)

    def _publishing_id(self) -> int:
        kind = self._random.random()
        if kind < 0.8:
            self._published += 1
            return self._published
        if kind < 0.97:
            return max(0, self._published - self._random.randint(-5, 4))
        return self._random.choice([0, 2**63, 2**64 - 1])


def _text(frame: Frame) -> str:
    match frame:
        case f.Publish(publisher, count, ids):
            found = unpack_keys(ids, KeyType.U64)
            shown = found if count < 6 else f"{found[0]} ... {found[-1]}"
            return f"Publish {publisher}: {shown}"
    values = msgspec.structs.astuple(frame)
    return f"{type(frame).__name__} {' '.join(str(each) or repr(each) for each in values)}"


_MAKERS: Mapping[Callable[[Author, int], None], int] = {
    Author.create: 6,
    Author.delete: 3,
    Author.declare: 9,
    Author.delete_publisher: 2,
    Author.publish: 20,
    Author.query_sequence: 5,
    Author.subscribe: 9,
    Author.credit: 7,
    Author.unsubscribe: 2,
    Author.store: 6,
    Author.query_offset: 5,
    Author.metadata: 4,
    Author.leave: 1,
}
