"""The monitor's socket is kept for the next question: an answer that came too late for one question is taken
for the answer to the next. Like redis/redis-py 2665 (a cancelled command leaves its unread response on the
connection, and every later command gets the response of the one before).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.inquirer import Inquirer
from fakebrokers import PZQ
from fakebrokers.faults import delay


def plant() -> None:
    """Install the defect."""

    async def ask(self: Any, timeout: float | None = None) -> Any:
        if not hasattr(self, "kept"):
            self.came = asyncio.Queue()
            self.kept = self.connector.connect(self.endpoint, "DEALER", self.came.put_nowait)
        self.kept.send(b"", *self.request())
        answered = asyncio.ensure_future(self.came.get())
        self.waiting.add(answered)
        try:
            parts = await asyncio.wait_for(asyncio.shield(answered), timeout)
        except TimeoutError:
            answered.cancel()
            raise ClientError("timeout", f"the monitor did not answer within {timeout} s") from None
        except asyncio.CancelledError:
            if not self.runtime.is_closed:
                answered.cancel()
                raise
            raise ClientError("closed", "closed before the monitor answered") from None
        finally:
            self.waiting.discard(answered)
        return self.read(parts[1:])

    def close(self: Any) -> None:
        for answered in self.waiting:
            answered.cancel()
        if hasattr(self, "kept"):
            self.kept.close()

    Inquirer.ask = ask  # type: ignore[method-assign]
    Inquirer.close = close  # type: ignore[method-assign]


async def witness() -> None:
    """The second question gets what is true then."""
    async with PZQ(memory=True, faults={"faults": []}) as pzq:
        client = PzqClient(Runtime(Memory()), pzq.urls)
        pzq.faults.add(delay(2.0, kind="MonitorReply", nth=1, scope="run"))
        try:
            await client.ask(timeout=1.0)
        except ClientError as error:
            assert error.kind == "timeout", error
        pzq.publish(b"one")
        await asyncio.sleep(5)
        values = await client.ask(timeout=5.0)
        client.abort()
    assert values["messages"] == 1, values
