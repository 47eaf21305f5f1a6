"""The proxy: its public class, and the connections that it opens to the server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack
from weakref import WeakSet

from fakebrokers.core.driver import Driver
from fakebrokers.core.engine import Clock
from fakebrokers.core.frames import Frame
from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.relay import new_relay
from fakebrokers.core.session import Codec, Session
from fakebrokers.core.wire import Wire
from fakebrokers.errors import UsageError
from fakebrokers.options import ServerOptions
from fakebrokers.protocol import Protocol, find_protocol
from fakebrokers.proxy.frames import FRAMES
from fakebrokers.proxy.recording import VERSION, Head, Recorder
from fakebrokers.proxy.relayed import FrameSession
from fakebrokers.proxy.session import NoBroker, ProxySession
from fakebrokers.proxy.upstream import UpstreamSocket
from fakebrokers.server import FakeServer

WIRE = Wire("bytes", FRAMES)
#: Not registered: nobody asks for a proxy by the name of a protocol.
PROTOCOL = Protocol(
    name="proxy",
    about="bytes between a client and a server",
    server="fakebrokers.proxy.server:Proxy",
    wires=(WIRE,),
)


def relayed(protocol: Protocol, wire: Wire) -> Protocol:
    """A protocol as a proxy knows it: one wire, and no broker of its own."""
    frames: list[type[Frame]] = [*wire.frames, *FRAMES]
    spoken = Wire(wire.name, frames, stream=wire.stream, port=wire.port, relay=wire.relay, brokered=False)
    return replace(
        protocol,
        server=PROTOCOL.server,
        wires=(spoken,),
        variants=(),
        effects=protocol.own_effects,
        control=PROTOCOL.control,
    )


class Proxy(FakeServer):
    """Passes on what clients and a server say, but for what the faults do to it.

        proxy = Proxy("127.0.0.1:5432")
        proxy = Proxy("127.0.0.1:5552", protocol="rabbitmq-stream")
        proxy = Proxy("127.0.0.1:4222", protocol="moleculer", wire="nats")
        proxy = Proxy(broker.urls)

    ``in`` is client to server, ``out`` server to client. Without a protocol each read of a socket is one
    "frame" (``ClientBytes``, ``ServerBytes``), and effects that need no frames of a protocol work as in a
    fake. With one, the proxy reads its frames: plans and journal are those of the fake, and a frame passes
    once it is whole. What no fault touches passes byte by byte as it came, also what cannot be read.

    Args:
        upstream: The server: ``host:port``, with or without a scheme in front. Or several by name: each gets
            an address of its own (`urls`), from `port` on; the journal shows which one a connection is for
            (``upstream``).
        protocol: Whose frames to read, by name.
        wire: Which of its wires; the usual one if not given.
        readdress: Where the server sends clients its own address, send that of the proxy instead, so
            that they stay on it.
        advertised_host: By which name they get it; the host listened on if not given.
        record: Write down what the server hears and says, in this file; see `recording`. Needs a protocol.
        connect_timeout: Seconds that the server has to accept.
        options: Those of `FakeServer`. Of bytes that it does not read as frames the journal keeps the size
            alone: there may be credentials among them.
    """

    protocol = PROTOCOL

    def __init__(
        self,
        upstream: str | Mapping[str, str],
        *,
        protocol: str = "",
        wire: str = "",
        readdress: bool = True,
        advertised_host: str | None = None,
        record: str | Path | None = None,
        connect_timeout: float = 10.0,
        **options: Unpack[ServerOptions],
    ) -> None:
        if protocol:
            described = find_protocol(protocol)
            spoken = described.wire(wire) if wire else described.wires[0]
            new_relay(spoken)
            self.protocol = relayed(described, spoken)
        elif wire or record is not None:
            raise UsageError("a proxy for bytes has no wire and records nothing: name the protocol")
        self._reads_frames = bool(protocol)
        self._readdress = readdress
        self._advertised_host = advertised_host
        self._record = None if record is None else Path(record)
        self._recorded = False
        self._recorder: Recorder | None = None
        self._upstream = {"": upstream} if isinstance(upstream, str) else dict(upstream)
        for address in self._upstream.values():
            _split(address)
        self._connect_timeout = connect_timeout
        #: Seconds by which an orderly end comes late: the client's to the server, the server's to the client.
        self.linger = {"in": 0.0, "out": 0.0}
        self._dialling: set[asyncio.Task[None]] = set()
        self._upstreams: WeakSet[UpstreamSocket] = WeakSet()
        super().__init__(**options)

    @property
    def scheme(self) -> str:
        scheme, mark, _ = next(iter(self._upstream.values())).partition("://")
        return scheme if mark else "tcp"

    @property
    def address(self) -> str:
        """The address for clients: ``host:port``."""
        return self.url.partition("//")[2]

    @property
    def urls(self) -> dict[str, str]:
        """The addresses for clients, by the name of the server, if there are several."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        by_name = zip(self._upstream, self.listeners, strict=False)
        return {name: f"{self.scheme}://{host}:{listener.port}" for name, listener in by_name if name}

    @property
    def where(self) -> str | dict[str, str]:
        return self.urls or super().where

    def move(self, upstream: str, host: str, port: int) -> None:
        """Other addresses from the next start on; faults, counts and journal stay."""
        _split(upstream)
        self._upstream = {"": upstream}
        self.host, self._wanted_port = host, port

    def _make_broker(self, clock: Clock) -> NoBroker:
        return NoBroker()

    def _endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                self._wires[0],
                partial(self._new_session, name),
                self._wanted_port and self._wanted_port + number,
            )
            for number, name in enumerate(self._upstream)
        ]

    def _new_session(self, name: str, _: Any) -> tuple[Session, Codec]:
        driver = self._driver
        assert driver is not None

        def dial(session: ProxySession) -> None:
            if name:
                self.journal.state(driver.loop.time(), session.link.name, "upstream", name)
            task = driver.loop.create_task(self._connect(driver, session, _split(self._upstream[name])))
            self._dialling.add(task)
            task.add_done_callback(self._dialled)

        options: dict[str, Any] = {"dial": dial, "linger": lambda: self.linger["out"], "name": name}
        session = ProxySession(**options) if not self._reads_frames else self._frame_session(name, options)
        return session, session.codec

    def _frame_session(self, name: str, options: dict[str, Any]) -> FrameSession:
        listener = self.listeners[list(self._upstream).index(name)]
        address = (lambda: (self._advertised_host or self.host, listener.port)) if self._readdress else None
        return FrameSession(new_relay(self._wires[0]), address=address, recorder=self._recorder, **options)

    def _bound(self) -> None:
        if self._record is not None:
            head = Head(VERSION, self.protocol.name, self._wires[0].name, self.scheme)
            goes_on, self._recorded = self._recorded, True
            self._recorder = Recorder(self._record, head, lambda: self.now, goes_on=goes_on)

    async def _connect(self, driver: Driver, session: ProxySession, address: tuple[str, int]) -> None:

        def make() -> UpstreamSocket:
            upstream = UpstreamSocket(driver, session, lambda: self.linger["in"])
            self._upstreams.add(upstream)
            return upstream

        try:
            await asyncio.wait_for(driver.loop.create_connection(make, *address), self._connect_timeout)
        except (OSError, UnicodeError) as error:  # the latter for a name that can be none
            link = session.link
            self.journal.state(driver.loop.time(), link.name, "no server", str(error))
            connection = self.engine.connections.get(link.name)
            if connection is not None:  # the client still waits
                driver.engine.act(connection, driver.loop.time(), session.failed)
                driver.finish_step()

    def _dialled(self, task: asyncio.Task[None]) -> None:
        self._dialling.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.engine.keep_error(error, "while it connected to the server")

    def _closed(self) -> None:
        for task in tuple(self._dialling):
            task.cancel()
        for upstream in tuple(self._upstreams):
            upstream.drop()
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None


def _split(address: str) -> tuple[str, int]:
    """Host and port of an address or a URL. `UsageError` if it is neither."""
    place = address.rpartition("//")[2].partition("/")[0].rpartition("@")[2]
    host, _, port = place.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"expected the server's address as host:port, got {address!r}")
    return host.strip("[]"), int(port)
