"""Lets the fakebrokers conformance suite drive a client library. Check it: fakebrokers adapter check "python adapter.py"

It runs as it stands, on `PretendClient` below. Put your library in its place, one op after the other:
translate, and add nothing - no retries, no time-outs, no sorting, no swallowed errors. The ops are explained
in ADAPTER.md of fakebrokers.
"""

from typing import Any

from kit import AdapterBase, Failure, Subscription, body_bytes, host_port, number, op, run


class PretendClient:
    """Stands where your library goes; it keeps every message to itself. Delete it."""

    async def connect(self, host: str, port: int) -> None:
        self.log: list[bytes] = []
        self.callbacks: list[Any] = []

    async def publish(self, target: str, body: bytes) -> int:
        self.log.append(body)
        for callback in self.callbacks:
            await callback(body, len(self.log) - 1)
        return len(self.log) - 1

    async def subscribe(self, target: str, callback: Any) -> None:
        self.callbacks.append(callback)

    async def close(self) -> None:
        self.callbacks.clear()


class Adapter(AdapterBase):
    adapter = "my-adapter"
    library = "pretend"
    library_version = "0"
    protocols = ("@PROTOCOL@",)
    roles = (@ROLES@)
    settles = "none"  # or "manual" with an op "settle", or "auto"
    caps = {"callback_raise": True, "callback_sleep": True}  # what your library can do; false is the default
    limits: dict[str, int] = {}  # time-outs that your library fixes by itself: connect_timeout_ms, ...

    @op("connect")
    async def connect(
        self, session: str, endpoints: list[str], options: dict[str, Any] | None = None, timeout_ms: float | None = None
    ) -> None:
        client = PretendClient()
        await client.connect(*host_port(endpoints[0]))  # pass user, password, timeout_ms, ... from `options`
        self.sessions[session] = client

    @op("state")
    async def state(self, session: str) -> dict[str, Any]:
        return {"open": session in self.sessions, "pending": None}

    @op("publish")
    async def publish(self, session: str, target: str, body: dict[str, Any]) -> dict[str, Any]:
        key = await self.session(session).publish(target, body_bytes(body))  # returns when the broker has confirmed
        return {"outcome": "acked", "key": number(key), "meta": {}}

    @op("subscribe")
    async def subscribe(
        self, session: str, sub: str, target: str, on_message: dict[str, Any] | None = None
    ) -> None:
        subscription = Subscription(self, sub, target, on_message)

        async def callback(body: bytes, position: int) -> None:
            await subscription.deliver(body, position=str(position))

        await self.session(session).subscribe(target, callback)
        self.subs[sub] = subscription

    @op("unsubscribe")
    async def unsubscribe(self, sub: str) -> None:
        self.subscription(sub)
        del self.subs[sub]

    @op("close")
    async def close(self, session: str) -> None:
        await self.session(session).close()
        del self.sessions[session]

    async def clear(self) -> None:
        """Part of `reset`: drop the connections of all `self.sessions`, fast; nothing to do for `PretendClient`."""

    def classify(self, error: Exception) -> Failure:
        """The kind of error for each exception of your library; the rest is told by its type."""
        return super().classify(error)


if __name__ == "__main__":
    run(Adapter())
