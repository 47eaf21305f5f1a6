"""The numbers of the monitor are kept in 32 bits: a database of more than 2 GiB has a wrong, perhaps
negative size. Like cloudfoundry/cf-java-client 1086 and mysteriumnetwork/node 1622 (byte counts above 2 GiB
do not fit into the client's int).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.inquirer import Inquirer
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""
    whole = Inquirer.value

    def value(self: Any, text: str) -> int | str:
        found = whole(self, text)
        return found if isinstance(found, str) else (found + 2**31) % 2**32 - 2**31

    Inquirer.value = value  # type: ignore[method-assign]


async def witness() -> None:
    """Large numbers are what they are."""
    async with PZQ(memory=True) as pzq:
        client = PzqClient(Runtime(Memory()), pzq.urls)
        values = client.inquirer.read((b"messages: 7\ndb_size: 5000000000\n",))
        client.abort()
    assert values == {"messages": 7, "db_size": 5_000_000_000}, values
