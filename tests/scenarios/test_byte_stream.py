"""What NET-1 lets pass, no wider than it is meant."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from fakebrokers import Narconi
from scenarios.net.byte_stream import excuse_unspoken

TAKE = b"DELETE /v2/test/queues/q/messages HTTP/1.1\r\nHost: h\r\n\r\n"


def test_a_fault_is_excused_where_nobody_has_said_anything() -> None:
    excused: dict[str, str] = {}
    expect: Any = SimpleNamespace(may_not_fire=excused.__setitem__)

    async def main() -> None:
        async with Narconi() as broker:
            subject: Any = SimpleNamespace(wire=broker)
            writers = [(await asyncio.open_connection(broker.host, broker.port))[1] for _ in range(3)]
            await broker.wait_for_async(kind="accepted", count=3)
            excuse_unspoken(subject, expect, "c{} cut at *")
            assert excused == {}, "a client that says nothing at all is another matter"
            writers[1].write(TAKE)
            await broker.wait_for_async(kind="HttpConsume")
            excuse_unspoken(subject, expect, "c{} cut at *")
            for writer in writers:
                writer.close()

    asyncio.run(main())
    assert excused.keys() == {"c1 cut at *", "c3 cut at *"}
