"""Error codes that are words get lost: the caller of an action that fails with ``E_STOCK`` sees an error
without a code. Like ServiceWeaver 458 and yetty 340 (errors that do not arrive as they were raised).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer import streams
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer
from fakebrokers.moleculer.services import MoleculerError


def plant() -> None:
    """Install the defect."""

    def is_code(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    streams.is_code = is_code


def fail(context: object) -> None:
    """An action without stock."""
    raise MoleculerError("nothing left", "E_STOCK", "OUT_OF_STOCK")


async def witness() -> None:
    """The caller gets the code."""
    code = None
    async with Moleculer(memory=True) as bus:
        bus.node("shop", {"shop": {"buy": fail}})
        settings = Settings(transporter="nats", endpoints=(f"{bus.host}:{bus.port}",))
        client = MoleculerClient(Runtime(Memory()), settings)
        await client.connect(5)
        await asyncio.sleep(2)
        try:
            await client.caller.call("shop.buy", timeout=5)
        except ClientError as error:
            code = error.code
        client.abort()
    assert code == "E_STOCK", code
