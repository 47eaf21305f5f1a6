"""How the fake BlazingMQ is compared with a real broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from fakebrokers.blazingmq import frames as f
from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import NO_PRIORITY, RESERVED_QUEUE_ID, QueueFlag
from fakebrokers.blazingmq.dialect.author import DOMAINS, Author
from fakebrokers.blazingmq.options import read_options
from fakebrokers.blazingmq.schema import HandleParameters, StreamParameters
from fakebrokers.core.dialect import Command, Dialect, Login, Speaker
from fakebrokers.core.frames import Frame

#: From here on the numbers of requests belong to questions.
QUESTIONS = 0x7FFF0000
#: More writers than any handle has: a broker's queue looks, and refuses to close it.
_TOO_MANY = 1_000_000
#: What a broker answers once its queues have, while it goes on with what the client says next.
_ANSWERED = (f.OpenQueue, f.CloseQueue, f.ConfigureStream, f.ConfigureQueueStream, f.Disconnect)


class EventSpeaker(Speaker):
    """Asks each queue that it has opened, and then the session.

    A queue is asked to close more than it has open. It refuses, and by then it has dealt with everything
    before; so has the session that refuses to configure a queue which nobody can open.
    """

    def __init__(self) -> None:
        self.codec = BlazingCodec()
        self._encode = BlazingCodec().encode
        self._known = False
        self._opened: dict[int, HandleParameters] = {}
        self._unanswered: set[int] = set()
        self._due: set[int] = set()
        self._reader = BlazingCodec()

    @property
    def is_waiting(self) -> bool:
        return bool(self._due)

    def sent(self, data: bytes) -> None:
        for frame, _ in self._reader.feed(data):
            if self._known and isinstance(frame, _ANSWERED) and frame.r_id is not None and frame.r_id >= 0:
                self._due.add(frame.r_id)

    def question(self) -> bytes:
        if not self._known:
            return b""
        asked: list[Frame] = [
            f.CloseQueue(QUESTIONS + n, each) for n, each in enumerate(self._opened.values(), 1)
        ]
        asked.append(f.ConfigureStream(QUESTIONS, RESERVED_QUEUE_ID, StreamParameters()))
        self._unanswered = {QUESTIONS + n for n in range(len(asked))}
        return b"".join(map(self._encode, asked))

    def is_answer(self, frame: Frame) -> bool:
        if isinstance(frame, f.Response) and frame.r_id is not None:
            self._due.discard(frame.r_id)
        match frame:
            case f.BrokerResponse(result) if result.category == 0:
                self._known = True
            case f.OpenQueueResponse(_, original):
                asked = original.handle_parameters
                self._opened[asked.q_id] = msgspec.structs.replace(
                    asked, flags=int(QueueFlag.WRITE), read_count=0, write_count=_TOO_MANY
                )
            case f.DisconnectResponse():
                self._known = False
                self._due.clear()
            case f.StatusResponse(r_id) if r_id is not None and r_id >= QUESTIONS:
                self._unanswered.discard(r_id)
                return not self._unanswered
        return False


class EventDialect(Dialect):
    """Queues of every mode, messages of every kind, what is refused, and rubbish."""

    rounds = 2
    patience = 2.0
    options: Mapping[str, Any] = {"domains": DOMAINS}

    def speaker(self, login: Login) -> Speaker:
        return EventSpeaker()

    def sequence(self, random: Random, login: Login) -> list[Command]:
        return Author(random).sequence()

    def joined(self, frames: Sequence[Frame]) -> Sequence[Frame]:
        """Message by message; ACKs first, since they do not wait for deliveries, nor these for them."""
        found: list[Frame] = []
        acks: list[Frame] = []
        pushes: list[Frame] = []
        for frame in (*frames, None):
            match frame:
                case f.Ack(messages):
                    acks += [f.Ack((each,)) for each in messages]
                case f.Push(messages):
                    pushes += [f.Push((each,)) for each in messages]
                case f.HeartbeatRequest():
                    pass  # as the broker's clock has it
                case f.StatusResponse(r_id) if r_id is not None and r_id >= QUESTIONS:
                    pass  # one of several answers to a question
                case _:
                    found += acks + pushes
                    acks, pushes = [], []
                    if frame is not None:
                        found.append(frame)
        return found

    def brief(self, frame: Frame) -> str:
        match frame:
            case f.BrokerResponse(result, version, broker_version, deprecated, identity):
                features = ";".join(sorted(identity.features.split(";")))
                return f"BrokerResponse {result} {version} {broker_version} {deprecated} {features}"
            case f.StatusResponse(r_id, category, code, message):
                return f"StatusResponse {r_id} {category} {code} {_without_folder(message)}"
            case f.ConfigureQueueStreamResponse(r_id, request):
                return f"ConfigureQueueStreamResponse {r_id} {_older(request)}"
            case f.Ack((message,)):
                return f"ACK queue {message.queue_id} {message.status} {message.correlation_id}"
            case f.Push((message,)):
                infos = sorted(info.number for info in read_options(message.options))
                shape = f"flags {message.flags} schema {message.schema_id} packed {message.compression}"
                return f"PUSH queue {message.queue_id} for {infos} {shape} {message.data!r:.200}"
        fields = msgspec.structs.asdict(frame)
        return f"{type(frame).__name__} {' '.join(map(str, fields.values()))}".strip()


def _without_folder(message: str) -> str:
    """A text without the folder in which a broker has its domains."""
    before, found, after = message.partition("/domains/")
    return f"{before.partition(chr(39))[0]}'{found}{after}" if found else message


def _older(request: Any) -> str:
    """What a broker keeps of the older form of a configuration: of one that takes nothing, the stream."""
    asked = request.stream_parameters
    takes = "" if asked.consumer_priority == NO_PRIORITY else str(asked)
    return f"{request.q_id} {asked.sub_id_info} {takes}"


EVENTS = EventDialect()
