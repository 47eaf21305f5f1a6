"""aiomqtt (https://pypi.org/project/aiomqtt/), driven by the adapter protocol.

A session is one `Client`, entered by `connect` and left by `close`, with a task that reads its messages. The
library does not reconnect: its documents have the application enter the client again, so no session outlives
its connection.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any

import aiomqtt
from paho.mqtt import client as paho
from paho.mqtt.reasoncodes import ReasonCode

from conformance.clients.adapter import kit

Json = dict[str, Any]

#: Codes of CONNACK by the reason codes that the library makes of them.
CODES = {132: 1, 133: 2, 136: 3, 134: 4, 135: 5}
LOGIN = (4, 5)
REFUSED = 0x80
TIMED_OUT = "Operation timed out"


class Session:
    """A client, and who reads its messages."""

    def __init__(self, name: str, client: aiomqtt.Client) -> None:
        self.name = name
        self.client = client
        self.subscriptions: list[kit.Subscription] = []
        self.reader: asyncio.Task[None] | None = None
        self.is_open = True


class Adapter(kit.AdapterBase):
    adapter = "mqtt-aiomqtt"
    library = "aiomqtt"
    library_version = version("aiomqtt")
    protocols = ("mqtt",)
    roles = ("publisher", "consumer")
    caps = "ack_timeout at_release callback_sleep counter_seed reentrant tls will"

    @kit.op("connect")
    async def connect(self, session: str, endpoints: list[str], options: Json, timeout_ms: float) -> None:
        host, port = kit.host_port(endpoints[0])
        context = kit.tls_context(options)
        if context is not None:
            host = options["tls"].get("server_name", host)
        will = options.get("will")
        client = aiomqtt.Client(
            host,
            port,
            username=options.get("user"),
            password=options.get("password"),
            identifier=options.get("client_id"),
            clean_session=options.get("clean", True),
            keepalive=int(options.get("keep_alive_s", 60)),
            timeout=timeout_ms / 1000,
            tls_context=context,
            will=will and aiomqtt.Will(
                will["target"], kit.body_bytes(will["body"]), will.get("qos", 0), will.get("retain", False)
            ),
        )  # fmt: skip
        await client.__aenter__()
        made = self.sessions[session] = Session(session, client)
        made.reader = self.loop.create_task(self.read(made, options.get("listen", True)))

    async def read(self, session: Session, listens: bool) -> None:
        """Hand over what comes; the loop is the application's, so there is no callback that could raise."""
        try:
            async for message in session.client.messages:
                meta = {
                    "topic": message.topic.value,
                    "qos": message.qos,
                    "retain": message.retain,
                }
                for one in [*session.subscriptions]:
                    if message.topic.matches(one.target):
                        await one.deliver(message.payload, meta=meta)
        except aiomqtt.MqttError as error:
            session.is_open = False
            if listens:
                text = str(error)
                self.emit("session", session=session.name, what="connection_lost", text=text, code=None)

    @kit.op("close")
    async def close(self, session: str) -> None:
        found: Session = self.session(session)
        found.is_open = False
        if found.reader is not None:
            found.reader.cancel()
        await found.client.__aexit__(None, None, None)

    @kit.op("state")
    async def state(self, session: str) -> Json:
        found = self.sessions.get(session)
        return {"open": found is not None and found.is_open, "pending": None}

    @kit.op("publish")
    async def publish(
        self, session: str, target: str, body: Any, wait: bool, request_id: int, timeout_ms: float, args: Json
    ) -> Json:
        client: aiomqtt.Client = self.session(session).client
        qos = args.get("qos", 1)
        if wait and not qos:
            raise kit.Failure("unsupported", "nothing acknowledges a message with QoS 0")
        limit = timeout_ms / 1000
        sending = client.publish(target, kit.body_bytes(body), qos, args.get("retain", False), timeout=limit)
        if wait or not qos:
            await sending
            return {"outcome": "acked" if qos else "sent", "key": None, "meta": {}}
        self.loop.create_task(self.outcome(sending, request_id))
        return {"outcome": "sent", "key": None, "meta": {}}

    async def outcome(self, sending: Any, request_id: int) -> None:
        word = "acked"
        try:
            await sending
        except Exception as error:
            word = "nacked" if self.classify(error).definite else "unknown"
        self.emit("outcome", id=request_id, outcome=word, key=None, code=None)

    @kit.op("set_counter")
    async def set_counter(self, session: str, which: str, value: int | str) -> None:
        if which != "publishing":
            raise kit.Failure("unsupported", f"no counter {which}")
        self.session(session).client._client._last_mid = int(value) - 1  # it goes round after 65,535 messages

    @kit.op("subscribe")
    async def subscribe(
        self, session: str, sub: str, target: str, options: Json, on_message: Json, timeout_ms: float
    ) -> None:
        found: Session = self.session(session)
        subscription = self.subs[sub] = kit.Subscription(self, sub, target, on_message)
        subscription.handle = found
        found.subscriptions.append(subscription)
        try:
            granted = await found.client.subscribe(target, options.get("qos", 1), timeout=timeout_ms / 1000)
            if not granted:
                raise kit.Failure("protocol", "a SUBACK without a code")
            code = granted[0].value if isinstance(granted[0], ReasonCode) else granted[0]
            if code >= REFUSED:
                raise kit.Failure("refused", "the server refuses this filter", code=code)
        except BaseException:
            found.subscriptions.remove(subscription)
            raise

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str, timeout_ms: float) -> None:
        found, subscription = self.handle_of(sub), self.subs[sub]
        found.subscriptions.remove(subscription)
        await found.client.unsubscribe(subscription.target, timeout=timeout_ms / 1000)

    async def clear(self) -> None:
        for each in self.sessions.values():
            each.is_open = False
            if each.reader is not None:
                each.reader.cancel()

    def classify(self, error: Exception) -> kit.Failure:
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, aiomqtt.exceptions.MqttConnectError):
            value = error.rc.value if isinstance(error.rc, ReasonCode) else error.rc
            code = CODES.get(value, value)
            return kit.Failure("auth" if code in LOGIN else "refused", text, code=code)
        if isinstance(error, aiomqtt.MqttCodeError):
            if error.rc in (paho.MQTT_ERR_NO_CONN, paho.MQTT_ERR_CONN_LOST):
                return kit.Failure("connection", text, definite=error.rc == paho.MQTT_ERR_NO_CONN)
            return kit.Failure("invalid" if isinstance(error.rc, int) else "connection", text)
        if isinstance(error, aiomqtt.MqttError):
            if str(error) == TIMED_OUT:
                return kit.Failure("timeout", text)
            return kit.Failure("connection", text, definite="Connection refused" in text)
        if isinstance(error, ValueError) and not isinstance(error, OSError):
            return kit.Failure("invalid", text)
        return super().classify(error)


if __name__ == "__main__":
    kit.run(Adapter())
