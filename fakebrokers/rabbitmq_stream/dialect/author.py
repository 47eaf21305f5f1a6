"""Writes sequences of commands by which a fake RabbitMQ is compared with a real one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random

from fakebrokers.core.dialect import MARK, Command, Login
from fakebrokers.rabbitmq_stream import frames as f
from fakebrokers.rabbitmq_stream.dialect.commands import CLIENTS, Commands
from fakebrokers.rabbitmq_stream.dialect.handshake import Handshake
from fakebrokers.rabbitmq_stream.dialect.rubbish import batch, rubbish
from fakebrokers.rabbitmq_stream.publishing import publish

STREAMS = (f"{MARK}a", f"{MARK}b", f"{MARK}c")
_OTHERS = (f"{MARK}d", f"{MARK}ä")

#: Offset specifications: type and value.
Start = tuple[int, int | None]
_STARTS: tuple[Start, ...] = (
    *((1, None), (2, None), (3, None), (5, 0), (5, 4_102_444_800_000), (5, 2**63 - 1)),
    *((4, 0), (4, 1), (4, 2), (4, 3), (4, 5), (4, 8), (4, 100), (4, 2**63), (4, 2**64 - 1)),
)
#: Those that do not depend on where chunks end.
_PLAIN_STARTS: tuple[Start, ...] = ((1, None), (3, None), (5, 0), (4, 0), (4, 2**40))
#: More than any sequence uses.
_PLENTY = 1000

#: Values of arguments of Create, the first one the most often. Where a number is expected, there is one:
#: else a process that all connections share crashes, and a few crashes in a row end the listener.
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "max-length-bytes": ("5000000000", "1000", "-1", "0"),
    "max-age": ("1h", "1 fortnight", "0s", "10"),
    "initial-cluster-size": ("1", "3", "0", "-1"),
    "queue-leader-locator": ("client-local", "balanced", "random", "least-leaders", "bad", ""),
    "stream-filter-size-bytes": ("16", "255", "15", "256"),
    "foo": ("bar", ""),
    "queue-type": ("stream", "classic"),
    "x-queue-type": ("classic",),
}
#: Values of the argument that a stream with several segments has. Where one is too small for a chunk, a real
#: writer opens segments without end.
_SEGMENTS = ("1000000", "1000", "500", "300", "3000000000", "3000000001")
#: Values of properties of Subscribe.
_PROPERTIES: Mapping[str, tuple[str, ...]] = {
    "name": ("g", "h", "", "n" * 255, "n" * 256),
    "single-active-consumer": ("true", "false", "TRUE"),
    "super-stream": (f"{MARK}x",),
    "filter.0": ("f", "g", ""),
    "match-unfiltered": ("true", "false", "yes"),
    "foo": ("bar", ""),
}


class Author(Commands):
    """Writes one sequence.

    Half of them publish several messages at once. Where the writer ends chunks is then a matter of time, so
    nothing may depend on it: see `_PLAIN_STARTS` and `_PLENTY`.
    """

    def __init__(self, random: Random, login: Login) -> None:
        super().__init__(random)
        self._handshake = Handshake(self, login if any(login) else Login("guest", "guest"))
        self._many = random.random() < 0.5
        self._published = 0
        self._publishers = [(0, 1)]  # clients and ids that were declared
        self._subscriptions = [(0, 1)]

    def sequence(self) -> list[Command]:
        """The commands of a few clients, and one that tidies up after them."""
        clients = self.random.randint(1, CLIENTS)
        if self.random.random() < 0.1:
            self._handshake.say_oddly(partial(self.metadata, 0), self._others())
        else:
            self._talk(clients)
        self._handshake.say(CLIENTS)
        for name in (*STREAMS, *_OTHERS):
            self.say(CLIENTS, f.Delete(self.next_id(), name))
        return self.said

    def _others(self) -> list[Callable[[], None]]:
        """What has no place in a handshake."""
        return [partial(each, 0) for each in (self.heartbeat, self.create, self.close, self.rubbish)]

    def _talk(self, clients: int) -> None:
        for client in range(clients):
            self._handshake.say(client)
        if self.random.random() < 0.8:
            self.say(0, f.Create(self.next_id(), STREAMS[0], self._arguments()))
            self.say(0, f.DeclarePublisher(self.next_id(), 1, self._reference(), STREAMS[0]))
        for _ in range(self.random.randint(4, 25)):
            make = self.random.choices(list(MAKERS), weights=list(MAKERS.values()))[0]
            make(self, self.random.randrange(clients))

    # --- commands -----------------------------------------------------------------------------

    def create(self, client: int) -> None:
        self.say(client, f.Create(self.next_id(), self._stream(), self._arguments()))

    def delete(self, client: int) -> None:
        self.say(client, f.Delete(self.next_id(), self._stream()))

    def declare(self, client: int) -> None:
        publisher = self.random.choice([1, 1, 1, 2, 255])
        self._publishers.append((client, publisher))
        self.say(client, f.DeclarePublisher(self.next_id(), publisher, self._reference(), self._stream()))

    def delete_publisher(self, client: int) -> None:
        owner, publisher = self._publisher(client)
        self.say(owner, f.DeletePublisher(self.next_id(), publisher))

    def publish(self, client: int) -> None:
        owner, publisher = self._publisher(client)
        if self.random.random() < 0.15:
            self.say(owner, batch(self.random, publisher, self._publishing_id()))
            return
        count = self.random.choice([0, 1, 2, 5, 40]) if self._many else 1
        rest = b"" if self._many else b"." * self.random.choice([0, 0, 100, 200])
        pairs = [(self._publishing_id(), b"%s %d" % (MARK.encode(), n) + rest) for n in range(count)]
        values = self.random.choice(["", "f", "g", None]) if self.random.random() < 0.02 else ""
        self.say(owner, publish(publisher, pairs, [values] * count if values != "" else ()))

    def query_sequence(self, client: int) -> None:
        self.say(client, f.QueryPublisherSequence(self.next_id(), self._reference(), self._stream()))

    def subscribe(self, client: int) -> None:
        subscription = self.random.choice([1, 1, 2, 255])
        self._subscriptions.append((client, subscription))
        offset_type, offset = self.random.choice(_PLAIN_STARTS if self._many else _STARTS)
        if self.random.random() < 0.01:
            offset_type, offset = self.random.choice([0, 6, 65535]), None
        credit = _PLENTY if self._many else self.random.choice([0, 1, 2, 3, 5, 10, 65535])
        properties = self._some(_PROPERTIES, 0.3) if self.random.random() < 0.4 else None
        self.say(
            client,
            f.Subscribe(
                self.next_id(), subscription, self._stream(), offset_type, offset, credit, properties
            ),
        )

    def credit(self, client: int) -> None:
        owner, subscription = self._subscription(client)
        credit = _PLENTY if self._many else self.random.choice([1, 1, 2, 3, 10, 0, -1])
        self.say(owner, f.Credit(subscription, credit))

    def unsubscribe(self, client: int) -> None:
        owner, subscription = self._subscription(client)
        self.say(owner, f.Unsubscribe(self.next_id(), subscription))

    def store(self, client: int) -> None:
        offset = self.random.choice([0, 1, 2, 5, 100, 2**64 - 1])
        self.say(client, f.StoreOffset(self._reference() or "r", self._stream(), offset))

    def query_offset(self, client: int) -> None:
        self.say(client, f.QueryOffset(self.next_id(), self._reference() or "r", self._stream()))

    def metadata(self, client: int) -> None:
        names = [self._stream() for _ in range(self.random.choice([0, 1, 1, 2, 3]))]
        self.say(client, f.Metadata(self.next_id(), tuple(names)))

    def route(self, client: int) -> None:
        """There are no super streams, which only later versions can create, but exchanges."""
        exchange = self.random.choice([self._stream(), "", "amq.topic"])
        key = self.random.choice(["0", "", self._stream()])
        self.say(client, f.Route(self.next_id(), key, exchange))

    def partitions(self, client: int) -> None:
        """Not of the exchange without a name: it has all streams that others have made."""
        exchange = self.random.choice([self._stream() or "amq.direct", "amq.topic"])
        self.say(client, f.Partitions(self.next_id(), exchange))

    def repeat_handshake(self, client: int) -> None:
        """What belongs in front of Open."""
        number = self.next_id()
        frames = [
            *(f.PeerProperties(number, {}), f.SaslHandshake(number), f.Tune(4096, 0), f.Open(number, "/")),
            *(f.SaslAuthenticate(number, "PLAIN", b"\0who\0what"), f.SaslAuthenticate(number, "PLAIN", None)),
        ]
        self.say(client, self.random.choice(frames))

    def heartbeat(self, client: int) -> None:
        self.say(client, f.Heartbeat())

    def rubbish(self, client: int) -> None:
        self.add(Command(client, *rubbish(self.random, self.next_id())))

    def close(self, client: int) -> None:
        self.say(client, f.Close(self.next_id(), self.random.choice([1, 0, 13]), self.random.choice("OK")))

    def leave(self, client: int) -> None:
        self.add(Command(client, None, "leaves"))

    # --- fields -------------------------------------------------------------------------------

    def _stream(self) -> str:
        odd = self.random.choice([*_OTHERS, "", "amq.x", f"{MARK}a\n"])
        return self.random.choices([*STREAMS, odd], [10, 4, 2, 1])[0]

    def _reference(self) -> str:
        return self.random.choices(["", "r", "q", "ü", "R" * 255, "R" * 256], [6, 5, 3, 0.4, 0.4, 0.4])[0]

    def _arguments(self) -> dict[str, str]:
        if self.random.random() < 0.6:
            return {}
        found = self._some(_ARGUMENTS, 0.2)
        if not self._many and self.random.random() < 0.5:
            found["stream-max-segment-size-bytes"] = self.random.choice(_SEGMENTS)
            if "max-age" in found:
                found["max-age"] = "1h"  # any other text ends the process that drops segments
        return found

    def _some(self, values: Mapping[str, tuple[str, ...]], part: float) -> dict[str, str]:
        names = [name for name in values if self.random.random() < part]
        return {
            name: values[name][0] if self.random.random() < 0.6 else self.random.choice(values[name])
            for name in names
        }

    def _publisher(self, client: int) -> tuple[int, int]:
        return self.random.choice(self._publishers) if self.random.random() < 0.9 else (client, 7)

    def _subscription(self, client: int) -> tuple[int, int]:
        return self.random.choice(self._subscriptions) if self.random.random() < 0.9 else (client, 7)

    def _publishing_id(self) -> int:
        kind = self.random.random()
        if kind < 0.8:
            self._published += 1
            return self._published
        if kind < 0.97:
            return max(0, self._published - self.random.randint(-5, 4))
        return self.random.choice([0, 2**63, 2**64 - 1])


MAKERS: Mapping[Callable[[Author, int], None], float] = {
    Author.create: 6,
    Author.delete: 3,
    Author.declare: 9,
    Author.delete_publisher: 2,
    Author.publish: 24,
    Author.query_sequence: 5,
    Author.subscribe: 9,
    Author.credit: 7,
    Author.unsubscribe: 2,
    Author.store: 6,
    Author.query_offset: 5,
    Author.metadata: 4,
    Author.route: 1,
    Author.partitions: 1,
    Author.repeat_handshake: 0.3,
    Author.heartbeat: 0.5,
    Author.rubbish: 0.8,
    Author.close: 0.5,
    Author.leave: 1,
}
