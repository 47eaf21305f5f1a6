"""The reference node of Moleculer: correct, small, and made of parts that mutants replace."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Any

from conformance.clients.reference.kit import DEFAULT_TIMEOUT_S, ClientError, Runtime
from conformance.clients.reference.moleculer.bus import Bus
from conformance.clients.reference.moleculer.caller import Caller
from conformance.clients.reference.moleculer.codecs import check_words
from conformance.clients.reference.moleculer.context import Context
from conformance.clients.reference.moleculer.events import Events
from conformance.clients.reference.moleculer.mesh import Mesh
from conformance.clients.reference.moleculer.pings import Pings
from conformance.clients.reference.moleculer.post import Post
from conformance.clients.reference.moleculer.registry import Registry
from conformance.clients.reference.moleculer.serving import Server, Service
from conformance.clients.reference.moleculer.settings import (
    JOIN_S,
    LOOK_AGAIN_S,
    NAME_MAX,
    OVERDUE_S,
    QUIET_S,
    START_S,
    STEADY_S,
    STOP_DELAY_S,
    Settings,
)
from conformance.clients.reference.moleculer.streams import Incoming

Json = dict[str, Any]

QUESTIONS = ("DISCOVER", "PING", "HEARTBEAT")  #: what a node answers, or asks about


class MoleculerClient:
    """A node. It connects again by itself; calls that wait meanwhile go on to wait."""

    buffered_bytes = 0
    timers = 0

    def __init__(self, runtime: Runtime, settings: Settings) -> None:
        self.runtime = runtime
        self.settings = settings
        self.registry = runtime.part(Registry)(settings.node_id)
        self.post = runtime.part(Post)(runtime, settings)
        self.caller = runtime.part(Caller)(runtime, settings, self.post, self.registry)
        self.server = runtime.part(Server)(runtime, settings, self.post)
        self.events = runtime.part(Events)(runtime, settings, self.post, self.registry)
        self.pings = runtime.part(Pings)(runtime, self.post, self.registry)
        self.server.call = self.nested
        self.instance = self.post.new_id()
        self.seq = 1
        self._announcing: asyncio.Task[None] | None = None
        self._joined_at = -inf
        self._early: list[tuple[str, bytes]] | None = None  #: questions heard before it has joined
        self._between = runtime.backoff(0.2, 2.0)  #: connections that end as soon as they are there
        self._handlers: dict[str, Callable[[Json], None]] = {
            "DISCOVER": self.discovered,
            "INFO": self.informed,
            "HEARTBEAT": self.beaten,
            "DISCONNECT": self.left,
            "PING": self.pings.asked,
            "PONG": self.pings.answered,
            "REQ": self.server.request,
            "REQB": self.server.request,
            "RES": self.caller.response,
            "EVENT": self.events.event,
            "EVENTB": self.events.event,
        }

    # life

    async def connect(self, timeout: float | None = None) -> None:
        """Join; a server that is not there yet is waited for. `abort` ends that."""
        deadline = inf if timeout is None else self.runtime.clock.now() + timeout
        try:
            await self.runtime.tasks.join(self.runtime.tasks.spawn(self._start()), deadline)
        except BaseException:
            self.abort()
            raise

    async def _start(self) -> None:
        await self.reach(self.runtime.backoff(0.2, 2.0).retry)
        self.runtime.callbacks.report("connected")
        await asyncio.sleep(START_S)
        if self.settings.transporter != "tcp":  # gossip tells who lives
            for work in (self.heartbeats(), self.sweeps()):
                self.runtime.tasks.spawn(work)
        self.announce()

    async def reach(self, retry: Callable[..., Any]) -> None:
        """Be on the bus, if not at once then later."""
        try:
            await self.join()
        except ClientError as error:
            if self.is_final(error):
                raise
            await retry(self.join, self.is_final)

    def is_final(self, error: ClientError) -> bool:
        """Whether another attempt would end the same way."""
        return error.kind in ("auth", "refused", "protocol", "invalid")

    async def join(self) -> None:
        """Connect, listen, ask who is there. Raises `ClientError`."""
        bus = self.new_bus()
        self._early = []
        try:
            async with asyncio.timeout(JOIN_S):
                await bus.open()
                await self.enter(bus)
        except TimeoutError:
            bus.abort()
            raise ClientError("connection", "the server does not answer", definite=True) from None
        except OSError as error:
            raise ClientError("connection", str(error), definite=True) from None
        except BaseException:
            bus.abort()
            raise
        self._joined_at = self.runtime.clock.now()
        bus.is_joined = True
        early, self._early = self._early, None
        for topic, payload in early or ():
            self.hear(topic, payload)

    async def enter(self, bus: Bus | Mesh) -> None:
        """Listen, then ask who is there."""
        await bus.subscribe([(topic, "") for topic in self.topics()])
        self.post.bus = bus
        self.post.send("DISCOVER", "", {})

    def new_bus(self) -> Bus | Mesh:
        """A connection to the server, or to the other nodes where there is none."""
        if self.settings.transporter != "tcp":
            return self.runtime.part(Bus)(self.runtime, self.settings, self.hear, self.lost_bus)
        return self.runtime.part(Mesh)(
            self.runtime, self.settings, self.hear, lambda: self.info(self.infos())
        )

    def topics(self) -> list[str]:
        """The twelve topics of a node."""
        own = self.settings.node_id
        words = ("EVENT", "REQ", "RES", "DISCOVER", "INFO", "PING", "PONG")
        for_all = ("DISCOVER", "INFO", "DISCONNECT", "HEARTBEAT", "PING")
        topic = self.post.topic
        return [*[topic(word, own) for word in words], *[topic(word) for word in for_all]]

    def lost_bus(self, reason: str) -> None:
        """The connection is gone."""
        self.runtime.callbacks.report("connection_lost", reason)
        if not self.runtime.is_closed:
            self.runtime.tasks.spawn(self.rejoin())

    async def rejoin(self) -> None:
        """Be on the bus again."""
        if self.runtime.clock.now() - self._joined_at < STEADY_S:
            await self._between.pause()
        else:
            self._between.reset()
        try:
            await self.reach(self.runtime.backoff(0.2, 2.0).retry)
        except ClientError as error:
            self.runtime.callbacks.trouble("other", error)
            self.runtime.callbacks.report("disconnected", str(error))
            self.abort()
            return
        self.runtime.callbacks.report("reconnected")
        await self.report_all()

    async def close(self, timeout: float | None = None) -> None:
        """Stop in good order."""
        patience = (timeout or DEFAULT_TIMEOUT_S) / 2
        if self.is_open:
            with suppress(ClientError):  # the connection may end before it has said everything
                await self.send_close(patience)
        self.abort()

    async def send_close(self, patience_s: float) -> None:
        """No services any more, then the end of what runs, then DISCONNECT."""
        self.seq += 1
        if self._announcing is not None:
            self._announcing.cancel()
        self.send_info("", [])
        await asyncio.sleep(STOP_DELAY_S)
        await self.server.stopped()
        await self.server.finished(patience_s)
        self.post.send("DISCONNECT", "", {})
        bus = self.post.bus
        if bus is not None:
            await bus.drained()
            bus.close()

    def abort(self) -> None:
        """Drop everything."""
        self.runtime.is_closed = True
        if self.post.bus is not None and self.post.bus.is_open:
            self.post.bus.abort()
        self.caller.end()
        self.pings.end()
        self.runtime.end()

    @property
    def is_open(self) -> bool:
        """Whether it is on the bus."""
        return not self.runtime.is_closed and self.post.bus is not None and self.post.bus.is_open

    @property
    def pending(self) -> int:
        """Calls and pings without an answer."""
        return len(self.caller.pending) + self.pings.pending

    # what it tells

    def announce(self) -> None:
        """Send all nodes the services, when they have not changed for a moment."""
        self.registry.peers[self.settings.node_id].services = self.infos()
        if self._announcing is not None:
            self._announcing.cancel()
        self._announcing = self.runtime.tasks.spawn(self._announce())

    async def _announce(self) -> None:
        await asyncio.sleep(QUIET_S)
        self.seq += 1
        await self.report_all()

    async def report_all(self) -> None:
        """The INFO broadcast; where the bus balances, the listeners of the services come before it."""
        bus = self.post.bus
        if bus is None or not bus.is_open:
            return
        if self.settings.disable_balancer:
            bus.write(bus.codec.unsubscribe_balanced())
            await bus.subscribe(self.balanced())
        self.send_info("", self.infos())

    def balanced(self) -> list[tuple[str, str]]:
        """Topics that anybody may answer, with their groups."""
        found = []
        for service in self.server.services.values():
            actions = [f"{service.name}.{raw}" for raw in service.actions]
            found += [(self.post.topic("REQB", action), action) for action in actions]
            for pattern, group in service.events.items():
                name = group or service.name
                tail = f"{pattern.partition('**')[0]}>" if "**" in pattern else pattern
                found.append((self.post.topic("EVENTB", name, tail), name))
        return found

    def infos(self) -> list[Json]:
        """The services as INFO has them."""
        return [service.info() for service in self.server.services.values()]

    def send_info(self, target: str, services: list[Json]) -> None:
        """Tell one node, or all."""
        self.post.send("INFO", target, self.info(services))

    def info(self, services: list[Json]) -> Json:
        """The INFO with these services."""
        return {
            "services": services,
            "ipList": ["127.0.0.1"],
            "hostname": self.runtime.network.host_name(),
            "client": {"type": "python", "version": "1", "langVersion": platform.python_version()},
            "config": {},
            "instanceID": self.instance,
            "metadata": {},
            "seq": self.seq,
        }

    async def heartbeats(self) -> None:
        """A sign of life in each interval."""
        while True:
            await asyncio.sleep(self.settings.heartbeat_s)
            if self.is_open:
                self.post.send("HEARTBEAT", "", {"cpu": self.runtime.network.busy_percent()})

    async def sweeps(self) -> None:
        """Nodes that are silent for too long are gone."""
        timeout_s = self.settings.heartbeat_timeout_s
        while True:
            now = self.runtime.clock.now()
            for peer in self.registry.silent(now - timeout_s):
                self.gone(peer)
            due_s = self.registry.heard_since(now) + timeout_s - now
            await asyncio.sleep(due_s + LOOK_AGAIN_S if due_s >= 0 else OVERDUE_S)

    # what it hears

    def hear(self, topic: str, payload: bytes) -> None:
        """A message came; whatever is in it, the node lives on."""
        try:
            command, packet = self.post.read(topic, payload)
            if not self.counts(command, packet):
                return
            if self._early is not None and command in QUESTIONS:
                self._early.append((topic, payload))
                return
            handler = self._handlers.get(command)
            if handler is not None:
                handler(packet)
        except ClientError as error:
            self.runtime.callbacks.trouble("decode", error)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            self.runtime.callbacks.trouble("decode", ClientError("protocol", f"{topic}: {error!r}"))

    def counts(self, command: str, packet: Json) -> bool:
        """Whether a packet counts: of the own ones only requests, answers and events do."""
        if packet["sender"] != self.settings.node_id or command[:3] in ("REQ", "RES", "EVE"):
            return True
        if command == "INFO" and packet.get("instanceID") != self.instance:
            self.conflict()
        return False

    def conflict(self) -> None:
        """Another node has the same id: this one goes, and says why."""
        error = ClientError("refused", f"another node is called {self.settings.node_id}")
        self.runtime.callbacks.trouble("other", error)
        self.runtime.callbacks.report("disconnected", str(error))
        self.abort()

    def discovered(self, packet: Json) -> None:
        """A node asks who is there."""
        self.send_info(packet["sender"], self.infos())

    def informed(self, packet: Json) -> None:
        """A node reports itself."""
        self.registry.info(packet, self.runtime.clock.now())

    def beaten(self, packet: Json) -> None:
        """A node lives."""
        if not self.registry.heartbeat(packet, self.runtime.clock.now()):
            self.post.send("DISCOVER", packet["sender"], {})

    def left(self, packet: Json) -> None:
        """A node stops."""
        self.gone(packet["sender"])

    def gone(self, peer: str) -> None:
        """A node is gone."""
        if self.registry.gone(peer):
            self.caller.lost(peer)
            self.server.lost(peer)

    # what its user does

    def check_open(self) -> None:
        """Raise `ClientError` (closed) where it was stopped."""
        if self.runtime.is_closed:
            raise ClientError("closed", "the node was stopped", definite=True)

    def serve(self, service: Service) -> None:
        """Offer a service; all nodes get it soon. Raises `ClientError` (invalid, closed)."""
        self.check_open()
        groups = [group for group in service.events.values() if group]
        for name in (service.name, *service.actions, *service.events, *groups):
            if not 0 < len(name.encode()) <= NAME_MAX:
                raise ClientError("invalid", f"a name of {len(name)} characters", definite=True)
        if self.settings.disable_balancer and self.settings.transporter == "nats":
            check_words((service.name, *service.actions, *service.events, *groups))
        self.server.services[service.name] = service
        self.announce()

    def unserve(self, name: str) -> None:
        """Offer it no more. Raises `ClientError` (closed)."""
        self.check_open()
        self.server.services.pop(name, None)
        self.announce()

    async def nested(self, parent: Context, action: str, params: Any) -> Any:
        """A call as part of a request."""
        data, _ = await self.caller.call(action, params, parent=parent, timeout=0.0)
        return [chunk async for chunk in data] if isinstance(data, Incoming) else data
