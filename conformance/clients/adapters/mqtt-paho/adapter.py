"""paho-mqtt (https://pypi.org/project/paho-mqtt/), driven by the adapter protocol.

A session is one `Client` with a network thread (`loop_start`). As its documents recommend, subscriptions are
made again in `on_connect`, here where the server remembers no session. A message has an outcome when
`wait_for_publish` or `on_publish` says so.
"""

from __future__ import annotations

import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

from paho.mqtt import client as paho

from conformance.clients.adapter import kit

Json = dict[str, Any]

#: Codes of CONNACK by the reason codes that the library makes of them.
CODES = {132: 1, 133: 2, 136: 3, 134: 4, 135: 5}
LOGIN = (4, 5)
REFUSED = 0x80
THREADS = 512  #: for messages that somebody waits for
CLOSED = -1


class Session:
    """A client, and what waits for its callbacks."""

    def __init__(self, adapter: Adapter, name: str, options: Json) -> None:
        self.adapter = adapter
        self.name = name
        self.listens = options.get("listen", True)
        self.client = paho.Client(
            paho.CallbackAPIVersion.VERSION2,
            client_id=options.get("client_id", ""),
            clean_session=options.get("clean", True),
            protocol=paho.MQTTv311,
            reconnect_on_failure=options.get("auto_reconnect", True),
        )
        self.entered: queue.Queue[int] = queue.Queue()
        self.filters: dict[str, int] = {}
        self.answers: dict[int, queue.Queue[Any]] = {}
        self.watched: dict[int, int] = {}  #: requests whose outcome is an event, by packet id
        self.early: set[int] = set()  #: acknowledged before it was known what they are for
        self.lock = threading.Lock()
        self.is_closed = self.was_open = False
        self.client.on_connect = self.on_connect
        self.client.on_disconnect = self.on_disconnect
        self.client.on_publish = self.on_publish
        self.client.on_subscribe = self.on_subscribe
        self.client.on_unsubscribe = self.on_unsubscribe

    def on_connect(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self.entered.put(CODES.get(reason.value, reason.value))
            return
        if self.was_open and not flags.session_present:
            for name, qos in self.filters.items():
                client.subscribe(name, qos)
        self.report("reconnected" if self.was_open else "connected")
        self.was_open = True
        self.entered.put(0)

    def on_disconnect(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if self.was_open and not self.is_closed:
            self.report("connection_lost", str(reason))

    def report(self, what: str, text: str = "") -> None:
        if self.listens:
            self.adapter.emit("session", session=self.name, what=what, text=text, code=None)
            self.adapter.trip("session")

    def on_publish(self, client: Any, data: Any, mid: int, reason: Any, properties: Any) -> None:
        with self.lock:
            request = self.watched.pop(mid, None)
            if request is None:
                self.early.add(mid)
                return
        self.adapter.trip("confirm")
        self.acked(request, mid)

    def acked(self, request: int, mid: int) -> None:
        self.adapter.emit("outcome", id=request, outcome="acked", key=mid, code=None)

    def watch(self, mid: int, request: int | None) -> None:
        """Say which request a message is of; None: one that has an outcome otherwise.

        The library calls `on_publish` with a lock held that its `publish` takes, so `publish` is called
        without ours.
        """
        with self.lock:
            is_done = mid in self.early
            self.early.discard(mid)
            if request is not None and not is_done:
                self.watched[mid] = request
        if request is not None and is_done:
            self.acked(request, mid)

    def on_subscribe(self, client: Any, data: Any, mid: int, reasons: Any, properties: Any) -> None:
        self.answer(mid, [reason.value for reason in reasons])

    def on_unsubscribe(self, client: Any, data: Any, mid: int, reasons: Any, properties: Any) -> None:
        self.answer(mid, [])

    def answer(self, mid: int, codes: list[int]) -> None:
        with self.lock:
            self.answers.setdefault(mid, queue.Queue()).put(codes)

    def asked(self, made: tuple[Any, int | None], timeout_ms: float | None) -> list[int]:
        """The answer to a request that was sent."""
        error, mid = made
        if error != paho.MQTT_ERR_SUCCESS or mid is None:
            raise failure(error)
        with self.lock:
            waiting = self.answers.setdefault(mid, queue.Queue())
        try:
            return list(waiting.get(timeout=None if timeout_ms is None else timeout_ms / 1000))
        except queue.Empty:
            raise kit.Failure("timeout", f"no answer after {timeout_ms} ms") from None
        finally:
            with self.lock:
                self.answers.pop(mid, None)


class Adapter(kit.AdapterBase):
    adapter = "mqtt-paho"
    library = "paho-mqtt"
    library_version = version("paho-mqtt")
    protocols = ("mqtt",)
    roles = ("publisher", "consumer")
    callbacks = ("message", "session", "confirm")
    caps = "ack_timeout at_release auto_reconnect callback_raise callback_sleep counter_seed lasting tls will"

    def __init__(self) -> None:
        super().__init__()
        self.waiting = ThreadPoolExecutor(THREADS)

    @kit.op("connect")
    def connect(self, session: str, endpoints: list[str], options: Json, timeout_ms: float) -> None:
        host, port = kit.host_port(endpoints[0])
        context = kit.tls_context(options)
        made = Session(self, session, options)
        if context is not None:
            made.client.tls_set_context(context)
            host = options["tls"].get("server_name", host)
        if "user" in options:
            made.client.username_pw_set(options["user"], options.get("password"))
        if (will := options.get("will")) is not None:
            body = kit.body_bytes(will["body"])
            made.client.will_set(will["target"], body, will.get("qos", 0), will.get("retain", False))
        made.client.connect_timeout = timeout_ms / 1000
        self.sessions[session] = made
        try:
            made.client.connect(host, port, int(options.get("keep_alive_s", 60)))
            made.client.loop_start()
            code = made.entered.get(timeout=timeout_ms / 1000)
        except queue.Empty:
            self.drop(made)
            raise kit.Failure("timeout", "no CONNACK in time") from None
        except BaseException:
            self.drop(made)
            raise
        if code == CLOSED:
            raise kit.Failure("closed", "closed while it connected")
        if code:
            self.drop(made)
            raise kit.Failure("auth" if code in LOGIN else "refused", "the server refused", code=code)

    def drop(self, session: Session) -> None:
        """End a session."""
        session.is_closed = True
        session.entered.put(CLOSED)
        session.client.disconnect()
        session.client.loop_stop()

    @kit.op("close")
    def close(self, session: str) -> None:
        self.drop(self.session(session))

    @kit.op("state")
    async def state(self, session: str) -> Json:
        found = self.sessions.get(session)
        return {"open": found is not None and found.client.is_connected(), "pending": None}

    @kit.op("publish")
    async def publish(
        self, session: str, target: str, body: Any, wait: bool, request_id: int, timeout_ms: float, args: Json
    ) -> Json:
        found = self.session(session)
        qos = args.get("qos", 1)
        if wait and not qos:
            raise kit.Failure("unsupported", "nothing acknowledges a message with QoS 0")
        info = found.client.publish(target, kit.body_bytes(body), qos, args.get("retain", False))
        if info.rc == paho.MQTT_ERR_QUEUE_SIZE:
            raise failure(info.rc)
        if not wait:
            is_kept = qos and info.rc in (paho.MQTT_ERR_SUCCESS, paho.MQTT_ERR_NO_CONN)
            found.watch(info.mid, request_id if is_kept else None)
            return {"outcome": "sent", "key": None, "meta": {}}
        try:
            await self.loop.run_in_executor(self.waiting, info.wait_for_publish, timeout_ms / 1000)
        except RuntimeError as error:
            raise kit.Failure("connection", str(error), definite=False) from None
        if not info.is_published():
            raise kit.Failure("timeout", f"not acknowledged after {timeout_ms} ms")
        found.watch(info.mid, None)
        return {"outcome": "acked", "key": info.mid, "meta": {}}

    @kit.op("set_counter")
    async def set_counter(self, session: str, which: str, value: int | str) -> None:
        if which != "publishing":
            raise kit.Failure("unsupported", f"no counter {which}")
        self.session(session).client._last_mid = int(value) - 1  # it goes round after 65,535 messages

    @kit.op("subscribe")
    def subscribe(
        self, session: str, sub: str, target: str, options: Json, on_message: Json, timeout_ms: float
    ) -> None:
        found, subscription = self.session(session), kit.Subscription(self, sub, target, on_message)
        self.subs[sub] = subscription

        def deliver(client: Any, data: Any, message: Any) -> None:
            meta = {"topic": message.topic, "qos": message.qos, "retain": message.retain, "dup": message.dup}
            subscription.deliver_blocking(message.payload, meta=meta, redelivered=message.dup)

        qos = options.get("qos", 1)
        try:
            found.client.message_callback_add(target, deliver)
            codes = found.asked(found.client.subscribe(target, qos), timeout_ms)
            if codes[0] >= REFUSED:
                raise kit.Failure("refused", "the server refuses this filter", code=codes[0])
        except BaseException:
            found.client.message_callback_remove(target)
            raise
        found.filters[target] = qos
        subscription.handle = (found, target)

    @kit.op("unsubscribe")
    def unsubscribe(self, sub: str, timeout_ms: float) -> None:
        found, target = self.handle_of(sub)
        found.filters.pop(target, None)
        found.client.message_callback_remove(target)
        found.asked(found.client.unsubscribe(target), timeout_ms)

    async def clear(self) -> None:
        for each in self.sessions.values():
            await self.loop.run_in_executor(None, self.drop, each)

    def classify(self, error: Exception) -> kit.Failure:
        if isinstance(error, ValueError) and not isinstance(error, OSError):  # as TLS errors are
            return kit.Failure("invalid", str(error))
        return super().classify(error)


def failure(code: Any) -> kit.Failure:
    """What an error code of the library means."""
    if code in (paho.MQTT_ERR_NO_CONN, paho.MQTT_ERR_CONN_LOST):
        return kit.Failure("connection", paho.error_string(code), definite=code == paho.MQTT_ERR_NO_CONN)
    return kit.Failure("invalid", paho.error_string(code))


if __name__ == "__main__":
    kit.run(Adapter())
