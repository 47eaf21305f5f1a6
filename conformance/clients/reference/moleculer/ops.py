"""The ops of Moleculer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from conformance.clients.adapter import kit
from conformance.clients.reference.kit import ClientError, Reference, ReferenceAdapter, Runtime, seconds
from conformance.clients.reference.moleculer import behaviours
from conformance.clients.reference.moleculer.caller import Upload
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.context import Context
from conformance.clients.reference.moleculer.serializers import SCHEMAS
from conformance.clients.reference.moleculer.serving import Handler, Service
from conformance.clients.reference.moleculer.settings import Settings, addresses

Json = dict[str, Any]


class MoleculerOps:
    """What the adapter does for Moleculer only."""

    def __init__(self, adapter: ReferenceAdapter) -> None:
        self.adapter = adapter
        self._listeners = 0

    def client(self, runtime: Runtime, endpoints: Any, options: Mapping[str, Any]) -> MoleculerClient:
        transporter, servers = addresses(str(options.get("transporter") or ",".join(endpoints)))
        settings = Settings(
            transporter=transporter,
            endpoints=servers,
            node_id=options.get("node_id", "reference"),
            namespace=options.get("namespace", ""),
            heartbeat_s=options.get("heartbeat_s", 10.0),
            heartbeat_timeout_s=options.get("heartbeat_timeout_s", 30.0),
            timeout_s=options.get("request_timeout_ms", 0) / 1000,
            disable_balancer=bool(options.get("disable_balancer")),
            serializer=options.get("serializer", "JSON"),
        )
        return runtime.part(MoleculerClient)(runtime, settings)

    def session(self, name: str) -> MoleculerClient:
        """The node of a session."""
        found: MoleculerClient = self.adapter.session(name)
        return found

    # calls

    @kit.op("mol.call")
    async def call(
        self, session: str, action: str, params: Any = None, meta: Any = None, node: str = "",
        stream: Any = None, chunk: int | None = None, every_ms: float = 0, objects: Any = None,
        breaks: str | None = None, args: Any = None, request_id: int | None = None,
    ) -> Json:  # fmt: skip
        def note(**what: Any) -> None:
            self.adapter.emit("note", id=request_id, **what)

        upload = None
        if objects is not None:
            upload = Upload(behaviours.each_of(objects), object_mode=True)
        elif stream is not None:
            upload = Upload(behaviours.source(stream, chunk, every_ms, note, breaks))
        timeout = seconds((args or {}).get("timeout_ms"))
        caller = self.session(session).caller
        begun = asyncio.get_running_loop().time()
        data, known = await caller.call(action, params, meta=meta, timeout=timeout, node=node, upload=upload)
        try:
            async with asyncio.timeout_at(begun + timeout if timeout else None):
                taken = await behaviours.taken(data, note)
        except TimeoutError:
            raise ClientError("timeout", f"no end of the stream within {timeout:g} s") from None
        return {"data": taken, "meta": known.meta, "from": known.answered_by}

    @kit.op("mol.ping")
    async def ping(self, session: str, node: str = "", timeout_ms: float | None = None) -> Json:
        if not node:
            all_s = await self.session(session).pings.ping_all(seconds(timeout_ms))
            times = {id: None if took_s is None else took_s * 1000 for id, took_s in all_s.items()}
            return {"nodes": [{"from": id, "rtt_ms": rtt_ms} for id, rtt_ms in times.items()]}
        pong, took_s = await self.session(session).pings.ping(node, seconds(timeout_ms))
        return {"arrived": pong.get("arrived"), "rtt_ms": took_s * 1000, "from": pong["sender"]}

    @kit.op("mol.registry")
    async def registry(self, session: str) -> Json:
        peers = self.session(session).registry
        return {"nodes": [{"id": p.id, "available": p.available, "services": p.names} for p in peers]}

    # services

    @kit.op("mol.serve")
    async def serve(self, session: str, service: str, actions: Any, start_delay_ms: float = 0) -> None:
        handlers = {name: self.handler(session, behaviour) for name, behaviour in actions.items()}
        slow = any(isinstance(each, dict) and each.get("special") == "slow_stop" for each in actions.values())
        await asyncio.sleep(start_delay_ms / 1000)
        stop_s = behaviours.SLOW_STOP_S if slow else 0.0
        self.session(session).serve(Service(service, handlers, stop_s=stop_s))

    def handler(self, session: str, behaviour: Any) -> Handler:
        """An action that tells when it begins and ends."""

        def read(context: Context) -> behaviours.Note:
            return lambda **what: self.adapter.emit("note", session=session, request=context.id, **what)

        act = behaviours.handler(behaviour, read)

        async def reported(context: Context) -> Any:
            about = {"session": session, "request": context.id}
            self.adapter.emit(
                "note", what="action", action=context.action, **about, **{"from": context.sender}
            )
            ok = False
            try:
                self.adapter.trip("message")
                found = await act(context)
                ok = True
                return found
            finally:
                self.adapter.emit("note", what="ended", ok=ok, **about)

        return reported

    @kit.op("mol.unserve")
    async def unserve(self, session: str, service: str) -> None:
        self.session(session).unserve(service)

    # events

    @kit.op("mol.emit")
    async def emit(self, session: str, event: str, data: Any = None, groups: Any = None) -> None:
        self.session(session).events.emit(event, data, groups)

    @kit.op("mol.broadcast")
    async def broadcast(self, session: str, event: str, data: Any = None, groups: Any = None) -> None:
        self.session(session).events.broadcast(event, data, groups)

    @kit.op("mol.listen")
    async def listen(
        self, session: str, event: str, sub: str | None = None, group: str = "", on_message: Any = None
    ) -> None:
        node = self.session(session)
        node.check_open()
        subscription = self.adapter.surfacing(sub or event, event, on_message)

        async def delivered(packet: Json) -> None:
            body = json.dumps(packet.get("data")).encode()
            about = {"event": packet["event"], "groups": packet.get("groups"), "from": packet["sender"]}
            await subscription.deliver(body, meta=about)

        self._listeners += 1
        name = f"listener-{self._listeners}"
        node.serve(Service(name, events={event: group}))
        node.events.listen(event, group or name, delivered)


REFERENCE = Reference(
    protocol="moleculer",
    ops=MoleculerOps,
    roles=("caller", "service", "emitter", "listener"),
    caps="auto_reconnect callback_raise callback_sleep cancel clock_offset disable_balancer"
    " endpoints reentrant stats streams streams.broken tls",
    facts={
        "transporters": ["nats", "redis", "mqtt", "tcp"],
        "serializers": ["JSON", *SCHEMAS],
    },
)
