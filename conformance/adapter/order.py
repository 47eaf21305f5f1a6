"""Whether the ops of one session begin in line order: a burst of messages, as a fake broker gets them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from conformance.adapter.base import Adapter
from conformance.adapter.messages import body_bytes
from fakebrokers import PZQ, BlazingMQ, Narconi, RabbitMQStream

OPS = 100
DEADLINE_MS = 5000.0
BYTES_MAX = 8 << 10  # all of them fit one frame, whoever packs them together
NEEDLE_BYTES = 16


#: They get shorter and shorter: whoever makes each on a thread of its own hands the short ones over first.
BODIES = [{"gen": "rand", "seed": n, "len": BYTES_MAX * (OPS - n) // OPS} for n in range(OPS)]


async def order(adapter: Adapter) -> list[int]:
    """Send the burst to a fake. Returns the messages that came, by their place in the burst.

    Empty where there is nothing to be seen: no fake, no publisher, no connection, no message.
    """
    if adapter.protocol not in _STAGES or "publisher" not in adapter.hello.roles:
        return []
    stage = _STAGES[adapter.protocol]()
    async with stage.broker:
        args = {"session": "order", "target": stage.prepare()}
        connect = {"session": "order", "endpoints": stage.endpoints(), "options": {}}
        first = {**args, "body": {"text": "the one that makes the publisher"}}
        for op, needed in (("connect", connect), *stage.steps, ("publish", first)):
            if not (await adapter.call(op, needed, DEADLINE_MS)).ok:
                return []
        await asyncio.gather(
            *(adapter.begin("publish", {**args, "body": body}, DEADLINE_MS) for body in BODIES)
        )
        places = [_place(record) for record in stage.stored()]
        await adapter.reset()
    return [place for place in places if place is not None]


def overtaken(places: Sequence[int]) -> tuple[int, int] | None:
    """The first message that came behind a later one: the later one's place, and its own."""
    return next((pair for pair in pairwise(places) if pair[0] > pair[1]), None)


def _place(record: bytes) -> int | None:
    """Which message of the burst a record holds; it may stand in an envelope."""
    return next((place for place, needle in enumerate(_NEEDLES) if needle in record[:1024]), None)


_NEEDLES = [body_bytes(body)[:NEEDLE_BYTES] for body in BODIES]


class _Stage:
    """A fake, how the adapter finds its way to it (`steps` are ops before the first message), what it got."""

    def __init__(
        self,
        broker: Any,
        prepare: Callable[[], str],
        stored: Callable[[], list[bytes]],
        *steps: tuple[str, dict[str, Any]],
    ) -> None:
        self.broker = broker
        self.prepare = prepare
        self.stored = stored
        self.steps = steps

    def endpoints(self) -> Any:
        """``where`` is the address, or addresses by role."""
        where = self.broker.where
        return [where] if isinstance(where, str) else where


def _rabbitmq_stream() -> _Stage:
    broker = RabbitMQStream()

    def prepare() -> str:
        broker.create_stream("order")
        return "order"

    return _Stage(broker, prepare, lambda: [message.body for message in broker.messages("order")])


def _narconi() -> _Stage:
    broker = Narconi()

    def prepare() -> str:
        broker.ensure("test", "order")
        return "order"

    return _Stage(broker, prepare, lambda: [message.payload for message in broker.messages("test", "order")])


def _pzq() -> _Stage:
    broker = PZQ()
    return _Stage(broker, lambda: "", lambda: [b"".join(message.body) for message in broker.messages])


def _blazingmq() -> _Stage:
    broker = BlazingMQ()
    uri = "bmq://bmq.test.mem.priority/order"
    opened = {"session": "order", "target": "order", "uri": uri, "flags": ["write"], "options": {}}

    def stored() -> list[bytes]:
        return [message.data for message in broker.messages(uri)]

    return _Stage(broker, lambda: "order", stored, ("bmq.open_queue", opened))


_STAGES: Mapping[str, Callable[[], _Stage]] = {
    "rabbitmq-stream": _rabbitmq_stream,
    "narconi": _narconi,
    "pzq": _pzq,
    "blazingmq": _blazingmq,
}
