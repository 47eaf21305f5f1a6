"""Whether the ops of one session begin in line order: a burst of messages, as a fake broker gets them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.check_fixture import NAME, CheckFixture
from conformance.clients.adapter.messages import body_bytes
from conformance.clients.adapter.profile import module_of

OPS = 100
DEADLINE_MS = 5000.0
BYTES_MAX = 8 << 10  # all of them fit one frame, in whatever packing
NEEDLE_BYTES = 16


#: They get shorter and shorter: a client that makes each on a thread of its own hands the short ones over
#: first.
BODIES = [{"gen": "rand", "seed": n, "len": BYTES_MAX * (OPS - n) // OPS} for n in range(OPS)]


async def order(adapter: Adapter) -> list[int]:
    """Send the burst to a fake. Returns the messages that came, by their place in the burst.

    Empty where there is nothing to be seen: no fake, no publisher, no connection, no message.
    """
    fixture = find_check_fixture(adapter.protocol)
    if fixture is None or "publisher" not in adapter.hello.roles:
        return []
    async with fixture.broker:
        args = {"session": NAME, "target": fixture.prepare()}
        connect = {"session": NAME, "endpoints": fixture.endpoints(), "options": fixture.options()}
        first = {**args, "body": {"text": "the one that makes the publisher"}}
        for op, needed in (("connect", connect), *fixture.steps, ("publish", first)):
            if not (await adapter.call(op, needed, DEADLINE_MS)).ok:
                return []
        await asyncio.gather(
            *(adapter.begin("publish", {**args, "body": body}, DEADLINE_MS) for body in BODIES)
        )
        places = [_place(record) for record in fixture.stored()]
        await adapter.reset()
    return [place for place in places if place is not None]


def find_check_fixture(protocol: str) -> CheckFixture | None:
    """The fake of a protocol, made for a burst; None if there is none."""
    package = module_of(protocol)
    spec = find_spec(package)
    if (
        spec is None
        or spec.submodule_search_locations is None
        or find_spec(f"{package}.check_fixture") is None
    ):
        return None
    found: CheckFixture = import_module(f"{package}.check_fixture").check_fixture()
    return found


def overtaken(places: Sequence[int]) -> tuple[int, int] | None:
    """The first message that came after a later one: the later one's place, and its own.

    Of one that came again, as its confirm was lost, the first copy counts.
    """
    return next((pair for pair in pairwise(dict.fromkeys(places)) if pair[0] > pair[1]), None)


def _place(record: bytes) -> int | None:
    """Which message of the burst a record holds; it may be in an envelope."""
    return next((place for place, needle in enumerate(_NEEDLES) if needle in record[:1024]), None)


_NEEDLES = [body_bytes(body)[:NEEDLE_BYTES] for body in BODIES]
