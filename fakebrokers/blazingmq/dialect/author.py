"""Writes sequences of commands by which a fake BlazingMQ is compared with a real broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

import msgspec

from fakebrokers.blazingmq import frames as f
from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import NO_PRIORITY, ExpressionVersion, Language, QueueFlag
from fakebrokers.blazingmq.dialect.posts import Posts
from fakebrokers.blazingmq.domains import EXAMPLE_APPS, Domain
from fakebrokers.blazingmq.schema import (
    ConsumerInfo,
    Expression,
    GuidInfo,
    HandleParameters,
    QueueStreamParameters,
    StreamParameters,
    SubQueueId,
    Subscription,
)
from fakebrokers.core.dialect import MARK, Command
from fakebrokers.core.frames import Frame

CLIENTS = 3
#: What the real broker has to have, too; the first three are those that it is shipped with.
DOMAINS: Mapping[str, Domain] = {
    "bmq.test.mem.priority": Domain(),
    "bmq.test.mem.fanout": Domain("fanout", EXAMPLE_APPS),
    "bmq.test.mem.broadcast": Domain("broadcast"),
    "bmq.compare.small": Domain(queue_messages=3, queue_bytes=2000, max_producers=2, max_consumers=2),
    "bmq.compare.poison": Domain(max_delivery_attempts=2),
}
QUEUES = tuple(f"bmq://{domain}/{MARK}" for domain in DOMAINS)
_FANOUT, _BROADCAST = QUEUES[1:3]
#: Numbers of subscriptions are above those of streams, which stand in their place in the older form of a
#: configuration: where one number is for two apps of a handle, brokers die.
_SUBSCRIPTIONS = 100
#: Those that only some queues have.
_APPS = ("foo", "__default", "")
#: Clients of a sequence whose consumers have different priorities.
_APART = 16
_NAMES = (
    *("", "bmq", "bmq://", "bmq:///q", "bmq://bmq.test.mem.priority", "bmq://bmq.test.mem.priority/"),
    *(f"tcp://bmq.test.mem.priority/{MARK}", f"{QUEUES[0]}/x", f"{QUEUES[0]}~", f"{QUEUES[0]} "),
    *(f"{QUEUES[0]}?", f"{QUEUES[0]}?id", f"{QUEUES[0]}?id=", f"{QUEUES[0]}?x=foo", f"{QUEUES[0]}?id=a&b=c"),
    *(f"bmq://bmq.test.mem.priority.~/{MARK}", f"bmq://bmq.test.mem.priority.~a.b/{MARK}"),
    *(f"{QUEUES[0]}{'q' * 58}", f"{QUEUES[0]}{'q' * 59}", f"bmq://no.such.domain/{MARK}", f"bmq://ä/{MARK}"),
)
_EXPRESSIONS = (
    "",
    "",
    "",
    "n > 0",
    "n == 1",
    's == "a" || n < 0',
    "exists(s)",
    "n >",
    "x y",
    "n",
    "n + 1 > 2",
)
_CPP = "PROTOCOL_ENCODING:BER,JSON;MPS:MESSAGE_PROPERTIES_EX"
#: Who says what at first: of a client that makes GUIDs, and of one that counts its messages.
_FEATURES = (_CPP, _CPP, "PROTOCOL_ENCODING:JSON;MPS:MESSAGE_PROPERTIES_EX", "PROTOCOL_ENCODING:BER,JSON", "")

_encode = BlazingCodec().encode


class Opened(NamedTuple):
    """What a client has opened, or has tried to open."""

    client: int
    parameters: HandleParameters

    @property
    def app(self) -> str:
        """The app that it reads."""
        stream = self.parameters.sub_id_info
        return stream.app_id if stream else "__default"

    @property
    def sub_id(self) -> int:
        """Its number of that."""
        stream = self.parameters.sub_id_info
        return stream.sub_id if stream else 0


class Author:
    """Writes one sequence.

    Attributes:
        random: Decides.
        opened: What was opened.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.opened: list[Opened] = []
        self._posts = Posts(random)
        self._commands: list[Command] = []
        self._requests = 0
        self._subscriptions = _SUBSCRIPTIONS
        self._clients = 0
        self._makes_guids: dict[int, bool] = {}
        self._numbers: dict[int, dict[str, int]] = {}
        self._queues = random.sample(QUEUES, random.choice([1, 1, 2]))

    def sequence(self) -> list[Command]:
        """The commands of a few clients."""
        for _ in range(self.random.randint(1, CLIENTS)):
            self.connect()
        for _ in range(self.random.randint(5, 25)):
            make = self.random.choices(list(MAKERS), weights=list(MAKERS.values()))[0]
            make(self)
        return self._commands

    def connect(self) -> int:
        """A client comes, and in most cases opens a queue; its number."""
        client, self._clients = self._clients, self._clients + 1
        features = self.random.choice(_FEATURES)
        made = features != _FEATURES[2]
        self._makes_guids[client] = made
        identity = f.ClientIdentity(
            1,
            999_999,
            1,
            "compare",
            session_id=client + 1,
            features=features,
            sdk_language=Language.E_CPP if made else Language.E_JAVA,
            guid_info=GuidInfo(f"0A0B0C0D0E{client:02X}", 1) if made else None,
        )
        self._say(client, identity, answers=1)
        if self.random.random() < 0.9:
            self._open(client)
        return client

    # --- commands -----------------------------------------------------------------------------

    def open(self) -> None:
        self._open(self._anybody())

    def _open(self, client: int) -> None:
        uri = self.random.choice(self._queues)
        kind = self.random.choice(["read", "write", "both"])
        there = [each for each in self.opened if each.client == client]
        q_id = len({each.parameters.q_id for each in there})
        for each in there:
            if each.parameters.uri.partition("?")[0] == uri:
                q_id = each.parameters.q_id
        stream = None
        if uri == _FANOUT and kind != "write":
            app = self.random.choice([*EXAMPLE_APPS, "foo", "none"])
            numbers = self._numbers.setdefault(client, {})  # of two apps with one number brokers die, too
            kind, stream = "read", SubQueueId(numbers.setdefault(app, len(numbers) + 1), app)
        parameters = _parameters(uri + (f"?id={stream.app_id}" if stream else ""), q_id, stream, kind)
        self._ask(client, f.OpenQueue(self._number(), parameters))
        self.opened.append(Opened(client, parameters))
        if kind != "write" and self.random.random() < 0.9:
            self._configure(self.opened[-1])

    def open_oddly(self) -> None:
        """What is refused, for one reason or two."""
        client = self._anybody()
        replace = msgspec.structs.replace
        good = _parameters(self.random.choice(self._queues), 50, None, self.random.choice(["read", "write"]))
        changes: list[HandleParameters] = [
            *(replace(good, uri=uri) for uri in self.random.sample(_NAMES, 4)),
            *(replace(good, read_count=count, write_count=0) for count in (0, 2, -1)),
            *(replace(good, admin_count=1), replace(good, flags=int(QueueFlag.ADMIN) | good.flags)),
            *(replace(good, flags=flags) for flags in (0, 2, 4, 6, 8, 14)),
            *(replace(good, q_id=q_id) for q_id in (2**32 - 10, 2**32 - 1, 2**31)),
            *(replace(good, sub_id_info=SubQueueId(7 + n, app)) for n, app in enumerate(_APPS)),
        ]
        asked = self.random.choice(changes)
        if self.random.random() < 0.3:
            asked = replace(asked, admin_count=1)
        self._ask(client, f.OpenQueue(self._number(), asked))

    def open_another_by_the_same_number(self) -> None:
        handle = self._handle()
        if handle is not None:
            uri = self.random.choice([each for each in QUEUES if each != _FANOUT])
            asked = _parameters(uri, handle.parameters.q_id, None, "write")
            self._ask(handle.client, f.OpenQueue(self._number(), asked))

    def configure(self) -> None:
        handle = self._handle(reads=True)
        if handle is not None:
            self._configure(handle)

    def _configure(self, handle: Opened) -> None:
        count = self.random.choice([0, 1, 1, 1, 1, 1, 2])
        if handle.parameters.uri.startswith(_BROADCAST):  # whose first group is that of the first consumer
            count = min(count, 1)
        stream = StreamParameters(handle.app, tuple([self._subscription(handle) for _ in range(count)]))
        number, q_id = self._number(), handle.parameters.q_id
        if self.random.random() < 0.9:
            self._ask(handle.client, f.ConfigureStream(number, q_id, stream))
            return
        consumer = self._consumer(handle) if count else ConsumerInfo(0, 0, NO_PRIORITY, 0)
        older = QueueStreamParameters(handle.parameters.sub_id_info, *msgspec.structs.astuple(consumer))
        self._ask(handle.client, f.ConfigureQueueStream(number, q_id, older))

    def configure_oddly(self) -> None:
        handle = self._handle()
        if handle is not None:
            q_id, app = self.random.choice([(99, handle.app), (handle.parameters.q_id, "other")])
            stream = StreamParameters(app, (self._subscription(handle),))
            self._ask(handle.client, f.ConfigureStream(self._number(), q_id, stream))

    def post(self) -> None:
        handle = self._handle(reads=False)
        client = handle.client if handle else self._anybody()
        q_id = handle.parameters.q_id if handle and self.random.random() < 0.97 else 99
        count = self.random.choice([1, 1, 1, 2, 4])
        made = self._makes_guids[client]
        messages = [self._posts.message(q_id, makes_guids=made) for _ in range(count)]
        if made and handle and handle.parameters.uri == _BROADCAST:  # of doubles one is delivered, or each
            messages = list({each.guid: each for each in messages}.values())
        text = ", ".join(self._posts.text(each) for each in messages)
        self._commands.append(Command(client, _encode(f.Put(tuple(messages))), f"PUT queue {q_id}: {text}"))

    def confirm(self) -> None:
        handle = self._handle(reads=True)
        if handle is None or not self._posts.guids:
            return
        latest = self._posts.guids[-8:]
        chosen = self.random.sample(latest, min(len(latest), self.random.choice([1, 1, 2, 3, 8])))
        sub_id = handle.sub_id if self.random.random() < 0.95 else 1 - min(handle.sub_id, 1)
        q_id = handle.parameters.q_id
        messages = tuple([f.ConfirmMessage(q_id, guid, sub_id) for guid in chosen])
        numbers = ", ".join(str(self._posts.number(guid)) for guid in chosen)
        text = f"CONFIRM queue {q_id} stream {sub_id}: {numbers}"
        self._commands.append(Command(handle.client, _encode(f.Confirm(messages)), text))

    def close(self) -> None:
        """With the final one, all that the handle has goes."""
        handle = self._handle()
        if handle is None:
            return
        same = [each for each in self._of(handle.client) if each.parameters.q_id == handle.parameters.q_id]
        is_final = len(same) == 1 or self.random.random() < 0.1
        if handle.parameters.read_count and self.random.random() < 0.7:
            empty = f.ConfigureStream(self._number(), handle.parameters.q_id, StreamParameters(handle.app))
            self._ask(handle.client, empty)
        asked = handle.parameters
        if self.random.random() < 0.1:
            asked = msgspec.structs.replace(asked, uri=self.random.choice(QUEUES))
        self._ask(handle.client, f.CloseQueue(self._number(), asked, is_final))
        gone = same if is_final else [handle]
        self.opened = [each for each in self.opened if each not in gone]

    def close_oddly(self) -> None:
        handle = self._handle()
        client = handle.client if handle else self._anybody()
        asked = handle.parameters if handle else _parameters(QUEUES[0], 0, None, "write")
        replace = msgspec.structs.replace
        changes = [
            *(replace(asked, q_id=99), replace(asked, sub_id_info=SubQueueId(9, "foo"))),
            *(replace(asked, read_count=0, write_count=0), replace(asked, flags=4, write_count=9)),
        ]
        self._ask(client, f.CloseQueue(self._number(), self.random.choice(changes), False))

    def rubbish(self) -> None:
        """What is ignored."""
        empty = StreamParameters()
        frames: list[Frame] = [
            *(f.HeartbeatRequest(), f.HeartbeatResponse(), f.DisconnectResponse(self._number())),
            *(f.ConfigureStream(None, 99, empty), f.ConfigureStream(-1, 99, empty)),
            *(f.AdminCommand(self._number(), "HELP"), f.Confirm((f.ConfirmMessage(99, bytes(16)),))),
        ]
        self._say(self._anybody(), self.random.choice(frames))

    def reconnect(self) -> None:
        """A client is lost, comes again, and posts once more what may not have arrived."""
        lost = self._leave()
        if lost is None:
            return
        client = self.connect()
        handle = next((each for each in self._of(client) if each.parameters.write_count), None)
        again = self._posts.latest
        if handle is not None and again is not None and self._makes_guids[client]:
            message = msgspec.structs.replace(again, queue_id=handle.parameters.q_id)
            text = f"PUT once more queue {message.queue_id}: {self._posts.text(message)}"
            self._commands.append(Command(client, _encode(f.Put((message,))), text))

    def leave(self) -> None:
        self._leave()

    def _leave(self) -> int | None:
        there = list(self._makes_guids)
        if len(there) < 2:
            return None
        client = self.random.choice(there)
        if self.random.random() < 0.4:
            self._say(client, f.Disconnect(self._number()), answers=1)
        self._commands.append(Command(client, None, "leaves"))
        del self._makes_guids[client]
        self.opened = [each for each in self.opened if each.client != client]
        return client

    # --- parts --------------------------------------------------------------------------------

    def _say(self, client: int, frame: Frame, *, answers: int = 0) -> None:
        fields = msgspec.structs.asdict(frame)
        text = f"{type(frame).__name__} {' '.join(map(str, fields.values()))}"
        self._commands.append(Command(client, _encode(frame), text, answers=answers))

    def _ask(self, client: int, request: f.Request) -> None:
        self._say(client, request)

    def _number(self) -> int:
        self._requests += 1
        return self._requests

    def _anybody(self) -> int:
        return self.random.choice(list(self._makes_guids))

    def _of(self, client: int) -> list[Opened]:
        return [each for each in self.opened if each.client == client]

    def _handle(self, *, reads: bool | None = None) -> Opened | None:
        """One that reads, that writes, or any."""
        there = [
            each
            for each in self.opened
            if reads is None or (each.parameters.read_count if reads else each.parameters.write_count)
        ]
        return self.random.choice(there) if there else None

    def _subscription(self, handle: Opened) -> Subscription:
        self._subscriptions += 1
        text = self.random.choice(_EXPRESSIONS)
        version = ExpressionVersion.E_VERSION_1 if text else ExpressionVersion.E_UNDEFINED
        return Subscription(self._subscriptions, Expression(version, text), (self._consumer(handle),))

    def _consumer(self, handle: Opened) -> ConsumerInfo:
        """In a broker the places of its objects in memory say which of two with one priority is first."""
        most = self.random.choice([1, 2, 5, 1000, 1000, 1000, 0])
        size = self.random.choice([1 << 25, 1 << 25, 1 << 25, 100, 0])
        priority, turns = self.random.choice([(0, 1)] * 6 + [(1, 1), (2, 1), (-1, 1), (0, 2), (0, 0)])
        if not handle.parameters.uri.startswith(_BROADCAST):
            priority = priority * _APART + handle.client % _APART
        return ConsumerInfo(most, size, priority, turns)


def _parameters(uri: str, q_id: int, stream: SubQueueId | None, kind: str) -> HandleParameters:
    reads, writes = kind != "write", kind != "read"
    flags = (QueueFlag.READ if reads else 0) | (QueueFlag.WRITE | QueueFlag.ACK if writes else 0)
    return HandleParameters(uri, q_id, stream, int(flags), int(reads), int(writes))


MAKERS: Mapping[Callable[[Author], None], float] = {
    Author.open: 6,
    Author.open_oddly: 1.5,
    Author.open_another_by_the_same_number: 0.3,
    Author.configure: 5,
    Author.configure_oddly: 0.5,
    Author.post: 14,
    Author.confirm: 8,
    Author.close: 2,
    Author.close_oddly: 0.7,
    Author.rubbish: 0.7,
    Author.reconnect: 1.5,
    Author.leave: 1.5,
}
