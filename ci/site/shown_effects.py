"""What each fault effect does, seen: the same short talk with a fake in memory, once with each effect.

A client publishes five messages, 100 ms apart, on virtual time. What is drawn is what the fake's journal
and the client's end of the connection noted, so a picture shows what happens, not what is meant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from fakebrokers import RabbitMQStream
from fakebrokers.core.virtual import run
from fakebrokers.faults import build
from fakebrokers.faults.plan import Fault
from fakebrokers.faults.registry import COMMON, effect_name
from fakebrokers.journal import Record, Tap
from fakebrokers.journal.record import State
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.frames import (
    DeclarePublisher,
    Open,
    PeerProperties,
    SaslAuthenticate,
    SaslHandshake,
    Tune,
)
from fakebrokers.rabbitmq_stream.publishing import publish

MESSAGES = 5
PACE_S = 0.1  #: between two messages
WATCHED_S = 0.65  #: from the first message

CODEC = StreamCodec("client")
HANDSHAKE = (
    PeerProperties(1, {}),
    SaslHandshake(2),
    SaslAuthenticate(3, "PLAIN", b"\0guest\0guest"),
    Tune(1_048_576, 0),
    Open(4, "/"),
    DeclarePublisher(5, 1, "", "orders"),
)

#: One fault for each effect, as one would write it. The second publish or confirm, unless more is to be seen.
EXAMPLES = {
    "black-hole": 'black_hole(role="publish", nth=2, for_s=0.35)',
    "coalesce": 'coalesce(frames=2, within_s=0.5, role="confirm", nth=2)',
    "corrupt": 'corrupt(at=-1, role="confirm", nth=2)',
    "crash": 'crash(role="publish", nth=2, restart_s=0.35)',
    "delay": 'delay(0.25, role="confirm", nth=2)',
    "drop": 'drop(role="confirm", nth=2)',
    "duplicate": 'duplicate(role="confirm", nth=2)',
    "extend": 'extend(hex="0000", role="confirm", nth=2)',
    "fin": 'fin(role="confirm", nth=2)',
    "half-open": 'half_open(role="confirm", nth=2)',
    "hold": 'hold(role="confirm", nth=2, for_s=0.25)',
    "inject": 'inject(kind="Heartbeat", role="confirm", nth=2)',
    "join": 'join(within_s=0.25, role="confirm", nth=2)',
    "latency": 'latency(0.15, direction="out", role="confirm", nth=2)',
    "overwrite": 'overwrite(4, 2, value=9, role="confirm", nth=2)',
    "refuse": 'refuse(role="publish", nth=2, for_s=0.35)',
    "reorder": 'reorder(window=2, role="confirm", first=2)',
    "reply": 'reply(17, role="publish", nth=2)',
    "rewrite": 'rewrite(fields={"publisher_id": 7}, role="confirm", nth=2)',
    "rst": 'rst(role="confirm", nth=2)',
    "shift-clock": 'shift_clock(3600, role="publish", nth=2)',
    "silent": 'silent(role="confirm", nth=2, for_s=0.25)',
    "slice": 'slice_(size=7, gap_s=0.04, role="confirm", nth=2)',
    "split": 'split(role="confirm", nth=2)',
    "stall": 'stall(role="publish", nth=2, for_s=0.25)',
    "throttle": 'throttle(200, role="confirm", direction="out")',
    "truncate": 'truncate(6, role="confirm", nth=2)',
}


@dataclass
class Arrow:
    """A frame on its way.

    Attributes:
        out: Whether the broker says it.
        label: Its name and keys.
        left: Seconds at which it left, from the first message.
        came: Seconds at which it arrived; None: it never did.
        changed: Whether what arrives is another frame, or none at all.
        touched: Whether a fault matched it.
    """

    out: bool
    label: str
    left: float
    came: float | None
    changed: bool = False
    touched: bool = False


@dataclass
class Talk:
    """What was seen: arrows, what happened besides, and writes (seconds, bytes) that reached the client."""

    arrows: list[Arrow] = field(default_factory=list)
    states: list[tuple[float, str]] = field(default_factory=list)
    writes: list[tuple[float, int]] = field(default_factory=list)


class Client(asyncio.Protocol):
    """Sends prepared bytes, and notes when bytes come."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.came: list[tuple[float, int]] = []

    def data_received(self, data: bytes) -> None:
        self.came.append((self.loop.time(), len(data)))

    def pause_writing(self) -> None:
        pass

    def resume_writing(self) -> None:
        pass


