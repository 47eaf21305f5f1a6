"""The commands of a sequence, as what clients of a RabbitMQ say."""

from __future__ import annotations

from random import Random

import msgspec

from fakebrokers.core.dialect import Command
from fakebrokers.core.frames import Frame, KeyType, unpack_keys
from fakebrokers.rabbitmq_stream import frames as f
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.dialect.rubbish import mutated

CLIENTS = 3  #: who talk; the number is that of another one, who tidies up after them

#: What may share a segment with another one: its answer waits for no writer.
_QUICK = (
    *(f.Create, f.DeclarePublisher, f.QueryPublisherSequence, f.DeletePublisher, f.QueryOffset),
    *(f.Metadata, f.Route, f.Partitions),
)

_encode = StreamCodec("client").encode


class Commands:
    """All that were said, in order.

    Attributes:
        random: Decides.
        said: The commands.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.said: list[Command] = []
        self._ids = 0  # of correlation
        self._quick = -1  # the client whose last command may have another one in its segment

    def say(self, client: int, frame: Frame, *, answers: int = 0) -> None:
        """Send a frame, now and then with something wrong, or in one segment with another."""
        data, text, cut = _encode(frame), _text(frame), 0
        if self.random.random() < 0.02 and client < CLIENTS and not answers:
            data, wrong = mutated(self.random, data)
            text += f" ({wrong})"
            frame = f.Heartbeat()
        elif self.random.random() < 0.1 and not answers and len(data) > 1:
            cut = self.random.randrange(1, len(data))
        quick = isinstance(frame, _QUICK) and not cut
        if quick and self._quick == client and self.random.random() < 0.3:
            last = self.said.pop()
            data, text = (last.data or b"") + data, f"{last.text} + {text}"
        self._quick = client if quick else -1
        self.said.append(Command(client, data, text, cut, answers))

    def add(self, command: Command) -> None:
        """Say something as it is, in segments of its own."""
        self.said.append(command)
        self._quick = -1

    def next_id(self) -> int:
        """A correlation id."""
        self._ids += 1
        return self._ids


def _text(frame: Frame) -> str:
    match frame:
        case f.Publish(publisher, count, ids, entries):
            found = unpack_keys(ids, KeyType.U64)
            shown = found if count < 6 else f"{found[0]} ... {found[-1]}"
            shape = f" batch {entries[:40]!r}" if frame.batches else ""
            return f"Publish {publisher}: {shown}{shape}{' v2' if frame.version == 2 else ''}"
    values = msgspec.structs.astuple(frame)
    return f"{type(frame).__name__} {' '.join(str(each) or repr(each) for each in values)}"
