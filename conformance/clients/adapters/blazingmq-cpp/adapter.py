"""blazingmq (https://pypi.org/project/blazingmq/): the C++ SDK in a wheel, driven by the adapter protocol.

A session is one `blazingmq.Session`, which connects as it is made. Its calls block, so each runs in a thread;
posts go through one thread for each session, which keeps their order. The library has one callback for the
messages of all queues: what comes before the script has subscribed waits here. It tells nothing about itself,
so `state` is what its session events have reported.
"""

from __future__ import annotations

import asyncio
import queue
import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple

import blazingmq
from blazingmq import session_events as reported

from conformance.clients.adapter import kit

Json = dict[str, Any]

GOODBYE_S = 1.0  #: what sessions get at a reset; the suite starts a new process for each scenario anyway
DISCONNECT_S = 10.0
CATEGORIES = {
    "UNKNOWN": -1,
    "NOT_CONNECTED": -3,
    "CANCELED": -4,
    "NOT_SUPPORTED": -5,
    "REFUSED": -6,
    "INVALID_ARGUMENT": -7,
    "NOT_READY": -8,
}
WHAT: dict[type[reported.SessionEvent], str] = {
    reported.Connected: "connected",
    reported.ConnectionLost: "connection_lost",
    reported.Reconnected: "reconnected",
    reported.Disconnected: "disconnected",
    reported.QueueReopened: "target_reopened",
    reported.QueueReopenFailed: "target_closed",
}


class Delivery(NamedTuple):
    message: Any
    handle: Any


class Session:
    """One session of the library, its queues by the script's names, and the thread that posts."""

    def __init__(self, adapter: Adapter, name: str, options: Json, connect_s: float) -> None:
        self.adapter, self.name = adapter, name
        self.open = self.stopped = False
        self.uris: dict[str, str] = {}
        self.wanted: dict[str, kit.Subscription] = {}
        self.subs: dict[str, kit.Subscription] = {}  # those that have got what came before them
        self.early: dict[str, list[Delivery]] = {}
        self.lock = threading.Lock()
        self.posts: queue.SimpleQueue[tuple[Future[None], Callable[[], None]] | None] = queue.SimpleQueue()
        times = {f"{what}_timeout": ms / 1000 for what, ms in self.timeouts(options).items()}
        compression = str(options.get("compression", "none")).upper()
        self.made: Any = blazingmq.Session(
            self.on_event if options.get("listen", True) else reported.log_session_event,
            self.on_message,
            broker=f"tcp://{options['endpoint']}",
            message_compression_algorithm=blazingmq.CompressionAlgorithmType[compression],
            timeout=blazingmq.Timeouts(
                **{"connect_timeout": connect_s, "disconnect_timeout": DISCONNECT_S, **times}
            ),
        )
        self.open = True
        threading.Thread(target=self.post_all, daemon=True).start()

    @staticmethod
    def timeouts(options: Json) -> Json:
        words = {"open": "open_queue", "configure": "configure_queue", "close": "close_queue"}
        return {words.get(what, what): ms for what, ms in options.get("timeouts", {}).items()}

    def uri(self, target: str) -> str:
        return self.uris.get(target, target)

    def post_all(self) -> None:
        while (given := self.posts.get()) is not None:
            done, post = given
            try:
                post()
            except Exception as error:
                done.set_exception(error)
            else:
                done.set_result(None)

    def post(self, act: Callable[[], None]) -> Future[None]:
        done: Future[None] = Future()
        if self.stopped:
            act()
            done.set_result(None)
        else:
            self.posts.put((done, act))
        return done

    def stop(self) -> None:
        if not self.stopped:
            self.stopped = True
            self.posts.put(None)
        self.made.stop()

    def on_event(self, event: reported.SessionEvent) -> None:
        what, emit = WHAT.get(type(event)), self.adapter.emit
        if what in ("connected", "reconnected"):
            self.open = True
        elif what in ("connection_lost", "disconnected"):
            self.open = False
        if what is not None:
            targets = [event.queue_uri] if isinstance(event, reported.QueueEvent) else None
            emit("session", session=self.name, what=what, text=repr(event), targets=targets)
        elif isinstance(event, reported.Error | reported.InterfaceError):
            failure = kit.Failure("internal", repr(event))
            emit("error", session=self.name, where="other", error=failure.report())
        else:
            emit("note", session=self.name, text=repr(event))
        self.adapter.trip("session")

    def on_message(self, message: Any, handle: Any) -> None:
        delivery = Delivery(message, handle)
        with self.lock:
            sub = self.subs.get(message.queue_uri)
            if sub is None:
                self.early.setdefault(message.queue_uri, []).append(delivery)
                return
        deliver(sub, delivery)

    def attach(self, sub: kit.Subscription, uri: str) -> None:
        """Begin to deliver, on a thread as the library's own: callbacks may take their time."""
        self.wanted[uri] = sub
        threading.Thread(target=self._hand_over, args=(sub, uri), daemon=True).start()

    def detach(self, uri: str) -> None:
        self.wanted.pop(uri, None)
        self.subs.pop(uri, None)

    def _hand_over(self, sub: kit.Subscription, uri: str) -> None:
        """What came before goes first; meanwhile nothing else does."""
        with self.lock:
            for delivery in self.early.pop(uri, []):
                if self.stopped or self.wanted.get(uri) is not sub:
                    return
                with suppress(kit.CallbackError):  # there is no callback of the library's to raise it in
                    deliver(sub, delivery)
            if self.wanted.get(uri) is sub:
                self.subs[uri] = sub


