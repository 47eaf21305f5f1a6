"""`pzq_client.py`, the small client beside this file, behind the adapter protocol.

PZQ has no maintained client library; this is what a user of its document would write.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import zmq
from pzq_client import Closed, Consumer, Message, Monitor, NoAnswer, NotStored, Producer, ProtocolError

from conformance.adapter import kit

Json = dict[str, Any]

TRUE_CLOCK = time.time_ns


class Session:
    def __init__(self, endpoints: dict[str, str]) -> None:
        self.endpoints = endpoints
        self.producer = Producer(endpoints["receive"])
        self.monitor = Monitor(endpoints["monitor"])
        self.consumers: list[Consumer] = []
        self.is_open = True

    def close(self) -> None:
        self.is_open = False
        for each in (self.producer, self.monitor, *self.consumers):
            each.close()


class Adapter(kit.AdapterBase):
    adapter = "pzq-python"
    library = "pyzmq"
    library_version = zmq.__version__
    protocols = ("pzq",)
    roles = ("publisher", "consumer", "monitor")
    settles = "manual"
    caps = (
        "ack_timeout auto_reconnect callback_raise callback_sleep caller_key cancel clock_offset "
        "filter_expired reentrant stats"
    )

    def __init__(self) -> None:
        super().__init__()
        self.sending: set[asyncio.Task[None]] = set()

    @kit.op("connect")
    async def connect(self, session: str, endpoints: dict[str, str]) -> None:
        self.sessions[session] = Session(endpoints)

    @kit.op("state")
    async def state(self, session: str) -> Json:
        found = self.sessions.get(session)
        return {"open": bool(found and found.is_open), "pending": found.producer.pending if found else None}

    @kit.op("close")
    async def close(self, session: str) -> None:
        self.session(session).close()

    async def clear(self) -> None:
        time.time_ns = TRUE_CLOCK
        for session in self.sessions.values():
            session.close()

    @kit.op("set_clock")
    async def set_clock(self, offset_ms: float) -> None:
        time.time_ns = lambda: TRUE_CLOCK() + round(offset_ms * 1e6)

    @kit.op("publish")
    async def publish(
        self, session: str, body: Any, key: Any, wait: bool, timeout_ms: Any, request_id: int
    ) -> Json:
        timeout = None if timeout_ms is None else timeout_ms / 1000
        work = self.session(session).producer.produce(
            kit.body_parts(body), id=kit.key_bytes(key), timeout=timeout
        )
        if wait:
            id, texts = await work
            meta = {"texts": [text.decode(errors="replace") for text in texts]}
            return {"outcome": "acked", "key": kit.report_key(id), "meta": meta}
        sending = asyncio.create_task(self.send(work, request_id))
        self.sending.add(sending)
        sending.add_done_callback(self.sending.discard)
        return {"outcome": "sent", "key": None, "meta": {}}

    async def send(self, work: Any, request_id: int) -> None:
        outcome, code = "acked", None
        try:
            await work
        except Exception as error:
            failure = self.classify(error)
            outcome, code = "nacked" if failure.definite else "unknown", failure.code
        self.emit("outcome", id=request_id, outcome=outcome, key=None, code=code)

    @kit.op("subscribe")
    async def subscribe(self, session: str, sub: str, target: str, options: Json, on_message: Json) -> None:
        found, subscription = self.session(session), kit.Subscription(self, sub, target, on_message)

        async def deliver(message: Message) -> None:
            meta = {
                "pzq_id": kit.report_body(message.pzq_id)["b64"],
                "sent_us": None if message.sent_us is None else kit.number(message.sent_us),
                "timeout_us": None if message.timeout_us is None else kit.number(message.timeout_us),
                "expired": message.is_expired,
            }
            position = kit.report_key(message.id)
            await subscription.deliver(message.body, native=message, position=position, meta=meta)

        def failed(error: Exception) -> None:
            where = "decode" if isinstance(error, ProtocolError) else "callback"
            self.emit("error", sub=sub, where=where, error=self.classify(error).report())

        subscription.handle = Consumer(
            found.endpoints["send"],
            deliver,
            skip_expired=bool(options.get("filter_expired")),
            on_error=failed,
        )
        self.subs[sub] = subscription
        found.consumers.append(subscription.handle)

    @kit.op("settle")
    async def settle(self, sub: str, ref: str, how: str = "ack") -> None:
        subscription = self.subscription(sub)
        if ref not in subscription.native or how not in ("ack", "nack"):
            raise kit.Failure("invalid", f"nothing to {how}")
        consumer: Consumer = subscription.handle
        await (consumer.ack if how == "ack" else consumer.reject)(subscription.native[ref])

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str) -> None:
        self.subscription(sub).handle.close()

    @kit.op("pzq.monitor")
    async def monitor(self, session: str, timeout_ms: Any) -> Json:
        timeout = None if timeout_ms is None else timeout_ms / 1000
        return {"values": await self.session(session).monitor.figures(timeout=timeout)}

    def classify(self, error: Exception) -> kit.Failure:
        match error:
            case NotStored():
                return kit.Failure("refused", str(error), code=error.status)
            case NoAnswer():
                return kit.Failure("timeout", str(error))
            case Closed():
                return kit.Failure("closed", str(error))
            case ProtocolError():
                return kit.Failure("protocol", str(error))
            case ValueError():
                return kit.Failure("invalid", str(error))
        return super().classify(error)


if __name__ == "__main__":
    kit.run(Adapter())
