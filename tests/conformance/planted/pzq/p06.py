"""Values in the monitor's reply end at their first colon: an address or a time comes out cut. Like redis-py
1106, redis-py 1018 and node-redis-info 21.
"""

from __future__ import annotations

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.inquirer import Inquirer
from fakebrokers import PZQ
from fakebrokers.faults import rewrite


def plant() -> None:
    """Install the defect."""

    def split(self: Inquirer, line: str) -> tuple[str, str, str]:
        words = [*line.split(":"), ""]
        return words[0].strip(), ":" if ":" in line else "", words[1].strip()

    Inquirer.split = split  # type: ignore[method-assign]


async def witness() -> None:
    """The whole value is there."""
    async with PZQ(memory=True) as broker:
        text = b"messages: 3\nlistens: tcp://127.0.0.1:11131\n"
        broker.faults.add(rewrite({"text": text}, kind="MonitorReply"))
        client = PzqClient(Runtime(Memory()), broker.urls)
        values = await client.ask(5)
        await client.close()
    assert values == {"messages": 3, "listens": "tcp://127.0.0.1:11131"}, values