def details(delivery: Delivery) -> Json:
    message = delivery.message
    types = message.property_types
    properties = {name: shown(types[name], value) for name, value in message.properties.items()}
    return {
        "native": delivery.handle,
        "position": message.guid.hex().upper(),
        "meta": {"properties": properties, "uri": message.queue_uri},
    }


def deliver(sub: kit.Subscription, delivery: Delivery) -> None:
    sub.deliver_blocking(delivery.message.data, **details(delivery))


def shown(kind: Any, value: Any) -> Json:
    if isinstance(value, bytes):
        return {"type": kind.name.lower(), "value": kit.report_body(value)}
    return {"type": kind.name.lower(), "value": str(value).lower() if isinstance(value, bool) else str(value)}


def native(kind: str, value: Any) -> Any:
    """The library's value of a property of the script."""
    if kind == "bool":
        return str(value) == "true"
    if kind in ("char", "binary"):
        return kit.body_bytes(value)
    return str(value) if kind == "string" else int(value)


class Adapter(kit.AdapterBase):
    adapter = "blazingmq-cpp"
    library = "blazingmq"
    library_version = blazingmq.__version__
    protocols = ("blazingmq",)
    roles = ("publisher", "consumer")
    callbacks = ("message", "confirm", "session")
    #: Messages have GUIDs on the wire; start() tries until its time-out.
    contract: Mapping[str, bool] = {"own_keys": True, "waits": True}
    caps = "auto_reconnect callback_raise callback_sleep compression.zlib properties reentrant stats"
    limits = kit.limits(close=int(DISCONNECT_S * 1000))
    settles = "manual"
    restart = "per_scenario"  # sessions own threads of the C++ SDK, which nobody can end from outside

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Session] = []  # the last reference to a session stops it, and waits for that

    async def clear(self) -> None:
        threads = [
            threading.Thread(target=session.made.stop, daemon=True)
            for session in self.sessions.values()
            if session is not None and not session.stopped
        ]
        for thread in threads:
            thread.start()
        end = self.loop.time() + GOODBYE_S
        while any(thread.is_alive() for thread in threads) and self.loop.time() < end:
            await asyncio.sleep(0.01)

    @kit.op("connect")
    async def connect(self, session: str, endpoints: list[str], options: Json, timeout_ms: Any) -> None:
        there = self.sessions.get(session)
        if session in self.sessions and not (there and there.stopped):
            raise kit.Failure("invalid", "a session of the library connects as it is made, once")
        if there is not None:
            there.made = None  # it and its callbacks hold each other, and the collector does not see that
        self.sessions[session] = None
        seconds = (timeout_ms or 5000) / 1000
        try:
            made = await asyncio.to_thread(
                Session, self, session, {**options, "endpoint": endpoints[0]}, seconds
            )
        except BaseException:
            self.sessions.pop(session, None)
            raise
        self.kept.append(made)
        self.sessions[session] = made

    def session(self, name: str) -> Any:
        if self.sessions.get(name) is None:
            raise kit.Failure("closed", f"no session {name!r}", definite=True)
        return self.sessions[name]

    @kit.op("state")
    async def state(self, session: str) -> Json:
        found = self.sessions.get(session)
        return {"open": bool(found and found.open and not found.stopped), "pending": None}

    @kit.op("close")
    def close(self, session: str) -> None:
        if session in self.sessions and self.sessions[session] is None:
            text = "the library connects in its constructor: until that returns there is nothing to close"
            raise kit.Failure("invalid", text, definite=True)
        found = self.session(session)
        found.stop()
        if found in self.kept:
            self.kept.remove(found)

    @kit.op("bmq.open_queue")
    def open_queue(
        self, session: str, target: str, uri: str, flags: list[str], options: Json, timeout_ms: Any
    ) -> None:
        found = self.session(session)
        found.made.open_queue(
            uri, "read" in flags, "write" in flags, queue_options(options), **limit(timeout_ms)
        )
        found.uris[target] = uri

    @kit.op("bmq.configure_queue")
    def configure_queue(self, session: str, target: str, options: Json, timeout_ms: Any) -> None:
        found = self.session(session)
        found.made.configure_queue(found.uri(target), queue_options(options), **limit(timeout_ms))

    @kit.op("bmq.close_queue")
    def close_queue(self, session: str, target: str, timeout_ms: Any) -> None:
        found = self.session(session)
        found.made.close_queue(found.uri(target), **limit(timeout_ms))

    @kit.op("publish")
    async def publish(self, session: str, target: str, body: Json, wait: bool, args: Json) -> Json:
        found, message = self.session(session), kit.body_bytes(body)
        more: Json = {}
        if properties := args.get("properties"):
            more["properties"] = {k: native(p["type"], p["value"]) for k, p in properties.items()}
            more["property_type_overrides"] = {
                k: blazingmq.PropertyType[p["type"].upper()] for k, p in properties.items()
            }
        acked: Future[Any] = Future()
        if wait:
            more["on_ack"] = lambda ack: self.acknowledged(acked, ack)
        uri = found.uri(target)
        await asyncio.wrap_future(found.post(lambda: found.made.post(uri, message, **more)))
        if not wait:  # the library then asks for no answer
            return {"outcome": "sent", "key": None, "meta": {}}
        ack = await asyncio.wrap_future(acked)
        word = ack.status.name
        if word == "SUCCESS":
            return {"outcome": "acked", "key": None, "meta": {"guid": ack.guid.hex().upper()}}
        if word == "UNKNOWN" and not found.open:  # said by the library itself, of what was lost
            raise kit.Failure("connection", "UNKNOWN")
        raise kit.Failure("refused", word, code=word)

    def acknowledged(self, acked: Future[Any], ack: Any) -> None:
        acked.set_result(ack)
        self.trip("confirm")

    @kit.op("subscribe")
    def subscribe(self, session: str, sub: str, target: str, on_message: Json) -> None:
        found = self.session(session)
        uri = found.uri(target)
        subscription = self.subs[sub] = kit.Subscription(self, sub, target, on_message)
        subscription.handle = (found, uri)
        found.attach(subscription, uri)

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str) -> None:
        found, uri = self.subscription(sub).handle
        found.detach(uri)

    @kit.op("settle")
    def settle(self, sub: str, ref: str, how: str) -> None:
        if how != "ack":
            raise kit.Failure("unsupported", "BlazingMQ only has confirms")
        self.subscription(sub).native[ref].confirm()

    def classify(self, error: Exception) -> kit.Failure:
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, blazingmq.exceptions.BrokerTimeoutError):
            return kit.Failure("timeout", text)
        if not isinstance(error, blazingmq.Error):
            wrong = isinstance(error, TypeError | ValueError | UnicodeError)
            return kit.Failure("invalid", text) if wrong else super().classify(error)
        if "Queue not opened" in text or "after session was stopped" in text:
            return kit.Failure("closed", text, definite=True)
        word, reported_why, why = str(error).partition(": ")[2].partition(": ")
        if word == "NOT_CONNECTED" and why in ("", word):
            return kit.Failure("connection", text, definite=True)
        if word in CATEGORIES and reported_why and why != word:  # the broker's text, which may be empty
            return kit.Failure("refused", text, code=CATEGORIES[word])
        if word == "CANCELED":
            return kit.Failure("cancelled", text)
        local = re.match("(INVALID|QUEUE|PAYLOAD|ALREADY|NOT_SUPPORTED|OPTION)", word)
        return kit.Failure("invalid", text) if local else kit.Failure("internal", text)


def queue_options(options: Json) -> blazingmq.QueueOptions:
    known = ("max_unconfirmed_messages", "max_unconfirmed_bytes", "consumer_priority")
    return blazingmq.QueueOptions(**{name: options[name] for name in known if name in options})


def limit(timeout_ms: Any) -> Json:
    return {} if timeout_ms is None else {"timeout": timeout_ms / 1000}


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        kit.run(Adapter())
