"""The reference client, or a mutant of it, behind the adapter protocol."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any, ClassVar

from conformance.adapter import kit
from conformance.mutants.pzq.client import PzqClient
from conformance.mutants.pzq.consumer import Consumer, Delivery
from conformance.mutants.pzq.errors import ClientError
from conformance.mutants.pzq.inquirer import Inquirer
from conformance.mutants.pzq.network import Memory, Network, Sockets
from conformance.mutants.pzq.producer import Producer, text_of

Json = dict[str, Any]


class PzqAdapter(kit.AdapterBase):
    """Runs in the suite's process or in one of its own; both attributes are replaced by subclasses.

    Attributes:
        client: The reference client or a mutant of it.
        network: Where it gets its sockets.
    """

    client: ClassVar[type[PzqClient]] = PzqClient
    network: ClassVar[type[Network]] = Sockets

    adapter = library = "reference-pzq"
    library_version = "1"
    protocols = ("pzq",)
    roles = ("publisher", "consumer", "monitor")
    settles = "manual"
    callbacks = ("message", "error")
    caps = (
        "ack_timeout auto_reconnect callback_raise callback_sleep caller_key cancel clock_offset dedup "
        "filter_expired reentrant retry stats"
    )

    def __init__(self) -> None:
        super().__init__()
        self._later: set[asyncio.Task[None]] = set()

    @kit.op("connect")
    async def connect(self, session: str, endpoints: dict[str, str], options: Any = None) -> None:
        former = self.sessions.get(session)
        if former is not None:
            former.close()
        is_heard = (options or {}).get("listen", True)
        self.sessions[session] = self.client(
            self.network(),
            endpoints,
            lambda where, error: self.failed(session, is_heard, where, error),
        )
        self.sessions[session].noted = lambda text: self.emit("note", session=session, text=text)

    @kit.op("close")
    async def close(self, session: str) -> None:
        self.session(session).close()

    @kit.op("state")
    async def state(self, session: str) -> Json:
        found: PzqClient | None = self.sessions.get(session)
        if found is None:
            return {"open": False, "pending": None}
        return {"open": not found.is_closed, "pending": found.pending}

    async def clear(self) -> None:
        for client in self.sessions.values():
            client.close()

    def failed(self, session: str, is_heard: bool, where: str, error: ClientError) -> None:
        """The client's error callback."""
        if is_heard:
            self.emit("error", session=session, where=where, error=self.classify(error).report())
            self.trip("error")

    @kit.op("publish")
    async def publish(
        self, session: str, body: Any, key: Any, wait: bool, timeout_ms: float | None = None,
        request_id: int | None = None,
    ) -> Json:  # fmt: skip
        client: PzqClient = self.session(session)
        work = client.publish(kit.body_parts(body), kit.key_bytes(key), seconds(timeout_ms))
        if not wait:
            task = asyncio.create_task(self._report(work, request_id))
            self._later.add(task)
            task.add_done_callback(self._later.discard)
            return {"outcome": "sent", "key": None, "meta": {}}
        answer = await work
        meta = {"texts": [text_of(text) for text in answer.texts]}
        return {"outcome": "acked", "key": kit.report_key(answer.id), "meta": meta}

    async def _report(self, work: Any, request_id: int | None) -> None:
        outcome, code = "acked", None
        try:
            await work
        except ClientError as error:
            outcome, code = "nacked" if error.definite else "unknown", error.code
        self.emit("outcome", id=request_id, outcome=outcome, key=None, code=code)

    @kit.op("subscribe")
    async def subscribe(self, session: str, sub: str, target: str, options: Json, on_message: Json) -> None:
        client: PzqClient = self.session(session)
        subscription = kit.Subscription(self, sub, target, on_message)
        self.subs[sub] = subscription

        async def surface(delivery: Delivery) -> None:
            await subscription.deliver(
                delivery.body,
                native=delivery,
                position=kit.report_key(delivery.key),
                meta=self.details(delivery, subscription.handle),
            )

        wanted = bool(options.get("filter_expired"))
        subscription.handle = client.subscribe(surface, filter_expired=wanted)

    def details(self, delivery: Delivery, consumer: Consumer) -> Json:
        """What else there is to say about a message."""
        return {
            "pzq_id": kit.report_body(delivery.pzq_id)["b64"],
            "sent_us": _number(delivery.sent_us),
            "timeout_us": _number(delivery.timeout_us),
            "expired": consumer.is_expired(delivery),
        }

    @kit.op("settle")
    async def settle(self, sub: str, ref: str, how: str = "ack") -> None:
        subscription = self.subscription(sub)
        delivery = subscription.native.get(ref)
        if delivery is None or how not in ("ack", "nack"):
            raise kit.Failure("invalid", f"nothing to {how}")
        await subscription.handle.settle(delivery, how == "ack")

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str) -> None:
        self.subscription(sub).handle.close()

    @kit.op("pzq.monitor")
    async def monitor(self, session: str, timeout_ms: float | None = None) -> Json:
        return {"values": await self.session(session).ask(seconds(timeout_ms))}

    @kit.op("set_clock")
    async def set_clock(self, offset_ms: float) -> None:
        for client in self.sessions.values():
            client.network.wrong_by_s = offset_ms / 1000

    @kit.op("stats")
    async def stats(self) -> Json:
        clients: list[PzqClient] = list(self.sessions.values())
        return {
            "threads": threading.active_count(),
            "tasks": len(asyncio.all_tasks()),
            "pending": sum(client.pending for client in clients),
            "buffered_bytes": sum(client.buffered_bytes for client in clients),
        }

    def classify(self, error: Exception) -> kit.Failure:
        if isinstance(error, ClientError):
            return kit.Failure(error.kind, error.text, code=error.code, definite=error.definite)
        return super().classify(error)


def _number(value: int | None) -> int | str | None:
    return None if value is None else kit.number(value)


def seconds(timeout_ms: float | None) -> float | None:
    """A time-out as the client wants it."""
    return None if timeout_ms is None else timeout_ms / 1000


#: What `conformance.mutants.registry` asks for.
REFERENCE = PzqAdapter

PARTS: Mapping[str, type] = {
    "producer_part": Producer,
    "consumer_part": Consumer,
    "inquirer_part": Inquirer,
}


def adapter_with(part: type) -> type[PzqAdapter]:
    """The adapter of a client in which one part is replaced; `part` may also be the client itself."""
    client = part
    if not issubclass(part, PzqClient):
        [name] = [name for name, original in PARTS.items() if issubclass(part, original)]
        client = type(part.__name__, (PzqClient,), {name: part})
    return type(part.__name__, (PzqAdapter,), {"client": client})


def in_memory(adapter: type[PzqAdapter]) -> type[PzqAdapter]:
    """The same, for fakes without sockets."""
    return type(adapter.__name__, (adapter,), {"network": Memory})
