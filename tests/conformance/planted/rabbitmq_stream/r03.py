"""Of several filter values only the last one reaches the broker: messages with the others never come. Near
to coders51/rabbitmq-stream-js-client 172, whose review found the properties of several filter values wrong.
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.rabbitmq_stream import ops
from conformance.clients.reference.registry import without_sockets
from fakebrokers import RabbitMQStream


def plant() -> None:
    """Install the defect."""
    original = ops.filter_properties

    def filter_properties(wanted: dict[str, Any] | None) -> dict[str, str]:
        last = None if wanted is None else {**wanted, "values": list(wanted["values"])[-1:]}
        return original(last)

    ops.filter_properties = filter_properties


async def witness() -> None:
    """The Subscribe frame has all values."""
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        adapter = without_sockets(adapter_of(ops.REFERENCE))()
        adapter.start(lambda line: None)
        place = [f"{broker.host}:{broker.port}"]
        wanted = {"values": ["europe", "asia", "africa"]}
        for op, args in (
            ("connect", {"session": "a", "endpoints": place}),
            ("subscribe", {"session": "a", "sub": "1", "target": "s", "options": {"filter": wanted}}),
        ):
            answer = await adapter.attempt({"id": 1, "op": op, "args": args})
            assert answer["ok"], answer
        said = [record.frame.properties for record in broker.journal.select(kind="Subscribe")]
        await adapter.clear()
    assert sorted(value for name, value in said[0].items() if name.startswith("filter.")) == sorted(
        wanted["values"]
    )
