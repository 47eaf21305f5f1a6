"""Messages whose confirms are held back, one by one or as a batch, as the library can."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.messages import Error, Kind
from conformance.clients.adapter.result import Result
from conformance.suite import Client
from conformance.suite.client import as_body


class Sent:
    """A message on its way: an op of its own, or its place in a batch. Await it for its `Result`."""

    def __init__(self, call: Call, place: int | None = None) -> None:
        self._call = call
        self._place = place

    @property
    def done(self) -> bool:
        """Whether its outcome is there."""
        return self._call.done

    def __await__(self) -> Generator[Any, None, Result]:
        return self._end().__await__()

    async def _end(self) -> Result:
        result = await self._call
        if self._place is None or not result.ok:
            return result
        row = result.value["outcomes"][self._place]
        if row["outcome"] == "acked":
            return result
        kind = Kind.REFUSED if row["outcome"] == "nacked" else Kind.TIMEOUT
        error = Error(kind=kind, definite=kind is Kind.REFUSED, code=row.get("code"))
        return msgspec.structs.replace(result, ok=False, error=error)


def sends_singly(client: Client, count: int) -> bool:
    """Whether so many messages of one publisher can be open at a time without being one batch."""
    return client.hello.limits.get("unconfirmed", count) >= count or not client.has("publish_many")


def begin_publishing(
    client: Client,
    target: str,
    bodies: Sequence[bytes],
    *,
    session: str = "s1",
    timeout: float = 4.0,
    **more: Any,
) -> list[Sent]:
    """Start to publish messages that are to be open at the same time."""
    if sends_singly(client, len(bodies)):
        begin = client.begin_publish
        return [Sent(begin(target, body, session=session, timeout=timeout, **more)) for body in bodies]
    messages = [{"body": as_body(body)} for body in bodies]
    args = {"session": session, "target": target, "messages": messages, "wait": True, **more}
    call = client.begin("publish_many", timeout, **args)
    return [Sent(call, place) for place in range(len(bodies))]