def example(effect: str) -> Fault:
    """The fault that shows an effect."""
    names = {name: getattr(build, name) for name in dir(build) if not name.startswith("_")}
    fault: Fault = eval(EXAMPLES[effect], names)
    return fault


def talk(fault: Fault) -> Talk:
    """Talk with a fake that has this fault."""
    return run(_talk(fault))


def missing() -> set[str]:
    """Effects without an example, and examples without an effect."""
    return {effect_name(effect) for effect in COMMON} ^ EXAMPLES.keys()


async def _talk(fault: Fault) -> Talk:
    loop = asyncio.get_running_loop()
    with RabbitMQStream(memory=True) as broker:
        broker.create_stream("orders")
        client = Client(loop)
        link = broker.connect_memory(client)
        for frame in HANDSHAKE:
            link.write(CODEC.encode(frame))
            await asyncio.sleep(0.01)
        broker.faults.add(fault)
        begun, since = loop.time(), broker.journal.last_seq
        client.came.clear()
        for number in range(1, MESSAGES + 1):
            link.write(CODEC.encode(publish(1, [(number, b"tea")])))
            await asyncio.sleep(PACE_S)
        await asyncio.sleep(begun + WATCHED_S - loop.time())
        came = [(at - begun, size) for at, size in client.came]
        return _seen(broker.journal.records(since), came, begun - broker.journal.started_at)


def _seen(records: Sequence[Record], came: Sequence[tuple[float, int]], zero: float) -> Talk:
    """The records of a talk as arrows; `zero` is the journal's time of the first message."""
    seen = Talk(writes=list(came))
    waiting: list[Arrow] = []  #: received or said, and not yet heard or sent
    for record in records:
        at = round(record.at - zero, 6)
        if record.tap is Tap.STATE:
            _state(seen, record, at, waiting)
        elif record.tap in (Tap.IN, Tap.OUT):
            seen.arrows.append(Arrow(record.tap is Tap.OUT, _label(record), _left(record, at), at))
        elif record.tap in (Tap.RECEIVED, Tap.SAID):
            arrow = Arrow(record.tap is Tap.SAID, _label(record), _left(record, at), None)
            arrow.touched = bool(record.fault)
            waiting.append(arrow)
            seen.arrows.append(arrow)
        else:
            _arrives(seen, record, at, waiting)
    return seen


def _arrives(seen: Talk, record: Record, at: float, waiting: list[Arrow]) -> None:
    """A frame comes out of the faults: one that waited, a copy of it, or one that no side has said."""
    out, label = record.tap is Tap.SENT, _label(record)
    for arrow in waiting:
        if (arrow.out, arrow.label) == (out, label):
            arrow.came = at
            waiting.remove(arrow)
            return
    seen.arrows.append(Arrow(out, label, at, at, changed=True, touched=True))


def _state(seen: Talk, record: Record, at: float, waiting: list[Arrow]) -> None:
    """What is no frame: bytes in the place of one, or what happened to the connection or the broker."""
    if record.kind == State.BYTES:
        arrow = waiting.pop(0)
        arrow.came, arrow.changed = at, True
        arrow.label += f": {record.note.partition(' in place')[0]}"
    elif record.kind != State.CLOSED:
        seen.states.append((at, f"{record.kind} {record.note}".strip()))


def _left(record: Record, at: float) -> float:
    """When a frame left: a message at its turn, however late the broker reads it."""
    return (record.keys[0] - 1) * PACE_S if record.tap.direction == "in" else at


def _label(record: Record) -> str:
    keys = ",".join(map(str, record.keys))
    return f"{record.kind} {keys}".strip()
